"""Prompts from piped input, `@file` arguments and messages (PRINT-7)."""

import base64
import os
from collections.abc import Sequence

import attrs

from camshaft.actors.api import ImageBlock
from camshaft.extensions_std.tools.images import image_of


class FileArgumentError(Exception):
    """An `@file` cannot be used; the text names it."""


@attrs.frozen(kw_only=True)
class Prompt:
    """What one run is started with."""

    text: str
    images: tuple[ImageBlock, ...] = ()


def prompts_of(piped: str, files: Sequence[str], messages: Sequence[str], cwd: str) -> tuple[Prompt, ...]:
    """The first prompt is piped text, files and first message without anything between them; each further message is one.

    Raises FileArgumentError.
    """
    texts, images = [piped.strip()], []
    for file in files:
        text, image = _read(os.path.abspath(os.path.join(cwd, os.path.expanduser(file))))
        texts.append(text)
        images += [] if image is None else [image]
    first = "".join([*texts, *messages[:1]])
    rest = tuple([Prompt(text=message) for message in messages[1:]])
    return (Prompt(text=first, images=tuple(images)), *rest) if first or images else rest


def _read(path: str) -> tuple[str, ImageBlock | None]:
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        raise FileArgumentError(f"File not found: {path}") from None
    except OSError as error:
        raise FileArgumentError(f"Cannot read file: {path}: {error.strerror}") from None
    return shown_file(path, content)


def shown_file(path: str, content: bytes) -> tuple[str, ImageBlock | None]:
    """How a prompt shows a file, with the image if it is one; an empty one is not shown."""
    if not content:
        return "", None
    image = image_of(content)
    if image is not None:
        data = base64.b64encode(content).decode("ascii")
        return f'<file name="{path}"></file>\n', ImageBlock(data=data, mime_type=image.mime_type)
    return f'<file name="{path}">\n{content.decode("utf-8", "replace")}\n</file>\n', None
