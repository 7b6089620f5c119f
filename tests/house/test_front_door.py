"""What a newcomer meets first: the two commands of the README, the verbs of just, the continuous check, the pages of design/."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.house.sources import ROOT, text

VERBS_MAX: Final = 10
SH_BLOCK: Final = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLE: Final = re.compile(r"^```python\n(.*?)^```$.*?^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RECORD_PARTS: Final = ("*Status*", "*Context*", "*Decision*", "*Alternatives*", "*Consequences*", "*Kept true by*")
RECORDS: Final = sorted(path.name for path in (ROOT / "design").glob("0[0-9][0-9][0-9]-*.md"))
PAGES: Final = ["README.md", "CHANGELOG.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "design").glob("*.md"))]
LINK: Final = re.compile(r"\]\((?!https?:|#)([^)#]+)")


def test_the_first_two_blocks_of_the_readme_are_one_line_each() -> None:
    blocks = SH_BLOCK.findall(text("README.md"))

    assert [len(block.splitlines()) for block in blocks[:2]] == [1, 1]
    assert ".venv/bin/camshaft --demo" in blocks[0]
    assert ".venv/bin/just test" in blocks[1]


@pytest.mark.slow
@pytest.mark.parametrize(("program", "printed"), EXAMPLE.findall(text("README.md")), ids=["embedding", "extending"])
def test_an_example_of_the_readme_prints_what_it_says(tmp_path: Path, program: str, printed: str) -> None:
    shown = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)

    assert (shown.stdout, shown.stderr) == (printed, "")


def test_the_continuous_check_runs_the_second_block(tmp_path: Path) -> None:
    _continuous_check(tmp_path, "```sh\necho first\n```\n\ntext\n\n```sh\necho second\n```\n")

    shown = subprocess.run(["bash", tmp_path / ".ci/run"], capture_output=True, text=True)

    assert (shown.returncode, shown.stdout) == (0, "second\n")


def test_the_continuous_check_fails_without_a_second_block(tmp_path: Path) -> None:
    _continuous_check(tmp_path, "```sh\necho first\n```\n")

    shown = subprocess.run(["bash", tmp_path / ".ci/run"], capture_output=True, text=True)

    assert shown.returncode == 1
    assert "no second sh block" in shown.stderr


def test_the_continuous_check_fails_when_the_command_does(tmp_path: Path) -> None:
    _continuous_check(tmp_path, "```sh\necho first\n```\n```sh\necho begun; false; echo done\n```\n```sh\necho third\n```\n")

    shown = subprocess.run(["bash", tmp_path / ".ci/run"], capture_output=True, text=True)

    assert (shown.returncode, shown.stdout) == (1, "begun\n")


def test_just_has_few_verbs_and_each_has_its_help() -> None:
    dumped = subprocess.run([Path(sys.executable).with_name("just"), "--dump", "--dump-format=json"], cwd=ROOT, capture_output=True)
    verbs = {name: recipe["doc"] for name, recipe in json.loads(dumped.stdout)["recipes"].items() if not recipe["private"]}

    assert 0 < len(verbs) <= VERBS_MAX
    assert [name for name, doc in verbs.items() if not doc] == []


@pytest.mark.parametrize("page", PAGES)
def test_links_of_a_page_lead_somewhere(page: str) -> None:
    folder = (ROOT / page).parent

    dead = [target for target in LINK.findall(text(page)) if not (folder / target).exists()]

    assert dead == []


@pytest.mark.parametrize("record", RECORDS)
def test_a_decision_record_has_all_its_parts(record: str) -> None:
    page = text(f"design/{record}")

    assert [part for part in RECORD_PARTS if part not in page] == []


@pytest.mark.slow
def test_the_diagrams_are_those_of_the_tables() -> None:
    shown = subprocess.run([sys.executable, "design/diagram.py", "--check"], cwd=ROOT, capture_output=True, text=True)

    assert shown.returncode == 0, shown.stdout + shown.stderr


def _continuous_check(folder: Path, readme: str) -> None:
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", folder / ".ci/run")
    (folder / "README.md").write_text(readme, encoding="utf-8")
