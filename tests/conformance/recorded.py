"""The recorded files beside this one: scenarios, traces, vectors, and the scripts that compare."""

import importlib.util
import json
from pathlib import Path
from typing import Any, Final

DATA: Final = Path(__file__).with_name("data")
"""A copy of the shared conformance data, as it is; a test keeps it equal."""


def scenario(name: str) -> dict[str, Any]:
    """The scenario called `name`."""
    return _object("scenarios", name)


def golden(name: str) -> dict[str, Any]:
    """The trace that the scenario called `name` must give."""
    return _object("traces", name)


def vector_cases(family: str) -> list[dict[str, Any]]:
    """The cases of a family, expected outputs included."""
    cases: list[dict[str, Any]] = _object("vectors", family)["cases"]
    return cases


def comparing(script: str) -> Any:
    """The module of a comparison script, which is no package of ours: `compare` or `compare_vectors`."""
    spec = importlib.util.spec_from_file_location(script, DATA / f"{script}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _object(folder: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / folder / f"{name}.json").read_text("utf-8"))
    return found
