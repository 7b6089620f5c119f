"""Settings from their files (SET-1 to SET-7, reading only).

The user's file counts as a whole. Of a project's file only `sessionDir` does: everything else would need the
project to be trusted (SET-3), and there is no trust here yet, so it is skipped in silence like that of any
project that is not trusted (TRUST-3). A file that cannot be read as a JSON object counts as empty, with a warning.
"""

import os
from collections.abc import Mapping
from typing import Final

import attrs

from camshaft.actors.api import EMPTY, FrozenDict, Json, MalformedJson, freeze, loads
from camshaft.actors.host import InvalidSetting, Settings, read_settings
from camshaft.extensions_std.providers.transport import TransportLimits

SETTINGS_FILE: Final = "settings.json"
PROJECT_FOLDER: Final = ".camshaft"

_BOM: Final = b"\xef\xbb\xbf"


@attrs.frozen(kw_only=True)
class FoundSettings:
    """The effective settings, and what was wrong with their files."""

    settings: Settings = Settings()
    limits: TransportLimits = TransportLimits()
    session_dir: str | None = None
    """As written: the project's, else the user's."""
    warnings: tuple[str, ...] = ()


def read_files(agent_dir: str, cwd: str) -> FoundSettings:
    """The settings for work in `cwd`. Raises InvalidSetting for a value that must not be replaced by a default (SET-7)."""
    user_path = os.path.join(agent_dir, SETTINGS_FILE)
    project_path = os.path.join(cwd, PROJECT_FOLDER, SETTINGS_FILE)
    user, warnings = _object_in(user_path)
    project, more = _object_in(project_path)
    settings, invalid = read_settings(user, user_path)
    own, invalid_here = read_settings({"sessionDir": project.get("sessionDir")}, project_path)
    return FoundSettings(
        settings=settings,
        limits=_limits(user),
        session_dir=own.session_dir or settings.session_dir,
        warnings=(*warnings, *more, *invalid, *invalid_here),
    )


def _object_in(path: str) -> tuple[FrozenDict, tuple[str, ...]]:
    try:
        with open(path, "rb") as file:
            value = loads(file.read().removeprefix(_BOM))
    except FileNotFoundError:
        return EMPTY, ()
    except OSError as error:
        return EMPTY, (f"Invalid settings file {path}: {error.strerror}",)
    except MalformedJson as error:
        return EMPTY, (f"Invalid settings file {path}: {error}",)
    if not isinstance(value, dict):
        return EMPTY, (f"Invalid settings file {path}: expected a JSON object, got {type(value).__name__}",)
    return freeze(value), ()


def _limits(user: Mapping[str, Json]) -> TransportLimits:
    """Waits and retries of requests (WIRE-20 to WIRE-30)."""
    retry = user.get("retry")
    provider = retry.get("provider") if isinstance(retry, Mapping) else None
    own: Mapping[str, Json] = provider if isinstance(provider, Mapping) else EMPTY
    default = TransportLimits()
    idle = _seconds(user.get("httpIdleTimeoutMs"), "httpIdleTimeoutMs", default.idle_timeout_s)
    delay = _seconds(own.get("maxRetryDelayMs"), "retry.provider.maxRetryDelayMs", default.max_retry_delay_s)
    retries = own.get("maxRetries")
    return attrs.evolve(
        default,
        idle_timeout_s=_seconds(own.get("timeoutMs"), "retry.provider.timeoutMs", idle),
        max_retries=retries if isinstance(retries, int) and not isinstance(retries, bool) and retries >= 0 else default.max_retries,
        max_retry_delay_s=0.0 if delay is None else delay,
    )


def _seconds(value: Json, key: str, default: float | None) -> float | None:
    """Milliseconds as seconds; None for `disabled` and 0. Raises InvalidSetting."""
    if value is None:
        return default
    try:
        ms = 0.0 if value == "disabled" else float(value)
    except (TypeError, ValueError):
        ms = -1.0
    if isinstance(value, bool) or not 0 <= ms < float("inf"):
        raise InvalidSetting(f'Invalid {key} setting: {value!r}. Expected milliseconds from 0 up, or "disabled".')
    return ms / 1000 if ms else None
