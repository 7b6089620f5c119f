"""The wire runner: `run_wire.py requests|streams CASES.json OUT.json` (WIRE.md).

Each case meets a scripted server of its own on the loopback interface and a provider of its own.
"""

import base64
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import trio

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from camshaft.actors.api import ModelRequest, RequestHooks, RequestOptions
from camshaft.actors.ports.http import RealHttp
from camshaft.extensions_std.providers.credentials import Auth
from camshaft.extensions_std.providers.model_layers import model_from_json
from camshaft.extensions_std.providers.transport import Identity, TransportLimits
from camshaft.extensions_std.providers.wire_apis import WIRE_APIS
from camshaft.extensions_std.providers.wire_provider import WireProvider
from camshaft.kernel.codec import decode_message, encode
from camshaft.kernel.messages import AssistantMessage
from camshaft.kernel.models import Model
from camshaft.kernel.persistent import EMPTY, freeze, thaw
from camshaft.kernel.stream import AssistantMessageEvent, Ended, StreamItem, Violation, begin, event_of, fold
from tests.extensions_std.providers.sse_server import Reply, ScriptedServer, scripted_server

CASE_LIMIT_S: Final = 10.0
"""A case takes a few ms; one that hangs is a failure."""

SETTLE_S: Final = 0.05
"""The short time in which a client must have closed an aborted response."""

UNREACHABLE: Final = "http://127.0.0.1:9"
"""Nothing listens at the discard port."""


def _events(*events: dict[str, Any]) -> bytes:
    """Server-sent events; one that has a type is named after it."""
    named = [(f"event: {event['type']}\n" if "type" in event else "") + f"data: {json.dumps(event)}\n\n" for event in events]
    return "".join(named).encode()


