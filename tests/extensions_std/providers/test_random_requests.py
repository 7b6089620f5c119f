"""Any branch becomes a request that the server takes, over every wire API, whatever model and flags.

`just long` tries ten times as many. A failure shows the branch made as small as it could be made, and its seed.
"""

import copy
import json
import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import pytest

from camshaft.actors.api import Model, freeze
from camshaft.extensions_std.providers.compat import completions_flags
from camshaft.extensions_std.providers.completions_render import completions_form
from camshaft.extensions_std.providers.wire_apis import WIRE_APIS
from camshaft.extensions_std.providers.wire_transcript import Transcript
from tests.extensions_std.providers.random_branches import Maker, Origin, messages_of
from tests.extensions_std.providers.random_requests import PROVIDERS, Broken, Trial, request_of
from tests.extensions_std.providers.request_rules import RULES, faults
from tests.extensions_std.providers.sdk_types import anthropic_faults
from tests.extensions_std.providers.sdk_types_openai import openai_faults

SEEDS: Final = 3_000
LONG_SEEDS: Final = 30_000
ENOUGH: Final = 1_000
SHOWN: Final = 3
TROUBLE: Final = (
    *("orphan calls", "orphan results", "failed answers", "foreign answers", "images", "half characters"),
    *("thinking", "unknown blocks", "odd ids", "odd names", "repeated ids", "system messages"),
)
"""Each occurs more than `ENOUGH` times in the branches of each API."""
SDK_TYPES: Final[Mapping[str, Callable[[dict[str, Any]], list[str]]]] = {
    "anthropic-messages": anthropic_faults,
    "openai-completions": partial(openai_faults, "openai-completions"),
    "openai-responses": partial(openai_faults, "openai-responses"),
}
MARK: Final = {"type": "ephemeral"}
EVERY_API: Final = pytest.mark.parametrize("api", WIRE_APIS)


def sdk_faults(body: bytes, model: Model) -> list[str]:
    """What the types of the vendor's own package refuse."""
    check = SDK_TYPES.get(model.api)
    return check(json.loads(body)) if check is not None else []


def _tried(api: str, seeds: range) -> None:
    trial = Trial(checks=(faults, sdk_faults))

    broken = [found for seed in seeds if (found := trial.of(seed, api)) is not None]

    print(f"\n{api}: {dict(trial.held)}")
    assert "\n".join(map(str, sorted(broken, key=lambda each: len(str(each)))[:SHOWN])) == "", f"{len(broken)} of {len(seeds)}"
    assert {kind: trial.held[kind] for kind in TROUBLE if trial.held[kind] <= ENOUGH} == {}


@pytest.mark.slow
@EVERY_API
def test_any_branch_becomes_a_request_that_the_server_takes(api: str) -> None:
    _tried(api, range(SEEDS))


@pytest.mark.long
@EVERY_API
def test_many_more_branches_become_requests_that_the_server_takes(api: str) -> None:
    _tried(api, range(SEEDS, LONG_SEEDS))


@EVERY_API
def test_a_conversation_that_changes_its_branch_sends_what_a_new_one_would(api: str) -> None:
    model = Model(id="m", provider="acme", api=api, base_url="http://model.test")
    maker = Maker(random.Random(7), Origin("acme", api, "m"))
    conversation = WIRE_APIS[api].begin(model)
    for _ in range(100):
        messages = messages_of(maker.lines())
        conversation.follow(messages)

        followed = conversation.body(request_of(model, messages))

        anew = WIRE_APIS[api].begin(model)
        anew.follow(messages)
        assert followed == anew.body(request_of(model, messages))


def test_one_message_bears_the_cache_mark_however_the_history_grew() -> None:
    model = Model(id="m", provider="acme", api="openai-completions", compat=freeze({"cacheControlFormat": "anthropic"}))
    chance = random.Random(7)
    maker = Maker(chance, Origin("acme", "openai-completions", "m"))
    for _ in range(200):
        messages = messages_of(maker.lines())
        stepwise, anew = [Transcript(model, completions_form(model, completions_flags(model))) for _ in range(2)]
        for at in sorted(chance.choices(range(15), k=3)):
            stepwise.follow(messages[:at])
            stepwise.wire_messages(MARK)
        stepwise.follow(messages)
        anew.follow(messages)

        marked = b"".join(stepwise.wire_messages(MARK))

        assert marked == b"".join(anew.wire_messages(MARK))
        assert marked.count(b'"cache_control"') <= 1
        assert b"".join(stepwise.wire_messages(None)) == b"".join(anew.wire_messages(None))


def test_there_are_rules_and_providers_for_every_api() -> None:
    assert WIRE_APIS.keys() <= RULES.keys() & PROVIDERS.keys()


def test_a_broken_branch_is_made_small() -> None:
    """With a rule that no request with a call of `bash` keeps."""

    def refuses_bash(body: bytes, _model: Model) -> list[str]:
        return ["bash"] if b'"name":"bash"' in body else []

    trial = Trial(checks=(refuses_bash,))

    found = next(broken for seed in range(500) if (broken := trial.of(seed, "openai-completions")) is not None)

    assert isinstance(found, Broken)
    assert found.faults == ["bash"]
    assert len(found.lines) == 2


# -- the checkers find what they are for -------------------------------------------------

