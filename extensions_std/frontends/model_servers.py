"""Servers that list their models themselves are asked before a model is chosen: what they have could be what is meant (MOD-101)."""

import math
from collections.abc import Callable
from typing import Final

import trio

from camshaft.actors.host import ProviderFailed
from camshaft.extensions_std.frontends.arguments import Arguments
from camshaft.extensions_std.providers.llama_cpp import LLAMA, LlamaProvider
from camshaft.extensions_std.providers.models_json import LoadedProviders

WAIT_S: Final = 3.0
"""For a server that nobody named: it must not hold up a start with other models. One that was named has all its time."""


async def look_at_servers(
    loaded: LoadedProviders, arguments: Arguments, default_provider: str | None, *, is_offline: bool, warn: Callable[[str], None]
) -> None:
    """Asks such servers for their models, where they are configured or named; a failure is told to who named one.

    What failed is asked again when the session has started, and told then. Offline nobody is asked (MOD-43).
    """
    found = next((each for each in loaded.providers if isinstance(each, LlamaProvider)), None)
    if found is None:
        return
    is_named = _is_named(arguments, default_provider)
    if is_named:
        found.want()
    if is_offline or not found.configured():
        return
    with trio.move_on_after(math.inf if is_named else WAIT_S):
        try:
            await loaded.lists.keep(LLAMA, await found.take_look())
        except ProviderFailed as error:
            if is_named:
                warn(f'Availability refresh: Provider "{LLAMA}": {error}')


def _is_named(arguments: Arguments, default_provider: str | None) -> bool:
    texts = [arguments.model, *(arguments.models or ()), arguments.list_models]
    named = [arguments.provider, default_provider if arguments.model is None else None]
    by_text = any([(text or "").lower().startswith((f"{LLAMA}/", f"{LLAMA}:")) or text == LLAMA for text in texts])
    return by_text or LLAMA in [(each or "").lower() for each in named]
