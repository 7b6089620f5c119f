"""OpenAI chat completions: any compatible server, on this machine or hosted.

Theory of operation. One request is: credentials → body → attempts → stream → one `Ended`. Every
failure that can be foreseen becomes that `Ended`; what is left to raise is a bug, or an `emit` that
raises. Three things can end the work from outside, in this order of weight:

    the scope      cancelled by the owner: Cancelled travels, the owner keeps the partial message
    the signal     an abort: ends `aborted`, with content and usage so far (STR-33); also when some
                   other failure came at the same moment
    no progress    no content for `progress_timeout_s`: a server that only keeps the connection alive
                   would hold a run for ever. Time spent inside `emit` does not count: waiting for a slow
                   consumer is not the server's fault.

Requests are retried only before their body started (WIRE-23), and never by default. After `[DONE]`
the stream is over, whatever the connection does (STR-35).

Secrets (keys, authorization headers, passwords in urls) are never part of a repr, and are cut out of
every error text, because servers and proxies echo them.
"""

import math
import random
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Final

import attrs
import trio

from camshaft.actors.api import (
    ABORTED,
    EMPTY,
    Emit,
    Ended,
    FrozenDict,
    Http,
    HttpFailed,
    HttpRequest,
    HttpResponse,
    Json,
    MalformedJson,
    Model,
    ModelRequest,
    Noted,
    RequestHooks,
    RequestOptions,
    Signal,
    Started,
    StreamItem,
    freeze,
    loads,
)
from camshaft.extensions_std.providers.compat import CompletionsFlags, completions_flags, vendor_of
from camshaft.extensions_std.providers.completions_body import CompletionsOptions, affinity_headers, body_of
from camshaft.extensions_std.providers.completions_messages import Transcript
from camshaft.extensions_std.providers.completions_stream import ChunkReader
from camshaft.extensions_std.providers.constrained import ConstraintRefused
from camshaft.extensions_std.providers.credentials import Auth, AuthUnresolved, auth_headers, own_headers, secrets_of
from camshaft.extensions_std.providers.http_errors import (
    ERROR_BODY_MAX_BYTES,
    completions_error,
    is_retried,
    own_delay_s,
    server_delay_s,
    too_long,
    with_server,
    without_secrets,
)
from camshaft.extensions_std.providers.preparation import encoded
from camshaft.extensions_std.providers.sse import SseEvent, SseOverflow, SseParser
from camshaft.extensions_std.providers.transport import Identity, TransportLimits, identity_headers

__all__ = ["API", "CompletionsProvider", "Identity", "Resolve", "TransportLimits", "completions_options"]

API: Final = "openai-completions"

TRANSCRIPTS_MAX: Final = 64
"""Sessions whose encoded messages are kept between requests; the one not used longest is dropped and made again when needed."""

MALFORMED: Final = "Error reading response: malformed server-sent event JSON."
BAD_PAYLOAD: Final = "before_provider_request must return an object"


Resolve = Callable[[Model], Awaitable[Auth]]
"""Credentials of a request; raises AuthUnresolved."""


async def _no_auth(_model: Model) -> Auth:
    return Auth()


