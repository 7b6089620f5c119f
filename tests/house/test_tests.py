"""Tests are real code with fakes at the ports, and they do not wait."""

import ast
from typing import Final

import pytest

from tests.house.sources import base_name, files, text, tree

MOCKS: Final = {"mock", "unittest.mock", "pytest_mock", "monkeypatch", "mocker", "MonkeyPatch"}
"""Modules and fixtures."""
VIRTUAL: Final = ("autojump_clock", "MockClock", "simulate")
"""A test that names one of these runs on a virtual clock; so do the helpers of tests, in the hands of such a test."""
REAL_TIME: Final = "# real time:"
"""Marks a wait that a virtual clock cannot do (a process, a thread), with its reason behind it."""


@pytest.mark.parametrize("file", files("tests"))
def test_no_test_uses_a_mock_or_patches(file: str) -> None:
    arguments = {node.arg for node in ast.walk(tree(file)) if isinstance(node, ast.arg)}
    modules = {node.module or "" for node in ast.walk(tree(file)) if isinstance(node, ast.ImportFrom)}
    names = {alias.name for node in ast.walk(tree(file)) if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names}

    assert sorted((arguments | modules | names) & MOCKS) == [], f"{file}: fakes stand at the ports (World, log, provider)"


@pytest.mark.parametrize("file", files("tests"))
def test_no_test_sleeps_in_real_time(file: str) -> None:
    lines = text(file).splitlines()
    virtual = any(word in text(file) for word in VIRTUAL) or not file.rpartition("/")[2].startswith("test_")

    sleeps = [
        f"line {node.lineno}"
        for node in ast.walk(tree(file))
        if isinstance(node, ast.Call) and base_name(node.func) == "sleep"
        if not (virtual and ast.unparse(node.func) == "trio.sleep") and REAL_TIME not in lines[node.lineno - 1]
    ]

    assert sleeps == [], f"{file}: use a virtual clock or an event; where neither can do, end the line with '{REAL_TIME} why'"
