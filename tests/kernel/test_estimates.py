"""Token estimates, usage sums, and when compaction is due."""

from typing import Any

import pytest
from hypothesis import given

from camshaft.kernel.entries import Entry
from camshaft.kernel.estimates import (
    BadSetting,
    CompactionLimits,
    ContextEstimate,
    ContextUsage,
    add_usage,
    compaction_due,
    compaction_limits,
    context_tokens,
    context_usage,
    estimate,
    limits_for,
    plain,
    projected,
    sum_usages,
    utf16_length,
    valid_usage,
)
from camshaft.kernel.messages import (
    AssistantMessage,
    Cost,
    CustomMessage,
    ImageBlock,
    Message,
    OpaqueMessage,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolDeclaration,
    Usage,
    UserMessage,
)
from camshaft.kernel.persistent import EMPTY, FrozenDict, freeze
from camshaft.kernel.projection import project
from camshaft.kernel.prompt import replay
from camshaft.kernel.settings import CompactionSettings
from camshaft.kernel.tree import tree_of
from tests.kernel.made import STEPS, Step, assistant, compaction, edit, entries_of, naive, said, system, user

USED = Usage(total_tokens=100)


def of(*entries: Entry, window: int = 1000) -> tuple[ContextEstimate, ContextUsage | None]:
    tree = tree_of(entries=entries)
    projection = project(tree, tree.length - 1)
    return projected(projection), context_usage(projection, window)


def answer(*content: Any, **fields: Any) -> AssistantMessage:
    return AssistantMessage(content=content, **{"api": "", "provider": "", "model": "", "stop_reason": "stop", "timestamp": 1, **fields})


@pytest.mark.rule("CMP-1", "CMP-2", "MSG-7")
@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (UserMessage(content="12345", timestamp=1), 2),
        (UserMessage(content="\U0001f600" * 4, timestamp=1), 2),
        (UserMessage(content="\ud83d", timestamp=1), 1),
        (CustomMessage(custom_type="k", content=(ImageBlock(data="", mime_type=""), TextBlock(text="a")), timestamp=1), 1201),
        (answer(ToolCall(id="t", name="read", arguments=freeze({"a": "ü"}))), 4),
        (answer(ToolCall(id="t", name="re")), 1),
        (answer(ThinkingBlock(thinking="12345678"), ImageBlock(data="", mime_type="")), 2),
        (SystemMessage(content=(TextBlock(text="12"), TextBlock(text="34")), timestamp=1), 1),
        (system("1234", sections={"a": "5678", "b": None}), 2),
        (system(tools_added=()), 1),
        (system(tools_added=(ToolDeclaration(name="n", description="", parameters=EMPTY),)), 12),
        (OpaqueMessage(role="odd", raw=FrozenDict({"content": "x" * 100})), 0),
    ],
)
def test_a_message_is_estimated_by_its_size(message: Message, tokens: int) -> None:
    assert estimate(message) == tokens


