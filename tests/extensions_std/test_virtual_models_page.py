"""The page on virtual models, followed by a reader in the same way as the page on writing an extension."""

from pathlib import Path
from typing import Final

import pytest

from tests.extensions_std.reading import BLOCK, Reader, play
from tests.house.sources import text

PAGE: Final = text("design/virtual-models.md")


@pytest.mark.slow
def test_a_reader_can_follow_the_page_and_its_code_has_no_type_errors(tmp_path: Path) -> None:
    reader = Reader.in_(tmp_path)
    found = list(BLOCK.finditer(PAGE))

    for block in found:
        play(reader, block)

    assert sum([block["kind"] == "sh" for block in found]) == 2
    assert "```" not in BLOCK.sub("", PAGE), "every block is followed"
    shown = reader.run("python -m mypy --strict --cache-dir=../cache --follow-imports=silent *.py")
    assert shown.startswith("Success")
