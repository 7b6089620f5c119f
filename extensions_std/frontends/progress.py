"""Live progress on standard error: streamed text, tool calls with their time, a status line, usage and cost (PRINT-2).

The listener only adds to a buffer; a task writes it. A terminal that is stopped therefore stops nothing: what
no longer fits is left out, and that is said. On a terminal the last line is the status, drawn anew each second;
elsewhere it is a line after each turn. Control characters of models and tools are not passed on.

Where standard output is the same terminal, the answer stands there once: as it was streamed.
"""

import re
from collections import deque
from typing import Final

import attrs
import trio

from camshaft.actors.api import AssistantMessage, CustomMessage, CustomMessageEntry, TextBlock, dumps, text_of
from camshaft.actors.host import (
    AgentSettled,
    AutoRetryStart,
    EntryAppended,
    Event,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnEnd,
    TurnStart,
)
from camshaft.extensions_std.frontends.streams import Output

BUFFER_CHARS_MAX: Final = 256 * 1024
"""Progress that waits to be written: more than a screen history, less than would be felt."""

TICK_S: Final = 1.0
"""Between two drawings of the status line."""

BRIEF_CHARS_MAX: Final = 100
"""Arguments or an error on one line."""

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_DIM: Final = "\x1b[2m"
_PLAIN: Final = "\x1b[0m"
_CLEAR: Final = "\r\x1b[K"


