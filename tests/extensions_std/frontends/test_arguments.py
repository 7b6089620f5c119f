"""The grammar of the command line (CLI-1 to CLI-6, CLI-18, CLI-21)."""

import subprocess
import sys
from typing import Any

import pytest

from camshaft.extensions_std.frontends.arguments import Arguments, BadArguments, parse
from camshaft.extensions_std.frontends.options import OPTIONS, split
from tests.house.sources import ROOT

UNDERSTOOD: list[tuple[list[str], dict[str, Any]]] = [
    ([], {}),
    (["one", "two"], {"messages": ("one", "two")}),
    (["@a", "one", "--", "@b", "--not", "-x"], {"files": ("a", "b"), "messages": ("one", "--not", "-x")}),
    (["-p", "one"], {"print_": True, "messages": ("one",)}),
    (["-p", "---", "one"], {"print_": True, "messages": ("---", "one")}),
    (["-p", "@a"], {"print_": True, "files": ("a",)}),
    (["-p", "-c"], {"print_": True, "continue_": True}),
    (["-"], {"messages": ("-",)}),
    (["--mode", "json", "--mode", "text"], {"mode": "text", "print_": True}),
    (["--model", "a", "--model=b:high"], {"model": "b:high"}),
    (["--model", "-x"], {"model": "-x"}),
    (["--models", "a, b:high,", "--api-key", "k"], {"models": ("a", "b:high"), "api_key": "k"}),
    (["--list-models"], {"list_models": ""}),
    (["--list-models", "son", "--offline"], {"list_models": "son", "offline": True}),
    (["--list-models", "--offline"], {"list_models": "", "offline": True}),
    (["--list-models=a b"], {"list_models": "a b"}),
    (["-e", "a", "--extension=b"], {"extension": ("a", "b")}),
    (["--append-system-prompt", "a", "--append-system-prompt", "b"], {"append_system_prompt": ("a", "b")}),
    (["-t", "read, ls ,", "-xt", "a", "-xt", "b,c"], {"tools": ("read", "ls"), "exclude_tools": ("a", "b", "c")}),
    (["--tools", ""], {"tools": ()}),
    (["-nt", "-nbt", "-ne", "-nc"], {"no_tools": True, "no_builtin_tools": True, "no_extensions": True, "no_context_files": True}),
    (["run", "the", "tests"], {"messages": ("run", "the", "tests")}),
    (["run"], {"messages": ("run",)}),
    (["log", "in", "please"], {"messages": ("log", "in", "please")}),
    (["--", "resume"], {"messages": ("resume",)}),
    (["-p", "resume"], {"print_": True, "messages": ("resume",)}),
    (["demo"], {"demo": True}),
    (["demo", "--no-extensions"], {"demo": True, "no_extensions": True}),
    (["demo", "the", "thing"], {"messages": ("demo", "the", "thing")}),
]

REFUSED: list[tuple[list[str], list[str]]] = [
    (["--a", "--b=1", "-z"], ["Unknown options: --a, --b, -z"]),
    (["--verbose=yes"], ["Unknown option: --verbose=yes"]),
    (["hi", "--session"], ["Unknown option: --session (without its value, PATH|ID)"]),
    (["--mode"], ["--mode requires text, json, or rpc"]),
    (["--mode", "xml", "--nix"], ["Unknown option: --nix", 'Invalid mode "xml". Valid values: text, json, rpc']),
    (["--provider", "p"], ["--provider requires --model (for example: --provider p --model <pattern>)"]),
    (["--api-key", "k"], ["--api-key requires a model to be specified via --model, --provider/--model, or --models"]),
    (["--api-key", " ", "--model", "m"], ["--api-key requires a key"]),
    (["-c", "--session", "x"], ["--session cannot be combined with --continue"]),
    (
        ["--session-id", "a", "--session", "x", "-c"],
        [f"--session-id cannot be combined with {other}" for other in ("--session", "--continue")],
    ),
    (
        ["--fork", "a", "--session", "x", "-c", "--no-session", "--session-id", "b"],
        [f"--fork cannot be combined with {other}" for other in ("--session", "--continue", "--no-session")],
    ),
    (["-t", "a,+b"], ["--tools: tool names cannot be mixed with +name or -name entries"]),
    (["-t", "+a,-b*"], ["--tools: +name and -name entries take exact tool names, not patterns: -b*"]),
    (["--demo-project", "x"], ["--demo-project requires --demo"]),
]


