"""The recorded vectors of every family the kernel covers so far, compared by the recorded comparison script."""

from typing import Any, Final

import pytest

from tests.conformance.recorded import comparing, vector_cases
from tests.conformance.run_vectors import family_run, run_case

FAMILIES: Final = (
    "arguments",
    "classify",
    "estimate",
    "nested-calls",
    "partial-json",
    "projection",
    "prompt-sections",
    "session-append",
    "session-load",
    "tools-bash",
    "tools-edit",
    "tools-find",
    "tools-grep",
    "tools-ls",
    "tools-read",
    "tools-write",
    "truncate",
    "usage-cost",
)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_every_case_of_the_family_gives_the_recorded_output(family: str) -> None:
    run = family_run(family)
    compare = comparing("compare_vectors")

    differences = {case["id"]: compare.check(family, case, run_case(run, case["input"])) for case in vector_cases(family)}

    assert {name: why for name, why in differences.items() if why} == {}


def test_a_wrong_output_is_noticed() -> None:
    case: dict[str, Any] = {"id": "x", "input": {}, "expected": {"value": 1}}

    assert comparing("compare_vectors").check("truncate", case, {"value": 2}) == "$.value: expected 1, got 2"
