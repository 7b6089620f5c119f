"""The recorded wire vectors of the APIs we speak, each against a server of its own."""

import json
from typing import Any, Final

import pytest
import trio

from tests.conformance.recorded import DATA, comparing
from tests.conformance.run_wire import run_case

REQUESTS: Final = json.loads((DATA / "wire" / "requests-completions.json").read_text("utf-8"))["cases"]
STREAMS: Final = json.loads((DATA / "wire" / "streams-completions.json").read_text("utf-8"))["cases"]


@pytest.mark.parametrize("case", REQUESTS, ids=[case["name"] for case in REQUESTS])
def test_request_is_sent_as_recorded(case: dict[str, Any]) -> None:
    result = trio.run(run_case, "requests", case)

    assert comparing("compare_wire").compare_request(case, case["expect"], result) is None


@pytest.mark.parametrize("case", STREAMS, ids=[case["name"] for case in STREAMS])
def test_reply_is_read_as_recorded(case: dict[str, Any]) -> None:
    result = trio.run(run_case, "streams", case)

    assert comparing("compare_wire").compare_stream(case, case["expect"], result) is None
