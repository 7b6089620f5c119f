"""OpenAI chat completions: any compatible server, on this machine or hosted (WIRE-60 to WIRE-79)."""

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from camshaft.actors.api import Model, ModelMessage, ModelRequest
from camshaft.extensions_std.providers.compat import CompletionsFlags, completions_flags, vendor_of
from camshaft.extensions_std.providers.completions_body import CompletionsOptions, affinity_headers, body_of
from camshaft.extensions_std.providers.completions_render import completions_form
from camshaft.extensions_std.providers.completions_stream import ChunkReader
from camshaft.extensions_std.providers.http_errors import completions_error, openai_plain_error
from camshaft.extensions_std.providers.wire_api import Reader, WireApi
from camshaft.extensions_std.providers.wire_transcript import Transcript

API: Final = "openai-completions"


@attrs.define(eq=False)
class CompletionsConversation:
    """One session with one model over chat completions."""

    model: Model
    _flags: CompletionsFlags
    _transcript: Transcript

    def follow(self, messages: Sequence[ModelMessage]) -> None:
        """Takes the message list of the next request."""
        self._transcript.follow(messages)

    def layers(self, request: ModelRequest) -> tuple[Mapping[str, str | None], ...]:
        """The affinity headers override those of the model (WIRE-3)."""
        affinity = affinity_headers(self._flags, completions_options(request))
        return ({"accept": "application/json", "content-type": "application/json"}, self.model.headers, affinity)

    def body(self, request: ModelRequest) -> bytes:
        """The body of the next request. Raises ConstraintRefused."""
        return body_of(self.model, self._flags, self._transcript, completions_options(request))

    def reader(self, request: ModelRequest) -> Reader:
        """For the reply; `request` changes nothing about it."""
        return ChunkReader(
            self.model,
            bills=vendor_of(self.model) == "openrouter",
            infers_finish=not self._flags.supports_finish_reason,
            grammars=self._transcript.grammars(),
        )

    def gives_in(self, status: int, text: str) -> bool:
        """Never: this API has no other form."""
        return False


def _begin(model: Model) -> CompletionsConversation:
    flags = completions_flags(model)
    return CompletionsConversation(model, flags, Transcript(model, completions_form(model, flags)))


def completions_options(request: ModelRequest) -> CompletionsOptions:
    """What this API takes from the options of a request."""
    options, own = request.options, request.options.api_options
    return CompletionsOptions(
        level=request.thinking_level if own is None else str(own.get("reasoningEffort") or "off"),
        is_neutral=own is None,
        max_tokens=options.max_tokens,
        temperature=options.temperature,
        sampling_params=options.sampling_params,
        tool_choice=options.tool_choice,
        thinking_budgets=options.thinking_budgets,
        cache_retention=options.cache_retention or "short",
        session_id=options.session_id,
    )


COMPLETIONS: Final = WireApi(
    id=API,
    path="/chat/completions",
    begin=_begin,
    key_headers=lambda key: {"authorization": f"Bearer {key}"},
    auth_headers=("authorization", "cf-aig-authorization"),
    error_text=lambda status, body, _provider: completions_error(status, body),
    plain_error=openai_plain_error,
)