@attrs.define(eq=False)
class Progress:
    """The progress of one job."""

    _out: Output
    _started_s: float
    _is_answer_shown: bool = False
    """Whether standard output is the same terminal, so that a streamed answer need not be written there."""
    _streamed: str = ""
    """The text of the message that was streamed last, as it came."""
    _is_streamed_whole: bool = True
    """Whether none of it was left out."""
    _buffer: deque[str] = attrs.field(factory=deque)
    _waiting: int = 0
    _is_lossy: bool = False
    _is_line_open: bool = False
    """Whether streamed text has not ended its line."""
    _has_status: bool = False
    """Whether the last line is a status, to be cleared first."""
    _is_settled: bool = False
    _turns: int = 0
    _calls: int = 0
    _input: int = 0
    _output: int = 0
    _cost: float = 0
    _doing: str = ""
    _changed: trio.Event = attrs.field(factory=trio.Event)

    def see(self, event: Event) -> None:
        """A listener; never waits."""
        match event:
            case TurnStart():
                self._turns += 1
                self._doing, self._is_settled = "waiting for the model", False
            case MessageStart(message=AssistantMessage()):
                self._streamed, self._is_streamed_whole = "", True
                return
            case MessageUpdate():
                self._see_delta(event)
            case MessageEnd(message=AssistantMessage() as message):
                self._see_answer(message)
            case MessageEnd(message=CustomMessage(display=True) as shown) | EntryAppended(entry=CustomMessageEntry(display=True) as shown):
                self._line(f"[{shown.custom_type}] {_brief(text_of(shown.content))}")
            case ToolExecutionStart():
                self._calls += 1
                self._doing = f"running {event.tool_name}"
                self._line(f"→ {event.tool_name} {_brief(_shown(event.args))}")
            case ToolExecutionEnd():
                self._see_result(event)
            case AutoRetryStart():
                wait = f"retry {event.attempt} of {event.max_attempts} in {event.delay_ms / 1000:.1f} s"
                self._line(f"{wait}: {_brief(event.error_message)}")
            case TurnEnd():
                if not self._out.is_terminal:
                    self._line(self._status())
            case AgentSettled():
                self._doing, self._is_settled = "", True
                self._line(f"done: {self._summary()}")
            case _:
                return
        self._changed.set()

    async def serve(self) -> None:
        """Writes what comes and draws the status line; ends when it is cancelled, or nobody can read any more."""
        try:
            while True:
                with trio.move_on_after(TICK_S):
                    await self._changed.wait()
                self._changed = trio.Event()
                await self._write(with_status=True)
        except OSError:
            self._is_lossy, self._is_streamed_whole, self._waiting = True, False, BUFFER_CHARS_MAX

    async def flush(self) -> None:
        """Returns when everything is written, the status line cleared."""
        try:
            await self._write(with_status=False)
        except OSError:
            self._buffer.clear()

    def has_shown(self, answer: AssistantMessage) -> bool:
        """Whether the whole text of this answer stands on the terminal that standard output goes to."""
        return self._is_answer_shown and self._is_streamed_whole and self._streamed == text_of(answer.content, "")

    # -- events --------------------------------------------------------------------------

    def _see_delta(self, event: MessageUpdate) -> None:
        told = event.assistant_message_event
        if told.type == "text_delta" and told.delta:
            self._doing = "answering"
            self._streamed += told.delta
            self._text(told.delta)
        elif told.type == "text_start" and self._is_line_open:
            self._text("\n")
        elif told.type == "thinking_delta":
            self._doing = "thinking"
        elif told.type == "toolcall_start":
            self._doing = "writing a call"

    def _see_answer(self, message: AssistantMessage) -> None:
        usage = message.usage
        self._input += usage.input + usage.cache_read + usage.cache_write
        self._output += usage.output
        self._cost += usage.cost.total
        if message.stop_reason in ("error", "aborted", "length"):
            self._line(f"✗ answer: {message.stop_reason} {_brief(message.error_message or '')}".rstrip())

    def _see_result(self, event: ToolExecutionEnd) -> None:
        took = "" if event.duration_ms is None else f" {event.duration_ms / 1000:.2f} s"
        said = ""
        if event.is_error:
            texts = [block.text for block in event.result.content or () if isinstance(block, TextBlock)]
            lines = [line for line in "\n".join(texts).split("\n") if line.strip()]
            said = f": {_brief(lines[-1])}" if lines else ""
        self._doing = "waiting for the model"
        self._line(f"{'✗' if event.is_error else '✓'} {event.tool_name}{took}{said}")

    # -- lines ---------------------------------------------------------------------------

    def _text(self, text: str) -> None:
        shown = _CONTROL.sub("", text)
        is_dim = self._out.is_terminal and not self._is_answer_shown
        self._put(f"{_DIM}{shown}{_PLAIN}" if is_dim else shown)
        self._is_line_open = not shown.endswith("\n") if shown else self._is_line_open

    def _line(self, text: str) -> None:
        self._put(f"{chr(10) if self._is_line_open else ''}{_CONTROL.sub(' ', text)}\n")
        self._is_line_open = False

    def _put(self, text: str) -> None:
        if self._waiting + len(text) > BUFFER_CHARS_MAX:
            self._is_lossy, self._is_streamed_whole = True, False
            return
        self._buffer.append(text)
        self._waiting += len(text)

    async def _write(self, *, with_status: bool) -> None:
        text, self._waiting = "".join(self._buffer), 0
        self._buffer.clear()
        if self._is_lossy:
            text, self._is_lossy = f"{text}\n[some progress is not shown]\n", False
        clear, self._has_status = _CLEAR if self._has_status else "", False
        status = ""
        if with_status and self._out.is_terminal and not self._is_line_open and not self._is_settled and self._doing:
            # One row: only one can be cleared.
            status, self._has_status = self._status()[: self._out.columns - 1], True
        if clear or text or status:
            await self._out.write(f"{clear}{text}{status}".encode("utf-8", "replace"))

    def _status(self) -> str:
        doing = f", {self._doing}" if self._doing and self._out.is_terminal else ""
        return f"· turn {self._turns}{doing}, {self._used()}"

    def _summary(self) -> str:
        turns, calls = "" if self._turns == 1 else "s", "" if self._calls == 1 else "s"
        return f"{self._turns} turn{turns}, {self._calls} tool call{calls}, {self._used()}"

    def _used(self) -> str:
        cost = f", ${self._cost:.4f}" if self._cost else ""
        return f"{self._input:,} tokens in, {self._output:,} out{cost}, {trio.current_time() - self._started_s:.1f} s"


def _brief(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= BRIEF_CHARS_MAX else f"{line[: BRIEF_CHARS_MAX - 1]}…"


def _shown(arguments: object) -> str:
    """The value of the argument that says most: a command, a path, a pattern; else all of them."""
    if isinstance(arguments, dict):
        for name in ("command", "path", "pattern"):
            if isinstance(arguments.get(name), str):
                return str(arguments[name])
    return dumps(arguments).decode()
