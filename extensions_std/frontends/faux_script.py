"""`--faux-script FILE`: a scripted model among the providers of the command line (FAUX-27)."""

import os
from collections.abc import Mapping
from typing import Final

import attrs

from camshaft.actors.api import Provider
from camshaft.extensions_std.frontends.arguments import Arguments
from camshaft.extensions_std.frontends.conversation import StartupFailed
from camshaft.extensions_std.frontends.model_choice import Chosen
from camshaft.extensions_std.providers.scripted import ScriptedProvider
from camshaft.extensions_std.providers.scripted_file import ScriptFileError, load_script

SCRIPT_VARIABLE: Final = "CAMSHAFT_FAUX_SCRIPT"
"""What the option says, where a program starts this one and cannot give it options."""


def scripted_of(arguments: Arguments, environment: Mapping[str, str], here: str) -> ScriptedProvider | None:
    """The scripted model that was asked for. Raises StartupFailed."""
    path = arguments.faux_script or environment.get(SCRIPT_VARIABLE)
    try:
        return load_script(os.path.join(here, path)) if path else None
    except ScriptFileError as error:
        raise StartupFailed(str(error)) from None


def with_script(providers: tuple[Provider, ...], scripted: ScriptedProvider | None) -> tuple[Provider, ...]:
    """The providers with the scripted one, in place of one of the same name."""
    return providers if scripted is None else (*[each for each in providers if each.name != scripted.name], scripted)


def with_default(chosen: Chosen, arguments: Arguments, scripted: ScriptedProvider | None) -> Chosen:
    """Whoever gives a script and names no model means the first one of the script."""
    if scripted is None or chosen.reference is not None or arguments.models is not None:
        return chosen
    return attrs.evolve(chosen, reference=scripted.models[0].reference)
