"""JSON mode: the session header, then every event as one line of JSON (JSONM-1 to JSONM-8).

A lossless follower feeds one writer: a reader who does not read makes the run wait and loses nothing
(RPC-89). Encoding happens at the writer, not inside the steps of the run. Nothing is written after the last
prompt has settled, or once the work is being stopped (RPC-91).
"""

from collections.abc import Sequence
from typing import Never

import attrs
import trio

from camshaft.actors.api import dumps
from camshaft.actors.host import CamshaftError, Event, Follower, FollowerStalled, Seat
from camshaft.extensions_std.frontends.event_records import record_of
from camshaft.extensions_std.frontends.file_arguments import Prompt
from camshaft.extensions_std.frontends.streams import Output, say


async def run(seat: Seat, prompts: Sequence[Prompt], out: Output, *, unconfigured: str, opening: Sequence[Event] = ()) -> int:
    """Tells `opening`, then what happens; the exit code: 0 whatever the answers say (JSONM-6), 1 without a model or a reader.

    Raises what refused or ended a prompt.
    """
    await out.write(dumps(seat.state.header) + b"\n")
    if seat.model is None:
        say(unconfigured)
        return 1
    failure: CamshaftError | None = None
    async with seat.follow() as follower:
        writer = _Writer(follower, out)
        early = b"".join([dumps(record) + b"\n" for event in opening if (record := record_of(event)) is not None])
        await out.write(early)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(writer.serve, nursery.cancel_scope)
            failure = await _prompted(seat, prompts, writer)
            nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return 1 if writer.is_broken else 0


async def _prompted(seat: Seat, prompts: Sequence[Prompt], writer: "_Writer") -> CamshaftError | None:
    """What refused or ended a prompt, as a value: a nursery would wrap it."""
    try:
        for prompt in prompts:
            await seat.prompt(prompt.text, images=prompt.images)
            await writer.caught_up()
    except CamshaftError as error:
        await writer.caught_up()
        return error
    return None


@attrs.define(eq=False)
class _Writer:
    """Takes events and writes their lines, as many at once as are there."""

    _follower: Follower[Never]
    _out: Output
    is_broken: bool = False
    """Whether nobody reads any more."""
    _is_writing: bool = False
    _wrote: trio.Event = attrs.field(factory=trio.Event)

    async def serve(self, work: trio.CancelScope) -> None:
        """Until the follower ends. Cancels `work` if the reader is gone."""
        try:
            async for event in self._follower:
                await self._write([event])
        except (OSError, FollowerStalled):
            self.is_broken = True
            work.cancel()

    async def caught_up(self) -> None:
        """Returns when every event so far is written."""
        while self._follower.waiting or self._is_writing:
            await self._wrote.wait()

    async def _write(self, events: list[Event]) -> None:
        self._is_writing = True
        while self._follower.waiting:
            events.append(await anext(self._follower))
        records = [record_of(event) for event in events]
        lines = b"".join([dumps(record) + b"\n" for record in records if record is not None])
        if lines:
            await self._out.write(lines)
        self._is_writing = False
        self._wrote.set()
        self._wrote = trio.Event()