@attrs.define(eq=False, kw_only=True)
class CompletionsProvider:
    """A provider of chat completions over HTTP; see the header."""

    name: str
    models: tuple[Model, ...]
    api: str = API
    _http: Http = attrs.field(repr=False)
    resolve: Resolve = attrs.field(default=_no_auth, repr=False)
    _is_configured: Callable[[], bool] = attrs.field(default=lambda: True, repr=False)
    _needs_key: bool = False
    """Whether a request without key and authorization header fails before it is sent (STR-32)."""
    _limits: TransportLimits = TransportLimits()
    _identity: Identity = Identity()
    _level_params: Mapping[str, Mapping[str, Mapping[str, Json]]] = attrs.field(factory=dict)
    """Model id to thinking level to sampling parameters (MOD-23)."""
    _clock: Callable[[], int] = attrs.field(default=lambda: 0, repr=False)
    """Wall clock in ms; only for delays that a server names as a date."""
    _chance: random.Random = attrs.field(factory=lambda: random.Random(0), repr=False)
    """Spreads retry delays."""
    _transcripts: "OrderedDict[tuple[str | None, str], Transcript]" = attrs.field(factory=OrderedDict, init=False, repr=False)

    def configured(self) -> bool:
        """Whether requests can be authorized; runs nothing."""
        return self._is_configured()

    async def stream(self, request: ModelRequest, signal: Signal, emit: Emit) -> None:
        """Emits the answer's items; see the header for what can end it."""
        if signal.cancelled:
            await emit(ABORTED)
            return
        talk = _Talk(emit=emit, hooks=request.hooks, limit_s=self._limits.progress_timeout_s)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_on_abort, signal, nursery.cancel_scope)
            nursery.start_soon(_cancel_without_progress, talk)
            with talk.scope:
                await self._answer(request, talk)
            nursery.cancel_scope.cancel()
        await emit(_ended(talk, signal))

    async def _answer(self, request: ModelRequest, talk: "_Talk") -> None:
        options = completions_options(request, self._level_params.get(request.model.id, EMPTY))
        try:
            auth = await self.resolve(request.model)
            talk.secrets = secrets_of(auth, request.options.headers, request.model)
            made = await self._request(request, options, auth, talk)
        except (AuthUnresolved, ConstraintRefused, _BadPayload) as error:
            talk.ended = Ended("error", str(error))
            return
        await self._attempts(made, request.model, talk)

    async def _request(self, request: ModelRequest, options: CompletionsOptions, auth: Auth, talk: "_Talk") -> HttpRequest:
        """What is sent. Headers are settled before the body is built (WIRE-100)."""
        model = request.model
        flags = self._transcript(model, options.session_id).flags
        layers = self._header_layers(request.options, flags, options, auth, model)
        if self._needs_key and not auth.owns(layers):
            raise AuthUnresolved(f"No API key for provider: {self.name}")
        own = own_headers([model.headers, auth.headers, request.options.headers])
        headers = auth_headers(auth, [*layers, await _after_handlers(own, request.hooks)])
        transcript = self._transcript(model, options.session_id)
        transcript.follow(request.messages)
        talk.grammars = transcript.grammars()
        return HttpRequest(
            url=f"{(auth.base_url or model.base_url).rstrip('/')}/chat/completions",
            headers=headers,
            body=await _replaced(body_of(model, flags, transcript, options), request.hooks),
            idle_timeout_s=self._idle_limit(request.options.timeout_ms),
        )

    def _idle_limit(self, asked_ms: int | None) -> float | None:
        """What the request asks for, where 0 is no limit, else the provider's own (WIRE-30)."""
        return self._limits.idle_timeout_s if asked_ms is None else asked_ms / 1000 or None

    def _transcript(self, model: Model, session_id: str | None) -> Transcript:
        """The transcript to continue; a model that is not the same value any more starts anew."""
        key = (session_id, model.id)
        kept = self._transcripts.get(key)
        if kept is None or not (kept.model is model or kept.model == model):
            kept = self._transcripts[key] = Transcript(model, completions_flags(model))
        self._transcripts.move_to_end(key)
        if len(self._transcripts) > TRANSCRIPTS_MAX:
            self._transcripts.popitem(last=False)
        return kept

    def _header_layers(
        self, options: RequestOptions, flags: CompletionsFlags, wanted: CompletionsOptions, auth: Auth, model: Model
    ) -> tuple[Mapping[str, str | None], ...]:
        """Header layers, later ones win (WIRE-3)."""
        defaults = {"accept": "application/json", "content-type": "application/json"}
        identity = identity_headers(self._identity, model, wanted.session_id)
        return (identity, defaults, model.headers, affinity_headers(flags, wanted), auth.headers, options.headers or EMPTY)

    # attempts (WIRE-20 to WIRE-23)

    async def _attempts(self, request: HttpRequest, model: Model, talk: "_Talk") -> None:
        attempt = 0
        while True:
            refusal = await self._attempt(request, model, talk)
            if refusal is None:
                return
            if attempt >= self._limits.max_retries or not is_retried(refusal.status, refusal.headers):
                talk.ended = Ended("error", talk.told(refusal.text))
                return
            asked = server_delay_s(refusal.headers, now_s=self._clock() / 1000)
            if asked is not None and 0 < self._limits.max_retry_delay_s < asked:
                talk.ended = Ended("error", talk.told(too_long(asked, self._limits.max_retry_delay_s, refusal.text)))
                return
            talk.waiting_since_s = math.inf
            await trio.sleep(own_delay_s(attempt, self._chance) if asked is None else asked)
            attempt += 1

    async def _attempt(self, request: HttpRequest, model: Model, talk: "_Talk") -> "_Refusal | None":
        """One exchange: None if the stream began, then `talk.ended` says how it ended; else why it did not begin."""
        talk.progressed()
        try:
            async with self._http.stream(request) as response:
                if talk.hooks.on_response is not None:
                    await talk.hooks.on_response(response.status, response.headers)
                if not 200 <= response.status < 300:
                    return _Refusal(completions_error(response.status, await _body_of(response)), response.status, response.headers)
                await talk.send([Started()])
                await self._read(response, talk, _reader(model, talk.grammars))
        except (HttpFailed, SseOverflow) as error:
            if isinstance(error, HttpFailed) and not talk.has_started:
                text = with_server(str(error), self.name, model.base_url)
                return _Refusal(text, 400 if error.kind == "invalid" else None, {})
            talk.fail(str(error))
        return None

    async def _read(self, response: HttpResponse, talk: "_Talk", reader: ChunkReader) -> None:
        talk.reader = reader
        parser = SseParser()
        async with aclosing(response.chunks()) as chunks:
            async for chunk in chunks:
                for event in parser.feed(chunk):
                    if await self._event(event, talk, reader):
                        return
        for event in parser.finish():
            if await self._event(event, talk, reader):
                return
        await talk.send(reader.finish())

    async def _event(self, event: SseEvent, talk: "_Talk", reader: ChunkReader) -> bool:
        """Whether the stream is over."""
        if event.data.strip() == b"[DONE]":
            await talk.send(reader.finish())
            return True
        try:
            chunk = loads(event.data)
        except MalformedJson:
            talk.fail(MALFORMED)
            return True
        if talk.hooks.on_stream_event is not None:
            await talk.hooks.on_stream_event(freeze(chunk))
        if isinstance(chunk, dict):
            await talk.send(reader.read(chunk))
        return talk.ended is not None


