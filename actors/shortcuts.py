"""Runs what an extension registered for a key of an interactive frontend (API-5, CTXT-10)."""

from camshaft.actors.actor import Failure, guard, unless_exit
from camshaft.actors.extension_host import ExtensionHost


async def run_shortcut(host: ExtensionHost, key: str) -> bool:
    """Runs what the last extension registered for `key`; False if none did. What it raises is reported."""
    found = [(each, each.shortcuts[key.lower()]) for each in host.extensions if key.lower() in each.shortcuts]
    if not found:
        return False
    extension, shortcut = found[-1]
    outcome = await guard(unless_exit, shortcut.handler, host.context(extension))
    if isinstance(outcome, Failure):
        host.report_failure(extension.path, "shortcut", outcome)
    if host.runtime is not None and host.runtime.has_sends:
        await host.runtime.sends_begun()
    return True
