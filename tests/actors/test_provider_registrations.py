"""Providers and virtual models that extensions register, and the next model and level."""

from typing import Any

import attrs
import pytest

from camshaft.actors.api import Emit, Ended, ExtensionAPI, Model, ModelRequest, Signal, Started, TextDelta, TextEnded, TextStarted
from camshaft.actors.host import BuildRequest, ExtensionMisuse, ScopedModel
from camshaft.extensions_std.providers.scripted import ScriptedProvider, assistant, faux_model
from tests.actors.running import Running, opened, said, simulate

OWN = Model(id="own", provider="acme", api="acme-api", reasoning=True)


@attrs.frozen(kw_only=True)
class Answering:
    """A provider that says its name."""

    name: str = "acme"
    api: str = "acme-api"
    models: tuple[Model, ...] = (OWN,)
    is_configured: bool = True

    def configured(self) -> bool:
        return self.is_configured

    def set_responses(self, _responses: Any) -> None:
        """It needs none."""

    async def stream(self, request: ModelRequest, _signal: Signal, emit: Emit) -> None:
        for item in answer(f"{self.name} {request.model.id} {request.model.base_url}"):
            await emit(item)


def answer(text: str) -> tuple[Any, ...]:
    return Started(), TextStarted(index=0), TextDelta(index=0, delta=text), TextEnded(index=0), Ended("stop")


async def stream_simple(request: ModelRequest, _signal: Signal) -> Any:
    for item in answer(f"simple {request.model.id}"):
        yield item


def doing(test: Any, *setups: Any, **more: Any) -> Any:
    async def run() -> Any:
        async with opened([assistant("scripted")], *setups, **more) as running:
            return await test(running)
        raise AssertionError

    return simulate(run)


def after_start(act: Any) -> Any:
    """A setup that acts when the session has started."""
    return lambda api: api.on("session_start", lambda _event, ctx: act(api, ctx))


async def references(running: Running) -> list[str]:
    return [model.reference for provider in running.seat.providers for model in provider.models]


async def answered(running: Running) -> list[tuple[str | None, str]]:
    await running.seat.prompt("go")
    return said(running.seat.context_messages)


# -- providers ---------------------------------------------------------------------------


@pytest.mark.rule("PRV-1", "PRV-2")
def test_a_provider_that_a_factory_registers_takes_part_in_the_choice_of_the_first_model() -> None:
    found = doing(answered, lambda api: api.register_provider(Answering()), model="acme/own")

    assert found == [("user", "go"), ("assistant", "acme own ")]


@pytest.mark.rule("PRV-1", "PRV-4")
def test_a_provider_registered_later_is_there_at_once_and_the_current_model_is_read_again() -> None:
    def redirect(api: Any, _ctx: Any) -> None:
        api.register_provider(Answering(models=(attrs.evolve(OWN, base_url="http://new"),)))

    before = Answering(models=(attrs.evolve(OWN, base_url="http://old"),))
    found = doing(answered, lambda api: api.register_provider(before), after_start(redirect), model="acme/own")

    assert found == [("user", "go"), ("assistant", "acme own http://new")]


@pytest.mark.rule("PRV-1", "PRV-22")
def test_a_config_with_a_stream_of_its_own_answers_for_its_api() -> None:
    config = {"api": "mine", "models": [{"id": "m"}], "stream_simple": stream_simple}

    found = doing(answered, lambda api: api.register_provider("acme", config), model="acme/m")

    assert found == [("user", "go"), ("assistant", "simple m")]


@pytest.mark.rule("PRV-15")
def test_models_of_an_api_that_nobody_serves_fail_their_requests() -> None:
    config = {"api": "mine", "models": [{"id": "m", "api": "other"}], "stream_simple": stream_simple}

    found = doing(answered, lambda api: api.register_provider("acme", config), model="acme/m")

    assert found == [("user", "go"), ("assistant", "error: No API provider registered for api: other")]


@pytest.mark.rule("PRV-11", "PRV-12", "API-31")
def test_configs_of_one_id_merge_and_unregistering_restores_what_was_there() -> None:
    asked: list[BuildRequest] = []

    def build(request: BuildRequest) -> Answering:
        asked.append(request)
        return Answering(name=request.name, models=request.models)

    def setup(api: ExtensionAPI) -> None:
        api.register_provider("acme", {"base_url": "http://one", "api_key": "key"})
        api.register_provider("acme", {"headers": {"a": "b"}, "base_url": "http://two"})
        api.register_command("back", lambda _args, _ctx: api.unregister_provider("acme"))

    async def test(running: Running) -> tuple[list[str], list[str]]:
        over = [model.base_url for model in running.seat.providers[0].models]
        await running.seat.prompt("/back")
        return over, [model.base_url for model in running.seat.providers[0].models]

    host = Answering(models=(attrs.evolve(OWN, base_url="http://host"),))
    assert doing(test, setup, provider=host, build_provider=build) == (["http://two"], ["http://host"])
    assert (asked[-1].config.api_key, asked[-1].config.headers, asked[-1].base) == ("key", {"a": "b"}, host)


