"""A world for tests: nothing of it is left to chance, and nothing leaves the process but files and programs (FAUX-20)."""

from collections.abc import Mapping
from typing import Any, Final

import attrs
import trio

from camshaft.actors.api import EMPTY, Http, Model
from camshaft.actors.host import World, real_world
from camshaft.extensions_std.providers.scripted_http import ScriptedHttp
from camshaft.extensions_std.providers.wire_apis import WIRE_APIS
from camshaft.extensions_std.providers.wire_provider import WireProvider

STARTED_AT_MS: Final = 1_700_000_000_000
"""Wall clock when Trio's clock stands at 0; any time will do."""


@attrs.frozen
class FollowingClock:
    """A wall clock that follows Trio's: virtual where that is."""

    def now_ms(self) -> int:
        """Ms since the Unix epoch."""
        return STARTED_AT_MS + round(trio.current_time() * 1000)


@attrs.define(eq=False)
class CountedIds:
    """Ids in the order of asking."""

    _made: int = 0

    def entry_id(self) -> str:
        """8 hex digits."""
        self._made += 1
        return f"{self._made:08x}"

    def session_id(self) -> str:
        """`session-` and 8 hex digits; greater than every one before it."""
        return f"session-{self.entry_id()}"

    def token(self) -> str:
        """16 hex digits."""
        return f"{self.entry_id()}{0:08x}"


def scripted_world(*, http: Http | None = None, environment: Mapping[str, str] = EMPTY) -> World:
    """A world whose clock follows Trio's, whose ids are counted, whose environment is empty, and whose HTTP is scripted.

    Without `http` every HTTP request fails. Files and programs are real.
    """
    return attrs.evolve(real_world(environment), clock=FollowingClock(), ids=CountedIds(), http=http or ScriptedHttp())


def wire_model(api: str, http: Http, **fields: Any) -> WireProvider:
    """A provider with one model, `wire/scripted`, that speaks this wire API over `http`; `fields` are further ones of Model.

    Raises ValueError for an api that nobody speaks here.
    """
    if api not in WIRE_APIS:
        raise ValueError(f"api is {api!r}; expected one of {', '.join(WIRE_APIS)}")
    given: dict[str, Any] = {"id": "scripted", "provider": "wire", "base_url": "http://model.test/v1", **fields}
    model = Model(api=api, **given)
    return WireProvider(name=model.provider, models=(model,), apis=WIRE_APIS, http=http)
