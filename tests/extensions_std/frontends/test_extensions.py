"""Extensions of the command line: which are loaded, trust, their flags, and what happens if they do not load.

Extensions here tell on standard error that they were set up, and what their flags are when the session starts.
"""

import json
import re
from pathlib import Path

import pytest

from tests.extensions_std.frontends.command import Ended, Place, camshaft, says, serving, texts

pytestmark = pytest.mark.slow

TELLS = """
import sys

def setup(api):
    print("loaded {name}", file=sys.stderr)
"""
FLAGS = """
import sys

def setup(api):
    api.register_flag("plan", type="boolean", description="plan first")
    api.register_flag("who", type="string", default="me")
    api.on("session_start", lambda event, ctx: print("flags", api.get_flag("plan"), api.get_flag("who"), file=sys.stderr))
"""
TRUSTS = """
import sys

def setup(api):
    print("loaded asked", file=sys.stderr)

    async def decide(event, ctx):
        ctx.ui.notify(f"asked about it: {{ctx.has_ui}} {{await ctx.ui.confirm('t', 'm')}}")
        return {{"trusted": {answer!r}, "remember": True}}

    api.on("project_trust", decide)
"""

SERVES = """
from camshaft.extensions_std.providers.scripted import ScriptedProvider, assistant

def setup(api):
    model = ScriptedProvider(name="own", api="own")
    model.set_responses([lambda request: assistant(f"I am {request.model.reference}")])
    api.register_provider(model)
"""


