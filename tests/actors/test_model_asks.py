"""What extensions ask a model outside the conversation: the answer is theirs, the session keeps what it cost."""

from collections.abc import Callable, Sequence
from typing import Any

import trio

from camshaft.actors.api import ModelFailed, UserMessage, current_prompt, text_of
from camshaft.actors.generation import StaleContext
from camshaft.actors.signal import AbortSignal
from camshaft.extensions_std.providers.scripted import Fail, Hang, Step, assistant, tool_call
from camshaft.kernel.settings import RetrySettings, Settings
from tests.actors.running import Running, opened, results, said, simulate, tool


def asked(script: Sequence[Step], ask: Callable[[Any], Any], look: Callable[[Running], Any], **more: Any) -> tuple[Any, Any]:
    """What `ask(ctx)` gave in a command, or raised, and what `look` sees afterwards."""
    got: list[Any] = []

    def setup(api: Any) -> None:
        async def command(_arguments: str, ctx: Any) -> None:
            try:
                got.append(await ask(ctx))
            except (ModelFailed, StaleContext) as error:
                got.append(error)

        api.register_command("ask", command)

    async def whole() -> Any:
        async with opened(script, setup, **more) as running:
            await running.seat.prompt("/ask")
            return look(running)
        raise AssertionError

    seen = simulate(whole)
    return got[0], seen


def stored(running: Running) -> list[Any]:
    return [entry for entry in running.seat.state.tree.entries() if entry.type == "usage"]


def test_the_answer_is_the_askers_and_the_session_keeps_its_usage() -> None:
    answer, (usages, messages, starts) = asked(
        [assistant("forty-two")],
        lambda ctx: ctx.ask_model("Why?", kind="question"),
        lambda running: (stored(running), said(running.seat.context_messages), running.count("agent_start")),
    )

    assert text_of(answer.content) == "forty-two"
    assert [(each.kind, each.provider, each.model, each.usage) for each in usages] == [("question", "faux", "faux-1", answer.usage)]
    assert answer.usage.output > 0
    assert messages == []
    assert starts == 0


def test_the_model_gets_the_conversation_that_is_given_and_no_tools() -> None:
    requests: list[Any] = []

    def answer(request: Any) -> Any:
        requests.append(request)
        return assistant("ok")

    asked(
        [answer],
        lambda ctx: ctx.ask_model([UserMessage(content="Hello", timestamp=1)], system_prompt="Be brief."),
        lambda running: None,
    )

    assert current_prompt(requests[0].messages) == "Be brief."
    assert said(requests[0].messages) == [("user", "Hello")]


def test_usage_that_the_asker_stores_is_not_stored_twice() -> None:
    _, usages = asked([assistant("ok")], lambda ctx: ctx.ask_model("Why?", record_usage=False), stored)

    assert usages == []


def test_a_failure_is_raised_after_the_retries_of_the_settings() -> None:
    patient = Settings(retry=RetrySettings(enabled=True, max_retries=1), default_thinking_level="off")

    error, told = asked(
        [[Fail("overloaded", 529)], [Fail("overloaded again", 529)]],
        lambda ctx: ctx.ask_model("Why?"),
        lambda running: [each for each in running.types() if "retry" in each],
        settings=patient,
    )

    assert isinstance(error, ModelFailed)
    assert "overloaded again" in str(error)
    assert not error.aborted
    assert told == []


def test_a_signal_ends_the_request() -> None:
    signal = AbortSignal()

    async def ask(ctx: Any) -> Any:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(later, signal)
            try:
                return await ctx.ask_model("Why?", signal=signal)
            except ModelFailed as error:
                return error

    error, _ = asked([[Hang()]], ask, stored)

    assert isinstance(error, ModelFailed)
    assert error.aborted


async def later(signal: AbortSignal) -> None:
    await trio.sleep(1)
    signal.request()


def test_without_a_model_there_is_nobody_to_ask() -> None:
    error, _ = asked([], lambda ctx: ctx.ask_model("Why?"), stored, provider=_NoModels())

    assert isinstance(error, ModelFailed)
    assert "model" in str(error)


class _NoModels:
    """A provider that serves nothing."""

    name = api = "none"
    models = ()

    def set_responses(self, _steps: Any) -> None: ...

    def configured(self) -> bool:
        return True

    async def stream(self, *_: Any) -> None: ...


def test_an_answer_that_comes_after_the_session_was_left_is_stored_nowhere() -> None:
    async def ask(ctx: Any) -> Any:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ctx.new_session)
            try:
                return await ctx.ask_model("Why?")
            except StaleContext as error:
                return error

    async def slowly(_request: Any) -> Any:
        await trio.sleep(5)
        return assistant("late")

    error, usages = asked([slowly], ask, stored)

    assert isinstance(error, StaleContext)
    assert usages == []


def test_the_abort_of_a_run_ends_what_its_tools_ask() -> None:
    async def execute(_id: str, _params: Any, _signal: Any, _on_update: Any, ctx: Any) -> Any:
        await ctx.ask_model("Why?")

    async def aborted() -> Any:
        script: list[Step] = [assistant(tool_call("work", id="c1"), stop_reason="toolUse"), [Hang()]]
        async with opened(script, tools=[tool(execute)]) as running:
            await running.seat.submit("go")
            await trio.sleep(1)
            before = trio.current_time()
            await running.seat.abort()
            return results(running.seat.context_messages), trio.current_time() - before
        raise AssertionError

    [(_, text, is_error)], waited_s = simulate(aborted)
    assert is_error
    assert "abort" in text.lower()
    assert waited_s == 0
