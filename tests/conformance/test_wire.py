"""The recorded wire vectors of the APIs we speak, each against a server of its own."""

import json
from typing import Any, Final

import pytest
import trio

from tests.conformance.recorded import DATA, comparing
from tests.conformance.run_wire import run_case

APIS: Final = ("anthropic", "completions", "responses")
"""Last parts of the case files' names."""


def _cases(kind: str) -> list[Any]:
    """The cases of all APIs as parameters of a test."""
    files = [json.loads((DATA / "wire" / f"{kind}-{api}.json").read_text("utf-8")) for api in APIS]
    return [pytest.param(case, id=case["name"]) for file in files for case in file["cases"]]


def _result(kind: str, case: dict[str, Any]) -> Any:
    """What the runner writes for a case."""
    return json.loads(json.dumps(trio.run(run_case, kind, case)))


@pytest.mark.parametrize("case", _cases("requests"))
def test_request_is_sent_as_recorded(case: dict[str, Any]) -> None:
    result = _result("requests", case)

    assert comparing("compare_wire").compare_request(case, case["expect"], result) is None


@pytest.mark.parametrize("case", _cases("streams"))
def test_reply_is_read_as_recorded(case: dict[str, Any]) -> None:
    result = _result("streams", case)

    assert comparing("compare_wire").compare_stream(case, case["expect"], result) is None
