"""Manual compaction and tree navigation: the two operations that need an idle session (RTY-34, CMP-18, CMP-60 to CMP-72).

Both claim the session, ask extensions, perhaps ask a model for a summary, and then make one
post. Before that post nothing has changed; the post is one commit, a summary and a label
together, so at every await the session is either untouched or has that whole group.
"""

from collections.abc import Callable
from typing import Any, Final

import attrs

from camshaft.actors.actor import Failure, apart, guard, refuse_self_wait
from camshaft.actors.compactions import Job, Stopped
from camshaft.actors.errors import CommandRefused
from camshaft.actors.extension_host import BUILTIN
from camshaft.actors.flights import Flights
from camshaft.actors.prompts import Prompts
from camshaft.actors.seat_parts import NO_MODEL_TEXT, SeatParts
from camshaft.actors.signal import AbortSignal
from camshaft.actors.summaries import Summarizer
from camshaft.actors.virtual_models import limiting_model
from camshaft.kernel import shapes
from camshaft.kernel.branch_summaries import (
    Destination,
    LeftBranch,
    NavigationResult,
    branch_content,
    branch_request,
    budget_of,
    destination,
    left_branch,
    stored_branch_summary,
)
from camshaft.kernel.commands import AppendBranchSummary, MoveLeaf, SelectTools
from camshaft.kernel.compaction import CANCELLED_TEXT, CompactionResult
from camshaft.kernel.entries import BranchSummaryEntry
from camshaft.kernel.messages import Usage
from camshaft.kernel.persistent import Json
from camshaft.kernel.recorded import recorded_tools
from camshaft.kernel.run import Operation, Verdict, admit
from camshaft.kernel.session_events import SessionBeforeTreeEvent, SessionTreeEvent, TreePreparation
from camshaft.kernel.session_merges import Gate
from camshaft.kernel.state import Activity
from camshaft.kernel.summaries import SummaryFailure, details_of
from camshaft.kernel.tools import RegisteredTool, activates, with_active

BUSY_TEXT: Final = "Wait for the current response to finish before navigating the session tree."
MOVING_TEXT: Final = "Wait for the current compaction or tree navigation to finish before navigating the session tree."
NO_SUMMARY_MODEL_TEXT: Final = "No model available for summarization"
COMPACTING_TEXT: Final = "Wait for the current compaction or tree navigation to finish before compacting."


class CompactionFailed(CommandRefused):
    """A manual compaction did not happen; nothing was appended (CMP-18, CMP-42)."""


class NavigationFailed(CommandRefused):
    """A navigation was refused, or its summary failed; the leaf is where it was (CMP-60, CMP-69)."""


@shapes.frozen(kw_only=True)
class Wish:
    """A navigation as asked for, and as extensions left it."""

    summarize: bool = False
    custom_instructions: str | None = None
    replace_instructions: bool | None = None
    label: str | None = None


@shapes.frozen(kw_only=True)
class _Summary:
    """What is to be stored about the branch that is left."""

    text: str
    details: Json = None
    usage: Usage | None = None
    from_hook: bool


