"""Lets extension handlers watch and change the requests of the loop (WIRE-101 to WIRE-109)."""

from collections.abc import Mapping

from camshaft.actors.extension_host import ExtensionHost
from camshaft.actors.providers import RequestHooks
from camshaft.kernel import shapes
from camshaft.kernel.hook_events import AfterProviderResponseEvent, ProviderStreamEvent
from camshaft.kernel.models import Model
from camshaft.kernel.persistent import FrozenDict, Json, freeze


def request_hooks(host: ExtensionHost, model: Model) -> RequestHooks:
    """The hooks of one request; those nobody handles are absent, so that nothing is built for them (EVT-9)."""
    calls = _Calls(host, model)
    return RequestHooks(
        on_headers=calls.headers if host.has("before_provider_headers") else None,
        on_payload=calls.payload if host.has("before_provider_request") else None,
        on_response=calls.response if host.has("after_provider_response") else None,
        on_stream_event=calls.stream_event if host.has("provider_stream_event") else None,
    )


def summary_hooks(host: ExtensionHost, model: Model) -> RequestHooks:
    """The hooks of a summary request: its headers only (WIRE-101)."""
    return RequestHooks(on_headers=_Calls(host, model).headers if host.has("before_provider_headers") else None)


@shapes.frozen(eq=False)
class _Calls:
    """The dispatches behind the hooks."""

    _host: ExtensionHost
    _model: Model

    async def headers(self, headers: FrozenDict) -> FrozenDict:
        """The request's own headers after all handlers."""
        after: FrozenDict = await self._host.dispatch("before_provider_headers", headers)
        return after

    async def payload(self, payload: Json) -> Json:
        """The body after all handlers."""
        return await self._host.dispatch("before_provider_request", freeze(payload, "payload"))

    async def response(self, status: int, headers: Mapping[str, str]) -> None:
        """Tells handlers of a response."""
        event = AfterProviderResponseEvent(status=status, headers=FrozenDict(headers))
        await self._host.dispatch("after_provider_response", event)

    async def stream_event(self, data: Json) -> None:
        """Tells handlers of one event of the provider."""
        model = self._model
        event = ProviderStreamEvent(provider=model.provider, api=model.api, model=model.id, data=freeze(data, "data"))
        await self._host.dispatch("provider_stream_event", event)
