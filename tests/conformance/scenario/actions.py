"""Actions: what handlers, commands, listeners, tools, replies and triggers of a scenario do (README.md section 3.1).

`perform` runs a list in order. A composed result ends the list, an exception travels on; the
host's isolation of foreign code does the rest, as for any extension.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import attrs
import trio

from tests.conformance.scenario import extension_face, host_face, message_ops
from tests.conformance.scenario.briefs import text
from tests.conformance.scenario.queries import ask
from tests.conformance.scenario.stage import Place, ToolCallPlace
from tests.conformance.scenario.starting import Starter
from tests.conformance.scenario.templates import resolve
from tests.conformance.scenario.wire_paths import delete, get, put, snaked, wire

Action = Mapping[str, Any]


@attrs.frozen
class Returned:
    """The list ended with this value."""

    value: Any


class ScriptedFailure(Exception):
    """What `raise` raises; the text is the scenario's."""


async def perform(place: Place, actions: Sequence[Action]) -> Returned | None:
    """Runs actions in order until one returns. Raises what an action raises."""
    for action in actions:
        outcome = await _act(place, action)
        if outcome is not None:
            return outcome
    return None


async def _act(place: Place, action: Action) -> Returned | None:
    row = ACTIONS.get(action["do"])
    if row is None:
        raise ValueError(f"unknown action {action['do']!r}; known are {', '.join(ACTIONS)}")
    nested = {"actions": action["actions"]} if "actions" in action else {}
    plain = {key: value for key, value in action.items() if key != "actions"}
    return await row(place, {**resolve(plain, place.sources()), **nested})


# -- anywhere ----------------------------------------------------------------------------


async def _log(place: Place, action: Action) -> None:
    got = ask(place, action["get"]) if "get" in action else None
    fields = {"value": action["value"]} if "value" in action else {}
    place.stage.recorder.record({**place.head, "note": action["note"], **fields, **({} if got is None else {"got": got})})


async def _sleep(_place: Place, action: Action) -> None:
    await trio.sleep(action["ms"] / 1000)


async def _signal(place: Place, action: Action) -> None:
    place.stage.gate(action["name"]).set()


async def _wait(place: Place, action: Action) -> None:
    await place.stage.gate(action["name"]).wait()


async def _raise(_place: Place, action: Action) -> None:
    raise ScriptedFailure(action["message"])


async def _return(place: Place, action: Action) -> Returned:
    value = action.get("value")
    return Returned(tool_result(value) if place.tool is not None else snaked(value))


def tool_result(value: Any) -> Any:
    """A tool result as a tool of ours returns it; `text` is short for one text block."""
    if not isinstance(value, Mapping):
        return value
    value = dict(value)
    if "text" in value:
        value["content"] = [{"type": "text", "text": value.pop("text")}]
    return snaked(value)


# -- edits and results of handlers -------------------------------------------------------


async def _set(place: Place, action: Action) -> None:
    put(place.event, action["path"], _native(action["path"], action["value"]))


async def _delete(place: Place, action: Action) -> None:
    delete(place.event, action["path"])


async def _push(place: Place, action: Action) -> None:
    get(place.event, action["path"]).append(_native(action["path"], action["value"]))


async def _remove_at(place: Place, action: Action) -> None:
    del get(place.event, action["path"])[action["index"]]


def _native(path: str, value: Any) -> Any:
    """A value for an edit: what goes into a tool's input keeps its names."""
    return value if path.split(".")[0] == "input" else snaked(value)


async def _return_messages(place: Place, action: Action) -> Returned:
    return Returned({"messages": message_ops.returned(place.event.messages, action["ops"])})


async def _mutate_messages(place: Place, action: Action) -> None:
    message_ops.edit(place.event.messages, action["ops"])


async def _replace_message(place: Place, action: Action) -> Returned:
    message = {**wire(place.event.message), **action.get("patch", {})}
    more = action.get("appendText")
    if more is not None and isinstance(message["content"], str):
        message["content"] += more
    elif more is not None:
        blocks = message["content"] or ()
        message["content"] = [{**block, "text": block["text"] + more} if block["type"] == "text" else block for block in blocks]
    return Returned({"message": snaked(message)})


async def _drafts(place: Place, action: Action) -> Returned:
    before = () if action.get("mode") == "replace" else tuple(place.event.entries)
    own = action.get("entries") or ()
    entries = (*before, *snaked(own)) if isinstance(own, (list, tuple)) else own
    asked = {"continue_": action["continue"]} if "continue" in action else {}
    return Returned({"entries": entries, **asked})


async def _continue(_place: Place, action: Action) -> Returned:
    return Returned({"continue_": action.get("value", True)})


# -- calls of the extension face ---------------------------------------------------------


async def _set_model(place: Place, action: Action) -> None:
    done = await extension_face.set_model(place, action["model"])
    place.stage.recorder.record({**place.head, "note": "setModel", "value": done})


async def _on(place: Place, action: Action) -> None:
    unsubscribe = place.builder.subscribe(action["event"], action["actions"])
    place.builder.subscriptions[action.get("as")] = unsubscribe


async def _off(place: Place, action: Action) -> None:
    place.builder.subscriptions[action["as"]]()


