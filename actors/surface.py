"""What extensions offer to frontends, and the rules for using it (EXT-30, EXT-32, API-5 to API-11, ERR-7).

A frontend asks the seat for the `ExtensionSurface`, a value, and hands it to the functions here.
Shortcuts: the last extension wins, reserved keys stay the frontend's. Renderers: the first
extension wins, and one that gives nothing or raises leaves the default rendering. Markdown
transformers: all of them, one after the other; one that raises leaves the text as it is so far.
Renderers of tools: a chain, each link may ask the rest. Nothing here ever raises because of
an extension; what went wrong is part of the answer.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from camshaft.actors.actor import Failure, guard_now
from camshaft.actors.registrations import Extension, Flag, MarkdownTransformer, Shortcut
from camshaft.kernel import shapes
from camshaft.kernel.entries import CustomEntry
from camshaft.kernel.messages import CustomMessage
from camshaft.kernel.tools import ToolDefinition

RESERVED_ACTIONS: Final = (
    "app.interrupt",
    "app.clear",
    "app.exit",
    "app.suspend",
    "app.thinking.cycle",
    "app.model.cycleForward",
    "app.model.cycleBackward",
    "app.model.select",
    "app.tools.expand",
    "app.thinking.toggle",
    "app.editor.external",
    "app.message.copy",
    "app.message.followUp",
    "tui.input.submit",
    "tui.select.confirm",
    "tui.select.cancel",
    "tui.input.copy",
    "tui.editor.deleteToLineEnd",
)
"""Actions of a frontend whose keys, whatever they are, no extension can take (EXT-32)."""


@shapes.frozen(kw_only=True)
class Offer:
    """What one extension offers."""

    path: str
    flags: tuple[Flag, ...] = ()
    shortcuts: tuple[Shortcut, ...] = ()
    message_renderers: Mapping[str, Callable[..., Any]] = attrs.field(factory=dict)
    entry_renderers: Mapping[str, Callable[..., Any]] = attrs.field(factory=dict)
    tool_renderers: tuple[Callable[..., Any], ...] = ()
    markdown_transformer: MarkdownTransformer | None = None


@shapes.frozen(kw_only=True)
class ExtensionSurface:
    """What all extensions offer at one moment, in load order."""

    offers: tuple[Offer, ...] = ()

    @property
    def flags(self) -> Mapping[str, Flag]:
        """The flags a command line can name; of two extensions with one flag the last says its type (EXT-30)."""
        return {flag.name: flag for offer in self.offers for flag in offer.flags}


@shapes.frozen(kw_only=True)
class Problem:
    """What an extension did wrong, or cannot have."""

    extension_path: str
    text: str


@shapes.frozen(kw_only=True)
class BoundShortcuts:
    """Which key runs what."""

    by_key: Mapping[str, Shortcut]
    """By key in lower case."""
    problems: tuple[Problem, ...] = ()
    """Warnings about keys that are refused, or taken from somebody."""


@shapes.frozen(kw_only=True)
class RenderView:
    """How something is to be shown."""

    expanded: bool = False
    width: int | None = None
    """Columns; None: unknown."""
    theme: Any = None


@shapes.frozen(kw_only=True)
class Rendered:
    """What an extension makes of something; `value` None: show it the default way."""

    value: Any = None
    problem: Problem | None = None


@shapes.frozen(kw_only=True)
class MarkdownContext:
    """Where a piece of Markdown is shown (API-10)."""

    message_type: str
    is_streaming: bool = False
    available_width: int | None = None
    """Columns; None: unknown."""
    message_id: str | None = None
    timestamp: int | None = None


@shapes.frozen(kw_only=True)
class Transformed:
    """Markdown after every transformer."""

    text: str
    problems: tuple[Problem, ...] = ()


@shapes.frozen(kw_only=True)
class ToolRenderers:
    """How a tool's calls are shown; None: the default way."""

    shell: str | None = None
    call: Callable[..., Any] | None = None
    result: Callable[..., Any] | None = None


def surface_of(extensions: Iterable[Extension]) -> ExtensionSurface:
    """What these extensions offer now."""
    return ExtensionSurface(
        offers=tuple(
            [
                Offer(
                    path=each.path,
                    flags=tuple(each.flags.values()),
                    shortcuts=tuple(each.shortcuts.values()),
                    message_renderers=each.message_renderers,
                    entry_renderers=each.entry_renderers,
                    tool_renderers=each.tool_renderers,
                    markdown_transformer=each.markdown_transformer,
                )
                for each in extensions
            ]
        )
    )


