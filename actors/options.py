"""What a kernel and a conversation are opened with, and what is wrong with it.

The fields are checked when a conversation is opened, all at once, by one table: a mistake that
a type checker would have found is told by the name of the option instead of failing later in
the middle of something.
"""

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, get_args

import attrs

from camshaft.actors.config_provider import BuildProvider
from camshaft.actors.errors import InvalidOptions
from camshaft.actors.event_stream import LISTENER_EXPECTED, Follower, Listener, is_listener
from camshaft.actors.loading import (
    BuiltinExtension,
    ExtensionFile,
    ExtensionSource,
    InlineExtension,
    InstalledExtension,
    LoadError,
    LoadWarning,
    Source,
)
from camshaft.actors.logs.port import Durability
from camshaft.actors.opening import MemorySession, NewSession, OpenSession, Target
from camshaft.actors.overlaid_provider import Overlay
from camshaft.actors.provider_refresh import RefreshStore
from camshaft.actors.providers import Provider
from camshaft.actors.scoped import ScopedModel
from camshaft.actors.signal import ABORT_GRACE_S
from camshaft.actors.ui_port import UiPort, WatchedUi
from camshaft.kernel import shapes
from camshaft.kernel.models import THINKING_LEVELS
from camshaft.kernel.prompt import ContextFile
from camshaft.kernel.settings import BranchSummarySettings, CompactionSettings, ImageSettings, RetrySettings, Settings
from camshaft.kernel.skills import Skill
from camshaft.kernel.templates import PromptTemplate
from camshaft.kernel.tools import ToolDefinition

if TYPE_CHECKING:
    from camshaft.actors.preloading import Preloaded  # which needs the limits below


@shapes.frozen(kw_only=True)
class Limits:
    """Bounds of one kernel; None means none."""

    abort_grace_s: float | None = ABORT_GRACE_S
    """Seconds between asking what runs to stop and ending it by force (LOOP-71)."""
    continuations_max: int | None = None
    """Continuations extensions may ask for in one run (BND-35)."""
    hook_deadline_s: float | None = None
    """Seconds an async handler or router may take; the clock stands still while it waits for a dialog."""
    strikes_max: int | None = 3
    """Failures in a row of one handler until its extension is quarantined."""
    extension_actions_max: int | None = 1_000
    """Messages, entries, labels, names and notifications of one extension within a second; more are refused to it."""
    shutdown_s: float = 5.0
    """Seconds for the handlers of `session_shutdown` (RPC-95): one that hangs must not keep a process from ending."""
    watchdog_s: float | None = None
    """Seconds until a sync handler that does not return is named, by a thread; nothing can end it."""

    @classmethod
    def unattended(cls, **others: Any) -> "Limits":
        """For jobs without a user (SDK-25): 50 continuations, 60 s for a handler, 30 s until one that spins is named."""
        return cls(**{"continuations_max": 50, "hook_deadline_s": 60.0, "watchdog_s": 30.0, **others})


class Services(Protocol):
    """Where the options of a conversation come from, if it is to follow files: asked at a reload and for another session."""

    def check(self, cwd: str) -> None:
        """Raises what would keep a conversation from running in `cwd`, before anything of the present one ends (EXT-44)."""
        ...

    async def renewed(self, options: "OpenOptions", reason: str) -> "OpenOptions":
        """The options with what holds in `options.cwd` now; `reason` as in `session_start`. What they open is not looked at."""
        ...


