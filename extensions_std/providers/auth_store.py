"""`auth.json`: the credentials that people stored (MOD-70, MOD-71, MOD-73 to MOD-76).

A file that cannot be read leaves what was read last, and is never written over: it may hold what nobody has twice. Every
write reads, changes and replaces under a lock that all processes heed. A token is renewed under that lock, too, by a task
that nobody's cancellation ends: the old one may be spent by then, and the new one must reach the file.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import trio

from camshaft.actors.api import EMPTY, MalformedJson, loads
from camshaft.actors.host import ProviderFailed, held

AUTH_FILE: Final = "auth.json"

LOCK_WAIT_S: Final = 30.0
"""For another process that writes (MOD-71)."""
FRESH_MS: Final = 5 * 60 * 1000
"""A token that is valid for less is renewed (MOD-75)."""

Read = Callable[[Path], bytes]
Credential = Mapping[str, Any]
Renew = Callable[[Credential], Awaitable[Credential]]
"""Raises ProviderFailed."""


class _Unreadable(Exception):
    """The file holds no credentials; no text of it is told."""


@attrs.define(eq=False, kw_only=True)
class AuthStore:
    """The file of one user."""

    path: str
    _read: Read = attrs.field(default=Path.read_bytes, repr=False)
    _now_ms: Callable[[], int] = attrs.field(default=lambda: 0, repr=False)
    """The wall clock."""
    _known: Mapping[str, Any] = attrs.field(default=EMPTY, repr=False)
    """What was read last."""
    fault: str | None = None
    """Why the file as it is now does not count."""

    def reload(self) -> None:
        """Reads the file again."""
        try:
            self._known, self.fault = self._content(), None
        except _Unreadable as error:
            self.fault = str(error)

    def credential(self, provider: str) -> Credential | None:
        """As it was read last."""
        found = self._known.get(provider)
        return found if isinstance(found, Mapping) else None

    async def put(self, provider: str, credential: Credential) -> None:
        """Stores a credential in the place of the one there is. Raises ProviderFailed."""
        await self._change(lambda stored: {**stored, provider: dict(credential)}, provider, "storing")

    async def remove(self, provider: str) -> bool:
        """Whether there was one. Raises ProviderFailed."""
        had = False

        def without(stored: Mapping[str, Any]) -> dict[str, Any]:
            nonlocal had
            had = provider in stored
            return {name: each for name, each in stored.items() if name != provider}

        await self._change(without, provider, "removing")
        return had

    async def fresh(self, provider: str, renew: Renew) -> Credential:
        """The login of a provider, renewed if it ends soon. Whoever is cancelled stops waiting only (MOD-76). Raises ProviderFailed."""
        known = self.credential(provider)
        if known is not None and not self._is_due(known):
            return known
        outcome: list[Credential | ProviderFailed] = []
        done = trio.Event()

        async def work() -> None:
            with trio.CancelScope(shield=True):
                try:
                    outcome.append(await self._renewed(provider, renew))
                except ProviderFailed as error:
                    outcome.append(error)
                done.set()

        trio.lowlevel.spawn_system_task(work)
        await done.wait()
        if isinstance(outcome[0], ProviderFailed):
            raise outcome[0]
        return outcome[0]

    async def _renewed(self, provider: str, renew: Renew) -> Credential:
        try:
            async with held(self.path, wait_s=LOCK_WAIT_S, is_private=True) as file:
                stored = self._content()
                credential = stored.get(provider)
                if not isinstance(credential, Mapping):
                    raise ProviderFailed("oauth", f"Provider is not configured: {provider}")
                if self._is_due(credential):  # another process may have been faster
                    credential = await renew(credential)
                    stored = {**stored, provider: dict(credential)}
                    file.replace(_encoded(stored))
                self._known = stored
                return credential
        except (OSError, _Unreadable) as error:
            raise ProviderFailed("oauth", f"OAuth refresh failed for {provider}: {_plain(error)}") from None

    def _is_due(self, credential: Credential) -> bool:
        expires = credential.get("expires")
        return not isinstance(expires, int | float) or expires - self._now_ms() < FRESH_MS

    async def _change(self, change: Callable[[Mapping[str, Any]], dict[str, Any]], provider: str, doing: str) -> None:
        try:
            async with held(self.path, wait_s=LOCK_WAIT_S, is_private=True) as file:
                stored = change(self._content())
                file.replace(_encoded(stored))
        except (OSError, _Unreadable) as error:
            raise ProviderFailed("auth", f"{doing} the credential of {provider} failed: {_plain(error)}") from None
        self._known, self.fault = stored, None

    def _content(self) -> Mapping[str, Any]:
        try:
            value = loads(self._read(Path(self.path)))
        except FileNotFoundError:
            return EMPTY
        except (OSError, MalformedJson):
            raise _Unreadable(f"Failed to load auth.json: expected a readable JSON object\n\nFile: {self.path}") from None
        if not isinstance(value, dict):
            raise _Unreadable(f"Invalid auth.json: expected an object of credentials by provider\n\nFile: {self.path}")
        return value


def _encoded(stored: Mapping[str, Any]) -> bytes:
    return f"{json.dumps(stored, indent=2, ensure_ascii=False)}\n".encode("utf-8", "surrogatepass")


def _plain(error: Exception) -> str:
    """Of a fault of the system only what it is and where: never the content."""
    return f"{error.strerror} ({error.filename})" if isinstance(error, OSError) else str(error)
