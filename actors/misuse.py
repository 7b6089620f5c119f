"""What an extension author is told who registered or asked for something that cannot be."""

import difflib
from collections.abc import Iterable

from camshaft.actors.errors import CamshaftError


class ExtensionMisuse(CamshaftError):
    """An extension registered or asked for something that cannot be; the text says what was expected."""


def require_callable(given: object, what: str) -> None:
    """Raises ExtensionMisuse if `given` is no function."""
    if not callable(given):
        raise ExtensionMisuse(f"{what} is {given!r}; expected a function")


def require_text(given: object, what: str) -> None:
    """Raises ExtensionMisuse if `given` is no text, or an empty one."""
    if not isinstance(given, str) or not given:
        raise ExtensionMisuse(f"{what} is {given!r}; expected a text")


def meant(given: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)`, if one or two of the known names are nearly the given one; else nothing."""
    near = difflib.get_close_matches(given, [*known], n=2, cutoff=0.8)
    return f" (did you mean {' or '.join([repr(each) for each in near])}?)" if near else ""
