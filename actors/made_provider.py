"""A provider object from parts: models, and functions that ask them (PRV-16)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from camshaft.actors.config_provider import StreamSimple, streamed
from camshaft.actors.misuse import ExtensionMisuse, require_callable
from camshaft.actors.providers import Emit, ModelRequest
from camshaft.kernel import shapes
from camshaft.kernel.models import Model
from camshaft.kernel.stream import Ended
from camshaft.kernel.tools import Signal

OtherApi = Callable[..., Any]
"""`generate_images(request)` or `classify(request)`."""


@shapes.frozen(kw_only=True, eq=False)
class MadeProvider:
    """What `make_provider` gives."""

    name: str
    models: tuple[Model, ...]
    display_name: str | None = None
    _apis: StreamSimple | Mapping[str, StreamSimple] | None = attrs.field(repr=False)
    _images: Mapping[str, OtherApi] = attrs.field(repr=False)
    _classifiers: Mapping[str, OtherApi] = attrs.field(repr=False)
    _is_configured: Callable[[], bool] = attrs.field(repr=False)

    @property
    def api(self) -> str:
        """That of its first model; empty without models."""
        return self.models[0].api if self.models else ""

    def configured(self) -> bool:
        """As the given function says."""
        return bool(self._is_configured())

    async def stream(self, request: ModelRequest, signal: Signal, emit: Emit) -> None:
        """The answer of the implementation of the model's API."""
        known = self._apis
        function = known.get(request.model.api) if isinstance(known, Mapping) else known
        if function is None:
            await emit(Ended("error", f'Provider {self.name} has no API implementation for "{request.model.api}"'))
            return
        await streamed(function, request, signal, emit)

    def other_apis(self, kind: str, api: str) -> OtherApi | None:
        """Who asks an image or classifier model of that api."""
        return (self._images if kind == "image" else self._classifiers).get(api)


def make_provider(  # noqa: PLR0913  # the parts of PRV-16, all by name
    *,
    id: str,
    models: Sequence[Model],
    api: StreamSimple | Mapping[str, StreamSimple] | None = None,
    images: Mapping[str, OtherApi] | None = None,
    classifiers: Mapping[str, OtherApi] | None = None,
    name: str | None = None,
    configured: Callable[[], bool] = lambda: True,
) -> MadeProvider:
    """A provider to register. `api`: one `stream_simple(request, signal)` for all chat models, or one by API id.

    `images` and `classifiers` are by API id. Raises ExtensionMisuse if nothing can be asked, or a part is no function.
    """
    if api is None and not images and not classifiers:
        raise ExtensionMisuse(f'Provider {id}: at least one of "api", "images", or "classifiers" is required.')
    parts = {"api": api if isinstance(api, Mapping) else {} if api is None else {"": api}, "images": images, "classifiers": classifiers}
    for part, functions in parts.items():
        for each, function in (functions or {}).items():
            require_callable(function, f"{part}{f'[{each!r}]' if each else ''} of provider {id!r}")
    require_callable(configured, f"configured of provider {id!r}")
    own = tuple([attrs.evolve(model, provider=id) for model in models])
    return MadeProvider(
        name=id, models=own, display_name=name, apis=api, images=images or {}, classifiers=classifiers or {}, is_configured=configured
    )
