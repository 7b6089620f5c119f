"""What may not stand in the text of the project, and what must stand beside an exception to a rule."""

import re
from typing import Final

import pytest

from tests.house.sources import PRODUCT, PYTHON, ROOT, files, project_files, text

# A character in brackets keeps this file from containing what it looks for.
MACHINE_PATH: Final = re.compile(r"(?<![\w.$}])/(?:[w]ork|[r]oot)/[a-z.]")
REGISTRY_HOST: Final = re.compile(r"[p]ypi\.org|[p]ythonhosted\.org|[r]egistry\.npmjs|[d]eb\.debian\.org")
SHARED: Final = re.compile(r"\.\./[s]hared")
UNFINISHED: Final = re.compile(r"\b(?:[T]ODO|[F]IXME|[X]XX|[N]otImplementedError|[Ss][t]ubs?)\b")
IGNORE: Final = re.compile(r"# (?:type: ignore|noqa|pragma:).*$", re.MULTILINE)
EXPLAINED: Final = re.compile(r"# (?:type: ignore\[[\w, -]+\]|noqa: [A-Z0-9, ]+|pragma: no cover)\s+(?:[#-] )?\w")
"""An exception to a rule: its code, and a reason behind it."""
SECTION: Final = re.compile(r"\b(?:loop |providers |sessions )?spec (?:\d|section)|\bsection \d")
"""A place in a page that a reader of the project does not have."""
PAGE: Final = re.compile(r"\b[\w-]+\.md\b")
FOREIGN_PAGES: Final = {"AGENTS.md", "override.md", "CLAUDE.md", "SKILL.md", "SYSTEM.md", "APPEND_SYSTEM.md"}
"""Files that a user has; the product reads them."""


@pytest.mark.parametrize("file", project_files())
def test_no_file_names_a_place_of_one_machine_or_a_registry(file: str) -> None:
    found = [*MACHINE_PATH.findall(text(file)), *REGISTRY_HOST.findall(text(file))]

    assert found == [], f"{file}: the project must work anywhere"


@pytest.mark.parametrize("file", [file for file in project_files() if not file.startswith("tests/")])
def test_only_tests_look_beside_the_project(file: str) -> None:
    assert SHARED.findall(text(file)) == [], f"{file}: restate what is needed; a reader has only the project"


@pytest.mark.parametrize("file", files(*PYTHON))
def test_nothing_unfinished_is_left_behind(file: str) -> None:
    assert UNFINISHED.findall(text(file)) == [], f"{file}: unfinished is absent, or a clear error"


@pytest.mark.parametrize("file", files(*PYTHON))
def test_every_exception_to_a_rule_has_its_reason_beside_it(file: str) -> None:
    bare = [found for found in IGNORE.findall(text(file)) if not EXPLAINED.match(found)]

    assert bare == [] or file == "tests/house/test_text.py", f"{file}: name the code and say why: '# type: ignore[code]  # why'"


@pytest.mark.parametrize("file", files(*PRODUCT))
def test_a_page_that_is_referred_to_exists(file: str) -> None:
    pages = {path.name for folder in (ROOT, ROOT / "design") for path in folder.glob("*.md")}

    assert set(PAGE.findall(text(file))) - pages - FOREIGN_PAGES == set(), f"{file}: the pages of the project are in design/"


@pytest.mark.parametrize("file", files(*PRODUCT))
def test_no_section_of_a_page_elsewhere_is_named(file: str) -> None:
    assert SECTION.findall(text(file)) == [], f"{file}: name the rule by its id, or say it in plain words"