@pytest.mark.parametrize(("words", "fields"), UNDERSTOOD, ids=[" ".join(words) for words, _fields in UNDERSTOOD])
def test_arguments_are_understood(words: list[str], fields: dict[str, Any]) -> None:
    assert parse(words) == Arguments(**fields)


@pytest.mark.parametrize(("words", "faults"), REFUSED, ids=[" ".join(words) for words, _faults in REFUSED])
def test_every_fault_is_told_at_once(words: list[str], faults: list[str]) -> None:
    with pytest.raises(BadArguments) as refused:
        parse(words)

    assert list(refused.value.faults) == faults


FLAGGED: list[tuple[list[str], dict[str, Any]]] = [
    (["--plan", "one"], {"flags": {"plan": True}, "messages": ("one",)}),
    (["--plan=false", "--plan=true"], {"flags": {"plan": True}}),
    (["--who", "one", "two"], {"flags": {"who": "one"}, "messages": ("two",)}),
    (["--who="], {"flags": {"who": ""}}),
]


@pytest.mark.rule("API-8")
@pytest.mark.parametrize(("words", "fields"), FLAGGED, ids=[" ".join(words) for words, _fields in FLAGGED])
def test_flags_of_extensions_are_understood(words: list[str], fields: dict[str, Any]) -> None:
    assert parse(words, {"plan": "boolean", "who": "string"}) == Arguments(**fields)


@pytest.mark.rule("API-8")
def test_while_flags_are_not_known_every_long_option_may_be_one_and_takes_nothing() -> None:
    parsed = parse(["--nix", "one", "--who=two", "-p", "three"], None)

    assert (parsed.flags, parsed.messages) == ({"nix": True, "who": "two"}, ("one", "three"))


@pytest.mark.parametrize("words", [["-z"], ["--mode", "xml"], ["--nix", "-z"]])
def test_other_faults_are_told_before_flags_are_known(words: list[str]) -> None:
    with pytest.raises(BadArguments):
        parse(words, None)


@pytest.mark.parametrize("word", ["resume", "supervise", "serve", "mcp-serve", "log", "export"])
@pytest.mark.parametrize("rest", [[], ["--all"]])
def test_a_subcommand_of_a_later_version_is_no_prompt(word: str, rest: list[str]) -> None:
    with pytest.raises(BadArguments, match=f'Subcommand "{word}" is not available'):
        parse([word, *rest])


def test_an_unknown_level_is_ignored_with_a_warning() -> None:
    parsed = parse(["--thinking", "very", "hi"])

    assert (parsed.thinking, parsed.messages) == (None, ("hi",))
    assert parsed.warnings == ('Invalid thinking level "very". Valid values: off, minimal, low, medium, high, xhigh, max',)


def test_every_option_of_the_table_is_split_by_all_its_names() -> None:
    written = [(name, names[0], wants) for names, wants, _help in OPTIONS for name in names]

    found = [split([name, "value"] if wants else [name]) for name, _first, wants in written]

    assert found == [[(first, "value" if wants else "")] for _name, first, wants in written]


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--version", "--help", "-v", "-h"])
def test_a_question_about_the_program_loads_nothing_of_it(option: str) -> None:
    program = (
        f"import sys; sys.argv = ['camshaft', {option!r}]; from camshaft.__main__ import main; main();"
        "print(*[name for name in sys.modules if name in ('attrs', 'attr', 'trio', 'typing') or name.startswith('camshaft.kernel')])"
    )

    shown = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, env={"PYTHONPATH": str(ROOT / "src")})

    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.splitlines()[-1] == ""
