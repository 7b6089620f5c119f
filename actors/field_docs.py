"""Shows the docstrings of fields in `help()`.

A text below a field is for readers of the source; Python throws it away. A class that is
handed to `show_fields` gets its help text from the source when somebody asks for it, so that
nothing is written twice and importing costs nothing.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterable
from typing import Any

import attrs

from camshaft.actors.actor import Failure, guard_now
from camshaft.kernel import shapes


@shapes.frozen(eq=False)
class FieldDocs:
    """Stands for the docstring of a class."""

    _own: str

    def __get__(self, _instance: object, owner: type) -> str:
        """The class's own text, then each field with what stands below it; only the first where there is no source."""
        found = guard_now(field_docs, owner)
        if isinstance(found, Failure) or not found.value:
            return self._own
        rows = [f"    {name}: {text}" for name, text in found.value.items()]
        return "\n".join([self._own.rstrip(), "", "Fields:", *rows])


def field_docs(owner: type) -> dict[str, str]:
    """The public fields of a class that have a text, each as one line. Raises OSError where there is no source."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    assert isinstance(node, ast.ClassDef)
    found = {}
    for field, below in zip(node.body, node.body[1:], strict=False):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name) or field.target.id.startswith("_"):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
            found[field.target.id] = " ".join(below.value.value.split())
    return found


def show_fields(names: Iterable[str], values: dict[str, Any]) -> None:
    """Lets the data classes among these show their fields; doing it twice changes nothing."""
    for name in names:
        value = values[name]
        if isinstance(value, type) and attrs.has(value) and not isinstance(vars(value).get("__doc__"), FieldDocs):
            value.__doc__ = FieldDocs(value.__doc__ or "")  # type: ignore[assignment]  # a descriptor gives the text
