"""Any history becomes a request that a server accepts."""

import json
import re
from collections import Counter
from typing import Any, Final

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from camshaft.extensions_std.providers.compat import completions_flags
from camshaft.extensions_std.providers.completions_render import completions_form
from camshaft.extensions_std.providers.wire_transcript import Transcript
from camshaft.kernel.messages import (
    AssistantMessage,
    ImageBlock,
    ModelMessage,
    OpaqueBlock,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolDeclaration,
    ToolName,
    ToolResultMessage,
    UserMessage,
)
from camshaft.kernel.models import Model
from camshaft.kernel.persistent import FrozenDict
from tests.extensions_std.providers.asking import local_model

SEEN: Final[Counter[str]] = Counter()
"""What the random histories held; printed by the last test, so that an empty generator is noticed."""

LONE_HALF: Final = re.compile(r"\\ud[89a-f][0-9a-f]{2}")
"""A lone surrogate as `repr` writes it."""

TEXTS = st.text(st.characters(codec=None, categories=["Lu", "Zs", "Cs", "So"]), max_size=4)
IDS = st.sampled_from(["a", "b", "c|d", "", "x" * 50, "weird id|" + "y" * 60, "\ud800"])
IMAGES = st.just(ImageBlock(data="aW1n", mime_type="image/png"))
TEXT_BLOCKS = TEXTS.map(lambda text: TextBlock(text=text, text_signature="s"))
CALLS = st.builds(lambda id, text: ToolCall(id=id, name="read", arguments=FrozenDict({text: (text,)})), IDS, TEXTS)
SIGNATURES = st.sampled_from([None, "reasoning_content", "sig", '[{"type":"reasoning.text","text":"t"}]', "[", "[1]"])
THINKING = st.builds(lambda text, mark: ThinkingBlock(thinking=text, thinking_signature=mark), TEXTS, SIGNATURES)
OPAQUE = st.just(OpaqueBlock(type="audio", raw=FrozenDict({"type": "audio"})))
ANY_BLOCK = st.one_of(TEXT_BLOCKS, IMAGES, OPAQUE)
MODELS = st.sampled_from([("local", "openai-completions", "m"), ("openai", "openai-responses", "gpt")])
READ = ToolDeclaration(name="read", description="d", parameters=FrozenDict({"type": "object"}))


def _assistant(blocks: list[Any], model: tuple[str, str, str], stop_reason: str) -> AssistantMessage:
    provider, api, id = model
    return AssistantMessage(content=tuple(blocks), api=api, provider=provider, model=id, stop_reason=stop_reason, timestamp=1)


ASSISTANTS = st.builds(
    _assistant,
    st.lists(st.one_of(TEXT_BLOCKS, CALLS, CALLS, THINKING, OPAQUE), max_size=4),
    MODELS,
    st.sampled_from(["stop", "toolUse", "error", "aborted", "strange"]),
)
RESULTS = st.builds(
    lambda id, blocks: ToolResultMessage(tool_call_id=id, tool_name="read", content=tuple(blocks), is_error=False, timestamp=1),
    IDS,
    st.lists(ANY_BLOCK, max_size=3),
)
USERS = st.builds(lambda blocks: UserMessage(content=tuple(blocks), timestamp=1), st.lists(ANY_BLOCK, max_size=3))
PLAIN_USERS = st.builds(lambda text: UserMessage(content=text, timestamp=1), TEXTS)
SYSTEMS = st.builds(
    lambda text, replace, removed: SystemMessage(
        content=text, sections=FrozenDict({"a": text}), tools_added=(READ,), tools_removed=removed, replace=replace, timestamp=0
    ),
    TEXTS,
    st.sampled_from([None, None, True]),
    st.sampled_from([None, (ToolName(name="read"),)]),
)
HISTORIES = st.lists(st.one_of(ASSISTANTS, ASSISTANTS, RESULTS, RESULTS, USERS, PLAIN_USERS, SYSTEMS), max_size=14)
COMPATS = st.fixed_dictionaries(
    {},
    optional={
        "supportsMidConvoSystemMessages": st.booleans(),
        "supportsMidConvoToolAdditions": st.booleans(),
        "requiresAssistantAfterToolResult": st.booleans(),
        "requiresThinkingAsText": st.booleans(),
        "requiresToolResultName": st.booleans(),
    },
)
INPUTS = st.sampled_from([("text",), ("text", "image")])


