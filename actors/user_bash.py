"""Commands that a person runs: asked of handlers, run here or elsewhere, captured, recorded (UB-1 to UB-6, RPC-75 to RPC-80).

A command runs beside whatever the conversation does, and several may run at once (RPC-78); a host whose screen has room
for one looks at `is_running` first. Output is cleaned as it comes (`kernel/plain_output.py`), told as events, and kept as
the bash tool keeps it: the tail in memory, all of it in a file once it is long. What is recorded is what the person typed.

What is left if the caller is cancelled: the command is killed with all it started, and nothing is recorded. When the session
is left, every command is ended first, so that what it printed still belongs to the session it began in.
"""

import codecs
from collections.abc import Awaitable, Callable
from typing import Any, Final

import attrs
import trio

from camshaft.actors.actor import Cut, Failure, guard
from camshaft.actors.captured_output import CapturedOutput, spill_opener
from camshaft.actors.errors import CommandRefused
from camshaft.actors.exclusive import LEAVING_TEXT, Exclusives
from camshaft.actors.ports.processes import ProcessCommand
from camshaft.actors.seat_parts import SeatParts
from camshaft.actors.shells import NoShell, find_shell, prefixed, without_session
from camshaft.actors.signal import AbortSignal
from camshaft.kernel import shapes
from camshaft.kernel.commands import AppendMessage, Hold
from camshaft.kernel.events import BashExecutionUpdate
from camshaft.kernel.messages import BashExecutionMessage
from camshaft.kernel.plain_output import plain_piece
from camshaft.kernel.run import Operation, Verdict, admit
from camshaft.kernel.session_events import UserBashEvent, UserBashOutput
from camshaft.kernel.session_merges import UserBashPlan

SPILL_PREFIX: Final = "camshaft-bash"

END_S: Final = 5.0
"""For commands to be over when their session is left; a killed one is over at once."""
LEFT_TEXT: Final = f"The command did not end within {END_S:g} s when its session was left; nothing was recorded."

UNREAD_BYTES_MAX: Final = 64 * 1024 * 1024
"""Output of custom operations that waits to be kept; code that sends more without awaiting anything is told so."""


class UserBashFailed(CommandRefused):
    """The command was not run, or how it ended is unknown; nothing was recorded."""


@shapes.define(eq=False)
class UserBash:
    """The commands of one session that run, and those to come."""

    _parts: SeatParts
    _exclusives: Exclusives
    """Says whether the session is being left."""
    _running: dict[AbortSignal, trio.Event] = attrs.field(factory=dict)

    _left: set[AbortSignal] = attrs.field(factory=set)
    """Those that did not end when their session was left."""

    @property
    def is_running(self) -> bool:
        """Whether a command runs."""
        return bool(self._running)

    async def run(self, command: str, *, exclude_from_context: bool = False, command_id: str | None = None) -> UserBashOutput:
        """Runs a command to its end or its abort, and records it. Raises UserBashFailed: nothing is recorded then (UB-5)."""
        if self._exclusives.is_leaving:
            raise UserBashFailed(LEAVING_TEXT)
        signal, over = AbortSignal(self._parts.ground.limits.abort_grace_s), trio.Event()
        self._running[signal] = over
        try:
            output = await self._output(command, exclude_from_context, signal, command_id)
            if signal in self._left:
                raise UserBashFailed(LEFT_TEXT)
            self._record(command, output, exclude_from_context)
            return output
        finally:
            del self._running[signal]
            self._left.discard(signal)
            over.set()

    def abort(self) -> None:
        """Asks every command that runs to stop; nothing if none does."""
        for signal in tuple(self._running):
            signal.request()

    async def end(self) -> None:
        """Ends every command by force and waits until each is recorded or given up; a handler that hangs is not waited for."""
        with trio.move_on_after(END_S):
            while self._running:
                signal, over = next(iter(self._running.items()))
                signal.force()
                await over.wait()
        self._left.update(self._running)

    def record(self, message: BashExecutionMessage) -> None:
        """Stores the result of a command; held to the end of the run while one is active (LOOP-35)."""
        is_held = admit(Operation.SHELL, self._parts.state.live.activity) is Verdict.HOLD
        self._parts.posted(Hold(message=message) if is_held else AppendMessage(message=message))

    async def _output(self, command: str, is_excluded: bool, signal: AbortSignal, command_id: str | None) -> UserBashOutput:
        host, cwd = self._parts.host, self._parts.base_prompt.cwd
        plan = UserBashPlan(event=UserBashEvent(command=command, exclude_from_context=is_excluded, cwd=cwd))
        if host.has("user_bash"):
            plan = await host.dispatch("user_bash", plan)
        if plan.blocked is not None:
            raise UserBashFailed(plan.blocked)
        answer = plan.answer
        if answer is not None and answer.result is not None:
            return answer.result
        settings, world = self._parts.options.settings, self._parts.world
        environment = without_session(world.environment)
        taken = _Taken(
            output=CapturedOutput(spill_opener(world, environment, SPILL_PREFIX)),
            tell=lambda delta: self._parts.stream.publish(BashExecutionUpdate(delta=delta, id=command_id)),
            wait=self._parts.stream.wait_for_followers,
        )
        line = prefixed(command, settings.shell_command_prefix)
        try:
            if answer is not None:
                code = await _run_elsewhere(answer.operations, (line, cwd), environment, signal, taken)
            else:
                code = await self._run_here(line, environment, signal, taken)
            return await taken.finished(code, is_cancelled=signal.cancelled and code is None)
        finally:
            taken.output.close()

    async def _run_here(self, line: str, environment: dict[str, str], signal: AbortSignal, taken: "_Taken") -> int | None:
        world, cwd = self._parts.world, self._parts.base_prompt.cwd
        try:
            shell = await find_shell(world.processes, environment, self._parts.options.settings.shell_path)
            prepared = ProcessCommand(arguments=(shell, "-c", line), cwd=cwd, environment=environment)
            end = await world.processes.run(prepared, taken.take, signal=signal)
        except NoShell as error:
            raise UserBashFailed(str(error)) from None
        except OSError as error:
            raise UserBashFailed(f"Cannot run the command in {cwd!r}: {error.strerror or error}") from error
        return end.exit_code if end.why == "exited" else None

    def _record(self, command: str, output: UserBashOutput, is_excluded: bool) -> None:
        message = BashExecutionMessage(
            command=command,
            output=output.output,
            exit_code=output.exit_code,
            cancelled=output.cancelled,
            truncated=output.truncated,
            full_output_path=output.full_output_path,
            exclude_from_context=True if is_excluded else None,
            timestamp=self._parts.session.now_ms(),
        )
        self.record(message)