@shapes.frozen(kw_only=True)
class OpenOptions:
    """What a conversation is opened with."""

    cwd: str
    """Working directory; relative to the process's at this moment."""
    agent_dir: str | None = None
    """Folder of user files and sessions; default `~/.camshaft`."""
    session: Target = MemorySession()
    """Where the session is kept: `NewSession()`, `OpenSession(path=...)` or `MemorySession()`."""
    settings: Settings = Settings()
    """The effective settings; no file is read."""
    providers: tuple[Provider, ...] = ()
    """Where models are."""
    provider_faults: tuple[str, ...] = ()
    """What is wrong with the configuration of the providers; extensions read it (MOD-41)."""
    build_provider: BuildProvider | None = None
    """Makes an adapter of the config that an extension registers; None: only provider objects can be registered."""
    model_overlay: Overlay | None = None
    """Lays what the user's files say over the models of provider objects that extensions register (PRV-16); None: nothing does."""
    model_lists: RefreshStore | None = None
    """Where lists of models that providers found are kept for the next start; None: they end with the conversation (PRV-17)."""
    extensions: tuple[Source, ...] = ()
    """In load order, which is also handler order."""
    preloaded: "Preloaded | None" = None
    """From `Kernel.preload`: what of `extensions` was loaded there is used as it is (EXT-62), once, and in the folder it was loaded for."""
    builtin_tools: tuple[ToolDefinition, ...] = ()
    """Tools of the host; an extension's tool of the same name replaces one (TOOL-1)."""
    tools: tuple[str, ...] | None = None
    """Allowlist with `*` patterns, or only `+name`/`-name` (EXPO-30)."""
    exclude_tools: tuple[str, ...] = ()
    """Names and patterns of tools that are never there (EXPO-30)."""
    no_tools: Literal["all", "builtin"] | None = None
    """`all`: start with none active; `builtin`: without the default built-ins (EXPO-31)."""
    system_prompt: str | None = None
    """Replaces the text of the system prompt; what tools and context files add stays."""
    append_system_prompt: tuple[str, ...] = ()
    """Texts added to the system prompt."""
    context_files: tuple[ContextFile, ...] = ()
    """Files with instructions for the project."""
    skills: tuple[Skill, ...] = ()
    """What `/skill:name` and the model may load; of two with one name the first counts (RES-1)."""
    templates: tuple[PromptTemplate, ...] = ()
    """What `/name` is expanded with; of two with one name the first counts (RES-1)."""
    model: str | None = None
    """`provider/id`, or an id only one provider has."""
    scoped_models: tuple[ScopedModel, ...] = ()
    """The models that are cycled through; empty: those of `model_patterns` (SDK-13)."""
    model_patterns: tuple[str, ...] | None = None
    """Patterns of the models to start with and to cycle through (MOD-96); None: those of the settings."""
    thinking_level: str | None = None
    """One of THINKING_LEVELS; None: the session's, else the settings', else `medium` (MOD-97)."""
    durability: Durability = "commit"
    """When a session file is synced: at each `commit`, when a run has `settle`d, or `none`."""
    resume: Literal["report"] = "report"
    """What opening does with an unfinished run: report it as a diagnostic, and nothing else."""
    listeners: tuple[Listener, ...] = ()
    """Subscribed before extensions load, so that they hear what happens while the conversation opens."""
    followers: tuple[Follower[Any], ...] = ()
    """Given every event from before extensions load, none left out; a run waits for one that falls behind (RPC-89)."""
    override_cwd: bool = False
    """True: an opened session runs in `cwd`, not in the directory it names (SES-17)."""
    services: Services | None = None
    """Asked for these options again when the session is replaced or extensions are reloaded; None: they stay as they are."""
    mode: str = "embedded"
    """How the host shows things: `tui`, `rpc`, `json`, `print` or `embedded`; extensions read it."""
    ambiguous_commands: Literal["send", "refuse"] = "send"
    """What becomes of the bare name of a command that several extensions have: sent to the model as a text, or refused (CMD-5)."""
    flags: Mapping[str, bool | str] = attrs.field(factory=dict)
    """Values of flags that extensions register, by name; what is missing has its default (API-7)."""
    project_trusted: bool = True
    """Whether the files of `cwd` may decide what runs; extensions read it."""
    on_shutdown: Callable[[], None] | None = None
    """Called when an extension asks the host to end; the host decides when (CTXT-6). None: nothing happens."""
    ui: UiPort | WatchedUi | None = None
    """Who shows dialogs and lines of extensions; None: nobody, and `json` and `print` have no UI in any case (UI-1)."""


def require_valid(options: OpenOptions) -> None:
    """Raises InvalidOptions with every fault: option, value, expectation."""
    if not isinstance(options, OpenOptions):
        raise InvalidOptions(f"open() was given {options!r}; expected OpenOptions(cwd=..., ...)")
    faults = [fault for name in CHECKS for fault in CHECKS[name](name, getattr(options, name))]
    if not (isinstance(options.session, OpenSession) and not options.override_cwd):
        faults = [*_is_folder("cwd", options.cwd), *faults]
    if faults:
        raise InvalidOptions("; ".join(faults))


def require_folder(cwd: str) -> None:
    """Raises InvalidOptions if a session that names no directory of its own would run where there is none."""
    for fault in _is_folder("cwd", cwd):
        raise InvalidOptions(fault)


Check = Callable[[str, Any], Iterator[str]]
"""The faults of one option, from its name and value."""


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_provider(value: object) -> bool:
    """By what it has; nothing of it is run."""
    return not isinstance(value, type) and all([inspect.getattr_static(value, name, None) is not None for name in _PROVIDER])


def _is_extension(value: object) -> bool:
    if isinstance(value, InlineExtension | BuiltinExtension):
        return callable(value.setup)
    named = ExtensionSource | ExtensionFile | InstalledExtension | LoadError | LoadWarning
    return isinstance(value, named) and isinstance(value.path, str)


def _are_flags(value: object) -> bool:
    return isinstance(value, Mapping) and all([isinstance(name, str) and isinstance(each, bool | str) for name, each in value.items()])


def _is_ui(value: object) -> bool:
    return isinstance(value, WatchedUi) or all([inspect.getattr_static(value, name, None) is not None for name in _DIALOGS])