def _count(history: list[ModelMessage]) -> None:
    answered = {message.tool_call_id for message in history if isinstance(message, ToolResultMessage)}
    for message in history:
        SEEN[message.role] += 1
        if isinstance(message, AssistantMessage):
            SEEN["failed answers"] += message.stop_reason in ("error", "aborted")
            SEEN["orphan calls"] += sum(call.id not in answered for call in message.tool_calls)
        SEEN["surrogates"] += LONE_HALF.search(repr(message)) is not None
        SEEN["images"] += sum(isinstance(block, ImageBlock) for block in message.content)


def _wire(model: Model, history: list[ModelMessage], at: int = 0) -> list[dict[str, Any]]:
    """The wire messages of a history that was first seen up to `at`, and then in full."""
    transcript = Transcript(model, completions_form(model, completions_flags(model)))
    transcript.follow(history[:at])
    transcript.wire_messages(None)
    transcript.follow(history)
    wire: list[dict[str, Any]] = json.loads(b"".join(transcript.wire_messages(None)).decode("utf-8"))
    return wire


def _faults(wire: list[dict[str, Any]], takes_images: bool) -> list[str]:
    """What a server would refuse."""
    faults, waiting = [], list[str]()
    for message in wire:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                faults.append(f"result without call: {message}")
            else:
                waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            faults.append(f"no result for {waiting} before {message}")
        waiting = [call["id"] for call in message.get("tool_calls", ())]
        if len(set(waiting)) < len(waiting):
            faults.append(f"two calls share an id: {waiting}")
        if message["role"] == "assistant" and not (message["content"] or waiting):
            faults.append(f"empty answer: {message}")
        if not takes_images and "image_url" in json.dumps(message):
            faults.append(f"image: {message}")
    return [*faults, *([f"no result at the end for {waiting}"] if waiting else [])]


@pytest.mark.slow
@settings(max_examples=400)
@given(HISTORIES, COMPATS, INPUTS)
def test_any_history_becomes_a_valid_request(history: list[ModelMessage], compat: dict[str, bool], takes: tuple[str, ...]) -> None:
    _count(history)
    model = local_model(compat=FrozenDict(compat), input=takes, reasoning=True)

    wire = _wire(model, history)

    assert _faults(wire, "image" in takes) == []
    assert LONE_HALF.search(repr(wire)) is None


@pytest.mark.slow
@settings(max_examples=300)
@given(HISTORIES, COMPATS, st.integers(0, 14))
def test_following_in_two_steps_gives_the_same_request_as_at_once(history: list[ModelMessage], compat: dict[str, bool], at: int) -> None:
    model = local_model(compat=FrozenDict(compat), input=("text", "image"))

    followed = _wire(model, history, at)

    assert followed == _wire(model, history)


@pytest.mark.slow
@settings(max_examples=200)
@given(HISTORIES, st.lists(st.integers(0, 14), max_size=3))
def test_one_message_bears_the_cache_mark_however_the_history_grew(history: list[ModelMessage], steps: list[int]) -> None:
    model = local_model(compat=FrozenDict({"cacheControlFormat": "anthropic"}), input=("text", "image"))
    stepwise, anew = [Transcript(model, completions_form(model, completions_flags(model))) for _ in range(2)]
    for at in sorted(steps):
        stepwise.follow(history[:at])
        stepwise.wire_messages({"type": "ephemeral"})
    stepwise.follow(history)
    anew.follow(history)

    marked = b"".join(stepwise.wire_messages({"type": "ephemeral"}))

    assert marked == b"".join(anew.wire_messages({"type": "ephemeral"}))
    assert marked.count(b'"cache_control"') <= 1
    assert json.loads(b"".join(stepwise.wire_messages(None))) == _wire(model, history)


@pytest.mark.slow
@settings(max_examples=100)
@given(HISTORIES, HISTORIES)
def test_another_branch_starts_anew(old: list[ModelMessage], new: list[ModelMessage]) -> None:
    model = local_model()
    transcript = Transcript(model, completions_form(model, completions_flags(model)))
    transcript.follow(old)

    transcript.follow(new)

    assert json.loads(b"".join(transcript.wire_messages(None))) == _wire(model, new)


def test_messages_are_never_changed() -> None:
    message = _assistant([ThinkingBlock(thinking="t"), ToolCall(id="c|d", name="read")], ("openai", "openai-responses", "gpt"), "stop")
    before = attrs.evolve(message)

    _wire(local_model(), [message])

    assert message == before


def test_random_histories_held_every_kind_of_trouble() -> None:
    print(f"\nhistories held: {dict(SEEN)}")
    assert min(SEEN[kind] for kind in ("failed answers", "orphan calls", "surrogates", "images", "system", "toolResult")) > 100
