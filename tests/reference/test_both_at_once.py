"""Both programs have one session open: neither loses a line of the other, and both read the same afterwards."""

from pathlib import Path

import pytest
import trio

from tests.reference import ours
from tests.reference.exchange import TURN
from tests.reference.histories import USER
from tests.reference.process import Reference, View

pytestmark = [pytest.mark.reference, pytest.mark.slow, pytest.mark.rule("SES-45", "SES-90")]


def test_what_the_reference_appends_to_a_session_we_have_open_is_a_sibling_branch(
    reference: Reference, tmp_path: Path, agent_dir: str
) -> None:
    file = tmp_path / "session.jsonl"

    async def prompt_around_theirs() -> tuple[View, View, View]:
        async with ours.opened(file, tmp_path) as seat:
            await seat.prompt(ours.PROMPT)
            before = ours.view(file)
            reference.run(TURN, path=str(file), agentDir=agent_dir)
            between = ours.view(file)
            await seat.prompt(ours.PROMPT)
            return before, between, ours.view_of(seat.state)

    before, between, live = trio.run(prompt_around_theirs)
    after = ours.view(file)

    assert live == after == reference.view(file)
    assert after["entries"][: len(between["entries"])] == between["entries"]
    assert after["entries"][len(between["entries"])]["parentId"] == before["leaf"]
    assert not set(after["branch"]) & {entry["id"] for entry in between["entries"][len(before["entries"]) :]}


def test_what_we_append_to_a_session_the_reference_has_open_is_a_sibling_branch(reference: Reference, tmp_path: Path) -> None:
    before = reference.write([["appendMessage", USER]], folder=str(tmp_path / "sessions"), cwd=str(tmp_path), keep=True)
    file = Path(before["path"])
    between = ours.append_run(file, tmp_path)

    written = reference.write([["appendMessage", {**USER, "content": "Another"}]], path=str(file), keep=True)
    after = ours.view(file)

    assert after == reference.view(file)
    assert after["entries"] == [*between["entries"], written["entries"][-1]]
    assert after["branch"] == [before["leaf"], written["leaf"]]
