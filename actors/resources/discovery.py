"""Where skills and prompt templates are, in the order in which they count (RES-1 to RES-4, RES-10, SET-13).

    1  entries of the project's settings          4  the user's folders
    2  the project's folders                      5  packages
    3  entries of the user's settings             6  paths that the invocation names, then those that extensions name

The first of a name counts. Nothing of the project is looked at unless it is trusted. Entries of settings that begin with
`!`, `+` or `-` decide about everything of their scope, folders included.
"""

import glob
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import attrs

from camshaft.actors.resources.found import Owner, ResourceDiagnostic, Resources, first_of_each_name, warning
from camshaft.actors.resources.skills import FoundSkill, skills_at
from camshaft.actors.resources.templates import FoundTemplate, templates_at
from camshaft.actors.settings_files import PROJECT_FOLDER
from camshaft.actors.trust import SHARED_SKILLS, canonical, folders_up
from camshaft.kernel import shapes
from camshaft.kernel.path_entries import PathEntries, is_pattern, path_entries
from camshaft.kernel.settings_merge import ResourceLists
from camshaft.kernel.skills import Skill
from camshaft.kernel.templates import PromptTemplate

PATHS_MAX: Final = 1_000
"""Paths that one pattern of a list stands for at most."""


@shapes.frozen(kw_only=True)
class ResourcePlaces:
    """Where to look."""

    agent_dir: str
    """The user's folder."""
    cwd: str
    home: str
    """The user's home folder: `~`, and where `.agents/skills` is the user's own."""
    is_trusted: bool
    """Whether anything of the project is looked at (TRUST-4)."""
    user: ResourceLists = ResourceLists()
    project: ResourceLists = ResourceLists()
    packages: tuple[str, ...] = ()
    """Folders of packages, which have `skills` and `prompts`."""
    skill_paths: tuple[str, ...] = ()
    """Files and folders that the invocation names."""
    template_paths: tuple[str, ...] = ()
    """The same for templates."""
    is_without_skills: bool = False
    """Only `skill_paths` count."""
    is_without_templates: bool = False
    """Only `template_paths` count."""


@shapes.frozen(kw_only=True)
class _Kind:
    """What differs between skills and templates."""

    label: str
    folder: str
    """Name of the folder and of the list in settings."""
    find: Callable[[str, Owner], Sequence[FoundSkill | FoundTemplate]]


_SKILLS: Final = _Kind(label="Skill", folder="skills", find=skills_at)
_TEMPLATES: Final = _Kind(label="Prompt template", folder="prompts", find=templates_at)


@shapes.frozen(kw_only=True)
class _Found:
    """A file, under what names the entries of settings may speak of it, and what was loaded from it."""

    path: str
    resource: Skill | PromptTemplate | None
    diagnostics: tuple[ResourceDiagnostic, ...]


def discover(places: ResourcePlaces) -> Resources:
    """The skills and templates there are, each name once, and what was wrong."""
    cli = Owner(source="cli")
    named_skills = [each for path in places.skill_paths for each in _written(_SKILLS, path, places.cwd, places.home, cli)]
    named_templates = [each for path in places.template_paths for each in _written(_TEMPLATES, path, places.cwd, places.home, cli)]
    skills = [*(() if places.is_without_skills else _all(_SKILLS, places)), *named_skills]
    templates = [*(() if places.is_without_templates else _all(_TEMPLATES, places)), *named_templates]
    return _joined(Resources(), skills, templates)


Named = Iterable[tuple[str, str]]
"""Paths that extensions name: the extension's own path, and what it wrote."""


def with_discovered(resources: Resources, skill_paths: Named, prompt_paths: Named, *, cwd: str, home: str) -> Resources:
    """With what extensions name added behind it (RES-3); `diagnostics` are those of the added paths only.

    A relative path starts at the folder of the extension that named it, or at `cwd` if that has none.
    """
    skills = [each for by, path in skill_paths for each in _written(_SKILLS, path, _folder_of(by, cwd), home, Owner(source="local"))]
    templates = [each for by, path in prompt_paths for each in _written(_TEMPLATES, path, _folder_of(by, cwd), home, Owner(source="local"))]
    return _joined(resources, skills, templates)


def _folder_of(extension: str, cwd: str) -> str:
    if not os.path.isabs(extension):
        return cwd
    return extension if os.path.isdir(extension) else os.path.dirname(extension)


