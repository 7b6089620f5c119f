"""Making a session file that is whole from the start: extracted branches, copies."""

from camshaft.actors.errors import StorageError
from camshaft.actors.logs.append_file import Places
from camshaft.actors.logs.seal import Seal
from camshaft.actors.logs.session_text import SessionText
from camshaft.actors.ports.log_files import LogFiles


def create_session(files: LogFiles, path: str, text: bytes) -> None:
    """The file at `path` holds `text`, a header and its entries, and is safe. Blocks; its folder must exist.

    Raises SessionExists (SES-57), StorageError; nothing was made then.
    """
    places = Places(session=path)
    session = SessionText(files=files, places=places, seal=Seal(path))
    steps = session.put_in_place(text, safe=True)
    made = places.new_session
    try:
        for sync in steps:
            sync()
            made = path  # Between its two syncs the file gets its own name.
    except OSError as error:
        _remove(files, made)
        raise StorageError(path, f"cannot create the session file ({error})", "make room or fix permissions") from error
    finally:
        steps.close()
        if session.file is not None:
            session.file.give_back()


def _remove(files: LogFiles, path: str) -> None:
    """Best effort: on a disk that refuses this too, a whole session stays, or a name that no listing shows."""
    try:
        files.unlink(path)
    except OSError:
        return
