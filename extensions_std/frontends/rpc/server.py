"""The commands of one client, from their lines to their answers (RPC-19 to RPC-24, RPC-92, RPC-97, EXT-53).

Theory of operation. The reader splits what comes in and hands records on; answers to dialogs it passes to the
extension that asked, also while the conversation still opens. Everything else waits until it is open. Then commands
are begun one after the other, in order of arrival. A short one is answered before the next is begun. Any other runs as
far as it goes without waiting for anybody, and then beside those that follow it.

The end is asked for once, with a reason: no more input, a wish of an extension, a client that is gone. No command is
begun after that. A signal is no reason of these: it cancels everything here from outside.

Bounds: lines that wait to be begun, commands under way, answers that wait to be written. The first two are answered
with an error beyond their bound, so that answers to dialogs are still read; at the third nothing is read any more.
"""

from collections import deque
from collections.abc import Mapping
from typing import Any, Final, Literal, Protocol

import attrs
import trio

from camshaft.actors.api import Json, dumps
from camshaft.actors.host import CamshaftError, Cut, MalformedJson, Seat, WatchedUi, guard
from camshaft.extensions_std.frontends.rpc.acting import Acting, Keep
from camshaft.extensions_std.frontends.rpc.commands import COMMANDS, Row
from camshaft.extensions_std.frontends.rpc.lines import Lines, value_of
from camshaft.extensions_std.frontends.rpc.records import NOTHING, failure
from camshaft.extensions_std.frontends.rpc.requests import read
from camshaft.extensions_std.frontends.rpc.turns import until_it_waits
from camshaft.extensions_std.frontends.rpc.writer import Writer

UNDER_WAY_MAX: Final = 1_000
"""Commands that were begun and are not over; more are refused."""
UNBEGUN_BYTES_MAX: Final = 256 * 1024 * 1024
"""Lines that wait until the conversation is open; more are refused."""
ACCEPT_S: Final = 0.1
"""After the end of the input: for prompts that were read to be accepted (RPC-8)."""
UI_RESPONSE: Final = "extension_ui_response"
PROMPTS: Final = ("prompt", "steer", "follow_up")

End = Literal["input", "asked", "gone"]
"""No more input; an extension asked for it; nobody reads."""


class Source(Protocol):
    """Where the bytes come from."""

    async def receive(self) -> bytes:
        """The next bytes; none at the end. Raises OSError."""
        ...


@attrs.frozen
class _Line:
    """A line that waits for its turn."""

    content: bytes
    value: Json | MalformedJson


