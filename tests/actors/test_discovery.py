"""Finding extensions: the order of the sources, what a folder holds, what settings take in and out."""

import os
from pathlib import Path
from typing import Any

import attrs
import pytest

from camshaft.actors.discovery import Invocation, Place, discover_extensions, installed_entry_points, participants
from camshaft.actors.extension_files import Owner, extensions_at
from camshaft.actors.host import BuiltinExtension, ExtensionFile, InlineExtension, LoadError, LoadWarning
from camshaft.actors.loading import Source, source_info_of
from camshaft.kernel.tools import SourceInfo
from tests.actors.extensions_on_disk import Generations, loaded, shown, with_generations, write

NOTE = "def setup(api):\n    api.note(api.extension.path)\n"


@attrs.frozen
class Dist:
    name: str


@attrs.frozen
class Entry:
    name: str
    value: str
    dist: Dist | None = Dist("dist")


def nothing(_api: Any) -> None:
    """A setup that registers nothing."""


def found(folder: Path, **more: Any) -> list[str]:
    """The list for work in `folder/project` by the user of `folder/agent`; no installed extensions unless given."""
    return shown(sources(folder, **more), folder)


def sources(folder: Path, **more: Any) -> tuple[Source, ...]:
    place = {name: more.pop(name) for name in ("project", "user") if name in more}
    trusted = more.pop("is_trusted", True)
    given: dict[str, Any] = {"entry_points": lambda: (), "started_in": str(folder), **more}
    invocation = Invocation(agent_dir=f"{folder}/agent", **given)
    return discover_extensions(invocation, Place(cwd=f"{folder}/project", is_trusted=trusted, **place))


def scan(folder: Path) -> list[str]:
    return shown(extensions_at(str(folder), Owner(source="auto", scope="user")), folder)


EVERYWHERE = {
    "cli.py": NOTE,
    "project/.camshaft/listed/p1.py": NOTE,
    "project/.camshaft/extensions/p2.py": NOTE,
    "agent/listed/u1.py": NOTE,
    "agent/extensions/u2.py": NOTE,
}
OFFERED: dict[str, Any] = {
    "explicit": ("cli.py", "builtin:second"),
    "project": ("listed/p1.py",),
    "user": ("./listed/u1.py",),
    "builtins": (BuiltinExtension(name="first", setup=nothing), BuiltinExtension(name="second", setup=nothing)),
    "inline": (InlineExtension(name="host", setup=nothing),),
    "entry_points": lambda: [Entry("e", "json:dumps")],
}


@pytest.mark.rule("EXT-1")
def test_sources_come_in_their_order(tmp_path: Path) -> None:
    write(tmp_path, EVERYWHERE)

    async def load(generations: Generations) -> list[str]:
        await generations.load(*sources(tmp_path, **OFFERED))
        return shown(generations.host.extensions, tmp_path)

    expected = ["cli.py", "builtin:second", "project/.camshaft/listed/p1.py", "project/.camshaft/extensions/p2.py"]
    expected += ["agent/listed/u1.py", "agent/extensions/u2.py", "builtin:first", "<inline:host>"]
    assert with_generations(load) == expected


@pytest.mark.rule("EXT-1", "TRUST-4")
def test_a_project_that_is_not_trusted_adds_nothing_and_says_nothing(tmp_path: Path) -> None:
    write(tmp_path, EVERYWHERE)
    project = ("listed/p1.py", "-builtin:first", f"-{tmp_path}/agent/extensions/u2.py")

    assert found(tmp_path, **{**OFFERED, "project": project}, is_trusted=False) == [
        *("cli.py", "builtin:second", "agent/listed/u1.py", "agent/extensions/u2.py"),
        *("package:dist/e", "builtin:first", "builtin:second", "host"),
    ]


@pytest.mark.rule("EXT-62")
def test_asked_about_trust_are_neither_the_projects_own_nor_built_in_extensions(tmp_path: Path) -> None:
    write(tmp_path, EVERYWHERE)

    asked = participants(sources(tmp_path, **OFFERED))

    assert shown(asked, tmp_path) == ["cli.py", "agent/listed/u1.py", "agent/extensions/u2.py", "package:dist/e", "host"]


@pytest.mark.rule("EXT-10")
def test_without_extensions_only_what_the_invocation_names_is_there(tmp_path: Path) -> None:
    write(tmp_path, EVERYWHERE)

    assert found(tmp_path, **OFFERED, only_explicit=True) == ["cli.py", "builtin:second"]


