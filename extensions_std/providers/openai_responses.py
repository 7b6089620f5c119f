"""OpenAI's responses: its own models, and servers that speak the same API (WIRE-80 to WIRE-96)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from camshaft.actors.api import Model, ModelMessage, ModelRequest
from camshaft.extensions_std.providers.compat import ResponsesFlags, responses_flags, vendor_of
from camshaft.extensions_std.providers.http_errors import openai_plain_error, responses_error
from camshaft.extensions_std.providers.responses_body import EFFORT_OF_SUMMARY, SUMMARY, ResponsesOptions, affinity_headers, body_of
from camshaft.extensions_std.providers.responses_render import Skips, responses_form
from camshaft.extensions_std.providers.responses_stream import ResponseReader
from camshaft.extensions_std.providers.wire_api import Reader, WireApi
from camshaft.extensions_std.providers.wire_transcript import Transcript

API: Final = "openai-responses"


@attrs.define(eq=False)
class ResponsesConversation:
    """One session with one model over responses."""

    model: Model
    _flags: ResponsesFlags
    _transcript: Transcript
    _skips: Skips

    def follow(self, messages: Sequence[ModelMessage]) -> None:
        """Takes the message list of the next request."""
        self._transcript.follow(messages)

    def layers(self, request: ModelRequest) -> tuple[Mapping[str, str | None], ...]:
        """The affinity headers override those of the model (WIRE-3)."""
        affinity = affinity_headers(self._flags, responses_options(request))
        return ({"accept": "application/json", "content-type": "application/json"}, self.model.headers, affinity)

    def body(self, request: ModelRequest) -> bytes:
        """The body of the next request. Raises ConstraintRefused."""
        return body_of(self.model, self._flags, self._transcript, responses_options(request))

    def reader(self, request: ModelRequest) -> Reader:
        """For the reply; it tells what was left out of the request, once."""
        return ResponseReader(
            self.model,
            bills=vendor_of(self.model) == "openrouter",
            requested_tier=responses_options(request).service_tier,
            grammars=self._transcript.grammars(),
            diagnostics=self._skips.taken(),
        )

    def gives_in(self, status: int, text: str) -> bool:
        """Never: this API has no other form."""
        return False


def _begin(model: Model) -> ResponsesConversation:
    flags, skips = responses_flags(model), Skips()
    return ResponsesConversation(model, flags, Transcript(model, responses_form(model, flags, skips)), skips)


def responses_options(request: ModelRequest) -> ResponsesOptions:
    """What this API takes from the options of a request."""
    options = request.options
    return ResponsesOptions(
        **_own_options(request),
        max_tokens=options.max_tokens,
        temperature=options.temperature,
        sampling_params=options.sampling_params,
        tool_choice=options.tool_choice,
        cache_retention=options.cache_retention or "short",
        session_id=options.session_id,
    )


def _own_options(request: ModelRequest) -> dict[str, Any]:
    """Those of the API-specific entry, or the level of the neutral one (STR-4)."""
    own = request.options.api_options
    if own is None:
        return {"level": request.thinking_level}
    effort, summary, tier = [_text(own, name) for name in ("reasoningEffort", "reasoningSummary", "serviceTier")]
    is_implied = effort is None and summary is not None
    return {
        "is_neutral": False,
        "level": effort or (EFFORT_OF_SUMMARY if is_implied else "off"),
        "effort": EFFORT_OF_SUMMARY if is_implied else None,
        "summary": summary or SUMMARY,
        "service_tier": tier,
    }


def _text(options: Mapping[str, Any], name: str) -> str | None:
    """An option that is a text and not empty; any other counts as absent."""
    value = options.get(name)
    return value if isinstance(value, str) and value else None


RESPONSES: Final = WireApi(
    id=API,
    path="/responses",
    begin=_begin,
    key_headers=lambda key: {"authorization": f"Bearer {key}"},
    auth_headers=("authorization", "cf-aig-authorization"),
    error_text=responses_error,
    plain_error=openai_plain_error,
)
