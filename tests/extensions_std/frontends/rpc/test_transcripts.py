"""Every recorded transcript of RPC mode, replayed against the command as a process."""

import json
from typing import Final

import pytest

from tests.extensions_std.frontends.command import Place
from tests.extensions_std.frontends.rpc.model_server import Answers, provider
from tests.extensions_std.frontends.rpc.replay import FOLDER, Replay, steps_of
from tests.extensions_std.frontends.rpc.scenes import SCENES, Scene
from tests.extensions_std.frontends.rpc.talking import talking
from tests.extensions_std.providers.sse_server import scripted_server

pytestmark = pytest.mark.slow

NAMES: Final = sorted([path.stem for path in FOLDER.glob("*.jsonl")])


@pytest.mark.parametrize("name", NAMES)
async def test_a_transcript_is_replayed(name: str, where: Place) -> None:
    scene = SCENES.get(name, Scene())
    async with scripted_server(choose=Answers().to) as server:
        where.write(".camshaft/models.json", json.dumps({"providers": {"fake": provider(server.port)}}))
        paths = scene.prepared(where)
        async with talking(where, "--provider", "fake", "--model", "m1", "--thinking", "off", *scene.arguments_in(where)) as talk:
            replay = Replay(talk, steps_of(name), scene.exempt, paths)
            await replay.run()

    tally = replay.tally
    print(f"{name}: {tally.compared} compared, {tally.exempted} exempted, {tally.skipped} skipped")
    assert replay.faults == []
    assert tally.skipped == 0
    assert tally.compared + sum(tally.exempted.values()) == len([step for step in replay.steps if step.kind in ("in", "out")])
