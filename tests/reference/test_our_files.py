"""Session files that we write: the reference reads them as we do, continues them, and we continue what it wrote.

Read the same means: header, every entry, leaf, branch, tree, labels, name, context messages, level and model, all compared
as JSON values.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
import trio

from camshaft.actors.errors import NotASession
from camshaft.kernel.hook_events import CustomInput
from camshaft.kernel.messages import NO_USAGE, AssistantMessage, BashExecutionMessage, TextBlock, ThinkingBlock, UserMessage
from camshaft.kernel.persistent import FrozenDict
from tests.conformance.recorded import scenario
from tests.conformance.required import REQUIRED
from tests.conformance.scenario.driver import run_scenario_in
from tests.conformance.scenario.stage import Folders
from tests.conformance.scenario.world import fresh_folders
from tests.reference import ours
from tests.reference.exchange import there_and_back
from tests.reference.process import Reference

pytestmark = [pytest.mark.reference, pytest.mark.slow]

FILELESS: Final = ("api-cycle-thinking", "api-event-bus", "hooks-input-handled")
"""The scenarios in which no run starts, so that there is nothing to write (SES-55)."""
REFUSED: Final = "session-not-a-session"
"""The scenario whose file is none."""
WRITING: Final = [name for name in REQUIRED if name not in (*FILELESS, REFUSED)]
ANSWER: Final = AssistantMessage(
    content=(ThinkingBlock(thinking="hm"), TextBlock(text="Yes.")),
    api="faux",
    provider="faux",
    model="faux-1",
    usage=NO_USAGE,
    stop_reason="stop",
    timestamp=2,
)


@pytest.mark.parametrize("name", WRITING)
def test_the_files_of_a_scenario_go_to_the_reference_and_back(name: str, reference: Reference, tmp_path: Path, agent_dir: str) -> None:
    with fresh_folders() as folders:
        files = _files_of(name, folders)
        for number, file in enumerate(files):
            copies = tmp_path / str(number)
            copies.mkdir()
            there_and_back(file, reference, copies, agent_dir)

    assert files != []


def test_a_file_that_we_refuse_is_refused_there_too(reference: Reference) -> None:
    with fresh_folders() as folders:
        file = _file_of(REFUSED, folders)
        said = reference.refusal(file)
        with pytest.raises(NotASession, match="not a valid"):
            ours.view(file)

    assert said is not None
    assert "not a valid" in said


def test_the_file_of_the_demo_goes_to_the_reference_and_back(reference: Reference, tmp_path: Path, agent_dir: str) -> None:
    command: list[str | Path] = [sys.executable, "-m", "camshaft", "--demo", "--session-dir", tmp_path / "demo"]
    subprocess.run(command, cwd=tmp_path, env={"HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PATH": ""}, check=True, capture_output=True)

    (file,) = (tmp_path / "demo").glob("**/*.jsonl")
    there_and_back(file, reference, tmp_path, agent_dir)


def test_the_reference_lists_our_session_and_not_its_side_file(reference: Reference) -> None:
    with fresh_folders() as folders:
        file = _file_of("lifecycle-two-prompts", folders)
        (found,) = reference.listed(folders.sessions, folders.cwd)
        read = ours.view(file)

    messages = [entry for entry in read["entries"] if entry["type"] == "message"]
    assert (found["path"], found["id"], found["cwd"]) == (str(file), read["header"]["id"], str(folders.cwd))
    assert found["messageCount"] == len(messages)


def test_what_hosts_and_extensions_store_goes_to_the_reference_and_back(reference: Reference, tmp_path: Path, agent_dir: str) -> None:
    file = tmp_path / "session.jsonl"
    trio.run(_store_all, file, tmp_path)

    there_and_back(file, reference, tmp_path, agent_dir)


async def _store_all(file: Path, folder: Path) -> None:
    async with ours.opened(file, folder) as seat:
        await seat.prompt(ours.PROMPT)
        first, last = [entry["id"] for entry in ours.view(file)["entries"] if entry["type"] == "message"][1:3]
        seat.set_session_name(" A talk\nabout 1 ")
        seat.set_label(first, "start")
        seat.set_label(last, "end")
        seat.set_label(first, None)
        seat.append_entry("todo", FrozenDict({"items": (1, "two", None, 2.5, 1e21, 2**53 - 1)}))
        seat.append_message(UserMessage(content="\u2028 “” 😀 \ud83d \x00", timestamp=1))
        seat.append_message(ANSWER)
        seat.record_bash(BashExecutionMessage(command="ls", output="a.py\n", exit_code=0, cancelled=False, truncated=False, timestamp=2))
        await seat.send_custom(CustomInput(custom_type="note", content="seen", display=True, details=FrozenDict({"by": "test"})))
        seat.set_thinking_level("off")


def _files_of(name: str, folders: Folders) -> list[Path]:
    run_scenario_in(folders, scenario(name))
    return sorted(folders.sessions.glob("*.jsonl"))


def _file_of(name: str, folders: Folders) -> Path:
    (file,) = _files_of(name, folders)
    return file