def bound_shortcuts(surface: ExtensionSurface, keys: Mapping[str, Sequence[str]]) -> BoundShortcuts:
    """The shortcuts that work in a frontend whose own actions have these keys, and what has to be told (EXT-30, EXT-32)."""
    own = {key.lower(): action for action, bound in keys.items() for key in bound}
    own |= {key.lower(): action for action, bound in keys.items() if action in RESERVED_ACTIONS for key in bound}
    by_key: dict[str, Shortcut] = {}
    owners: dict[str, str] = {}
    problems: list[Problem] = []
    for offer in surface.offers:
        for shortcut in offer.shortcuts:
            key = shortcut.key.lower()
            action = own.get(key)
            if action in RESERVED_ACTIONS:
                problems.append(
                    Problem(extension_path=offer.path, text=f'Shortcut "{shortcut.key}" is reserved for {action}; it is skipped')
                )
                continue
            if key in owners:
                text = f'Shortcut "{shortcut.key}" replaces that of {owners[key]}'
                problems.append(Problem(extension_path=offer.path, text=text))
            elif action is not None:
                problems.append(Problem(extension_path=offer.path, text=f'Shortcut "{shortcut.key}" replaces the key of {action}'))
            by_key[key], owners[key] = shortcut, offer.path
    return BoundShortcuts(by_key=by_key, problems=tuple(problems))


def render_message(surface: ExtensionSurface, message: CustomMessage, view: RenderView | None = None) -> Rendered:
    """What the renderer of the message's `custom_type` makes of it."""
    return _rendered([(offer.path, offer.message_renderers.get(message.custom_type)) for offer in surface.offers], message, view)


def render_entry(surface: ExtensionSurface, entry: CustomEntry, view: RenderView | None = None) -> Rendered:
    """What the renderer of the entry's `custom_type` makes of it."""
    return _rendered([(offer.path, offer.entry_renderers.get(entry.custom_type)) for offer in surface.offers], entry, view)


def transform_markdown(surface: ExtensionSurface, text: str, ctx: MarkdownContext) -> Transformed:
    """The text after the transformers that work at `ctx.message_type`, in load order."""
    problems: list[Problem] = []
    for offer in surface.offers:
        transformer = offer.markdown_transformer
        if transformer is None or ctx.message_type not in transformer.message_types:
            continue
        outcome = guard_now(transformer.function, text, ctx)
        if isinstance(outcome, Failure):
            problems.append(Problem(extension_path=offer.path, text=outcome.text))
        elif isinstance(outcome.value, str):
            text = outcome.value
        else:
            found = f"the Markdown transformer returned {outcome.value!r}; expected a text"
            problems.append(Problem(extension_path=offer.path, text=found))
    return Transformed(text=text, problems=tuple(problems))


def tool_renderers(surface: ExtensionSurface, tool: ToolDefinition) -> Rendered:
    """The ToolRenderers of a tool as the chain of resolvers gives them, ending with the tool's own (API-11)."""
    chain = [(offer.path, resolver) for offer in surface.offers for resolver in offer.tool_renderers]
    problems: list[Problem] = []

    def rest(position: int) -> ToolRenderers:
        if position == len(chain):
            return ToolRenderers(shell=tool.render_shell, call=tool.render_call, result=tool.render_result)
        path, resolver = chain[position]
        outcome = guard_now(resolver, tool.name, lambda: rest(position + 1))
        if isinstance(outcome, Failure):
            problems.append(Problem(extension_path=path, text=outcome.text))
        elif isinstance(outcome.value, ToolRenderers):
            return outcome.value
        elif outcome.value is not None:
            found = f"the renderer of tool {tool.name!r} is {outcome.value!r}; expected ToolRenderers(...) or None"
            problems.append(Problem(extension_path=path, text=found))
        return rest(position + 1)

    value = rest(0)
    return Rendered(value=value, problem=problems[0] if problems else None)


def _rendered(candidates: Sequence[tuple[str, Callable[..., Any] | None]], shown: Any, view: RenderView | None) -> Rendered:
    for path, renderer in candidates:
        if renderer is None:
            continue
        outcome = guard_now(renderer, shown, view or RenderView())
        if isinstance(outcome, Failure):
            return Rendered(problem=Problem(extension_path=path, text=outcome.text))
        return Rendered(value=outcome.value)
    return Rendered()
