"""The side file of a session: its lines, and what they still mean.

A line is the CRC-32 of the JSON in 8 hex digits, a space, the record as compact JSON, LF. A
line whose sum is wrong or whose LF is missing does not count, and nothing behind it does.

Theory of operation. Records are kept until something discharges them: an `input` until its
entry exists or a `fate` ends it, a `calls` until all its results exist, everything of a run
until `settled`. `OpenWork` is that fold, the same one while a session lives and when it is
opened again. `open` closes the batches before it; so that no decision is lost by that, the
decisions of an unfinished run are repeated as `decision` records in front of it.

A `leaf` line carries, besides the record, `after`: the id of the last entry when the leaf was
moved. The leaf counts while that is still the last one; any later entry moved it again
(SES-35), also one of a writer that knows nothing of this file.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final
from zlib import crc32

import attrs

from camshaft.kernel import codec
from camshaft.kernel.entries import Entry
from camshaft.kernel.errors import CodecError, MalformedJson
from camshaft.kernel.records import (
    BatchRecord,
    CallsRecord,
    DecisionRecord,
    FateRecord,
    FinishedRecord,
    InputRecord,
    LeafRecord,
    OpenRecord,
    Record,
    RunRecord,
    SettledRecord,
    WaitRecord,
)

_LINE: Final = re.compile(rb"([0-9a-f]{8}) (.+)", re.DOTALL)


@attrs.frozen(kw_only=True)
class WorkLine:
    """One whole line of the side file."""

    record: Record
    raw: bytes
    """The line as it stands there, with LF."""
    after: str | None = None
    """Of a `leaf`: id of the last entry when it was moved."""


@attrs.frozen(kw_only=True)
class WorkText:
    """What can be read of a side file."""

    lines: tuple[WorkLine, ...] = ()
    size: int = 0
    """Bytes of these lines; what stands behind them is torn."""

    @property
    def last_open(self) -> OpenRecord | None:
        """The `open` record that counts."""
        found = [line.record for line in self.lines if isinstance(line.record, OpenRecord)]
        return found[-1] if found else None

    def batches_due(self) -> list[WorkLine]:
        """The batches behind the last `open` that found the session file; they may be missing there."""
        due: list[WorkLine] = []
        for line in self.lines:
            if isinstance(line.record, OpenRecord) and line.record.size is not None:
                due.clear()
            elif isinstance(line.record, BatchRecord):
                due.append(line)
        return due


def line_of(record: Record, after: str | None = None) -> bytes:
    """The line of a record; `after` is for a `leaf` alone."""
    text = codec.dumps({**codec.encode(record), "after": after}) if isinstance(record, LeafRecord) else codec.dumps(record)
    return b"%08x %b\n" % (crc32(text), text)


def read_work(data: bytes) -> WorkText:
    """The lines of a side file up to the first that is torn or wrong. O(bytes)."""
    lines: list[WorkLine] = []
    start = 0
    while (end := data.find(b"\n", start)) >= 0:
        line = _line(data[start : end + 1])
        if line is None:
            break
        lines.append(line)
        start = end + 1
    return WorkText(lines=tuple(lines), size=start)


def _line(raw: bytes) -> WorkLine | None:
    found = _LINE.fullmatch(raw[:-1])
    if found is None or int(found[1], 16) != crc32(found[2]):
        return None
    try:
        value = codec.loads(found[2])
        after = None
        if isinstance(value, dict) and value.get("type") == LeafRecord.type:
            after = value.pop("after", None)
        return WorkLine(record=codec.decode_record(value), raw=raw, after=after)
    except (MalformedJson, CodecError):
        return None


@attrs.define(eq=False)
class OpenWork:
    """The records that nothing has discharged yet, in order."""

    records: list[Record] = attrs.field(factory=list)
    commands: dict[str, str] = attrs.field(factory=dict)
    """Command id to entry id, of every input so far."""
    reserved: dict[str, Record] = attrs.field(factory=dict)
    """The `input` or `finished` record that an entry of this id discharges."""
    unconfirmed: list[Record] = attrs.field(factory=list)
    """Decisions that only a batch says; the next `open` ends them unless they were repeated."""

    @property
    def run_open(self) -> bool:
        """Whether a run was started and has not settled."""
        return any(isinstance(record, RunRecord) for record in self.records)

    def take(self, record: Record) -> None:
        """Folds one record. A batch counts by its decision only; its entries come through `discharge`."""
        match record:
            case OpenRecord():
                self._take_open(record)
            case BatchRecord():
                self._take_batch(record)
            case DecisionRecord():
                self._take_decision(record)
            case FateRecord():
                self._end_input(record.input_id)
            case SettledRecord():
                self._end_run()
            case LeafRecord():
                pass
            case _:
                self._take_open_end(record)

    def _take_open_end(self, record: Record) -> None:
        """What stays until something discharges it."""
        if isinstance(record, InputRecord):
            self.reserved[record.entry_id] = record
            if record.command_id is not None:
                self.commands[record.command_id] = record.entry_id
        elif isinstance(record, FinishedRecord):
            self.reserved[record.result_entry_id] = record
        self.records.append(record)

    def _take_open(self, record: OpenRecord) -> None:
        self.commands.update(record.commands)
        if record.size is not None:
            self.records = [kept for kept in self.records if kept not in self.unconfirmed]
            self.unconfirmed.clear()

    def _take_decision(self, record: DecisionRecord) -> None:
        if record in self.unconfirmed:
            self.unconfirmed.remove(record)
        elif record not in self.records:
            self.records.append(record)

    def discharge(self, ids: Iterable[str]) -> None:
        """Entries with these ids exist now."""
        for entry_id in ids:
            record = self.reserved.pop(entry_id, None)
            if record is not None:
                self.records.remove(record)

    def decisions(self) -> tuple[DecisionRecord, ...]:
        """Decisions of the unfinished run."""
        return tuple(record for record in self.records if isinstance(record, DecisionRecord))

    def _take_batch(self, batch: BatchRecord) -> None:
        if batch.decision is None:
            return
        decision = DecisionRecord(turn_entry_id=batch.decision.turn_entry_id, continue_=batch.decision.continue_)
        if decision not in self.records:
            self.records.append(decision)
            self.unconfirmed.append(decision)

    def _end_input(self, input_id: str) -> None:
        for record in self.records:
            if isinstance(record, InputRecord) and record.input_id == input_id:
                self.records.remove(record)
                self.reserved.pop(record.entry_id, None)
                return

    def _end_run(self) -> None:
        kept = [record for record in self.records if isinstance(record, InputRecord)]
        self.records = list(kept)
        self.unconfirmed.clear()
        self.reserved = {record.entry_id: record for record in kept}


def work_of(text: WorkText, present: Collection[str] | Mapping[str, int], void: Collection[BatchRecord]) -> OpenWork:
    """What the lines of a side file still mean, given the ids of the session file. `void` are the superseded batches.

    A `calls` or `wait` that names an entry no file holds is void too (power loss).
    """
    work = OpenWork()
    for line in text.lines:
        if not any(line.record is batch for batch in void):
            work.take(line.record)
    work.discharge([entry_id for entry_id in work.reserved if entry_id in present])
    work.records = [record for record in work.records if not _baseless(record, present)]
    return work


def _baseless(record: Record, present: Collection[str] | Mapping[str, int]) -> bool:
    match record:
        case CallsRecord():
            return any(call.of not in present for call in record.calls) or all(call.result_entry_id in present for call in record.calls)
        case WaitRecord():
            return record.of is not None and record.of not in present
        case _:
            return False


def leaf_of(text: WorkText, last_id: str | None) -> str | None:
    """The current position when `last_id` is the last entry (SES-36, SES-37)."""
    leaf = last_id
    for line in text.lines:
        match line.record:
            case OpenRecord(last_id=after, leaf=moved):
                leaf = moved if after == last_id else last_id
            case LeafRecord(id=moved):
                leaf = moved if line.after == last_id else leaf
            case _:
                pass
    return leaf


def entries_of(batches: Iterable[WorkLine]) -> list[Entry]:
    """All entries of these batches, in order."""
    found: list[Entry] = []
    for line in batches:
        if isinstance(line.record, BatchRecord):
            found += line.record.entries
    return found