@shapes.define(eq=False)
class TreeMoves:
    """Compacts and navigates on request."""

    _parts: SeatParts
    _flights: Flights
    _prompts: Prompts

    # -- manual compaction ---------------------------------------------------------------

    async def compact(self, instructions: str | None) -> CompactionResult:
        """Ends the run, if any, then compacts (RTY-34). Prompts that wait for the end of the run have their turn afterwards.

        Raises CompactionFailed with the reason, StorageError if the log refused, SelfWait from inside a run.
        """
        self._prompts.held += 1
        try:
            await self._end_run()
            self._prompts.require_open()
            with self._flights.exclusives.claimed() as signal:
                outcome = await self._flights.compactions.perform(Job(reason="manual", instructions=instructions, signal=signal))
        finally:
            self._prompts.held -= 1
            if self._prompts.deferred:
                self._parts.nursery.start_soon(self._run_held)
        if isinstance(outcome, CompactionResult):
            return outcome
        stopped = outcome or Stopped()
        raise stopped.error or CompactionFailed(stopped.text or CANCELLED_TEXT)

    async def _run_held(self) -> None:
        """Runs what was deferred meanwhile, unless a run that ends takes it; nobody waits for it."""
        with apart():
            while self._prompts.deferred and not self._prompts.held:
                flight, exclusives = self._flights.current, self._flights.exclusives
                if flight is not None:
                    await flight.done.wait()
                elif exclusives.current is not None:
                    await exclusives.wait("a prompt")
                else:
                    outcome = await guard(self._prompts.deferred.popleft().go)
                    if isinstance(outcome, Failure):
                        self._parts.host.report_failure("<runtime>", "send_user_message", outcome)

    async def _end_run(self) -> None:
        while (verdict := admit(Operation.COMPACT, self._parts.state.live.activity)) is not Verdict.NOW:
            flight = self._flights.current
            if verdict is Verdict.REFUSE or flight is None:
                raise CompactionFailed(COMPACTING_TEXT)
            refuse_self_wait(f"run {flight.run_id}", "compact()")
            self._flights.request_abort()
            await flight.changed.wait()

    def request_compaction(
        self, instructions: str | None, on_complete: Callable[[CompactionResult], Any] | None, on_error: Callable[[Exception], Any] | None
    ) -> None:
        """Compacts as nobody's part, for an extension; returns at once (CTXT-7)."""
        self._parts.nursery.start_soon(self._compact_apart, instructions, on_complete, on_error)

    async def _compact_apart(self, instructions: str | None, on_complete: Any, on_error: Any) -> None:
        with apart():
            outcome = await guard(self.compact, instructions)
            callback = on_error if isinstance(outcome, Failure) else on_complete
            if callback is not None:
                given = outcome.error if isinstance(outcome, Failure) else outcome.value  # type: ignore[union-attr]  # no scope, no Cut
                outcome = await guard(callback, given)
            if isinstance(outcome, Failure):
                self._parts.host.report_failure("<runtime>", "compact", outcome)

    # -- navigation ----------------------------------------------------------------------

    async def navigate(self, target: str, wish: Wish) -> NavigationResult:
        """Moves the leaf to `target`. Raises NavigationFailed, or StorageError; then nothing has changed."""
        state = self._parts.state
        if admit(Operation.NAVIGATE, state.live.activity) is Verdict.REFUSE or self._parts.host.hearing:
            raise NavigationFailed(MOVING_TEXT if state.live.activity is Activity.COMPACTING else BUSY_TEXT)
        if target == state.leaf_id:
            return NavigationResult(cancelled=False)
        position = state.tree.position(target)
        if position is None:
            raise NavigationFailed(f"Entry {target} not found")
        if wish.summarize and state.selection.model is None:
            raise NavigationFailed(NO_SUMMARY_MODEL_TEXT)
        place = destination(state.tree.entry(position))
        left = left_branch(state.tree, state.projection.leaf, position)
        old_leaf = state.leaf_id
        with self._flights.exclusives.claimed() as signal:
            entry, is_cancelled = await self._move(target, place, left, (wish, signal))
        if is_cancelled:
            return NavigationResult(cancelled=True)
        await self._tell(old_leaf, entry)
        return NavigationResult(cancelled=False, editor_text=place.editor_text, summary_entry=entry)

    async def _move(
        self, target: str, place: Destination, left: LeftBranch, asked: tuple[Wish, AbortSignal]
    ) -> tuple[BranchSummaryEntry | None, bool]:
        """The summary entry, if any, and whether somebody stopped the navigation."""
        wish, signal = asked
        gate = await self._ask_extensions(target, left, (wish, signal))
        if gate is not None and gate.cancelled or signal.cancelled:
            return None, True
        wish = _overridden(wish, gate)
        summary: _Summary | None = None
        if wish.summarize:
            supplied = None if gate is None or gate.result is None else gate.result.summary
            if supplied is not None:
                summary = _Summary(text=supplied.summary, details=supplied.details, usage=supplied.usage, from_hook=True)
            elif left.entries:
                made = await self._summarised(left, wish, signal)
                if isinstance(made, SummaryFailure):
                    return None, True
                summary = made
        return self._post(target, place, summary, wish.label), False

    async def _ask_extensions(self, target: str, left: LeftBranch, asked: tuple[Wish, AbortSignal]) -> Gate | None:
        wish, signal = asked
        if not self._parts.host.has("session_before_tree"):
            return None
        preparation = TreePreparation(
            target_id=target,
            old_leaf_id=self._parts.state.leaf_id,
            common_ancestor_id=left.common_ancestor_id,
            entries_to_summarize=left.entries,
            user_wants_summary=wish.summarize,
            custom_instructions=wish.custom_instructions,
            replace_instructions=wish.replace_instructions,
            label=wish.label,
        )
        gate: Gate = await self._parts.host.dispatch(
            "session_before_tree", Gate(event=SessionBeforeTreeEvent(preparation=preparation, signal=signal))
        )
        return gate

    async def _summarised(self, left: LeftBranch, wish: Wish, signal: AbortSignal) -> _Summary | SummaryFailure:
        """The summary of the branch; a failure only if it was aborted. Raises NavigationFailed for the others (CMP-69)."""
        state = self._parts.state
        model = state.selection.model
        limiting = limiting_model(state, self._parts.providers)
        budget = budget_of(0 if limiting is None else limiting.context_window, state.settings.branch_summary.reserve_tokens)
        content = branch_content(state.tree, left.entries, budget)
        request = branch_request(content, wish.custom_instructions, wish.replace_instructions is True)
        if request is None:
            return _Summary(text=stored_branch_summary(content, None), details=details_of(content.file_ops), from_hook=False)
        unready = self._parts.unready()
        if unready is not None or model is None:
            raise NavigationFailed(unready or NO_MODEL_TEXT)
        summarizer = Summarizer(
            parts=self._parts, signal=signal, model=model, thinking_level=state.selection.thinking_level, source="branchSummary"
        )
        answer = await summarizer.summarize(request)
        if isinstance(answer, SummaryFailure):
            if answer.aborted:
                return answer
            raise NavigationFailed(answer.text)
        text = stored_branch_summary(content, answer.text)
        return _Summary(text=text, details=details_of(content.file_ops), usage=answer.usage, from_hook=False)

    def _post(self, target: str, place: Destination, summary: _Summary | None, label: str | None) -> BranchSummaryEntry | None:
        """The move, in one commit, and the tools of the new branch."""
        label = label or None
        if summary is None or not summary.text:
            self._parts.posted(MoveLeaf(entry_id=place.leaf_id, label=label, label_target=target))
            self._restore_tools()
            return None
        commit = self._parts.posted(
            AppendBranchSummary(
                entry_id=place.leaf_id,
                summary=summary.text,
                details=summary.details,
                usage=summary.usage,
                from_hook=summary.from_hook,
                label=label,
            )
        )
        self._restore_tools()
        entry = commit.entries[0]
        assert isinstance(entry, BranchSummaryEntry)
        return entry

    def _restore_tools(self) -> None:
        """The active tools of the branch; one that says nothing keeps the current ones (CTX-28, EXPO-7)."""
        recorded = recorded_tools(self._parts.state)
        if recorded is None:
            return
        tools, current = self._parts.host.tools, self._parts.state.selection.active_tools
        awaited = tuple([name for name in recorded.declared if name not in tools])
        new = [name for name, tool in tools.items() if name not in recorded.mentioned and _is_activated_as_new(tool)]
        self._parts.posted(SelectTools(active_tools=with_active(current, [*recorded.declared, *new], tools), awaited=awaited))

    async def _tell(self, old_leaf: str | None, entry: BranchSummaryEntry | None) -> None:
        if self._parts.host.has("session_tree"):
            event = SessionTreeEvent(
                new_leaf_id=self._parts.state.leaf_id,
                old_leaf_id=old_leaf,
                summary_entry=entry,
                from_extension=None if entry is None else entry.from_hook is True,
            )
            await self._parts.host.dispatch("session_tree", event)


def _is_activated_as_new(tool: RegisteredTool) -> bool:
    """Whether a branch that never mentioned the tool activates it: an extension's that registering would activate (EXPO-7)."""
    return tool.source_info.path != BUILTIN.path and activates(tool.definition)


def _overridden(wish: Wish, gate: Gate | None) -> Wish:
    """The wish with what the latest answer of an extension says otherwise (EVT-25)."""
    if gate is None or gate.result is None:
        return wish
    names = ("custom_instructions", "replace_instructions", "label")
    said = {name: value for name in names if (value := getattr(gate.result, name)) is not None}
    return attrs.evolve(wish, **said)
