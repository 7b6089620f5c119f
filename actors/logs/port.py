"""The log port: what a session actor asks of the store under it.

One log holds one session. `append` is one commit and has no checkpoint: it is written, or it
raises and nothing has changed. Waiting for a disk is apart from it (`barrier`, `settle`), and
so is learning what others did (`claim`, `take_news`):

* `claim` before deciding, when the log may have been idle: it takes the writer's lease again.
* `append`, then `take_news`: lines that a program ignoring the lease wrote before ours.
* `barrier` before something outside rests on what was appended (SES-60).
* `settle` when the session is idle: syncs, compacts the side file, gives the lease back.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

from camshaft.kernel import shapes
from camshaft.kernel.entries import Entry, SessionHeader
from camshaft.kernel.records import Decision, Record
from camshaft.kernel.session_file import Diagnostic, SessionImage

__all__ = ["Diagnostic", "Durability", "Loaded", "Log", "News"]

Durability = Literal["commit", "settle", "none"]
"""Who waits for a sync (SES-60): requests and tools; the end of a run; nobody."""


@shapes.frozen(kw_only=True)
class News:
    """What was read in since the last look: entries of a foreign writer, in file order (SES-90)."""

    entries: tuple[Entry, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


@shapes.frozen(kw_only=True)
class Loaded:
    """A session as it was found: the start of every fold."""

    header: SessionHeader
    entries: SessionImage | tuple[Entry, ...]
    """Of a file: heads scanned, bodies decoded on use. In memory, or before the file exists: the entries themselves."""
    records: tuple[Record, ...] = ()
    """Work records that nothing has discharged yet, in the order they were written; a decision of a batch is a `decision`."""
    commands: tuple[tuple[str, str], ...] = ()
    """(command id, entry id) of every input so far."""
    leaf: str | None = None
    """The current position: the last entry, unless the leaf was moved after it (SES-36)."""
    diagnostics: tuple[Diagnostic, ...] = ()


class Log(Protocol):
    """The store of one session. Only its session actor writes to it."""

    @property
    def header(self) -> SessionHeader:
        """The session's first line; it never changes."""
        ...

    @property
    def path(self) -> str | None:
        """The session file, whether it exists yet or not; None in memory."""
        ...

    @property
    def sealed(self) -> str | None:
        """Why nothing can be written any more, or None."""
        ...

    def claim(self) -> Loaded | None:
        """Takes the lease if it was given back; cheap when it was not.

        None: the session is what this log left. Otherwise another process of ours wrote it
        meanwhile, and this is the session opened again: every snapshot is to be replaced.
        Raises SessionLocked, naming the holder.
        """
        ...

    def append(self, entries: Sequence[Entry], records: Sequence[Record] = (), decision: Decision | None = None) -> None:
        """Writes one commit. No checkpoint, so it cannot be half done.

        Raises StorageError (nothing has changed; look at `sealed`), SessionLocked,
        SessionChanged (as `claim`, but the caller has decided already), SessionSealed.
        """
        ...

    def entry_of_command(self, command_id: str) -> str | None:
        """The id reserved for the entry of the input that a client gave with this command id; None if there was none."""
        ...

    def take_news(self) -> News | None:
        """What others wrote before the last append, once; None if nothing (the usual case)."""
        ...

    async def barrier(self) -> None:
        """Returns when everything appended so far is synced (policy `commit`; at once for others).

        A cancelled caller learns the outcome first. Raises StorageError; the log is sealed then.
        """
        ...

    async def settle(self) -> None:
        """The session is idle: syncs (policies `commit`, `settle`), compacts, gives back files and lease."""
        ...

    def close(self) -> None:
        """As `settle`, blocking, and for good. Never raises for a second call. Raises StorageError if the sync fails."""
        ...

    async def aclose(self) -> None:
        """As `close`, with the syncs in a thread."""
        ...
