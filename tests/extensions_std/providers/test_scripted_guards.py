"""Which request gets which step, and what nobody else's requests can change (FAUX-20, FAUX-25)."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import trio

from camshaft.actors.api import ModelRequest, RequestOptions
from camshaft.extensions_std.providers.scripted import (
    EXHAUSTED,
    Fail,
    ScriptedProvider,
    ScriptState,
    assistant,
    faux_model,
    text,
    tool_call,
    when,
)
from camshaft.kernel.messages import AssistantMessage, Usage, UserMessage
from camshaft.kernel.stream import Ended, StreamItem, TextDelta, ToolCallStarted
from tests.extensions_std.providers.asking import Asked, AskSignal, ask


def _provider(*steps: Any, **fields: Any) -> ScriptedProvider:
    provider = ScriptedProvider(**fields)
    provider.set_responses(steps)
    return provider


def _said(asked: Asked) -> str | None:
    assert asked.message is not None
    return asked.message.error_message or "".join([getattr(block, "text", "") for block in asked.message.content])


async def _ask(provider: ScriptedProvider, prompt: str, session: str | None = None) -> Asked:
    return await ask(provider, (UserMessage(content=prompt, timestamp=1),), options=RequestOptions(session_id=session))


@pytest.mark.rule("FAUX-25")
async def test_steps_go_to_the_requests_they_are_for_whatever_the_order() -> None:
    provider = _provider(
        when(assistant("to b"), contains="bear"),
        when(assistant("to s"), session="s"),
        when(assistant("to m"), model="faux/faux-1", test=lambda request: len(request.messages) == 1),
        assistant("to the rest"),
    )

    said = [_said(await _ask(provider, *asked)) for asked in (("ape",), ("ape", "s"), ("a bear",), ("ape",))]

    assert said == ["to m", "to s", "to b", "to the rest"]
    provider.assert_exhausted()


async def test_request_that_no_step_is_for_finds_none() -> None:
    provider = _provider(when(assistant("x"), model="other"))

    assert _said(await _ask(provider, "hi")) == EXHAUSTED
    with pytest.raises(AssertionError, match=re.escape("the next is when(assistant('x'), model='other'); 1 of 1 requests found no")):
        provider.assert_exhausted()


async def test_step_that_repeats_stays_and_is_not_left_over() -> None:
    provider = _provider(when(assistant("again"), repeats=True))

    said = [_said(await _ask(provider, "hi")) for _ in range(3)]

    assert said == ["again"] * 3
    assert provider.get_pending_response_count() == 1
    provider.assert_exhausted()


async def test_guard_that_raises_fails_the_request_and_keeps_the_step() -> None:
    def broken(_request: ModelRequest) -> bool:
        raise ValueError("broken guard")

    provider = _provider(when(assistant("x"), test=broken))

    with pytest.raises(ValueError, match="broken guard"):
        await _ask(provider, "hi")
    assert provider.requests[0].outcome == "raised"
    assert provider.get_pending_response_count() == 1


async def test_what_one_session_is_told_does_not_depend_on_the_other() -> None:
    def answers() -> list[Any]:
        long = assistant([text("a text that is cut into several pieces by chance"), tool_call("read")])
        return [when(long, session=session) for session in ("s", "s", "t", "t")]

    alone, together = _provider(*answers(), seed=3), _provider(*answers(), seed=3)
    for _ in range(2):
        await _ask(together, "hi", "t")

    for _ in range(2):
        assert (await _ask(alone, "hi", "s")).items == (await _ask(together, "hi", "s")).items


async def test_seeds_cut_differently() -> None:
    cuts = [
        [item.delta for item in (await _ask(_provider(assistant("0123456789" * 30), seed=seed), "hi")).items if isinstance(item, TextDelta)]
        for seed in (1, 2)
    ]

    assert cuts[0] != cuts[1]
    assert all(12 <= len(piece) <= 20 for cut in cuts for piece in cut[:-1])


async def test_call_ids_go_on_where_the_transcript_is() -> None:
    provider = _provider(assistant([tool_call("read"), tool_call("read")]))
    before = assistant(tool_call("read", id="call_7"))

    asked = await ask(provider, (UserMessage(content="hi", timestamp=1), before))

    assert [item.id for item in asked.items if isinstance(item, ToolCallStarted)] == ["call_8", "call_9"]


def _with_state(request: ModelRequest, state: ScriptState) -> AssistantMessage:
    return assistant(f"call {state.call_count} of {request.model.id}")


def _with_default(request: ModelRequest, more: str = "default") -> AssistantMessage:
    return assistant(f"{more} {len(request.messages)}")


def _with_actions(_request: ModelRequest) -> list[Any]:
    return [Fail("busy", 503)]


FUNCTIONS: list[tuple[Callable[..., Any], str]] = [
    (_with_state, "call 1 of faux-1"),
    (_with_default, "default 1"),
    (_with_actions, "503 busy"),
    (lambda *given: assistant(str(len(given))), "1"),
]


@pytest.mark.parametrize(("function", "said"), FUNCTIONS, ids=[said for _, said in FUNCTIONS])
async def test_functions_may_take_the_state_have_defaults_and_give_actions(function: Callable[..., Any], said: str) -> None:
    assert _said(await _ask(_provider(function), "hi")) == said


@pytest.mark.parametrize("rubbish", [None, "hello", 5, [text("a")], {"role": "assistant"}])
async def test_function_that_answers_rubbish_fails_with_what_it_answered(rubbish: Any) -> None:
    def odd(_request: ModelRequest) -> Any:
        return rubbish

    with pytest.raises(TypeError, match=re.escape(f"the scripted function odd answered {rubbish!r}; expected assistant(")):
        await _ask(_provider(odd), "hi")


@pytest.mark.parametrize("step", [lambda: assistant("x"), lambda a, b, c, d: None])
def test_function_with_a_wrong_number_of_arguments_is_refused(step: Any) -> None:
    with pytest.raises(TypeError, match=r"takes [04] arguments; expected \(request\), \(request, state\) or \(request, signal, emit\)"):
        _provider(step)


async def test_usage_given_as_zero_is_kept_and_usage_left_out_is_estimated() -> None:
    provider = _provider(assistant("x", usage=Usage()), assistant("x"))

    usages = [asked.message.usage for asked in [await _ask(provider, "hi") for _ in range(2)] if asked.message]

    assert [usage.total_tokens for usage in usages] == [0, 3]


async def test_models_of_one_provider_have_their_own_steps() -> None:
    provider = _provider(when(assistant("big"), model="big"), when(assistant("small"), model="small"))
    provider.models = (faux_model("small"), faux_model("big"))
    heard: list[StreamItem] = []

    async def emit(item: StreamItem) -> None:
        await trio.lowlevel.checkpoint()
        heard.append(item)

    for model in provider.models:
        await provider.stream(ModelRequest(model=model, thinking_level="off", messages=()), AskSignal(), emit)

    assert [item.delta for item in heard if isinstance(item, TextDelta)] == ["small", "big"]
    assert len([item for item in heard if isinstance(item, Ended)]) == 2
