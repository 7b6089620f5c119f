"""Texts that replace the system prompt or are added to it (RES-16)."""

import os
from collections.abc import Sequence
from typing import Final

from camshaft.actors.resources.context_files import read_prompt_file
from camshaft.actors.resources.found import ResourceDiagnostic
from camshaft.actors.settings_files import PROJECT_FOLDER
from camshaft.kernel import shapes

SYSTEM_FILE: Final = "SYSTEM.md"
APPEND_FILE: Final = "APPEND_SYSTEM.md"


@shapes.frozen(kw_only=True)
class SystemTexts:
    """What replaces the preamble, None for nothing, and what is added."""

    system_prompt: str | None = None
    appended: tuple[str, ...] = ()
    diagnostics: tuple[ResourceDiagnostic, ...] = ()


@shapes.frozen(kw_only=True)
class GivenTexts:
    """What the invocation says; each is a text, or the path of a file, relative to the process's folder."""

    system_prompt: str | None = None
    appended: tuple[str, ...] = ()


def system_texts(agent_dir: str, cwd: str, *, is_trusted: bool, given: GivenTexts | None = None) -> SystemTexts:
    """What is given, else SYSTEM.md and APPEND_SYSTEM.md of the trusted project, else those of the user.

    An empty text that is given replaces nothing but the search. The project's and the user's are not combined.
    """
    said = given or GivenTexts()
    wrong: list[ResourceDiagnostic] = []
    folders = [*([os.path.join(cwd, PROJECT_FOLDER)] if is_trusted else ()), agent_dir]
    system = _first(folders, SYSTEM_FILE, wrong) if said.system_prompt is None else _text_or_file(said.system_prompt, wrong)
    if said.appended:
        appended = tuple([_text_or_file(each, wrong) for each in said.appended])
    else:
        found = _first(folders, APPEND_FILE, wrong)
        appended = () if found is None else (found,)
    return SystemTexts(system_prompt=system, appended=appended, diagnostics=tuple(wrong))


def _first(folders: Sequence[str], name: str, wrong: list[ResourceDiagnostic]) -> str | None:
    for folder in folders:
        text = read_prompt_file(os.path.join(folder, name), wrong)
        if text is not None:
            return text
    return None


def _text_or_file(given: str, wrong: list[ResourceDiagnostic]) -> str:
    text = read_prompt_file(os.path.expanduser(given), wrong)
    return given if text is None else text
