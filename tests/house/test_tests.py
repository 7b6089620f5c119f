"""Tests are real code with fakes at the ports, and they do not wait."""

import ast
from typing import Final

import pytest

from tests.house.sources import base_name, files, text, tree

MOCKS: Final = {"mock", "Mock", "MagicMock", "AsyncMock", "patch", "monkeypatch", "mocker"}
VIRTUAL: Final = ("autojump_clock", "MockClock", "simulate")
REAL_TIME: Final = "# real time:"
"""Marks a wait that a virtual clock cannot do (a process, a thread), with its reason behind it."""


@pytest.mark.parametrize("file", files("tests"))
def test_no_test_uses_a_mock_or_patches(file: str) -> None:
    names = {node.id for node in ast.walk(tree(file)) if isinstance(node, ast.Name)}
    names |= {node.arg for node in ast.walk(tree(file)) if isinstance(node, ast.arg)}

    assert sorted(names & MOCKS) == [], f"{file}: fakes stand at the ports (World, log, provider)"


@pytest.mark.parametrize("file", files("tests"))
def test_no_test_sleeps_in_real_time(file: str) -> None:
    lines = text(file).splitlines()
    virtual = any(word in text(file) for word in VIRTUAL)

    sleeps = [
        f"line {node.lineno}"
        for node in ast.walk(tree(file))
        if isinstance(node, ast.Call) and base_name(node.func) == "sleep" and not (virtual or REAL_TIME in lines[node.lineno - 1])
    ]

    assert sleeps == [], f"{file}: use a virtual clock or an event; where neither can do, end the line with '{REAL_TIME} why'"
