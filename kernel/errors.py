"""The kernel's own errors and refusals, on one page."""

from camshaft.kernel import shapes


@shapes.frozen
class Rejection:
    """Why a command was refused; nothing has changed. Inside the kernel refusals are values."""

    why: str
    """What happened, with which value, and what was expected; for people and for matching."""


class KernelError(Exception):
    """Base of everything the pure floor raises."""


class CodecError(KernelError):
    """A value does not have the expected shape. `path` is dotted, from the outermost value."""

    def __init__(self, path: str, value: object, expected: str) -> None:
        super().__init__(f"{path or 'value'}: expected {expected}, got {_short(value)}")
        self.path = path
        self.value = value
        self.expected = expected


class MalformedJson(KernelError):
    """Bytes that are no JSON value; the text says why and where."""


class IllegalStep(KernelError):
    """A state machine was given what its table does not have: a bug, never bad input."""


def _short(value: object, length_max: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= length_max else f"{text[:length_max]}…"
