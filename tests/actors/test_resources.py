"""Skills and prompt templates in folders: which files count, what they say, what is told of the rest."""

import os
import time
from pathlib import Path
from typing import Any, Final

import pytest

from camshaft.actors.resources.discovery import ResourcePlaces, discover, with_discovered
from camshaft.actors.resources.found import Owner, Resources
from camshaft.actors.resources.skills import STEPS_MAX, skills_at
from camshaft.actors.resources.templates import templates_at
from camshaft.kernel.settings_merge import ResourceLists
from camshaft.kernel.tools import SourceInfo

OWNER: Final = Owner(source="auto", scope="user")


def write(path: Path, text: str | bytes = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def skill(path: Path, name: str | None = None, description: str = "d", more: str = "") -> Path:
    head = "" if name is None else f"name: {name}\n"
    return write(path, f"---\n{head}description: {description}\n{more}---\nBody.\n")


def names(root: Path) -> list[str]:
    return [found.skill.name for found in skills_at(str(root), OWNER) if found.skill is not None]


def told(root: Path) -> list[str]:
    return [each.message.removeprefix(f"{root}/") for found in skills_at(str(root), OWNER) for each in found.diagnostics]


# -- which files are skills --------------------------------------------------------------


@pytest.mark.rule("RES-5")
def test_a_folder_with_a_skill_file_is_one_skill_and_others_are_searched(tmp_path: Path) -> None:
    skill(tmp_path / "a" / "SKILL.md")
    skill(tmp_path / "a" / "inner" / "SKILL.md", "hidden-by-outer")
    skill(tmp_path / "b" / "c" / "d" / "SKILL.md")
    skill(tmp_path / "loose.md", "loose")
    skill(tmp_path / "b" / "notes.md", "no-skill")
    skill(tmp_path / ".dot" / "SKILL.md", "dotted")
    skill(tmp_path / ".dot.md", "dotted-file")
    skill(tmp_path / "node_modules" / "x" / "SKILL.md", "dependency")
    skill(tmp_path / "b" / "node_modules" / "x" / "SKILL.md", "dependency-below")

    assert names(tmp_path) == ["a", "d", "loose"]


@pytest.mark.rule("RES-5")
def test_a_root_that_is_a_skill_is_the_only_one(tmp_path: Path) -> None:
    skill(tmp_path / "SKILL.md", "root")
    skill(tmp_path / "a" / "SKILL.md")
    skill(tmp_path / "loose.md", "loose")

    assert names(tmp_path) == ["root"]


@pytest.mark.rule("RES-5")
@pytest.mark.parametrize("file", [".gitignore", ".ignore", ".fdignore"])
def test_ignore_files_in_the_root_count_and_those_above_do_not(tmp_path: Path, file: str) -> None:
    root = tmp_path / "skills"
    write(tmp_path / file, "b\n")
    write(root / file, "a\nloose.md\n")
    for name in ("a", "b", "c"):
        skill(root / name / "SKILL.md")
    skill(root / "loose.md", "loose")
    write(root / "c" / file, "inner\n")
    skill(root / "c2" / "inner" / "SKILL.md")

    assert names(root) == ["b", "c", "inner"]


@pytest.mark.rule("RES-5")
def test_links_are_followed_and_broken_or_circular_ones_ignored(tmp_path: Path) -> None:
    root = tmp_path / "skills"
    skill(tmp_path / "elsewhere" / "linked" / "SKILL.md")
    skill(tmp_path / "file.md", "file")
    root.mkdir()
    (root / "dir").symlink_to(tmp_path / "elsewhere")
    (root / "file.md").symlink_to(tmp_path / "file.md")
    (root / "broken.md").symlink_to("/nix")
    (root / "circle").symlink_to(root)
    (root / "self").symlink_to(root / "self")

    assert (names(root), told(root)) == (["linked", "file"], [])


@pytest.mark.rule("RES-5")
@pytest.mark.slow
def test_a_deep_and_a_crowded_folder_cost_a_bounded_time(tmp_path: Path) -> None:
    deep = tmp_path / "deep" / "/".join(["d"] * 200)
    skill(deep / "SKILL.md")
    skill(tmp_path / "deep" / "a" / "SKILL.md")
    crowded = tmp_path / "crowded"
    crowded.mkdir()
    for number in range(STEPS_MAX + 10):
        os.close(os.open(crowded / f"f{number}", os.O_CREAT))
    started = time.monotonic()

    found = (names(tmp_path / "deep"), names(crowded), told(crowded))

    assert found == (["a"], [], [f"{crowded}: has more than {STEPS_MAX} entries; the rest was not searched for skills"])
    assert time.monotonic() - started < 10


def test_where_there_is_nothing_nothing_is_found(tmp_path: Path) -> None:
    assert (skills_at(str(tmp_path / "nix"), OWNER), templates_at(str(tmp_path / "nix"), OWNER)) == ((), ())


# -- what a skill says -------------------------------------------------------------------


@pytest.mark.rule("RES-6", "EXT-12")
def test_a_skill_says_its_name_its_description_and_whether_models_are_told(tmp_path: Path) -> None:
    path = write(
        tmp_path / "dir" / "SKILL.md",
        b"\xef\xbb\xbf---\r\nname: 'my-skill'\r\ndescription: >\r\n  Two\r\n  lines\r\ndisable-model-invocation: true\r\n---\r\nBody",
    )

    (found,) = [each.skill for each in skills_at(str(tmp_path), OWNER)]

    assert found is not None
    assert (found.name, found.description.strip(), found.disable_model_invocation) == ("my-skill", "Two lines", True)
    assert (found.file_path, found.base_dir) == (str(path), str(path.parent))
    assert found.source_info == SourceInfo(path=str(path), source="auto", scope="user")


@pytest.mark.rule("RES-6")
@pytest.mark.parametrize(("written", "hidden"), [("true", True), ("'true'", False), ("yes", False), ("1", False), ("false", False)])
def test_only_a_plain_true_hides_a_skill(tmp_path: Path, written: str, hidden: bool) -> None:
    skill(tmp_path / "a" / "SKILL.md", more=f"disable-model-invocation: {written}\n")

    assert [each.skill.disable_model_invocation for each in skills_at(str(tmp_path), OWNER) if each.skill] == [hidden]


@pytest.mark.rule("RES-7")
@pytest.mark.parametrize(
    ("name", "description", "said"),
    [("Bad_Name", "d", "Bad_Name"), ("-a", "d", "hyphen"), ("x" * 65, "d", "65"), ("a", "x" * 1025, "1025")],
)
def test_an_odd_skill_is_loaded_with_a_warning(tmp_path: Path, name: str, description: str, said: str) -> None:
    skill(tmp_path / "s" / "SKILL.md", name, description)

    (warning,) = told(tmp_path)

    assert (names(tmp_path), warning.startswith("s/SKILL.md: "), said in warning) == ([name], True, True)


BAD_SKILLS: Final[dict[str, bytes]] = {
    "no frontmatter": b"Just text",
    "no description": b"---\nname: a\n---\n",
    "a blank description": b"---\ndescription: '  '\n---\n",
    "a number": b"---\ndescription: 5\n---\n",
    "broken YAML": b"---\ndescription: [\n---\n",
    "a list": b"---\n- a\n---\n",
    "a key twice": b"---\ndescription: a\ndescription: b\n---\n",
    "an unknown alias": b"---\ndescription: *x\n---\n",
    "deep YAML": b"---\ndescription: " + b"[" * 400 + b"\n---\n",
    "deeper YAML": b"---\ndescription: " + b"[" * 20_000 + b"\n---\n",
    "deep block YAML": b"---\ndescription:\n" + b"".join([b" " * n + b"- \n" for n in range(300)]) + b"---\n",
    "nested lists in a row": b"---\ndescription: a\nx: " + b"- " * 20_000 + b"\n---\n",
    "long YAML": b"---\ndescription: " + b"x" * 70_000 + b"\n---\n",
    "binary": bytes(range(256)) * 10,
}


@pytest.mark.rule("RES-7")
@pytest.mark.parametrize("content", BAD_SKILLS.values(), ids=BAD_SKILLS)
def test_a_skill_without_a_description_is_not_loaded_with_a_warning_unless_it_is_a_loose_file(tmp_path: Path, content: bytes) -> None:
    write(tmp_path / "a" / "SKILL.md", content)
    write(tmp_path / "loose.md", content)

    (warning,) = told(tmp_path)

    assert (names(tmp_path), warning.startswith("a/SKILL.md: ")) == ([], True)


@pytest.mark.rule("RES-7")
def test_aliases_and_tags_make_nothing(tmp_path: Path) -> None:
    bomb = "a: &a [x,x]\n" + "".join([f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi")])
    write(tmp_path / "a" / "SKILL.md", f"---\n{bomb}description: !!python/object/apply:os.system ['true']\n---\n")
    write(tmp_path / "b" / "SKILL.md", f"---\n{bomb}m: &m\n  k: v\nn:\n  <<: [{','.join(['*m'] * 9)}]\ndescription: fine\n---\n")
    started = time.monotonic()

    assert names(tmp_path) == ["b"]
    assert time.monotonic() - started < 2


@pytest.mark.rule("RES-7")
def test_a_huge_file_and_a_pipe_are_not_read(tmp_path: Path) -> None:
    write(tmp_path / "a" / "SKILL.md", b"x" * (1024 * 1024 + 1))
    (tmp_path / "b").mkdir()
    os.mkfifo(tmp_path / "b" / "SKILL.md")

    assert (names(tmp_path), [each.partition(": ")[0] for each in told(tmp_path)]) == ([], ["a/SKILL.md"])


# -- templates ---------------------------------------------------------------------------


@pytest.mark.rule("RES-10")
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("  First line\nmore\n", ("  First line", None, "  First line\nmore\n")),
        ("\n\n" + "x" * 61, ("x" * 60 + "...", None, "\n\n" + "x" * 61)),
        ("---\ndescription: D\nargument-hint: <what>\n---\n\nBody\n", ("D", "<what>", "Body")),
        ("---\na: 1\n---\n Body \n", ("Body", None, "Body")),
        ("---\ndescription: yes\n---\nBody", ("yes", None, "Body")),
        ("---\ndescription: 2020-01-01\n---\nBody", ("2020-01-01", None, "Body")),
        ("---\ndescription: 1.5\n---\nBody", ("Body", None, "Body")),
        ("", ("", None, "")),
        ("\ufeffa\r\nb", ("a", None, "a\nb")),
    ],
)
def test_a_template_is_described_by_itself_or_by_its_first_line(tmp_path: Path, content: str, expected: Any) -> None:
    write(tmp_path / "fix.md", content)

    (found,) = [each.template for each in templates_at(str(tmp_path), OWNER)]

    assert found is not None
    assert (found.name, (found.description, found.argument_hint, found.content)) == ("fix", expected)


@pytest.mark.rule("RES-10")
def test_only_markdown_files_directly_in_a_root_are_templates(tmp_path: Path) -> None:
    for path in ("b.md", "a.b.md", "c.txt", "d.MD", "deep/e.md"):
        write(tmp_path / path, "x")
    (tmp_path / "folder.md").mkdir()
    (tmp_path / "broken.md").symlink_to("/nix")
    write(tmp_path / "bad.md", "---\n[\n---\nx")
    write(tmp_path / "huge.md", "x" * (1024 * 1024 + 1))

    found = templates_at(str(tmp_path), OWNER)

    assert [each.template.name for each in found if each.template is not None] == ["a.b", "b"]
    assert [each.path for found_ in found for each in found_.diagnostics] == [str(tmp_path / "bad.md"), str(tmp_path / "huge.md")]


# -- places and their order --------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a repository in it, in which we work."""
    (tmp_path / "home" / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "home" / "repo" / "sub").mkdir()
    return tmp_path / "home"


def places(home: Path, **more: Any) -> ResourcePlaces:
    given = {"agent_dir": str(home / ".camshaft"), "cwd": str(home / "repo" / "sub"), "home": str(home), "is_trusted": True, **more}
    return ResourcePlaces(**given)


def described(found: Resources) -> list[tuple[str, str]]:
    return [(each.name, each.description) for each in found.skills]


@pytest.mark.rule("RES-1", "RES-4")
def test_the_first_of_a_name_counts_and_the_others_are_told(home: Path) -> None:
    project = home / "repo" / "sub" / ".camshaft"
    lists = {
        "project": ResourceLists(skills=("own",)),
        "user": ResourceLists(skills=("mine",)),
        "packages": (str(home / "package"),),
        "skill_paths": ("given",),
    }
    roots = [
        (project / "own", "project entry"),
        (project / "skills", "project"),
        (home / "repo" / "sub" / ".agents" / "skills", "shared here"),
        (home / "repo" / ".agents" / "skills", "shared above"),
        (home / ".camshaft" / "mine", "user entry"),
        (home / ".camshaft" / "skills", "user"),
        (home / ".agents" / "skills", "shared of the user"),
        (home / "package" / "skills", "package"),
        (home / "repo" / "sub" / "given", "given"),
    ]
    paths = [skill(root / "same" / "SKILL.md", "same", text) for root, text in roots]
    found = [discover(places(home, **lists))]
    while len(found) < len(paths):
        paths[len(found) - 1].unlink()
        found.append(discover(places(home, **lists)))

    assert [described(each) for each in found] == [[("same", text)] for _, text in roots]
    lost = [(each.type, each.path, each.winner_path) for each in found[0].diagnostics]
    assert lost == [("collision", str(path), str(paths[0])) for path in paths[1:]]


@pytest.mark.rule("RES-4", "TRUST-4")
def test_without_trust_nothing_of_the_project_counts(home: Path) -> None:
    skill(home / "repo" / "sub" / ".camshaft" / "skills" / "a" / "SKILL.md")
    skill(home / "repo" / ".agents" / "skills" / "b" / "SKILL.md")
    skill(home / ".agents" / "skills" / "c" / "SKILL.md")
    write(home / "repo" / "sub" / ".camshaft" / "prompts" / "p.md", "x")

    found = discover(places(home, is_trusted=False, project=ResourceLists(skills=("skills",))))

    assert ([each.name for each in found.skills], found.templates) == (["c"], ())


@pytest.mark.rule("RES-4")
def test_shared_skills_end_at_the_repository(home: Path) -> None:
    skill(home.parent / ".agents" / "skills" / "outside" / "SKILL.md")
    skill(home / "repo" / ".agents" / "skills" / "inside" / "SKILL.md")

    inside = discover(places(home))
    (home / "repo" / ".git").rmdir()

    assert [each.name for each in inside.skills] == ["inside"]
    assert [each.name for each in discover(places(home)).skills] == ["inside", "outside"]


@pytest.mark.rule("RES-2")
def test_a_file_that_is_reached_twice_is_loaded_once_in_silence(home: Path) -> None:
    path = skill(home / ".camshaft" / "skills" / "a" / "SKILL.md")
    (home / ".agents").mkdir()
    (home / ".agents" / "skills").symlink_to(home / ".camshaft" / "skills")

    found = discover(places(home, skill_paths=(str(path), str(path.parent))))

    assert ([each.name for each in found.skills], found.diagnostics) == (["a"], ())


@pytest.mark.rule("SET-13")
@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (("extra",), ["x", "y", "auto"]),
        (("extra/x",), ["x", "auto"]),
        (("extra/x/SKILL.md",), ["x", "auto"]),
        (("~/.camshaft/extra",), ["x", "y", "auto"]),
        (("extra/*",), ["x", "y", "auto"]),
        (("extra/[xz]",), ["x", "auto"]),
        (("extra", "!extra/x"), ["y", "auto"]),
        (("!skills/*",), []),
        (("!**/auto",), []),
        (("!skills/*", "+skills/auto"), ["auto"]),
        (("+extra/x",), ["x", "auto"]),
        (("extra", "-extra/x", "-skills/auto/SKILL.md"), ["y"]),
        (("skills", "-skills/auto", "+skills/auto"), []),
    ],
)
def test_entries_of_settings_include_and_leave_out(home: Path, entries: tuple[str, ...], expected: list[str]) -> None:
    for path in ("extra/x", "extra/y", "skills/auto"):
        skill(home / ".camshaft" / path / "SKILL.md")

    found = discover(places(home, user=ResourceLists(skills=entries)))

    assert ([each.name for each in found.skills], found.diagnostics) == (expected, ())


