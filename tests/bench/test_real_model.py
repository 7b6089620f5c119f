"""What can be said of the check with a real model without one."""

from pathlib import Path

import jsonschema
import pytest

from bench.real_model import __main__ as check
from bench.real_model.install import NotInstalled, installed
from bench.real_model.weather import PARAMETERS


def test_without_a_compiler_it_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(NotInstalled, match=r"a C\+\+ compiler is needed"):
        installed(tmp_path / "real", which=lambda _name: None)

    assert not (tmp_path / "real").exists()


def test_the_last_block_of_the_page_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    page = tmp_path / "results.md"
    page.write_text(f"# Results\n\n{check.TITLE}\n\nold\n")

    check.keep(page, f"{check.TITLE}\n\nnew")

    assert page.read_text() == f"# Results\n\n{check.TITLE}\n\nnew\n"


def test_the_schema_of_the_forced_call_is_one_and_refuses() -> None:
    validator = jsonschema.Draft202012Validator(PARAMETERS)

    assert validator.is_valid({"city": "Paris", "days": 3, "unit": "celsius"})
    assert not validator.is_valid({"city": "Paris", "days": 8, "unit": "celsius"})
