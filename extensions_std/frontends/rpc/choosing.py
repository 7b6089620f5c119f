"""Commands about models, thinking levels, queue modes and toggles (RPC-39 to RPC-43)."""

from camshaft.actors.host import CommandRefused, supported_levels
from camshaft.extensions_std.frontends.rpc.acting import Acting
from camshaft.extensions_std.frontends.rpc.records import NOTHING
from camshaft.extensions_std.frontends.rpc.requests import (
    NoFields,
    SetEnabledRequest,
    SetLevelRequest,
    SetModelRequest,
    SetModeRequest,
)
from camshaft.extensions_std.frontends.rpc.state_records import model_record


async def set_model(acting: Acting, request: SetModelRequest) -> object:
    """Among those with credentials; the defaults of new sessions stay (RPC-39)."""
    named = (request.provider, request.model_id)
    for provider in acting.seat.providers:
        for model in provider.models if provider.configured() else ():
            if (model.provider, model.id) == named:
                await acting.seat.set_model(model)
                return model_record(model)
    raise CommandRefused(f"Model not found: {request.provider}/{request.model_id}")


async def cycle_model(acting: Acting, _request: NoFields) -> object:
    """Null if there is no other (RPC-40)."""
    cycled = await acting.seat.cycle_model()
    if cycled is None:
        return None
    return {"model": model_record(cycled.model), "thinkingLevel": cycled.thinking_level, "isScoped": cycled.is_scoped}


async def get_available_models(acting: Acting, _request: NoFields) -> object:
    """Those with credentials."""
    usable = [model for provider in acting.seat.providers if provider.configured() for model in provider.models]
    return {"models": [model_record(model) for model in usable]}


async def set_thinking_level(acting: Acting, request: SetLevelRequest) -> object:
    """Clamped to the model (RPC-41)."""
    acting.seat.set_thinking_level(request.level)
    return NOTHING


async def cycle_thinking_level(acting: Acting, _request: NoFields) -> object:
    """Null for a model that does not reason (RPC-42)."""
    level = acting.seat.cycle_thinking_level()
    return None if level is None else {"level": level}


async def get_available_thinking_levels(acting: Acting, _request: NoFields) -> object:
    """Those of the model."""
    model = acting.seat.model
    return {"levels": ["off"] if model is None else list(supported_levels(model))}


async def set_steering_mode(acting: Acting, request: SetModeRequest) -> object:
    """At once, and for sessions to come."""
    acting.seat.set_queue_mode("steer", request.mode)
    await acting.keep(("steeringMode",), request.mode)
    return NOTHING


async def set_follow_up_mode(acting: Acting, request: SetModeRequest) -> object:
    """As `set_steering_mode`."""
    acting.seat.set_queue_mode("followUp", request.mode)
    await acting.keep(("followUpMode",), request.mode)
    return NOTHING


async def set_auto_compaction(acting: Acting, request: SetEnabledRequest) -> object:
    """As `set_steering_mode`."""
    acting.seat.set_auto_compaction(request.enabled)
    await acting.keep(("compaction", "enabled"), request.enabled)
    return NOTHING


async def set_auto_retry(acting: Acting, request: SetEnabledRequest) -> object:
    """As `set_steering_mode`."""
    acting.seat.set_auto_retry(request.enabled)
    await acting.keep(("retry", "enabled"), request.enabled)
    return NOTHING
