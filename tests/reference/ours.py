"""Our side of the interchange: what we read in a session file, and a run that we append to it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import trio

from camshaft.actors.api import BoundaryResult, CustomDraft, ToolDefinition, ToolResult
from camshaft.actors.host import InlineExtension, OpenOptions, OpenSession, Seat, open_kernel
from camshaft.actors.logs.jsonl import JsonlOptions, open_jsonl
from camshaft.actors.ports.log_files import RealLogFiles
from camshaft.actors.session import loaded_state
from camshaft.actors.world import real_world
from camshaft.extensions_std.providers.scripted import ScriptedProvider, assistant, tool_call
from camshaft.kernel import codec
from camshaft.kernel.entries import SessionHeader
from camshaft.kernel.messages import TextBlock
from camshaft.kernel.persistent import FrozenDict
from camshaft.kernel.settings import Settings
from camshaft.kernel.state import SessionState
from camshaft.kernel.tree import Tree

PROMPT: Final = "Note the number 1."
RUN: Final = (assistant(tool_call("note", {"x": 1}), stop_reason="toolUse"), assistant("Noted – “1”."))
"""The answers of one run."""
RUNS_MAX: Final = 3
"""Runs that one opened session has answers for."""


def view(path: Path) -> dict[str, Any]:
    """What we read in a file, in the reference's shape (driver.mjs)."""
    options = JsonlOptions(files=RealLogFiles(), new_header=no_header, new_entry_id=lambda: "0", holder="interchange", mode="read")
    log, loaded = open_jsonl(str(path), options)
    log.close()
    return view_of(loaded_state(loaded, Settings()))


def view_of(state: SessionState) -> dict[str, Any]:
    """A session in the reference's shape."""
    tree, projection = state.tree, state.projection
    model = projection.model
    seen = {
        "header": codec.encode(state.header),
        "entries": [codec.encode(entry) for entry in tree.entries()],
        "leaf": state.leaf_id,
        "branch": [] if projection.leaf is None else [tree.id_at(position) for position in tree.branch(projection.leaf)],
        "tree": _outline(tree),
        "labels": [[entry_id, tree.label(entry_id)] for entry_id in _ids(tree) if tree.label(entry_id) is not None],
        "name": tree.name,
        "messages": [codec.encode(message) for message in projection.messages],
        "thinkingLevel": projection.thinking_level,
        "model": None if model is None else {"provider": model[0], "modelId": model[1]},
    }
    plain: dict[str, Any] = json.loads(codec.dumps(seen))
    return plain


def append_run(path: Path, folder: Path) -> dict[str, Any]:
    """Opens a file, prompts once (an answer with a tool call, then one without), closes it; the session as it was then."""

    async def prompt() -> dict[str, Any]:
        async with opened(path, folder) as seat:
            await seat.prompt(PROMPT)
            return view_of(seat.state)

    return trio.run(prompt)


@asynccontextmanager
async def opened(path: Path, folder: Path) -> AsyncIterator[Seat]:
    """The session at `path`, made there if need be, with a tool, an extension that notes each turn, and answers for a few runs."""
    model = ScriptedProvider()
    model.set_responses(RUN * RUNS_MAX)
    options = OpenOptions(
        cwd=str(folder),
        agent_dir=str(folder / "agent"),
        session=OpenSession(path=str(path)),
        providers=(model,),
        extensions=(InlineExtension(name="notes", setup=_setup),),
        model="faux/faux-1",
        thinking_level="off",
        override_cwd=True,
    )
    async with open_kernel(world=real_world({"HOME": str(folder)})) as kernel:
        yield await kernel.open(options)


def _setup(api: Any) -> None:
    def note(event: Any, _ctx: Any) -> BoundaryResult:
        return BoundaryResult(entries=(*event.entries, CustomDraft(custom_type="note", data={"turn": event.turn_index})))

    api.on("turn_end", note)
    parameters = FrozenDict({"type": "object", "properties": FrozenDict({"x": FrozenDict({"type": "number"})})})
    api.register_tool(ToolDefinition(name="note", label="note", description="notes a number", parameters=parameters, execute=_note))


async def _note(_call_id: str, params: dict[str, Any], _signal: Any, _on_update: Any, _ctx: Any) -> ToolResult:
    return ToolResult(content=(TextBlock(text=f"noted {params['x']}"),), details=FrozenDict({"seen": (params["x"], None)}))


def _ids(tree: Tree) -> list[str]:
    return [tree.id_at(position) for position in range(tree.length)]


def _outline(tree: Tree) -> list[Any]:
    outline = tree.outline()

    def node(position: int) -> list[Any]:
        return [tree.id_at(position), [node(child) for child in outline.children(position)]]

    return [node(root) for root in outline.roots]


def no_header() -> SessionHeader:
    """For a file that has one."""
    raise AssertionError("a session that is read has its header")