@pytest.mark.rule("SET-13", "SDK-7")
def test_a_path_that_is_not_there_is_told(home: Path) -> None:
    found = discover(places(home, user=ResourceLists(prompts=("nix",)), skill_paths=("gone",)))

    assert sorted([each.message for each in found.diagnostics]) == [
        f"{home}/.camshaft/nix: Prompt template path does not exist",
        f"{home}/repo/sub/gone: Skill path does not exist",
    ]


@pytest.mark.rule("RES-10")
def test_templates_come_from_their_own_folders_and_named_paths_count_without_discovery(home: Path) -> None:
    write(home / ".camshaft" / "prompts" / "a.md", "user")
    write(home / "repo" / "sub" / ".camshaft" / "prompts" / "a.md", "project")
    skill(home / ".camshaft" / "skills" / "s" / "SKILL.md")
    given = write(home / "given.md", "given")

    both = discover(places(home, template_paths=(str(given),)))
    alone = discover(places(home, template_paths=(str(given),), is_without_templates=True, is_without_skills=True))

    assert [(each.name, each.content) for each in both.templates] == [("a", "project"), ("given", "given")]
    assert ([each.name for each in alone.templates], alone.skills) == (["given"], ())


@pytest.mark.rule("RES-3")
def test_what_extensions_name_comes_last_and_a_relative_path_starts_at_the_extension(home: Path) -> None:
    skill(home / ".camshaft" / "skills" / "a" / "SKILL.md")
    extension = write(home / "ext" / "main.py")
    skill(home / "ext" / "skills" / "a" / "SKILL.md")
    skill(home / "ext" / "skills" / "b" / "SKILL.md")
    write(home / "repo" / "sub" / "t.md", "x")
    before = discover(places(home))

    named = [(str(extension), "skills"), (str(extension), "gone")]
    after = with_discovered(before, named, [("<inline:x>", "t.md")], cwd=str(home / "repo" / "sub"), home=str(home))

    assert ([each.name for each in after.skills], [each.name for each in after.templates]) == (["a", "b"], ["t"])
    assert after.skills[0] is before.skills[0]
    assert [each.type for each in after.diagnostics] == ["warning", "collision"]
