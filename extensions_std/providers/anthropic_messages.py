"""Anthropic Messages: the vendor's API and the servers and gateways that speak it (WIRE-40 to WIRE-58)."""

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from camshaft.actors.api import Model, ModelMessage, ModelRequest
from camshaft.extensions_std.providers.anthropic_body import affinity_headers, anthropic_options, body_of, default_headers
from camshaft.extensions_std.providers.anthropic_compat import AnthropicFlags, anthropic_flags
from camshaft.extensions_std.providers.anthropic_render import anthropic_form, prefers_strict, wire_tool
from camshaft.extensions_std.providers.anthropic_stream import EventReader
from camshaft.extensions_std.providers.http_errors import anthropic_error
from camshaft.extensions_std.providers.wire_api import OtherForm, Reader, WireApi
from camshaft.extensions_std.providers.wire_transcript import Transcript

API: Final = "anthropic-messages"

SUBSCRIPTION_KEY: Final = "sk-ant-oat"
"""Keys that contain this are tokens, sent as such (WIRE-4)."""

STRICT_LIMITS: Final = (
    "The compiled grammar is too large",
    "Too many strict tools (",
    "Schemas contains too many parameters with union types (",
)
"""Refusals of requests with too many strict tools; their status is 400 and their type as below (WIRE-38)."""
INVALID_REQUEST: Final = "invalid_request_error"


@attrs.define(eq=False)
class AnthropicConversation:
    """One session with one model."""

    model: Model
    _flags: AnthropicFlags
    _transcript: Transcript
    _is_plain: bool
    """Whether tools are strict only if they have to be: the other form of WIRE-38."""

    def follow(self, messages: Sequence[ModelMessage]) -> None:
        """Takes the message list of the next request."""
        self._transcript.follow(messages)

    def layers(self, request: ModelRequest) -> tuple[Mapping[str, str | None], ...]:
        """The headers of the model override the affinity header (WIRE-3)."""
        options = anthropic_options(self.model, request)
        defaults = default_headers(self.model, self._flags, options, has_tools=bool(self._transcript.tools))
        return (defaults, affinity_headers(self._flags, options), self.model.headers)

    def body(self, request: ModelRequest) -> bytes:
        """The body of the next request; this API knows no sampling parameters (MOD-23). Raises ConstraintRefused."""
        return body_of(self.model, self._flags, self._transcript, anthropic_options(self.model, request), is_plain=self._is_plain)

    def reader(self, request: ModelRequest) -> Reader:
        """For the reply; `request` changes nothing about it."""
        return EventReader(self.model)

    def gives_in(self, status: int, text: str) -> bool:
        """Whether the server took offence at strict tools of which some could be plain."""
        if self._is_plain or status != 400 or INVALID_REQUEST not in text or not any(words in text for words in STRICT_LIMITS):
            return False
        preferring = [tool for tool in self._transcript.tools if prefers_strict(tool)]
        return any("strict" in wire_tool(tool, self._flags, is_plain=False) for tool in preferring)


def _begun(model: Model, *, is_plain: bool) -> AnthropicConversation:
    flags = anthropic_flags(model)
    return AnthropicConversation(model, flags, Transcript(model, anthropic_form(model, flags)), is_plain)


def _key_headers(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"} if SUBSCRIPTION_KEY in key else {"x-api-key": key}


ANTHROPIC: Final = WireApi(
    id=API,
    path="/v1/messages?beta=true",
    begin=lambda model: _begun(model, is_plain=False),
    key_headers=_key_headers,
    auth_headers=("authorization", "x-api-key", "cf-aig-authorization"),
    error_text=lambda status, body, _provider: anthropic_error(status, body),
    plain_error=anthropic_error,
    other_form=OtherForm(
        begin=lambda model: _begun(model, is_plain=True),
        diagnostic="anthropic_strict_tools_fallback",
        reason="strict_tool_limits_exceeded",
    ),
)
