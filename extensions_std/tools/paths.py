"""Paths as models and people write them, made absolute (TOOL-50)."""

import os
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from camshaft.extensions_std.tools.failures import ToolFailure

UNICODE_SPACES: Final = re.compile("[\u00a0\u2000-\u200a\u202f\u205f\u3000]")
"""Spaces that are typed by nobody on purpose."""

_TIME_SUFFIX: Final = re.compile(r" (AM|PM)\.", re.IGNORECASE)
_APOSTROPHE: Final = "'"
_CURLY_APOSTROPHE: Final = "\u2019"
_NARROW_SPACE: Final = "\u202f"


def resolve_path(path: str, cwd: str, environment: Mapping[str, str]) -> str:
    """The absolute path meant by `path`, seen from `cwd`; `..` is resolved in the text, links are not.

    Raises ToolFailure for a file URL that names another computer, and for a text no path can hold.
    """
    text = UNICODE_SPACES.sub(" ", path).removeprefix("@")
    if text == "~" or text.startswith("~/"):
        text = environment.get("HOME", "~") + text[1:]
    elif text.startswith("file://"):
        text = _path_of_url(text)
    if "\0" in text:
        raise ToolFailure(f"Bad path {path!r}: it contains a NUL character")
    try:
        os.fsencode(text)
    except UnicodeEncodeError as error:
        raise ToolFailure(f"Bad path {path!r}: it contains half a character") from error
    return "/" + os.path.normpath(os.path.join(cwd, text)).lstrip("/")


def path_of(params: Mapping[str, Any], ctx: Any, cwd: str | None) -> str:
    """The absolute path of a call's `path`; none or an empty one is the working directory.

    Relative to the context's working directory, or else to `cwd`, for which the tool was made.
    """
    return resolve_path(params.get("path") or "", ctx.cwd or cwd or "/", ctx.world.environment)


def name_variants(path: str) -> Iterator[str]:
    """Other spellings under which a file may exist: names made by the system, of screenshots and the like (TOOL-50)."""
    narrow = _TIME_SUFFIX.sub(f"{_NARROW_SPACE}\\1.", path)
    decomposed = unicodedata.normalize("NFD", path)
    curly = path.replace(_APOSTROPHE, _CURLY_APOSTROPHE)
    for variant in (narrow, decomposed, curly, decomposed.replace(_APOSTROPHE, _CURLY_APOSTROPHE)):
        if variant != path:
            yield variant


def _path_of_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise ToolFailure(f"Bad path {url!r}: a file URL cannot name another computer ({parts.netloc!r})")
    return unquote(parts.path)