@pytest.mark.rule("EXT-8", "EXT-10", "EXT-13")
def test_a_named_extension_that_is_not_there_is_an_error_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "neighbour.py").touch()
    explicit = ("none.py", "builtin:none", "package:none/x", "empty", "", " ")

    errors = [(each.path, each.error) for each in sources(tmp_path, explicit=explicit) if isinstance(each, LoadError)]

    empty = f"{tmp_path}/empty"
    expected = "expected __init__.py, files NAME.py, or a pyproject.toml with [tool.camshaft] extensions"
    assert errors == [
        (f"{tmp_path}/none.py", f"Extension path does not exist: {tmp_path}/none.py"),
        ("builtin:none", "Unknown built-in extension: builtin:none"),
        ("package:none/x", "Unknown installed extension: package:none/x"),
        (empty, f"Extension folder has no extension: {empty} ({expected})"),
        ("", "Extension path is empty"),
        (" ", "Extension path is empty"),
    ]


@pytest.mark.rule("SET-13")
def test_a_listed_path_that_is_gone_is_a_warning(tmp_path: Path) -> None:
    warnings = [each for each in sources(tmp_path, user=("gone.py", "*.none")) if isinstance(each, LoadWarning)]

    path = f"{tmp_path}/agent/gone.py"
    assert warnings == [LoadWarning(path=path, warning=f"Extension path does not exist: {path}")]


@pytest.mark.rule("EXT-12")
def test_everything_knows_where_it_came_from(tmp_path: Path) -> None:
    write(tmp_path, EVERYWHERE)

    offered: tuple[Any, ...] = sources(tmp_path, **OFFERED)
    infos = [source_info_of(each) for each in offered]

    project, agent = f"{tmp_path}/project/.camshaft", f"{tmp_path}/agent"
    entry = "package:dist/e"
    assert infos == [
        SourceInfo(path=f"{tmp_path}/cli.py", source="cli", scope="temporary"),
        SourceInfo(path="builtin:second", source="builtin", scope="user"),
        SourceInfo(path=f"{project}/listed/p1.py", source="local", scope="project", base_dir=project),
        SourceInfo(path=f"{project}/extensions/p2.py", source="auto", scope="project", base_dir=project),
        SourceInfo(path=f"{agent}/listed/u1.py", source="local", scope="user", base_dir=agent),
        SourceInfo(path=f"{agent}/extensions/u2.py", source="auto", scope="user", base_dir=agent),
        SourceInfo(path=entry, source=entry, scope="user", origin="package"),
        SourceInfo(path="builtin:first", source="builtin", scope="user"),
        SourceInfo(path="builtin:second", source="builtin", scope="user"),
        SourceInfo(path="<inline:host>", source="inline", scope="temporary"),
    ]


# -- folders -----------------------------------------------------------------------------------------


@pytest.mark.rule("EXT-3", "EXT-5", "EXT-6")
def test_a_folder_gives_its_files_packages_and_lists_in_byte_order_one_level_deep(tmp_path: Path) -> None:
    listed = "[tool.camshaft]\nextensions = ['./src/y.py', 'gone.py', 'x.py']\n"
    write(tmp_path, dict.fromkeys(("b.py", "Z.py", "ä.py", "a b.py", "1.py", "_private.py", ".hidden.py", "notes.txt", "pyc.pyc"), ""))
    write(tmp_path, {f"{name}/__init__.py": "" for name in ("pack", "node_modules", "__pycache__", ".venv", "site-packages", ".git")})
    write(
        tmp_path, {"plain/deep.py": "", "listed/pyproject.toml": listed, "listed/x.py": "", "listed/src/y.py": "", "listed/__init__.py": ""}
    )
    write(tmp_path, {"nothing_of_it/pyproject.toml": "[tool.camshaft]\nextensions = ['gone.py']\n", "nothing_of_it/__init__.py": ""})
    write(tmp_path, {"other/pyproject.toml": "[project]\nname = 'x'\n", "other/x.py": ""})

    assert scan(tmp_path) == ["1.py", "Z.py", "a b.py", "b.py", "listed/src/y.py", "listed/x.py", "nothing_of_it", "pack", "ä.py"]


@pytest.mark.rule("EXT-4")
@pytest.mark.parametrize("own", [{"__init__.py": ""}, {"pyproject.toml": "[tool.camshaft]\nextensions = ['b.py']\n"}])
def test_a_folder_that_is_an_extension_itself_is_not_looked_into(tmp_path: Path, own: dict[str, str]) -> None:
    folder = write(tmp_path / "extensions", {"a.py": "", "b.py": "", **own})

    assert len(scan(folder)) == 1


@pytest.mark.rule("EXT-5")
def test_ignored_names_are_left_out_by_the_files_of_that_folder_only(tmp_path: Path) -> None:
    folder = write(tmp_path / "in" / "folder", {f"{name}.py": "" for name in "abcdef"})
    write(folder, {".gitignore": "a.py\n", ".ignore": "b.py\n", ".fdignore": "c.py\ngone/\n", "gone/__init__.py": ""})
    write(tmp_path, {".gitignore": "*\n", "in/.ignore": "d.py\n"})

    assert scan(folder) == ["d.py", "e.py", "f.py"]


