"""Catalogues that change while the program runs: their refresh, provider by provider (MOD-42, PRV-17, PRV-18).

Theory of operation. Every provider that can be refreshed has a number, which a new refresh raises, as does whatever else
replaces the provider. A refresh whose number is not the latest is cancelled, and what it still publishes changes nothing.
All run side by side. One that fails leaves the list as it was and is told by name; nothing is raised.

A refresh has two phases: without the network, for what was stored, and with it, if that is allowed and the provider has
the credentials it needs. What is persisted counts at once; it is written to the host's store when the phase is over, and a
store that fails is told as the fault of that refresh.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol

import attrs
import trio

from camshaft.actors.actor import Cut, Failure, guard, guard_now
from camshaft.actors.signal import AbortSignal
from camshaft.kernel import shapes
from camshaft.kernel.persistent import freeze

LIMIT_S: Final = 60.0
"""For the refresh of one provider; one that takes longer has failed."""

_NOTHING: Final = object()


@shapes.frozen(kw_only=True)
class RefreshResult:
    """What a refresh came to (MOD-40)."""

    aborted: bool = False
    """A newer refresh took its place, for one provider at least."""
    errors: Mapping[str, str] = attrs.field(factory=dict)
    """Provider id to what went wrong; its list is as it was."""


@shapes.frozen(kw_only=True, eq=False)
class RefreshContext:
    """What `refresh_models` is given (PRV-17)."""

    allow_network: bool
    """False: only what is stored may be used."""
    force: bool
    """Whether what is stored is to be asked for again, however fresh it is."""
    signal: AbortSignal
    """Set when a newer refresh took its place."""
    credential: Mapping[str, Any] | None = attrs.field(default=None, repr=False)
    """Of a login; renewed, unless the provider wanted none."""
    stored: Mapping[str, Any] | None = None
    """What was persisted last."""
    base_url: str | None = None
    """The configured endpoint."""
    _publish: Callable[[object, Callable[[], Any] | None], bool] = attrs.field(repr=False)

    def publish(self, *, persist: Any = _NOTHING, update: Callable[[], Any] | None = None) -> bool:
        """Stores `persist` (None deletes), then calls `update`. False, and nothing happens, if this refresh is out of date."""
        return self._publish(persist, update)


class RefreshStore(Protocol):
    """Where a host keeps what refreshes persist, beyond the end of the program (PRV-17)."""

    def stored(self, provider: str) -> Mapping[str, Any] | None:
        """What was kept last; None: nothing."""
        ...

    async def keep(self, provider: str, entry: Mapping[str, Any] | None) -> None:
        """Keeps that; None deletes. Raises a CamshaftError for what cannot be kept."""
        ...


RefreshModels = Callable[[RefreshContext], Any]
Accept = Callable[[Sequence[Any]], None]
"""Takes the list that a refresh gave. Raises ExtensionMisuse for one that cannot be; nothing has changed then."""


@shapes.frozen(kw_only=True)
class Refreshable:
    """A provider that can be refreshed."""

    name: str
    refresh: RefreshModels
    accept: Accept
    is_configured: Callable[[], bool]
    credential: Callable[[], Any] | None = None
    """Gives its login, renewed; None: it is given none (PRV-18)."""
    base_url: str | None = None


@shapes.define(eq=False)
class Refreshes:
    """The refreshes of one registry."""

    _changed: Callable[[], None]
    """Called when something was published or accepted."""
    _numbers: dict[str, int] = attrs.field(factory=dict)
    _running: dict[str, tuple[trio.CancelScope, AbortSignal]] = attrs.field(factory=dict)
    store: RefreshStore | None = None
    _published_entries: dict[str, Mapping[str, Any] | None] = attrs.field(factory=dict)
    """What this registry persisted; None: deleted."""
    _unwritten: set[str] = attrs.field(factory=set)

    def _stored(self, name: str) -> Mapping[str, Any] | None:
        if name in self._published_entries:
            return self._published_entries[name]
        return None if self.store is None else self.store.stored(name)

    async def _write(self, name: str) -> str | None:
        """Why what was persisted could not be kept; None: it is, or there was nothing."""
        if name not in self._unwritten or self.store is None:
            return None
        self._unwritten.discard(name)
        outcome = await guard(self.store.keep, name, self._published_entries[name])
        return outcome.text if isinstance(outcome, Failure) else None

    def outdate(self, name: str) -> None:
        """Whatever runs for that provider counts no more."""
        self._numbers[name] = self._numbers.get(name, 0) + 1
        running = self._running.pop(name, None)
        if running is not None:
            scope, signal = running
            signal.request()
            scope.cancel()

    async def run(self, refreshables: Sequence[Refreshable], *, allow_network: bool, force: bool) -> RefreshResult:
        """Refreshes these side by side."""
        errors: dict[str, str] = {}
        aborted: list[str] = []

        async def one(each: Refreshable) -> None:
            fault = await self._one(each, allow_network, force)
            if isinstance(fault, _Outdated):
                aborted.append(each.name)
            elif fault is not None:
                errors[each.name] = fault

        async with trio.open_nursery() as nursery:
            for each in refreshables:
                nursery.start_soon(one, each)
        return RefreshResult(aborted=bool(aborted), errors=errors)

    async def _one(self, each: Refreshable, allow_network: bool, force: bool) -> "str | _Outdated | None":
        self.outdate(each.name)
        number, scope, signal = self._numbers[each.name], trio.CancelScope(deadline=trio.current_time() + LIMIT_S), AbortSignal()
        self._running[each.name] = (scope, signal)
        phases: list[Literal["stored", "network"]] = ["stored"] if self._stored(each.name) is not None else []
        phases += ["network"] if allow_network and each.is_configured() else []
        fault: str | None = None
        with scope:
            for phase in phases:
                fault = await self._phase(each, phase == "network", force, number, signal) or await self._write(each.name)
                if fault is not None:
                    break
        if self._numbers[each.name] != number:
            return _Outdated()
        self._running.pop(each.name, None)
        return f"no answer for {LIMIT_S:g} s" if scope.cancelled_caught else fault

    async def _phase(self, each: Refreshable, is_network: bool, force: bool, number: int, signal: AbortSignal) -> str | None:
        credential = None
        if is_network and each.credential is not None:
            renewed = await guard(each.credential)
            if isinstance(renewed, Failure | Cut):
                return renewed.text if isinstance(renewed, Failure) else "cancelled"
            credential = renewed.value
        context = RefreshContext(
            allow_network=is_network,
            force=force,
            signal=signal,
            credential=credential,
            stored=self._stored(each.name),
            base_url=each.base_url,
            publish=lambda persist, update: self._published(each.name, number, persist, update),
        )
        outcome = await guard(each.refresh, context)
        if isinstance(outcome, Failure | Cut):
            return outcome.text if isinstance(outcome, Failure) else "cancelled"
        if outcome.value is None or self._numbers[each.name] != number:
            return None
        if isinstance(outcome.value, str | Mapping) or not isinstance(outcome.value, Sequence):
            return f"refresh_models gave {type(outcome.value).__name__}; expected a list of models, or None"
        accepted = guard_now(each.accept, outcome.value)
        if isinstance(accepted, Failure):
            return accepted.text
        self._changed()
        return None

    def _published(self, name: str, number: int, persist: object, update: Callable[[], Any] | None) -> bool:
        if self._numbers.get(name) != number:
            return False
        if persist is not _NOTHING:
            if persist is not None and not isinstance(persist, Mapping):
                raise TypeError(f"persist is {type(persist).__name__}; expected a dict with models, or None")
            self._published_entries[name] = None if persist is None else freeze(persist, "persist")
            self._unwritten.add(name)
        if update is not None:
            update()
        self._changed()
        return True


@shapes.frozen
class _Outdated:
    """A newer refresh took the place of this one."""
