"""Signals that end the process: in order at first, then at once (RPC-91, RPC-94, RPC-96).

    signals seen   what happens
    0              nothing
    1              the work is cancelled; leaving the kernel aborts the run, stores its turn, runs shutdown hooks
    2              everything is cancelled, hooks and graces too; child processes are killed and reaped
    3, or FORCE_S after the second   the process ends where it stands

A program that ends in order by itself says so: then the first signal adds nothing, not even its exit code.

The handlers are plain ones: they must also work while foreign code blocks the loop. The last signal names the
exit code. Only the command line uses this; a kernel that is embedded leaves signals to its host.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

import attrs
import trio

FORCE_S: Final = 1.0
"""From the second signal to the end by force. A killed child is reaped within milliseconds; what takes longer is foreign code."""

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@attrs.define(eq=False)
class Interrupts:
    """What signals asked for. Both scopes are cancelled from here only."""

    work: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    """Around everything that is done inside the kernel's block."""
    everything: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    """Around the kernel itself."""
    code: int | None = None
    """Exit code of the last signal; None: there was none."""
    _is_ending: bool = False
    """Whether the end began without a signal."""
    _seen: int = 0
    _token: trio.lowlevel.TrioToken | None = None

    @contextmanager
    def handling(self) -> Iterator[None]:
        """Handles signals inside the block; to be entered inside Trio's loop. A hangup that is ignored, by nohup, stays so."""
        self._token = trio.lowlevel.current_trio_token()
        heard = [each for each in SIGNALS if each is not signal.SIGHUP or signal.getsignal(each) is not signal.SIG_IGN]
        before = {each: signal.signal(each, self._handle) for each in heard}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def end_in_order(self) -> None:
        """The program ends by itself; the first signal is ignored from here on (RPC-94)."""
        self._is_ending = True

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        self._seen += 1
        if self._is_ending and self._seen == 1:
            return
        self.code = 128 + number
        assert self._token is not None
        if self._seen == 1:
            self._token.run_sync_soon(self.work.cancel)
            return
        if self._seen == 2:
            self._token.run_sync_soon(self.everything.cancel)
            signal.signal(signal.SIGALRM, self._end)
            signal.setitimer(signal.ITIMER_REAL, FORCE_S)
            return
        os._exit(self.code)

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        assert self.code is not None
        os._exit(self.code)