@pytest.mark.rule("EXT-5")
def test_links_are_followed_and_broken_ones_and_loops_are_nothing(tmp_path: Path) -> None:
    write(tmp_path / "real", {"a.py": "", "pack/__init__.py": ""})
    folder = tmp_path / "extensions"
    folder.mkdir()
    (folder / "a.py").symlink_to(tmp_path / "real" / "a.py")
    (folder / "broken.py").symlink_to(tmp_path / "gone.py")
    (folder / "loop.py").symlink_to(folder / "loop.py")
    (folder / "pack").symlink_to(tmp_path / "real" / "pack")
    (folder / "up").symlink_to(folder)
    os.mkfifo(folder / "pipe.py")

    assert scan(folder) == ["a.py", "pack"]


@pytest.mark.rule("EXT-5")
def test_a_folder_that_is_missing_or_no_folder_gives_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"agent/extensions": "a file", "project/.camshaft/x": ""})

    assert found(tmp_path) == []
    assert scan(tmp_path / "gone") == []


@pytest.mark.rule("EXT-5")
@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_a_folder_that_cannot_be_read_gives_nothing(tmp_path: Path) -> None:
    folder = write(tmp_path / "extensions", {"a.py": ""})
    folder.chmod(0)

    assert scan(folder) == []


BAD_LISTS = {
    "no TOML": ("[tool.camshaft\n", "Expected ']' at the end of a table declaration (at line 1, column 15)"),
    "no list": ("[tool.camshaft]\nextensions = 'a.py'\n", "[tool.camshaft] extensions is 'a.py'; expected a list of paths"),
    "no paths": ("[tool.camshaft]\nextensions = [1]\n", "[tool.camshaft] extensions is [1]; expected a list of paths"),
}


@pytest.mark.parametrize(("text", "said"), BAD_LISTS.values(), ids=BAD_LISTS)
def test_a_list_that_cannot_be_understood_is_an_error_of_that_extension_only(tmp_path: Path, text: str, said: str) -> None:
    write(tmp_path, {"bad/pyproject.toml": text, "bad/__init__.py": "", "good.py": NOTE})

    noted, errors = loaded(*extensions_at(str(tmp_path), Owner(source="auto", scope="user")))

    assert noted == [f"{tmp_path}/good.py"]
    assert errors == [(f"{tmp_path}/bad", f"Failed to load extension: {tmp_path}/bad/pyproject.toml: {said}")]


@pytest.mark.rule("EXT-29")
@pytest.mark.parametrize("needed", ["camshaft", "Camshaft>=1", "camshaft [x] ; python_version > '3'"])
def test_a_folder_that_depends_on_what_the_host_provides_is_warned(tmp_path: Path, needed: str) -> None:
    text = f"[project]\ndependencies = ['httpx', \"{needed}\"]\n[tool.camshaft]\nextensions = ['a.py']\n"
    write(tmp_path, {"ext/pyproject.toml": text, "ext/a.py": ""})

    file, warning = extensions_at(f"{tmp_path}/ext", Owner(source="cli", scope="temporary"))

    assert isinstance(file, ExtensionFile)
    assert warning == LoadWarning(
        path=f"{tmp_path}/ext",
        warning='pyproject.toml lists "camshaft" among its dependencies; the host provides it, so take it out of the list',
    )


@pytest.mark.rule("EXT-29")
def test_other_dependencies_are_nobodys_affair(tmp_path: Path) -> None:
    text = "[project]\ndependencies = ['camshaft-extras', 'trio']\n[tool.camshaft]\nextensions = ['a.py']\n"
    write(tmp_path, {"ext/pyproject.toml": text, "ext/a.py": ""})

    assert scan(tmp_path / "ext") == ["a.py"]


# -- what settings take in and out ---------------------------------------------------------------------

WORDS = {
    "a glob takes out": (("!extensions/a*",), ["b.py", "pack"]),
    "a glob takes out by name": (("!**/a.py", "!*/pac?"), ["b.py"]),
    "a glob takes out by absolute path": (("!{agent}/extensions/*.py",), ["pack"]),
    "+ beats !": (("!extensions/*", "+extensions/b.py"), ["b.py"]),
    "- beats +": (("+extensions/b.py", "-extensions/b.py"), ["a.py", "pack"]),
    "- takes out a package by folder": (("-extensions/pack",), ["a.py", "b.py"]),
    "- takes out a package by file": (("-extensions/pack/__init__.py",), ["a.py", "b.py"]),
    "- is exact": (("-extensions/*",), ["a.py", "b.py", "pack"]),
    "an absolute path": (("-{agent}/extensions/a.py",), ["b.py", "pack"]),
    "nothing": (("",), ["a.py", "b.py", "pack"]),
}


