"""A provider over HTTP, whatever wire API its models speak: hosted, or on this machine.

Theory of operation. One request is: credentials → body → attempts → stream → one `Ended`. Every
failure that can be foreseen becomes that `Ended`; what is left to raise is a bug, or an `emit` that
raises. Three things can end the work from outside, in this order of weight:

    the scope      cancelled by the owner: Cancelled travels, the owner keeps the partial message
    the signal     an abort: ends `aborted`, with content and usage so far (STR-33); also when some
                   other failure came at the same moment
    no progress    no content for `progress_timeout_s`: a server that only keeps the connection alive
                   would hold a run for ever. Time spent inside `emit` does not count: waiting for a slow
                   consumer is not the server's fault.

Requests are retried only before their body started (WIRE-23), and never by default. After the API's
own mark of the end the stream is over, whatever the connection does (STR-35).

Secrets (keys, authorization headers, passwords in urls) are never part of a repr, and are cut out of
every error text, because servers and proxies echo them.
"""

import itertools
import math
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final

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
from camshaft.actors.host import AuthStatus, ProviderFailed
from camshaft.extensions_std.providers.constrained import ConstraintRefused
from camshaft.extensions_std.providers.conversations import Conversations
from camshaft.extensions_std.providers.credentials import Auth, AuthUnresolved, joined, merged_headers, own_headers, secrets_of
from camshaft.extensions_std.providers.http_errors import (
    error_body,
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
from camshaft.extensions_std.providers.wire_api import Conversation, MalformedEvent, Reader, WireApi

BAD_PAYLOAD: Final = "before_provider_request must return an object"


Resolve = Callable[[Model, RequestOptions], Awaitable[Auth]]
"""Credentials of a request with these options; raises AuthUnresolved."""


async def _no_auth(_model: Model, options: RequestOptions) -> Auth:
    return Auth(api_key=options.api_key)


@attrs.define(eq=False, kw_only=True)
class WireProvider:
    """A provider whose models speak one or several wire APIs; see the header."""

    name: str
    models: tuple[Model, ...]
    display_name: str | None = None
    _apis: Mapping[str, WireApi] = attrs.field(repr=False)
    """By id; a model of another api cannot be asked."""
    _http: Http = attrs.field(repr=False)
    resolve: Resolve = attrs.field(default=_no_auth, repr=False)
    _status: Callable[[], AuthStatus] = attrs.field(default=lambda: AuthStatus(configured=True), repr=False)
    credential: Callable[[], Awaitable[Mapping[str, Any] | None]] | None = attrs.field(default=None, repr=False)
    _needs_key: bool = False
    """Whether a request without key and authorization header fails before it is sent (STR-32)."""
    _limits: TransportLimits = TransportLimits()
    _identity: Identity = Identity()
    _clock: Callable[[], int] = attrs.field(default=lambda: 0, repr=False)
    """Wall clock in ms; for delays that a server names as a date, and for the time of diagnostics."""
    _chance: random.Random = attrs.field(factory=lambda: random.Random(0), repr=False)
    """Spreads retry delays."""
    _conversations: Conversations = attrs.field(factory=Conversations, init=False, repr=False)

    @property
    def api(self) -> str:
        """That of its first model; empty without models."""
        return self.models[0].api if self.models else ""

    def configured(self) -> bool:
        """Whether requests can be authorized; runs nothing."""
        return self._status().configured

    def speaks(self, api: str) -> bool:
        """Whether models of that wire API can be asked."""
        return api in self._apis

    def auth_status(self) -> AuthStatus:
        """Whether they can, and where the key comes from."""
        return self._status()

    async def stream(self, request: ModelRequest, signal: Signal, emit: Emit) -> None:
        """Emits the answer's items; see the header for what can end it."""
        if signal.cancelled:
            await emit(ABORTED)
            return
        talk = _Talk(emit=emit, hooks=request.hooks, limit_s=self._limits.progress_timeout_s, clock=self._clock)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_on_abort, signal, nursery.cancel_scope)
            nursery.start_soon(_cancel_without_progress, talk)
            with talk.scope:
                await self._answer(request, talk)
            nursery.cancel_scope.cancel()
        await emit(_ended(talk, signal))

    async def _answer(self, request: ModelRequest, talk: "_Talk") -> None:
        api = self._apis.get(request.model.api)
        if api is None:
            talk.ended = Ended("error", f"No API provider registered for api: {request.model.api}")
            return
        try:
            auth = await self.resolve(request.model, request.options)
            talk.secrets = secrets_of(auth, request.options.headers, request.model)
            exchange = await self._exchange(api, request, auth)
            refusal = await self._sent(exchange, talk)
            if refusal is not None and (other := self._other_form(exchange, refusal, talk)) is not None:
                refusal = await self._sent(other, talk)
        except (AuthUnresolved, ProviderFailed, ConstraintRefused, _BadPayload) as error:
            talk.ended = Ended("error", talk.told(str(error)))
            return
        if refusal is not None:
            asked_s = server_delay_s(refusal.headers, now_s=self._clock() / 1000)
            hint_ms = None if asked_s is None else round(asked_s * 1000)
            talk.ended = Ended("error", talk.told(refusal.text), retry_after_ms=hint_ms)

    async def _exchange(self, api: WireApi, request: ModelRequest, auth: Auth) -> "_Exchange":
        """What stays the same however often the request is sent. Headers are settled before the body is built (WIRE-100)."""
        model = request.model
        conversation = self._conversations.of(api, model, request.options.session_id)
        conversation.follow(request.messages)
        identity = identity_headers(self._identity, model, request.options.session_id)
        layers = (identity, *conversation.layers(request), auth.headers, request.options.headers or EMPTY)
        if self._needs_key and not auth.owns(layers, api.auth_headers):
            raise AuthUnresolved(f"No API key for provider: {self.name}")
        own = own_headers([model.headers, auth.headers, request.options.headers])
        key = api.key_headers(auth.api_key) if auth.api_key else EMPTY
        return _Exchange(
            api=api,
            request=request,
            conversation=conversation,
            url=joined(auth.base_url or model.base_url, api.path),
            headers=tuple(merged_headers([key, *layers, await _after_handlers(own, request.hooks)]).items()),
        )

    def _other_form(self, exchange: "_Exchange", refusal: "_Refusal", talk: "_Talk") -> "_Exchange | None":
        """The exchange in the other form of its API, if that may help; the session stays with it (WIRE-38)."""
        form, request = exchange.api.other_form, exchange.request
        if form is None or refusal.status is None or not exchange.conversation.gives_in(refusal.status, refusal.text):
            return None
        self._conversations.change_over(request.options.session_id)
        conversation = form.begin(request.model)
        conversation.follow(request.messages)
        told = {"type": form.diagnostic, "timestamp": self._clock(), "error": {"message": talk.told(refusal.text)}}
        talk.diagnostics += (freeze({**told, "details": {"reason": form.reason}}),)
        return attrs.evolve(exchange, conversation=conversation)

    # attempts (WIRE-20 to WIRE-23)

    async def _sent(self, exchange: "_Exchange", talk: "_Talk") -> "_Refusal | None":
        """Builds and sends the request, again where that helps; None if a stream began, then `talk.ended` says how it ended."""
        asked = exchange.request.options
        request = HttpRequest(
            url=exchange.url,
            headers=exchange.headers,
            body=await _replaced(exchange.conversation.body(exchange.request), talk.hooks),
            idle_timeout_s=self._limits.idle_timeout_s if asked.timeout_ms is None else asked.timeout_ms / 1000 or None,
        )
        retries = self._limits.max_retries if asked.max_retries is None else asked.max_retries
        longest_s = self._limits.max_retry_delay_s if asked.max_retry_delay_ms is None else asked.max_retry_delay_ms / 1000
        for attempt in itertools.count():
            refusal = await self._attempt(request, exchange, talk)
            if refusal is None or attempt >= retries or not is_retried(refusal.status, refusal.headers):
                return refusal
            named_s = server_delay_s(refusal.headers, now_s=self._clock() / 1000)
            if named_s is not None and 0 < longest_s < named_s:
                return attrs.evolve(refusal, text=too_long(named_s, longest_s, refusal.plain or refusal.text), status=None)
            talk.waiting_since_s = math.inf
            await trio.sleep(own_delay_s(attempt, self._chance) if named_s is None else named_s)
        raise AssertionError("itertools.count() never ends")

    async def _attempt(self, request: HttpRequest, exchange: "_Exchange", talk: "_Talk") -> "_Refusal | None":
        """One exchange: None if the stream began, then `talk.ended` says how it ended; else why it did not begin."""
        talk.progressed()
        try:
            async with self._http.stream(request) as response:
                if talk.hooks.on_response is not None:
                    await talk.hooks.on_response(response.status, response.headers)
                if not 200 <= response.status < 300:
                    body = await error_body(response)
                    text = exchange.api.error_text(response.status, body, self.name)
                    return _Refusal(text, response.status, response.headers, exchange.api.plain_error(response.status, body))
                await talk.send([Started()])
                await self._read(response, talk, exchange.conversation.reader(exchange.request))
        except (HttpFailed, SseOverflow) as error:
            if isinstance(error, HttpFailed) and not talk.has_started:
                text = with_server(str(error), self.name, exchange.request.model.base_url)
                return _Refusal(text, 400 if error.kind == "invalid" else None, {})
            talk.fail(str(error))
        return None

    async def _read(self, response: HttpResponse, talk: "_Talk", reader: Reader) -> None:
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

    async def _event(self, event: SseEvent, talk: "_Talk", reader: Reader) -> bool:
        """Whether the stream is over."""
        try:
            parsed = reader.parse(event)
        except MalformedEvent as error:
            talk.fail(str(error))
            return True
        if parsed is not None:
            if talk.hooks.on_stream_event is not None:
                await talk.hooks.on_stream_event(freeze(parsed))
            await talk.send(reader.read(parsed))
        if talk.ended is None and reader.is_over:
            await talk.send(reader.finish())
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


