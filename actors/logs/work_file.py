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
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final
from zlib import crc32

import attrs

from camshaft.kernel import codec, shapes
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


@shapes.frozen(kw_only=True)
class WorkLine:
    """One whole line of the side file."""

    record: Record
    raw: bytes
    """The line as it stands there, with LF."""
    after: str | None = None
    """Of a `leaf`: id of the last entry when it was moved."""


@shapes.frozen(kw_only=True)
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


_Key = tuple[str, str | None]


@shapes.define(eq=False)
class OpenWork:
    """The records that nothing has discharged yet, in order. Every step is O(1), however long the run."""

    commands: dict[str, str] = attrs.field(factory=dict)
    """Command id to entry id, of every input so far."""
    _open: dict[_Key, Record] = attrs.field(factory=dict)
    _reserved: dict[str, _Key] = attrs.field(factory=dict)
    """Which `input` or `finished` record an entry of this id discharges."""
    _unconfirmed: dict[_Key, DecisionRecord] = attrs.field(factory=dict)
    """Decisions that only a batch says; the next `open` ends them unless they were repeated."""

    @property
    def records(self) -> tuple[Record, ...]:
        """The open records, in the order they were written."""
        return tuple(self._open.values())

    @property
    def has_records(self) -> bool:
        """Whether any record is open."""
        return bool(self._open)

    @property
    def run_open(self) -> bool:
        """Whether a run was started and has not settled."""
        return any([kind == RunRecord.type for kind, _ in self._open])

    @property
    def unconfirmed(self) -> tuple[DecisionRecord, ...]:
        """Open decisions that have no line of their own yet."""
        return tuple([decision for key, decision in self._unconfirmed.items() if key in self._open])

    def take(self, record: Record) -> None:
        """Folds one record. A batch counts by its decision only; its entries come through `discharge`."""
        match record:
            case OpenRecord():
                self._take_open(record)
            case BatchRecord():
                self._take_batch(record)
            case DecisionRecord():
                self._unconfirmed.pop(_key(record), None)
                self._open.setdefault(_key(record), record)
            case FateRecord():
                self._close((InputRecord.type, record.input_id))
            case SettledRecord():
                self._end_run()
            case LeafRecord():
                pass
            case _:
                self._take_open_end(record)

    def discharge(self, ids: Iterable[str]) -> None:
        """Entries with these ids exist now."""
        for entry_id in ids:
            key = self._reserved.pop(entry_id, None)
            if key is not None:
                self._open.pop(key, None)

    def discharge_present(self, present: Collection[str] | Mapping[str, int]) -> None:
        """As `discharge`, for the ids a session file holds."""
        self.discharge([entry_id for entry_id in self._reserved if entry_id in present])

    def drop(self, void: Callable[[Record], bool]) -> None:
        """Forgets the open records that mean nothing."""
        for key in [key for key, record in self._open.items() if void(record)]:
            self._close(key)

    def _take_open_end(self, record: Record) -> None:
        """What stays until something discharges it."""
        key = _key(record)
        if isinstance(record, InputRecord):
            self._reserved[record.entry_id] = key
            if record.command_id is not None:
                self.commands[record.command_id] = record.entry_id
        elif isinstance(record, FinishedRecord):
            self._reserved[record.result_entry_id] = key
        self._open[key] = record

    def _take_open(self, record: OpenRecord) -> None:
        self.commands.update(record.commands)
        if record.size is not None:
            for key in self._unconfirmed:
                self._open.pop(key, None)
            self._unconfirmed.clear()

    def _take_batch(self, batch: BatchRecord) -> None:
        if batch.decision is None:
            return
        decision = DecisionRecord(turn_entry_id=batch.decision.turn_entry_id, continue_=batch.decision.continue_)
        key = _key(decision)
        if self._open.get(key) != decision:
            self._open[key] = decision
            self._unconfirmed[key] = decision

    def _close(self, key: _Key) -> None:
        record = self._open.pop(key, None)
        if isinstance(record, InputRecord):
            self._reserved.pop(record.entry_id, None)
        elif isinstance(record, FinishedRecord):
            self._reserved.pop(record.result_entry_id, None)

    def _end_run(self) -> None:
        """Only inputs outlive a run."""
        self._open = {key: record for key, record in self._open.items() if isinstance(record, InputRecord)}
        self._unconfirmed.clear()
        self._reserved = {entry_id: key for entry_id, key in self._reserved.items() if key in self._open}


def _key(record: Record) -> _Key:
    """What a record is about; a later one about the same replaces it."""
    match record:
        case InputRecord():
            return record.type, record.input_id
        case RunRecord():
            return record.type, record.run_id
        case DecisionRecord():
            return record.type, record.turn_entry_id
        case CallsRecord():
            return record.type, record.calls[0].of if record.calls else None
        case FinishedRecord():
            return record.type, record.result_entry_id
        case WaitRecord():
            return record.type, record.of
        case _:
            return record.type, None


def work_of(text: WorkText, present: Collection[str] | Mapping[str, int], void: Collection[BatchRecord]) -> OpenWork:
    """What the lines of a side file still mean, given the ids of the session file. `void` are the superseded batches.

    A `calls` or `wait` that names an entry no file holds is void too (power loss).
    """
    work = OpenWork()
    for line in text.lines:
        if not any(line.record is batch for batch in void):
            work.take(line.record)
    work.discharge_present(present)
    work.drop(lambda record: _baseless(record, present))
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