def _one(is_right: Callable[[Any], bool], expected: str) -> Check:
    def faults(name: str, value: Any) -> Iterator[str]:
        if not is_right(value):
            yield f"{name} is {value!r}; expected {expected}"

    return faults


def _optional(is_right: Callable[[Any], bool], expected: str) -> Check:
    return _one(lambda value: value is None or is_right(value), f"{expected}, or None")


def _choice(*values: str | None) -> Check:
    return _one(lambda value: value in values, f"one of {', '.join([repr(each) for each in values])}")


def _each(is_right: Callable[[Any], bool], expected: str, *, or_none: bool = False) -> Check:
    """For tuples; a list is as good."""

    def faults(name: str, value: Any) -> Iterator[str]:
        if value is None and or_none:
            return
        if not isinstance(value, tuple | list):
            yield f"{name} is {value!r}; expected a tuple, of which each is {expected}"
            return
        for index, item in enumerate(value):
            if not is_right(item):
                yield f"{name}[{index}] is {item!r}; expected {expected}"

    return faults


def _settings(name: str, value: Any) -> Iterator[str]:
    if not isinstance(value, Settings):
        yield f"{name} is {value!r}; expected Settings(...)"
        return
    for part, kind in _GROUPS.items():
        given = getattr(value, part)
        if not isinstance(given, kind):
            yield f"{name}.{part} is {given!r}; expected {kind.__name__}(...)"


_GROUPS: Final[Mapping[str, type]] = {
    "retry": RetrySettings,
    "compaction": CompactionSettings,
    "branch_summary": BranchSummarySettings,
    "images": ImageSettings,
}
"""The settings that are objects."""
_is_folder: Final = _one(lambda value: not isinstance(value, str) or os.path.isdir(value), "the path of a folder that exists")
_DIALOGS: Final = ("select", "confirm", "input", "editor")
_PROVIDER: Final = ("name", "models", "configured", "stream")

CHECKS: Final[dict[str, Check]] = {
    "cwd": _one(_is_text, "a path"),
    "agent_dir": _optional(_is_text, "a path"),
    "session": _one(
        lambda value: isinstance(value, NewSession | OpenSession | MemorySession),
        "NewSession(), OpenSession(path=...) or MemorySession()",
    ),
    "settings": _settings,
    "providers": _each(_is_provider, "a provider, which has models, configured() and stream()"),
    "provider_faults": _each(_is_text, "a text"),
    "build_provider": _optional(callable, "a function that takes a BuildRequest"),
    "model_overlay": _optional(callable, "a function of a provider id and its models"),
    "model_lists": _optional(lambda value: callable(getattr(value, "keep", None)), "a RefreshStore, with stored() and keep()"),
    "extensions": _each(_is_extension, "ExtensionSource(path=...) or InlineExtension(name=..., setup=function)"),
    "preloaded": _optional(lambda value: callable(getattr(value, "take", None)), "what Kernel.preload gave"),
    "builtin_tools": _each(lambda value: isinstance(value, ToolDefinition), "ToolDefinition(...)"),
    "tools": _each(_is_text, "the name of a tool", or_none=True),
    "exclude_tools": _each(_is_text, "the name of a tool"),
    "no_tools": _choice("all", "builtin", None),
    "system_prompt": _optional(_is_text, "a text"),
    "append_system_prompt": _each(_is_text, "a text"),
    "context_files": _each(lambda value: isinstance(value, ContextFile), "ContextFile(path=..., content=...)"),
    "skills": _each(lambda value: isinstance(value, Skill), "Skill(name=..., description=..., file_path=...)"),
    "templates": _each(lambda value: isinstance(value, PromptTemplate), "PromptTemplate(name=..., content=...)"),
    "model": _optional(_is_text, "a text like 'provider/id'"),
    "scoped_models": _each(lambda value: isinstance(value, ScopedModel), "ScopedModel(model=...)"),
    "model_patterns": _each(_is_text, "a pattern like 'provider/*'", or_none=True),
    "thinking_level": _choice(*THINKING_LEVELS, None),
    "durability": _choice(*get_args(Durability)),
    "resume": _choice("report"),
    "listeners": _each(is_listener, LISTENER_EXPECTED),
    "followers": _each(lambda value: isinstance(value, Follower), "Follower()"),
    "override_cwd": _one(lambda value: isinstance(value, bool), "true or false"),
    "services": _optional(
        lambda value: all([callable(getattr(value, name, None)) for name in ("check", "renewed")]), "an object with check() and renewed()"
    ),
    "mode": _one(_is_text, "a text"),
    "ambiguous_commands": _choice("send", "refuse"),
    "flags": _one(_are_flags, "a dict of flag names and values, which are true, false or a text"),
    "project_trusted": _one(lambda value: isinstance(value, bool), "true or false"),
    "on_shutdown": _optional(callable, "a function without arguments"),
    "ui": _optional(_is_ui, "a UI port, which has select(), confirm(), input() and editor(), or WatchedUi()"),
}
"""What each option may be."""
