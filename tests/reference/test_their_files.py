"""Session files that the reference writes: we read them as it does, continue them, and it continues what we wrote."""

from pathlib import Path
from typing import Any

import pytest

from tests.reference.exchange import TURN, here_and_back
from tests.reference.histories import HISTORIES
from tests.reference.process import Reference

pytestmark = [pytest.mark.reference, pytest.mark.slow]


@pytest.mark.parametrize("history", HISTORIES)
def test_a_history_of_theirs_comes_to_us_and_goes_back(history: str, reference: Reference, tmp_path: Path) -> None:
    written = reference.write(HISTORIES[history], folder=str(tmp_path / "sessions"), cwd=str(tmp_path))

    read = here_and_back(Path(written["path"]), reference, tmp_path)
    assert read["entries"] == written["entries"]


def test_a_session_of_their_agent_comes_to_us_and_goes_back(reference: Reference, tmp_path: Path, agent_dir: str) -> None:
    """Two runs, one with tool calls, a compaction by their model, a run after it, then a label and a name."""
    acts: list[dict[str, Any]] = [
        *TURN,
        {"prompt": "And now?", "replies": [{"text": "Enough."}]},
        {"compact": "Be short.", "replies": [{"text": "Summary."}, {"text": "Rest of the turn."}]},
        {"prompt": "Again.", "replies": [{"text": "Yes."}]},
    ]
    written = reference.run(acts, folder=str(tmp_path / "sessions"), cwd=str(tmp_path), agentDir=agent_dir)
    marked = reference.write([["appendLabelChange", written["leaf"], "end"], ["appendSessionInfo", "A talk"]], path=written["path"])

    read = here_and_back(Path(written["path"]), reference, tmp_path)
    assert read["entries"] == marked["entries"]
    assert [entry["type"] for entry in read["entries"]].count("compaction") == 1
    assert (read["labels"], read["name"]) == ([[written["leaf"], "end"]], "A talk")
