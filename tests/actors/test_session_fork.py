"""Making the session of a fork: in a file, in memory, or only described."""

import attrs
import pytest

from camshaft.actors.errors import CommandRefused, StorageError
from camshaft.actors.opening import MemorySession, NewSession, OpenSession, Surroundings, open_log
from camshaft.actors.session_fork import Fork, Source, write_fork
from camshaft.actors.session_writer import SessionWriter
from camshaft.actors.simulation.log_files import Killed, MemoryLogFiles
from camshaft.kernel.forking import ForkPlan, ForkPosition, fork_plan
from tests.actors.breaking import breaking
from tests.actors.writing import ANSWER, HELLO, NOTE, PATH, CountedIds, appended, ids, lines, opened, world


@pytest.fixture
def files() -> MemoryLogFiles:
    return MemoryLogFiles()


def around(files: MemoryLogFiles) -> Surroundings:
    own = attrs.evolve(world(files), ids=CountedIds(made=100))
    return Surroundings(world=own, cwd="/elsewhere", durability="settle")


async def forked(writer: SessionWriter, files: MemoryLogFiles, entry_id: str, position: ForkPosition) -> Fork:
    plan = fork_plan(writer.state.tree, entry_id, position)
    assert isinstance(plan, ForkPlan)
    return await write_fork(plan, Source(path=writer.path, header=writer.header), around(files))


@pytest.mark.rule("SES-76", "SES-79", "SES-82")
async def test_a_fork_is_a_whole_file_beside_its_source(files: MemoryLogFiles) -> None:
    with opened(files) as writer:
        hello, answer, again = appended(writer, HELLO, ANSWER, HELLO)
        before = files.photo().content(PATH)

        fork = await forked(writer, files, again, "before")

        assert isinstance(fork.target, OpenSession)
        assert fork.text == "hello"
        header = lines(files, fork.target.path)[0]
        assert (header["parentSession"], header["cwd"]) == (PATH, "/srv/app")
        assert header["id"] != writer.header.id
        assert ids(files, fork.target.path) == [hello, answer]
        assert files.photo().content(PATH) == before
    assert files.open_handles == 0
    log, loaded = open_log(fork.target, around(files))
    log.close()
    assert loaded.leaf == answer


@pytest.mark.rule("SES-77")
async def test_a_fork_before_the_first_message_names_its_parent_and_makes_no_file_yet(files: MemoryLogFiles) -> None:
    with opened(files) as writer:
        (hello,) = appended(writer, HELLO)
        fork = await forked(writer, files, hello, "before")

    assert fork.target == NewSession(directory="/sessions", cwd="/srv/app", parent_session=PATH)
    log, loaded = open_log(fork.target, around(files))
    log.close()
    assert (loaded.header.parent_session, loaded.header.cwd, loaded.leaf) == (PATH, "/srv/app", None)
    assert [name for name in files.photo().texts() if name.endswith(".jsonl")] == [PATH]


@pytest.mark.rule("SES-55", "SES-82")
async def test_a_clone_without_a_message_waits_for_one(files: MemoryLogFiles) -> None:
    with opened(files) as writer:
        note, _ = appended(writer, NOTE, HELLO)
        fork = await forked(writer, files, note, "at")

    assert isinstance(fork.target, NewSession)
    log, loaded = open_log(fork.target, around(files))
    assert log.path is not None
    assert files.state(log.path) is None
    assert loaded.leaf == note
    assert loaded.header.parent_session == PATH
    log.close()


@pytest.mark.rule("SES-78")
async def test_a_session_without_its_file_cannot_be_forked(files: MemoryLogFiles) -> None:
    with opened(files) as writer:
        (note,) = appended(writer, NOTE)

        with pytest.raises(CommandRefused, match=r"^This session has not been saved yet\. Send a message before cloning or forking it\.$"):
            await forked(writer, files, note, "at")


@pytest.mark.rule("RPC-56")
async def test_in_memory_a_fork_stays_in_memory(files: MemoryLogFiles) -> None:
    log, _ = open_log(MemorySession(), around(files))
    log.close()
    with opened(files) as writer:
        (hello,) = appended(writer, HELLO)
        plan = fork_plan(writer.state.tree, hello, "at")
        assert isinstance(plan, ForkPlan)
        fork = await write_fork(plan, Source(path=None, header=writer.header), around(files))

    assert isinstance(fork.target, MemorySession)
    assert [entry.id for entry in fork.target.entries] == [hello]
    assert fork.target.header is not None
    assert (fork.target.header.cwd, fork.target.header.parent_session) == ("/srv/app", None)


@pytest.mark.parametrize("killed", [False, True])
async def test_whichever_step_fails_there_is_a_whole_file_or_none_and_the_source_stays(files: MemoryLogFiles, *, killed: bool) -> None:
    with opened(files) as writer:
        hello, _ = appended(writer, HELLO, ANSWER)
        plan = fork_plan(writer.state.tree, hello, "at")
        assert isinstance(plan, ForkPlan)
        source = Source(path=writer.path, header=writer.header)
    before = files.photo().texts()
    outcomes = set()
    for disk, fault in breaking(files.photo(), killed=killed):
        try:
            await write_fork(plan, source, around(disk))
            done = True
        except (StorageError, Killed):
            done = False
        after = disk.photo().texts()
        new = [name for name in after if name.endswith(".jsonl") and name not in before]

        assert {name: text for name, text in after.items() if name in before} == before
        assert len(new) == 1 if done else killed or not new
        assert [text.count(b"\n") for name, text in after.items() if name in new] == [2] * len(new)
        assert killed or disk.open_handles == 0
        outcomes.add((done, fault.is_over))
    assert outcomes >= {(False, False), (True, True)}
