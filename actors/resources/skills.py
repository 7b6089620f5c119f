"""Skills in folders: which files are skills, and what they say of themselves (RES-5 to RES-7).

A folder with a `SKILL.md` is one skill and is not searched further; any other is searched, ignore files and links included
and hidden folders left out. A Markdown file directly in the root is a skill too, if it has a description.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from camshaft.actors.resources.found import Owner, ResourceDiagnostic, warning
from camshaft.actors.resources.frontmatter import BadFrontmatter, frontmatter_of, read_text
from camshaft.kernel import shapes
from camshaft.kernel.messages import BLANKS
from camshaft.kernel.skills import Skill, description_faults, name_faults

SKILL_FILE: Final = "SKILL.md"

DEPTH_MAX: Final = 32
"""Levels below a root that are searched; a skill lies one or two below."""
STEPS_MAX: Final = 10_000
"""Entries of a root that are looked at; a folder of dependencies that somebody took for skills has more."""


@shapes.frozen(kw_only=True)
class FoundSkill:
    """One file that is, or was to be, a skill."""

    path: str
    skill: Skill | None
    """None: it is not loaded."""
    diagnostics: tuple[ResourceDiagnostic, ...] = ()


def skills_at(path: str, owner: Owner) -> tuple[FoundSkill, ...]:
    """The skills of a root folder, or the one at a file, in the order of their paths. None if there is nothing."""
    if os.path.isfile(path):
        return (_loaded(path, owner, is_loose=False),)
    main = os.path.join(path, SKILL_FILE)
    if os.path.isfile(main):
        return (_loaded(main, owner, is_loose=False),)
    return tuple(_searched(path, owner)) if os.path.isdir(path) else ()


def _searched(root: str, owner: Owner) -> Iterator[FoundSkill]:
    files, is_cut = _markdown_files(root)
    if is_cut:
        text = f"has more than {STEPS_MAX} entries; the rest was not searched for skills"
        yield FoundSkill(path=root, skill=None, diagnostics=(warning(root, text),))
    taken: list[str] = []
    mains = sorted([file for file in files if os.path.basename(file) == SKILL_FILE], key=lambda file: (file.count("/"), file))
    for main in mains:
        folder = os.path.dirname(main)
        if not any([folder.startswith(f"{outer}/") for outer in taken]):
            taken.append(folder)
    loose = [file for file in files if os.path.dirname(file) == root and os.path.basename(file) != SKILL_FILE]
    for file in sorted([*[os.path.join(folder, SKILL_FILE) for folder in taken], *loose]):
        if os.path.isfile(file):
            yield _loaded(file, owner, is_loose=file in loose)


def _markdown_files(root: str) -> tuple[list[str], bool]:
    """Every `SKILL.md` below the root and every Markdown file in it, and whether the search was cut off."""
    import ignore  # On use: most starts have no skills, and the library is a compiled one.
    from ignore.overrides import OverrideBuilder

    without = OverrideBuilder(Path(root)).add("!node_modules").build()
    builder = ignore.WalkBuilder(Path(root)).follow_links(True).max_depth(DEPTH_MAX).overrides(without)
    # Only what lies in the root itself says what is ignored: a project may well keep its skills out of its repository.
    builder = builder.parents(False).git_global(False).git_exclude(False).require_git(False).add_custom_ignore_filename(".fdignore")
    walker, found = builder.build(), list[str]()
    for _ in range(STEPS_MAX):
        try:
            entry = next(walker, None)
        except (ignore.Error, ignore.IOError):
            continue  # A folder that cannot be entered, a link that leads nowhere or in a circle.
        if entry is None:
            return found, False
        path = str(entry.path())
        if path.endswith(f"/{SKILL_FILE}") or (entry.depth() == 1 and path.endswith(".md")):
            found.append(path)
    return found, True


def _loaded(path: str, owner: Owner, *, is_loose: bool) -> FoundSkill:
    try:
        said = frontmatter_of(read_text(path).frontmatter)
    except OSError as error:
        return FoundSkill(path=path, skill=None, diagnostics=(warning(path, f"cannot be read: {error.strerror or error}"),))
    except BadFrontmatter as error:
        return FoundSkill(path=path, skill=None, diagnostics=() if is_loose else (warning(path, f"broken YAML: {error}"),))
    folder = os.path.dirname(path)
    name, description = said.get("name"), said.get("description")
    name = name if isinstance(name, str) and name else os.path.basename(folder)
    if not isinstance(description, str) or not description.strip(BLANKS):
        return FoundSkill(path=path, skill=None, diagnostics=() if is_loose else (warning(path, "description is missing"),))
    skill = Skill(
        name=name,
        description=description,
        file_path=path,
        base_dir=folder,
        source_info=owner.info(path),
        disable_model_invocation=said.get("disable-model-invocation") is True,
    )
    faults = (*name_faults(name), *description_faults(description))
    return FoundSkill(path=path, skill=skill, diagnostics=tuple([warning(path, fault) for fault in faults]))
