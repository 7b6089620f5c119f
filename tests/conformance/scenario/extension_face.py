"""The extension face as the runner uses it: every call on an api or a context that an action makes is in this file."""

from collections.abc import Mapping
from typing import Any

from tests.conformance.scenario.host_face import call
from tests.conformance.scenario.stage import Place
from tests.conformance.scenario.wire_paths import snaked

Action = Mapping[str, Any]


async def send_message(place: Place, action: Action) -> None:
    """`send_message`; returns without waiting."""
    await call(place.api, "send_message", snaked(action["message"]), **snaked(action.get("options") or {}))


async def send_user_message(place: Place, action: Action) -> None:
    """`send_user_message`; in the recorded runs its `input` handlers are called before a tool's next action."""
    await call(place.api, "send_user_message", snaked(action["content"]), **snaked(action.get("options") or {}))
    if place.tool is not None:
        await place.stage.seat.cell.parts.host.give_way()


async def append_entry(place: Place, action: Action) -> None:
    """`append_entry`; data that is not there is not null."""
    data = [action["data"]] if "data" in action else []
    await call(place.api, "append_entry", action["customType"], *data)


async def set_label(place: Place, action: Action) -> None:
    """`set_label`; raises for an unknown entry."""
    await call(place.api, "set_label", action["entry"], action.get("label"))


async def set_session_name(place: Place, action: Action) -> None:
    """`set_session_name`."""
    await call(place.api, "set_session_name", action["name"])


async def set_active_tools(place: Place, action: Action) -> None:
    """`set_active_tools`."""
    await call(place.api, "set_active_tools", tuple(action["tools"]))


async def set_model(place: Place, reference: str) -> bool:
    """`set_model`; whether the model could be selected."""
    done: bool = await call(place.api, "set_model", place.stage.models.get(reference, reference))
    return done


async def set_thinking_level(place: Place, action: Action) -> None:
    """`set_thinking_level`."""
    await call(place.api, "set_thinking_level", action["level"])


async def bus_emit(place: Place, action: Action) -> None:
    """`events.emit`: listeners are called before it returns."""
    place.api.events.emit(action["channel"], action.get("data"))


async def abort(place: Place, _action: Action) -> None:
    """`ctx.abort()`: asks and returns at once."""
    await call(place.context, "abort")


async def compact(place: Place, action: Action) -> None:
    """`ctx.compact()`: asks and returns at once."""
    await call(place.context, "compact", custom_instructions=action.get("instructions"))


async def wait_for_idle(place: Place, _action: Action) -> None:
    """`ctx.wait_for_idle()`; commands only."""
    await call(place.context, "wait_for_idle")