class _BadPayload(Exception):
    """A payload hook gave something that is no body."""


@attrs.frozen(kw_only=True)
class _Exchange:
    """A request with its way settled; its body may be built more than once."""

    api: WireApi
    request: ModelRequest
    conversation: Conversation
    url: str = attrs.field(repr=False)
    headers: tuple[tuple[str, str], ...] = attrs.field(repr=False)


@attrs.frozen
class _Refusal:
    """An exchange that ended before a stream began. `status` None: no response at all."""

    text: str
    status: int | None
    headers: Mapping[str, str]
    plain: str = ""
    """The text in few words; empty if there is none but `text`."""


@attrs.define(eq=False, kw_only=True)
class _Talk:
    """One request being answered: where its items go, since when it waits, how it ended."""

    emit: Emit
    hooks: RequestHooks
    limit_s: float | None
    clock: Callable[[], int]
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    """Cancelled when no content came for `limit_s`."""
    waiting_since_s: float = math.inf
    """When content last came, in Trio's time; infinite while nobody waits for the server."""
    reader: Reader | None = None
    ended: Ended | None = None
    has_started: bool = False
    secrets: tuple[str, ...] = attrs.field(default=(), repr=False)
    diagnostics: tuple[Json, ...] = ()
    """What the final message tells of the way here, before what its reader has to tell (STR-38)."""

    def progressed(self) -> None:
        """Content came, or a request goes out: the wait starts anew."""
        self.waiting_since_s = trio.current_time()

    async def send(self, items: Sequence[StreamItem]) -> None:
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
        if item.diagnostics:
            item = attrs.evolve(item, diagnostics=freeze([{"timestamp": self.clock(), **each} for each in item.diagnostics]))
        if not item.error_message:
            return item
        reason = item.raw_stop_reason
        return attrs.evolve(item, error_message=self.told(item.error_message), raw_stop_reason=reason and self.told(reason))

    def told(self, text: str) -> str:
        """An error text that holds no secret."""
        return without_secrets(text, self.secrets)


def _ended(talk: _Talk, signal: Signal) -> Ended:
    """How a request ended, with what is to be told of the way there."""
    ended = _plain_end(talk, signal)
    return attrs.evolve(ended, diagnostics=(*talk.diagnostics, *(ended.diagnostics or ()))) if talk.diagnostics else ended


def _plain_end(talk: _Talk, signal: Signal) -> Ended:
    """An abort wins over the failure it may have caused, but not over a good end."""
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