def _joined(before: Resources, skills: Iterable[_Found], templates: Iterable[_Found]) -> Resources:
    listed = [
        _once(skills, {canonical(each.file_path) for each in before.skills if each.file_path}),
        _once(templates, {canonical(each.file_path) for each in before.templates if each.file_path}),
    ]
    fresh = [[each.resource for each in found] for found in listed]
    kept_skills, lost_skills = first_of_each_name("Skill", (*before.skills, *[each for each in fresh[0] if isinstance(each, Skill)]))
    kept_templates, lost_templates = first_of_each_name(
        "Prompt template", (*before.templates, *[each for each in fresh[1] if isinstance(each, PromptTemplate)])
    )
    told = [diagnostic for found in listed for each in found for diagnostic in each.diagnostics]
    return Resources(skills=kept_skills, templates=kept_templates, diagnostics=(*told, *lost_skills, *lost_templates))


def _once(found: Iterable[_Found], known: set[str]) -> list[_Found]:
    """Each real file once, silently (RES-2)."""
    kept: list[_Found] = []
    for each in found:
        real = canonical(each.path)
        if real not in known:
            known.add(real)
            kept.append(each)
    return kept


def _all(kind: _Kind, places: ResourcePlaces) -> Iterator[_Found]:
    if places.is_trusted:
        base = os.path.join(places.cwd, PROJECT_FOLDER)
        roots = [os.path.join(base, kind.folder), *(_shared(places) if kind is _SKILLS else ())]
        yield from _scope(kind, "project", base, roots, places)
    roots = [os.path.join(places.agent_dir, kind.folder)]
    roots += [os.path.join(places.home, SHARED_SKILLS)] if kind is _SKILLS else []
    yield from _scope(kind, "user", places.agent_dir, roots, places)
    for package in places.packages:
        owner = Owner(source=package, scope="user", origin="package", base_dir=package)
        yield from _loaded(kind, os.path.join(package, kind.folder), owner)


def _scope(kind: _Kind, scope: str, base: str, roots: Sequence[str], places: ResourcePlaces) -> Iterator[_Found]:
    """The entries of a scope's list, then its folders; both as far as the list allows."""
    is_project = scope == "project"
    lists = places.project if is_project else places.user
    entries = path_entries(getattr(lists, kind.folder), lambda path: absolute(path, base, places.home))
    entry = Owner(source="local", scope="project" if is_project else "user", base_dir=base)
    for path in (*entries.includes, *entries.forced_in):
        if is_pattern(path) and not os.path.lexists(path):
            for each in sorted(itertools.islice(glob.iglob(path, recursive=True), PATHS_MAX)):
                yield from _allowed(_loaded(kind, each, entry), entries)
        elif os.path.exists(path):
            yield from _allowed(_loaded(kind, path, entry), entries)
        else:
            yield _missing(kind, path)
    for root in roots:
        yield from _allowed(_loaded(kind, root, attrs.evolve(entry, source="auto", base_dir=os.path.dirname(root))), entries)


def _written(kind: _Kind, written: str, base: str, home: str, owner: Owner) -> Iterator[_Found]:
    """What is at a path that somebody wrote out."""
    path = absolute(written, base, home)
    if os.path.exists(path):
        yield from _loaded(kind, path, owner)
    else:
        yield _missing(kind, path)


def _loaded(kind: _Kind, path: str, owner: Owner) -> Iterator[_Found]:
    for found in kind.find(path, owner):
        resource = found.skill if isinstance(found, FoundSkill) else found.template
        yield _Found(path=found.path, resource=resource, diagnostics=found.diagnostics)


def _allowed(found: Iterable[_Found], entries: PathEntries) -> Iterator[_Found]:
    """A skill goes by its file and by its folder."""
    for each in found:
        if entries.allows(each.path, os.path.dirname(each.path)):
            yield each


def _missing(kind: _Kind, path: str) -> _Found:
    return _Found(path=path, resource=None, diagnostics=(warning(path, f"{kind.label} path does not exist"),))


def _shared(places: ResourcePlaces) -> list[str]:
    """`.agents/skills` of the folder and of those above it, up to the root of the repository, without the user's own."""
    folders = folders_up(os.path.abspath(places.cwd))
    top = next((folder for folder in folders if os.path.lexists(os.path.join(folder, ".git"))), folders[-1])
    inside = folders[: folders.index(top) + 1]
    users = canonical(places.home)
    return [os.path.join(folder, SHARED_SKILLS) for folder in inside if canonical(folder) != users]


def absolute(path: str, base: str, home: str) -> str:
    """A written path: `~` is the home folder, a relative one starts at `base`."""
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    return os.path.normpath(os.path.join(base, path))
