"""The page on testing an agent, followed by a reader."""

from pathlib import Path
from typing import Final

import pytest

from tests.extensions_std.reading import Reader, follow, type_errors
from tests.house.sources import text

PAGE: Final = text("design/testing-an-agent.md")


@pytest.mark.slow
def test_a_reader_can_follow_the_page_and_sees_what_it_says(tmp_path: Path) -> None:
    found = follow(Reader.in_(tmp_path), PAGE)

    assert sum([block["kind"] == "sh" for block in found]) == 4


@pytest.mark.slow
def test_the_code_of_the_page_has_no_type_errors(tmp_path: Path) -> None:
    assert type_errors(Reader.in_(tmp_path), PAGE).startswith("Success")
