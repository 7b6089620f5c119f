"""Files with instructions for a project: one of each folder from the root of the file system down (RES-14, RES-15)."""

import os
from collections.abc import Iterator
from typing import Final

from camshaft.actors.ports.files import read_plain_file
from camshaft.actors.resources.found import ResourceDiagnostic, warning
from camshaft.actors.resources.frontmatter import FILE_BYTES_MAX
from camshaft.actors.trust import folders_up
from camshaft.kernel import shapes
from camshaft.kernel.prompt import ContextFile

CONTEXT_NAMES: Final = ("AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD")
"""The first of them that a folder has counts; the others are not read."""


@shapes.frozen(kw_only=True)
class FoundContext:
    """The context files, from the general to the particular, and those that could not be read."""

    files: tuple[ContextFile, ...] = ()
    diagnostics: tuple[ResourceDiagnostic, ...] = ()


def context_files(agent_dir: str, cwd: str) -> FoundContext:
    """The context file of the user's folder, then those from the root of the file system down to `cwd`. No trust is needed.

    In a linked git worktree inside its main repository the main repository's file of the same name is skipped (RES-15).
    """
    wrong: list[ResourceDiagnostic] = []
    folders = dict.fromkeys([os.path.abspath(agent_dir), *_down_to(cwd)])
    files = [file for folder in folders if (file := _of_folder(folder, wrong)) is not None]
    main, tree = _worktree(cwd)
    names = {os.path.basename(file.path) for file in files if os.path.dirname(file.path) == tree}
    kept = [file for file in files if not (os.path.dirname(file.path) == main and os.path.basename(file.path) in names)]
    return FoundContext(files=tuple(kept), diagnostics=tuple(wrong))


def read_prompt_file(path: str, wrong: list[ResourceDiagnostic]) -> str | None:
    """The text of a regular file without its BOM; None if there is none. One that cannot be read is added to `wrong`."""
    if not os.path.isfile(path):
        return None
    try:
        return read_plain_file(path, FILE_BYTES_MAX).decode("utf-8-sig", "replace")
    except OSError as error:
        wrong.append(warning(path, f"cannot be read: {error.strerror or error}"))
        return None


def _of_folder(folder: str, wrong: list[ResourceDiagnostic]) -> ContextFile | None:
    for name in CONTEXT_NAMES:
        path = os.path.join(folder, name)
        text = read_prompt_file(path, wrong)
        if text is not None:
            return ContextFile(path=path, content=text)
    return None


def _down_to(cwd: str) -> list[str]:
    return folders_up(os.path.abspath(cwd))[::-1]


def _worktree(cwd: str) -> tuple[str | None, str | None]:
    """The main repository and the linked worktree inside it that `cwd` is in, if it is in one."""
    repositories = list(_repositories(cwd))
    linked = [folder for folder, is_linked in repositories if is_linked]
    if not linked:
        return None, None
    around = [folder for folder, is_linked in repositories if not is_linked and linked[-1].startswith(f"{folder.rstrip('/')}/")]
    return next(iter(around), None), linked[-1]


def _repositories(cwd: str) -> Iterator[tuple[str, bool]]:
    """Folders from the root down that hold a `.git`, and whether it is the file of a linked worktree."""
    for folder in _down_to(cwd):
        mark = os.path.join(folder, ".git")
        if os.path.isdir(mark):
            yield folder, False
        elif "/worktrees/" in (read_prompt_file(mark, []) or ""):
            yield folder, True
