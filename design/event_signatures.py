"""Writes `actors/event_signatures.py` from the hook table: what a handler of each hook is given and may return.

    python design/event_signatures.py

A house test compares the file with the table, so that an editor and a type checker are told what the dispatcher does.
"""

from pathlib import Path
from typing import Final

from camshaft.kernel.hooks import HOOKS

FILE: Final = Path(__file__).parent.parent / "actors" / "event_signatures.py"

HEADER: Final = '''"""What a handler of each hook is given and may return, for editors and type checkers.

One signature for each row of the hook table, from which `design/event_signatures.py` writes this file.
Nothing here is run: `ExtensionAPI.on` does what the table says.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, overload

from camshaft.actors.contexts import ExtensionContext
from camshaft.actors.trust_context import TrustContext
{imports}
C = TypeVar("C")
E = TypeVar("E")
R = TypeVar("R")

Result: TypeAlias = R | Mapping[str, Any] | None
"""What a handler may return: a result, a dict with its fields, or nothing."""
Handles: TypeAlias = Callable[[E, C], object]
"""A handler whose answer counts for nothing."""
Answers: TypeAlias = Callable[[E, C], Result[R] | Awaitable[Result[R]]]
"""A handler whose answer counts; sync or async."""
Unsubscribe: TypeAlias = Callable[[], None]
"""Ends the registration; idempotent."""


class On(Protocol):
    """`on(event, handler)`: calls the handler at every event of that name, and returns its unsubscribe."""
'''


def text() -> str:
    """The whole file."""
    classes = {each for row in HOOKS.values() for each in (row.event, row.result) if each not in (None, object)}
    by_module: dict[str, list[str]] = {}
    for each in classes:
        by_module.setdefault(each.__module__, []).append(each.__name__)
    imports = "".join([_import(module, names) for module, names in sorted(by_module.items())])
    return HEADER.replace("{imports}", imports) + "".join([_signature(name) for name in HOOKS])


def _import(module: str, names: list[str]) -> str:
    return f"from {module} import (\n" + "".join([f"    {name},\n" for name in sorted(names)]) + ")\n"


def _signature(name: str) -> str:
    row = HOOKS[name]
    context = "TrustContext" if name == "project_trust" else "ExtensionContext"
    given = f"{row.event.__name__}, {context}"
    plain = row.result is None or row.result is object
    handler = f"Handles[{given}]" if row.result is None or plain else f"Answers[{given}, {row.result.__name__}]"
    closing = ", *, fail_closed: bool = False" if row.fail_closed is not None else ""
    return f'\n    @overload\n    def __call__(self, event: Literal["{name}"], handler: {handler}, /{closing}) -> Unsubscribe: ...\n'


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
