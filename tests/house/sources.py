"""What the house rules look at: the files of the project as they stand, and their syntax trees."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
PRODUCT: Final = ("kernel", "actors", "extensions_std", "src/camshaft")
"""Folders of the product. The links in src/camshaft lead to the first three, so only its own files count."""
PYTHON: Final = (*PRODUCT, "bench", "design", "tests")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def files(*folders: str) -> list[str]:
    """Python files under the folders, relative to the root, sorted; links and data are not followed."""
    found = [path for folder in folders for path in _walk(ROOT / folder)]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def _walk(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.is_symlink() or path.name in ("__pycache__", "data", "demo_project"):
            continue
        if path.is_dir():
            yield from _walk(path)
        elif path.suffix == ".py":
            yield path


def text(file: str) -> str:
    """The text of a file of the project."""
    return (ROOT / file).read_text(encoding="utf-8")


@cache
def tree(file: str) -> ast.Module:
    """The syntax tree of a file of the project."""
    return ast.parse(text(file), filename=file)


def project_files() -> list[str]:
    """Every text file that belongs to the project, whether committed yet or not, but for copies of shared data."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted(file for file in listed if "/data/" not in file and (ROOT / file).is_file() and not (ROOT / file).is_symlink())


def base_name(node: ast.expr) -> str:
    """The last part of a base class or decorator as written: `Generic` for `typing.Generic[T]`."""
    match node:
        case ast.Subscript(value=inner):
            return base_name(inner)
        case ast.Call(func=inner):
            return base_name(inner)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ast.unparse(node)


def is_protocol(node: ast.ClassDef) -> bool:
    """Whether the class is a seam."""
    return any(base_name(base) == "Protocol" for base in node.bases)


def functions(module: ast.Module) -> list[Function]:
    """Every function and method, nested ones too."""
    return [node for node in ast.walk(module) if isinstance(node, Function)]
