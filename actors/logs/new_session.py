"""Making a session file that is whole from the start: extracted branches, copies, exports.

It is written beside its place under another name, synced, and only then gets its own name, so
nobody ever sees a part of it. Everything here blocks; with `LogFiles.blocking` it does so apart
from the loop.
"""

from collections.abc import Iterable

from camshaft.actors.errors import SessionExists, StorageError
from camshaft.actors.logs.append_file import AppendFile, Places, written_beside
from camshaft.actors.ports.log_files import LogFiles


def create_session(files: LogFiles, path: str, text: bytes) -> None:
    """The file at `path` holds `text`, a header and its entries, and is safe. Its folder must exist.

    Raises SessionExists (SES-57), StorageError; nothing was made then.
    """
    put_whole(files, (path,), text, beside=Places(session=path).new_session)


def put_whole(files: LogFiles, names: Iterable[str], text: bytes, *, beside: str) -> str:
    """A new file that holds `text` under the first of `names` that is free; which one that was.

    `beside` is where it is written first, in the same folder, and must be nobody else's.
    Raises SessionExists if no name is free, StorageError; nothing was made then.
    """
    path = beside
    made: AppendFile | None = None
    named, done = False, False
    try:
        made = written_beside(files, beside, text)
        made.sync()
        for path in names:
            named = _linked(files, beside, path)
            if named:
                break
        if not named:
            raise SessionExists(path)
        _remove(files, beside)
        files.sync_folder(path)
        done = True
    except OSError as error:
        raise StorageError(path, f"cannot create the session file ({error})", "make room or fix permissions") from error
    finally:
        if made is not None:
            made.give_back()
        if not done:
            _remove(files, beside)
        if named and not done:
            _remove(files, path)
    return path


def replace_whole(files: LogFiles, path: str, text: bytes, *, beside: str) -> None:
    """The file at `path` holds `text` and is safe, whatever it held before. `beside` as for `put_whole`.

    Raises StorageError; what was there is there still, unless only the last sync failed.
    """
    made: AppendFile | None = None
    moved = False
    try:
        made = written_beside(files, beside, text)
        made.sync()
        files.rename(beside, path)
        moved = True
        files.sync_folder(path)
    except OSError as error:
        raise StorageError(path, f"cannot write the file ({error})", "make room or fix permissions") from error
    finally:
        if made is not None:
            made.give_back()
        if not moved:
            _remove(files, beside)


def _linked(files: LogFiles, beside: str, path: str) -> bool:
    """Whether the name was free."""
    try:
        files.link(beside, path)
    except FileExistsError:
        return False
    return True


def _remove(files: LogFiles, path: str) -> None:
    """Best effort: on a disk that refuses this too, a whole session stays, or a name that no listing shows."""
    try:
        files.unlink(path)
    except OSError:
        return
