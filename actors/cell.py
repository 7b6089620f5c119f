"""The session cell: one session, one generation of extensions, and what acts on them.

A seat has one cell at a time and gives its methods a place; the cell is what is replaced as a
whole (EXT-42). It begins by telling extensions that they are bound and ends by stopping what
runs, telling them once that it is over, and making every context of the generation stale.
"""

from collections.abc import Callable
from typing import Final, Literal

import trio

from camshaft.actors.actor import is_part_of
from camshaft.actors.agent_loop import Conversation
from camshaft.actors.cache_warming import CacheWarming
from camshaft.actors.choosing import refresh_model
from camshaft.actors.compactions import Compactions
from camshaft.actors.delivery import Delivery
from camshaft.actors.errors import CommandRefused
from camshaft.actors.exclusive import Exclusives
from camshaft.actors.expansion import Expansion
from camshaft.actors.flights import Flights
from camshaft.actors.opening import home_folder
from camshaft.actors.prompts import Prompts
from camshaft.actors.resources.discovery import with_discovered
from camshaft.actors.resources.found import Resources
from camshaft.actors.runtime import Runtime
from camshaft.actors.seat_parts import SeatParts
from camshaft.actors.sends import Sends
from camshaft.actors.tool_executor import ToolExecutor
from camshaft.actors.tree_moves import TreeMoves
from camshaft.actors.user_bash import UserBash
from camshaft.kernel import hook_events, session_events, session_merges, shapes
from camshaft.kernel.events import DiagnosticEvent

REPLACED_TEXT: Final = "The session was replaced, or its extensions were loaded anew, before this was accepted; nothing was stored."
LEFT_TEXT: Final = "the handler was ended by force, because it did not end within {:g} s"


@shapes.define(eq=False)
class Cell:
    """One session of one conversation."""

    parts: SeatParts
    executor: ToolExecutor
    flights: Flights
    prompts: Prompts
    bash: UserBash
    sends: Sends
    moves: TreeMoves
    is_started: bool = False
    """`session_start` was sent and no `session_shutdown` since (EXT-52)."""

    async def start(self, reason: str, previous_session_file: str | None = None) -> None:
        """Tells extensions that the session is bound, then asks for their resources (EXT-40)."""
        host = self.parts.host
        if host.generation.stale:
            return
        self.is_started = True
        if host.has("session_start"):
            event = hook_events.SessionStartEvent(reason=reason, previous_session_file=previous_session_file)
            await host.dispatch("session_start", event)
        if not self.is_started:  # closed meanwhile
            return
        host.report_unconnected_mcp()
        if host.has("resources_discover"):
            await self._discover("reload" if reason == "reload" else "startup")
        if host.registry.can_refresh:
            self.parts.nursery.start_soon(self._refresh_models)

    async def _refresh_models(self) -> None:
        """Asks providers for their models, beside everything else; what fails is told (MOD-42)."""
        parts = self.parts
        result = await parts.host.registry.refresh(allow_network=not parts.world.is_offline)
        for name, why in result.errors.items():
            parts.stream.publish(DiagnosticEvent(source="model", message=f'Availability refresh: Provider "{name}": {why}'))

    async def _discover(self, reason: Literal["startup", "reload"]) -> None:
        """Adds the skills and templates that extensions name (RES-3)."""
        parts, cwd = self.parts, self.parts.base_prompt.cwd
        asked = session_events.ResourcesDiscoverEvent(cwd=cwd, reason=reason)
        found: session_merges.Discovery = await parts.host.dispatch("resources_discover", session_merges.Discovery(event=asked))
        if not found.skill_paths and not found.prompt_paths:
            return
        expansion, home = self.prompts.expansion, home_folder(parts.world)

        def look() -> None:
            expansion.resources = with_discovered(expansion.resources, found.skill_paths, found.prompt_paths, cwd=cwd, home=home)

        await parts.world.log_files.blocking(look)
        for each in expansion.resources.diagnostics:
            parts.stream.publish(DiagnosticEvent(source="resources", message=each.message))

    async def stop(self, at_once: bool = False) -> None:
        """Asks what runs to stop and waits for its end; `at_once` without the grace. Nothing new begins meanwhile.

        A run that settled and now only waits for this code, a command deferred from `agent_settled`, is over.
        """
        self.flights.exclusives.is_leaving = True
        try:
            await self._stop(at_once)
        finally:
            self.flights.exclusives.is_leaving = False

    async def _stop(self, at_once: bool) -> None:
        if self.parts.ground.depth == 0:  # a child shows its dialogs on its parent's desk
            self.parts.ground.desk.dismiss()
        await self.bash.end()
        while self.flights.current is not None:
            if self.parts.state.is_idle and is_part_of(f"run {self.flights.current.run_id}"):
                return
            await self.flights.end(self.flights.current, at_once)
        await self.flights.exclusives.end(at_once)

    async def shut_down(self, reason: str, target_session_file: str | None = None, within_s: float | None = None) -> None:
        """Tells extensions that the session is left, once; then nothing of this generation works any more.

        Handlers have `within_s`, by default what the limits of the kernel say (RPC-95); what still runs then is cancelled.
        """
        limit_s = self.parts.ground.limits.shutdown_s if within_s is None else within_s
        host, was_started, self.is_started = self.parts.host, self.is_started, False
        with trio.move_on_after(limit_s) as patience:
            await self.flights.warming.end()
            if was_started and host.has("session_shutdown"):
                event = hook_events.SessionShutdownEvent(reason=reason, target_session_file=target_session_file)
                await host.dispatch("session_shutdown", event)
            await host.drained()
        host.generation.stale = True
        while self.prompts.deferred:
            dropped = self.prompts.deferred.popleft()
            if dropped.preflight is not None:
                dropped.preflight(CommandRefused(REPLACED_TEXT))
            host.report("<runtime>", "send_user_message", REPLACED_TEXT)
        if self.parts.ground.depth == 0:
            self.parts.ground.desk.reset()
        host.registry.end()
        await host.end()
        if patience.cancelled_caught and host.oversight.interrupted is not None:
            host.report(*host.oversight.interrupted, LEFT_TEXT.format(limit_s))


def cell_of(parts: SeatParts, runtime: Runtime, conversation: Conversation, require_open: Callable[[], None]) -> Cell:
    """A cell around the parts: `runtime` is what extensions reach, `conversation` what the loop asks. Both outlive the cell."""
    executor = ToolExecutor(parts.session, parts.host, parts.stream, parts.limbo, parts.nursery)
    compactions, exclusives = Compactions(parts), Exclusives(parts)
    flights = Flights(parts, executor, conversation, compactions, exclusives, CacheWarming(parts))
    resources = Resources(skills=tuple(parts.options.skills), templates=tuple(parts.options.templates))

    def require_live() -> None:
        require_open()
        if parts.host.generation.stale:
            raise CommandRefused(REPLACED_TEXT)

    prompts = Prompts(parts, flights, require_live, Expansion(parts.host, resources))
    sends = Sends(parts, flights, prompts, Delivery(parts.session, parts.host, parts.stream))
    parts.host.bind(runtime, parts.nursery)
    if parts.ground.depth == 0:
        parts.ground.desk.bind(parts.host.notify)
    parts.host.registry.when_changed(lambda: refresh_model(parts))
    moves, bash = TreeMoves(parts, flights, prompts), UserBash(parts, exclusives)
    return Cell(parts=parts, executor=executor, flights=flights, prompts=prompts, bash=bash, sends=sends, moves=moves)
