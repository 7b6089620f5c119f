"""What holds for every sample: it is short, it uses the public face only, and it leaves nothing behind."""

import ast
import errno
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from camshaft.actors.api import ProcessCommand, ProcessEnd
from camshaft.actors.host import ExtensionSource
from camshaft.actors.simulation.log_files import MemoryLogFiles
from camshaft.extensions_std import samples
from camshaft.extensions_std.providers.scripted import assistant, tool_call
from tests.actors.replacing import sessions
from tests.actors.running import PATH, opened, simulate, virtual_world
from tests.extensions_std.frontends.command import Place, camshaft, left_by, place, says, serving
from tests.extensions_std.samples.trying import people, world_with_programs

FOLDER: Final = Path(samples.__file__).parent
FILES: Final = sorted(path for path in FOLDER.glob("*.py") if path.name != "__init__.py")
LINES_MAX: Final = 150
TOGETHER: Final = (
    "annotation_gate",
    "auto_commit_on_exit",
    "bookmark",
    "commands",
    "confirm_destructive",
    "debug_provider",
    "dirty_repo_guard",
    "dynamic_resources",
    "event_bus",
    "event_bus_listener",
    "file_trigger",
    "git_checkpoint",
    "git_merge_and_resolve",
    "hello",
    "html_export",
    "model_router",
    "notify",
    "permission_gate",
    "preset",
    "project_trust",
    "protected_paths",
    "provider_payload",
    "reload_runtime",
    "send_user_message",
    "session_name",
    "shutdown_command",
    "tools",
)
"""Samples that have no name in common."""
FACES: Final = {"camshaft.actors.api", "camshaft.extensions_std.tools"}
"""What a sample may import of camshaft: the face for extensions, and the built-in tools where it changes one (API-28)."""
LIBRARIES: Final = {*sys.stdlib_module_names, "attrs", "trio"}


def imported(path: Path) -> set[str]:
    """The modules a file imports."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return plain | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_sample_is_short_and_uses_the_public_face_only(path: Path) -> None:
    others = {name for name in imported(path) if name.partition(".")[0] not in LIBRARIES}

    assert others <= FACES
    assert len(path.read_text("utf-8").splitlines()) < LINES_MAX


@pytest.mark.parametrize("with_people", [True, False])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
async def test_a_sample_that_nobody_uses_reports_prints_and_leaves_nothing(
    path: Path, with_people: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "project").mkdir()
    shown = people() if with_people else {"mode": "print"}
    options = {"cwd": str(tmp_path / "project"), "world": world_with_programs(tmp_path), **sessions(tmp_path / "sessions"), **shown}

    async with opened([assistant("one")] * 5, sources=(ExtensionSource(path=str(path)),), **options) as running:
        await running.seat.prompt("hi")
        await running.seat.wait_idle()

    assert (running.seat.load_errors, running.seat.errors, running.kernel.abandoned) == ((), (), ())
    assert list((tmp_path / "project").iterdir()) == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
async def test_the_command_line_loads_many_at_once_and_prints_the_answer_only(tmp_path: Path) -> None:
    where: Place = place(tmp_path)
    given = [word for name in TOGETHER for word in ("-e", str(FOLDER / f"{name}.py"))]

    async with serving(where, says("Hello."), says("More.")):
        ended = await camshaft(where, *given, "-p", "hi")

    assert (ended.code, ended.out, ended.err) == (0, "Hello.\n", "")
    assert await left_by(where) == []
    assert list(where.project.iterdir()) == []


@attrs.frozen
class NoPrograms:
    """Processes of a computer on which nothing can be started."""

    async def run(self, command: ProcessCommand, *_: Any, **__: Any) -> ProcessEnd:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", command.arguments[0])

    async def find_program(self, _names: Sequence[str], _search_path: str) -> str | None:
        return None


def log_of_a_run_with_many() -> bytes:
    """The file of a session with calls that are allowed and refused, and commands of samples; no time and no chance from outside."""
    files = MemoryLogFiles()
    world = attrs.evolve(virtual_world(files), processes=NoPrograms())
    # A watched file is read by a thread, for which a virtual clock does not wait.
    setups = [importlib.import_module(f"{samples.__name__}.{name}").setup for name in TOGETHER if name != "file_trigger"]
    calls = assistant([tool_call("hello", {"name": "Ada"}, id="a"), tool_call("finish", {"summary": "s"}, id="b")])

    async def run() -> None:
        async with opened([calls, assistant("one"), assistant("two")], *setups, files=files, world=world) as running:
            for text in ("go", "/bookmark here", "/tools off finish", "/preset plan", "/debug-provider", "again"):
                await running.seat.prompt(text)

    simulate(run)
    return files.read(PATH)


def test_two_runs_with_many_samples_leave_the_same_bytes() -> None:
    first, second = log_of_a_run_with_many(), log_of_a_run_with_many()

    assert first == second
    for trace in (
        b"was blocked",
        b'"label":"here"',
        b'"tool-counts"',
        b'"provider-payload"',
        b'"provider-events"',
        b'"preset"',
        b'"name":"go"',
    ):
        assert trace in first
