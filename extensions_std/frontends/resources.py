"""Texts that a session is given besides its prompts: context files and system prompts (RES-14 to RES-16)."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from camshaft.actors.api import ContextFile

CONTEXT_NAMES: Final = ("AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD")
"""The first of them that a folder has counts; the others are not read."""

SYSTEM_FILE: Final = "SYSTEM.md"
APPEND_FILE: Final = "APPEND_SYSTEM.md"

Warn = Callable[[str], None]


def context_files(agent_dir: str, cwd: str, warn: Warn) -> tuple[ContextFile, ...]:
    """The context file of the agent dir, then those from the root of the file system down to `cwd`.

    In a linked git worktree inside its main repository the main repository's file of the same name is skipped (RES-15).
    """
    found = [_of_folder(folder, warn) for folder in dict.fromkeys([os.path.abspath(agent_dir), *_down_to(cwd)])]
    files = [file for file in found if file is not None]
    main, tree = _worktree(cwd)
    names = {os.path.basename(file.path) for file in files if os.path.dirname(file.path) == tree}
    return tuple([file for file in files if not (os.path.dirname(file.path) == main and os.path.basename(file.path) in names)])


def system_prompt(given: str | None, agent_dir: str, warn: Warn) -> str | None:
    """What replaces the preamble: the option, a text or the name of a file, else SYSTEM.md."""
    return _text_or_file(given, warn) if given is not None else _read(os.path.join(agent_dir, SYSTEM_FILE), warn)


def appended_prompts(given: Sequence[str], agent_dir: str, warn: Warn) -> tuple[str, ...]:
    """What is added to the system prompt: the options, else APPEND_SYSTEM.md."""
    if given:
        return tuple([_text_or_file(each, warn) for each in given])
    found = _read(os.path.join(agent_dir, APPEND_FILE), warn)
    return () if found is None else (found,)


def _of_folder(folder: str, warn: Warn) -> ContextFile | None:
    for name in CONTEXT_NAMES:
        path = os.path.join(folder, name)
        text = _read(path, warn)
        if text is not None:
            return ContextFile(path=path, content=text)
    return None


def _down_to(cwd: str) -> list[str]:
    folders = [os.path.abspath(cwd)]
    while os.path.dirname(folders[-1]) != folders[-1]:
        folders.append(os.path.dirname(folders[-1]))
    return folders[::-1]


def _worktree(cwd: str) -> tuple[str | None, str | None]:
    """The main repository and the linked worktree inside it that `cwd` is in, if it is in one."""
    repositories = list(_repositories(cwd))
    linked = [folder for folder, is_linked in repositories if is_linked]
    if not linked:
        return None, None
    return next((folder for folder, is_linked in repositories if not is_linked and linked[-1].startswith(folder)), None), linked[-1]


def _repositories(cwd: str) -> Iterator[tuple[str, bool]]:
    """Folders from the root down that hold a `.git`, and whether it is the file of a linked worktree."""
    for folder in _down_to(cwd):
        mark = os.path.join(folder, ".git")
        if os.path.isdir(mark):
            yield folder, False
        elif os.path.isfile(mark) and "/worktrees/" in (_read(mark, lambda _text: None) or ""):
            yield folder, True


def _text_or_file(given: str, warn: Warn) -> str:
    path = os.path.expanduser(given)
    try:
        is_file = os.path.isfile(path)
    except ValueError:  # a text with a null character names no file
        is_file = False
    text = _read(path, warn) if is_file else None
    return given if text is None else text


def _read(path: str, warn: Warn) -> str | None:
    """The text of a regular file without its BOM; None if there is none, with a warning if it cannot be read."""
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8-sig", "replace")
    except OSError as error:
        warn(f"Cannot read {path}: {error.strerror}")
        return None
