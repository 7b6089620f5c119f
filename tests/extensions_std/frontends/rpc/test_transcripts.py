"""Every recorded transcript of RPC mode, replayed against the command: as a process, and inside this one."""

import json
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, chdir
from typing import Final

import pytest

from tests.extensions_std.frontends.command import Place
from tests.extensions_std.frontends.rpc.model_server import Answers, provider
from tests.extensions_std.frontends.rpc.replay import FOLDER, Replay, steps_of
from tests.extensions_std.frontends.rpc.scenes import SCENES, Scene
from tests.extensions_std.frontends.rpc.talking import Talk, talking, talking_inside
from tests.extensions_std.frontends.rpc.ui_extension import FAILING
from tests.extensions_std.providers.sse_server import scripted_server

pytestmark = pytest.mark.slow

NAMES: Final = sorted([path.stem for path in FOLDER.glob("*.jsonl")])


SIGNALS: Final = {"rpc-shutdown-sighup", "rpc-shutdown-sigint", "rpc-shutdown-sigterm"}
"""A signal is for a process."""


@pytest.mark.parametrize("name", NAMES)
async def test_a_transcript_is_replayed_against_a_process(name: str, where: Place) -> None:
    assert_same(await _replayed(name, where, talking), name)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in SIGNALS])
async def test_a_transcript_is_replayed_in_this_process(name: str, where: Place) -> None:
    with chdir(where.project):  # as a process would be started there
        replay = await _replayed(name, where, talking_inside)
    os.environ.pop(FAILING, None)  # what the extension of one of them sets

    assert_same(replay, name)


async def _replayed(name: str, where: Place, talking: Callable[..., AbstractAsyncContextManager[Talk]]) -> Replay:
    scene = SCENES.get(name, Scene())
    async with scripted_server(choose=Answers().to) as server:
        where.write(".camshaft/models.json", json.dumps({"providers": {"fake": provider(server.port)}}))
        paths = scene.prepared(where)
        async with talking(where, "--provider", "fake", "--model", "m1", "--thinking", "off", *scene.arguments_in(where)) as talk:
            replay = Replay(talk, steps_of(name), scene.exempt, paths)
            await replay.run()
    return replay


def assert_same(replay: Replay, name: str) -> None:
    """No step differs but those that a rule exempts, and none was left out."""
    tally = replay.tally
    print(f"{name}: {tally.compared} compared, {tally.exempted} exempted, {tally.skipped} skipped")
    assert replay.faults == []
    assert tally.skipped == 0
    assert tally.compared + sum(tally.exempted.values()) == len([step for step in replay.steps if step.kind in ("in", "out")])