def tells(path: Path, name: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(TELLS.format(name=name), encoding="utf-8")


def loaded(ended: Ended) -> list[str]:
    """Names of the extensions that were set up, in order."""
    return [line.removeprefix("loaded ") for line in ended.err.splitlines() if line.startswith("loaded ")]


def everywhere(where: Place) -> None:
    """One extension for each place."""
    tells(where.project / "cli.py", "cli")
    tells(where.project / ".camshaft" / "extensions" / "p.py", "project")
    tells(where.project / ".camshaft" / "more" / "q.py", "project, listed")
    tells(where.agent_dir / "extensions" / "u.py", "user")
    tells(where.agent_dir / "more" / "v.py", "user, listed")
    where.write(".camshaft/settings.json", json.dumps({"extensions": ["more/v.py"]}))
    (where.project / ".camshaft" / "settings.json").write_text(json.dumps({"extensions": ["more/q.py"]}), encoding="utf-8")


@pytest.mark.rule("EXT-1", "EXT-7", "EXT-10", "TRUST-2", "TRUST-3")
@pytest.mark.parametrize(
    ("options", "names"),
    [
        (("-e", "cli.py"), ["cli", "user, listed", "user"]),
        (("-a", "-e", "cli.py"), ["cli", "project, listed", "project", "user, listed", "user"]),
        (("-a", "-na"), ["user, listed", "user"]),
        (("-a", "-ne", "-e", "cli.py"), ["cli"]),
    ],
)
async def test_extensions_load_from_their_places_in_order(where: Place, options: tuple[str, ...], names: list[str]) -> None:
    everywhere(where)

    async with serving(where, says("hello")):
        ended = await camshaft(where, *options, "hi")

    assert (ended.code, ended.out, loaded(ended)) == (0, "hello\n", names)


@pytest.mark.rule("EXT-62", "EXT-63", "EXT-64", "TRUST-5", "TRUST-8")
@pytest.mark.parametrize(("answer", "names"), [("yes", ["asked", "project"]), ("no", ["asked"])])
async def test_an_extension_is_asked_once_whether_the_project_is_trusted(where: Place, answer: str, names: list[str]) -> None:
    tells(where.project / ".camshaft" / "extensions" / "p.py", "project")
    where.write(".camshaft/extensions/a.py", TRUSTS.format(answer=answer))

    async with serving(where, says("one"), says("two")):
        asked = await camshaft(where, "hi")
        where.write(".camshaft/extensions/a.py", TELLS.format(name="asked"))
        remembered = await camshaft(where, "hi")

    assert (asked.out, remembered.out) == ("one\n", "two\n")
    assert (loaded(asked), loaded(remembered)) == (names, names)
    assert "Warning: asked about it: False False" in asked.err.splitlines()
    assert json.loads((where.agent_dir / "trust.json").read_text()) == {str(where.project): answer == "yes"}


@pytest.mark.rule("TRUST-6")
async def test_a_damaged_store_of_decisions_ends_the_start_and_stays_as_it_is(where: Place) -> None:
    everywhere(where)
    store = where.write(".camshaft/trust.json", "{")

    ended = await camshaft(where, "hi")

    assert ended.code == 1
    assert f"Error: Invalid trust store {store}: " in ended.err
    assert store.read_text() == "{"


@pytest.mark.rule("API-8", "CLI-1")
@pytest.mark.parametrize(
    ("words", "flags", "prompt"),
    [
        (("hi",), "flags None me", "hi"),
        (("--plan", "hi"), "flags True me", "hi"),
        (("--plan=false", "--who=you", "hi"), "flags False you", "hi"),
        (("--who", "you", "hi"), "flags None you", "hi"),
        (("--who", "a", "--who", "b", "--", "--plan"), "flags None b", "--plan"),
    ],
)
async def test_flags_of_extensions_are_read_and_a_boolean_one_takes_no_word(
    where: Place, words: tuple[str, ...], flags: str, prompt: str
) -> None:
    where.write(".camshaft/extensions/f.py", FLAGS)

    async with serving(where, says("hello")) as server:
        ended = await camshaft(where, *words)

    assert (ended.code, ended.out) == (0, "hello\n")
    assert flags in ended.err.splitlines()
    assert texts(json.loads(server.requests[0].body)["messages"][-1]) == prompt


@pytest.mark.rule("API-8", "CLI-1", "EXT-26")
@pytest.mark.parametrize(
    ("words", "errors"),
    [
        (("--nix", "--plan", "--nax=3", "hi"), ["Error: Unknown options: --nix, --nax"]),
        (("hi", "--who"), ['Error: Extension flag "--who" requires a value']),
        (("--who", "@file", "hi"), ['Error: Extension flag "--who" requires a value']),
        (("--plan=maybe", "hi"), ["""Error: Extension flag "--plan" is true or false, not 'maybe'"""]),
    ],
)
async def test_a_flag_that_cannot_be_read_ends_the_start(where: Place, words: tuple[str, ...], errors: list[str]) -> None:
    where.write(".camshaft/extensions/f.py", FLAGS)

    ended = await camshaft(where, *words)

    assert (ended.code, ended.out, ended.err.splitlines()) == (1, "", errors)
    assert where.session_files() == []


@pytest.mark.rule("EXT-26", "EXT-30", "CLI-13")
@pytest.mark.parametrize("mode", ["text", "json"])
async def test_what_does_not_load_ends_the_start_and_is_told_once(where: Place, mode: str) -> None:
    where.write(".camshaft/extensions/a.py", FLAGS)
    where.write(".camshaft/extensions/b.py", FLAGS)
    where.write(".camshaft/extensions/c.py", "def setup(api):\n    raise ValueError('not today')\n")

    ended = await camshaft(where, "--mode", mode, "-e", "none.py", "hi")

    folder = where.agent_dir / "extensions"
    assert (ended.code, ended.out, where.session_files()) == (1, "", [])
    assert ended.err.splitlines() == [
        f'Error: Failed to load extension "{where.project}/none.py": Extension path does not exist: {where.project}/none.py',
        f'Error: Failed to load extension "{folder}/c.py": ValueError: not today ({folder}/c.py, line 2)',
        f'Error: Failed to load extension "{folder}/b.py": Flag "--plan" conflicts with {folder}/a.py',
        f'Error: Failed to load extension "{folder}/b.py": Flag "--who" conflicts with {folder}/a.py',
        'Start without extensions using "camshaft -ne".',
    ]


@pytest.mark.rule("API-8", "EXT-26")
async def test_help_names_the_flags_and_what_does_not_load(where: Place) -> None:
    where.write(".camshaft/extensions/f.py", FLAGS + "\nprint('noise')\n")

    ended = await camshaft(where, "--help", "-e", "none.py")

    assert ended.code == 0
    assert ended.out.splitlines()[-3:] == ["Flags of extensions:", "  --plan       plan first", "  --who VALUE"]
    assert f'Error: Failed to load extension "{where.project}/none.py"' in ended.err


async def test_help_without_extensions_says_nothing_of_flags(where: Place) -> None:
    ended = await camshaft(where, "--help")

    assert (ended.code, ended.err) == (0, "")
    assert "Flags of extensions" not in ended.out


@pytest.mark.rule("SDK-6", "CLI-12")
@pytest.mark.parametrize("words", [("--model", "own/faux-1"), ("--model", "faux-1"), ("--provider", "own", "--model", "faux-1")])
async def test_a_model_of_an_extension_is_chosen_like_any_other(where: Place, words: tuple[str, ...]) -> None:
    where.write(".camshaft/extensions/s.py", SERVES)

    async with serving(where) as server:
        ended = await camshaft(where, *words, "hi")

    assert (ended.code, ended.out, server.requests) == (0, "I am own/faux-1\n", [])


async def test_a_model_that_no_extension_has_ends_the_start_with_those_that_there_are(where: Place) -> None:
    where.write(".camshaft/extensions/s.py", SERVES)

    ended = await camshaft(where, "--model", "own/gone", "hi")

    assert (ended.code, ended.out, where.session_files()) == (1, "", [])
    assert re.fullmatch("Error: no model 'own/gone'; the models are: .*, own/faux-1\n", ended.err)
