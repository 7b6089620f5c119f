"""A kernel in a thread of its own, and how calls of other threads and of asyncio cross to it.

Theory of operation. The thread runs Trio and in it one kernel. A call is a *job*: it crosses with
`run_sync_soon`, runs as a task of its own in the caller's context variables, and its end is told by a
callback that knows how its caller waits. Of a job there is exactly one end, whatever happens: Trio
processes every `run_sync_soon` that did not raise, and a job that finds the kernel closed ends at once.

The cancellation contract, the same for all callers. Giving up a wait cancels the job's scope, *waits until
the job has ended*, and then goes on as the caller wanted. So nothing of a given-up call is under way when
its caller continues, and what the job has given in the same moment is not lost: `lost` gets it. Runs are not
part of the job that started them, so a given-up `prompt` ends the wait and not the run (SDK-8).

The thread is a daemon, so that a host that forgets to close cannot hang the interpreter; what it forgot is
closed at exit, within EXIT_CLOSE_S. What is left if the process dies here: as everywhere, what was committed.
"""

import asyncio
import atexit
import contextvars
import functools
import logging
import os
import threading
from collections.abc import Callable
from typing import Any, Final

import attrs
import trio

from camshaft.actors.actor import Failure, Value, guard, guard_now
from camshaft.actors.errors import KernelClosed, KernelMisuse
from camshaft.actors.host import Kernel, Limits, World, open_kernel
from camshaft.kernel import shapes

EXIT_CLOSE_S: Final = 15.0
"""Time for the close at exit of a host that forgot it: aborted tools and shutdown hooks have less (architecture, limits)."""

THREAD_NAME: Final = "camshaft-kernel"

CLOSED_TEXT: Final = "the kernel was closed; start another one"


def _lose(_value: object) -> None:
    """Nobody has it, and nothing has to be done about it."""


def _nobody_waits() -> None:
    """Nobody is told."""


@shapes.define(eq=False)
class Job:
    """A call on its way to the kernel's thread and back."""

    call: Callable[[], Any]
    ended: Callable[[], None]
    """Called once, in the kernel's thread or the caller's, when there is a value or an error."""
    context: contextvars.Context = attrs.field(factory=contextvars.copy_context)
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    value: Any = None
    error: BaseException | None = None
    has_ended: bool = False

    async def run(self) -> None:
        """In Trio: makes the call and tells how it ended."""
        self.error = KernelClosed(CLOSED_TEXT)  # if the kernel ends first, which is the one cancellation that is not the caller's
        try:
            with self.scope:
                outcome = await guard(self.call)
                self.error = outcome.error if isinstance(outcome, Failure) else None
                self.value = outcome.value if isinstance(outcome, Value) else None
        except (KeyboardInterrupt, SystemExit) as error:  # of the caller's function: the caller's matter
            self.error = error
        finally:
            self.has_ended = True
            self.ended()

    def refuse(self, error: BaseException) -> None:
        """Ends it without a call."""
        self.error, self.has_ended = error, True
        self.ended()

    def result(self) -> Any:
        """What the call gave. Raises what it raised."""
        if self.error is not None:
            raise self.error
        return self.value


