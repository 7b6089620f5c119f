"""Scenarios of our own, each with the trace of what the reference did when it ran them.

A file of `own/` holds a scenario and its trace, in the formats of the recorded ones (data/README.md).
"""

import json
from pathlib import Path

import pytest

from tests.conformance.recorded import comparing
from tests.conformance.scenario.driver import run_scenario

OWN = sorted((Path(__file__).parent / "own").glob("*.json"))


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in OWN])
def test_the_kernel_does_what_the_reference_did(path: Path) -> None:
    case = json.loads(path.read_text("utf-8"))

    trace = run_scenario(case["scenario"])

    assert comparing("compare").compare_traces(case["trace"], trace) is None
