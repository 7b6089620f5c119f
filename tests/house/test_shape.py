"""How the code is cut: docstrings, sizes, classes, module state, and what the kernel may not do."""

import ast
import builtins
from functools import cache
from typing import Final

import pytest

from tests.house.sources import PRODUCT, PYTHON, Function, base_name, files, functions, is_protocol, text, tree

LINES_MAX: Final = 400
FUNCTION_LINES_MAX: Final = 60

ABSTRACT: Final = {"Protocol", "Generic", "Enum", "StrEnum", "IntEnum", "NamedTuple", "TypedDict"}
"""Bases without behaviour of ours."""
INHERITS: Final = {
    ("kernel/persistent.py", "dict"): "encoders and isinstance must take a FrozenDict for a dict",
    ("actors/contexts.py", "ExtensionContext"): "an editor must see every member of a tool's and a command's context",
    ("actors/contexts.py", "CommandContext"): "as above, for what a replaced session hands on",
    ("kernel/codec.py", "Struct"): "msgspec decodes into subclasses of its Struct",
    ("kernel/view.py", "Sequence"): "everybody must take a view for the sequence that it is",
    ("kernel/session_file.py", "Struct"): "msgspec decodes into subclasses of its Struct",
}
PURE_FILES: Final = [file for file in files("kernel", "actors") if file.startswith("kernel/") or file == "actors/session.py"]
MUTABLE: Final = {
    *("CapacityLimiter", "Condition", "Counter", "Event", "Lock", "OrderedDict", "Semaphore", "WeakKeyDictionary"),
    *("WeakSet", "WeakValueDictionary", "count", "defaultdict", "deque", "dict", "list", "set"),
}
"""Made by a call, and changed later by whoever has it: a `Final` in front changes nothing."""
IMPURE_CALLS: Final = {"open", "print", "input", "exec", "eval", "breakpoint", "now", "utcnow", "today", "getenv"}


@pytest.mark.parametrize("file", files(*PRODUCT, "bench", "design"))
def test_every_public_name_has_a_docstring(file: str) -> None:
    module = tree(file)

    silent = [name for name, node in _public(module) if not (ast.get_docstring(node) or "").strip()]

    assert silent == [], f"{file}: say what these are or give"


@pytest.mark.parametrize("file", files(*PYTHON))
def test_a_file_of_more_than_400_lines_says_why_in_its_header(file: str) -> None:
    length = len(text(file).splitlines())

    explained = f"{LINES_MAX} lines" in (ast.get_docstring(tree(file)) or "")

    assert length <= LINES_MAX or explained, (
        f"{file} has {length} lines: split it, or end the header with 'Longer than {LINES_MAX} lines because …'"
    )


@pytest.mark.parametrize("file", files(*PRODUCT, "bench", "design"))
def test_a_function_fits_a_screen(file: str) -> None:
    long = {node.name: length for node in functions(tree(file)) if (length := _length(node)) > FUNCTION_LINES_MAX}

    assert long == {}, f"{file}: at most {FUNCTION_LINES_MAX} lines; branches in the parent, pure work in the leaves"


@pytest.mark.parametrize("file", files(*PRODUCT, "bench", "design"))
def test_classes_inherit_no_behaviour(file: str) -> None:
    allowed = ABSTRACT | _exceptions() | {base for where, base in INHERITS if where == file}

    heirs = [
        f"{node.name}({base_name(base)})"
        for node in ast.walk(tree(file))
        if isinstance(node, ast.ClassDef)
        for base in node.bases
        if base_name(base) not in allowed
    ]

    assert heirs == [], f"{file}: a class is data or owns a lifetime; seams are a Protocol or a callable"


@pytest.mark.parametrize("file", files(*PRODUCT, "bench", "design"))
def test_modules_hold_no_state(file: str) -> None:
    made = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
    changing = [
        ast.unparse(node.targets[0])
        for node in tree(file).body
        if isinstance(node, ast.Assign) and isinstance(node.value, made) and ast.unparse(node.targets[0]) != "__all__"
    ]
    changing += [
        ast.unparse(node.value)
        for node in tree(file).body
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call) and base_name(node.value.func) in MUTABLE
    ]
    changing += [f"global {', '.join(node.names)}" for node in ast.walk(tree(file)) if isinstance(node, ast.Global)]

    assert changing == [], f"{file}: a table is annotated Final, a state has an owner"


@pytest.mark.parametrize("file", files(*PRODUCT))
def test_only_guard_catches_everything(file: str) -> None:
    wide = [
        f"line {node.lineno}: {ast.unparse(node.type) if node.type else 'bare except'}"
        for node in ast.walk(tree(file))
        if isinstance(node, ast.ExceptHandler) and _catches_everything(node)
    ]

    assert wide == [] or file == "actors/actor.py", f"{file}: name what is expected; foreign code runs in guard (actors/actor.py)"


@pytest.mark.parametrize("file", files(*PRODUCT, "bench"))
def test_a_leading_underscore_never_crosses_a_file(file: str) -> None:
    private = [
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree(file))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("camshaft")
        for alias in node.names
        if alias.name.startswith("_") and not alias.name.endswith("__")
    ]

    assert private == [], f"{file}: what another file needs is public"


@pytest.mark.parametrize("file", PURE_FILES)
def test_the_pure_floor_and_the_session_never_await(file: str) -> None:
    seams = {id(inner) for node in ast.walk(tree(file)) if isinstance(node, ast.ClassDef) and is_protocol(node) for inner in node.body}
    waits = [
        f"line {node.lineno}"
        for node in ast.walk(tree(file))
        if isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith) or (isinstance(node, ast.AsyncFunctionDef) and id(node) not in seams)
    ]

    assert waits == [], f"{file}: only a Protocol may name an async function here"


@pytest.mark.parametrize("file", files("kernel"))
def test_the_kernel_asks_no_clock_and_no_file(file: str) -> None:
    asked = [
        f"line {node.lineno}: {base_name(node.func)}()"
        for node in ast.walk(tree(file))
        if isinstance(node, ast.Call) and base_name(node.func) in IMPURE_CALLS
    ]

    assert asked == [], f"{file}: values come as arguments"


def _public(module: ast.Module) -> list[tuple[str, ast.Module | ast.ClassDef | Function]]:
    found: list[tuple[str, ast.Module | ast.ClassDef | Function]] = [("the module", module)]
    for node in module.body:
        if isinstance(node, ast.ClassDef | Function) and not node.name.startswith("_"):
            found.append((node.name, node))
            members = node.body if isinstance(node, ast.ClassDef) else []
            found += [
                (f"{node.name}.{member.name}", member)
                for member in members
                if isinstance(member, ast.ClassDef | Function) and not member.name.startswith("_") and not _repeats(member)
            ]
    return found


def _repeats(node: ast.ClassDef | Function) -> bool:
    """An overload or a setter: the name is documented elsewhere."""
    return any(base_name(each) in ("overload", "setter") for each in node.decorator_list)


def _length(node: Function) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


@cache
def _exceptions() -> set[str]:
    """Names of exception classes: the built-in ones, and those of the project and its libraries, which are called so."""
    known = {name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)}
    heirs = [node for file in files(*PRODUCT) for node in ast.walk(tree(file)) if isinstance(node, ast.ClassDef)]
    while new := {node.name for node in heirs if node.name not in known and any(base_name(base) in known for base in node.bases)}:
        known |= new
    return known


def _catches_everything(node: ast.ExceptHandler) -> bool:
    caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    return any(each is None or base_name(each) in ("Exception", "BaseException") for each in caught)