async def _register_tool(place: Place, action: Action) -> None:
    place.builder.register_tool(action["tool"])


# -- in a tool ---------------------------------------------------------------------------


def _tool(place: Place) -> ToolCallPlace:
    if place.tool is None:
        raise ValueError("this action runs in the body of a tool only")
    return place.tool


async def _update(place: Place, action: Action) -> None:
    details = {"details": action["details"]} if "details" in action else {}
    content = [{"type": "text", "text": action["text"]}] if "text" in action else None
    _tool(place).on_update({"content": content, **details})


async def _wait_abort(place: Place, _action: Action) -> None:
    await _tool(place).signal.wait()
    place.record(at="aborted")


async def _nested(place: Place, action: Action) -> None:
    """Nested calls; parallel ones are issued in list order, because a started task runs up to its first wait."""
    calls = action.get("parallel") or [action] * action.get("times", 1)
    results: list[Any] = [None] * len(calls)

    async def issue(index: int, *, task_status: Starter = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        results[index] = await _call_tool(place, calls[index], action)

    if "parallel" in action:
        async with trio.open_nursery() as nursery:
            for index in range(len(calls)):
                await nursery.start(issue, index)
    else:
        for index in range(len(calls)):
            await issue(index)
    if not action.get("quiet"):
        place.record(at="nested", results=results)


async def _call_tool(place: Place, call: Action, action: Action) -> dict[str, Any]:
    def show(partial: Any) -> None:
        place.record(at="nestedUpdate", text=text(wire(get(partial, "content"))))

    watch = show if call.get("onUpdate", action.get("onUpdate")) else None
    outcome = await place.context.execute_tool(call["name"], call.get("args", {}), on_update=watch)
    result = wire(outcome.result)
    shown = {
        "structuredContent": result.get("structuredContent"),
        "terminate": result.get("terminate"),
    }
    present = {key: value for key, value in shown.items() if value is not None}
    return {"id": outcome.tool_call.id, "isError": outcome.is_error, "text": text(result.get("content")), **present}


# -- calls of the host -------------------------------------------------------------------


def _queueing(name: str, note: str) -> Callable[[Place, Action], Awaitable[None]]:
    async def queue(place: Place, action: Action) -> None:
        disposition = await host_face.call(place.stage.seat, name, action["text"])
        if action.get("logResult"):
            place.record(note=note, value=disposition)

    return queue


async def _host_prompt(place: Place, action: Action) -> None:
    try:
        await host_face.prompt(place.stage.seat, action)
    except Exception as error:  # noqa: BLE001  the scenario asks for the text of whatever was refused
        place.record(note="prompt:error", value=str(error))


async def _host_navigate(place: Place, action: Action) -> None:
    try:
        await host_face.navigate(place.stage.seat, action["target"], action.get("options"))
    except Exception as error:  # noqa: BLE001  the scenario asks for the text of whatever was refused
        place.record(note="navigate:error", value=str(error))


async def _host_abort(place: Place, _action: Action) -> None:
    """Not awaited to its end: it has asked for the abort when this returns."""
    place.stage.seat.request_abort()


async def _clear_queue(place: Place, _action: Action) -> None:
    place.record(note="clearQueue", value=await host_face.clear_queue(place.stage.seat))


async def _record_bash(place: Place, action: Action) -> None:
    await host_face.record_bash(place.stage.seat, action)


async def _set_steering_mode(place: Place, action: Action) -> None:
    await host_face.set_steering_mode(place.stage.seat, action["mode"])


ACTIONS: Final[Mapping[str, Callable[[Place, Action], Awaitable[Returned | None]]]] = {
    "log": _log,
    "sleep": _sleep,
    "signal": _signal,
    "wait": _wait,
    "raise": _raise,
    "return": _return,
    "set": _set,
    "delete": _delete,
    "push": _push,
    "removeAt": _remove_at,
    "returnMessages": _return_messages,
    "mutateMessages": _mutate_messages,
    "replaceMessage": _replace_message,
    "drafts": _drafts,
    "continue": _continue,
    "sendMessage": extension_face.send_message,
    "sendUserMessage": extension_face.send_user_message,
    "appendEntry": extension_face.append_entry,
    "setLabel": extension_face.set_label,
    "setSessionName": extension_face.set_session_name,
    "setActiveTools": extension_face.set_active_tools,
    "registerTool": _register_tool,
    "setModel": _set_model,
    "setThinkingLevel": extension_face.set_thinking_level,
    "busEmit": extension_face.bus_emit,
    "abort": extension_face.abort,
    "compact": extension_face.compact,
    "waitForIdle": extension_face.wait_for_idle,
    "on": _on,
    "off": _off,
    "update": _update,
    "waitAbort": _wait_abort,
    "nested": _nested,
    "steer": _queueing("steer", "steer"),
    "followUp": _queueing("follow_up", "followUp"),
    "hostPrompt": _host_prompt,
    "hostAbort": _host_abort,
    "hostNavigate": _host_navigate,
    "clearQueue": _clear_queue,
    "recordBash": _record_bash,
    "setSteeringMode": _set_steering_mode,
}
"""Every action by its name."""
