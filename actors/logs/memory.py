"""The memory store: a session without a file (SES-47). It only keeps what it is given."""

from collections.abc import Sequence

import attrs

from camshaft.actors.errors import SessionSealed
from camshaft.actors.logs.port import Loaded, News
from camshaft.actors.logs.work_file import OpenWork
from camshaft.kernel import shapes
from camshaft.kernel.entries import Entry, SessionHeader
from camshaft.kernel.records import Decision, DecisionRecord, LeafRecord, Record


def open_memory(header: SessionHeader, entries: Sequence[Entry] = ()) -> tuple["MemoryLog", Loaded]:
    """A session that starts from these entries, in this order."""
    log = MemoryLog(header=header, entries=list(entries), leaf=entries[-1].id if entries else None)
    return log, log.loaded()


@shapes.define(eq=False, kw_only=True)
class MemoryLog:
    """Keeps entries and open records; never fails, never syncs."""

    header: SessionHeader
    entries: list[Entry]
    """Everything appended, in order."""
    leaf: str | None = None
    path: str | None = None
    sealed: str | None = None
    _work: OpenWork = attrs.field(factory=OpenWork)
    _closed: bool = False

    def loaded(self) -> Loaded:
        """What opening this session again would give."""
        return Loaded(
            header=self.header,
            entries=tuple(self.entries),
            records=self._work.records,
            commands=tuple(self._work.commands.items()),
            leaf=self.leaf,
        )

    def claim(self) -> Loaded | None:
        """Nobody else can write it."""
        return None

    def append(self, entries: Sequence[Entry], records: Sequence[Record] = (), decision: Decision | None = None) -> None:
        """Keeps one commit. Raises SessionSealed once it is closed."""
        if self._closed:
            raise SessionSealed("(memory)", "it was closed")
        if decision is not None:
            records = (DecisionRecord(turn_entry_id=decision.turn_entry_id, continue_=decision.continue_), *records)
        self.entries += entries
        for record in records:
            self._work.take(record)
        if entries:
            self._work.discharge([entry.id for entry in entries])
            self.leaf = entries[-1].id
        for record in records:
            if isinstance(record, LeafRecord):
                self.leaf = record.id

    def entry_of_command(self, command_id: str) -> str | None:
        """As in the port."""
        return self._work.commands.get(command_id)

    def take_news(self) -> News | None:
        """Nobody else can write it."""
        return None

    async def barrier(self) -> None:
        """Nothing to sync."""

    async def settle(self) -> None:
        """Nothing to sync or give back."""

    def close(self) -> None:
        """For good."""
        self._closed = True

    async def aclose(self) -> None:
        """As `close`."""
        self.close()
