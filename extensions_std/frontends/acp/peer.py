"""The client at the other end: its requests are handled, and it is asked (JSON-RPC 2.0, one record a line).

Requests are begun in order of arrival, each as far as it goes without waiting for anybody, and then run beside those
that follow; so a `session/cancel` always meets the prompt that was sent before it. Whatever comes in, reading goes on:
what is no record, no request and no answer to a question of ours is answered with an error, if it can be answered.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

import attrs
import trio

from camshaft.actors.api import Json
from camshaft.actors.host import Cut, Failure, MalformedJson, guard
from camshaft.extensions_std.frontends.acp import records
from camshaft.extensions_std.frontends.acp.records import INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, Behind, RpcError
from camshaft.extensions_std.frontends.acp.requests import read
from camshaft.extensions_std.frontends.acp.wire import Wire
from camshaft.extensions_std.frontends.rpc.lines import Lines, value_of
from camshaft.extensions_std.frontends.rpc.turns import until_it_waits

UNDER_WAY_MAX: Final = 1_000
"""Requests that were begun and are not over; more are refused."""


class Source(Protocol):
    """Where the bytes come from."""

    async def receive(self) -> bytes:
        """The next bytes; none at the end. Raises OSError."""
        ...


@attrs.frozen
class Method:
    """What a method takes, and who handles it; what that gives, a `Behind` perhaps, is the answer."""

    params: type[Any]
    handler: Callable[[Any], Awaitable[Any]]


@attrs.define(eq=False)
class _Question:
    """Something the client was asked."""

    answered: trio.Event = attrs.field(factory=trio.Event)
    answer: Json | RpcError = None


@attrs.define(eq=False)
class Peer:
    """One connection."""

    _source: Source
    wire: Wire
    _nursery: trio.Nursery
    """Of the requests under way."""
    methods: Mapping[str, Method] = attrs.field(factory=dict)
    notifications: Mapping[str, Method] = attrs.field(factory=dict)
    _under_way: int = 0
    _asked: int = 0
    _questions: dict[int, _Question] = attrs.field(factory=dict)
    """By the id they were sent with."""

    # -- asking --------------------------------------------------------------------------

    async def ask(self, method: str, params: dict[str, Any]) -> Json:
        """What the client answers. Raises RpcError if that is an error. A cancelled wait ignores the answer."""
        self._asked += 1
        id, question = self._asked, _Question()
        self._questions[id] = question
        try:
            await self.wire.write(records.request(id, method, params))
            await question.answered.wait()
        finally:
            del self._questions[id]
        if isinstance(question.answer, RpcError):
            raise question.answer
        return question.answer

    # -- reading -------------------------------------------------------------------------

    async def read(self) -> None:
        """Returns at the end of the input."""
        lines = Lines()
        while chunk := await self._received():
            for line in lines.feed(chunk):
                await self._take(line)
        rest = lines.rest()
        if rest:
            await self._take(rest)

    async def _received(self) -> bytes:
        try:
            return await self._source.receive()
        except OSError:  # it cannot be read any more, which is an end, too
            return b""

    async def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            value = value_of(line)
        except MalformedJson as error:
            await self.wire.write(records.error(None, PARSE_ERROR, str(error)))
            return
        fault = _fault_of(value)
        if fault is not None:
            id = value.get("id") if isinstance(value, dict) else None
            await self.wire.write(records.error(id if _is_id(id) else None, INVALID_REQUEST, fault))
            return
        assert isinstance(value, dict)
        if "method" not in value:
            self._take_answer(value)
        elif "id" in value:
            await self._begin(value["id"], str(value["method"]), value.get("params"))
        else:
            await self._notice(str(value["method"]), value.get("params"))

    def _take_answer(self, record: dict[str, Json]) -> None:
        id = record.get("id")
        question = self._questions.get(id) if isinstance(id, int) else None
        if question is None:
            return  # too late, or never asked
        failed = record.get("error")
        if failed is None:
            question.answer = record.get("result")
        else:
            known = failed if isinstance(failed, dict) else {}
            code, message = known.get("code"), known.get("message")
            question.answer = RpcError(code if isinstance(code, int) else INTERNAL_ERROR, str(message or "the client refused"))
        question.answered.set()

    # -- handling ------------------------------------------------------------------------

    async def _begin(self, id: Json, name: str, params: Json) -> None:
        method = self.methods.get(name)
        if method is None:
            await self.wire.write(records.error(id, METHOD_NOT_FOUND, name))
        elif self._under_way >= UNDER_WAY_MAX:
            await self.wire.write(records.error(id, INTERNAL_ERROR, f"{UNDER_WAY_MAX} requests are under way; this one was not done"))
        else:
            self._under_way += 1
            await self._nursery.start(self._run_beside, id, method, params)

    async def _run_beside(self, id: Json, method: Method, params: Json, task_status: trio.TaskStatus[None]) -> None:
        await until_it_waits(self._run(id, method, params), task_status.started)

    async def _run(self, id: Json, method: Method, params: Json) -> None:
        try:
            outcome = await guard(_handled, method, params)
            assert not isinstance(outcome, Cut)
            if isinstance(outcome, Failure):
                await self._refuse(id, outcome)
            elif isinstance(outcome.value, Behind):
                outcome.value.put(records.result(id, outcome.value.value))
            else:
                await self.wire.write(records.result(id, outcome.value))
        finally:
            self._under_way -= 1

    async def _refuse(self, id: Json, failure: Failure) -> None:
        error = failure.error
        code = error.code if isinstance(error, RpcError) else INTERNAL_ERROR
        line = records.error(id, code, str(error) or type(error).__name__)
        if isinstance(error, RpcError) and error.put is not None:
            error.put(line)
        else:
            await self.wire.write(line)

    async def _notice(self, name: str, params: Json) -> None:
        """Of an unknown one, or one that makes no sense, nobody can be told."""
        method = self.notifications.get(name)
        if method is not None:
            await guard(_handled, method, params)


async def _handled(method: Method, params: Json) -> Any:
    return await method.handler(read(method.params, params))


def _is_id(id: Json) -> bool:
    return id is None or (isinstance(id, str | int) and not isinstance(id, bool))


def _fault_of(value: Json) -> str | None:
    """Why it is neither a request, nor a notification, nor an answer."""
    if not isinstance(value, dict):
        return "expected an object"
    if value.get("jsonrpc") != "2.0":
        return 'expected "jsonrpc": "2.0"'
    if not _is_id(value.get("id")):
        return "id: expected a text, an integer or null"
    if "method" in value:
        return None if isinstance(value["method"], str) else "method: expected a text"
    return None if "id" in value and ("result" in value or "error" in value) else "expected a method"
