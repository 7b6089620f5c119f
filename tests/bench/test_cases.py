"""Every case of the bench runs, and gives the fields that its page promises."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.streams import in_order
from bench.table import ROWS
from camshaft.extensions_std.providers.scripted import assistant
from camshaft.extensions_std.providers.wire_apis import WIRE_APIS
from tests.house.sources import ROOT

CASES = [
    ("turns 4 2", {"ms_per_turn", "boundaries", "rss_mb"}),
    ("turns 4 2 --disk", {"ms_per_turn", "boundaries", "rss_mb"}),
    ("turns 4 2 --disk none", {"ms_per_turn", "boundaries", "rss_mb"}),
    ("deltas 3", {"updates", "us_per_update", "rss_mb"}),
    ("fanout 3", {"ms", "us_per_call", "rss_mb"}),
    ("idle 2", {"ms_per_session", "kb_per_session"}),
    ("extensions 3", {"whole_ms", "discover_ms", "imports_ms", "beyond_imports_ms", "commands"}),
    ("streams 3 50 0.2", {"p99_ms", "p50_ms", "max_ms", "items", "cpu_percent", "taken_percent", "us_per_item"}),
    *[(f"body 8 {api}", {"first_ms", "again_ms", "ms_per_1000", "mb"}) for api in WIRE_APIS],
    ("body 8", {"first_ms", "again_ms", "ms_per_1000", "mb"}),
]


def _bench(*arguments: str) -> dict[str, Any]:
    shown = subprocess.run([sys.executable, "-m", "bench", *arguments], cwd=ROOT, capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    line: dict[str, Any] = json.loads(shown.stdout)
    return line


@pytest.mark.slow
@pytest.mark.parametrize(("call", "fields"), CASES, ids=[call for call, _ in CASES])
def test_a_case_prints_one_line_with_its_fields(call: str, fields: set[str]) -> None:
    line = _bench(*call.split())

    assert line.keys() == {"case", "args", *fields}
    assert all(value >= 0 for name, value in line.items() if name in fields)


@pytest.mark.slow
def test_the_cost_of_hooks_is_measured_in_pairs() -> None:
    line = _bench("hooks", "2")

    costs = {"unhandled_turn_percent", "unhandled_item_us", "sync_item_us", "async_item_us"}
    assert line.keys() == {"case", "args", "turn_ms", "item_us", *costs}
    assert line["turn_ms"] > 0 and line["item_us"] > 0


@pytest.mark.slow
def test_a_file_that_is_loaded_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    _bench("session", str(file), "12")
    before = file.read_bytes()

    line = _bench("load", str(file))

    assert line["messages"] == 12
    assert (file.read_bytes(), sorted(path.name for path in tmp_path.iterdir())) == (before, ["session.jsonl"])


@pytest.mark.slow
def test_the_handler_sees_every_turn_and_the_last_one() -> None:
    assert _bench("turns", "0", "5")["boundaries"] == 6


@pytest.mark.slow
def test_every_item_of_every_stream_is_counted() -> None:
    assert _bench("streams", "4", "100", "0.5")["items"] == 200


def test_items_that_are_missing_or_out_of_order_do_not_count() -> None:
    message = assistant(" ".join(["5", "7", "6", "9"]))

    assert in_order(message) == 3


@pytest.mark.slow
def test_an_unknown_case_names_those_that_exist() -> None:
    shown = subprocess.run([sys.executable, "-m", "bench", "fly"], cwd=ROOT, capture_output=True, text=True)

    assert shown.returncode == 2
    assert "no case 'fly'; there are: load, turns" in shown.stderr


def test_every_row_of_the_table_has_a_target() -> None:
    assert [row.work for row in ROWS if row.target <= 0] == []
