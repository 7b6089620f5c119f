"""Performs compactions: prepare, ask extensions, summarise, append, tell (CMP-18 to CMP-21, CMP-36 to CMP-49).

Whether one is due is decided by `kernel/compaction_checks.py`, what it is made of by
`kernel/compaction.py`. The order: `compaction_start`, `session_before_compact`, the summary,
the append, `session_compact`, `compaction_end`; a failure ends with `compaction_end` and
`session_compact_failed`. Everything before the append is undone by forgetting it, and the
append is one entry in one write, so at every await the session is either untouched or has
exactly that entry. If the process dies, that is also what the file holds.

What is entered as an automatic compaction never raises for a summary that failed: the run
goes on (RTY-31), and where a retry depended on it, there is none.
"""

from collections.abc import Sequence

import attrs

from camshaft.actors.errors import StorageError
from camshaft.actors.seat_parts import SeatParts
from camshaft.actors.signal import AbortSignal
from camshaft.actors.summaries import Summarizer
from camshaft.actors.virtual_models import answered_model
from camshaft.kernel import shapes
from camshaft.kernel.commands import AppendCompaction, OmitEntries
from camshaft.kernel.compaction import GAIN_MIN, CompactionResult, drafted, refusal, requests, result_of
from camshaft.kernel.compaction_checks import (
    PREFIXES,
    Need,
    attempt,
    barren_after,
    beyond_text,
    context_size,
    need,
    prepared,
    reason_of,
)
from camshaft.kernel.entries import CompactionDraft, CompactionEntry
from camshaft.kernel.errors import Rejection
from camshaft.kernel.events import CompactionEnd, CompactionStart, DiagnosticEvent
from camshaft.kernel.hook_events import SessionCompactFailedEvent
from camshaft.kernel.projection import ContextEntry
from camshaft.kernel.run_data import Barren, Last, Run, View
from camshaft.kernel.session_events import (
    CompactionPreparation,
    CompactionReason,
    SessionBeforeCompactEvent,
    SessionCompactEvent,
    SuppliedCompaction,
)
from camshaft.kernel.session_merges import Gate
from camshaft.kernel.summaries import SummaryFailure, SummaryText


@shapes.frozen(kw_only=True)
class Job:
    """A compaction that is wanted."""

    reason: CompactionReason
    will_retry: bool = False
    """The request that failed is made again afterwards."""
    instructions: str | None = None
    """What the summary should look at."""
    signal: AbortSignal


@shapes.frozen
class Stopped:
    """Why there was no compaction; nothing was appended."""

    text: str | None = None
    """Without a prefix; None if it was aborted or cancelled."""
    from_extension: bool = False
    """What an extension supplied could not be used."""
    error: Exception | None = None
    """What the log raised."""

    @property
    def aborted(self) -> bool:
        """Whether somebody stopped it, rather than something went wrong."""
        return self.text is None


_ABORTED = Stopped()


@shapes.frozen(kw_only=True)
class _Made:
    entry: CompactionEntry
    result: CompactionResult


