"""The real command with a script file: a whole program is tested without key and server (FAUX-27)."""

import json

import pytest

from tests.extensions_std.frontends.command import Place, camshaft, running

pytestmark = pytest.mark.slow

CALL = {"content": ["Writing.", {"type": "toolCall", "name": "write", "arguments": {"path": "a.txt", "content": "x"}}]}


def _script(where: Place, *steps: object, **fields: object) -> str:
    return str(where.write("script.json", json.dumps({"steps": steps, **fields})))


@pytest.mark.rule("FAUX-27")
async def test_a_job_runs_on_a_script(where: Place) -> None:
    ended = await camshaft(where, "--faux-script", _script(where, CALL, "Done."), "Write.")

    assert (ended.code, ended.out, ended.err) == (0, "Done.\n", "")
    assert (where.project / "a.txt").read_text() == "x"


async def test_the_environment_may_name_the_script_and_a_model_of_it_is_chosen_as_any_other(where: Place) -> None:
    script = _script(where, {"content": "Big.", "when": {"model": "big"}}, models=[{"id": "small"}, {"id": "big"}])

    ended = await camshaft(where, "--model", "faux/big", "Hello", CAMSHAFT_FAUX_SCRIPT=script)

    assert (ended.code, ended.out) == (0, "Big.\n")


async def test_a_script_that_is_too_short_fails_the_job(where: Place) -> None:
    ended = await camshaft(where, "--faux-script", _script(where), "Hello")

    assert (ended.code, ended.out) == (1, "")
    assert "No more faux responses queued" in ended.err


async def test_a_script_that_cannot_be_played_ends_the_start(where: Place) -> None:
    ended = await camshaft(where, "--faux-script", _script(where, {"contnt": "a"}), "Hello")

    assert ended.code == 1
    assert "steps[0].contnt: is not known here ('a'); did you mean \"content\"?" in ended.err
    assert "script.json" in ended.err


async def test_a_script_that_hangs_is_interrupted(where: Place) -> None:
    script = _script(where, {"actions": [{"type": "start"}, {"type": "text", "fragments": ["half"]}, {"type": "hang"}]})

    async with running(where, "--mode", "json", "--faux-script", script, "Hello") as command:
        await command.until("message_update", "half")
        code = await command.interrupted()

    assert code == 130
