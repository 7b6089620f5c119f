"""What bad input gets: exit code, the parts of the message a person needs, files as they were, no traceback."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import attrs
import pytest

from tests.extensions_std.frontends.command import Place, calls, camshaft, chunk, messages, running, says, serving
from tests.extensions_std.providers.sse_server import Reply

pytestmark = pytest.mark.slow

HEADER: Final = '{"type":"session","version":3,"id":"0a","timestamp":"2026-01-01T00:00:00.000Z","cwd":"%s"}\n'


@attrs.frozen(kw_only=True)
class Row:
    """One kind of bad input. `{home}` and `{project}` stand for the folders."""

    name: str
    arguments: tuple[str, ...]
    says: tuple[str, ...]
    """Parts of standard error."""
    code: int = 1
    file: str | None = None
    """A file of the home, and its text, which must stay as it is."""
    text: str = ""


ROWS: Final = (
    Row(name="unknown option", arguments=("--nix", "hi"), says=("Error: Unknown option: --nix",)),
    Row(name="unknown options", arguments=("--nix", "--nax", "hi"), says=("Error: Unknown options: --nix, --nax",)),
    Row(name="option of a later version", arguments=("--resume", "x"), says=("Error: Unknown option: --resume",)),
    Row(name="value missing", arguments=("hi", "--model"), says=("Error: Unknown option: --model",)),
    Row(name="mode missing", arguments=("hi", "--mode"), says=("Error: --mode requires text, json, or rpc",)),
    Row(name="bad mode", arguments=("--mode", "x"), says=('Error: Invalid mode "x". Valid values: text, json, rpc',)),
    Row(name="file in rpc", arguments=("--mode", "rpc", "@x"), says=("Error: @file arguments are not supported in RPC mode",)),
    Row(name="demo in rpc", arguments=("--mode", "rpc", "--demo"), says=("Error: --demo cannot be combined with --mode rpc",)),
    Row(name="subcommand", arguments=("serve",), says=('Error: Subcommand "serve" is not available',)),
    Row(name="provider alone", arguments=("--provider", "local", "hi"), says=("Error: --provider requires --model",)),
    Row(name="mixed tools", arguments=("--tools", "read,+bash", "hi"), says=("Error: --tools: tool names cannot be mixed",)),
    Row(name="tool patterns", arguments=("--tools", "+b*", "hi"), says=("take exact tool names, not patterns: +b*",)),
    Row(name="two sessions", arguments=("-c", "--session-id", "a", "hi"), says=("--session-id cannot be combined with --continue",)),
    Row(name="bad id", arguments=("--session-id", "-", "hi"), says=("Error: Session id must be non-empty",)),
    Row(name="empty name", arguments=("--name", " ", "hi"), says=("Error: --name requires a non-empty value",)),
    Row(
        name="unknown provider", arguments=("--provider", "nix", "--model", "m1", "hi"), says=('Unknown provider "nix". Use --list-models',)
    ),
    Row(name="unknown model", arguments=("--model", "nix", "hi"), says=('Error: Model "nix" not found. Use --list-models',)),
    Row(name="no key", arguments=("--model", "openai/gpt-4o", "hi"), says=("Error: No API key found for openai", "OPENAI_API_KEY")),
    Row(name="missing file", arguments=("@nix.txt", "hi"), says=("Error: File not found: {project}/nix.txt",)),
    Row(name="folder as file", arguments=("@.", "hi"), says=("Error: Cannot read file: {project}: ",)),
    Row(name="unknown session to copy", arguments=("--fork", "x", "hi"), says=("Error: No session found matching 'x'",)),
    Row(name="unknown session", arguments=("--session", "nix", "hi"), says=("Error: No session found matching 'nix'",)),
    Row(
        name="session without header",
        arguments=("--session", "{home}/s.jsonl", "hi"),
        says=("Error: Session file is not a valid camshaft session: {home}/s.jsonl",),
        file="s.jsonl",
        text='{"type":"message"}\n',
    ),
    Row(
        name="foreign file as session",
        arguments=("--session", "{home}/s.jsonl", "hi"),
        says=("Error: Session file is not a valid camshaft session: {home}/s.jsonl",),
        file="s.jsonl",
        text="# a page\n",
    ),
    Row(
        name="directory of the session gone",
        arguments=("--session", "{home}/s.jsonl", "hi"),
        says=("Stored session working directory does not exist: /nix", "Session file: {home}/s.jsonl", "Current working directory: "),
        file="s.jsonl",
        text=HEADER % "/nix",
    ),
    Row(
        name="missing extension",
        arguments=("-e", "{home}/nix.py", "hi"),
        says=('Failed to load extension "{home}/nix.py"', "does not exist"),
    ),
    Row(
        name="extension that does not import",
        arguments=("-e", "{home}/x.py", "hi"),
        says=('Failed to load extension "{home}/x.py"', "nixmodule", "line 2"),
        file="x.py",
        text="\nimport nixmodule\n",
    ),
    Row(
        name="extension that raises in setup",
        arguments=("-e", "{home}/x.py", "hi"),
        says=('Failed to load extension "{home}/x.py"', "not today"),
        file="x.py",
        text="def setup(api):\n    raise ValueError('not today')\n",
    ),
    Row(
        name="extension that registers nonsense",
        arguments=("-e", "{home}/x.py", "hi"),
        says=('Failed to load extension "{home}/x.py"', "turn_ended"),
        file="x.py",
        text="def setup(api):\n    api.on('turn_ended', print)\n",
    ),
    Row(
        name="compaction setting",
        arguments=("hi",),
        says=("Error: Invalid compaction.reserveTokens setting: -1",),
        file=".camshaft/settings.json",
        text='{"compaction": {"reserveTokens": -1}}',
    ),
    Row(
        name="timeout setting",
        arguments=("hi",),
        says=("Error: Invalid httpIdleTimeoutMs setting: 'soon'",),
        file=".camshaft/settings.json",
        text='{"httpIdleTimeoutMs": "soon"}',
    ),
    Row(
        name="broken settings file",
        arguments=("hi",),
        says=("Warning: Invalid settings file {home}/.camshaft/settings.json: ",),
        code=0,
        file=".camshaft/settings.json",
        text='{"retry": ',
    ),
    Row(
        name="wrong setting",
        arguments=("hi",),
        says=("Warning: {home}/.camshaft/settings.json: setting 'steeringMode'",),
        code=0,
        file=".camshaft/settings.json",
        text='{"steeringMode": "sometimes"}',
    ),
    Row(name="wrong level", arguments=("--thinking", "very", "hi"), says=('Warning: Invalid thinking level "very"',), code=0),
    Row(
        name="unknown tool",
        arguments=("--tools", "read,nope,x*", "hi"),
        says=("Warning: There is no tool 'nope'; the tools are: bash, edit, find, grep, ls, powershell, read, write",),
        code=0,
    ),
    Row(
        name="unknown model of a known provider",
        arguments=("--provider", "local", "--model", "m9", "hi"),
        says=('Warning: Model "m9" not found for provider "local". Using custom model id.',),
        code=0,
    ),
    Row(
        name="damaged line in a session",
        arguments=("--session", "{home}/s.jsonl", "hi"),
        says=("Warning: session: ", "line 2"),
        code=0,
        file="s.jsonl",
        text=HEADER % "{project}" + '{"type":"mess\n',
    ),
    Row(name="new session id", arguments=("--session-id", "mine", "hi"), says=("Warning: No session with id 'mine' here",), code=0),
)


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
async def test_bad_input_is_told_and_changes_nothing(where: Place, row: Row) -> None:
    filled = _filler(where)
    path = where.write(row.file, filled(row.text)) if row.file is not None else None
    before = path.read_bytes() if path is not None else b""

    async with serving(where, says("Fine.")):
        ended = await camshaft(where, *[filled(argument) for argument in row.arguments])

    assert ended.code == row.code, ended.err
    assert [part for part in row.says if filled(part) not in ended.err] == [], ended.err
    assert "Traceback" not in ended.err
    assert ended.out == ("" if row.code else "Fine.\n")
    assert path is None or path.read_bytes().startswith(before)
    assert path is None or not row.code or path.read_bytes() == before


async def test_with_nothing_configured_it_says_what_to_configure(where: Place) -> None:
    ended = await camshaft(where, "hi")

    assert (ended.code, ended.out) == (1, "")
    for part in ("No model is configured", "OPENAI_API_KEY", str(where.agent_dir / "models.json"), '"baseUrl"', "--demo"):
        assert part in ended.err


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('{"providers": ', "models.json"),
        ("[]", "models.json"),
        ('{"providers": {"local": {}}}', 'must specify "baseUrl"'),
        ('{"providers": {"local": {"baseUrl": "http://x", "models": [{"id": "m"}]}}}', 'no "api" specified'),
    ],
)
async def test_a_malformed_models_file_is_told_and_counts_as_empty(where: Place, text: str, part: str) -> None:
    path = where.write(".camshaft/models.json", text)

    ended = await camshaft(where, "hi")

    assert (ended.code, ended.out) == (1, "")
    assert "Warning: " in ended.err and part in ended.err and "No model is configured" in ended.err
    assert path.read_text(encoding="utf-8") == text


async def test_an_empty_session_file_becomes_a_session(where: Place) -> None:
    path = where.write("s.jsonl", "")

    async with serving(where, says("Fine.")):
        ended = await camshaft(where, "--session", str(path), "hi")

    assert (ended.code, ended.out) == (0, "Fine.\n"), ended.err


async def test_a_session_in_use_is_refused_with_its_holder(where: Place) -> None:
    async with serving(where, Reply(body=(chunk({"content": "Holding"}),), end="hold")), running(where, "--mode", "json", "go") as run:
        await run.until("message_update", "Holding")
        before = where.session_files()[0].read_bytes()

        ended = await camshaft(where, "-c", "me too")
        after = where.session_files()[0].read_bytes()

    assert (ended.code, ended.out) == (1, "")
    assert f"process {run.process.pid}" in ended.err
    assert after == before


@pytest.mark.skipif(os.geteuid() == 0, reason="to the superuser every folder is writable")
async def test_a_folder_that_cannot_be_written_is_told(where: Place) -> None:
    locked = where.home / "locked"
    locked.mkdir(mode=0o500)

    async with serving(where, says("Never stored.")):
        ended = await camshaft(where, "--session-dir", str(locked), "hi")

    assert (ended.code, ended.out) == (1, "")
    assert str(locked) in ended.err and "Traceback" not in ended.err


async def test_a_session_folder_that_is_a_file_is_told(where: Place) -> None:
    path = where.write("taken", "a file")

    async with serving(where, says("Never stored.")):
        ended = await camshaft(where, "--session-dir", str(path), "hi")

    assert (ended.code, ended.out) == (1, "")
    assert str(path) in ended.err and "Traceback" not in ended.err
    assert path.read_text(encoding="utf-8") == "a file"


async def test_a_server_that_is_not_there_is_told(where: Place) -> None:
    where.configure("http://127.0.0.1:9")
    where.write(".camshaft/settings.json", '{"retry": {"enabled": false}}')

    ended = await camshaft(where, "hi")

    assert (ended.code, ended.out) == (1, "")
    assert "127.0.0.1" in ended.err or "onnect" in ended.err


@pytest.mark.parametrize(
    ("body", "arguments", "part"),
    [
        ("raise ValueError('not today')", {}, "not today"),
        ("return 5", {}, "result"),
        ("return {'content': 'text'}", {}, "content"),
        ("return {'nix': 1}", {}, "nix"),
        ("print('x' * 100_000); return {'content': [{'type': 'text', 'text': 'x' * 1_000_000}]}", {}, "xxx"),
        ("return {}", {"path": 5}, "Validation failed"),
    ],
    ids=["raises", "returns no result", "returns no blocks", "returns an unknown field", "floods", "gets malformed arguments"],
)
async def test_a_tool_that_misbehaves_answers_its_call(where: Place, body: str, arguments: dict[str, object], part: str) -> None:
    parameters = '{"type": "object", "properties": {"path": {"type": "object"}}}'
    where.write(
        "tool.py",
        f"async def execute(call_id, params, signal, on_update, ctx):\n    {body}\n"
        f"def setup(api):\n    api.register_tool({{'name': 'odd', 'description': '', 'parameters': {parameters}, 'execute': execute}})\n",
    )

    async with serving(where, calls(("odd", arguments)), says("So be it.")):
        ended = await camshaft(where, "-e", str(where.home / "tool.py"), "go")

    (session,) = where.session_files()
    (result,) = [message for message in messages(session) if message["role"] == "toolResult"]
    assert (ended.code, ended.out) == (0, "So be it.\n"), ended.err
    assert part in str(result["content"])


async def test_a_session_of_another_folder_is_named_but_not_opened(where: Place) -> None:
    other = where.home / "other"
    other.mkdir()
    path = where.write(".camshaft/sessions/--other--/s.jsonl", HEADER % other)

    async with serving(where, says("Never.")):
        ended = await camshaft(where, "--session", "0a", "hi")

    assert ended.code == 1
    assert f"Session found in different project: {other}" in ended.err and f"--session {path}" in ended.err


@pytest.mark.rule("CLI-7", "SES-83")
async def test_a_session_of_another_folder_goes_on_here_in_a_copy(where: Place) -> None:
    other = where.home / "other"
    other.mkdir()
    path = where.write(".camshaft/sessions/--other--/s.jsonl", HEADER % other)
    before = path.read_bytes()

    async with serving(where, says("Here.")):
        ended = await camshaft(where, "--fork", "0a", "hi")

    assert (ended.code, ended.out) == (0, "Here.\n"), ended.err
    (copy,) = [each for each in where.session_files() if each != path]
    header = json.loads(copy.read_text(encoding="utf-8").splitlines()[0])
    assert (header["cwd"], header["parentSession"]) == (str(where.project), str(path))
    assert path.read_bytes() == before


def _filler(where: Place) -> Callable[[str], str]:
    places: dict[str, Path] = {"{home}": where.home, "{project}": where.project}

    def filled(text: str) -> str:
        for name, path in places.items():
            text = text.replace(name, str(path))
        return text

    return filled