@shapes.define(eq=False)
class Compactions:
    """The compactions of one conversation, and what is remembered between them."""

    _parts: SeatParts
    earlier: Run | None = None
    """The run before, which a prompt's check goes on from (RTY-24)."""
    barren: Barren | None = None
    """The last compaction, if it gained nothing."""
    _signal: AbortSignal | None = None
    _held: tuple[ContextEntry, ...] = ()
    """The context of the one that is being made: read from its file once, because what nobody holds is let go of."""

    @property
    def is_active(self) -> bool:
        """Whether one is being made."""
        return self._signal is not None

    def abort(self) -> None:
        """Asks the one that is being made to stop, and leaves the run it may belong to alone."""
        if self._signal is not None:
            self._signal.request()

    # -- the moments ---------------------------------------------------------------------

    async def before_prompt(self, run: Run, signal: AbortSignal) -> Run:
        """Looks at the last answer before a prompt's run is prepared, and compacts if it asks for it (RTY-30). Raises BadSetting.

        A continuation is not started: the new prompt takes its place. The run remembers what was reported.
        """
        found = self._parts.state.projection.last_assistant
        if found is None:
            return run
        earlier = self.earlier or run
        last = Last(message=found[1], entry_id=found[0].id)
        looking = attrs.evolve(run, last=last, tried=earlier.tried, reported=earlier.reported)
        match need(looking, self._view(), before_prompt=True):
            case Need.BEYOND:
                await self.report_beyond(looking)
                return attrs.evolve(run, reported=(last.entry_id,))
            case Need.RECOVERY:
                self.omit(looking)
                await self.after_run(attrs.evolve(looking, job="recovery"), signal)
            case Need.COMPACTION:
                await self.after_run(attrs.evolve(looking, job="keep"), signal)
            case Need.NOTHING:
                pass
        return attrs.evolve(run, reported=tuple([entry_id for entry_id in earlier.reported if entry_id == last.entry_id]))

    async def between_turns(self, signal: AbortSignal) -> None:
        """Compacts because the next request would be too large; whatever comes of it, the turn goes on (RTY-31, VM-14)."""
        await self.perform(Job(reason="threshold", signal=signal))

    async def after_run(self, run: Run, signal: AbortSignal) -> Run:
        """Compacts for the job of `run`; the run without the job if that failed, so that nothing is retried (CMP-56)."""
        job = Job(reason=reason_of(run, self._view()), will_retry=run.job == "recovery", signal=signal)
        outcome = await self.perform(job)
        return run if isinstance(outcome, CompactionResult) else attrs.evolve(run, job=None)

    def omit(self, run: Run) -> None:
        """Takes the last answer and its tool results out of the context (CMP-55). Raises CommandRefused."""
        assert run.last is not None
        self._parts.posted(OmitEntries(entry_ids=attempt(self._parts.state.projection, run.last.entry_id)))

    async def report_beyond(self, run: Run) -> None:
        """Tells that the last answer cannot be recovered from (RTY-24, RTY-25)."""
        text = beyond_text(run)
        self._parts.stream.publish(CompactionEnd(reason="overflow", aborted=False, will_retry=False, error_message=text))
        await self._tell_failed(
            SessionCompactFailedEvent(reason="overflow", error_message=text, aborted=False, will_retry=not run.tried, from_extension=False)
        )

    def _view(self) -> View:
        parts = self._parts
        return View(state=parts.state, barren=self.barren, answered=answered_model(parts.state, parts.providers))

    # -- one compaction ------------------------------------------------------------------

    async def perform(self, job: Job) -> CompactionResult | Stopped | None:
        """Compacts. None: there was nothing to compact, and nobody who asked (CMP-19). Raises BadSetting before it begins."""
        self._held = tuple(self._parts.state.projection.context_entries)
        try:
            return await self._performed(job)
        finally:
            self._held = ()

    async def _performed(self, job: Job) -> CompactionResult | Stopped | None:
        preparation = prepared(self._parts.state)
        if preparation is None and job.reason != "manual":
            return None
        self._parts.stream.publish(CompactionStart(reason=job.reason))
        with job.signal.child() as signal:
            self._signal = signal
            made: _Made | Stopped | None = None
            try:
                made = await self._make(attrs.evolve(job, signal=signal), preparation)
            finally:
                self._signal = None
                if made is None:
                    self._parts.host.notify("session_compact_failed", self._tell_stop(job, _ABORTED))
        if isinstance(made, Stopped):
            await self._tell_failed(self._tell_stop(job, made))
            return made
        await self._tell_made(job, made)
        return made.result

    async def _make(self, job: Job, preparation: CompactionPreparation | None) -> _Made | Stopped:
        why = refusal(self._parts.state.projection, preparation)
        if why is not None or preparation is None:
            return Stopped(why)
        gate = await self._ask_extensions(job, preparation)
        if gate is not None and gate.cancelled or job.signal.cancelled:
            return _ABORTED
        supplied: SuppliedCompaction | None = None if gate is None or gate.result is None else gate.result.compaction
        if supplied is not None:
            return self._append(AppendCompaction(draft=_draft_of(supplied), tokens_before=supplied.tokens_before, from_hook=True))
        answers = await self._summarised(job, preparation)
        if isinstance(answers, Stopped):
            return answers
        draft = drafted(preparation, answers)
        return self._append(AppendCompaction(draft=draft, tokens_before=preparation.tokens_before, from_hook=False))

    async def _ask_extensions(self, job: Job, preparation: CompactionPreparation) -> Gate | None:
        host, state = self._parts.host, self._parts.state
        if not host.has("session_before_compact"):
            return None
        branch = state.projection.path
        event = SessionBeforeCompactEvent(
            preparation=preparation,
            branch_entries=tuple([state.tree.entry(branch[index]) for index in range(len(branch))]),
            custom_instructions=job.instructions,
            reason=job.reason,
            will_retry=job.will_retry,
            signal=job.signal,
        )
        gate: Gate = await host.dispatch("session_before_compact", Gate(event=event))
        return gate

    async def _summarised(self, job: Job, preparation: CompactionPreparation) -> Sequence[SummaryText] | Stopped:
        """The answers to the requests, one after the other."""
        selection, unready = self._parts.state.selection, self._parts.unready()
        if unready is not None or selection.model is None:
            return Stopped(unready)
        summarizer = Summarizer(
            parts=self._parts,
            signal=job.signal,
            model=selection.model,
            thinking_level=selection.thinking_level,
            source="compaction",
            reason=job.reason,
        )
        answers: list[SummaryText] = []
        for request in requests(preparation, job.instructions):
            answer = await summarizer.summarize(request)
            if isinstance(answer, SummaryFailure):
                return _ABORTED if answer.aborted else Stopped(answer.text)
            answers.append(answer)
        return answers

    def _append(self, command: AppendCompaction) -> _Made | Stopped:
        """One post: afterwards the compaction stands, whatever follows (CMP-48)."""
        before, supplied = context_size(self._parts.state.projection), command.from_hook is True
        try:
            commit = self._parts.session.post(command)
        except StorageError as error:
            return Stopped(str(error), from_extension=supplied, error=error)
        if isinstance(commit, Rejection):
            return Stopped(commit.why, from_extension=supplied)
        entry, after = commit.entries[0], self._parts.state.projection
        assert isinstance(entry, CompactionEntry)
        self.barren = barren_after(before, after)
        if self.barren is not None:
            self._report_barren(before, self.barren)
        return _Made(entry=entry, result=result_of(entry, after))

    # -- telling -------------------------------------------------------------------------

    def _report_barren(self, before: int, barren: Barren) -> None:
        text = (
            f"the compaction made the context smaller by less than {GAIN_MIN:.0%} (an estimate of {before} tokens before, "
            f"{barren.tokens} after); it is not repeated automatically until the context has grown. "
            "Lower compaction.keepRecentTokens, shorten the prompt, or use a model with a larger window"
        )
        self._parts.stream.publish(DiagnosticEvent(source="compaction", message=text))

    def _tell_stop(self, job: Job, stopped: Stopped) -> SessionCompactFailedEvent:
        """Tells hosts; what extensions are to be told."""
        text = None if stopped.text is None else PREFIXES[job.reason] + stopped.text
        self._parts.stream.publish(CompactionEnd(reason=job.reason, aborted=stopped.aborted, will_retry=False, error_message=text))
        return SessionCompactFailedEvent(
            reason=job.reason,
            error_message=text,
            aborted=stopped.aborted,
            will_retry=job.will_retry,
            from_extension=stopped.from_extension,
        )

    async def _tell_failed(self, event: SessionCompactFailedEvent) -> None:
        if self._parts.host.has("session_compact_failed"):
            await self._parts.host.dispatch("session_compact_failed", event)

    async def _tell_made(self, job: Job, made: _Made) -> None:
        """Extensions, then hosts, also if somebody no longer waits for the extensions."""
        event = SessionCompactEvent(
            compaction_entry=made.entry, from_extension=made.entry.from_hook is True, reason=job.reason, will_retry=job.will_retry
        )
        try:
            if self._parts.host.has("session_compact"):
                await self._parts.host.dispatch("session_compact", event)
        finally:
            end = CompactionEnd(reason=job.reason, result=made.result, aborted=False, will_retry=job.will_retry)
            self._parts.stream.publish(end)


def _draft_of(supplied: SuppliedCompaction) -> CompactionDraft:
    return CompactionDraft(
        summary=supplied.summary,
        first_kept_entry_id=supplied.first_kept_entry_id,
        details=supplied.details,
        usage=supplied.usage,
    )
