"""Settings a session runs under, and how they are read from JSON (SET-1 to SET-7).

Reading never fails as a whole: an invalid value is reported with its key and the default is
used; keys we do not know are left alone. Compaction token values are errors instead (CMP-10),
because a wrong limit would silently lose history.
"""

from collections.abc import Mapping
from typing import Any, Literal

import attrs

from camshaft.kernel import codec, shapes
from camshaft.kernel.errors import CodecError
from camshaft.kernel.persistent import EMPTY, FrozenDict, Json

QueueMode = Literal["one-at-a-time", "all"]
CacheWarmingMode = Literal["off", "streaming", "idle"]

TOKENS_MAX = 2**53 - 1
"""Largest token value a settings file may hold: what every JSON reader keeps exact."""


@shapes.frozen(kw_only=True)
class RetrySettings:
    """Automatic retry (RTY-1 to RTY-3)."""

    enabled: bool = True
    """False: the first failure ends the run."""
    max_retries: int = 3
    """Attempts after the first."""
    base_delay_ms: int = 2000
    """Before the first retry; doubles with each."""
    max_agent_delay_ms: int = 60_000
    """Longest wait."""
    extra: FrozenDict = EMPTY
    """Keys that other readers know."""


@shapes.frozen(kw_only=True)
class CompactionSettings:
    """When and how far to compact (CMP-9)."""

    enabled: bool = True
    """Whether to compact without being asked."""
    reserve_tokens: int = 16_384
    """Room that is kept free in the context window."""
    keep_recent_tokens: int = 20_000
    """How much of the end stays as it is."""
    model_overrides: FrozenDict = EMPTY
    """Other values by model."""
    extra: FrozenDict = EMPTY
    """Keys that other readers know."""


@shapes.frozen(kw_only=True)
class BranchSummarySettings:
    """What is written down about a branch that is left (CMP-64)."""

    reserve_tokens: int = 16_384
    """Room that is kept free in the context window of the model that summarises."""
    extra: FrozenDict = EMPTY
    """Keys that other readers know."""


@shapes.frozen(kw_only=True)
class ImageSettings:
    """What happens to images."""

    auto_resize: bool = True
    """Whether large ones are made smaller."""
    block_images: bool = False
    """Whether models get a text instead of each (SET-11)."""
    extra: FrozenDict = EMPTY
    """Keys that other readers know."""


@shapes.frozen(kw_only=True)
class Settings:
    """The effective settings of a session; values not listed here belong to their readers."""

    default_provider: str | None = None
    """Of a new session's model; counts together with `default_model`."""
    default_model: str | None = None
    """Id of a new session's model."""
    default_thinking_level: str | None = None
    """Of a new session."""
    model_thinking_levels: FrozenDict = EMPTY
    """Of a new session, by `provider/id` of its model; counts before `default_thinking_level` (MOD-97)."""
    enabled_models: tuple[str, ...] | None = None
    """Patterns of the models to start with and to cycle through (MOD-96); None: all."""
    default_tools: tuple[str, ...] | None = None
    """Names, and +name/-name that change them (SET-8); None means the built-in four (EXPO-30)."""
    steering_mode: QueueMode = "one-at-a-time"
    """How many steering messages a poll takes (QUE-1)."""
    follow_up_mode: QueueMode = "one-at-a-time"
    """How many follow-ups a poll takes (QUE-1)."""
    retry: RetrySettings = RetrySettings()
    """When a failed answer is asked for again."""
    compaction: CompactionSettings = CompactionSettings()
    """When and how far to compact."""
    branch_summary: BranchSummarySettings = BranchSummarySettings()
    """What is written down about a branch that is left."""
    session_dir: str | None = None
    """Where the command line keeps sessions; None: the default folder."""
    shell_path: str | None = None
    """The shell of the bash tool; None: found on PATH."""
    shell_command_prefix: str | None = None
    """Put before every command of the bash tool."""
    images: ImageSettings = ImageSettings()
    """What happens to images."""
    cache_warming: CacheWarmingMode = "idle"
    """When a provider's prompt cache is kept from expiring: never, during runs, or also between them (CACHE-2)."""
    default_project_trust: Literal["ask", "always", "never"] = "ask"
    """Whether a project about which nothing is known is trusted (TRUST-2)."""


class InvalidSetting(ValueError):
    """A setting whose wrong value must not be replaced by a default; the text names key and value."""


def read_settings(raw: Mapping[str, Json], source: str) -> tuple[Settings, tuple[str, ...]]:
    """The settings of one JSON object and what was wrong with it, each naming `source` and key.

    Raises InvalidSetting for a compaction token value that is no whole number from 0 to TOKENS_MAX.
    """
    values: dict[str, Any] = {}
    warnings: list[str] = []
    attrs.resolve_types(Settings)
    for field in attrs.fields(Settings):
        key = codec.camel(field.name)
        if field.name == "compaction":
            _check_tokens(raw.get(key))
        if raw.get(key) is None:
            continue
        try:
            values[field.name] = codec.WIRE.structure(raw[key], field.type or Any)
        except CodecError as error:
            warnings.append(f"{source}: setting {key!r}: {error}; using {field.default!r}")
    if "steering_mode" not in values and isinstance(raw.get("queueMode"), str):
        legacy, more = read_settings({"steeringMode": raw["queueMode"]}, source)
        values["steering_mode"] = legacy.steering_mode
        warnings.extend(more)
    return Settings(**values), tuple(warnings)


def valid_part(raw: Mapping[str, Json], source: str) -> tuple[FrozenDict, tuple[str, ...]]:
    """One scope's object without the values that cannot be read, and a text for each of them (SET-7).

    So an invalid value of a project does not hide the valid one of the user. Raises InvalidSetting as `read_settings`.
    """
    found: dict[str, Json] = {}
    warnings: list[str] = []
    for key, value in raw.items():
        wrong = read_settings({key: value}, source)[1]
        warnings.extend(wrong)
        if not wrong:
            found[key] = value
    return FrozenDict(found), tuple(warnings)


def _check_tokens(compaction: Json) -> None:
    if not isinstance(compaction, Mapping):
        return
    for name in ("reserveTokens", "keepRecentTokens"):
        value = compaction.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= TOKENS_MAX):
            raise InvalidSetting(f"Invalid compaction.{name} setting: {value!r}. Expected a non-negative safe integer.")
