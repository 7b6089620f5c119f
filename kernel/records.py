"""Work records: facts about work in flight that no entry shows yet (the side file).

A record is written before the effect it announces and names the ids of the entries that
will settle it; when those entries exist it is discharged by itself. `design/log.md` has the
commit protocol.
"""

from typing import ClassVar, Literal

from camshaft.kernel import shapes
from camshaft.kernel.entries import Entry, SessionHeader
from camshaft.kernel.messages import Message

Way = Literal["prompt", "steer", "followUp", "nextTurn", "custom"]
"""How an input reaches the model."""


@shapes.frozen(kw_only=True)
class OpenRecord:
    """The state of the session file when it was opened or first synced; the last one counts."""

    type: ClassVar[Literal["open"]] = "open"
    header: SessionHeader
    size: int | None
    """Bytes of the session file, as far as it is synced; None while it does not exist."""
    last_id: str | None
    leaf: str | None
    commands: tuple[tuple[str, str], ...] = ()
    """(command id, entry id) of every input so far, so that a repeated prompt finds its entry."""


@shapes.frozen(kw_only=True)
class InputRecord:
    """An input was accepted; open until its entry exists or a fate ends it (QUE-15)."""

    type: ClassVar[Literal["input"]] = "input"
    input_id: str
    entry_id: str
    """Reserved for the entry that delivers it."""
    way: Way
    message: Message
    command_id: str | None = None


@shapes.frozen(kw_only=True)
class StartingMessage:
    """A message a run begins with, and the id its entry will have."""

    entry_id: str
    message: Message


@shapes.frozen(kw_only=True)
class RunRecord:
    """A run is about to start with these messages, in this order (LOOP-8)."""

    type: ClassVar[Literal["run"]] = "run"
    run_id: str
    input_ids: tuple[str, ...]
    starting: tuple[StartingMessage, ...]


@shapes.frozen(kw_only=True)
class Decision:
    """What a boundary decided for the turn of an assistant entry."""

    turn_entry_id: str | None
    continue_: bool


@shapes.frozen(kw_only=True)
class BatchRecord:
    """Entries that become true together; its line is their commit point."""

    type: ClassVar[Literal["batch"]] = "batch"
    base: str | None
    """Id of the last entry before them; None if there is none."""
    entries: tuple[Entry, ...]
    decision: Decision | None = None


@shapes.frozen(kw_only=True)
class DecisionRecord:
    """A boundary decision without entries."""

    type: ClassVar[Literal["decision"]] = "decision"
    turn_entry_id: str | None
    continue_: bool


@shapes.frozen(kw_only=True)
class PlannedCall:
    """A tool call about to start."""

    call_id: str
    ordinal: int
    """Position in the assistant message, from 0; call ids may repeat (TOOL-10)."""
    of: str
    """Entry id of the assistant message."""
    result_entry_id: str
    replay: Literal["never", "safe"] = "never"
    """Whether it may run again after a crash."""


@shapes.frozen(kw_only=True)
class CallsRecord:
    """The batch of an assistant message is about to start."""

    type: ClassVar[Literal["calls"]] = "calls"
    calls: tuple[PlannedCall, ...]


@shapes.frozen(kw_only=True)
class FinishedRecord:
    """A call of an unfinished batch ended with this result."""

    type: ClassVar[Literal["finished"]] = "finished"
    result_entry_id: str
    message: Message


@shapes.frozen(kw_only=True)
class WaitRecord:
    """The run waits until `due`."""

    type: ClassVar[Literal["wait"]] = "wait"
    of: str | None
    """Id of the omission that starts the wait, if any."""
    kind: Literal["retry"]
    attempt: int
    due: int
    """Wall clock, ms since the Unix epoch."""


@shapes.frozen(kw_only=True)
class LeafRecord:
    """The leaf moved without an entry."""

    type: ClassVar[Literal["leaf"]] = "leaf"
    id: str | None


@shapes.frozen(kw_only=True)
class FateRecord:
    """An input ended without an entry."""

    type: ClassVar[Literal["fate"]] = "fate"
    input_id: str
    fate: Literal["cancelled", "cleared", "handled"]


@shapes.frozen(kw_only=True)
class SettledRecord:
    """The run is over."""

    type: ClassVar[Literal["settled"]] = "settled"
    run_id: str
    outcome: str


Record = (
    OpenRecord
    | InputRecord
    | RunRecord
    | BatchRecord
    | DecisionRecord
    | CallsRecord
    | FinishedRecord
    | WaitRecord
    | LeafRecord
    | FateRecord
    | SettledRecord
)