COMPLETE: Final[Mapping[str, bytes]] = {
    "anthropic-messages": _events(
        {"type": "message_start", "message": {"id": "msg_1", "usage": {}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "ok"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ),
    "openai-completions": _events({"choices": [{"index": 0, "delta": {"content": "ok"}, "finish_reason": "stop"}]}) + b"data: [DONE]\n\n",
    "openai-responses": _events({"type": "response.completed", "response": {"status": "completed"}}),
}
"""By API the short reply that a request case is answered with."""


@attrs.define(eq=False)
class CaseSignal:
    """The abort signal of a case."""

    _event: trio.Event = attrs.field(factory=trio.Event)

    @property
    def cancelled(self) -> bool:
        """Whether the caller has cancelled."""
        return self._event.is_set()

    async def wait(self) -> None:
        """Until the caller cancels."""
        await self._event.wait()

    def cancel(self) -> None:
        """Cancels."""
        self._event.set()


@attrs.define(eq=False)
class Observed:
    """What a case's hooks and its consumer saw."""

    events: list[AssistantMessageEvent] = attrs.field(factory=list)
    responses: list[dict[str, Any]] = attrs.field(factory=list)
    provider_events: list[Any] = attrs.field(factory=list)
    message: AssistantMessage | None = None


async def run_case(kind: str, case: Mapping[str, Any]) -> dict[str, Any]:
    """The result of one case, as WIRE.md sections 2 and 3 describe it."""
    replies = [reply_of(each) for each in case["responses"]] if kind == "streams" else [Reply(body=(COMPLETE[case["model"]["api"]],))]
    async with scripted_server(*replies) as server:
        observed = Observed()
        base = UNREACHABLE if case.get("unreachable") else server.base_url
        with trio.fail_after(CASE_LIMIT_S):
            await _converse(case, base, server, observed)
            result = await _request_result(server, observed) if kind == "requests" else await _stream_result(case, server, observed)
    return dict(json.loads(json.dumps(result)))


async def _converse(case: Mapping[str, Any], base: str, server: ScriptedServer, observed: Observed) -> None:
    model = _model(case["model"], base)
    provider = _provider(case, model)
    request = ModelRequest(
        model=model,
        thinking_level=case.get("options", {}).get("reasoning", "off"),
        messages=_messages(case["context"]),
        options=_options(case.get("options", {}), case.get("entry")),
        hooks=_hooks(case, observed),
    )
    signal, partial = CaseSignal(), begin(model.api, model.provider, model.id, 1)
    abort = case.get("abort", {})

    async def emit(item: StreamItem) -> None:
        nonlocal partial
        folded = fold(partial, item)
        assert not isinstance(folded, Violation), folded.text
        partial = folded
        event = event_of(partial, item)
        if event is not None:
            observed.events.append(event)
            if abort.get("after") == len(observed.events):
                signal.cancel()
        if isinstance(item, Ended):
            observed.message = partial.message

    if abort.get("after") == 0:
        signal.cancel()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_abort_on_request, abort.get("onRequest"), server, signal)
        await provider.stream(request, signal, emit)
        nursery.cancel_scope.cancel()


async def _abort_on_request(number: int | None, server: ScriptedServer, signal: CaseSignal) -> None:
    if number is None:
        return
    while len(server.requests) < number:
        await server.received.wait()
    await trio.sleep(0.01)
    signal.cancel()


async def _request_result(server: ScriptedServer, observed: Observed) -> dict[str, Any]:
    if not server.requests:
        return {"error": observed.message.error_message if observed.message else "no request"}
    first = server.requests[0]
    body = json.loads(first.body.decode("utf-8"))
    return {"request": {"method": first.method, "path": first.path, "headers": first.headers, "body": body}}


async def _stream_result(case: Mapping[str, Any], server: ScriptedServer, observed: Observed) -> dict[str, Any]:
    message = {**encode(observed.message), "durationMs": 0}
    result = {"requests": len(server.requests), "events": [_event(each) for each in observed.events], "message": message}
    if case.get("abort") and server.requests:
        with trio.move_on_after(SETTLE_S):
            await server.disconnected.wait()
        result["disconnected"] = server.disconnected.is_set()
    seen = {"responses": observed.responses, "providerEvents": observed.provider_events}
    return {**result, **{name: seen[name] for name in case.get("observe", ())}}


def _event(event: AssistantMessageEvent) -> dict[str, Any]:
    done: dict[str, Any] = {"type": event.type}
    fields = {"contentIndex": event.content_index, "delta": event.delta, "content": event.content, "reason": event.reason}
    done.update({name: value for name, value in fields.items() if value is not None})
    if event.tool_call is not None:
        done["toolCall"] = encode(event.tool_call)
    if event.type == "toolcall_delta":
        assert event.content_index is not None
        done["arguments"] = thaw(encode(event.partial.content[event.content_index])["arguments"])
    return done


def _provider(case: Mapping[str, Any], model: Model) -> WireProvider:
    options = case.get("options", {})

    async def resolve(_model: Model, _options: RequestOptions) -> Auth:
        return Auth(api_key=options.get("apiKey"))

    return WireProvider(
        apis=WIRE_APIS,
        name=model.provider,
        models=(model,),
        http=RealHttp(),
        resolve=resolve,
        needs_key=True,
        limits=_limits(options),
        identity=_identity(options.get("identity")),
    )


def _limits(options: Mapping[str, Any]) -> TransportLimits:
    delay = options.get("maxRetryDelayMs")
    idle = options.get("timeoutMs")
    return TransportLimits(
        max_retries=options.get("maxRetries", 0),
        max_retry_delay_s=60.0 if delay is None else delay / 1000,
        idle_timeout_s=300.0 if idle is None else idle / 1000,
    )


def _identity(given: Mapping[str, Any] | None) -> Identity:
    if given is None:
        return Identity()
    told = given.get("attribution", {})
    return Identity(
        user_agent=given.get("userAgent", {}).get("custom", "camshaft"),
        name=told.get("name"),
        url=told.get("url"),
        categories=tuple(told.get("categories", ())),
    )


def _hooks(case: Mapping[str, Any], observed: Observed) -> RequestHooks:
    async def on_response(status: int, _headers: Mapping[str, str]) -> None:
        observed.responses.append({"status": status})

    async def on_stream_event(event: Any) -> None:
        observed.provider_events.append(event)

    on_payload = _payload_hook(case.get("hooks", {}).get("payload"))
    return RequestHooks(on_payload=on_payload, on_response=on_response, on_stream_event=on_stream_event)


def _payload_hook(wanted: Mapping[str, Any] | None) -> Callable[[dict[str, Any]], Any] | None:
    if wanted is None:
        return None

    async def on_payload(payload: dict[str, Any]) -> object:
        if "value" in wanted:
            return wanted["value"]
        removed = wanted.get("remove", ())
        return {name: value for name, value in {**payload, **wanted.get("merge", {})}.items() if name not in removed}

    return on_payload


def _model(raw: Mapping[str, Any], base: str) -> Model:
    made = model_from_json({**raw, "baseUrl": raw["baseUrl"].replace("<base>", base)}, raw["provider"])
    return attrs.evolve(made, headers=freeze(raw.get("headers", {})))


API_OPTIONS: Final = ("serviceTier", "reasoningEffort", "reasoningSummary")
"""What the cases of the API-specific entry use of its options."""


def _options(raw: Mapping[str, Any], entry: str | None) -> RequestOptions:
    own = {name: raw[name] for name in API_OPTIONS if name in raw}
    api_options = freeze(own) if entry == "api" else None
    return RequestOptions(
        session_id=raw.get("sessionId"),
        max_tokens=raw.get("maxTokens"),
        temperature=raw.get("temperature"),
        sampling_params=freeze(raw.get("samplingParams", EMPTY)),
        tool_choice=raw.get("toolChoice"),
        headers=freeze(raw.get("headers", EMPTY)),
        cache_retention=raw.get("cacheRetention", "short"),
        thinking_budgets=freeze(raw["thinkingBudgets"]) if "thinkingBudgets" in raw else None,
        metadata=freeze(raw.get("metadata", EMPTY)),
        api_options=api_options,
    )


def _messages(context: Mapping[str, Any]) -> tuple[Any, ...]:
    """The context as STR-2 says: prompt and tools become a leading system message."""
    leading = {"role": "system", "content": context.get("systemPrompt", ""), "timestamp": 0}
    if context.get("tools"):
        leading["toolsAdded"] = context["tools"]
    raw = [*([leading] if len(leading) > 3 or leading["content"] else []), *context["messages"]]
    return tuple([decode_message(freeze(each)) for each in raw])


def reply_of(raw: Mapping[str, Any]) -> Reply:
    """A reply as a case describes it."""
    body: list[bytes] = []
    for piece in raw.get("body", ()):
        if isinstance(piece, str):
            body.append(piece.encode())
        elif "b64" in piece:
            body.append(base64.b64decode(piece["b64"]))
        else:
            whole = piece["text"].encode()
            body += [whole[at : at + piece["every"]] for at in range(0, len(whole), piece["every"])]
    headers = tuple([(name, str(value)) for name, value in raw.get("headers", {}).items()])
    end = {"drop": "cut", "hold": "hold"}.get(raw.get("end", ""), "close")
    return Reply(status=raw["status"], headers=headers, body=body, end=end)  # type: ignore[arg-type]  # one of the three


def main(kind: str, cases: Path, out: Path) -> None:
    """Writes the results of a case file; of an API that is not there, none."""
    document = json.loads(cases.read_text("utf-8"))
    known = document["cases"] if document["api"] in WIRE_APIS else []
    results = {case["name"]: trio.run(run_case, kind, case) for case in known}
    out.write_text(json.dumps({"results": results}), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
