"""Servers that say anything: whatever becomes of a recorded reply, the answer is one message, and what it counts is finite.

Each case takes a recorded reply and damages it: a field of an event gets a value of another kind, is dropped or
doubled; events are dropped, repeated, swapped. `just long` tries ten times as many.
"""

import copy
import json
import math
import random
from collections.abc import Iterator
from typing import Any, Final

import attrs
import pytest
import trio
from trio.testing import MockClock

from camshaft.actors.api import Rates
from camshaft.extensions_std.providers.wire_apis import WIRE_APIS
from camshaft.extensions_std.providers.wire_provider import WireProvider
from camshaft.kernel.codec import encode
from camshaft.kernel.messages import AssistantMessage
from camshaft.kernel.models import Model
from camshaft.kernel.stream import Ended, ToolCallEnded
from tests.conformance.recorded import DATA
from tests.extensions_std.providers.asking import FakeHttp, FakeResponse, ask

CASES: Final = 4_000
"""Damaged replies of each API in the default run."""

FILES: Final = {"anthropic-messages": "anthropic", "openai-completions": "completions", "openai-responses": "responses"}
RUBBISH: Final[tuple[Any, ...]] = (
    None,
    True,
    -1,
    0.5,
    1e308,
    10**400,
    -(10**400),
    "",
    "x",
    "\ud800",
    "{",
    [],
    [None],
    [[]],
    {},
    {"a": {"type": 3}},
    2**63,
)
RATES: Final = Rates(input=3, output=15, cache_read=0.3, cache_write=3.75)
LIMIT_S: Final = 5.0
"""Of the wall clock, for one reply; one takes a few ms."""


def recorded(api: str) -> list[list[Any]]:
    """The replies of the recorded streams, each as the values of its events; those that are no JSON are left out."""
    found = []
    for case in json.loads((DATA / "wire" / f"streams-{FILES[api]}.json").read_text("utf-8"))["cases"]:
        for response in case["responses"]:
            body = "".join([piece if isinstance(piece, str) else piece.get("text", "") for piece in response.get("body", ())])
            events = list(_events(body))
            if response["status"] == 200 and events:
                found.append(events)
    return found


def _events(body: str) -> Iterator[Any]:
    for line in body.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if line.startswith("data:"):
            try:
                yield json.loads(line[5:])
            except ValueError:
                continue


def damaged(events: list[Any], chance: random.Random) -> list[Any]:
    """The same events with one to three things wrong."""
    done = copy.deepcopy(events)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        if chance.random() < 0.25:
            _disordered(done, chance)
        elif done:
            _changed(chance.choice(done), chance)
    return done


def _disordered(events: list[Any], chance: random.Random) -> None:
    if not events:
        return
    at = chance.randrange(len(events))
    match chance.choice(("drop", "repeat", "swap", "insert")):
        case "drop":
            del events[at]
        case "repeat":
            events.insert(chance.randrange(len(events) + 1), copy.deepcopy(events[at]))
        case "swap":
            other = chance.randrange(len(events))
            events[at], events[other] = events[other], events[at]
        case "insert":
            events.insert(at, copy.deepcopy(chance.choice(RUBBISH)))


def _changed(event: Any, chance: random.Random) -> None:
    """One place inside the event is damaged."""
    places = [(holder, key) for holder, key in _places(event)]
    if not places:
        return
    holder, key = chance.choice(places)
    if isinstance(holder, dict) and chance.random() < 0.2:
        del holder[key]
    elif isinstance(holder, list) and chance.random() < 0.2:
        holder.insert(key, copy.deepcopy(holder[key]))
    else:
        holder[key] = copy.deepcopy(chance.choice(RUBBISH))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(pairs):
        yield value, key
        yield from _places(item)


def body_of(events: list[Any]) -> bytes:
    """The events on the wire, named after their type where they have one."""
    lines = []
    for event in events:
        kind = event.get("type") if isinstance(event, dict) else None
        name = f"event: {kind}\n" if isinstance(kind, str) and kind.isprintable() and kind.isascii() else ""
        lines.append(f"{name}data: {json.dumps(event)}\n\n")
    return "".join(lines).encode()


def faults(message: AssistantMessage | None, items: list[Any]) -> list[str]:
    """What is wrong with an answer."""
    if message is None or not isinstance(items[-1], Ended) or sum([isinstance(item, Ended) for item in items]) != 1:
        return ["it does not end once"]
    found = []
    if message.stop_reason not in ("stop", "length", "toolUse", "error"):
        found.append(f"stop reason {message.stop_reason!r}")
    if message.stop_reason == "error" and not message.error_message:
        found.append("an error without a text")
    numbers = {**attrs.asdict(message.usage, recurse=False)}
    cost = attrs.asdict(numbers.pop("cost"), recurse=False)
    for name, number in {**numbers, **cost}.items():
        if isinstance(number, (int, float)) and not (0 <= number < math.inf):
            found.append(f"{name} is {number!r}")
    ended = {item.index for item in items if isinstance(item, ToolCallEnded)}
    calls = [index for index, block in enumerate(message.content) if block.type == "toolCall"]
    if message.stop_reason == "toolUse" and message.api == "openai-responses" and not ended.issuperset(calls):
        found.append("a call may run that never ended (WIRE-95)")
    if message.stop_reason in ("stop", "toolUse", "length"):
        ids = [call.id for call in message.tool_calls]
        if len(set(ids)) < len(ids) or not all(ids):
            found.append(f"ids of calls: {ids}")
    try:
        json.dumps(encode(message), allow_nan=False)
    except (ValueError, OverflowError, RecursionError) as error:
        found.append(f"it cannot be stored: {error}")
    return found


async def tried(api: str, seeds: range) -> list[str]:
    """What went wrong, with the seed."""
    model = Model(id="m", provider="acme", api=api, base_url="http://model.test", reasoning=True, cost=RATES)
    wrong: list[str] = []
    replies = recorded(api)
    for seed in seeds:
        chance = random.Random(seed)
        http = FakeHttp([FakeResponse(body=[body_of(damaged(chance.choice(replies), chance))])])
        provider = WireProvider(apis=WIRE_APIS, name="acme", models=(model,), http=http)
        try:
            asked = await ask(provider)
        except Exception as error:  # noqa: BLE001  # nothing may come out
            wrong.append(f"seed {seed}: {error!r}")
            continue
        wrong += [f"seed {seed}: {fault}" for fault in faults(asked.message, asked.items)]
    return wrong


def try_all(api: str, seeds: range) -> list[str]:
    """As `tried`, on a clock that jumps over waits."""
    found: list[str] = trio.run(tried, api, seeds, clock=MockClock(autojump_threshold=0))
    return found


@pytest.mark.slow
@pytest.mark.rule("STR-11", "STR-30", "STR-36", "WIRE-95")
@pytest.mark.parametrize("api", WIRE_APIS)
def test_a_damaged_reply_is_one_message(api: str) -> None:
    assert try_all(api, range(CASES)) == []


@pytest.mark.long
@pytest.mark.parametrize("api", WIRE_APIS)
def test_many_damaged_replies_are_messages(api: str) -> None:
    assert try_all(api, range(CASES, 10 * CASES)) == []


def test_every_api_has_recorded_replies() -> None:
    assert {api for api in WIRE_APIS if len(recorded(api)) > 20} == set(WIRE_APIS)
