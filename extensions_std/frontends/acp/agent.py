"""The methods that a client calls, and what each answers.

Sessions are opened one after another, because two at once could want the same file; everything else runs side by side.
"""

from typing import Any, Final

import attrs
import trio

from camshaft import __version__
from camshaft.actors.api import Json
from camshaft.actors.host import guard
from camshaft.extensions_std.frontends.acp import requests
from camshaft.extensions_std.frontends.acp.choices import choose
from camshaft.extensions_std.frontends.acp.opening import Opener
from camshaft.extensions_std.frontends.acp.peer import Method, Peer
from camshaft.extensions_std.frontends.acp.prompts import prompt_of
from camshaft.extensions_std.frontends.acp.records import AUTH_REQUIRED, INVALID_PARAMS, NOT_FOUND, Behind, RpcError
from camshaft.extensions_std.frontends.acp.session import Session
from camshaft.extensions_std.frontends.streams import say

PROTOCOL_VERSION: Final = 1
"""The only one there is; a client that speaks another one is told this, and decides."""
AUTH_METHOD: Final = "credentials"
HOOKS_S: Final = 0.8
"""For shutdown hooks after the end of the input (RPC-95)."""
GRACE_S: Final = 0.3
"""For what runs to stop by itself after the end of the input."""


@attrs.define(eq=False)
class Agent:
    """One connection's sessions."""

    _opener: Opener
    _peer: Peer
    _nursery: trio.Nursery
    _sessions: dict[str, Session] = attrs.field(factory=dict)
    """By the id that the client knows."""
    _opening: trio.Lock = attrs.field(factory=trio.Lock)
    _has_forms: bool = False

    def __attrs_post_init__(self) -> None:
        self._peer.methods = {
            "initialize": Method(requests.Initialize, self.initialize),
            "authenticate": Method(requests.Authenticate, self.authenticate),
            "session/new": Method(requests.NewSessionParams, self.new_session),
            "session/load": Method(requests.LoadSession, self.load_session),
            "session/resume": Method(requests.LoadSession, self.resume_session),
            "session/list": Method(requests.ListSessions, self.list_sessions),
            "session/close": Method(requests.OfSession, self.close_session),
            "session/prompt": Method(requests.PromptParams, self.prompt),
            "session/set_config_option": Method(requests.SetOption, self.set_option),
        }
        self._peer.notifications = {"session/cancel": Method(requests.OfSession, self.cancel)}

    # -- the connection ------------------------------------------------------------------

    async def initialize(self, params: requests.Initialize) -> dict[str, Any]:
        """What both sides can do."""
        self._has_forms = params.has_forms
        keeps = self._opener.keeps_sessions
        kept: dict[str, Any] = {"list": {}, "resume": {}} if keeps else {}
        return {
            "protocolVersion": PROTOCOL_VERSION,
            "agentInfo": {"name": "camshaft", "title": "camshaft", "version": __version__},
            "agentCapabilities": {
                "loadSession": keeps,
                "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
                "mcpCapabilities": {"http": False, "sse": False},
                "sessionCapabilities": {"close": {}, **kept},
            },
            "authMethods": [{"id": AUTH_METHOD, "name": "Credentials of a model provider", "description": self._opener.unconfigured}],
        }

    async def authenticate(self, params: requests.Authenticate) -> dict[str, Any]:
        """Nothing is entered here: it looks whether there are credentials by now."""
        if params.method_id != AUTH_METHOD:
            raise RpcError(INVALID_PARAMS, f"methodId: there is only {AUTH_METHOD!r}")
        if not await self._opener.is_configured():
            raise RpcError(AUTH_REQUIRED, self._opener.unconfigured)
        return {}

    # -- sessions ------------------------------------------------------------------------

    async def new_session(self, params: requests.NewSessionParams) -> Behind:
        """A session of its own in a folder."""
        return await self._opened(params, None, is_replayed=False)

    async def load_session(self, params: requests.LoadSession) -> Behind:
        """A stored session, told from its beginning."""
        return await self._opened(params, params.session_id, is_replayed=True)

    async def resume_session(self, params: requests.LoadSession) -> Behind:
        """A stored session of which nothing is told."""
        return await self._opened(params, params.session_id, is_replayed=False)

    async def _opened(self, params: requests.NewSessionParams | requests.LoadSession, id: str | None, *, is_replayed: bool) -> Behind:
        if params.additional_directories:
            raise RpcError(INVALID_PARAMS, "additionalDirectories: not supported, as the capabilities say")
        unconnected = _names_of(params.mcp_servers)
        async with self._opening:
            known = self._sessions.get(id or "")
            if known is not None and not known.seat.is_closed:
                return self._told_again(known, is_replayed=is_replayed)
            session = Session(self._peer, self._nursery, self._has_forms, _notes_of(unconnected))
            self._nursery.start_soon(session.serve)
            seat = None
            try:
                seat = await self._opener.open(session, params.cwd, id)
            finally:
                if seat is None:
                    session.follower.close()
            session.id = id or seat.state.header.id
            session.begin(seat)
            self._sessions[session.id] = session
        answer: dict[str, Any] = {"configOptions": session.options()}
        if id is None:
            answer["sessionId"] = session.id
        if unconnected:
            say(f"Warning: {_notes_of(unconnected)[0]}")
            answer["_meta"] = {"camshaft/mcpServersNotConnected": unconnected}
        return Behind(answer, lambda line: session.told(is_replayed, line))

    def _told_again(self, session: Session, *, is_replayed: bool) -> Behind:
        """A session that is open in this connection is not opened twice."""
        if is_replayed:
            session.tell_again()
        return Behind({"configOptions": session.options()}, session.put)

    async def list_sessions(self, params: requests.ListSessions) -> dict[str, Any]:
        """Those that can be loaded."""
        return await self._opener.page(params.cwd, params.cursor)

    async def close_session(self, params: requests.OfSession) -> dict[str, Any]:
        """What runs is aborted; what was stored stays."""
        session = self._known(params.session_id)
        del self._sessions[params.session_id]
        await session.close()
        return {}

    async def prompt(self, params: requests.PromptParams) -> Behind:
        """Runs a prompt; answered when the run has settled."""
        session = self._known(params.session_id)
        reason = await session.prompt(lambda: prompt_of(params.prompt, session.seat.cwd))
        return Behind({"stopReason": reason}, session.put)

    async def cancel(self, params: requests.OfSession) -> None:
        """Ends the prompt under way."""
        self._known(params.session_id).cancel()

    async def set_option(self, params: requests.SetOption) -> Behind:
        """Another model or thinking level, from the next request to the model on."""
        session = self._known(params.session_id)
        await choose(session.seat, params.config_id, params.value)
        return Behind({"configOptions": session.options()}, session.put)

    def _known(self, id: str) -> Session:
        session = self._sessions.get(id)
        if session is None or session.seat.is_closed:
            raise RpcError(NOT_FOUND, f"there is no open session {id!r}")
        return session

    async def close(self) -> None:
        """The client is gone: everything is aborted and closed, side by side."""
        async with trio.open_nursery() as nursery:
            for session in self._sessions.values():
                nursery.start_soon(guard, lambda one=session: one.close(grace_s=GRACE_S, hooks_s=HOOKS_S))


def _names_of(servers: tuple[Json, ...]) -> list[str]:
    return [str(each.get("name", "?")) if isinstance(each, dict) else "?" for each in servers]


def _notes_of(unconnected: list[str]) -> list[str]:
    """What people are told about MCP servers: that there are less tools than they expect."""
    return [f"this version connects no MCP servers of the client; not used: {', '.join(unconnected)}"] if unconnected else []