@shapes.define(eq=False, kw_only=True)
class _Taken:
    """The output of one command on its way: decoded, cleaned, told, kept."""

    output: CapturedOutput
    tell: Callable[[str], None]
    wait: Callable[[], Awaitable[None]]
    """Returns when who follows has room: output that nobody takes must not pile up (RPC-89)."""
    _decoder: codecs.IncrementalDecoder = attrs.field(factory=lambda: codecs.getincrementaldecoder("utf-8")("replace"))
    _waiting: str = ""

    async def take(self, chunk: bytes) -> None:
        """The next bytes."""
        await self._keep(self._decoder.decode(chunk), is_last=False)

    async def _keep(self, text: str, *, is_last: bool) -> None:
        piece = plain_piece(self._waiting, text, is_last=is_last)
        self._waiting = piece.waiting
        if piece.text:
            self.tell(piece.text)
            await self.wait()
            await self.output.add(piece.text.encode())

    async def finished(self, code: int | None, *, is_cancelled: bool) -> UserBashOutput:
        """What the command did, its end of the output included."""
        await self._keep(self._decoder.decode(b"", final=True), is_last=True)
        await self.output.finish()
        cut = self.output.tail()
        return UserBashOutput(
            output=cut.content,
            exit_code=code,
            cancelled=is_cancelled,
            truncated=cut.truncated,
            full_output_path=self.output.spill_path,
        )


async def _run_elsewhere(
    operations: Any, what: tuple[str, str], environment: dict[str, str], signal: AbortSignal, taken: _Taken
) -> int | None:
    """Runs the command through an extension's operations (UB-3); the exit code, None if it has none. Raises UserBashFailed."""
    feed = _Feed()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(feed.pump, taken)
        with signal.bounded() as bounds:

            async def call() -> Any:
                return await operations.exec(*what, on_data=feed.put, signal=signal, timeout=None, env=dict(environment))

            done = await guard(call, scope=bounds.scope)
        feed.close()
    if isinstance(done, Cut):
        return None
    if isinstance(done, Failure):
        if signal.cancelled:
            return None
        raise UserBashFailed(f"user_bash operations failed: {done.text}")
    value = done.value
    code = value.get("exit_code") if isinstance(value, dict) else getattr(value, "exit_code", None)
    if code is not None and (isinstance(code, bool) or not isinstance(code, int)):
        raise UserBashFailed(f"user_bash operations gave exit_code {code!r}; expected a whole number or None")
    return code


@shapes.define(eq=False)
class _Feed:
    """Takes output from a plain function and keeps it in a task, in order."""

    _unread: bytearray = attrs.field(factory=bytearray)
    _news: trio.Event = attrs.field(factory=trio.Event)
    _is_closed: bool = False

    def put(self, chunk: bytes | str) -> None:
        """The next piece. Raises BufferError if far more was put than could be kept meanwhile."""
        data = chunk.encode("utf-8", "replace") if isinstance(chunk, str) else bytes(chunk)
        if len(self._unread) + len(data) > UNREAD_BYTES_MAX:
            raise BufferError(f"more than {UNREAD_BYTES_MAX} bytes of output wait; await something between the pieces")
        if not self._is_closed:
            self._unread += data
            self._news.set()

    def close(self) -> None:
        """Nothing more is taken."""
        self._is_closed = True
        self._news.set()

    async def pump(self, taken: _Taken) -> None:
        """Until closed and empty."""
        while self._unread or not self._is_closed:
            await self._news.wait()
            self._news = trio.Event()
            data, self._unread = bytes(self._unread), bytearray()
            if data:
                await taken.take(data)
            if self._is_closed:
                self._news.set()
