"""An idle session keeps no lease and no file open, whatever was appended to it."""

from pathlib import Path

import pytest
import trio
import trio.testing

from camshaft.actors.host import NewSession, OpenOptions, OpenSession, SessionLocked, open_kernel
from camshaft.extensions_std.providers.scripted import ScriptedProvider, assistant


def _options(folder: Path, session: NewSession | OpenSession) -> OpenOptions:
    model = ScriptedProvider()
    model.set_responses([assistant("hello"), assistant("again")])
    return OpenOptions(cwd=str(folder), session=session, providers=(model,), durability="none")


@pytest.mark.rule("SES-90")
def test_a_label_set_between_runs_does_not_keep_other_writers_out(tmp_path: Path) -> None:
    async def scene() -> None:
        async with open_kernel() as kernel:
            first = await kernel.open(_options(tmp_path, NewSession(directory=str(tmp_path))))
            await first.prompt("hi")
            leaf = first.state.leaf_id
            assert leaf is not None and first.session_file is not None

            first.set_label(leaf, "here")
            await trio.testing.wait_all_tasks_blocked()

            second = await kernel.open(_options(tmp_path, OpenSession(path=first.session_file)))
            second.set_label(leaf, "there")
            assert second.state.tree.label(leaf) == "there"

    trio.run(scene)


@pytest.mark.rule("SES-90")
def test_while_a_run_is_under_way_a_second_writer_is_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        async with open_kernel() as kernel:
            first = await kernel.open(_options(tmp_path, NewSession(directory=str(tmp_path))))
            await first.prompt("hi")
            assert first.session_file is not None
            refused: list[SessionLocked] = []

            async def intrude() -> None:
                try:
                    await kernel.open(_options(tmp_path, OpenSession(path=first.session_file or "")))
                except SessionLocked as error:
                    refused.append(error)

            async with trio.open_nursery() as nursery:

                def on_event(event: object) -> None:
                    if type(event).__name__ == "TurnStart":
                        nursery.start_soon(intrude)

                first.subscribe(on_event)
                await first.prompt("more")

            assert len(refused) == 1

    trio.run(scene)
