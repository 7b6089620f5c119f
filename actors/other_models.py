"""Models that are no chat: images and classifiers (STR-43).

Nothing here speaks a wire API. A provider object may have `generate_images(request)` and `classify(request)`, a config
`images` and `classifiers`, functions of the same kind by API id. Each gets an `OtherRequest` and gives an `ImagesResult` or a
`ClassifierResult`, or a dict of its fields. Whatever fails is the result's stop reason and error text; nothing is raised.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from camshaft.actors.actor import Failure, Value
from camshaft.actors.providers import Provider, provider_of
from camshaft.actors.registry_asks import STOPS, ClassifierResult, ImagesResult, OtherRequest
from camshaft.actors.seat_parts import SeatParts
from camshaft.actors.signal import AbortSignal, followed
from camshaft.actors.virtual_models import VirtualProvider
from camshaft.kernel import shapes
from camshaft.kernel.models import Model
from camshaft.kernel.persistent import freeze
from camshaft.kernel.tools import Signal

Asked = tuple[object, Mapping[str, Any], Signal | None]
"""Input, options and the signal that ends it."""


async def generate_images(parts: SeatParts, model: Model, asked: Asked) -> ImagesResult:
    """The images, or why there are none; never raises."""
    kind = _Kind("image", "an image model", "generate_images", ImagesResult, "output")
    result: ImagesResult = await _asked(kind, parts, model, asked)
    return result


async def classify(parts: SeatParts, model: Model, asked: Asked) -> ClassifierResult:
    """The answers, or why there are none; never raises."""
    kind = _Kind("classifier", "a classifier model", "classify", ClassifierResult, "answers")
    result: ClassifierResult = await _asked(kind, parts, model, asked)
    return result


@shapes.frozen
class _Kind:
    type: str
    words: str
    member: str
    """Of a provider object."""
    result: Any
    content: str
    """Of a result."""


async def _asked(kind: _Kind, parts: SeatParts, model: Model, asked: Asked) -> Any:
    input, options, wanted = asked
    made = partial(kind.result, api=model.api, provider=model.provider, model=model.id, timestamp=parts.session.now_ms())
    provider = provider_of(parts.providers, model)
    if model.type != kind.type:
        return made(stop_reason="error", error_message=f"Model {model.reference} is not {kind.words}")
    if provider is None:
        return made(stop_reason="error", error_message=f"Unknown provider: {model.provider}")
    able = _able(provider, kind, model)
    if able is None:
        return made(stop_reason="error", error_message=f"No API provider registered for api: {model.api}")
    if not provider.configured():
        return made(stop_reason="error", error_message=f"Provider is not configured: {model.provider}")
    try:
        given, more = freeze(input, "input"), freeze(dict(options), "options")
    except (TypeError, ValueError) as error:
        return made(stop_reason="error", error_message=str(error))
    async with followed(wanted, parts.ground.limits.abort_grace_s) as signal:
        request = OtherRequest(model=model, input=given, signal=signal, options=more)
        outcome = await _run(parts, f"{kind.member} of {model.reference}", able, request, signal)
        if signal.cancelled:
            return made(stop_reason="aborted", error_message="Request was aborted")
    if not isinstance(outcome, Value):
        return made(stop_reason="error", error_message=outcome.text if isinstance(outcome, Failure) else "the provider did not end")
    try:
        return _read(kind, made, outcome.value)
    except (TypeError, ValueError) as error:
        return made(stop_reason="error", error_message=f"Provider {model.provider}: {kind.member} {error}")


async def _run(parts: SeatParts, name: str, able: Any, request: OtherRequest, signal: AbortSignal) -> Any:
    with signal.bounded() as bounds:
        return await parts.limbo.run(name, able, request, bounds=bounds)


def _able(provider: Provider, kind: _Kind, model: Model) -> Any:
    """Who can, behind a provider; None if nobody."""
    if isinstance(provider, VirtualProvider):
        return None if provider.physical is None else _able(provider.physical, kind, model)
    of_config: Any = getattr(provider, "other_apis", None)
    if of_config is not None:
        return of_config(kind.type, model.api)
    able = getattr(provider, kind.member, None)
    return able if callable(able) else None


def _read(kind: _Kind, made: Any, given: object) -> Any:
    """What an implementation gave. Raises TypeError, ValueError."""
    fields = given if isinstance(given, Mapping) else None
    if isinstance(given, kind.result):
        fields = {each.name: getattr(given, each.name) for each in attrs.fields(kind.result)}
    if fields is None:
        raise TypeError(f"gave {type(given).__name__}; expected {kind.result.__name__}, or a dict of its fields")
    content = fields.get(kind.content)
    stop = fields.get("stop_reason", "stop")
    wanted: Any = Sequence if kind.content == "output" else Mapping
    if stop not in STOPS:
        raise ValueError(f"gave the stop reason {stop!r}; expected one of {', '.join(STOPS)}")
    if stop == "stop" and (isinstance(content, str) or not isinstance(content, wanted)):
        raise TypeError(f"gave {kind.content} {type(content).__name__}; expected {'a list' if wanted is Sequence else 'an object'}")
    known = {name: fields.get(name) for name in ("response_id", "error_message") if isinstance(fields.get(name), str | None)}
    if stop != "stop" and not known.get("error_message"):
        known["error_message"] = "the provider gave no reason"
    if content is not None:
        frozen = freeze(content, kind.content)
        known[kind.content] = tuple(frozen) if kind.content == "output" else frozen
    return made(stop_reason=stop, usage=freeze(fields.get("usage"), "usage"), **known)
