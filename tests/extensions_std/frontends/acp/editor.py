"""An editor: the client of the package `agent-client-protocol`, with the real command behind it.

Every message that comes is checked with the package's models, and has to be unchanged by them: the models are lenient,
and leave out what they do not understand.
"""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import acp
import attrs
from acp import schema
from acp.client.connection import ClientSideConnection
from acp.connection import StreamDirection, StreamEvent
from pydantic import BaseModel, ValidationError

from tests.extensions_std.frontends.command import PROGRAM, Place

LIMIT_S: Final = 60.0

RESULTS: Final[dict[str, type[BaseModel]]] = {
    "initialize": schema.InitializeResponse,
    "session/new": schema.NewSessionResponse,
    "session/load": schema.LoadSessionResponse,
    "session/list": schema.ListSessionsResponse,
    "session/prompt": schema.PromptResponse,
    "session/set_config_option": schema.SetSessionConfigOptionResponse,
}
REQUESTS: Final[dict[str, type[BaseModel]]] = {
    "session/update": schema.SessionNotification,
    "session/request_permission": schema.RequestPermissionRequest,
}

Choose = Callable[[list[schema.PermissionOption]], Awaitable[str | None]]
"""The id of an option, or None: the person closed the question."""


def first(*kinds: str) -> Choose:
    """Chooses the first option of one of these kinds."""

    async def choose(options: list[schema.PermissionOption]) -> str | None:
        return next((each.option_id for each in options if each.kind in kinds), None)

    return choose


@attrs.define(eq=False)
class Editor:
    """What the client class calls, and what it saw."""

    choose: Choose = first("allow_once")
    text: str | None = None
    """What is entered into a form."""
    updates: list[dict[str, Any]] = attrs.field(factory=list)
    """As they came, `sessionId` among their fields."""
    asked: list[dict[str, Any]] = attrs.field(factory=list)
    faults: list[str] = attrs.field(factory=list)
    methods: dict[Any, str] = attrs.field(factory=dict)
    news: asyncio.Event = attrs.field(factory=asyncio.Event)

    # -- what the agent calls ------------------------------------------------------------

    async def request_permission(
        self, session_id: str, tool_call: schema.ToolCallUpdate, options: list[schema.PermissionOption], **kwargs: Any
    ) -> schema.RequestPermissionResponse:
        chosen = await self.choose(options)
        if chosen is None:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        return schema.RequestPermissionResponse(outcome=schema.AllowedOutcome(outcome="selected", option_id=chosen))

    async def create_elicitation(self, message: str, mode: Any, **kwargs: Any) -> Any:
        assert isinstance(mode, schema.ElicitationFormSessionMode)
        if self.text is None:
            return schema.DeclineElicitationResponse(action="decline")
        return schema.AcceptElicitationResponse(action="accept", content={"value": self.text})

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        """Nothing: `see` has it already."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)  # files and terminals: this editor has none

    # -- what it sees --------------------------------------------------------------------

    def see(self, event: StreamEvent) -> None:
        """Keeps and checks a message."""
        record = event.message
        if event.direction is StreamDirection.OUTGOING:
            if "method" in record and "id" in record:
                self.methods[record["id"]] = record["method"]
            return
        method = record.get("method")
        model = REQUESTS.get(method) if method else RESULTS.get(self.methods.get(record.get("id"), ""))
        content = (record.get("params") if method else record.get("result")) or {}
        if model is not None and "error" not in record:
            self.faults += faults_of(model, content)
        if method == "session/update":
            self.updates.append({"sessionId": content["sessionId"], **content["update"]})
        elif method:
            self.asked.append({"method": method, **content})
        self.news.set()

    async def until(self, kind: str, **fields: Any) -> dict[str, Any]:
        """The first update of this kind with these fields."""
        while True:
            self.news.clear()
            for update in self.updates:
                if update["sessionUpdate"] == kind and all(update.get(name) == value for name, value in fields.items()):
                    return update
            await self.news.wait()

    def text_of(self, kind: str, session_id: str | None = None) -> str:
        """The texts of all chunks of a kind."""
        chunks = [each for each in self.updates if each["sessionUpdate"] == kind and session_id in (None, each["sessionId"])]
        return "".join([each["content"].get("text", "") for each in chunks])

    def states(self) -> dict[str, list[str]]:
        """What each call went through, without repetitions."""
        found: dict[str, list[str]] = {}
        for update in self.updates:
            if update["sessionUpdate"] in ("tool_call", "tool_call_update") and "status" in update:
                states = found.setdefault(update["toolCallId"], [])
                states += [] if states[-1:] == [update["status"]] else [update["status"]]
        return found


def faults_of(model: type[BaseModel], content: dict[str, Any]) -> list[str]:
    """What the model says against a message, and what it left out or changed."""
    try:
        read = model.model_validate(content)
    except ValidationError as error:
        return [f"{model.__name__}: {error}"]
    again = read.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return [] if again == content else [f"{model.__name__}: {content} is read as {again}"]


@attrs.frozen
class Connected:
    """A connection, and the process at its other end."""

    editor: Editor
    agent: ClientSideConnection
    process: asyncio.subprocess.Process

    async def start(self, cwd: Path, *, forms: bool = False) -> str:
        """Initializes, and gives the id of a new session."""
        capabilities = schema.ClientCapabilities()
        if forms:
            capabilities = schema.ClientCapabilities(elicitation=schema.ElicitationCapabilities(form=schema.ElicitationFormCapabilities()))
        await self.agent.initialize(protocol_version=1, client_capabilities=capabilities)
        return (await self.agent.new_session(cwd=str(cwd), mcp_servers=[])).session_id

    async def prompt(self, session_id: str, text: str) -> str:
        """The stop reason."""
        return (await self.agent.prompt(session_id=session_id, prompt=[acp.text_block(text)])).stop_reason

    async def end(self) -> int:
        """Closes the input; the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return await self.process.wait()


@asynccontextmanager
async def connected(where: Place, *arguments: str, script: Any = None, editor: Editor | None = None) -> AsyncGenerator[Connected]:
    """A connection to `camshaft acp`; at its end every message must have been valid."""
    editor = editor or Editor()
    if script is not None:
        path = where.write("script.json", json.dumps({"steps": script} if isinstance(script, list) else script))
        arguments = ("--faux-script", str(path), *arguments)
    async with asyncio.timeout(LIMIT_S):
        process = await asyncio.create_subprocess_exec(
            PROGRAM,
            "acp",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=(where.home / "stderr.txt").open("ab"),
            cwd=where.project,
            env=where.environment,
            limit=2**24,
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        agent = acp.connect_to_agent(editor, process.stdin, process.stdout, use_unstable_protocol=True, observers=[editor.see])
        try:
            yield Connected(editor, agent, process)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
            await process.wait()
            await agent.close()
    assert editor.faults == []


def play(scene: Callable[[], Awaitable[None]]) -> None:
    """Runs a scene; the client class lives in asyncio."""

    async def run() -> None:
        await scene()

    asyncio.run(run())
