"""What a tool raises: a text for the model."""

import errno

from camshaft.actors.api import Signal

ABORTED = "Operation aborted"
"""TOOL-56."""


class ToolFailure(Exception):
    """A call failed; the message is the error result (TOOL-25)."""


def raise_if_aborted(signal: Signal) -> None:
    """Raises ToolFailure if an abort was requested."""
    if signal.cancelled:
        raise ToolFailure(ABORTED)


def error_code(error: OSError) -> str:
    """`ENOENT` and the like."""
    return errno.errorcode.get(error.errno or 0, f"errno {error.errno}")


def os_failure(doing: str, path: str, error: OSError) -> ToolFailure:
    """The operating system's refusal as a text (TOOL-65): what was tried, with which path, why not."""
    return ToolFailure(f"Cannot {doing} {path!r}: {error.strerror or error} ({error_code(error)})")
