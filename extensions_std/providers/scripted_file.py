"""A scripted provider from a JSON file, so that whole programs can be tested without keys (FAUX-27).

    {"steps": ["Hello.", {"content": [{"type": "toolCall", "name": "ls"}]}, {"actions": [{"type": "hang"}]}]}

`scripted_schema.py` has all keys. A step is a text, a message (`content`, and `stopReason`, `usage`, … where wanted), or a
list of `actions`; `when` and `repeats` say for which requests it is. Without `stopReason` a message with tool calls ends with
`toolUse`, one with `errorMessage` with `error`, others with `stop`. Actions are the events of the normalised stream by
their names, whole blocks in fragments (`text`, `thinking`, `toolCall`), and `sleep`, `waitGate`, `openGate`, `fail`, `drop`,
`hang`, `respond`, `malformed`. Without `contentIndex` a start opens the next block, and other events are of the block opened last.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from camshaft.actors.api import (
    EMPTY,
    NO_USAGE,
    Block,
    Cost,
    Ended,
    MalformedJson,
    Model,
    Noted,
    Rates,
    Started,
    TextDelta,
    TextEnded,
    TextStarted,
    ThinkingDelta,
    ThinkingEnded,
    ThinkingStarted,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
    freeze,
    loads,
)
from camshaft.extensions_std.providers.scripted import ScriptedProvider
from camshaft.extensions_std.providers.scripted_messages import (
    assistant,
    faux_model,
    text,
    text_items,
    thinking,
    thinking_items,
    tool_call,
    tool_call_items,
)
from camshaft.extensions_std.providers.scripted_schema import faults_of
from camshaft.extensions_std.providers.scripted_steps import (
    Action,
    Drop,
    Fail,
    Hang,
    Malformed,
    OpenGate,
    Respond,
    Sleep,
    Step,
    WaitGate,
    When,
)


class ScriptFileError(Exception):
    """The file cannot be played; the text names it and every fault with its place and value."""


def load_script(path: str | Path) -> ScriptedProvider:
    """The provider that the file describes. Raises ScriptFileError."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise ScriptFileError(f"Cannot read the script: {error.strerror or error}\n\nFile: {path}") from None
    try:
        return script_of(loads(raw))
    except MalformedJson as error:
        raise ScriptFileError(f"The script is not JSON: {error}\n\nFile: {path}") from None
    except ScriptFileError as error:
        raise ScriptFileError(f"{error}\n\nFile: {path}") from None


def script_of(value: Any) -> ScriptedProvider:
    """The provider that such JSON describes. Raises ScriptFileError."""
    faults = faults_of(value)
    if not faults:
        faults = _senseless(value)
    if faults:
        raise ScriptFileError("\n".join(["Invalid script:", *[f"  - {fault}" for fault in faults]]))
    name, api = value.get("provider", "faux"), value.get("api", value.get("provider", "faux"))
    size, deferred = value.get("tokenSize", {"min": 3, "max": 5}), value.get("deferred", {})
    provider = ScriptedProvider(
        name=name,
        api=api,
        models=tuple([_model(each, name, api) for each in value.get("models", ())]),
        seed=value.get("seed", 0),
        token_size=(int(size["min"]), int(size["max"])),
        chunked=value.get("chunked", True),
        tokens_per_second=value.get("tokensPerSecond"),
        pause_s=value.get("pauseMs", 0) / 1000,
        usage=_usage(value["usage"]) if "usage" in value else None,
        pending_fetches=deferred.get("pendingFetches", 0),
        poll_after_ms=deferred.get("pollAfterMs"),
    )
    provider.set_responses([_step(each) for each in value["steps"]])
    return provider


def _senseless(value: Mapping[str, Any]) -> list[str]:
    """What has the right form and cannot be meant."""
    found = []
    size = value.get("tokenSize")
    if size is not None and not 1 <= int(size["min"]) <= int(size["max"]):
        found.append(f"tokenSize: expected whole numbers, min at most max, got {size!r}")
    for index, step in enumerate(value["steps"]):
        at = f"steps[{index}]"
        if isinstance(step, dict) and not {"actions", "content", "errorMessage", "stopReason"} & step.keys():
            found.append(f"{at}: says nothing; expected content, errorMessage or actions")
        late = [number for number, action in enumerate(step["actions"]) if number and action["type"] == "respond"] if _acts(step) else []
        found += [f"{at}.actions[{number}]: respond says how the answer begins, and comes first" for number in late]
    return found


def _acts(step: Any) -> bool:
    return isinstance(step, dict) and "actions" in step


def _model(raw: Mapping[str, Any], provider: str, api: str) -> Model:
    names = {"name": "name", "reasoning": "reasoning", "contextWindow": "context_window", "maxTokens": "max_tokens"}
    fields = {python: raw[json] for json, python in names.items() if json in raw}
    if "input" in raw:
        fields["input"] = tuple(raw["input"])
    if "cost" in raw:
        fields["cost"] = Rates(**{_SNAKE.get(name, name): rate for name, rate in raw["cost"].items()})
    if "thinkingLevelMap" in raw:
        fields["thinking_level_map"] = freeze(raw["thinkingLevelMap"])
    return faux_model(raw["id"], provider=provider, api=api, **fields)


_SNAKE: Final[Mapping[str, str]] = {"cacheRead": "cache_read", "cacheWrite": "cache_write", "totalTokens": "total_tokens"}


def _usage(raw: Mapping[str, Any]) -> Usage:
    """Without `totalTokens` the sum."""
    counts = {_SNAKE.get(name, name): count for name, count in raw.items() if name != "cost"}
    counts.setdefault("total_tokens", sum([counts.get(name, 0) for name in ("input", "output", "cache_read", "cache_write")]))
    cost = {_SNAKE.get(name, name): amount for name, amount in raw.get("cost", {}).items()}
    if cost:
        cost.setdefault("total", sum(cost.values()))
    return Usage(**counts, cost=Cost(**cost))


