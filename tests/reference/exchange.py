"""One step of an interchange after the other: who reads what, and what has to stay."""

import shutil
from pathlib import Path
from typing import Any, Final

from tests.reference import ours
from tests.reference.process import Reference, View

TURN: Final[list[dict[str, Any]]] = [{"prompt": "Go on: “1” and 2.", "replies": [{"calls": [1, 2.5]}, {"text": "Both noted."}]}]
"""For the reference: a prompt, an answer with two tool calls, an answer."""


def there_and_back(file: Path, reference: Reference, folder: Path, agent_dir: str) -> None:
    """Ours, then a turn of theirs in a copy, then a run of ours: read the same at each step, and nothing before it changes."""
    first = ours.view(file)
    assert reference.view(file) == first

    copied = Path(shutil.copy(file, folder / "copy.jsonl"))
    written = reference.run(TURN, path=str(copied), agentDir=agent_dir)
    second = ours.view(copied)
    assert read_of(written) == second
    assert_continues(second, first, ["user", "assistant", "toolResult", "toolResult", "assistant"])

    live = ours.append_run(copied, folder)
    third = ours.view(copied)
    assert live == third
    assert reference.view(copied) == third
    assert_continues(third, second, ["user", "assistant", "toolResult", "assistant"])


def here_and_back(file: Path, reference: Reference, folder: Path) -> dict[str, Any]:
    """Theirs, then a run of ours: read the same at each step, and no entry before it changes; what was read first."""
    first = ours.view(file)
    assert reference.view(file) == first

    live = ours.append_run(file, folder)
    second = ours.view(file)
    assert live == second
    assert reference.view(file) == second
    assert_continues(second, first, ["user", "assistant", "toolResult", "assistant"])
    return first


def read_of(written: View) -> View:
    """The view in the answer to a run or a write."""
    return {key: value for key, value in written.items() if key not in ("path", "results")}


def assert_continues(now: View, before: View, roles: list[str]) -> None:
    """Every entry is still there, the leaf is the last new one, and the new messages have these roles (system messages apart)."""
    count = len(before["entries"])
    added: list[Any] = now["entries"][count:]
    messages = [entry["message"]["role"] for entry in added if entry["type"] == "message"]

    assert now["entries"][:count] == before["entries"]
    assert now["leaf"] == added[-1]["id"]
    assert added[0]["parentId"] == before["leaf"]
    assert [role for role in messages if role != "system"] == roles
