"""The demo on the real command: a fresh home, a bare environment, real files and processes."""

import shutil
from pathlib import Path

import pytest

from camshaft.extensions_std.frontends.demo import FILE, PROJECT, RIGHT, WRONG
from camshaft.extensions_std.samples.review_note import NOTE, REVIEW
from tests.extensions_std.frontends.command import Ended, Place, camshaft, entries, messages, texts, unanswered

pytestmark = pytest.mark.slow


async def test_the_demo_mends_the_project_and_ends_with_green_tests(where: Place) -> None:
    ended = await camshaft(where, "--demo")

    runs = [message for message in messages(_session(ended)) if message.get("toolName") == "bash"]
    assert ended.code == 0, ended.err
    assert [message["isError"] for message in runs] == [True, False]
    assert "FAILED" in texts(runs[0]) and "OK" in texts(runs[1])
    assert RIGHT in (_project(ended) / FILE).read_text(encoding="utf-8")
    assert ended.out.startswith("Review: ") and ended.out.count("\n") == 1
    assert list(where.home.iterdir()) == []


async def test_the_sample_extension_notes_every_turn_and_asks_for_one_review(where: Place) -> None:
    ended = await camshaft(where, "--demo")

    written = entries(_session(ended))
    answers = [message for message in messages(_session(ended)) if message["role"] == "assistant"]
    assert len([entry for entry in written if entry.get("customType") == NOTE]) == len(answers) == 6
    assert len([entry for entry in written if entry.get("customType") == REVIEW]) == 1


async def test_without_the_sample_extension_there_is_neither_note_nor_review(where: Place) -> None:
    ended = await camshaft(where, "--demo", "--no-extensions")

    written = entries(_session(ended))
    assert ended.code == 0
    assert [entry for entry in written if "customType" in entry] == []
    assert ended.out.startswith("The tests are green.")


async def test_with_another_fault_the_edit_fails_and_the_tests_stay_red(where: Place, tmp_path: Path) -> None:
    planted = _planted(tmp_path, WRONG, RIGHT.replace(">=", "<"))

    ended = await camshaft(where, "--demo", "--demo-project", str(planted))

    results = [message for message in messages(_session(ended)) if message["role"] == "toolResult"]
    assert ended.code == 1
    assert [(message["toolName"], message["isError"]) for message in results] == [
        ("read", False),
        ("bash", True),
        ("edit", True),
        ("bash", True),
    ]
    assert "Tests:   red" in ended.err
    assert unanswered(_session(ended)) == []


async def test_a_second_fault_keeps_the_tests_red_although_the_edit_succeeds(where: Place, tmp_path: Path) -> None:
    planted = _planted(tmp_path, "price * pieces", "price + pieces")

    ended = await camshaft(where, "--demo", "--demo-project", str(planted))

    assert ended.code == 1
    assert RIGHT in (_project(ended) / FILE).read_text(encoding="utf-8")


async def test_the_session_of_the_demo_goes_where_it_is_told(where: Place, tmp_path: Path) -> None:
    ended = await camshaft(where, "--demo", "--session-dir", str(tmp_path / "kept"))

    assert _session(ended).parent == tmp_path / "kept"
    assert list((tmp_path / "kept").glob("*.jsonl")) == [_session(ended)]


async def test_the_demo_speaks_json(where: Place) -> None:
    ended = await camshaft(where, "--demo", "--mode", "json")

    assert ended.code == 0
    assert [record["type"] for record in ended.records][:3] == ["session", "agent_start", "turn_start"]
    assert ended.records[-1] == {"type": "agent_settled", "aborted": False}


async def test_the_demo_takes_no_prompt_and_no_model(where: Place) -> None:
    ended = await camshaft(where, "--demo", "--model", "m", "mend", "@it")

    assert (ended.code, ended.out) == (1, "")
    assert set(ended.err.splitlines()) == {
        "Error: --demo cannot be combined with --model",
        "Error: --demo cannot be combined with a prompt",
        "Error: --demo cannot be combined with a file",
    }


def _planted(folder: Path, old: str, new: str) -> Path:
    """A copy of the demo's project with something changed in its code."""
    planted = folder / "planted"
    shutil.copytree(PROJECT, planted)
    code = (planted / FILE).read_text(encoding="utf-8")
    assert old in code
    (planted / FILE).write_text(code.replace(old, new), encoding="utf-8")
    return planted


def _session(ended: Ended) -> Path:
    return _told(ended, "Session: ")


def _project(ended: Ended) -> Path:
    return _told(ended, "Project: ")


def _told(ended: Ended, label: str) -> Path:
    (line,) = [line for line in ended.err.splitlines() if line.startswith(label)]
    path = Path(line.removeprefix(label))
    assert path.exists()
    return path
