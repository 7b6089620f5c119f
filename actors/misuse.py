"""What an extension author is told who registered or asked for something that cannot be."""

import difflib
import inspect
from collections.abc import Iterable, Sequence

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


def require_takes(function: object, what: str, *arguments: object) -> None:
    """Raises ExtensionMisuse if `function` is none, or one that cannot be called with so many arguments by position."""
    if not callable(function):
        raise ExtensionMisuse(f"{what} is {function!r}; expected a function")
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise ExtensionMisuse(f"{what} contains a yield, so calling it runs nothing of it; return the answer instead")
    try:
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return  # a function in C that does not say
    try:
        signature.bind(*arguments)
    except TypeError:
        given = ", ".join([each if isinstance(each, str) else repr(each) for each in arguments])
        raise ExtensionMisuse(f"{what} takes {_shown(signature)}; it is called with ({given}), so it must take that") from None


def require_task(function: object, arguments: Sequence[object]) -> None:
    """Raises ExtensionMisuse if `function` cannot be called with these arguments; a coroutine is ended, and named."""
    if inspect.iscoroutine(function):
        function.close()  # Python would warn that it was never awaited.
        name = function.__name__
        raise ExtensionMisuse(
            f"start_task was given the result of {name}(...); give the function, then its arguments: start_task({name}, ...)"
        )
    require_takes(function, "the function of start_task", *[repr(each) if isinstance(each, str) else each for each in arguments])


def _shown(signature: inspect.Signature) -> str:
    """The names only."""
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    return str(inspect.Signature(bare))


def meant(given: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)`, if one or two of the known names are nearly the given one; else nothing."""
    near = difflib.get_close_matches(given, [*known], n=2, cutoff=0.8)
    return f" (did you mean {' or '.join([repr(each) for each in near])}?)" if near else ""