@pytest.mark.rule("CMP-2")
@pytest.mark.parametrize(
    ("number", "spelling"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (-100000.5, "-100000.5"),
        (0.1, "0.1"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1.5e-7, "1.5e-7"),
        (1e16, "10000000000000000"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1.5e300, "1.5e+300"),
        (1, "1"),
        (True, "true"),
    ],
)
def test_numbers_count_as_long_as_the_reference_spells_them(number: float, spelling: str) -> None:
    sizes = [estimate(answer(ToolCall(id="t", name="n" * more, arguments=freeze({"a": (number,)})))) for more in range(4)]

    assert sizes == [-(-(len('{"a":[]}') + len(spelling) + more) // 4) for more in range(4)]


def test_length_is_counted_in_utf16_units() -> None:
    assert [utf16_length(text) for text in ("", "a", "é", "\U0001f600", "\ud83d")] == [0, 1, 1, 2, 1]


@pytest.mark.rule("CMP-3", "MSG-16")
def test_a_usage_is_valid_if_the_response_succeeded_and_tells_a_size() -> None:
    parts = Usage(input=1, output=2, cache_read=3, cache_write=4)

    assert (context_tokens(parts), context_tokens(USED)) == (10, 100)
    assert valid_usage(answer(usage=USED, stop_reason="length")) == USED
    assert [valid_usage(answer(usage=USED, stop_reason=reason)) for reason in ("error", "aborted")] == [None, None]
    assert valid_usage(answer()) is None
    assert valid_usage(UserMessage(content="", timestamp=1)) is None


@pytest.mark.rule("MSG-17")
def test_usages_are_added_field_by_field() -> None:
    one = Usage(input=1, cache_write1h=0, total_tokens=1, cost=Cost(total=1, total_from_provider=True))
    two = Usage(input=2, reasoning=3, total_tokens=2, cost=Cost(total=2))

    total = add_usage(one, two)

    assert total == Usage(input=3, cache_write1h=0, reasoning=3, total_tokens=3, cost=Cost(total=3, total_from_provider=False))
    assert add_usage(one, one).cost.total_from_provider is True
    assert (sum_usages([]), sum_usages([one])) == (None, one)


# -- a context ---------------------------------------------------------------------------


@pytest.mark.rule("CMP-4")
def test_a_list_is_measured_from_its_last_usage() -> None:
    text = UserMessage(content="1234", timestamp=1)

    found = plain([text, answer(usage=USED), text, answer(TextBlock(text="12345678"), stop_reason="error", usage=USED)])

    assert found == ContextEstimate(tokens=103, usage_tokens=100, trailing_tokens=3, last_usage_index=1)
    assert plain([text, text]) == ContextEstimate(tokens=2, trailing_tokens=2)


@pytest.mark.rule("CMP-5", "CMP-6")
def test_a_usage_from_before_an_edit_or_a_compaction_is_not_trusted() -> None:
    before: list[Entry] = [said("s", None, system("1234")), user("u", "s", "1234"), assistant("a", "u", "1234", usage=USED)]

    assert of(*before)[0].tokens == 100
    assert of(*before, edit("e", "a", "u", "12345678"))[0] == ContextEstimate(tokens=4, trailing_tokens=4)
    assert of(*before, compaction("c", "a", "u"))[0] == ContextEstimate(tokens=3, trailing_tokens=3)
    assert of(*before, edit("e", "a", "u"), assistant("b", "e", usage=USED))[0].usage_tokens == 100


def test_several_system_messages_are_measured_as_the_state_they_replay_to() -> None:
    found, _ = of(
        said("s", None, system("1234", sections={"a": "12345678"})), said("t", "s", system(sections={"a": "1234"})), user("u", "t", "1234")
    )

    assert found.tokens == 3


@given(STEPS)
def test_the_projected_estimate_agrees_with_the_naive_one(steps: list[Step]) -> None:
    entries = entries_of(steps)
    tree = tree_of(entries=entries)
    for position, entry in enumerate(entries):
        projection = project(tree, position)
        found = projected(projection)
        messages = naive(entries, entry.id).messages
        assert found.tokens == found.usage_tokens + found.trailing_tokens
        rest = messages[found.last_usage_index + 1 :] if found.last_usage_index is not None else without_system(messages)
        assert found.trailing_tokens == sum([estimate(message) for message in rest])


def without_system(messages: list[Message]) -> list[Message]:
    state = replay(messages)
    head: list[Message] = [] if state is None else [state.as_message()]
    return [*head, *[message for message in messages if not isinstance(message, SystemMessage)]]


@pytest.mark.rule("CMP-7")
def test_after_a_compaction_the_usage_is_unknown_until_a_model_answered() -> None:
    start: list[Entry] = [user("u", None, "1234"), assistant("a", "u", usage=USED)]

    assert of(*start)[1] == ContextUsage(tokens=100, context_window=1000, percent=10)
    assert of(*start, compaction("c", "a", "u"))[1] == ContextUsage(tokens=None, context_window=1000, percent=None)
    assert of(*start, compaction("c", "a", "u"), assistant("b", "c", stop_reason="error", usage=USED))[1] == ContextUsage(
        tokens=None, context_window=1000, percent=None
    )
    assert of(*start, compaction("c", "a", "u"), assistant("b", "c", usage=USED))[1] == ContextUsage(
        tokens=100, context_window=1000, percent=10
    )
    assert of(*start, window=0)[1] is None


# -- settings ----------------------------------------------------------------------------


@pytest.mark.rule("CMP-9")
def test_an_override_of_the_model_comes_before_the_ordinary_value() -> None:
    settings = {"reserveTokens": 1, "modelOverrides": {"acme/m": {"reserveTokens": 2}}}

    assert compaction_limits({}) == CompactionLimits(enabled=True, reserve_tokens=16384, keep_recent_tokens=20000)
    assert compaction_limits(settings, "acme/m").reserve_tokens == 2
    assert compaction_limits(settings, "acme/n").reserve_tokens == 1
    assert compaction_limits({"enabled": False}).enabled is False


@pytest.mark.rule("CMP-10")
@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"reserveTokens": -1}, "Invalid compaction.reserveTokens setting: -1. Expected a non-negative safe integer."),
        ({"keepRecentTokens": 1.5}, "Invalid compaction.keepRecentTokens setting: 1.5. Expected a non-negative safe integer."),
        ({"keepRecentTokens": "5"}, "Invalid compaction.keepRecentTokens setting: 5. Expected a non-negative safe integer."),
        ({"reserveTokens": True}, "Invalid compaction.reserveTokens setting: true. Expected a non-negative safe integer."),
        ({"reserveTokens": 2**53}, f"Invalid compaction.reserveTokens setting: {2**53}. Expected a non-negative safe integer."),
        (
            {"reserveTokens": [], "modelOverrides": {"a/b": {"reserveTokens": 5}}},
            "Invalid compaction.reserveTokens setting: []. Expected a non-negative safe integer.",
        ),
        (
            {"modelOverrides": {"a/b": {"reserveTokens": -5}}},
            'Invalid compaction.modelOverrides["a/b"].reserveTokens setting: -5. Expected a non-negative safe integer.',
        ),
        ({"modelOverrides": {"a/b": 5}}, 'Invalid compaction.modelOverrides["a/b"] setting: 5. Expected an object.'),
    ],
)
def test_a_value_that_is_no_count_is_refused_when_it_is_read(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(BadSetting) as caught:
        compaction_limits(settings, "a/b")

    assert str(caught.value) == text


@pytest.mark.rule("CMP-11", "CMP-12", "CMP-13")
@pytest.mark.parametrize(
    ("tokens", "window", "enabled", "due"),
    [(901, 1000, True, True), (900, 1000, True, False), (901, 1000, False, False), (901, 0, True, False), (1, 50, True, True)],
)
def test_compaction_is_due_above_the_window_less_the_reserve(tokens: int, window: int, enabled: bool, due: bool) -> None:
    assert compaction_due(tokens, window, CompactionLimits(enabled=enabled, reserve_tokens=100)) is due


@pytest.mark.rule("CMP-9")
def test_the_settings_of_a_session_give_the_limits_of_the_selected_model() -> None:
    settings = CompactionSettings(reserve_tokens=7, model_overrides=FrozenDict({"a/b": FrozenDict({"keepRecentTokens": 3})}))

    found = (limits_for(settings, "a/b"), limits_for(settings, None))

    assert found == (
        CompactionLimits(reserve_tokens=7, keep_recent_tokens=3),
        CompactionLimits(reserve_tokens=7, keep_recent_tokens=20_000),
    )