@attrs.define(eq=False)
class Server:
    """Serves one client; made before the conversation is opened."""

    _source: Source
    _writer: Writer
    _ui: WatchedUi
    _keep: Keep
    ended: trio.Event = attrs.field(factory=trio.Event)
    """Set when the end was asked for."""
    end: End | None = None
    """Why; None as long as it was not."""
    _lines: deque[_Line] = attrs.field(factory=deque)
    _lines_bytes: int = 0
    _news: trio.Event = attrs.field(factory=trio.Event)
    """Set when a line came, or no more will; then there is another one."""
    _is_read: bool = False
    """Whether the input is at its end."""
    _acting: set[Acting] = attrs.field(factory=set)
    """The commands under way."""
    _over: trio.Event = attrs.field(factory=trio.Event)
    """Set when one of them was answered or is over; then there is another one."""
    _is_end_asked: bool = False

    # -- reading -------------------------------------------------------------------------

    async def read(self) -> None:
        """Reads to the end of the input."""
        lines = Lines()
        while chunk := await self._received():
            for line in lines.feed(chunk):
                self._take(line)
            await self._writer.wait_for_room()
        rest = lines.rest()
        if rest:
            self._take(rest)
        self._is_read = True
        self._tell_news()

    async def _received(self) -> bytes:
        try:
            return await self._source.receive()
        except OSError:  # it cannot be read any more, which is an end, too
            return b""

    def _take(self, line: bytes) -> None:
        try:
            value: Json | MalformedJson = value_of(line)
        except MalformedJson as error:
            value = error
        if isinstance(value, dict) and value.get("type") == UI_RESPONSE:
            self._answer_dialog(value)
        elif self._lines_bytes + len(line) > UNBEGUN_BYTES_MAX:
            self._writer.send(failure(_id_of(value), _command_of(value), "Too many commands wait; this one was not done"))
        else:
            self._lines_bytes += len(line)
            self._lines.append(_Line(line, value))
            self._tell_news()

    def _answer_dialog(self, record: Mapping[str, Json]) -> None:
        """Of an unknown id, or too late, it is ignored; of the wrong shape it cancels (RPC-98, RPC-99)."""
        id = record.get("id")
        if not isinstance(id, str):
            return
        if record.get("cancelled") is True or not ("value" in record or "confirmed" in record):
            self._ui.cancel(id)
        else:
            self._ui.answer(id, record["value"] if "value" in record else record["confirmed"])

    def _tell_news(self) -> None:
        self._news.set()
        self._news = trio.Event()

    @property
    def is_read(self) -> bool:
        """Whether the input is at its end."""
        return self._is_read

    async def wait_read(self) -> None:
        """Returns when the input is at its end."""
        while not self._is_read:
            await self._news.wait()

    # -- serving -------------------------------------------------------------------------

    async def serve(self, seat: Seat) -> None:
        """Begins commands in order of arrival until the end is asked for; returns when it is, commands under way are cut."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._end_when_asked, seat)
            nursery.start_soon(self._begin_all, seat, nursery)
            await self.ended.wait()
            nursery.cancel_scope.cancel()

    async def _begin_all(self, seat: Seat, nursery: trio.Nursery) -> None:
        while True:
            while self._lines and not self.ended.is_set():
                line = self._lines.popleft()
                self._lines_bytes -= len(line.content)
                await self._writer.wait_for_room()
                await self._begin(line.value, seat, nursery)
            if self._is_read:
                break
            await self._news.wait()
        with trio.move_on_after(ACCEPT_S):
            while any([not each.is_answered and each.command in PROMPTS for each in self._acting]):
                await self._over.wait()
        self._ask_end("input")

    async def _begin(self, value: Json | MalformedJson, seat: Seat, nursery: trio.Nursery) -> None:
        if isinstance(value, MalformedJson):
            self._writer.send(failure(NOTHING, "parse", f"Failed to parse command: {value}"))
            return
        name = _command_of(value)
        row = COMMANDS.get(name) if isinstance(name, str) else None
        if row is None or not isinstance(value, dict):
            self._writer.send(failure(_id_of(value), name, _unknown(value)))
            return
        assert isinstance(name, str)
        acting = Acting(seat, self._keep, name, _id_of(value), self._writer.send)
        try:
            request = read(name, row.request, value)
            if len(self._acting) >= UNDER_WAY_MAX:
                raise CamshaftError(f"{UNDER_WAY_MAX} commands are under way; this one was not done")
        except CamshaftError as error:
            acting.refuse(error)
            return
        self._acting.add(acting)
        if row.is_short:
            await self._run(row, acting, request)
        else:
            await nursery.start(self._run_beside, row, acting, request)

    async def _run_beside(self, row: Row, acting: Acting, request: Any, task_status: trio.TaskStatus[None]) -> None:
        await until_it_waits(self._run(row, acting, request), task_status.started)

    async def _run(self, row: Row, acting: Acting, request: Any) -> None:
        try:
            outcome = await guard(row.handler, acting, request)
            assert not isinstance(outcome, Cut)
            acting.end(outcome)
        finally:
            self._acting.discard(acting)
            self._over.set()
            self._over = trio.Event()

    # -- the end -------------------------------------------------------------------------

    def ask_end(self) -> None:
        """An extension wants the process to end; it does when nothing is under way (RPC-97)."""
        self._is_end_asked = True
        self._tell_news()
        self._over.set()
        self._over = trio.Event()

    def gone(self) -> None:
        """Nobody reads any more."""
        self._ask_end("gone")

    @property
    def is_end_asked(self) -> bool:
        """Whether an extension wants the process to end."""
        return self._is_end_asked

    async def _end_when_asked(self, seat: Seat) -> None:
        while not (self._is_end_asked and not self._acting and seat.is_idle):
            if self._is_end_asked and not self._acting:
                await seat.wait_idle()
            else:
                await self._over.wait()
        self._ask_end("asked")

    def _ask_end(self, why: End) -> None:
        if self.end is None:
            self.end = why
            self.ended.set()


def _id_of(value: object) -> object:
    """As the client gave it; NOTHING if it gave none."""
    return value.get("id", NOTHING) if isinstance(value, dict) else NOTHING


def _command_of(value: object) -> Json:
    """What an answer calls the command; `unknown` if the record does not say (RPC-11)."""
    return value.get("type", "unknown") if isinstance(value, dict) else "unknown"


def _unknown(value: Json) -> str:
    if not isinstance(value, dict):
        return f"Unknown command: expected an object, got {_shown(value)}"
    if "type" not in value:
        return "Unknown command: the record has no field `type`"
    return f"Unknown command: {value['type'] if isinstance(value['type'], str) else _shown(value['type'])}"


def _shown(value: Json) -> str:
    text = dumps(value).decode()
    return text if len(text) <= 100 else text[:100] + "…"