@pytest.mark.rule("PRV-2")
def test_unregistering_while_loading_takes_back_what_waits() -> None:
    def setup(api: Any) -> None:
        api.register_provider(Answering())
        api.unregister_provider("acme")
        api.unregister_provider("never")

    assert doing(references, setup) == [faux_model().reference]


@pytest.mark.rule("EXT-24")
def test_an_extension_that_fails_registers_no_provider_no_virtual_model_and_no_server() -> None:
    def failing(api: Any) -> None:
        api.register_provider(Answering())
        api.register_virtual_model(VIRTUAL)
        api.register_mcp_server("docs", {"command": "docs"})
        raise ValueError("bad")

    kept: list[Any] = []

    async def test(running: Running) -> tuple[Any, ...]:
        return await references(running), kept[0].get_mcp_servers()

    assert doing(test, failing, kept.append) == ([faux_model().reference], ())


REFUSED: dict[str, tuple[Any, str]] = {
    "no config": (("acme",), "Provider config is required when registering by name"),
    "a blank id": (("  ", {"base_url": "x"}), "Provider id must not be empty."),
    "an object with a blank id": ((Answering(name=" "),), "Provider id must not be empty."),
    "no provider": ((3,), "provider 3 has no name; expected an object with name, models, configured, stream"),
    "an unknown field": (
        ("acme", {"baseUrl": "x"}),
        "Provider acme: no field 'baseUrl'; expected name, base_url, api_key, api, headers, auth_header, models, stream_simple",
    ),
    "a stream without its api": (
        ("acme", {"stream_simple": stream_simple}),
        'Provider acme: "api" is required when registering streamSimple.',
    ),
    "a model without an api": (
        ("acme", {"base_url": "x", "models": [{"id": "m"}]}),
        'Provider acme, model m: no "api" specified. Set it at model level or provider level.',
    ),
    "models without an endpoint": (
        ("acme", {"api": "x", "models": [{"id": "m"}]}),
        'Provider acme: "baseUrl" is required when defining custom models.',
    ),
    "a model with a field too many": (
        ("acme", {"api": "x", "base_url": "u", "models": [{"id": "m", "window": 3}]}),
        "Provider acme, model m: window: expected no such field; Model has ",
    ),
    "an api that this host cannot serve": (
        ("acme", {"api": "x", "base_url": "u", "models": [{"id": "m"}]}),
        "Provider acme: this host has no adapter that takes a config (api: x); register a provider object",
    ),
}


@pytest.mark.rule("PRV-1", "PRV-3", "PRV-10")
@pytest.mark.parametrize(("arguments", "text"), REFUSED.values(), ids=REFUSED)
def test_a_provider_that_cannot_be_raises_where_it_is_registered_and_changes_nothing(arguments: Any, text: str) -> None:
    told: list[str] = []

    def act(api: Any, _ctx: Any) -> None:
        with pytest.raises(ExtensionMisuse) as caught:
            api.register_provider(*arguments)
        told.append(str(caught.value)[: len(text)])

    assert doing(references, after_start(act)) == [faux_model().reference]
    assert told == [text]


@pytest.mark.rule("PRV-3", "EXT-26")
def test_what_waited_and_cannot_be_is_a_load_error_and_reported_and_the_others_go_on() -> None:
    def setup(api: Any) -> None:
        api.register_provider("bad", {"api": "x", "models": [{"id": "m"}]})
        api.register_provider(Answering())

    async def test(running: Running) -> tuple[Any, ...]:
        errors = [(each.extension_path, each.event, each.error) for each in running.seat.errors]
        return errors, [(each.path, each.error) for each in running.seat.load_errors], await references(running)

    text = 'Provider bad: "baseUrl" is required when defining custom models.'
    assert doing(test, setup) == (
        [("<inline:x0>", "register_provider", text)],
        [("<inline:x0>", text)],
        [faux_model().reference, "acme/own"],
    )


# -- virtual models ----------------------------------------------------------------------

VIRTUAL = {"provider": "auto", "id": "best", "name": "Best", "route": lambda *_: None, "thinking_levels": ["off", "high"]}