async def _after_handlers(own: FrozenDict, hooks: RequestHooks) -> Mapping[str, str | None]:
    """What header handlers say, as the last layer; a header they took out of the map is removed (WIRE-102)."""
    if hooks.on_headers is None:
        return EMPTY
    after = await hooks.on_headers(own)
    return {**dict.fromkeys(own), **after}


async def _replaced(body: bytes, hooks: RequestHooks) -> bytes:
    """The body as handlers leave it; it always streams (WIRE-103, WIRE-104)."""
    if hooks.on_payload is None:
        return body
    payload = await hooks.on_payload(loads(body))
    if not isinstance(payload, Mapping):
        raise _BadPayload(BAD_PAYLOAD)
    return encoded({**payload, "stream": True})


def _reader(model: Model, grammars: Mapping[str, str]) -> ChunkReader:
    infers_finish = not completions_flags(model).supports_finish_reason
    return ChunkReader(model, bills=vendor_of(model) == "openrouter", infers_finish=infers_finish, grammars=grammars)


class _BadPayload(Exception):
    """A payload hook gave something that is no body."""


@attrs.frozen
class _Refusal:
    """An exchange that ended before a stream began. `status` None: no response at all."""

    text: str
    status: int | None
    headers: Mapping[str, str]


@attrs.define(eq=False, kw_only=True)
class _Talk:
    """One request being answered: where its items go, since when it waits, how it ended."""

    emit: Emit
    hooks: RequestHooks
    limit_s: float | None
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    """Cancelled when no content came for `limit_s`."""
    waiting_since_s: float = math.inf
    """When content last came, in Trio's time; infinite while nobody waits for the server."""
    reader: ChunkReader | None = None
    ended: Ended | None = None
    has_started: bool = False
    secrets: tuple[str, ...] = attrs.field(default=(), repr=False)
    grammars: Mapping[str, str] = attrs.field(factory=dict)
    """Tools that are called with plain text, to the property that holds it."""

    def progressed(self) -> None:
        """Content came, or a request goes out: the wait starts anew."""
        self.waiting_since_s = trio.current_time()

    async def send(self, items: list[StreamItem]) -> None:
        """Emits up to an `Ended`, which is kept for the end."""
        for item in items:
            if isinstance(item, Ended):
                self.ended = self._told_end(item)
                return
            waited_s = trio.current_time() - self.waiting_since_s if isinstance(item, Noted) else 0
            self.waiting_since_s = math.inf
            await self.emit(item)
            self.has_started = True
            self.waiting_since_s = trio.current_time() - waited_s

    def fail(self, text: str) -> None:
        """Ends with an error, unless the stream has ended already (STR-35)."""
        if self.ended is None:
            usage = self.reader.usage if self.reader is not None else None
            self.ended = Ended("error", self.told(text), usage=usage)

    def _told_end(self, item: Ended) -> Ended:
        if not item.error_message:
            return item
        reason = item.raw_stop_reason
        return attrs.evolve(item, error_message=self.told(item.error_message), raw_stop_reason=reason and self.told(reason))

    def told(self, text: str) -> str:
        """An error text that holds no secret."""
        return without_secrets(text, self.secrets)


