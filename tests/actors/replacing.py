"""Conversations whose session is replaced: what their extensions heard, and files of somebody else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from camshaft.actors.host import NewSession
from camshaft.extensions_std.providers.scripted import assistant
from tests.actors.running import Running, opened


@attrs.define
class Diary:
    """What extensions heard, in order, over all generations."""

    lines: list[str] = attrs.field(factory=list)
    contexts: list[Any] = attrs.field(factory=list)

    def setup(self, api: Any) -> None:
        self.lines.append("load")
        hooks = ("session_before_switch", "session_before_fork", "session_shutdown", "session_start", "resources_discover")
        for hook in hooks:
            api.on(hook, self._note)

    def _note(self, event: Any, ctx: Any) -> None:
        self.contexts.append(ctx)
        about = getattr(event, "reason", None) or getattr(event, "position", "")
        self.lines.append(f"{event.type} {about}")


def sessions(tmp_path: Path) -> dict[str, Any]:
    """Sessions on disk, without threads of the virtual clock in between."""
    return {"session": NewSession(directory=str(tmp_path)), "durability": "none"}


def put(running: Running, path: Path, text: bytes) -> None:
    """A session file of somebody else, in the file system of the simulation."""
    files = running.kernel.world.log_files
    files.make_folder(str(path))
    handle = files.create(str(path))
    files.write(handle, text)
    files.close(handle)


async def kept(tmp_path: Path, diary: Diary, act: Callable[[Running], Any], *setups: Any, **more: Any) -> Any:
    script = more.pop("script", [assistant("one"), assistant("two")])
    async with opened(script, diary.setup, *setups, **sessions(tmp_path), **more) as running:
        await running.seat.prompt("first")
        diary.lines.clear()
        return await act(running)