@pytest.mark.rule("EXT-9", "SET-13")
@pytest.mark.parametrize(("words", "left"), WORDS.values(), ids=WORDS)
def test_words_about_what_is_found_anyway(tmp_path: Path, words: tuple[str, ...], left: list[str]) -> None:
    write(tmp_path, {f"agent/extensions/{name}": "" for name in ("a.py", "b.py", "pack/__init__.py")})

    names = found(tmp_path, user=tuple([each.format(agent=tmp_path / "agent") for each in words]))

    assert names == [f"agent/extensions/{each}" for each in left]


@pytest.mark.rule("EXT-7", "SET-13")
def test_listed_paths_are_relative_to_their_settings_and_may_be_folders_and_globs(tmp_path: Path) -> None:
    write(tmp_path, {f"agent/more/{name}": "" for name in ("b.py", "a.py", "bad.py", "pack/__init__.py", "notes.txt")})
    write(tmp_path, {"project/.camshaft/x.py": "", "elsewhere/many/1.py": "", "elsewhere/many/2.py": ""})

    names = found(tmp_path, project=("x.py",), user=("more/*.py", "!more/bad.py", "more/pack", "../elsewhere/many"))

    assert names == [
        *("project/.camshaft/x.py", "agent/more/a.py", "agent/more/b.py", "agent/more/pack"),
        *("elsewhere/many/1.py", "elsewhere/many/2.py"),
    ]


@pytest.mark.rule("EXT-9")
@pytest.mark.parametrize(
    ("project", "user", "there"),
    [
        ((), (), ["builtin:on"]),
        ((), ("+builtin:off", "-builtin:on"), ["builtin:off"]),
        (("-builtin:off", "+builtin:on"), ("+builtin:off", "-builtin:on"), ["builtin:on"]),
        ((), ("builtin:off",), ["builtin:on", "builtin:off"]),
        (("!builtin:*",), ("+builtin:off",), []),
        (("+builtin:none",), (), ["builtin:on"]),
    ],
)
def test_words_about_builtins_of_which_the_project_has_the_last(
    tmp_path: Path, project: tuple[str, ...], user: tuple[str, ...], there: list[str]
) -> None:
    builtins = (BuiltinExtension(name="on", setup=nothing), BuiltinExtension(name="off", setup=nothing, enabled=False))

    assert found(tmp_path, project=project, user=user, builtins=builtins) == there


@pytest.mark.rule("EXT-62")
def test_a_project_may_name_an_extension_of_the_user_exactly(tmp_path: Path) -> None:
    write(tmp_path, {f"agent/extensions/{name}.py": "" for name in "abc"})
    agent = f"{tmp_path}/agent"

    names = found(tmp_path, project=(f"-{agent}/extensions/a.py", f"+{agent}/extensions/b.py", "!**/c.py"), user=("!**/b.py",))

    assert names == ["agent/extensions/b.py", "agent/extensions/c.py"]


# -- installed ones ------------------------------------------------------------------------------------


@pytest.mark.rule("EXT-13")
def test_installed_extensions_are_sorted_and_can_be_taken_out(tmp_path: Path) -> None:
    entries = [Entry("z", "json", Dist("b")), Entry("b", "json", Dist("a")), Entry("a", "json", Dist("a")), Entry("y", "json", None)]

    def there(**words: Any) -> list[str]:
        return found(tmp_path, entry_points=lambda: entries, **words)

    assert there() == ["package:/y", "package:a/a", "package:a/b", "package:b/z"]
    assert there(user=("!package:a/*", "+package:a/b"), project=("-package:/y",)) == ["package:a/b", "package:b/z"]
    assert there(only_explicit=True, explicit=("package:b/z",)) == ["package:b/z"]


@pytest.mark.rule("EXT-13", "EXT-25")
def test_an_installed_extension_that_cannot_be_imported_fails_alone(tmp_path: Path) -> None:
    entries = [
        Entry("a", "no_such_module:setup"),
        Entry("b", "json"),
        Entry("c", "json:nothing.at_all"),
        Entry("d", "tests.actors.test_discovery:nothing [extra]"),
        Entry("e", "json:no"),
    ]

    noted, errors = loaded(*sources(tmp_path, entry_points=lambda: entries))

    missing = "Failed to load extension: ModuleNotFoundError: No module named 'no_such_module' (package:dist/a)"
    no_factory = "Extension does not export a valid factory function: package:dist/"
    assert noted == []
    assert errors == [("package:dist/a", missing), *[(f"package:dist/{name}", f"{no_factory}{name}") for name in "bce"]]


@pytest.mark.rule("EXT-13")
def test_the_entry_points_of_the_environment_can_be_read() -> None:
    assert [each.value for each in installed_entry_points() if each.name == "no such extension"] == []
