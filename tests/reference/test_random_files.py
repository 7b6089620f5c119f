"""Whatever a session file holds, both programs read the same in it; and make the same of an old one."""

import json
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from camshaft.actors.logs.jsonl import JsonlOptions, open_jsonl
from camshaft.actors.ports.log_files import RealLogFiles
from tests.reference import ours
from tests.reference.process import Reference, View
from tests.reference.random_files import random_file, random_old_file

pytestmark = [pytest.mark.reference, pytest.mark.slow]

FILES: Final = 25
"""A test."""
SEEDS: Final = [range(FILES), *[pytest.param(range(at, at + FILES), marks=pytest.mark.long) for at in range(FILES, 2000, FILES)]]


@pytest.mark.parametrize("seeds", SEEDS, ids=lambda seeds: f"from {seeds[0]}")
def test_a_file_by_chance_is_read_the_same(seeds: range, reference: Reference, tmp_path: Path) -> None:
    different = [seed for seed in seeds if not _same(reference, _written(tmp_path, seed, random_file(seed, str(tmp_path))))]

    assert different == []


@pytest.mark.rule("SES-12")
@pytest.mark.parametrize("seeds", SEEDS, ids=lambda seeds: f"from {seeds[0]}")
def test_an_old_file_by_chance_becomes_the_same(seeds: range, reference: Reference, tmp_path: Path) -> None:
    different = [seed for seed in seeds if not _become_same(reference, tmp_path, seed)]

    assert different == []


def _same(reference: Reference, file: Path) -> bool:
    return ours.view(file) == reference.view(file)


def _become_same(reference: Reference, folder: Path, seed: int) -> bool:
    """Whether both migrate it alike, their new ids apart, and we read what each of them made of it."""
    text = random_old_file(seed, str(folder))
    theirs, own = _written(folder, seed, text), _written(folder, f"{seed}-ours", text)
    migrated = reference.view(theirs)
    _migrate(own)
    return _same(reference, theirs) and _same(reference, own) and _numbered(migrated) == _numbered(ours.view(own))


def _written(folder: Path, name: int | str, text: bytes) -> Path:
    file = folder / f"{name}.jsonl"
    file.write_bytes(text)
    return file


def _migrate(file: Path) -> None:
    numbers = count(1)
    options = JsonlOptions(
        files=RealLogFiles(), new_header=ours.no_header, new_entry_id=lambda: f"aa{next(numbers):06x}", holder="interchange"
    )
    log, _loaded = open_jsonl(str(file), options)
    log.close()


def _numbered(view: View) -> View:
    """The view with entry ids replaced by their order."""
    text = json.dumps(view)
    for number, entry in enumerate(view["entries"]):
        text = text.replace(f'"{entry["id"]}"', f'"#{number}"')
    numbered: View = json.loads(text)
    return numbered
