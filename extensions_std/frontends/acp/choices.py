"""What of a session a person may choose in the client, or call: model, thinking level, commands."""

from typing import Any, Final

from camshaft.actors.host import CommandRefused, Seat, UnknownModel, supported_levels
from camshaft.extensions_std.frontends.acp.records import AUTH_REQUIRED, INVALID_PARAMS, RpcError

MODEL: Final = "model"
LEVEL: Final = "thinking"
"""Ids of the options."""


def options_of(seat: Seat) -> list[dict[str, Any]]:
    """The options with their values of now; those with credentials, and the model in use."""
    model = seat.model
    if model is None:
        return []
    models = list(seat.model_registry.get_available())
    if model.reference not in [each.reference for each in models]:
        models.insert(0, model)
    named = [{"value": each.reference, "name": each.name or each.id, "description": each.reference} for each in models]
    levels = list(supported_levels(model))
    if seat.thinking_level not in levels:
        levels.insert(0, seat.thinking_level)
    return [
        _select(MODEL, "Model", "model", model.reference, named),
        _select(LEVEL, "Thinking", "thought_level", seat.thinking_level, [{"value": level, "name": level} for level in levels]),
    ]


async def choose(seat: Seat, id: str, value: str) -> None:
    """Uses another value. Raises RpcError."""
    known = {each["id"]: [option["value"] for option in each["options"]] for each in options_of(seat)}
    if id not in known:
        raise RpcError(INVALID_PARAMS, f"configId: there is no {id!r}; there are {', '.join(known) or 'none'}")
    if value not in known[id]:
        raise RpcError(INVALID_PARAMS, f"value: {id} cannot be {value!r}")
    try:
        if id == LEVEL:
            seat.set_thinking_level(value)
        elif not await seat.set_model(value):
            raise RpcError(AUTH_REQUIRED, f"{value} has no credentials")
    except (UnknownModel, CommandRefused) as error:
        raise RpcError(INVALID_PARAMS, str(error)) from None


def commands_of(seat: Seat) -> list[dict[str, Any]]:
    """What can be called as `/name`."""
    return [{"name": each.name, "description": each.description or each.name, "input": {"hint": "arguments"}} for each in seat.commands()]


def _select(id: str, name: str, category: str, current: str, options: list[dict[str, Any]]) -> dict[str, Any]:
    return {"id": id, "name": name, "category": category, "type": "select", "currentValue": current, "options": options}
