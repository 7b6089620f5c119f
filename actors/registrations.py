"""What one extension registered: its handlers, tools, commands, and what it offers to frontends.

Pure data but for the functions in it, which are the extension's own and run through `guard` only.
Which of several registrations of one name counts is decided where they are read: tools, commands
and flags in the extension host, the rest in `surface.py` (EXT-30).
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import attrs

from camshaft.kernel import shapes
from camshaft.kernel.tools import SourceInfo, ToolDefinition

MESSAGE_TYPES: Final = ("user", "assistant", "assistant-thinking", "custom", "summary", "changelog")
"""Where Markdown is shown (API-10)."""
DEFAULT_MESSAGE_TYPES: Final = ("user", "assistant", "assistant-thinking")
"""Where a transformer works that names no places (API-10)."""

FlagType = Literal["boolean", "string"]


@shapes.frozen(eq=False)
class Handler:
    """One registration of one function; compared by identity."""

    hook: str
    function: Callable[..., Any]
    fail_closed: bool


@shapes.frozen(kw_only=True)
class Command:
    """A registered command."""

    name: str
    handler: Callable[..., Any]
    description: str | None = None
    complete: Callable[[str], Any] | None = None
    """Completions of its arguments; None: it has none (CMD-8)."""


@shapes.frozen(kw_only=True)
class Completion:
    """One way to go on with a command's arguments (CMD-8)."""

    value: str
    """What is written."""
    label: str
    """What is shown."""
    description: str | None = None


@shapes.frozen(kw_only=True)
class Flag:
    """A command-line flag, `--name` (API-6)."""

    name: str
    type: FlagType
    description: str | None = None
    default: bool | str | None = None


@shapes.frozen(kw_only=True)
class Shortcut:
    """A key of an interactive frontend (API-5)."""

    key: str
    """As it was written, like `ctrl+shift+p`; compared without regard to case."""
    handler: Callable[[Any], Any] = attrs.field(repr=False)
    """`handler(ctx)`, sync or async."""
    description: str | None = None


@shapes.frozen(kw_only=True)
class MarkdownTransformer:
    """Changes Markdown before it is shown (API-10)."""

    function: Callable[[str, Any], str] = attrs.field(repr=False)
    """`function(markdown, ctx)` gives the Markdown to show."""
    message_types: tuple[str, ...] = DEFAULT_MESSAGE_TYPES


@shapes.define(eq=False)
class Extension:
    """One loaded extension and everything it registered."""

    path: str
    name: str
    source_info: SourceInfo
    handlers: tuple[Handler, ...] = ()
    tools: Mapping[str, ToolDefinition] = attrs.field(factory=dict)
    commands: Mapping[str, Command] = attrs.field(factory=dict)
    flags: Mapping[str, Flag] = attrs.field(factory=dict)
    shortcuts: Mapping[str, Shortcut] = attrs.field(factory=dict)
    """By key in lower case."""
    message_renderers: Mapping[str, Callable[..., Any]] = attrs.field(factory=dict)
    """By `custom_type`."""
    entry_renderers: Mapping[str, Callable[..., Any]] = attrs.field(factory=dict)
    """By `custom_type`."""
    tool_renderers: tuple[Callable[..., Any], ...] = ()
    """Resolvers, in the order of registration."""
    markdown_transformer: MarkdownTransformer | None = None
    failed: bool = False
    """It is not part of the conversation: it did not load, or was left out."""
    left_out: bool = False
    """It loaded, but another extension replaces it, or settings that were read later do not want it (EXT-11, EXT-62)."""
    is_loaded: bool = False
    """Its factory returned."""
