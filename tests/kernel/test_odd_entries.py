"""Entries with broken fields: what can be read of them is read, and their stored form is kept."""

import json
from typing import Any

import pytest

from camshaft.kernel import codec
from camshaft.kernel.entries import CustomEntry, OpaqueEntry
from tests.kernel.made import TIME


@pytest.mark.rule("CTX-12", "SES-34")
@pytest.mark.parametrize("odd", [{"timestamp": None}, {"timestamp": 5}, {"parentId": 5}, {"parentId": {}, "timestamp": []}])
def test_an_entry_with_an_odd_time_or_parent_keeps_its_body(odd: dict[str, Any]) -> None:
    raw = {"type": "custom", "id": "e", "parentId": "x", "timestamp": TIME, "customType": "k", **odd}

    entry = codec.decode_entry(raw)

    assert isinstance(entry, CustomEntry)
    assert entry.parent_id == (None if "parentId" in odd else "x")
    assert json.loads(codec.dumps(entry)) == raw


@pytest.mark.rule("SES-27", "SES-30", "SES-34")
@pytest.mark.parametrize(
    "raw",
    [
        {"type": "compaction", "summary": "s", "firstKeptEntryId": "k", "tokensBefore": None},
        {"type": "compaction", "summary": "s", "firstKeptEntryId": "k", "tokensBefore": 5, "fromHook": 3, "usage": "x"},
        {"type": "compaction", "summary": "s", "firstKeptEntryId": "k", "tokensBefore": 5, "systemMessage": {"role": "odd"}},
        {"type": "branch_summary", "summary": "s", "fromId": "x", "fromHook": "yes"},
    ],
)
def test_an_entry_with_a_broken_field_it_can_do_without_is_read_and_keeps_its_form(raw: dict[str, Any]) -> None:
    stored = {"id": "e", "parentId": "x", "timestamp": TIME, **raw}

    entry = codec.decode_entry(stored)

    assert entry.type == raw["type"]
    assert not isinstance(entry, OpaqueEntry)
    assert json.loads(codec.dumps(entry)) == stored


def test_an_entry_with_a_broken_field_it_needs_is_opaque() -> None:
    stored = {"type": "compaction", "id": "e", "parentId": "x", "timestamp": TIME, "summary": 5, "tokensBefore": None}

    entry = codec.decode_entry(stored)

    assert isinstance(entry, OpaqueEntry)
    assert json.loads(codec.dumps(entry)) == stored
