"""Conversations with a virtual model `auto/best` over the scripted models `faux/small` and `faux/large`, for tests."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs

from camshaft.actors.api import Model, RouteRequest
from camshaft.extensions_std.providers.scripted import ScriptedProvider, Step, faux_model
from camshaft.kernel.messages import AssistantMessage
from camshaft.kernel.settings import Settings
from tests.actors.running import NO_RETRY, Running, opened, simulate

SMALL = faux_model("small", context_window=2000, max_tokens=500)
LARGE = faux_model("large", context_window=100_000, reasoning=True)
STATE = "pi.virtual-model-state"

Router = Callable[..., Any]


@attrs.define
class Asked:
    """A router that notes what it is asked."""

    route: Router
    requests: list[RouteRequest] = attrs.field(factory=list)

    def __call__(self, request: RouteRequest, ctx: Any) -> Any:
        self.requests.append(request)
        return self.route(request, ctx)

    @property
    def reasons(self) -> list[str]:
        return [request.reason for request in self.requests]

    @property
    def states(self) -> list[Any]:
        return [request.state for request in self.requests]

    @property
    def previous(self) -> list[str | None]:
        return [None if each.previous is None else each.previous.model.id for each in self.requests]


def always(model: str, **route: Any) -> Asked:
    """A router that knows one answer."""
    return Asked(lambda _request, _ctx: {"model": f"faux/{model}", **route})


def registering(router: Router, **fields: Any) -> Callable[[Any], None]:
    """A setup that registers `auto/best`."""

    def setup(api: Any) -> None:
        api.register_virtual_model({"provider": "auto", "id": "best", "name": "Best", "route": router, **fields})

    return setup


def scripted(*models: Model) -> ScriptedProvider:
    return ScriptedProvider(chunked=False, models=models or (SMALL, LARGE))


@asynccontextmanager
async def routed(
    script: Sequence[Step], router: Router, *setups: Any, settings: Settings = NO_RETRY, fields: dict[str, Any] | None = None, **more: Any
) -> AsyncIterator[Running]:
    """A conversation in which `auto/best` is selected."""
    provider = more.pop("provider", None) or scripted()
    more = {"model": "auto/best", **more}
    async with opened(script, registering(router, **(fields or {})), *setups, provider=provider, settings=settings, **more) as running:
        yield running


def answers(running: Running) -> list[tuple[str, str, str, str | None]]:
    """Api, model, stop reason and error text of each answer."""
    found = [message for message in running.seat.context_messages if isinstance(message, AssistantMessage)]
    return [(message.api, f"{message.provider}/{message.model}", message.stop_reason, message.error_message) for message in found]


def entries(running: Running) -> list[Any]:
    return list(running.seat.state.tree.entries())


def states(running: Running) -> list[Any]:
    """The data of every state entry, on all branches."""
    return [entry.data for entry in entries(running) if entry.type == "custom" and entry.custom_type == STATE]


def models_asked(running: Running) -> list[str]:
    return [request.model.id for request in running.provider.requests]


def leaf(running: Running) -> str:
    """Where the branch ends."""
    found = running.seat.state.leaf_id
    assert found is not None
    return found


def selected(running: Running) -> str:
    """The reference of the selected model."""
    model = running.seat.model
    assert model is not None
    return model.reference


async def window(running: Running) -> tuple[int, int | None] | None:
    """The window that counts, and the tokens in it; None if it is unknown."""
    usage = (await running.seat.statistics()).context_usage
    return None if usage is None else (usage.context_window, usage.tokens)


def told(script: Any, router: Any, *prompts: str, look: Any = lambda running: None, **more: Any) -> Any:
    """What `look` sees after these prompts."""

    async def test() -> Any:
        async with routed(script, router, **more) as running:
            for text in prompts:
                await running.seat.prompt(text)
            return look(running)
        raise AssertionError

    return simulate(test)
