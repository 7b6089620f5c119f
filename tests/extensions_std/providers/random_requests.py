"""A request for each random branch: every API, compatibility flags and models at random, all from the seed."""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from camshaft.actors.api import Model, ModelMessage, ModelRequest, RequestOptions, freeze
from camshaft.extensions_std.providers.preparation import clean
from camshaft.extensions_std.providers.wire_apis import WIRE_APIS
from camshaft.kernel.messages import BLANKS, UserMessage, text_of
from tests.extensions_std.providers.random_branches import Held, Maker, Origin, count, messages_of
from tests.extensions_std.providers.request_rules import faults

Lines = Sequence[dict[str, Any]]
Check = Callable[[bytes, Model], list[str]]

PROVIDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "anthropic-messages": ("anthropic", "acme"),
    "openai-completions": ("openai", "local", "deepseek", "openrouter"),
    "openai-responses": ("openai", "acme"),
}
LEVELS: Final = ("off", "minimal", "medium", "xhigh")
RETENTIONS: Final = (None, "none", "long")

FLAGS: Final[Mapping[str, Mapping[str, Sequence[Any]]]] = {
    "anthropic-messages": dict.fromkeys(
        (
            *("supportsEagerToolInputStreaming", "supportsCacheControlOnTools", "forceAdaptiveThinking", "allowEmptySignature"),
            *("supportsStrictTools", "supportsMidConvoSystemMessages", "supportsMidConvoToolChanges", "supportsLongCacheRetention"),
        ),
        (True, False),
    ),
    "openai-completions": {
        **dict.fromkeys(
            (
                *("supportsDeveloperRole", "requiresToolResultName", "requiresAssistantAfterToolResult", "requiresNonNullAssistantContent"),
                *("requiresToolsWithToolHistory", "requiresThinkingAsText", "requiresReasoningContentOnAssistantMessages"),
                *("supportsOpenAIGrammarTools", "supportsMidConvoSystemMessages", "supportsMidConvoToolAdditions", "supportsStrictMode"),
            ),
            (True, False),
        ),
        "cacheControlFormat": ("anthropic",),
    },
    "openai-responses": dict.fromkeys(
        (
            *("supportsDeveloperRole", "supportsMidConvoSystemMessages", "supportsOpenAIGrammarTools", "supportsStrictMode"),
            *("supportsExplicitPromptCacheMode", "supportsLongCacheRetention", "supportsMaxOutputTokens"),
        ),
        (True, False),
    ),
}
"""Compatibility flags that change what a history looks like, by their JSON names, with the values that are tried."""


@attrs.frozen
class Broken:
    """A branch whose request a server would refuse, as small as it could be made."""

    seed: int
    model: Model
    lines: Lines
    faults: list[str]

    def __str__(self) -> str:
        told = "\n".join([f"  {line}" for line in self.lines])
        return f"seed {self.seed}, {self.model.api} of {self.model.provider}, {dict(self.model.compat)}: {self.faults}\n{told}"


@attrs.define
class Trial:
    """Makes requests and judges them."""

    checks: Sequence[Check] = (faults,)
    held: Held = attrs.field(factory=Counter)

    def of(self, seed: int, api: str) -> Broken | None:
        """The branch of a seed as a request of an API; None if a server would take it."""
        chance = random.Random(f"{api} {seed}")
        model = _model(chance, api)
        own = Origin(model.provider, api, model.id)
        lines = Maker(chance, own).lines()
        options = _options(chance)
        split = chance.random() if chance.random() < 0.3 else None
        messages = messages_of(lines)
        count(messages, own, self.held)
        self.held["requests"] += 1
        found = self._judged(model, messages, options, split)
        if not found:
            return None
        small = self._smallest(model, lines, options, split)
        return Broken(seed, model, small, self._judged(model, messages_of(small), options, split))

    def _judged(self, model: Model, messages: Sequence[ModelMessage], options: "_Options", split: float | None) -> list[str]:
        if not any([_says_something(message) for message in messages]):
            return []
        try:
            made = _body(model, messages, options, None)
            found = [fault for check in self.checks for fault in check(made, model)]
            if split is not None and _body(model, messages, options, split) != made:
                found.append("followed in two steps it is another request")
        except Exception as error:  # noqa: BLE001  # whatever is raised is a fault, and told
            return [f"raised {error!r}"]
        return found

    def _smallest(self, model: Model, lines: Lines, options: "_Options", split: float | None) -> Lines:
        """Lines, and then blocks, left out one by one as long as something is broken."""
        while True:
            smaller = next((less for less in _less(lines) if self._judged(model, messages_of(less), options, split)), None)
            if smaller is None:
                return lines
            lines = smaller


def _says_something(message: ModelMessage) -> bool:
    """Whether it is words of a person: a run begins with some, and so does every request."""
    return isinstance(message, UserMessage) and bool(clean(text_of(message.content)).strip(BLANKS))


@attrs.frozen
class _Options:
    level: str
    options: RequestOptions


def request_of(model: Model, messages: Sequence[ModelMessage], level: str = "off", options: RequestOptions | None = None) -> ModelRequest:
    """A request with these messages."""
    return ModelRequest(model=model, thinking_level=level, messages=messages, options=options or RequestOptions())


def _body(model: Model, messages: Sequence[ModelMessage], options: _Options, split: float | None) -> bytes:
    """The body; with `split`, of a conversation that followed a part of the messages before."""
    conversation = WIRE_APIS[model.api].begin(model)
    if split is not None:
        before = list(messages[: int(split * len(messages))])
        conversation.follow(before)
        conversation.body(request_of(model, before, options.level, options.options))
    conversation.follow(messages)
    return conversation.body(request_of(model, messages, options.level, options.options))


def _model(chance: random.Random, api: str) -> Model:
    provider = chance.choice(PROVIDERS[api])
    compat = {name: chance.choice(values) for name, values in FLAGS[api].items() if chance.random() < 0.3}
    return Model(
        id="m",
        provider=provider,
        api=api,
        base_url="http://model.test",
        input=chance.choice((("text",), ("text", "image"))),
        reasoning=chance.random() < 0.7,
        context_window=1_000_000,
        max_tokens=chance.choice((8_192, 64_000)),
        compat=freeze(compat),
    )


def _options(chance: random.Random) -> _Options:
    retention, session = chance.choice(RETENTIONS), chance.choice((None, "s-1"))
    return _Options(chance.choice(LEVELS), RequestOptions(cache_retention=retention, session_id=session))


def _less(lines: Lines) -> Any:
    """The branch without one line, and without one block of one message."""
    for index in range(len(lines)):
        kept = [*lines[:index], *lines[index + 1 :]]
        parents = [None, *[line["id"] for line in kept]]
        yield [{**line, "parentId": parents[number]} for number, line in enumerate(kept)]
    for index, line in enumerate(lines):
        message = line.get("message", {})
        content = message.get("content")
        for at in range(len(content) if isinstance(content, list) else 0):
            less = [*content[:at], *content[at + 1 :]]
            yield [*lines[:index], {**line, "message": {**message, "content": less}}, *lines[index + 1 :]]
