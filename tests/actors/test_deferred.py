"""Answers that come later: a turn ends with a handle, and whoever wants the answer fetches it."""

from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.api import FrozenDict, ModelRequest, RequestOptions, Started
from camshaft.actors.host import CommandRefused, DeferredUnsupported
from camshaft.actors.simulation.log_files import MemoryLogFiles
from camshaft.extensions_std.providers.scripted import Hang, ScriptedProvider, assistant, faux_model, tool_call
from camshaft.kernel.messages import AssistantMessage, text_of
from tests.actors.routing import registering
from tests.actors.running import Running, opened, results, simulate, tool
from tests.actors.small_run import OK

HANDLE = FrozenDict({"provider": "faux", "modelId": "faux-1", "api": "faux", "id": "elsewhere", "data": FrozenDict({"batch": (1,)})})
UNSUPPORTED = "Provider plain does not support deferred responses"


@attrs.frozen
class Quiet:
    """The signal of a request that a test makes itself."""

    cancelled: bool = False

    async def wait(self) -> None:
        await trio.sleep_forever()


async def handle_of(running: Running, *steps: Any) -> FrozenDict:
    """The handle that the provider gives for these steps, asked by somebody who wants the answer later."""
    running.provider.set_responses(steps)
    got: list[Any] = []

    async def emit(item: Any) -> None:
        await trio.lowlevel.checkpoint()
        got.append(item)

    later = ModelRequest(model=running.provider.models[0], thinking_level="off", messages=(), options=RequestOptions(deferred=True))
    await running.provider.stream(later, Quiet(), emit)
    handle: FrozenDict = got[-1].deferred
    return handle


def seen(test: Callable[[Running], Any], *setups: Any, **more: Any) -> Any:
    async def run() -> Any:
        async with opened([], *setups, **more) as running:
            return await test(running)
        raise AssertionError

    return simulate(run)


def short(message: AssistantMessage) -> tuple[str, str, str | None]:
    return message.stop_reason, text_of(message.content), message.error_message


# -- the turn -----------------------------------------------------------------------------------


@pytest.mark.rule("LOOP-75", "MSG-28", "MSG-30", "STR-42")
def test_a_handle_ends_the_turn_and_is_stored_as_it_is_and_nobody_fetches_it() -> None:
    files = MemoryLogFiles()

    async def test() -> Any:
        later = assistant([], stop_reason="deferred", deferred=HANDLE)
        async with opened([later, assistant("next")], files=files) as running:
            await running.seat.prompt("go")
            outcome = running.seat.context_messages[-1].stop_reason  # type: ignore[union-attr]  # an answer
            await running.seat.prompt("on")
            counted = running.provider.state.deferred_fetch_count
        async with opened([], files=files) as running:
            stored = [m for m in running.seat.context_messages if isinstance(m, AssistantMessage)]
            return outcome, counted, stored[0].deferred, stored[0].stop_reason, short(stored[1])
        raise AssertionError

    assert simulate(test) == ("deferred", 0, HANDLE, "deferred", ("stop", "next", None))


@pytest.mark.rule("LOOP-76", "LOOP-22")
def test_calls_beside_a_handle_are_executed() -> None:
    async def test(running: Running) -> Any:
        running.provider.set_responses(
            [assistant([tool_call("work", {}, id="t")], stop_reason="deferred", deferred=HANDLE), assistant("end")]
        )
        await running.seat.prompt("go")
        return results(running.seat.context_messages)

    assert seen(test, tools=[tool(lambda *_: OK)]) == [("t", "ok", False)]


# -- fetching -----------------------------------------------------------------------------------


@pytest.mark.rule("STR-41", "MSG-29", "MSG-30", "FAUX-9")
def test_a_host_fetches_until_the_answer_is_there_and_stores_it_if_it_likes() -> None:
    async def test(running: Running) -> Any:
        handle = await handle_of(running, assistant("at last"))
        before = running.seat.state.tree.length
        running.heard.clear()
        pending = await running.seat.fetch_deferred(handle)
        ready = await running.seat.fetch_deferred(handle)
        again = await running.seat.fetch_deferred(handle)
        assert (running.seat.state.tree.length, running.heard) == (before, [])
        running.seat.append_message(ready)
        stored = running.seat.context_messages[-1]
        return (
            (short(pending), pending.deferred == handle, pending.content),
            short(ready),
            ready.duration_ms,
            again == ready,
            stored == ready,
        )

    provider = ScriptedProvider(chunked=False, pending_fetches=1)
    assert seen(test, provider=provider) == ((("deferred", "", None), True, ()), ("stop", "at last", None), None, True, True)


@pytest.mark.rule("STR-41")
def test_the_provider_waits_as_long_as_it_may() -> None:
    async def test(running: Running) -> Any:
        handle = await handle_of(running, assistant("at last"))
        begun = trio.current_time()
        message = await running.seat.fetch_deferred(handle, wait_ms=1000)
        return short(message), trio.current_time() - begun

    provider = ScriptedProvider(chunked=False, pending_fetches=2, poll_after_ms=300)
    assert seen(test, provider=provider) == (("stop", "at last", None), pytest.approx(0.6))


