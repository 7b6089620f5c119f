"""What an extension author is told who registered or asked for something that cannot be."""

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
