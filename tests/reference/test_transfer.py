"""Session files that we make out of others: the reference reads them as we do, continues them, and lists them as we do."""

from pathlib import Path
from typing import Any

import pytest
import trio

from camshaft.actors.host import OpenSession, SessionWriter, Surroundings, fork_from, import_session, list_sessions, open_writer, real_world
from camshaft.actors.session_fork import Source, write_fork
from camshaft.actors.session_transfer import export_session
from camshaft.kernel.clock import iso
from camshaft.kernel.commands import SetLabel, SetName
from camshaft.kernel.forking import ForkPlan, fork_plan
from tests.actors.writing import ANSWER, HELLO, NOTE, appended
from tests.reference import ours
from tests.reference.exchange import there_and_back
from tests.reference.process import Reference

pytestmark = [pytest.mark.reference, pytest.mark.slow]


def written(folder: Path) -> tuple[SessionWriter, str]:
    """A session with two branches, labels and a name; and the entry the second one grew from."""
    folder.mkdir(exist_ok=True)
    writer = open_writer(OpenSession(path=str(folder / "a.jsonl")), real_world(), cwd=str(folder))
    hello, answer, _aside = appended(writer, HELLO, ANSWER, NOTE)
    writer.branch(answer)
    appended(writer, SetLabel(target_id=hello, label="start"), HELLO, ANSWER, SetName(name="a demo"))
    return writer, answer


async def made(kind: str, folder: Path) -> str:
    """The path of a new file of that kind."""
    writer, middle = written(folder / "source")
    around = Surroundings(world=real_world(), cwd=str(folder))
    with writer:
        if kind == "export":
            return await export_session(writer.state, real_world(), str(folder / "out.jsonl"), own=writer.path)
        if kind in ("clone", "fork"):
            leaf = writer.leaf_id if kind == "clone" else middle
            plan = fork_plan(writer.state.tree, leaf, "at")
            assert isinstance(plan, ForkPlan)
            target = (await write_fork(plan, Source(path=writer.path, header=writer.header), around)).target
            assert isinstance(target, OpenSession)
            return target.path
    source = str(folder / "source" / "a.jsonl")
    if kind == "import":
        return (await import_session(source, str(folder / "here"), around)).path
    return (await fork_from(source, around, directory=str(folder / "here"))).path


@pytest.mark.rule("SES-79", "SES-83", "SES-85", "SES-86")
@pytest.mark.parametrize("kind", ["fork", "clone", "import", "fork of a file", "export"])
def test_a_file_that_we_make_goes_to_the_reference_and_back(kind: str, reference: Reference, tmp_path: Path, agent_dir: str) -> None:
    there_and_back(Path(trio.run(made, kind, tmp_path)), reference, tmp_path, agent_dir)


@pytest.mark.rule("SES-84")
async def test_a_fork_of_an_old_file_has_its_whole_history_in_the_reference(reference: Reference, tmp_path: Path) -> None:
    message = '{"type":"message","timestamp":"2025-01-01T00:00:01.000Z","message":{"role":"user","content":"old","timestamp":1}}\n'
    (tmp_path / "old.jsonl").write_text('{"type":"session","id":"old","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/"}\n' + message * 2)

    new = Path(
        (await fork_from(str(tmp_path / "old.jsonl"), Surroundings(world=real_world(), cwd=str(tmp_path)), directory=str(tmp_path))).path
    )

    assert reference.view(new) == ours.view(new)
    assert len(reference.view(new)["messages"]) == 2


@pytest.mark.rule("SES-71", "SES-72")
async def test_a_folder_is_listed_alike(reference: Reference, tmp_path: Path) -> None:
    writer, _ = written(tmp_path / "source")
    writer.close()
    (tmp_path / "source" / "header.jsonl").write_bytes(b'{"type":"session","version":3,"id":"h","timestamp":"2026-03-01T09:00:00.000Z"}\n')
    (tmp_path / "source" / "broken.jsonl").write_bytes(b"{\n")
    await fork_from(
        str(tmp_path / "source" / "a.jsonl"), Surroundings(world=real_world(), cwd=str(tmp_path)), directory=str(tmp_path / "source")
    )

    items = await list_sessions(real_world(), str(tmp_path / "source"), cwd=str(tmp_path / "source"))

    theirs: list[dict[str, Any]] = reference.listed(tmp_path / "source", tmp_path / "source")
    shown = ("path", "id", "cwd", "name", "parentSessionPath", "modified", "messageCount", "firstMessage", "allMessagesText")
    assert [[each.get(name) for name in shown] for each in theirs] == [
        [
            item.path,
            item.id,
            item.cwd,
            item.name,
            item.parent_session,
            iso(item.modified_ms),
            item.message_count,
            item.first_message,
            item.all_messages_text,
        ]
        for item in items
    ]
    assert len(items) == 1