@pytest.mark.rule("MSG-28", "FAUX-9")
def test_a_handle_of_a_model_that_is_not_listed_any_more_goes_to_its_provider() -> None:
    async def test(running: Running) -> Any:
        return short(await running.seat.fetch_deferred({**HANDLE, "modelId": "gone"}))

    assert seen(test) == ("error", "", "Unknown faux deferred response: elsewhere")


class Plain:
    """A provider that answers at once or never."""

    name = "plain"
    api = "plain"
    models = (attrs.evolve(faux_model(), id="m", provider="plain", api="plain"),)

    def configured(self) -> bool:
        return True

    async def stream(self, *_: Any) -> None:
        raise AssertionError("it was asked for an answer")


PLAIN = {"provider": "plain", "modelId": "m", "api": "plain", "id": "d"}


@pytest.mark.rule("STR-41", "MSG-31")
@pytest.mark.parametrize("provider", [Plain(), None], ids=["it cannot", "there is none"])
def test_without_support_fetching_is_an_error_message_and_cancelling_raises_the_same_text(provider: Any) -> None:
    async def test(running: Running) -> Any:
        with pytest.raises(DeferredUnsupported) as caught:
            await running.seat.cancel_deferred(PLAIN)
        return short(await running.seat.fetch_deferred(PLAIN)), str(caught.value)

    setups = [] if provider is None else [lambda api: api.register_provider(provider)]
    assert seen(test, *setups) == (("error", "", UNSUPPORTED), UNSUPPORTED)


@pytest.mark.rule("STR-41", "VM-2", "PRV-15")
@pytest.mark.parametrize(
    "setup",
    [
        pytest.param(lambda api: registering(print)(_Under(api)), id="virtual models"),
        pytest.param(lambda api: api.register_provider("faux", {"base_url": "http://elsewhere"}), id="another endpoint"),
    ],
)
def test_a_provider_that_extensions_changed_still_gives_later_answers(setup: Any) -> None:
    async def test(running: Running) -> Any:
        handle = await handle_of(running, assistant("at last"))
        return short(await running.seat.fetch_deferred(handle))

    assert seen(test, setup) == ("stop", "at last", None)


@attrs.frozen
class _Under:
    """An API that registers virtual models under the scripted provider."""

    _api: Any

    def register_virtual_model(self, definition: dict[str, Any]) -> None:
        self._api.register_virtual_model({**definition, "provider": "faux"})


@pytest.mark.rule("STR-41", "WIRE-101")
def test_no_hook_fires_for_a_fetch() -> None:
    fired: list[str] = []

    def setup(api: Any) -> None:
        for hook in (
            "before_provider_headers",
            "before_provider_request",
            "after_provider_response",
            "provider_stream_event",
            "message_start",
        ):
            api.on(hook, lambda event, _ctx: fired.append(event.type))

    async def test(running: Running) -> Any:
        handle = await handle_of(running, assistant("at last"))
        return short(await running.seat.fetch_deferred(handle))

    assert seen(test, setup) == ("stop", "at last", None)
    assert fired == []


# -- ending -------------------------------------------------------------------------------------


@pytest.mark.rule("STR-41", "FAUX-9")
def test_what_was_cancelled_cannot_be_fetched() -> None:
    async def test(running: Running) -> Any:
        handle = await handle_of(running, assistant("never"))
        await running.seat.cancel_deferred(handle)
        return short(await running.seat.fetch_deferred(handle)), running.provider.state.cancelled_deferred == [handle]

    assert seen(test) == (("error", "", "Faux deferred response was cancelled: deferred_1"), True)


@pytest.mark.rule("STR-33", "STR-41")
def test_an_extension_fetches_with_the_signal_of_its_run() -> None:
    got: list[Any] = []

    async def test(running: Running) -> Any:
        handle = await handle_of(running, [Started(), Hang()])

        async def work(*given: Any) -> Any:
            got.append(short(await given[-1].fetch_deferred(handle)))
            return OK

        running.provider.set_responses([assistant([tool_call("work", {}, id="t")])])
        fetching.append(work)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(running.seat.prompt, "go")
            await trio.sleep(1)
            await running.seat.abort()
        return running.seat.is_idle

    fetching: list[Any] = []

    async def work(*given: Any) -> Any:
        return await fetching[0](*given)

    assert seen(test, tools=[tool(work)])
    assert got == [("aborted", "", "Request was aborted")]


NO_HANDLES: dict[str, tuple[Any, int, str]] = {
    "a text": ("d", 0, "handle 'd'; expected the `deferred` of a message, with provider, modelId, id"),
    "no id": ({"provider": "faux", "modelId": "m"}, 0, "handle {'provider': 'faux', 'modelId': 'm'}; expected the `deferred` of a message"),
    "no wait": (HANDLE, -1, "wait_ms -1; expected a number of milliseconds, 0 or more"),
}


@pytest.mark.parametrize(("handle", "wait_ms", "text"), NO_HANDLES.values(), ids=NO_HANDLES)
def test_what_is_no_handle_is_refused(handle: Any, wait_ms: int, text: str) -> None:
    async def test(running: Running) -> str:
        with pytest.raises(CommandRefused) as caught:
            await running.seat.fetch_deferred(handle, wait_ms=wait_ms)
        return str(caught.value)[: len(text)]

    assert seen(test) == text