def _ended(talk: _Talk, signal: Signal) -> Ended:
    """How a request ended: an abort wins over the failure it may have caused, but not over a good end."""
    usage = talk.reader.usage if talk.reader is not None else None
    if signal.cancelled and (talk.ended is None or talk.ended.stop_reason == "error"):
        return attrs.evolve(ABORTED, usage=usage)
    if talk.ended is None:
        text = f"Request timed out.: no content for {talk.limit_s:g} s, though the server kept the connection open"
        return Ended("error", text, usage=usage)
    return talk.ended


async def _cancel_on_abort(signal: Signal, scope: trio.CancelScope) -> None:
    await signal.wait()
    scope.cancel()


async def _cancel_without_progress(talk: _Talk) -> None:
    """Wakes once a limit, not once an item: moving a deadline for each would cost more than reading it."""
    if talk.limit_s is None:
        return
    while True:
        now = trio.current_time()
        due = talk.waiting_since_s + talk.limit_s
        if due <= now:
            talk.scope.cancel()
            return
        await trio.sleep_until(min(due, now + talk.limit_s))


async def _body_of(response: HttpResponse) -> bytes:
    """The body of a failed response, as far as it is read at all; a broken one counts as it came."""
    parts: list[bytes] = []
    size = 0
    try:
        async with aclosing(response.chunks()) as chunks:
            async for chunk in chunks:
                parts.append(chunk)
                size += len(chunk)
                if size >= ERROR_BODY_MAX_BYTES:
                    break
    except HttpFailed:
        pass
    return b"".join(parts)[:ERROR_BODY_MAX_BYTES]


def completions_options(request: ModelRequest, level_params: Mapping[str, Mapping[str, Json]] = EMPTY) -> CompletionsOptions:
    """What this API takes from the options of a request."""
    options = request.options
    retention = options.cache_retention or "short"
    return CompletionsOptions(
        level=request.thinking_level,
        max_tokens=options.max_tokens,
        temperature=options.temperature,
        level_params=level_params,
        sampling_params=options.sampling_params or EMPTY,
        tool_choice=options.tool_choice,
        thinking_budgets=getattr(options, "thinking_budgets", None),
        cache_retention=retention,
        session_id=options.session_id,
    )
