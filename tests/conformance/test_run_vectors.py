"""The vector runner itself: notation, surroundings of a case, placeholders, crashes."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.conformance.fixed_texts import FixedTexts, fixed_texts, masked
from tests.conformance.notation import expand
from tests.conformance.run_vectors import run_case

EXPANSIONS = [
    ({"$repeat": "ab", "n": 3}, "ababab"),
    ({"$concat": ["a", {"$repeat": "b", "n": 2}]}, "abb"),
    ({"$count": [9, 11], "format": "line {}\n"}, "line 9\nline 10\nline 11\n"),
    ({"$list": [1, 2], "item": {"id": "e{i}", "text": {"$repeat": "x", "n": 2}}}, [{"id": "e1", "text": "xx"}, {"id": "e2", "text": "xx"}]),
    ({"plain": [1, None, {"n": 3}]}, {"plain": [1, None, {"n": 3}]}),
]


@pytest.mark.parametrize(("written", "meant"), EXPANSIONS)
def test_a_notation_object_stands_for_its_value(written: Any, meant: Any) -> None:
    assert expand(written) == meant


def test_a_case_sees_only_its_own_folders_and_leaves_no_trace() -> None:
    before = (Path.cwd(), dict(os.environ), tempfile.gettempdir())

    output = run_case(_look_around, {"args": {"path": "<cwd>/a", "home": "<home>"}})

    assert output == {
        "args": {"path": "<cwd>/a", "home": "<home>"},
        "cwd": "<cwd>",
        "home": "<home>",
        "spilled": "<spill>",
        "files": [],
    }
    assert (Path.cwd(), dict(os.environ), tempfile.gettempdir()) == before


def test_a_crash_becomes_the_output_of_its_case() -> None:
    assert run_case(_fail, {}) == {"crash": "ValueError: no such thing"}


def test_an_async_family_runs_under_trio() -> None:
    assert run_case(_answer_later, {"value": 3}) == 3


def test_a_wrapping_is_replaced_only_where_prefix_and_suffix_are_both_there() -> None:
    pairs = FixedTexts(plain={}, wrapped=(("A summary follows: <s>", "</s>", "branch-summary"),))

    assert masked(["A summary follows: <s>x</s>y</s>", "y</s>"], pairs) == ["<branch-summary-prefix>x</s>y<branch-summary-suffix>", "y</s>"]


def test_the_fixed_texts_of_the_default_prompt_are_known() -> None:
    marks = set(fixed_texts().plain.values())

    assert {"<default-preamble>", "<default-rule-1>", "<default-skills-intro:read>"} <= marks


@pytest.mark.slow
def test_the_runner_is_a_plain_script_that_names_an_unknown_family(tmp_path: Path) -> None:
    cases = tmp_path / "cases.json"
    cases.write_text('{"cases": []}', "utf-8")
    script = Path(__file__).with_name("run_vectors.py")

    call = [sys.executable, str(script), "no-such-family", str(cases), str(tmp_path / "out.json")]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True)

    assert done.returncode == 2
    assert "no module runs the family 'no-such-family'" in done.stderr


def _look_around(case_input: Any) -> Any:
    spill = Path(tempfile.gettempdir()) / "long.txt"
    spill.write_text("long")
    return {
        "args": case_input["args"],
        "cwd": str(Path.cwd()),
        "home": os.environ["HOME"],
        "spilled": str(spill),
        "files": os.listdir("."),
    }


def _fail(_case_input: Any) -> NoReturn:
    raise ValueError("no such thing")


async def _answer_later(case_input: Any) -> Any:
    return case_input["value"]
