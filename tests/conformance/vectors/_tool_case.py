"""What the tool families share: the file tree of a case, the call, and what it gave (VECTORS.md 5.1).

The call passes argument preparation, validation and `execute`, without hooks. `PI_…` and other
variables of the case's `env` are what the kernel's process would have.
"""

import base64
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import trio

from camshaft.actors.ports.files import Files, RealFiles
from camshaft.actors.ports.processes import Processes, RealProcesses
from camshaft.extensions_std.tools import ToolFailure
from camshaft.kernel import codec
from camshaft.kernel.arguments import InvalidArguments, prepared_arguments
from camshaft.kernel.models import Model
from camshaft.kernel.tools import ToolDefinition, ToolResult

Tree = dict[str, bytes]


@attrs.define
class NeverAborted:
    """A signal nobody gives."""

    cancelled: bool = False

    async def wait(self) -> None:
        await trio.sleep_forever()


@attrs.frozen(kw_only=True)
class CaseWorld:
    """The ports a tool uses."""

    environment: Mapping[str, str]
    files: Files = attrs.field(factory=RealFiles)
    processes: Processes = attrs.field(factory=RealProcesses)
    token: Callable[[], str] = lambda: secrets.token_hex(8)

    @property
    def ids(self) -> "CaseWorld":
        return self


@attrs.frozen(kw_only=True)
class CaseContext:
    """What a tool sees of its session."""

    cwd: str
    world: CaseWorld
    model: Model | None = None
    thinking_level: str = "off"
    session_id: str | None = None
    session_file: str | None = None


async def run_tool(tool: ToolDefinition, case_input: dict[str, Any]) -> dict[str, Any]:
    """The output of the call described by the case, files written before and compared after it."""
    root, home = Path.cwd(), Path(os.environ["HOME"])
    write_tree(root, case_input.get("files") or {})
    write_tree(home, case_input.get("home") or {})
    before = read_tree(root), read_tree(home)
    output = await _call(tool, case_input, root / (case_input.get("cwd") or "."))
    changes = _changes(before[0], read_tree(root)), _changes(before[1], read_tree(home))
    output |= {name: changed for name, changed in zip(("changes", "homeChanges"), changes) if changed}
    spilled = list(read_tree(Path(os.environ["TMPDIR"])).values())
    return output | ({"spillFile": spilled[0].decode("utf-8", "replace")} if spilled else {})


def write_tree(root: Path, tree: Mapping[str, Any]) -> None:
    """Writes the files, links and empty folders of a case (VECTORS.md section 2)."""
    for name, content in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        match content:
            case str():
                path.write_bytes(content.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode())
            case {"base64": encoded}:
                path.write_bytes(base64.b64decode(encoded))
            case {"symlink": target}:
                path.symlink_to(target)
            case _:
                path.mkdir(exist_ok=True)


def read_tree(root: Path) -> Tree:
    """The bytes of each plain file below `root`."""
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file() and not path.is_symlink()}


async def _call(tool: ToolDefinition, case_input: dict[str, Any], cwd: Path) -> dict[str, Any]:
    world = CaseWorld(environment={**os.environ, **(case_input.get("env") or {})})
    context = _context(case_input.get("context") or {}, str(cwd), world)
    try:
        prepared = tool.prepare_arguments(case_input["args"]) if tool.prepare_arguments else case_input["args"]
        params = prepared_arguments(tool.name, tool.parameters, prepared)
        result = await tool.execute("call", params, NeverAborted(), lambda update: None, context)
    except (InvalidArguments, ToolFailure) as error:
        return {"error": str(error)}
    return _encoded(result)


def _context(described: Mapping[str, Any], cwd: str, world: CaseWorld) -> CaseContext:
    model = described.get("model")
    return CaseContext(
        cwd=cwd,
        world=world,
        model=Model(id=model["id"], provider=model["provider"], api="api", input=tuple(model["input"])) if model else None,
        thinking_level=described.get("thinkingLevel") or "",
        session_id=described.get("sessionId"),
        session_file=described.get("sessionFile"),
    )


def _encoded(result: ToolResult) -> dict[str, Any]:
    parts = {
        "content": [codec.encode(block) for block in result.content or ()],
        "details": result.details,
        "structuredContent": result.structured_content,
        "isError": result.is_error or None,
    }
    return {name: part for name, part in parts.items() if part is not None}


def _changes(before: Tree, after: Tree) -> dict[str, Any]:
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return {name: _readable(after.get(name)) for name in names}


def _readable(content: bytes | None) -> Any:
    if content is None:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode("ascii")}