@shapes.define(eq=False)
class Portal:
    """One thread with one kernel. Every method may be called from every thread but the kernel's own."""

    _world: World | None = None
    _limits: Limits | None = None
    _clock: trio.abc.Clock | None = None
    """Trio's clock, for tests."""
    _thread: threading.Thread | None = None
    _pid: int = 0
    _token: trio.lowlevel.TrioToken | None = None
    _calls: trio.Nursery | None = None
    """Runs jobs; None before the kernel is open and after it closed."""
    _around: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    """Around the kernel's block: cancelled to close at once."""
    _asked: trio.Event | None = None
    """Set to close in order."""
    _kernel: Kernel | None = None
    _error: BaseException | None = None
    """What the thread ended with; raised by the first close."""
    _has_ended: bool = False
    _waiting: list[Callable[[], None]] = attrs.field(factory=list)
    """Called when the thread comes to its end."""
    _lock: threading.Lock = attrs.field(factory=threading.Lock)

    @property
    def kernel(self) -> Kernel:
        """For functions that run in the kernel's thread. Raises KernelClosed if it is not open."""
        if self._kernel is None:
            raise KernelClosed(CLOSED_TEXT)
        return self._kernel

    @property
    def is_open(self) -> bool:
        """Whether calls are taken."""
        return self._kernel is not None

    # -- life ----------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the thread and waits, about a millisecond, until the kernel is open. Raises KernelMisuse the second time."""
        if self._thread is not None:
            raise KernelMisuse("a kernel's thread is started once; make another kernel")
        ready = threading.Event()
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._main, args=(ready,), name=THREAD_NAME, daemon=True)
        self._thread.start()
        atexit.register(self._close_at_exit)
        ready.wait()
        if self._kernel is None:
            self._finish()

    def stop(self, at_once: bool) -> None:
        """Asks the kernel to close, `at_once` without the grace for what runs; returns at once, idempotent."""
        self._require_ours()
        if self._token is not None:
            try:
                self._token.run_sync_soon(self._stop, at_once)
            except trio.RunFinishedError:
                pass

    def close(self, at_once: bool = False) -> None:
        """Closes and waits for the end of the thread; interrupted, it closes at once. Raises the first fault of a log."""
        self._require_outside()
        if self._thread is None:
            return
        self.stop(at_once)
        ended = threading.Event()
        self._when_ended(ended.set)
        _wait(ended, functools.partial(self.stop, True))
        self._finish()

    async def aclose(self, at_once: bool = False) -> None:
        """As `close`, in asyncio; cancelled, it closes at once and is then cancelled."""
        self._require_outside()
        if self._thread is None:
            return
        self.stop(at_once)
        waiting = AsyncioWait()
        self._when_ended(waiting.end)
        if await waiting.until_ended(functools.partial(self.stop, True)):
            self._finish(quietly=True)
            raise asyncio.CancelledError
        self._finish()

    def _finish(self, quietly: bool = False) -> None:
        """After the end. Raises what it ended with, the first time."""
        if self._thread is not None:
            self._thread.join()
        atexit.unregister(self._close_at_exit)
        error, self._error = self._error, None
        if error is not None and not quietly:
            raise error

    def _close_at_exit(self) -> None:
        if self._has_ended or self._pid != os.getpid() or self._thread is None:
            return
        self.stop(True)
        self._thread.join(EXIT_CLOSE_S)
        if self._error is not None or self._thread.is_alive():
            what = f"it did not end within {EXIT_CLOSE_S:g} s" if self._error is None else str(self._error)
            logging.getLogger("camshaft").error("a kernel that the program did not close was closed at exit: %s", what)

    def _when_ended(self, callback: Callable[[], None]) -> None:
        with self._lock:
            if not self._has_ended:
                self._waiting.append(callback)
                return
        callback()

    def _stop(self, at_once: bool) -> None:
        if self._asked is not None:
            self._asked.set()
        if at_once:
            self._around.cancel()

    # -- the thread ----------------------------------------------------------------------

    def _main(self, ready: threading.Event) -> None:
        try:
            ended = guard_now(functools.partial(trio.run, self._serve, ready, clock=self._clock))
            self._error = ended.error if isinstance(ended, Failure) else None
        finally:
            self._kernel = None
            with self._lock:
                self._has_ended = True
                waiting, self._waiting = self._waiting, []
            ready.set()
            for callback in waiting:
                callback()

    async def _serve(self, ready: threading.Event) -> None:
        async with trio.open_nursery() as calls:
            self._asked, self._calls = trio.Event(), calls
            try:
                with self._around:
                    async with open_kernel(world=self._world, limits=self._limits) as kernel:
                        self._kernel, self._token = kernel, trio.lowlevel.current_trio_token()
                        ready.set()
                        await self._asked.wait()
            finally:
                self._kernel = self._calls = None
                calls.cancel_scope.cancel()

    # -- calls ---------------------------------------------------------------------------

    def send(self, job: Job) -> None:
        """Lets a job begin. Raises KernelClosed before the start and after the close, KernelMisuse in a forked process."""
        self._require_ours()
        if self._token is None:
            raise KernelClosed("the kernel is not open; use it inside its 'with' block, or call start()")
        try:
            self._token.run_sync_soon(self._begin, job)
        except trio.RunFinishedError:
            raise KernelClosed(CLOSED_TEXT) from self._error

    def _begin(self, job: Job) -> None:
        if self._calls is None:
            job.refuse(KernelClosed(CLOSED_TEXT))
        else:
            job.context.run(self._calls.start_soon, job.run)

    def give_up(self, job: Job) -> None:
        """Cancels a job; its end is told as ever."""
        try:
            if self._token is not None:
                self._token.run_sync_soon(job.scope.cancel)
        except trio.RunFinishedError:  # then it has ended
            pass

    def post(self, call: Callable[[], Any]) -> None:
        """Lets `call()` be made, and awaited, in the kernel's thread; nobody waits for it. Nothing if the kernel has closed."""
        try:
            self.send(Job(call, _nobody_waits))
        except KernelClosed:
            pass

    def call(self, call: Callable[[], Any], lost: Callable[[Any], object] = _lose) -> Any:
        """What `call()` gives in the kernel's thread, awaited there if that is awaitable; blocks.

        Raises what it raises. An exception in the waiting thread (KeyboardInterrupt in the main one) gives the call up.
        """
        self._require_outside()
        ended = threading.Event()
        job = Job(call, ended.set)
        self.send(job)
        has_waited = False
        try:
            _wait(ended, functools.partial(self.give_up, job))
            has_waited = True
        finally:
            if not has_waited and job.error is None:
                lost(job.value)
        return job.result()

    async def acall(self, call: Callable[[], Any], lost: Callable[[Any], object] = _lose) -> Any:
        """As `call`, from asyncio, without blocking its loop. Cancelling it gives the call up."""
        self._require_outside()
        waiting = AsyncioWait()
        job = Job(call, waiting.end)
        self.send(job)
        if await waiting.until_ended(functools.partial(self.give_up, job)):
            if job.error is None:
                lost(job.value)
            raise asyncio.CancelledError
        return job.result()

    def _require_outside(self) -> None:
        self._require_ours()
        if self._thread is not None and threading.get_ident() == self._thread.ident:
            raise KernelMisuse("this code runs in the kernel's thread, which would wait for itself; use the Trio seat that it was given")

    def _require_ours(self) -> None:
        if self._pid not in (0, os.getpid()):
            raise KernelMisuse("this process was forked from the one whose kernel this is; start a kernel after the fork, or spawn")


def _wait(ended: threading.Event, give_up: Callable[[], None]) -> None:
    """Blocks until it is set; an exception meanwhile gives up, waits for the end, and travels on. A second one travels at once."""
    try:
        ended.wait()
    finally:
        if not ended.is_set():
            give_up()
            ended.wait()


class AsyncioWait:
    """Waits in asyncio for something that another thread ends."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._has_ended = False
        self._waiter: asyncio.Future[None] | None = None

    def end(self) -> None:
        """From any thread. A loop that was closed has nobody left who waits."""
        try:
            self._loop.call_soon_threadsafe(self._end)
        except RuntimeError:
            pass

    def _end(self) -> None:
        self._has_ended = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def until_ended(self, give_up: Callable[[], None]) -> bool:
        """Whether it was cancelled meanwhile; then it called `give_up` and still waited for the end."""
        is_cancelled = False
        while not self._has_ended:
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            except asyncio.CancelledError:  # noqa: ASYNC103  the caller raises it again when what it waits for has ended
                is_cancelled = True
                give_up()
            except GeneratorExit:  # the loop was closed over it
                give_up()
                raise
        return is_cancelled