def _step(raw: Any) -> Step:
    if isinstance(raw, str):
        return assistant(raw)
    step: Any = _actions(raw["actions"]) if _acts(raw) else _message(raw)
    guard = raw.get("when", {})
    if not guard and not raw.get("repeats"):
        return step  # type: ignore[no-any-return]  # a message, or actions
    return When(step=step, repeats=raw.get("repeats", False), **guard)


def _message(raw: Mapping[str, Any]) -> Any:
    content = raw.get("content", [])
    blocks = [_block(each) for each in ([content] if isinstance(content, str) else content)]
    implied = "error" if "errorMessage" in raw else "toolUse" if any([block.type == "toolCall" for block in blocks]) else "stop"
    fields = {**_known(raw), **{python: freeze(raw[json]) for json, python in _MESSAGE.items() if json in raw}}
    usage = fields.pop("usage", NO_USAGE)
    return assistant(blocks, stop_reason=raw.get("stopReason", implied), usage=usage, **fields)


_MESSAGE: Final[Mapping[str, str]] = {
    "errorMessage": "error_message",
    "rawStopReason": "raw_stop_reason",
    "diagnostics": "diagnostics",
    "deferred": "deferred",
    "timestamp": "timestamp",
}


def _block(raw: Any) -> Block:
    if isinstance(raw, str):
        return text(raw)
    match raw["type"]:
        case "text":
            return text(raw["text"])
        case "thinking":
            return thinking(raw["thinking"], signature=raw.get("signature"))
        case _:
            return tool_call(raw["name"], raw.get("arguments", EMPTY), id=raw.get("id", ""))


def _known(raw: Mapping[str, Any]) -> dict[str, Any]:
    """What an answer, its start, its end and a note may tell."""
    fields = {python: raw[json] for json, python in (("responseId", "response_id"), ("responseModel", "response_model")) if json in raw}
    return {**fields, **({"usage": _usage(raw["usage"])} if "usage" in raw else {})}


# -- actions -----------------------------------------------------------------------------


@attrs.define
class _Blocks:
    """Where the next block opens, and which was opened last."""

    count: int = 0

    def opened(self, raw: Mapping[str, Any]) -> int:
        """The index of a block that begins."""
        index: int = raw.get("contentIndex", self.count)
        self.count = max(self.count, index + 1)
        return index

    def meant(self, raw: Mapping[str, Any]) -> int:
        """The index of a block that goes on."""
        index: int = raw.get("contentIndex", max(0, self.count - 1))
        return index


def _actions(raw: Sequence[Mapping[str, Any]]) -> tuple[Action, ...]:
    blocks = _Blocks()
    return tuple([action for each in raw for action in ACTIONS[each["type"]](each, blocks)])


def _ended(raw: Mapping[str, Any], reason: str) -> Ended:
    fields = {python: freeze(raw[json]) for json, python in _MESSAGE.items() if json in raw}
    return Ended(raw.get("reason", reason), **_known(raw), **fields)


Build = Callable[[Mapping[str, Any], _Blocks], tuple[Action, ...]]

ACTIONS: Final[Mapping[str, Build]] = {
    "start": lambda raw, _blocks: (Started(**_known(raw)),),
    "text_start": lambda raw, blocks: (TextStarted(blocks.opened(raw)),),
    "text_delta": lambda raw, blocks: (TextDelta(blocks.meant(raw), raw["delta"]),),
    "text_end": lambda raw, blocks: (TextEnded(blocks.meant(raw), raw.get("content")),),
    "thinking_start": lambda raw, blocks: (ThinkingStarted(blocks.opened(raw)),),
    "thinking_delta": lambda raw, blocks: (ThinkingDelta(blocks.meant(raw), raw["delta"]),),
    "thinking_end": lambda raw, blocks: (ThinkingEnded(blocks.meant(raw), raw.get("content"), raw.get("signature")),),
    "toolcall_start": lambda raw, blocks: (ToolCallStarted(blocks.opened(raw), raw["id"], raw["name"]),),
    "toolcall_delta": lambda raw, blocks: (ToolCallDelta(blocks.meant(raw), raw["delta"]),),
    "toolcall_end": lambda raw, blocks: (ToolCallEnded(blocks.meant(raw)),),
    "note": lambda raw, _blocks: (Noted(**_known(raw)),),
    "done": lambda raw, _blocks: (_ended(raw, "stop"),),
    "error": lambda raw, _blocks: (_ended(raw, "error"),),
    "text": lambda raw, blocks: text_items(blocks.opened(raw), *raw["fragments"]),
    "thinking": lambda raw, blocks: thinking_items(blocks.opened(raw), *raw["fragments"], signature=raw.get("signature")),
    "toolCall": lambda raw, blocks: tool_call_items(blocks.opened(raw), raw["id"], raw["name"], *raw["fragments"]),
    "sleep": lambda raw, _blocks: (Sleep(raw["ms"] / 1000),),
    "waitGate": lambda raw, _blocks: (WaitGate(raw["name"]),),
    "openGate": lambda raw, _blocks: (OpenGate(raw["name"]),),
    "fail": lambda raw, _blocks: (Fail(raw["text"], raw.get("status")),),
    "drop": lambda _raw, _blocks: (Drop(),),
    "hang": lambda _raw, _blocks: (Hang(),),
    "respond": lambda raw, _blocks: (Respond(raw.get("status", 200), freeze(raw.get("headers", EMPTY))),),
    "malformed": lambda raw, _blocks: (Malformed(raw["value"]),),
}
"""By `type`; the same names as in `scripted_schema.ACTIONS`."""
