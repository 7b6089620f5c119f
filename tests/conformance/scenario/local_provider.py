"""The provider of `http` scenarios: our chat-completions adapter, pointed at the local model server."""

from typing import Final

from camshaft.actors.api import RequestOptions
from camshaft.actors.ports.http import RealHttp
from camshaft.extensions_std.providers.credentials import Auth
from camshaft.extensions_std.providers.wire_apis import WIRE_APIS
from camshaft.extensions_std.providers.wire_provider import WireProvider
from camshaft.kernel.models import Model
from camshaft.kernel.persistent import FrozenDict
from tests.conformance.scenario.provider import models_of
from tests.conformance.scenario.stage import Stage

NAME: Final = "local"
API: Final = "openai-completions"
KEY: Final = "test-key"

COMPAT: Final = FrozenDict(
    {
        "supportsDeveloperRole": False,
        "supportsStore": False,
        "supportsReasoningEffort": False,
        "maxTokensField": "max_tokens",
    }
)
"""What the local server understands (README.md section 2.3)."""


def provider_of(stage: Stage) -> WireProvider:
    """The adapter with the scenario's models. Retries are left to the loop."""
    base_url = f"http://127.0.0.1:{stage.port}/v1"
    models = models_of(stage.scenario, provider=NAME, api=API, base_url=base_url, compat=COMPAT)
    return WireProvider(apis=WIRE_APIS, name=NAME, models=models, http=RealHttp(), resolve=_resolve)


async def _resolve(_model: Model, _options: RequestOptions) -> Auth:
    return Auth(api_key=KEY)
