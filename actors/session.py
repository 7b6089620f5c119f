"""Owner of one session's state: the only code that writes its log.

One door: `post`, which decides, writes, evolves and publishes without a checkpoint, so nobody
comes between deciding and showing and no cancel can leave it half done. What is left if the
process dies: before the write nothing, after it the log, of which the state is the fold. A
write that fails changes nothing; a log that can no longer be trusted is sealed and every
later post that would write raises. This actor calls nobody, so no wait cycle contains it.
"""

from collections.abc import Container, Sequence
from typing import Final

import attrs

from camshaft.actors.event_stream import EventStream
from camshaft.actors.logs.port import Loaded, Log, News
from camshaft.actors.ports.clock import Clock, Ids
from camshaft.kernel import shapes
from camshaft.kernel.commands import Command, SelectModel, SelectTools, UseSettings
from camshaft.kernel.errors import Rejection
from camshaft.kernel.events import DiagnosticEvent
from camshaft.kernel.session_file import SessionImage
from camshaft.kernel.settings import Settings
from camshaft.kernel.state import Commit, SessionState, Stamps, decide, evolve, ids_needed, initial
from camshaft.kernel.tree import Tree, tree_of

REDRAWS_MAX: Final = 100
"""Draws of an entry id before a longer one is taken (SES-20)."""


@shapes.define(eq=False)
class SessionActor:
    """Serves commands in order of arrival."""

    _log: Log
    _clock: Clock
    _ids: Ids
    _stream: EventStream
    state: SessionState
    """Latest snapshot. Anyone may read it; only `post` replaces it."""
    _rested: bool = False
    """The log was given back after the last run; another process may have written since."""

    @property
    def log(self) -> Log:
        """The store, for its barrier and for where it is."""
        return self._log

    def post(self, command: Command, stamps: Stamps | None = None) -> Commit | Rejection:
        """What became true, or why nothing did. Raises StorageError if the log refuses; then nothing has changed.

        `stamps` are given by who had to know the ids before; they come from `stamps`.
        """
        if self._rested and _is_about_the_log(command):
            self._return()
        commit = decide(self.state, command, stamps or self.stamps(ids_needed(self.state, command)))
        if isinstance(commit, Rejection):
            return commit
        if commit.entries or commit.records or commit.decision is not None:
            self._log.append(commit.entries, commit.records, commit.decision)
            self._read_in(self._log.take_news())
        self.state = evolve(self.state, commit)
        for event in commit.events:
            self._stream.publish(event)
        return commit

    def entry_of_command(self, command_id: str) -> str | None:
        """The id that the entry of an input has, or will have, by the client's command id; None: never heard of it.

        Looks what another process wrote meanwhile. Raises SessionLocked.
        """
        if self._rested:
            self._return()
        return self._log.entry_of_command(command_id)

    def stamps(self, count: int) -> Stamps:
        """The time and `count` ids that are not in the session."""
        ids: dict[str, None] = {}
        while len(ids) < count:
            ids[self._fresh_id(ids)] = None
        return Stamps(now_ms=self._clock.now_ms(), ids=tuple(ids))

    def now_ms(self) -> int:
        """Wall clock, ms since the Unix epoch."""
        return self._clock.now_ms()

    def rest(self) -> None:
        """The log was settled: the next post looks whether somebody else wrote meanwhile."""
        self._rested = True

    def _return(self) -> None:
        loaded = self._log.claim()
        self._rested = False
        if loaded is not None:
            fresh = loaded_state(loaded, self.state.settings)
            self.state = attrs.evolve(fresh, selection=self.state.selection, live=self.state.live)
            self._stream.publish(DiagnosticEvent(source="session", message="another process wrote the session; it was read again"))

    def _read_in(self, news: News | None) -> None:
        """Entries of a foreign writer become a sibling branch; the leaf stays (SES-90)."""
        if news is None:
            return
        tree = self.state.tree
        for entry in news.entries:
            tree = tree.append(entry)
        projection = attrs.evolve(self.state.projection, tree=tree)
        self.state = attrs.evolve(self.state, tree=tree, projection=projection)
        for each in news.diagnostics:
            self._stream.publish(DiagnosticEvent(source="session", message=str(each)))

    def _fresh_id(self, drawn: Container[str]) -> str:
        tree = self.state.tree
        for _ in range(REDRAWS_MAX):
            entry_id = self._ids.entry_id()
            if tree.position(entry_id) is None and entry_id not in drawn:
                return entry_id
        return self._ids.session_id()


def _is_about_the_log(command: Command) -> bool:
    """Whether it reads or writes what is stored. What does not needs no lease, and another writer cannot refuse it."""
    return not isinstance(command, SelectTools | UseSettings) and not (isinstance(command, SelectModel) and not command.record)


def loaded_state(loaded: Loaded, settings: Settings) -> SessionState:
    """The state of a session as the store found it."""
    tree = tree_of_loaded(loaded.entries)
    leaf = None if loaded.leaf is None else tree.position(loaded.leaf)
    return initial(loaded.header, tree, leaf, loaded.records, settings)


def tree_of_loaded(entries: SessionImage | Sequence[object]) -> Tree:
    """The tree of an image or of entries in memory."""
    return tree_of(image=entries) if isinstance(entries, SessionImage) else tree_of(entries=entries)  # type: ignore[arg-type]  # Loaded.entries holds entries
