"""The recorded scenarios this version must pass, run in this process and compared by the recorded comparison script.

A run is on Trio's virtual clock; only the `http` ones wait for a socket.
"""

import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.recorded import DATA, comparing, golden, scenario
from tests.conformance.required import REQUIRED, required
from tests.conformance.scenario.driver import run_scenario


@pytest.mark.parametrize("name", required())
def test_the_kernel_does_what_was_recorded(name: str) -> None:
    trace = run_scenario(scenario(name))

    assert comparing("compare").compare_traces(golden(name), trace) is None


def test_every_scenario_is_required() -> None:
    assert list(REQUIRED) == sorted([path.stem for path in (DATA / "scenarios").glob("*.json")])


def test_an_altered_trace_is_noticed() -> None:
    recorded = golden("lifecycle-text")
    altered = copy.deepcopy(recorded)
    altered["state"]["lastAssistantText"] += "!"

    assert comparing("compare").compare_traces(recorded, copy.deepcopy(recorded)) is None
    assert "lastAssistantText" in comparing("compare").compare_traces(recorded, altered)


def test_a_trace_with_two_events_in_the_other_order_is_noticed() -> None:
    recorded = golden("lifecycle-text")
    altered = copy.deepcopy(recorded)
    altered["events"][-2:] = altered["events"][:-3:-1]

    assert comparing("compare").compare_traces(recorded, altered) is not None


@pytest.mark.slow
def test_the_runner_is_a_plain_script_that_writes_a_trace(tmp_path: Path) -> None:
    script = Path(__file__).with_name("run_scenario.py")
    out = tmp_path / "trace.json"

    done = subprocess.run([sys.executable, str(script), str(DATA / "scenarios" / "lifecycle-text.json"), str(out)], cwd=tmp_path)

    assert done.returncode == 0
    assert comparing("compare").compare_traces(golden("lifecycle-text"), json.loads(out.read_text("utf-8"))) is None
