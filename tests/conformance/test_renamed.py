"""Every required scenario once more in other words: nothing in the package knows a scenario."""

from typing import Final

import pytest

from tests.conformance.recorded import comparing, golden, scenario
from tests.conformance.renaming import renaming
from tests.conformance.required import REQUIRED, required
from tests.conformance.scenario.driver import run_scenario

SEED: Final = 20_260_301
"""Any; another one gives other words."""


@pytest.mark.parametrize("name", required())
def test_the_kernel_does_the_same_in_other_words(name: str) -> None:
    words = renaming(scenario(name), SEED)

    trace = run_scenario(words.scenario(scenario(name)))

    assert comparing("compare").compare_traces(words.trace(golden(name)), trace) is None


@pytest.mark.parametrize("name", REQUIRED)
def test_a_recorded_trace_does_not_pass_for_the_renamed_scenario(name: str) -> None:
    """The renaming replaces something that the comparison sees, in every scenario that has words at all."""
    words = renaming(scenario(name), SEED)

    difference = comparing("compare").compare_traces(words.trace(golden(name)), golden(name))

    assert (difference is None) == (words.trace(golden(name)) == golden(name))


def test_other_words_keep_lengths_and_protocol_literals() -> None:
    listed = scenario("nested-errors")

    renamed = renaming(listed, SEED).scenario(listed)

    names = [tool["name"] for tool in listed["extensions"][0]["tools"]]
    others = [tool["name"] for tool in renamed["extensions"][0]["tools"]]
    assert [len(name) for name in others] == [len(name) for name in names]
    assert not set(names) & set(others)
    assert [step["do"] for step in renamed["steps"]] == [step["do"] for step in listed["steps"]]
