"""Requests through the registry: streams that never raise, routing with credentials that stay at home, images and classifiers."""

from collections.abc import Mapping
from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.api import FrozenDict, Model, ModelRequest, RequestOptions
from camshaft.actors.host import ProviderFailed
from camshaft.extensions_std.providers.scripted import assistant
from camshaft.kernel.messages import AssistantMessage, TextBlock
from camshaft.kernel.stream import Ended, Started, TextDelta, TextStarted
from tests.actors.routing import Asked, always, routed
from tests.actors.running import Running, simulate
from tests.actors.test_provider_registrations import doing

PICTURE = Model(id="paint", provider="acme", api="mine-images", type="image")
JUDGE = Model(id="judge", provider="acme", api="mine-classify", type="classifier")
CHAT = Model(id="chat", provider="acme", api="mine", max_tokens=500, context_window=1000)

VIRTUAL = attrs.evolve(CHAT, api="pi-virtual")


@attrs.define(eq=False, kw_only=True)
class Noting:
    """A provider that keeps what it is asked, and says yes."""

    name: str = "acme"
    api: str = "mine"
    models: tuple[Model, ...] = (CHAT, PICTURE, JUDGE)
    is_configured: bool = True
    failure: Exception | None = None
    requests: list[ModelRequest] = attrs.field(factory=list)

    def configured(self) -> bool:
        return self.is_configured

    async def stream(self, request: ModelRequest, signal: Any, emit: Any) -> None:
        self.requests.append(request)
        await emit(Started())
        await emit(TextStarted(0))
        await emit(TextDelta(0, "yes"))
        if self.failure is not None:
            raise self.failure
        await emit(Ended("stop"))


def said_by(message: AssistantMessage) -> str:
    return "".join([block.text for block in message.content if isinstance(block, TextBlock)])


def with_provider(test: Any, provider: Any) -> Any:
    return doing(test, lambda api: api.register_provider(provider))


# -- streams -------------------------------------------------------------------------------------


@pytest.mark.rule("MOD-40", "STR-1", "STR-2", "STR-20", "WIRE-101")
def test_a_stream_gives_events_and_a_message_and_fires_no_hook() -> None:
    provider, hooks = Noting(), list[str]()

    def setup(api: Any) -> None:
        api.register_provider(provider)
        for hook in ("before_provider_headers", "before_provider_request", "after_provider_response", "provider_stream_event"):
            api.on(hook, lambda *_, hook=hook: hooks.append(hook))

    async def test(running: Running) -> None:
        before = list(running.seat.context_messages)
        stream = running.seat.model_registry.stream_simple(CHAT, "well?", system_prompt="Be brief.", thinking_level="high")
        kinds = [event.type async for event in stream]
        message = await stream.result()
        assert kinds == ["start", "text_start", "text_delta", "done"]
        assert (said_by(message), message.stop_reason, message.thinking_level) == ("yes", "stop", None)
        assert message.duration_ms is not None
        assert list(running.seat.context_messages) == before

    doing(test, setup)
    (request,) = provider.requests
    assert [(message.role, message.content) for message in request.messages] == [("system", "Be brief."), ("user", "well?")]
    assert (request.thinking_level, request.options.api_options) == ("off", None)
    assert (hooks, request.hooks.on_headers, request.hooks.on_payload) == ([], None, None)


@pytest.mark.rule("STR-2")
def test_without_prompt_and_tools_there_is_no_system_message() -> None:
    provider = Noting()

    async def test(running: Running) -> Any:
        return said_by(await running.seat.model_registry.complete(CHAT, "well?"))

    assert with_provider(test, provider) == "yes"
    assert [message.role for message in provider.requests[0].messages] == ["user"]


@pytest.mark.rule("STR-4")
def test_a_stream_of_the_api_sends_what_it_is_given() -> None:
    provider = Noting()

    async def test(running: Running) -> None:
        registry = running.seat.model_registry
        await registry.stream(CHAT, "a").result()
        await registry.stream(CHAT, "a", options=RequestOptions(api_options=FrozenDict({"effort": "low"}))).result()

    with_provider(test, provider)
    assert [request.options.api_options for request in provider.requests] == [{}, {"effort": "low"}]


@pytest.mark.rule("STR-30", "STR-31", "STR-43", "VM-10")
@pytest.mark.parametrize(
    ("model", "fields", "options", "why"),
    [
        (attrs.evolve(CHAT, provider="nobody"), {}, None, "Unknown provider: nobody"),
        (CHAT, {"is_configured": False}, None, "Provider is not configured: acme"),
        (CHAT, {"is_configured": False}, RequestOptions(api_key="own"), None),
        (PICTURE, {}, None, "Model acme/paint is not a chat model"),
        (
            attrs.evolve(CHAT, api="pi-virtual"),
            {},
            RequestOptions(api_options=FrozenDict()),
            "Virtual model acme/chat must be routed before streaming",
        ),
        (VIRTUAL, {}, None, "Virtual model acme/chat is not registered."),
        (CHAT, {"failure": ValueError("half way")}, None, "half way"),
    ],
)
def test_what_goes_wrong_is_the_last_event_and_the_message(
    model: Model, fields: dict[str, Any], options: RequestOptions | None, why: str | None
) -> None:
    async def test(running: Running) -> None:
        stream = running.seat.model_registry.stream_simple(model, "a", options=options)
        events = [event async for event in stream]
        message = await stream.result()
        assert (message.stop_reason, message.error_message) == ("stop" if why is None else "error", why)
        assert (message.provider, message.model, message.api) == (model.provider, model.id, model.api)
        assert (events[-1].type, events[-1].partial.error_message) == ("done" if why is None else "error", why)
        assert said_by(message) == ("yes" if why in (None, "half way") else "")

    with_provider(test, Noting(**fields))


