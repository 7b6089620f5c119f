"""`camshaft acp`: one client on standard streams, from its first record to the exit code.

The end of the input is the end: what runs is aborted and stored, sessions are closed, exit code 0. A client that does not
read any more ends it, too, with exit code 1; signals end it as they end RPC mode (`interrupts.py`).
"""

import math
import os
from typing import Final

import attrs
import trio

from camshaft.actors.api import World
from camshaft.actors.host import Kernel, open_kernel
from camshaft.extensions_std.frontends.acp.agent import Agent
from camshaft.extensions_std.frontends.acp.opening import Opener
from camshaft.extensions_std.frontends.acp.peer import Peer, Source
from camshaft.extensions_std.frontends.acp.wire import Sink, Wire
from camshaft.extensions_std.frontends.arguments import Arguments
from camshaft.extensions_std.frontends.conversation import StartupFailed
from camshaft.extensions_std.frontends.faux_script import scripted_of
from camshaft.extensions_std.frontends.interrupts import Interrupts
from camshaft.extensions_std.frontends.streams import say

LAST_S: Final = 1.0
"""After the end of the input, when sessions are closed: for requests under way to be answered."""


@attrs.frozen(kw_only=True)
class Invoked:
    """What the command line said."""

    words: list[str] = attrs.field(repr=False)
    arguments: Arguments
    world: World


async def run_acp(invoked: Invoked, source: Source, sink: Sink) -> int:
    """The exit code of the command."""
    interrupts, code = Interrupts(), 1
    with interrupts.handling(), interrupts.everything:
        async with open_kernel(world=invoked.world) as kernel:
            with interrupts.work:
                try:
                    opener = opener_of(invoked, kernel)
                except StartupFailed as error:
                    for fault in error.faults:
                        say(f"Error: {fault}")
                else:
                    code = await serve(opener, source, sink, interrupts)
    return code if interrupts.code is None else interrupts.code


def opener_of(invoked: Invoked, kernel: Kernel) -> Opener:
    """Raises StartupFailed."""
    try:
        here = os.getcwd()
    except FileNotFoundError:
        raise StartupFailed("The working directory does not exist any more; change to one that does") from None
    arguments, world = invoked.arguments, invoked.world
    scripted = scripted_of(arguments, world.environment, here)
    return Opener(kernel=kernel, words=invoked.words, arguments=arguments, world=world, here=here, scripted=scripted)


async def serve(opener: Opener, source: Source, sink: Sink, interrupts: Interrupts | None = None) -> int:
    """Serves one client until its input ends or it does not read any more; the exit code."""
    ended = trio.Event()
    wire = Wire(sink, ended.set)
    async with trio.open_nursery() as nursery:
        peer = Peer(source, wire, nursery)
        agent = Agent(opener, peer, nursery)
        nursery.start_soon(_read, peer, ended)
        await ended.wait()
        if interrupts is not None:
            interrupts.end_in_order()
        await agent.close()
        nursery.cancel_scope.deadline = -math.inf if wire.is_broken else trio.current_time() + LAST_S
    return 1 if wire.is_broken else 0


async def _read(peer: Peer, ended: trio.Event) -> None:
    await peer.read()
    ended.set()
