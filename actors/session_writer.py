"""The writable face of one session without a conversation: no loop, no tools, no extensions.

    with open_writer(OpenSession(path="a.jsonl"), world, cwd="/srv/app") as writer:
        writer.append(SetName(name="demo"))
        writer.branch(entry_id)

Everything is synchronous and goes through the session's actor: an append is written, or it
raises and nothing has changed (SES-43). A refusal raises CommandRefused, faults of the store
raise StorageError. Nothing is asked of a model here, so no append waits for a sync; `close`
does. The writer's lease is held from the first write to `close` (SES-90).
"""

from collections.abc import Callable, Iterator
from types import TracebackType

from camshaft.actors.errors import CommandRefused
from camshaft.actors.event_stream import EventStream, Listener
from camshaft.actors.logs.new_session import create_session
from camshaft.actors.logs.port import Diagnostic, Loaded, Log
from camshaft.actors.opening import Surroundings, Target, open_log
from camshaft.actors.session import SessionActor, loaded_state
from camshaft.actors.session_fork import Source, laid_out
from camshaft.actors.world import World
from camshaft.kernel import shapes
from camshaft.kernel.commands import Append, Command, MoveLeaf
from camshaft.kernel.entries import Entry, SessionHeader
from camshaft.kernel.errors import Rejection
from camshaft.kernel.extract import extract_branch
from camshaft.kernel.settings import Settings
from camshaft.kernel.state import Commit, SessionState


def open_writer(target: Target, world: World, *, cwd: str, agent_dir: str | None = None) -> "SessionWriter":
    """The session, open for writing; `cwd` and `agent_dir` are for one that does not exist yet.

    Raises InvalidOptions, NotASession, SessionLocked and other StorageErrors; nothing has changed then.
    """
    around = Surroundings(world=world, cwd=cwd, agent_dir=agent_dir, durability="settle")
    stream = EventStream()
    log, loaded = open_log(target, around)
    return SessionWriter(around, stream, _actor(log, loaded, around, stream), loaded.diagnostics)


def borrowed_writer(session: SessionActor, around: Surroundings, stream: EventStream) -> "SessionWriter":
    """The writable face of a session that a conversation has open; closing it changes nothing."""
    return SessionWriter(around, stream, session, (), is_borrowed=True)


def _actor(log: Log, loaded: Loaded, around: Surroundings, stream: EventStream) -> SessionActor:
    return SessionActor(log, around.world.clock, around.world.ids, stream, loaded_state(loaded, Settings()))


@shapes.define(eq=False)
class SessionWriter:
    """One session, and after `extract` the one that came out of it. Close it, or use it in a `with`."""

    _around: Surroundings
    _stream: EventStream
    _session: SessionActor
    diagnostics: tuple[Diagnostic, ...]
    """What opening noticed: damaged lines, missing parents."""
    _is_borrowed: bool = False
    """The session is somebody else's, who closes it."""

    def __enter__(self) -> "SessionWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # -- reading -------------------------------------------------------------------------

    @property
    def state(self) -> SessionState:
        """The latest snapshot: tree and projection, for everything the properties do not say."""
        return self._session.state

    @property
    def path(self) -> str | None:
        """The session file, whether it exists yet or not; None in memory."""
        return self._session.log.path

    @property
    def header(self) -> SessionHeader:
        """The session's header."""
        return self.state.header

    @property
    def entries(self) -> Iterator[Entry]:
        """All entries in file order, decoded one by one."""
        return self.state.tree.entries()

    @property
    def leaf_id(self) -> str | None:
        """Id of the current position; None without one."""
        return self.state.leaf_id

    @property
    def labels(self) -> tuple[tuple[str, str], ...]:
        """(entry id, label) of every labelled entry, in entry order (SES-53)."""
        return tuple([(entry.target_id, entry.label) for entry in self.state.tree.labels() if entry.label])

    @property
    def name(self) -> str | None:
        """The session's name (SES-62)."""
        return self.state.tree.name

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Calls `listener` with what is announced from now on, lines of foreign writers among it; returns its unsubscribe."""
        return self._stream.subscribe(listener)

    # -- writing -------------------------------------------------------------------------

    def append(self, command: Append) -> tuple[Entry, ...]:
        """Appends below the leaf; the entries made: one, of RecordSelection one for each value given.

        Raises CommandRefused, StorageError; nothing has changed then.
        """
        return self._posted(command).entries

    def branch(self, entry_id: str) -> None:
        """The next append continues this entry (SES-38). Raises CommandRefused for an unknown id."""
        self._posted(MoveLeaf(entry_id=entry_id))

    def reset(self) -> None:
        """The next append begins a new root (SES-38)."""
        self._posted(MoveLeaf(entry_id=None))

    def extract(self, leaf_id: str) -> str | None:
        """Goes on in a new session that holds the branch of one entry (SES-79 to SES-82); its path, None in memory.

        The new file is in the same folder and names the old one as its parent; it is written at
        once if it holds a message of the user or the assistant. Raises CommandRefused for an
        unknown id, StorageError; the writer stays where it is then, unless closing the old session failed.
        """
        if self._is_borrowed:
            raise CommandRefused("this session is open in a conversation; fork it there")
        extract = extract_branch(self.state.tree, leaf_id, self._around.world.ids.entry_id)
        if isinstance(extract, Rejection):
            raise CommandRefused(extract.why)
        target, due = laid_out(extract, Source(path=self.path, header=self.header), self._around)
        if due is not None:
            create_session(self._around.world.log_files, due.path, due.text)
        log, loaded = open_log(target, self._around)
        old, self._session = self._session, _actor(log, loaded, self._around, self._stream)
        self.diagnostics = loaded.diagnostics
        old.log.close()
        return self.path

    def close(self) -> None:
        """Syncs and gives the session back; for good. Idempotent. Raises StorageError if the sync fails."""
        if not self._is_borrowed:
            self._session.log.close()

    def _posted(self, command: Command) -> Commit:
        commit = self._session.post(command)
        if isinstance(commit, Rejection):
            raise CommandRefused(commit.why)
        return commit