CALL: Final[dict[str, Any]] = {"type": "tool_use", "id": "c1", "name": "read", "input": {}}
RESULT: Final[dict[str, Any]] = {"type": "tool_result", "tool_use_id": "c1", "content": "", "is_error": False}
FUNCTION: Final[dict[str, Any]] = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
REASONING: Final[dict[str, Any]] = {"type": "reasoning", "id": "rs_1", "summary": []}
FUNCTION_CALL: Final[dict[str, Any]] = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "read", "arguments": "{}"}
OUTPUT: Final[dict[str, Any]] = {"type": "function_call_output", "call_id": "c1", "output": "x"}

SOUND: Final[Mapping[str, dict[str, Any]]] = {
    "anthropic-messages": {
        "max_tokens": 2000,
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "s"}, CALL]},
            {"role": "user", "content": [RESULT]},
        ],
    },
    "openai-completions": {
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": None, "tool_calls": [FUNCTION]},
            {"role": "tool", "tool_call_id": "c1", "content": "x"},
        ]
    },
    "openai-responses": {"input": [{"role": "user", "content": [{"type": "input_text", "text": "go"}]}, REASONING, FUNCTION_CALL, OUTPUT]},
}
"""A prompt, a call and its result, as each API takes them."""

Change = Callable[[list[Any]], object]

BROKEN: Final[tuple[tuple[str, str, Change], ...]] = (
    ("anthropic-messages", "the first message is not the user's", lambda talk: talk.pop(0)),
    ("anthropic-messages", "no results for ['c1']", lambda talk: talk.pop()),
    ("anthropic-messages", "results ['c1'] for calls []", lambda talk: talk[1]["content"].pop()),
    ("anthropic-messages", "tool results are not first", lambda talk: talk[2]["content"].insert(0, {"type": "text", "text": "x"})),
    ("anthropic-messages", "blank text in user", lambda talk: talk[0].update(content=" \n")),
    ("anthropic-messages", "empty content", lambda talk: talk.append({"role": "user", "content": []})),
    (
        "anthropic-messages",
        "id 'a|b'",
        lambda talk: (talk[1]["content"][1].update(id="a|b"), talk[2]["content"][0].update(tool_use_id="a|b")),
    ),
    ("anthropic-messages", "call twice: ['c1']", lambda talk: talk.extend(copy.deepcopy(talk[1:]))),
    ("anthropic-messages", "name 'two words'", lambda talk: talk[1]["content"][1].update(name="two words")),
    ("anthropic-messages", "half a character: '\\ud800'", lambda talk: talk[0].update(content="\ud800")),
    ("anthropic-messages", "thinking without its signature", lambda talk: talk[1]["content"][0].update(signature=None)),
    ("openai-completions", "result without call: 'c1'", lambda talk: talk.pop(1)),
    ("openai-completions", "no result for ['c1'] at the end", lambda talk: talk.pop()),
    ("openai-completions", "no result for ['c1'] before user", lambda talk: talk.insert(2, {"role": "user", "content": "x"})),
    ("openai-completions", "call twice: ['c1']", lambda talk: talk[1]["tool_calls"].append(FUNCTION)),
    ("openai-completions", "empty answer", lambda talk: talk.append({"role": "assistant", "content": None})),
    ("openai-completions", "empty text part", lambda talk: talk[0].update(content=[{"type": "text", "text": ""}])),
    ("openai-completions", "arguments '{'", lambda talk: talk[1]["tool_calls"][0]["function"].update(arguments="{")),
    ("openai-completions", "name ''", lambda talk: talk[1]["tool_calls"][0]["function"].update(name="")),
    ("openai-responses", "output without call: 'c1'", lambda items: items.append(OUTPUT)),
    ("openai-responses", "no output for ['c1']", lambda items: items.pop()),
    ("openai-responses", "reasoning without what follows it", lambda items: items.append({**REASONING, "id": "rs_2"})),
    ("openai-responses", "item twice: ['rs_1']", lambda items: items.insert(1, REASONING)),
    ("openai-responses", "id 'x' of a function_call", lambda items: items[2].update(id="x")),
    ("openai-responses", "message of user without content", lambda items: items[0].update(content=[])),
)


def _body(api: str, change: Change | None = None) -> bytes:
    body = copy.deepcopy({"model": "m", "stream": True, **SOUND[api]})
    if change is not None:
        change(body["input" if api == "openai-responses" else "messages"])
    return json.dumps(body).encode()


@pytest.mark.parametrize("api", RULES)
def test_a_sound_body_breaks_no_rule(api: str) -> None:
    assert faults(_body(api), Model(id="m", provider="acme", api=api)) == []


@pytest.mark.parametrize(("api", "fault", "change"), BROKEN, ids=[f"{api}: {fault}" for api, fault, _ in BROKEN])
def test_a_broken_body_is_named(api: str, fault: str, change: Change) -> None:
    assert fault in faults(_body(api, change), Model(id="m", provider="acme", api=api))


@pytest.mark.parametrize("body", [b'{"model": "m", "model": "m"}', b"{", b'{"model": "\xff"}'])
def test_what_is_no_body_is_named(body: bytes) -> None:
    assert faults(body, Model(id="m", provider="acme", api="openai-completions"))[0].startswith("not JSON: ")


def test_an_image_for_a_model_without_eyes_is_named() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aW1n"}}
    body = _body("openai-completions", lambda talk: talk[0].update(content=[image]))

    assert faults(body, Model(id="m", provider="acme", api="openai-completions")) == ["an image for a model that takes none"]
    assert faults(body, Model(id="m", provider="acme", api="openai-completions", input=("text", "image"))) == []
