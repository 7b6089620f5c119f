"""The recorded scenarios once more, every operation of the host through a face."""

from typing import Any, Final

import pytest

from tests.conformance.recorded import comparing, golden, scenario
from tests.conformance.required import REQUIRED
from tests.embedding.faced import FACES, run_through

VIRTUAL: Final = tuple([name for name in REQUIRED if scenario(name).get("provider") != "http"])
"""All but those that wait for a socket, in real time, whose clock cannot be held."""


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("name", VIRTUAL)
def test_the_kernel_does_what_was_recorded_when_it_is_asked_through_a_face(name: str, face: str) -> None:
    given: dict[str, Any] = scenario(name)

    trace, crossed = run_through(face, given)

    assert comparing("compare").compare_traces(golden(name), trace) is None
    assert crossed >= len([step for step in given["steps"] if step["do"] in ("prompt", "steer", "followUp", "abort", "compact")])


def test_most_scenarios_are_run() -> None:
    assert len(VIRTUAL) > 120
