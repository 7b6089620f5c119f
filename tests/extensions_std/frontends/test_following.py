"""Extensions that ask for a reload or for another session: files are read again, trust is not asked for twice."""

import json

import pytest

from tests.extensions_std.frontends.command import Place, camshaft, entries, says, serving

pytestmark = pytest.mark.slow

COUNTING = """
import sys
{body}
def setup(api):
    print("setup", STATE, file=sys.stderr)
    STATE.append(1)

    async def reload(arguments, ctx):
        await ctx.reload()

    async def new(arguments, ctx):
        await ctx.new_session()

    api.register_command("again", reload)
    api.register_command("fresh", new)
"""


@pytest.mark.rule("EXT-28", "EXT-49")
async def test_a_reload_evaluates_files_anew_and_finds_new_ones_and_a_new_session_does_not_evaluate(where: Place) -> None:
    body = "STATE = []\nimport pathlib\nHERE = pathlib.Path(__file__).parent\n"
    writes = "(HERE / 'late.py').write_text('import sys\\ndef setup(api): print(\"late\", file=sys.stderr)\\n')\n"
    where.write(".camshaft/extensions/c.py", COUNTING.format(body=body + writes))

    async with serving(where, says("hello")):
        ended = await camshaft(where, "/fresh", "/again", "hi")

    assert (ended.code, ended.out) == (0, "hello\n")
    assert ended.err.splitlines() == ["setup []", "setup [1]", "late", "setup []", "late"]


@pytest.mark.rule("SET-5", "EXT-27")
async def test_a_reload_reads_settings_again_and_tells_of_what_does_not_load(where: Place) -> None:
    text = json.dumps({"extensions": ["-extensions/b.py"]})
    body = (
        "STATE = []\nimport pathlib\nHERE = pathlib.Path(__file__).parent\n"
        f"(HERE.parent / 'settings.json').write_text({text!r})\n"
        "(HERE / 'd.py').write_text('def setup(api): 1 / 0\\n')\n"
    )
    where.write(".camshaft/extensions/c.py", COUNTING.format(body=body))
    where.write(".camshaft/extensions/b.py", "import sys\ndef setup(api): print('b', file=sys.stderr)\n")

    async with serving(where, says("hello")):
        ended = await camshaft(where, "/again", "hi")

    assert (ended.code, ended.out) == (0, "hello\n")
    assert ended.err.splitlines().count("b") == 1
    assert any(line.startswith("Warning: extensions: Failed to load extension") and "d.py" in line for line in ended.err.splitlines())


@pytest.mark.rule("EXT-65", "TRUST-7")
async def test_trust_is_asked_for_once_and_holds_through_a_reload(where: Place) -> None:
    asks = 'api.on("project_trust", lambda event, ctx: print("asked", file=sys.stderr) or {"trusted": "yes"})'
    where.write(".camshaft/extensions/a.py", f"import sys\ndef setup(api):\n    {asks}\n")
    where.write(".camshaft/extensions/c.py", COUNTING.format(body="STATE = []"))
    project = where.project / ".camshaft" / "extensions" / "p.py"
    project.parent.mkdir(parents=True)
    project.write_text("import sys\ndef setup(api): print('project', file=sys.stderr)\n")

    async with serving(where, says("hello")):
        ended = await camshaft(where, "/again", "hi")

    assert ended.err.splitlines().count("asked") == 1
    assert ended.err.splitlines().count("project") == 2
    assert [entry["type"] for path in where.session_files() for entry in entries(path)].count("message") >= 2
