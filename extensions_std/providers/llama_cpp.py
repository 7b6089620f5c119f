"""The models of a llama.cpp server, as it lists them itself: a router, or a server with one model (MOD-101).

    GET <root>/models                  what there is, each with its status
    GET <root>/props                   whether a router loads on demand
    GET <root>/props?model=ID          of a model that runs: its window, its chat template

Where the server is: `LLAMA_BASE_URL`, `baseUrl` in `models.json`, or the usual port of this machine. The usual port is asked
only when somebody names the provider: a machine without such a server is the common case, and nobody wants to hear of it
at each start. Nothing that is asked here loads a model or wakes one up.

What a server says is not trusted: sizes and times are bounded, a field of a wrong type counts as absent, and a
model whose details cannot be had is listed without them.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final
from urllib.parse import quote

import attrs
import trio

from camshaft.actors.api import (
    EMPTY,
    Emit,
    FrozenDict,
    Http,
    HttpFailed,
    HttpRequest,
    MalformedJson,
    Model,
    ModelRequest,
    RequestOptions,
    Signal,
    loads,
)
from camshaft.actors.host import AuthStatus, ProviderFailed, RefreshContext
from camshaft.extensions_std.providers.credentials import Auth, AuthUnresolved, joined, merged_headers, secrets_of, shown_url
from camshaft.extensions_std.providers.http_errors import with_server, without_secrets
from camshaft.extensions_std.providers.provider_keys import NO_OPTIONS, ProviderKeys
from camshaft.extensions_std.providers.wire_provider import WireProvider

LLAMA: Final = "llama-cpp"
URL_VARIABLE: Final = "LLAMA_BASE_URL"
DEFAULT_URL: Final = "http://127.0.0.1:9931"
DEFAULT_KEY: Final = "local"
"""Sent when there is no key: some clients between here and the server want one."""

LOOK_LIMIT_S: Final = 10.0
"""For everything that one look at the server takes."""
SILENCE_LIMIT_S: Final = 5.0
ANSWER_MAX_BYTES: Final = 4 * 1024 * 1024
MODELS_MAX: Final = 1000
"""How many models of a list count."""
ID_MAX: Final = 512
WINDOW_MAX: Final = 100_000_000
"""A window beyond that is no window."""
AT_ONCE: Final = 8
"""How many models are asked about at the same time."""

COMPAT: Final = FrozenDict(
    {"supportsStore": False, "supportsReasoningEffort": False, "supportsStrictMode": False, "maxTokensField": "max_tokens"}
)
THINKING_COMPAT: Final = FrozenDict({**COMPAT, "thinkingFormat": "qwen-chat-template"})
LEVELS: Final = FrozenDict({"off": "off", "minimal": None, "low": None, "medium": "medium", "high": None})
"""A template knows thinking and no thinking, nothing between."""

_SIZE_ARGUMENTS: Final = ("-c", "--ctx-size", "-ctx")
_PRESET_SIZE: Final = re.compile(r"^\s*(?:c|ctx-size|LLAMA_ARG_CTX_SIZE)\s*=\s*(\d{1,12})\s*$", re.MULTILINE)

Layer = Callable[[Sequence[Model]], tuple[Model, ...]]
"""What `models.json` makes of the models of the provider."""


@attrs.define(eq=False, kw_only=True)
class LlamaProvider:
    """The provider `llama-cpp`; what it offers is what a refresh found last."""

    wire: WireProvider
    """Who makes its requests."""
    http: Http = attrs.field(repr=False)
    keys: ProviderKeys = attrs.field(repr=False)
    models: tuple[Model, ...] = ()
    name: str = LLAMA
    _layer: Layer = attrs.field(default=tuple, repr=False)
    _url: str | None = attrs.field(default=None, repr=False)
    """Of `models.json`."""
    _urls: dict[str, str] = attrs.field(factory=dict, repr=False)
    """A base url as it is shown, to the whole one; the keys have the same dict."""
    _named: list[bool] = attrs.field(factory=lambda: [False], repr=False)
    """Whether somebody asked for it by name; a copy of this provider shares it."""

    @property
    def api(self) -> str:
        """What such a server speaks."""
        return "openai-completions"

    @property
    def display_name(self) -> str | None:
        """The name in `models.json`."""
        return self.wire.display_name

    def speaks(self, api: str) -> bool:
        """Whether models of that wire API can be asked."""
        return self.wire.speaks(api)

    async def resolve(self, model: Model, options: RequestOptions = NO_OPTIONS) -> Auth:
        """What authorizes a request. Raises AuthUnresolved."""
        return await self.keys.resolve(model, options)

    async def stream(self, request: ModelRequest, signal: Signal, emit: Emit) -> None:
        """See `WireProvider.stream`."""
        await self.wire.stream(request, signal, emit)

    def want(self) -> None:
        """Somebody names the provider: then the usual port counts, too."""
        self._named[0] = True

    def auth_status(self) -> AuthStatus:
        """Configured if anything says that there is such a server."""
        status = self.keys.status()
        if status.source != "fallback" or self._named[0] or self._url is not None or self.keys.scoped.get(URL_VARIABLE, "").strip():
            return status
        return AuthStatus(configured=False)

    def configured(self) -> bool:
        """As `auth_status` says."""
        return self.auth_status().configured

    async def refresh_models(self, context: RefreshContext) -> None:
        """What was found last without the network, what the server lists with it. Raises ProviderFailed; the list stays then."""
        if not context.allow_network:
            self.restore(context.stored)
            return
        found = await self.look()
        context.publish(persist=_entry(found), update=lambda: self._take(found))

    async def take_look(self) -> Mapping[str, Any]:
        """As a refresh, for before there is anybody to refresh; gives what is to be kept. Raises ProviderFailed."""
        found = await self.look()
        self._take(found)
        return _entry(found)

    def restore(self, stored: Mapping[str, Any] | None) -> None:
        """Offers what was found last; entries that are damaged do not count."""
        listed = (stored or EMPTY).get("models")
        entries = [each for each in listed if isinstance(each, Mapping) and _id_of(each)] if isinstance(listed, list | tuple) else []
        root = self._root()
        self._take([_model(each["id"], root, _window(each.get("contextWindow")), each) for each in entries[:MODELS_MAX]])

    async def look(self) -> tuple[Model, ...]:
        """The models that can be asked for: those that run first. Raises ProviderFailed."""
        root = self._root()
        secrets: tuple[str, ...] = ()
        try:
            auth = await self.keys.resolve(Model(id="", provider=self.name, api="openai-completions"), RequestOptions())
            secrets = secrets_of(auth, EMPTY, Model(id="", provider=self.name, api="", base_url=root))
            with trio.fail_after(LOOK_LIMIT_S):
                return await _Server(self, root, auth).models()
        except AuthUnresolved as error:
            raise ProviderFailed("auth", without_secrets(str(error), secrets)) from None
        except trio.TooSlowError:
            raise ProviderFailed("model_source", with_server(f"no list of models within {LOOK_LIMIT_S:g} s", self.name, root)) from None
        except (HttpFailed, _Odd) as error:
            raise ProviderFailed("model_source", with_server(without_secrets(str(error), secrets), self.name, root)) from None

    @property
    def known(self) -> Mapping[str, Model]:
        """What is offered now, by id."""
        return {model.id: model for model in self.models}

    def _take(self, models: Sequence[Model]) -> None:
        shown = []
        for model in self._layer(models):
            url = shown_url(model.base_url)
            self._urls[url] = model.base_url
            shown.append(attrs.evolve(model, base_url=url))
        self.models = tuple(shown)

    def _root(self) -> str:
        """Where the server is; `/v1` at the end is the place of the API, not of the server."""
        return _root_of(self._url or self.keys.scoped.get(URL_VARIABLE, "").strip() or DEFAULT_URL)


def api_url(given: str) -> str:
    """Where the API is, of a url with or without `/v1` at its end."""
    return joined(_root_of(given), "/v1")


def _root_of(given: str) -> str:
    path, mark, query = given.partition("?")
    return f"{path.rstrip('/').removesuffix('/v1').rstrip('/')}{mark}{query}"


class _Odd(Exception):
    """An answer that is no list of models; the text holds nothing of it."""


@attrs.frozen
class _Server:
    """One look at a server."""

    _provider: LlamaProvider
    _root: str
    _auth: Auth

    async def models(self) -> tuple[Model, ...]:
        """What it lists. Raises HttpFailed, _Odd."""
        answer = await self._json("/models")
        listed = answer.get("data") if isinstance(answer, Mapping) else None
        if not isinstance(listed, list):
            raise _Odd("its list of models is none")
        entries = {each["id"]: each for each in listed[:MODELS_MAX] if isinstance(each, Mapping) and _id_of(each)}
        chat = [each for each in entries.values() if _writes_text(each)]
        running = [each for each in chat if _state(each) in ("loaded", "sleeping")]
        waiting = [each for each in chat if each not in running and _is_preset(each)]
        if waiting and not await self._loads_on_demand():
            waiting = []
        details: dict[str, Any] = {}
        limit = trio.CapacityLimiter(AT_ONCE)
        async with trio.open_nursery() as nursery:
            for each in running:
                nursery.start_soon(self._ask_details, each, limit, details)
        running.sort(key=lambda each: _state(each) != "loaded")
        return tuple([self._made(each, details.get(each["id"], EMPTY)) for each in (*running, *waiting)])

    async def _loads_on_demand(self) -> bool:
        try:
            props = await self._json("/props")
        except (HttpFailed, _Odd):
            return False
        return isinstance(props, Mapping) and props.get("role") == "router" and props.get("models_autoload") is True

    async def _ask_details(self, entry: Mapping[str, Any], limit: trio.CapacityLimiter, into: dict[str, Any]) -> None:
        """Without details a model is still worth listing."""
        path = f"/props?model={quote(entry['id'], safe='')}&autoload=false"
        async with limit:
            try:
                props = await self._json(path)
            except (HttpFailed, _Odd):
                return
        if isinstance(props, Mapping):
            into[entry["id"]] = props

    def _made(self, entry: Mapping[str, Any], props: Mapping[str, Any]) -> Model:
        id, meta = entry["id"], _object(entry.get("meta"))
        known = self._provider.known.get(id)
        windows = (
            _window(_object(props.get("default_generation_settings")).get("n_ctx")),
            _window(meta.get("n_ctx")),
            _window_argument(_object(entry.get("status"))),
            None if known is None else known.context_window,
            _window(meta.get("n_ctx_train")),
        )
        template, modalities = props.get("chat_template"), _object(entry.get("architecture")).get("input_modalities")
        facts = {
            "reasoning": "enable_thinking" in template if isinstance(template, str) else known is not None and known.reasoning,
            "images": _object(props.get("modalities")).get("vision") is True or (isinstance(modalities, list) and "image" in modalities),
        }
        return _model(id, self._root, next((each for each in windows if each), None), facts)

    async def _json(self, path: str) -> Any:
        """The JSON of one answer. Raises HttpFailed, _Odd."""
        key = {"authorization": f"Bearer {self._auth.api_key}"} if self._auth.api_key else EMPTY
        headers = tuple(merged_headers([{"user-agent": "camshaft"}, key, self._auth.headers]).items())
        request = HttpRequest(method="GET", url=joined(self._root, path), headers=headers, idle_timeout_s=SILENCE_LIMIT_S)
        body = bytearray()
        async with self._provider.http.stream(request) as response:
            if response.status != 200:
                raise _Odd(f"HTTP {response.status}")
            async with aclosing(response.chunks()) as chunks:
                async for chunk in chunks:
                    body += chunk
                    if len(body) > ANSWER_MAX_BYTES:
                        raise _Odd(f"an answer of more than {ANSWER_MAX_BYTES} bytes")
        try:
            return loads(bytes(body))
        except MalformedJson:
            raise _Odd("an answer that is no JSON") from None


# -- what an entry says ----------------------------------------------------------------------


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else EMPTY


def _id_of(entry: Mapping[str, Any]) -> str | None:
    """A name that can be sent and shown."""
    id = entry.get("id")
    return id if isinstance(id, str) and 0 < len(id) <= ID_MAX and id.isprintable() else None


def _state(entry: Mapping[str, Any]) -> str:
    """A server with one model says nothing of its state: it is loaded."""
    value = _object(entry.get("status")).get("value", "loaded")
    return value if isinstance(value, str) else ""


def _is_preset(entry: Mapping[str, Any]) -> bool:
    preset = _object(entry.get("status")).get("preset")
    return _state(entry) in ("unloaded", "loading") and (isinstance(preset, str) or entry.get("source") == "preset")


def _writes_text(entry: Mapping[str, Any]) -> bool:
    """A model of decisions or embeddings is none to talk with; a server that does not say counts as one that is."""
    written = _object(entry.get("architecture")).get("output_modalities")
    return not isinstance(written, list) or "text" in written


def _window(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return int(value) if 1 <= value <= WINDOW_MAX else None


def _window_argument(status: Mapping[str, Any]) -> int | None:
    """The size that a model was or will be started with; the last one counts, and 0 leaves it to the model."""
    args, preset = status.get("args"), status.get("preset")
    found = [each for each in args if isinstance(each, str)] if isinstance(args, list) else []
    sizes = [value for name, value in zip(found, found[1:]) if name in _SIZE_ARGUMENTS]
    sizes += [each.partition("=")[2] for each in found if each.startswith("--ctx-size=")]
    if not sizes and isinstance(preset, str):
        sizes = _PRESET_SIZE.findall(preset[:ANSWER_MAX_BYTES])
    return _window(int(sizes[-1])) if sizes and re.fullmatch(r"[0-9]{1,12}", sizes[-1]) else None


def _model(id: str, root: str, window: int | None, facts: Mapping[str, Any]) -> Model:
    thinks = facts.get("reasoning") is True
    size = window or 128_000
    return Model(
        id=id,
        provider=LLAMA,
        api="openai-completions",
        name=id,
        base_url=joined(root, "/v1"),
        input=("text", "image") if facts.get("images") is True else ("text",),
        reasoning=thinks,
        thinking_level_map=LEVELS if thinks else EMPTY,
        context_window=size,
        max_tokens=size,
        compat=THINKING_COMPAT if thinks else COMPAT,
    )


def _entry(models: Sequence[Model]) -> dict[str, Any]:
    """What is kept of the models, so that they are known before the server was asked."""

    def kept(each: Model) -> dict[str, Any]:
        return {"id": each.id, "contextWindow": each.context_window, "reasoning": each.reasoning, "images": "image" in each.input}

    return {"models": [kept(each) for each in models]}
