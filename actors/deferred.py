"""Answers that a provider gives later: fetching and cancelling them (STR-40, STR-41, MSG-28 to MSG-31).

A handle stands in a stored message and is enough, also in another process. Nothing here is done by itself: whether and when
a handle is fetched is for a host or an extension to say, and the answer belongs to whoever fetched it; nothing is
stored, nobody is shown anything, and no provider hook fires (WIRE-101).
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from camshaft.actors.actor import Failure, Value
from camshaft.actors.answers import Kept, final_message
from camshaft.actors.config_provider import ConfigProvider
from camshaft.actors.errors import CommandRefused
from camshaft.actors.model_asks import ModelFailed
from camshaft.actors.providers import DeferringProvider, ModelRequest, Provider
from camshaft.actors.seat_parts import SeatParts, no_key_text
from camshaft.actors.signal import AbortSignal, followed
from camshaft.actors.virtual_models import VirtualProvider, physical_model
from camshaft.kernel import shapes
from camshaft.kernel.messages import AssistantMessage
from camshaft.kernel.models import Model
from camshaft.kernel.persistent import FrozenDict, freeze
from camshaft.kernel.stream import Ended, begin, finish
from camshaft.kernel.tools import Signal

_NAMES: Final = ("provider", "modelId", "id")
"""What a handle has to say."""


class DeferredUnsupported(CommandRefused):
    """A provider cannot give answers later (MSG-31)."""

    def __init__(self, provider: str) -> None:
        super().__init__(f"Provider {provider} does not support deferred responses")


def deferring(provider: Provider | None, model: Model) -> DeferringProvider | None:
    """Who gives the later answers of `model` behind a provider; None if nobody can."""
    if isinstance(provider, VirtualProvider):
        provider = provider.physical
    if isinstance(provider, ConfigProvider):
        provider = provider.adapter_of(model)
    able: Any = provider
    return able if all([callable(getattr(able, name, None)) for name in ("fetch_deferred", "cancel_deferred")]) else None


@shapes.frozen(kw_only=True)
class _Deferred:
    """A handle, and whose it is."""

    handle: FrozenDict
    model: Model
    """The catalogue's record; made of the handle if the catalogue has none any more."""
    provider: Provider | None


async def fetch_deferred(parts: SeatParts, handle: Mapping[str, Any], wait_ms: int, asked: Signal | None) -> AssistantMessage:
    """What the handle stands for: again a message with the handle as long as that is pending, else the answer.

    `wait_ms` is how long the provider may wait for it; 0 looks once. Like an answer that is streamed it never raises for
    what the provider does: then it is a message with the stop reason `error`, or `aborted` if `asked` was set.
    Raises CommandRefused for what is no handle.
    """
    if isinstance(wait_ms, bool) or not isinstance(wait_ms, int) or wait_ms < 0:
        raise CommandRefused(f"wait_ms {wait_ms!r}; expected a number of milliseconds, 0 or more")
    deferred = _read(parts, handle)
    partial_message = begin(deferred.model.api, deferred.model.provider, deferred.model.id, parts.session.now_ms())
    able = deferring(deferred.provider, deferred.model)
    if able is None:
        return finish(partial_message, Ended("error", str(DeferredUnsupported(deferred.model.provider))))
    if deferred.provider is not None and not deferred.provider.configured():
        return finish(partial_message, Ended("error", no_key_text(deferred.model)))
    request = ModelRequest(model=deferred.model, thinking_level="off", messages=())
    kept = Kept(partial_message, parts.host)
    async with followed(asked, parts.ground.limits.abort_grace_s) as signal:
        call = partial(able.fetch_deferred, request, deferred.handle, signal, kept.emit, wait_ms=wait_ms)
        outcome = await _run(parts, f"fetching a deferred answer of {deferred.model.reference}", call, signal)
        kept.is_closed = True
        return final_message(kept.partial, outcome, aborted=signal.cancelled)


async def cancel_deferred(parts: SeatParts, handle: Mapping[str, Any]) -> None:
    """Asks the provider not to make the answer any more; whether it still does is up to it.

    Raises CommandRefused for what is no handle, DeferredUnsupported, and ModelFailed if the provider failed.
    """
    deferred = _read(parts, handle)
    able = deferring(deferred.provider, deferred.model)
    if able is None:
        raise DeferredUnsupported(deferred.model.provider)
    signal = AbortSignal(parts.ground.limits.abort_grace_s)
    call = partial(able.cancel_deferred, deferred.model, deferred.handle)
    outcome = await _run(parts, f"cancelling a deferred answer of {deferred.model.reference}", call, signal)
    if not isinstance(outcome, Value):
        raise ModelFailed(outcome.text if isinstance(outcome, Failure) else "the provider did not end")


async def _run(parts: SeatParts, name: str, call: Callable[[], Any], signal: AbortSignal) -> Any:
    with signal.bounded() as bounds:
        return await parts.limbo.run(name, call, bounds=bounds)


def _read(parts: SeatParts, handle: Mapping[str, Any]) -> _Deferred:
    texts = [handle.get(name) if isinstance(handle, Mapping) else None for name in _NAMES]
    if not all([isinstance(text, str) for text in texts]):
        raise CommandRefused(f"handle {handle!r}; expected the `deferred` of a message, with {', '.join(_NAMES)}")
    frozen: FrozenDict = freeze(handle, "handle")
    name, model_id, api = frozen["provider"], frozen["modelId"], frozen.get("api")
    known = physical_model(parts.providers, name, model_id)
    model = known or Model(id=model_id, provider=name, api=api if isinstance(api, str) else "")
    return _Deferred(handle=frozen, model=model, provider=next((each for each in parts.providers if each.name == name), None))
