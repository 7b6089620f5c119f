"""`model-lists.json`: what refreshes of providers persisted, so that a restart begins with the models found last (PRV-17).

A file that cannot be read counts as empty and is replaced by the next write: nothing in it cannot be found again. It is written
under a lock that all processes heed, and for the user alone, because what an extension persists may be private.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from camshaft.actors.api import EMPTY, MalformedJson, loads
from camshaft.actors.host import ProviderFailed, held

LISTS_FILE: Final = "model-lists.json"
LISTS_MAX_BYTES: Final = 16 * 1024 * 1024
"""A file beyond that is not read."""
LOCK_WAIT_S: Final = 10.0

Read = Callable[[Path], bytes]


@attrs.define(eq=False, kw_only=True)
class ModelLists:
    """The file of one user."""

    path: str
    """Empty: nothing is read or written."""
    _read: Read = attrs.field(default=Path.read_bytes, repr=False)
    _known: Mapping[str, Any] = attrs.field(default=EMPTY, repr=False)

    def reload(self) -> None:
        """Reads the file again."""
        self._known = self._content()

    def stored(self, provider: str) -> Mapping[str, Any] | None:
        """What was kept for a provider; None if nothing was."""
        found = self._known.get(provider)
        return found if isinstance(found, Mapping) else None

    async def keep(self, provider: str, entry: Mapping[str, Any] | None) -> None:
        """Keeps an entry in the place of the one there is; None deletes it. Raises ProviderFailed."""
        try:
            async with held(self.path, wait_s=LOCK_WAIT_S, is_private=True) as file:
                stored = {name: each for name, each in self._content().items() if name != provider}
                if entry is not None:
                    stored[provider] = dict(entry)
                file.replace(f"{json.dumps(stored, indent=2, ensure_ascii=False)}\n".encode("utf-8", "surrogatepass"))
        except OSError as error:
            raise ProviderFailed("model_source", f"keeping the models of {provider} failed: {error.strerror} ({error.filename})") from None
        self._known = stored

    def _content(self) -> Mapping[str, Any]:
        try:
            raw = self._read(Path(self.path)) if self.path else b""
            value = loads(raw) if 0 < len(raw) <= LISTS_MAX_BYTES else EMPTY
        except (OSError, MalformedJson):
            return EMPTY
        return value if isinstance(value, Mapping) else EMPTY