@pytest.mark.rule("STR-33")
@pytest.mark.parametrize("how", ["abort", "signal"])
def test_an_aborted_request_ends_as_aborted(how: str) -> None:
    class Endless(Noting):
        async def stream(self, request: ModelRequest, signal: Any, emit: Any) -> None:
            await emit(Started())
            await trio.sleep_forever()

    async def test(running: Running) -> Any:
        from camshaft.actors.signal import AbortSignal

        signal = AbortSignal()
        stream = running.seat.model_registry.stream_simple(CHAT, "a", signal=signal)
        await trio.testing.wait_all_tasks_blocked()
        stream.abort() if how == "abort" else signal.request()
        message = await stream.result()
        return message.stop_reason, message.error_message

    assert with_provider(test, Endless()) == ("aborted", "Request was aborted")


# -- virtual models --------------------------------------------------------------------------------


@pytest.mark.rule("VM-11")
@pytest.mark.parametrize(("home", "is_passed"), [("acme", True), ("auto", False)])
def test_credentials_of_a_request_stay_with_the_provider_they_were_given_for(home: str, is_passed: bool) -> None:
    provider, router = Noting(), Asked(lambda _request, _ctx: {"model": "acme/chat"})
    options = RequestOptions(api_key="own", headers=FrozenDict({"x": "y"}), env=FrozenDict({"K": "v"}), max_tokens=9000, temperature=0.5)

    def setup(api: Any) -> None:
        api.register_provider(provider)
        api.register_virtual_model({"provider": home, "id": "best2", "name": "Best", "route": router})

    async def test(running: Running) -> None:
        model = running.seat.model_registry.find(home, "best2")
        assert model is not None
        message = await running.seat.model_registry.complete(model, "a", options=options)
        assert (message.provider, message.model) == ("acme", "chat")

    doing(test, setup)
    sent = provider.requests[0].options
    assert (sent.api_key, dict(sent.headers), dict(sent.env)) == (("own", {"x": "y"}, {"K": "v"}) if is_passed else (None, {}, {}))
    assert (sent.max_tokens, sent.temperature) == (500, 0.5)
    assert (router.reasons, router.states) == (["direct"], [None])


@pytest.mark.rule("VM-9", "VM-11")
def test_a_route_that_fails_is_an_answer_of_the_virtual_model() -> None:
    async def test() -> Any:
        async with routed([assistant("unused")], always("zzz")) as running:
            model = running.seat.model_registry.find("auto", "best")
            assert model is not None
            message = await running.seat.model_registry.complete(model, "a")
            return message.provider, message.api, message.error_message
        raise AssertionError

    assert simulate(test) == ("auto", "pi-virtual", "Virtual model auto/best routed to faux/zzz, which is not a physical model.")


# -- credentials -----------------------------------------------------------------------------------


@attrs.define(eq=False, kw_only=True)
class Keyed(Noting):
    key: Any = "secret-0123456789"

    async def resolve(self, model: Model) -> Any:
        if isinstance(self.key, Exception):
            raise self.key
        return self

    @property
    def api_key(self) -> Any:
        return self.key

    headers: Mapping[str, str] = attrs.field(factory=lambda: {"x-team": "red"})
    base_url: str = "http://acme"


@pytest.mark.rule("MOD-40", "MOD-80")
def test_what_authorizes_a_provider_is_given_or_raised_with_its_code() -> None:
    async def test(running: Running) -> None:
        auth = await running.seat.model_registry.get_provider_auth("acme")
        assert auth is not None
        assert (auth.api_key, auth.headers, auth.base_url) == ("secret-0123456789", {"x-team": "red"}, "http://acme")
        assert "secret" not in repr(auth)
        assert await running.seat.model_registry.get_provider_auth("nobody") is None

    with_provider(test, Keyed())


@pytest.mark.rule("MOD-80")
@pytest.mark.parametrize(
    ("error", "code", "why"),
    [
        (ValueError("no key"), "auth", "API key auth failed for provider acme: no key"),
        (ProviderFailed("oauth", "OAuth refresh failed for acme: spent"), "oauth", "OAuth refresh failed for acme: spent"),
    ],
)
def test_a_key_that_cannot_be_had_says_why(error: Exception, code: str, why: str) -> None:
    async def test(running: Running) -> None:
        with pytest.raises(ProviderFailed) as caught:
            await running.seat.model_registry.get_provider_auth("acme")
        assert (caught.value.code, str(caught.value)) == (code, why)

    with_provider(test, Keyed(key=error))


