"""The vector runner: `run_vectors.py FAMILY CASES.json OUT.json` (VECTORS.md section 4).

Each case runs in a folder of its own: the root of its file tree, its home and its temporary
folder lie beside each other there, and the environment holds little else. The family's
module (`tests.conformance.vectors.FAMILY`) does the work; this file prepares its surroundings
and writes placeholders for real paths and for our fixed texts.
"""

import contextlib
import inspect
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import attrs
import trio

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.conformance.fixed_texts import fixed_texts, masked
from tests.conformance.notation import expand, replaced

KEPT: Final[tuple[str, ...]] = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "VIRTUAL_ENV")
"""Environment variables a case may see: without them no program starts."""

Run = Callable[[Any], Any]


@attrs.frozen(kw_only=True)
class Place:
    """The folders of one case."""

    folder: Path
    """Holds the others; removed afterwards."""
    root: Path
    """The process directory: `<cwd>`."""
    home: Path
    """`HOME`: `<home>`."""
    scratch: Path
    """`TMPDIR`; a file in it is a `<spill>`."""


def family_run(family: str) -> Run:
    """The `run` of the family's module. Raises ModuleNotFoundError if there is none."""
    run: Run = import_module(f"tests.conformance.vectors.{family.replace('-', '_')}").run
    return run


def run_case(run: Run, case_input: Any) -> Any:
    """The output of one case, or `{"crash": TEXT}`. Process directory and environment are restored."""
    with fresh_place() as place:
        paths = {"<cwd>": str(place.root), "<home>": str(place.home)}
        prepared = expand(case_input)
        if isinstance(prepared, dict) and "args" in prepared:
            prepared["args"] = replaced(prepared["args"], paths)
        try:
            output = trio.run(run, prepared) if inspect.iscoroutinefunction(run) else run(prepared)
        except Exception as error:  # noqa: BLE001  whatever a case does wrong must not stop the others
            output = {"crash": f"{type(error).__name__}: {error}"}
        return masked(replaced(output, _path_placeholders(place)), fixed_texts())


@contextlib.contextmanager
def fresh_place() -> Iterator[Place]:
    """New empty folders, entered; afterwards everything is as it was."""
    folder = Path(tempfile.mkdtemp(prefix="case-")).resolve()
    place = Place(folder=folder, root=folder / "root", home=folder / "home", scratch=folder / "scratch")
    for each in (place.root, place.home, place.scratch):
        each.mkdir()
    before, environment, scratch = Path.cwd(), dict(os.environ), tempfile.tempdir
    try:
        kept = {name: environment[name] for name in KEPT if name in environment}
        _set_environment({**kept, "HOME": str(place.home), "TMPDIR": str(place.scratch), "LANG": "C.UTF-8"})
        tempfile.tempdir = str(place.scratch)
        os.chdir(place.root)
        yield place
    finally:
        tempfile.tempdir = scratch
        os.chdir(before)
        _set_environment(environment)
        shutil.rmtree(folder, ignore_errors=True)


def _set_environment(variables: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(variables)


def _path_placeholders(place: Place) -> dict[str, str]:
    spilled = sorted([str(path) for path in place.scratch.rglob("*") if path.is_file()], key=len, reverse=True)
    return {**dict.fromkeys(spilled, "<spill>"), str(place.root): "<cwd>", str(place.home): "<home>"}


def main(arguments: list[str]) -> int:
    """Exit status 0 when the list of outputs was written; 2 for a wrong call or an unknown family."""
    if len(arguments) != 3:
        print("usage: run_vectors.py FAMILY CASES.json OUT.json", file=sys.stderr)
        return 2
    family, cases_path, out_path = arguments[0], Path(arguments[1]).resolve(), Path(arguments[2]).resolve()
    cases = json.loads(cases_path.read_text("utf-8"))["cases"]
    try:
        run = family_run(family)
    except ModuleNotFoundError as error:
        print(f"no module runs the family {family!r}: {error}", file=sys.stderr)
        return 2
    outputs = [run_case(run, case["input"]) for case in cases]
    out_path.write_text(json.dumps(outputs), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
