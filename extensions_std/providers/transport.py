"""What the HTTP adapters share: waits and retries, and how this program presents itself."""

from typing import Final

import attrs

from camshaft.actors.api import IDLE_TIMEOUT_S, Model
from camshaft.extensions_std.providers.compat import vendor_of

USER_AGENT: Final = "camshaft"


@attrs.frozen(kw_only=True)
class TransportLimits:
    """Waits and retries of one request."""

    idle_timeout_s: float | None = IDLE_TIMEOUT_S
    """Longest wait for headers and between two pieces of the body (WIRE-30); None = no limit."""
    progress_timeout_s: float | None = 300.0
    """Longest wait for content while the server is not silent; None = no limit."""
    max_retries: int = 0
    """Further attempts after a failure before the body started (WIRE-20)."""
    max_retry_delay_s: float = 60.0
    """A server that asks for a longer delay fails the request at once; 0 = any delay is accepted (WIRE-21)."""


@attrs.frozen(kw_only=True)
class Identity:
    """How this program presents itself (WIRE-5). Attribution is sent only if it is given."""

    user_agent: str = USER_AGENT
    name: str | None = None
    url: str | None = None
    categories: tuple[str, ...] = ()


def identity_headers(identity: Identity, model: Model, session_id: str | None) -> dict[str, str]:
    """The lowest layer of headers: User-Agent, and attribution where a vendor reads it (WIRE-5)."""
    headers = {"user-agent": identity.user_agent}
    vendor = vendor_of(model)
    if vendor == "opencode" and session_id:
        headers["x-opencode-session"] = session_id
    if identity.name is None:
        return headers
    if vendor == "openrouter":
        headers["x-openrouter-title"] = identity.name
        if identity.url:
            headers["http-referer"] = identity.url
        if identity.categories:
            headers["x-openrouter-categories"] = ",".join(identity.categories)
    elif vendor == "nvidia":
        headers["x-billing-invoke-origin"] = identity.name
    elif vendor == "opencode":
        headers["x-opencode-client"] = identity.name
    return headers
