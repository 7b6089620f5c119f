"""JSON-RPC 2.0 as the protocol uses it: one record a line, requests, answers, notifications, errors."""

import re
from collections.abc import Callable
from typing import Any, Final

import attrs

from camshaft.actors.api import dumps
from camshaft.actors.host import CamshaftError

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
AUTH_REQUIRED: Final = -32000
NOT_FOUND: Final = -32002
"""Codes of JSON-RPC, and two of the protocol: no model can be used; a session there is not."""

MESSAGES: Final = {
    PARSE_ERROR: "Parse error",
    INVALID_REQUEST: "Invalid request",
    METHOD_NOT_FOUND: "Method not found",
    INVALID_PARAMS: "Invalid params",
    INTERNAL_ERROR: "Internal error",
    AUTH_REQUIRED: "Authentication required",
    NOT_FOUND: "Resource not found",
}

_SURROGATES: Final = re.compile(rb"((?<!\\)(?:\\\\)*)(\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|\\ud[89a-f][0-9a-f]{2})")
"""Escapes of halves of characters, in pairs or alone."""

Put = Callable[[bytes], None]
"""Puts a line where it is written in its turn."""


class RpcError(CamshaftError):
    """What a request is answered with when it did not do what it was asked; `details` is for people."""

    def __init__(self, code: int, details: str, *, put: Put | None = None) -> None:
        super().__init__(details)
        self.code = code
        self.put = put
        """Where the answer has to stand behind what was told so far; None: anywhere."""


@attrs.frozen
class Behind:
    """An answer that stands behind what was told so far."""

    value: Any
    put: Put


def line_of(record: dict[str, Any]) -> bytes:
    """The line of a record. Halves of characters, which no other reader takes, become U+FFFD."""
    line = dumps(record)
    if b"\\ud" in line:
        line = _SURROGATES.sub(lambda found: found[1] + (found[2] if len(found[2]) == 12 else b"\xef\xbf\xbd"), line)
    return line + b"\n"


def request(id: int, method: str, params: dict[str, Any]) -> bytes:
    """A question to the client."""
    return line_of({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def notification(method: str, params: dict[str, Any]) -> bytes:
    """Something that is not answered."""
    return line_of({"jsonrpc": "2.0", "method": method, "params": params})


def result(id: object, value: Any) -> bytes:
    """The answer to a request that did what it was asked."""
    return line_of({"jsonrpc": "2.0", "id": id, "result": value})


def error(id: object, code: int, details: str) -> bytes:
    """The answer to one that did not; what is wrong in it stands in its data, and for clients that show no more, in its message."""
    message = MESSAGES.get(code, "Error")
    return line_of({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": f"{message}: {details}", "data": {"details": details}}})