@pytest.mark.rule("VM-1", "VM-3", "VM-4")
def test_a_virtual_model_is_listed_with_what_it_offers() -> None:
    async def test(running: Running) -> Model:
        found = running.seat.providers[-1]
        assert (found.name, found.configured()) == ("auto", True)
        return found.models[0]

    model = doing(test, lambda api: api.register_virtual_model(VIRTUAL))

    assert (model.api, model.base_url, model.reasoning, model.context_window) == ("pi-virtual", "", True, 0)
    assert {level: value for level, value in model.thinking_level_map.items() if value} == {"off": "off", "high": "high"}


@pytest.mark.rule("VM-2", "VM-4")
def test_it_stands_beside_physical_models_and_is_available_as_they_are() -> None:
    def setup(api: Any) -> None:
        api.register_provider(Answering(is_configured=False))
        api.register_virtual_model({**VIRTUAL, "provider": "acme"})

    async def test(running: Running) -> tuple[Any, ...]:
        provider = running.seat.providers[-1]
        return [model.id for model in provider.models], provider.configured()

    assert doing(test, setup) == (["own", "best"], False)


@pytest.mark.rule("VM-1", "API-32")
def test_the_same_one_replaces_and_unregistering_takes_it_back() -> None:
    def setup(api: Any) -> None:
        api.register_virtual_model(VIRTUAL)
        api.register_virtual_model({**VIRTUAL, "name": "Better"})

        def start(*_: Any) -> None:
            api.unregister_virtual_model("auto", "best")
            api.unregister_virtual_model("auto", "never")

        api.on("session_start", start)

    assert doing(references, setup) == [faux_model().reference]


VIRTUAL_MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "no id": ({"id": " "}, "Virtual model provider and id must not be empty."),
    "an id that a physical model has": ({"provider": "acme", "id": "own"}, "Virtual model acme/own conflicts with a physical model."),
    "a router that is none": ({"route": "m"}, "route of virtual model auto/best is 'm'; expected a function"),
    "an unknown level": ({"thinking_levels": ["most"]}, "virtual model auto/best: thinking level 'most'; expected some of off, "),
    "a field too many": ({"window": 3}, "virtual model: no field 'window'; expected provider, id, name, route, "),
}


@pytest.mark.rule("VM-2", "API-32")
@pytest.mark.parametrize(("changed", "text"), VIRTUAL_MISTAKES.values(), ids=VIRTUAL_MISTAKES)
def test_a_virtual_model_that_cannot_be_is_refused(changed: dict[str, Any], text: str) -> None:
    told: list[str] = []

    def act(api: Any, _ctx: Any) -> None:
        with pytest.raises(ExtensionMisuse) as caught:
            api.register_virtual_model({**VIRTUAL, **changed})
        told.append(str(caught.value)[: len(text)])

    doing(references, lambda api: api.register_provider(Answering()), after_start(act))

    assert told == [text]


# -- the next model, the next level -------------------------------------------------------

MODELS = tuple([Model(id=each, provider="acme", api="acme-api", reasoning=each != "b") for each in "abc"])


async def cycling(running: Running) -> list[tuple[str, str, bool] | None]:
    steps: list[tuple[str, str, bool] | None] = []
    for direction in ("forward", "forward", "forward", "backward"):
        found = await running.seat.cycle_model(direction)
        steps.append(None if found is None else (found.model.id, found.thinking_level, found.is_scoped))
    return steps


@pytest.mark.rule("SDK-13", "RPC-40")
def test_the_next_model_is_the_next_usable_one_and_after_the_last_comes_the_first() -> None:
    given = Answering(models=MODELS)

    assert doing(cycling, provider=given, model="acme/a") == [
        ("b", "off", False),
        ("c", "off", False),
        ("a", "off", False),
        ("c", "off", False),
    ]


@pytest.mark.rule("RPC-40")
def test_with_a_scope_only_its_models_come_with_their_levels() -> None:
    scope = (ScopedModel(model=MODELS[0], thinking_level="high"), ScopedModel(model=MODELS[2]))

    found = doing(cycling, provider=Answering(models=MODELS), model="acme/b", scoped_models=scope)

    assert found == [("a", "high", True), ("c", "high", True), ("a", "high", True), ("c", "high", True)]


@pytest.mark.rule("RPC-40")
def test_there_is_no_next_model_where_there_is_only_one() -> None:
    assert doing(cycling, provider=ScriptedProvider()) == [None] * 4


@pytest.mark.rule("RPC-42")
@pytest.mark.parametrize(("model", "levels"), [("a", ["minimal", "low", "medium", "high", "off", "minimal"]), ("b", [None] * 6)])
def test_the_next_level_is_the_models_and_after_the_last_comes_the_first(model: str, levels: list[str | None]) -> None:
    async def test(running: Running) -> list[str | None]:
        return [running.seat.cycle_thinking_level() for _ in levels]

    assert doing(test, provider=Answering(models=MODELS), model=f"acme/{model}") == levels
