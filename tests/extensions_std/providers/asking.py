"""Asking a provider as the agent loop does: items folded one by one, the final message in the end."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import attrs
import trio

from camshaft.actors.api import ModelRequest, RequestOptions, Signal
from camshaft.actors.ports.http import HttpFailed, HttpRequest, HttpResponse
from camshaft.extensions_std.providers.credentials import Auth
from camshaft.extensions_std.providers.wire_apis import WIRE_APIS
from camshaft.extensions_std.providers.wire_provider import WireProvider
from camshaft.kernel.messages import AssistantMessage, ModelMessage, UserMessage
from camshaft.kernel.models import Model
from camshaft.kernel.stream import StreamItem, Violation, begin, fold

HELLO: Final = (UserMessage(content="Hello", timestamp=1),)


@attrs.define(eq=False)
class AskSignal:
    """An abort signal in the hand of a test."""

    _event: trio.Event = attrs.field(factory=trio.Event)

    @property
    def cancelled(self) -> bool:
        """Whether the request was aborted."""
        return self._event.is_set()

    async def wait(self) -> None:
        """Until the request is aborted."""
        await self._event.wait()

    def abort(self) -> None:
        """Aborts the request."""
        self._event.set()


@attrs.define(eq=False)
class Asked:
    """An answer: its items, and the message they fold to."""

    items: list[StreamItem] = attrs.field(factory=list)
    message: AssistantMessage | None = None


async def ask(
    provider: Any,
    messages: Sequence[ModelMessage] = HELLO,
    *,
    signal: Signal | None = None,
    options: RequestOptions | None = None,
    abort_after: int | None = None,
    level: str = "off",
) -> Asked:
    """The answer of `provider`; `abort_after` aborts when that many items have come."""
    model: Model = provider.models[0]
    own = AskSignal()
    asked, partial = Asked(), begin(model.api, model.provider, model.id, 1)

    async def emit(item: StreamItem) -> None:
        nonlocal partial
        folded = fold(partial, item)
        assert not isinstance(folded, Violation), folded.text
        partial = folded
        asked.items.append(item)
        if abort_after == len(asked.items):
            own.abort()

    request = ModelRequest(model=model, thinking_level=level, messages=messages, options=options or RequestOptions())
    await provider.stream(request, signal or own, emit)
    asked.message = partial.message
    return asked


def local_model(base_url: str = "http://model.test/v1", **fields: Any) -> Model:
    """A model of a local server."""
    return Model(id="m", provider="local", api="openai-completions", base_url=base_url, **fields)


def completions(http: Any, model: Model, *, key: str | None = "test-key", headers: Mapping[str, str] | None = None, **fields: Any) -> Any:
    """A provider with one model that uses `http`."""

    async def resolve(_model: Model, _options: RequestOptions) -> Auth:
        return Auth(api_key=key, headers=headers or {})

    return WireProvider(apis=WIRE_APIS, name=model.provider, models=(model,), http=http, resolve=resolve, **fields)


def anthropic_model(**fields: Any) -> Model:
    """A model of the Anthropic API."""
    own = {"id": "claude-x", "provider": "anthropic", "api": "anthropic-messages", "base_url": "http://model.test"}
    return Model(**{**own, "max_tokens": 64_000, "context_window": 200_000, **fields})


def anthropic(
    http: Any, *, key: str | None = "test-key", needs_key: bool = False, clock: Callable[[], int] = lambda: 0, **fields: Any
) -> Any:
    """A provider with one such model, which has these fields."""
    return completions(http, anthropic_model(**fields), key=key, needs_key=needs_key, clock=clock)


@attrs.frozen
class Wait:
    """A pause between two pieces of a body."""

    seconds: float


@attrs.frozen(kw_only=True)
class FakeResponse:
    """A response in the process, for a virtual clock."""

    status: int = 200
    headers: Mapping[str, str] = attrs.field(factory=dict)
    body: Sequence[bytes | Wait | HttpFailed] = ()

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The pieces of the body, at their times."""
        for piece in self.body:
            match piece:
                case Wait(seconds):
                    await trio.sleep(seconds)
                case HttpFailed():
                    raise piece
                case _:
                    yield piece


@attrs.define(eq=False)
class FakeHttp:
    """Answers from a list, in order; the last answer is repeated."""

    answers: Sequence[FakeResponse | HttpFailed]
    requests: list[HttpRequest] = attrs.field(factory=list)

    async def aclose(self) -> None:
        """Nothing is kept open."""

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncGenerator[HttpResponse, None]:
        """The next answer."""
        await trio.lowlevel.checkpoint()
        answer = self.answers[min(len(self.requests), len(self.answers) - 1)]
        self.requests.append(request)
        if isinstance(answer, HttpFailed):
            raise answer
        yield answer
