"""From the content blocks of a prompt to a text and images.

What the blocks say stays in their order. A file that is linked or embedded is named in that place, and its content stands
before the text, as with `@file` on the command line (PRINT-7); behind it, if the text calls a command, which has to come first.
"""

import base64
import binascii
import os
import stat
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import attrs
import trio

from camshaft.actors.api import ImageBlock, Json
from camshaft.extensions_std.frontends.acp.records import INVALID_PARAMS, RpcError
from camshaft.extensions_std.frontends.file_arguments import Prompt, shown_file

LINKED_BYTES_MAX: Final = 256 * 1024
"""Of a linked file whose content is put into the prompt; a larger one is only named, and the model may read it."""


@attrs.define
class _Gathered:
    texts: list[str] = attrs.field(factory=list)
    files: list[str] = attrs.field(factory=list)
    images: list[ImageBlock] = attrs.field(factory=list)

    def take_file(self, path: str, content: bytes) -> None:
        text, image = shown_file(path, content)
        self.files.append(text)
        self.images += [] if image is None else [image]


async def prompt_of(blocks: tuple[Json, ...], cwd: str) -> Prompt:
    """The prompt. Raises RpcError for a block that cannot be used, and if nothing is said."""
    found = _Gathered()
    for number, block in enumerate(blocks):
        try:
            await _take(found, block, cwd)
        except (KeyError, TypeError, ValueError) as error:
            raise RpcError(INVALID_PARAMS, f"prompt.{number}: {_said(error)}") from None
    text, files = "".join(found.texts), "".join(found.files)
    if not (text.strip() or files or found.images):
        raise RpcError(INVALID_PARAMS, "prompt: expected a text, a file or an image")
    whole = f"{text}\n{files}" if files and text.startswith("/") else files + text
    return Prompt(text=whole, images=tuple(found.images))


def _said(error: Exception) -> str:
    return f"{error.args[0]}: it is missing" if isinstance(error, KeyError) else str(error)


async def _take(found: _Gathered, block: Json, cwd: str) -> None:
    if not isinstance(block, dict):
        raise ValueError("expected an object")
    match block.get("type"):
        case "text":
            found.texts.append(_text(block, "text"))
        case "image":
            found.images.append(ImageBlock(data=_base64(block, "data"), mime_type=_text(block, "mimeType")))
        case "resource_link":
            await _take_link(found, _text(block, "uri"), _text(block, "name"), cwd)
        case "resource":
            _take_resource(found, block["resource"], cwd)
        case other:
            raise ValueError(f"blocks of type {other!r} are not taken")


async def _take_link(found: _Gathered, uri: str, name: str, cwd: str) -> None:
    path = _path_of(uri)
    if path is None:
        found.texts.append(f"[{name}]({uri})")
        return
    found.texts.append(_shown(path, cwd))
    content = await trio.to_thread.run_sync(_small_text_or_image, path)
    if content is not None:
        found.take_file(path, content)


def _take_resource(found: _Gathered, resource: Any, cwd: str) -> None:
    if not isinstance(resource, dict):
        raise ValueError("resource: expected an object")
    uri = _text(resource, "uri")
    path = _path_of(uri)
    found.texts.append(uri if path is None else _shown(path, cwd))
    if "text" in resource:
        found.files.append(f'<file name="{path or uri}">\n{_text(resource, "text")}\n</file>\n')
        return
    content = base64.b64decode(_base64(resource, "blob"))
    text, image = shown_file(path or uri, content)
    if image is not None:
        found.files.append(text)
        found.images.append(image)


def _path_of(uri: str) -> str | None:
    """The path of a local file; None for anything else. A fragment, such as a range of lines, is left out."""
    parts = urlsplit(uri)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return os.path.normpath(unquote(parts.path)) if parts.path.startswith("/") and "\0" not in unquote(parts.path) else None
    return os.path.normpath(uri) if uri.startswith("/") and "\0" not in uri else None


def _shown(path: str, cwd: str) -> str:
    """How the text names it: relative inside the working directory."""
    return os.path.relpath(path, cwd) if path.startswith(os.path.join(cwd, "")) else path


def _small_text_or_image(path: str) -> bytes | None:
    """The content of a file that may be put into a prompt; None for what is no file, too large, or neither text nor image."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LINKED_BYTES_MAX:
            return None
        with open(path, "rb") as file:
            content = file.read(LINKED_BYTES_MAX + 1)
    except OSError:
        return None
    _text, image = shown_file(path, content)
    return content if image is not None or b"\0" not in content else None


def _text(block: dict[str, Any], field: str) -> str:
    value = block[field]
    if not isinstance(value, str):
        raise ValueError(f"{field}: expected a text")
    return value


def _base64(block: dict[str, Any], field: str) -> str:
    value = _text(block, field)
    try:
        base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(f"{field}: expected base64 ({error})") from None
    return value
