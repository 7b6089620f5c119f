"""Settings that the command line needs of its own: the limits of requests (WIRE-20 to WIRE-30)."""

from collections.abc import Mapping

import attrs

from camshaft.actors.api import EMPTY, Json
from camshaft.actors.host import InvalidSetting
from camshaft.extensions_std.providers.transport import TransportLimits


def limits_of(settings: Mapping[str, Json]) -> TransportLimits:
    """Waits and retries of requests. Raises InvalidSetting for a value that must not be replaced by a default (SET-7)."""
    retry = settings.get("retry")
    provider = retry.get("provider") if isinstance(retry, Mapping) else None
    own: Mapping[str, Json] = provider if isinstance(provider, Mapping) else EMPTY
    default = TransportLimits()
    idle = _seconds(settings.get("httpIdleTimeoutMs"), "httpIdleTimeoutMs", default.idle_timeout_s)
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
