"""The conditions and the changes that rows of the run table are made of.

A guard looks at the run and at the session as it is when the row is tried; a change gives the
next run. Neither decides what comes next: that is which row names it.
"""

import attrs

from camshaft.kernel import retries
from camshaft.kernel.compaction_checks import Need, need
from camshaft.kernel.errors import IllegalStep
from camshaft.kernel.messages import FAILED, AssistantMessage
from camshaft.kernel.run_data import Run, View

# -- guards ------------------------------------------------------------------------------


def aborting(_run: Run, view: View) -> bool:
    """An abort was requested."""
    return view.state.live.aborting


def not_aborting(run: Run, view: View) -> bool:
    """No abort was requested."""
    return not aborting(run, view)


def first_turn(run: Run, _view: View) -> bool:
    """Turn 0 of a low-level run."""
    return run.turn == 0


def retried(run: Run, _view: View) -> bool:
    """The response answers a retry."""
    return run.attempt > 0


def err(run: Run, _view: View) -> bool:
    """The last response failed or was aborted."""
    return run.last is not None and run.last.message.stop_reason in FAILED


def good(run: Run, view: View) -> bool:
    """The last response did not fail."""
    return not err(run, view)


def was_aborted(run: Run, _view: View) -> bool:
    """The last response was aborted."""
    return run.last is not None and run.last.message.stop_reason == "aborted"


def failed(run: Run, _view: View) -> bool:
    """The last response is an error."""
    return run.last is not None and run.last.message.stop_reason == "error"


def calls(run: Run, _view: View) -> bool:
    """The last response has tool calls."""
    return run.last is not None and bool(run.last.message.tool_calls)


def truncated(run: Run, _view: View) -> bool:
    """The last response hit the output limit."""
    return run.last is not None and run.last.message.stop_reason == "length"


def more(run: Run, _view: View) -> bool:
    """The batch asks for another turn."""
    return run.more


def go(run: Run, _view: View) -> bool:
    """A boundary's continuation was accepted."""
    return run.go


def below_cap(run: Run, view: View) -> bool:
    """Another continuation is within the host's limit."""
    return view.continuations_max is None or run.extra < view.continuations_max


def steer(_run: Run, view: View) -> bool:
    """A steering message waits."""
    return bool(view.state.queues.steering)


def not_from_steer(run: Run, _view: View) -> bool:
    """The low-level run was not itself started from steering messages (LOOP-12)."""
    return not run.from_steer


def follow(_run: Run, view: View) -> bool:
    """A follow-up waits."""
    return bool(view.state.queues.follow_up)


def queued(_run: Run, view: View) -> bool:
    """Any message waits in a queue."""
    return view.state.queues.waiting


def not_queued(run: Run, view: View) -> bool:
    """No message waits in a queue."""
    return not queued(run, view)


def ends_assistant(_run: Run, view: View) -> bool:
    """The last context message is an assistant message."""
    messages = view.state.projection.messages
    return bool(messages) and isinstance(messages[-1], AssistantMessage)


def not_ends_assistant(run: Run, view: View) -> bool:
    """The last context message is not an assistant message."""
    return not ends_assistant(run, view)


def more_or_go(run: Run, _view: View) -> bool:
    """Something asks for another turn."""
    return run.more or run.go


def retryable(run: Run, view: View) -> bool:
    """RTY-1, with attempts left, and not already omitted."""
    settings, last = view.state.settings.retry, run.last
    if last is None or not settings.enabled or last.entry_id == run.omitted or run.attempt >= settings.max_retries:
        return False
    return retries.is_retryable(last.message) and not _overflow(run, view)


def recover(run: Run, view: View) -> bool:
    """An overflow that compacting can mend (RTY-22, RTY-23)."""
    return need(run, view) is Need.RECOVERY


def beyond(run: Run, view: View) -> bool:
    """The same, but a recovery was tried or is impossible, and it was not reported before (RTY-24, RTY-25)."""
    return need(run, view) is Need.BEYOND


def due(run: Run, view: View) -> bool:
    """Compaction is due after the run: a silent overflow or the threshold (RTY-23, RTY-30)."""
    return need(run, view) is Need.COMPACTION


def deferred(_run: Run, view: View) -> bool:
    """A prompt was deferred from `agent_settled`."""
    return view.deferred


def broken(run: Run, _view: View) -> bool:
    """This low-level run faulted before."""
    return run.faults > 0


def retry_waits(run: Run, _view: View) -> bool:
    """A retry was announced and not ended."""
    return run.attempt > 0 and run.error is not None


def wants_retry(run: Run, _view: View) -> bool:
    """The compaction succeeded and is followed by the request that failed."""
    return run.job == "recovery"


def _overflow(run: Run, view: View) -> bool:
    model = view.limiting
    window = 0 if model is None else model.context_window
    return run.last is not None and retries.is_overflow(run.last.message, window)


# -- changes -----------------------------------------------------------------------------


def attempt_cleared(run: Run) -> Run:
    """Retrying is over."""
    return attrs.evolve(run, attempt=0)


def next_attempt(run: Run) -> Run:
    """One more retry; its failed message is out of the context."""
    assert run.last is not None
    return attrs.evolve(run, attempt=run.attempt + 1, omitted=run.last.entry_id, job=None)


def will_go_on(run: Run) -> Run:
    """The answered calls ask for another turn."""
    return attrs.evolve(run, more=True)


def continued(run: Run) -> Run:
    """One more continuation that an extension asked for."""
    return attrs.evolve(run, extra=run.extra + 1, go=False)


def next_turn(run: Run) -> Run:
    """The next turn of this low-level run."""
    return attrs.evolve(run, turn=run.turn + 1)


def recovering(run: Run) -> Run:
    """An overflow recovery is under way; its message is out of the context."""
    assert run.last is not None
    return attrs.evolve(run, tried=True, omitted=run.last.entry_id, job="recovery")


def compacting(run: Run) -> Run:
    """A compaction after the run is under way."""
    return attrs.evolve(run, job="keep")


def reported(run: Run) -> Run:
    """The overflow of the last message was told once."""
    assert run.last is not None
    return attrs.evolve(run, reported=(*run.reported, run.last.entry_id))


def reopened(run: Run) -> Run:
    """A new low-level run."""
    return attrs.evolve(run, low_level=run.low_level + 1, turn=0, added=(), faults=0, from_steer=False, go=False, more=False)


def reopened_from_steering(run: Run) -> Run:
    """A new low-level run that begins with steering messages (LOOP-12)."""
    return attrs.evolve(reopened(run), from_steer=True)


def faulted(run: Run) -> Run:
    """The turn is replaced by the error message of the fault (LOOP-55)."""
    return attrs.evolve(run, faults=run.faults + 1, added=(), results=(), result_ids=(), more=False, go=False)


def stuck(run: Run) -> Run:
    """Nothing could be asked although the run was to go on."""
    fault = IllegalStep("the run was to go on, but its context ends with an answer and no message waits")
    return attrs.evolve(run, error=fault)
