"""Settings that a client changes for good (RPC-43)."""

from collections.abc import Sequence

from camshaft.actors.api import Json
from camshaft.actors.host import SettingsFiles
from camshaft.extensions_std.frontends.streams import say


async def kept(found: SettingsFiles, path: Sequence[str], value: Json) -> None:
    """Writes a value to the user's settings; what does not reach the file is told on standard error (SET-6)."""
    found.write("user", path, value)
    await found.flush()
    for error in found.take_errors():
        say(f"Warning: {error.message}")