# -- images and classifiers -------------------------------------------------------------------------


async def painted(request: Any) -> dict[str, Any]:
    return {"output": [{"type": "image", "data": request.input}], "response_id": "r"}


def judged(request: Any) -> dict[str, Any]:
    return {"answers": {"ok": {"noul": request.options["odds"]}}, "usage": {"input": 3}}


CONFIG = {
    "api": "mine",
    "base_url": "http://acme",
    "models": [{"id": "paint", "type": "image", "api": "mine-images"}, {"id": "judge", "type": "classifier", "api": "mine-classify"}],
    "images": {"mine-images": painted},
    "classifiers": {"mine-classify": judged},
}


def with_config(test: Any, **config: Any) -> Any:
    return doing(test, lambda api: api.register_provider("acme", {**CONFIG, **config}))


@pytest.mark.rule("MOD-40", "STR-43", "PRV-10")
def test_functions_of_a_config_make_images_and_judge() -> None:
    async def test(running: Running) -> None:
        registry = running.seat.model_registry
        picture, judge = registry.find_of_type("image", "acme", "paint"), registry.find_of_type("classifier", "acme", "judge")
        assert picture is not None
        assert judge is not None
        images = await registry.generate_images(picture, "cat")
        answers = await registry.classify(judge, {"state": 1}, options={"odds": 0.5})
        assert (images.output, images.stop_reason, images.response_id) == (({"type": "image", "data": "cat"},), "stop", "r")
        assert (images.api, images.provider, images.model) == ("mine-images", "acme", "paint")
        assert (answers.answers, answers.usage, answers.error_message) == ({"ok": {"noul": 0.5}}, {"input": 3}, None)

    with_config(test)


@pytest.mark.rule("STR-43", "MOD-40")
def test_a_model_of_another_type_is_refused_in_the_result() -> None:
    async def test(running: Running) -> list[tuple[str, str | None]]:
        registry = running.seat.model_registry
        results: list[Any] = [
            await registry.generate_images(CHAT, 1),
            await registry.classify(PICTURE, 1),
            await registry.generate_images(JUDGE, 1),
        ]
        return [(each.stop_reason, each.error_message) for each in results]

    assert with_config(test) == [
        ("error", "Model acme/chat is not an image model"),
        ("error", "Model acme/paint is not a classifier model"),
        ("error", "Model acme/judge is not an image model"),
    ]


@pytest.mark.rule("STR-43")
@pytest.mark.parametrize(
    ("given", "why"),
    [
        (ValueError("broke"), "broke"),
        (None, "Provider acme: generate_images gave NoneType; expected ImagesResult, or a dict of its fields"),
        ({"output": "text"}, "Provider acme: generate_images gave output str; expected a list"),
        ({"output": [object()]}, "Provider acme: generate_images "),
        ({"output": [], "stop_reason": "length"}, "Provider acme: generate_images gave the stop reason 'length'; expected one of stop, "),
        ({"stop_reason": "error", "error_message": "too rude"}, "too rude"),
        ({"stop_reason": "error"}, "the provider gave no reason"),
    ],
)
def test_what_an_implementation_does_wrong_is_in_the_result(given: Any, why: str) -> None:
    def paint(_request: Any) -> Any:
        if isinstance(given, Exception):
            raise given
        return given

    async def test(running: Running) -> Any:
        model = running.seat.model_registry.get_models_of_type("image")[0]
        result = await running.seat.model_registry.generate_images(model, "cat")
        return result.stop_reason, result.error_message

    stop, text = with_config(test, images={"mine-images": paint})
    assert stop == "error"
    assert text.startswith(why)


@pytest.mark.rule("STR-43", "PRV-16")
def test_provider_objects_may_do_the_same_and_who_cannot_says_so() -> None:
    class Painting(Noting):
        async def generate_images(self, request: Any) -> Any:
            return {"output": [request.model.id]}

    async def test(running: Running) -> Any:
        registry = running.seat.model_registry
        images, answers = await registry.generate_images(PICTURE, 1), await registry.classify(JUDGE, 1)
        unknown = await registry.classify(attrs.evolve(JUDGE, provider="nobody"), 1)
        return images.output, answers.error_message, unknown.error_message

    assert with_provider(test, Painting()) == (("paint",), "No API provider registered for api: mine-classify", "Unknown provider: nobody")


@pytest.mark.rule("PRV-10")
@pytest.mark.parametrize("kind", ["image", "classifier"])
def test_an_image_or_classifier_model_needs_its_own_api(kind: str) -> None:
    async def test(running: Running) -> str | None:
        return running.seat.model_registry.get_error()

    why = with_config(test, models=[{"id": "x", "type": kind}])

    assert why == 'Provider "acme": Provider acme, model x: no "api" specified. Set it at model level.'


@pytest.mark.parametrize("given", [3, {"a": 3}])
def test_images_that_are_no_functions_are_refused(given: Any) -> None:
    async def test(running: Running) -> str:
        return running.seat.model_registry.get_error() or ""

    assert "images" in with_config(test, images=given)
