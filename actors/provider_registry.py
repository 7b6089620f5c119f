"""Who serves the models: the host's providers, and what extensions registered over them (PRV-1 to PRV-20, VM-1 to VM-4).

Theory of operation. A registry belongs to one generation of extensions and starts from the host's
providers, so that a reload withdraws everything at once and a new generation takes over in one step
(PRV-19). While factories run, registrations wait; when all have run they are applied in order, those
of extensions that failed are gone, and what cannot be is reported (PRV-2, PRV-3). Afterwards they
are applied at once and raise to their caller. Either way a registration that fails changes nothing.

What is served is a list that is computed from two tables, by provider id: an object or a config over
the host's provider of that id, and virtual models beside its models.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from camshaft.actors.actor import Failure, guard_now
from camshaft.actors.config_provider import BuildProvider, ProviderConfig, configured_provider, merged_config
from camshaft.actors.misuse import ExtensionMisuse
from camshaft.actors.overlaid_provider import OverlaidProvider, Overlay
from camshaft.actors.provider_refresh import Refreshable, Refreshes, RefreshResult, RefreshStore
from camshaft.actors.providers import Provider
from camshaft.actors.registrations import Extension
from camshaft.actors.virtual_models import VirtualModel, VirtualProvider, catalogue_entry
from camshaft.kernel import shapes
from camshaft.kernel.models import Model

_MEMBERS: Final = ("name", "models", "configured", "stream")


@shapes.frozen
class _Waiting:
    """A registration made while factories run."""

    extension: Extension
    event: str
    """Of its report."""
    provider: str
    apply: Callable[[], None]


@shapes.define(eq=False)
class ProviderRegistry:
    """The providers of one generation."""

    _base: tuple[Provider, ...] = ()
    _build: BuildProvider | None = None
    """The host's way from a config to an adapter; None: it has none."""
    _overlay: Overlay | None = None
    _changed: Callable[[], None] = attrs.field(default=lambda: None)
    """Called after each change that was applied at once."""
    _objects: dict[str, Provider] = attrs.field(factory=dict)
    _configs: dict[str, ProviderConfig] = attrs.field(factory=dict)
    _virtual: dict[tuple[str, str], tuple[Extension, VirtualModel]] = attrs.field(factory=dict)
    _waiting: list[_Waiting] | None = attrs.field(factory=list)
    """None once the factories have run."""
    _served: tuple[Provider, ...] | None = None
    _listed: dict[str, tuple[Any, ...]] = attrs.field(factory=dict)
    """Models that a refresh of a config gave, in the place of those of the config (PRV-10)."""
    _refreshes: Refreshes = attrs.field(init=False)
    _failed: list[str] = attrs.field(factory=list)
    """What could not be registered."""
    _stale: dict[str, str] = attrs.field(factory=dict)
    """Provider id to why its last refresh failed."""

    def __attrs_post_init__(self) -> None:
        self._refreshes = Refreshes(self._refresh)

    @property
    def providers(self) -> tuple[Provider, ...]:
        """Who serves models now; the host's come first, in their order."""
        if self._served is None:
            self._served = self._computed()
        return self._served

    @property
    def virtual_models(self) -> tuple[VirtualModel, ...]:
        """In the order of registration."""
        return tuple([definition for _, definition in self._virtual.values()])

    def router(self, provider: str, model_id: str) -> tuple[Extension, VirtualModel] | None:
        """Whose virtual model that is, and the definition; None for an unknown one."""
        return self._virtual.get((provider, model_id))

    @property
    def is_awaited(self) -> bool:
        """Whether something waits for `begin`, so that more will be served than the host brings."""
        return any([not each.extension.failed for each in self._waiting or ()])

    def when_changed(self, changed: Callable[[], None]) -> None:
        """Whom to tell of later changes."""
        self._changed = changed

    # -- what extensions ask -------------------------------------------------------------

    def register(self, extension: Extension, provider: object, config: ProviderConfig | Mapping[str, Any] | None) -> None:
        """A provider object, or the config of one by its id (PRV-1). Raises ExtensionMisuse for what is seen at once."""
        if isinstance(provider, str):
            if config is None:
                raise ExtensionMisuse("Provider config is required when registering by name")
            self._do(extension, "register_provider", provider, lambda: self._register_config(provider, config))
            return
        missing = [each for each in _MEMBERS if not hasattr(provider, each)]
        if missing or isinstance(provider, type):
            raise ExtensionMisuse(f"provider {provider!r} has no {(missing or _MEMBERS)[0]}; expected an object with {', '.join(_MEMBERS)}")
        served: Any = provider
        if not isinstance(served.name, str) or not served.name.strip():
            raise ExtensionMisuse("Provider id must not be empty.")
        self._do(extension, "register_provider", served.name, lambda: self._register_object(served))

    def unregister(self, name: str) -> None:
        """Takes a registration back, also one that waits; the host's provider of that id returns (API-31)."""
        if self._waiting is not None:
            self._waiting = [each for each in self._waiting if each.event != "register_provider" or each.provider != name]
        if name in self._objects or name in self._configs:
            self._objects.pop(name, None)
            self._configs.pop(name, None)
            self._outdate(name)
            self._refresh()

    def register_virtual(self, extension: Extension, definition: VirtualModel) -> None:
        """A virtual model; one of the same provider and id is replaced (VM-1)."""
        if not definition.provider.strip() or not definition.id.strip():
            raise ExtensionMisuse("Virtual model provider and id must not be empty.")
        self._do(extension, "register_virtual_model", definition.provider, lambda: self._register_virtual(extension, definition))

    def unregister_virtual(self, provider: str, model_id: str) -> None:
        """Takes a virtual model back; nothing for an unknown one (API-32)."""
        if self._virtual.pop((provider, model_id), None) is not None:
            self._refresh()

    async def refresh(self, *, allow_network: bool = True, force: bool = False) -> RefreshResult:
        """Asks every provider that can be for its models now (MOD-42); what is served is put together anew, for a login may change it."""
        served = [*self._base_served(), *[each for name, each in self._objects.items() if name not in {base.name for base in self._base}]]
        found = [_object_refreshable(each) for each in served if callable(getattr(each, "refresh_models", None))]
        found += [self._config_refreshable(name, config) for name, config in self._configs.items() if config.refresh_models is not None]
        result = await self._refreshes.run(found, allow_network=allow_network, force=force)
        self._refresh()
        self._stale = {**{name: why for name, why in self._stale.items() if name not in {each.name for each in found}}, **result.errors}
        return result

    @property
    def faults(self) -> tuple[str, ...]:
        """What could not be registered, and which refreshes failed (MOD-41)."""
        return (*self._failed, *[f'Availability refresh: Provider "{name}": {why}' for name, why in self._stale.items()])

    @property
    def can_refresh(self) -> bool:
        """Whether any provider can."""
        objects = [*self._base_served(), *self._objects.values()]
        is_one = any([callable(getattr(each, "refresh_models", None)) for each in objects])
        return is_one or any([config.refresh_models is not None for config in self._configs.values()])

    @property
    def registered_ids(self) -> tuple[str, ...]:
        """Of providers that extensions registered, in either form."""
        return (*self._configs, *self._objects)

    def registered(self, name: str) -> Provider | ProviderConfig | None:
        """What an extension registered under that id; None: nothing."""
        return self._objects.get(name) or self._configs.get(name)

    def end(self) -> None:
        """The generation is over: refreshes that still run count no more."""
        for name in {*[each.name for each in self._base], *self._objects, *self._configs}:
            self._refreshes.outdate(name)

    # -- applying ------------------------------------------------------------------------

    def begin(
        self,
        base: tuple[Provider, ...],
        build: BuildProvider | None,
        report: Callable[[str, str, str], None],
        store: RefreshStore | None = None,
        overlay: Overlay | None = None,
    ) -> tuple[tuple[str, str], ...]:
        """All factories have run: applies what they registered over the host's providers.

        Gives the extensions and texts of what failed, which `report` gets with the event. What refreshes persist goes to `store`;
        `overlay` lies over the models of provider objects (PRV-16).
        """
        self._base, self._build, self._served, self._refreshes.store, self._overlay = base, build, None, store, overlay
        waiting, self._waiting = self._waiting or [], None
        failed = []
        for each in waiting:
            if each.extension.failed:
                continue
            outcome = guard_now(each.apply)
            if isinstance(outcome, Failure):
                failed.append((each.extension.path, outcome.text))
                self._failed.append(f'Provider "{each.provider}": {outcome.text}')
                report(each.extension.path, each.event, outcome.text)
        return tuple(failed)

    def _do(self, extension: Extension, event: str, provider: str, apply: Callable[[], None]) -> None:
        if self._waiting is not None:
            self._waiting.append(_Waiting(extension, event, provider, apply))
            return
        apply()
        self._changed()

    def _register_object(self, provider: Provider) -> None:
        self._configs.pop(provider.name, None)
        self._outdate(provider.name)
        self._objects[provider.name] = provider
        self._served = None

    def _register_config(self, name: str, config: ProviderConfig | Mapping[str, Any]) -> None:
        if not name.strip():
            raise ExtensionMisuse("Provider id must not be empty.")
        merged = merged_config(name, self._configs.get(name), config)
        self._configured(name, merged)  # What cannot be built raises here, and nothing has changed.
        self._objects.pop(name, None)
        self._outdate(name)
        self._configs[name] = merged
        self._served = None

    def _register_virtual(self, extension: Extension, definition: VirtualModel) -> None:
        key = (definition.provider, definition.id)
        physical = [model for provider in self.providers for model in provider.models if not model.is_virtual]
        if key not in self._virtual and any([(model.provider, model.id) == key for model in physical]):
            raise ExtensionMisuse(f"Virtual model {definition.provider}/{definition.id} conflicts with a physical model.")
        self._virtual[key] = (extension, definition)
        self._served = None

    def _refresh(self) -> None:
        self._served = None
        if self._waiting is None:
            self._changed()

    # -- what is served ------------------------------------------------------------------

    def _outdate(self, name: str) -> None:
        self._refreshes.outdate(name)
        self._listed.pop(name, None)

    def _configured(self, name: str, config: ProviderConfig) -> Provider:
        listed = self._listed.get(name)
        known = config if listed is None else attrs.evolve(config, models=listed)
        return configured_provider(name, known, self._base_of(name), self._build)

    def _base_of(self, name: str) -> Provider | None:
        return next((each for each in self._base if each.name == name), None)

    def _base_served(self) -> list[Provider]:
        """The host's own, or an object in its place; a config has its own way to refresh."""
        return [self._objects.get(each.name, each) for each in self._base if each.name not in self._configs]

    def _config_refreshable(self, name: str, config: ProviderConfig) -> Refreshable:
        def accept(given: Sequence[Any]) -> None:
            listed = tuple(given)
            configured_provider(name, attrs.evolve(config, models=listed), self._base_of(name), self._build)
            self._listed[name] = listed

        served = self._configured(name, config)
        assert config.refresh_models is not None
        return Refreshable(
            name=name,
            refresh=config.refresh_models,
            accept=accept,
            is_configured=served.configured,
            credential=None if config.refresh_models_auth == "configured" else getattr(served, "credential", None),
            base_url=config.base_url,
        )

    def _overlaid(self, provider: Provider) -> Provider:
        if self._overlay is None or self._overlay(provider.name, provider.models) is None:
            return provider
        return OverlaidProvider(provider, self._overlay)

    def _computed(self) -> tuple[Provider, ...]:
        over = {
            **{name: self._overlaid(each) for name, each in self._objects.items()},
            **{name: self._configured(name, config) for name, config in self._configs.items()},
        }
        served = [over.pop(each.name, each) for each in self._base]
        served += over.values()
        entries: dict[str, list[Model]] = {}
        for _, definition in self._virtual.values():
            entries.setdefault(definition.provider, []).append(catalogue_entry(definition))
        for name, models in entries.items():
            place = next((number for number, each in enumerate(served) if each.name == name), None)
            beside = VirtualProvider(name=name, virtual=tuple(models), physical=None if place is None else served[place])
            if place is None:
                served.append(beside)
            else:
                served[place] = beside
        return tuple(served)


def _object_refreshable(provider: Any) -> Refreshable:
    """A provider object keeps its own list; one that it gives is not looked at."""
    is_without = getattr(provider, "refresh_models_auth", "credential") == "configured"
    return Refreshable(
        name=provider.name,
        refresh=provider.refresh_models,
        accept=lambda _given: None,
        is_configured=provider.configured,
        credential=None if is_without else getattr(provider, "credential", None),
    )
