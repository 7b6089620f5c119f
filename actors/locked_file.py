"""Replacing a small file of the user while nobody else does: settings, the trust store (SET-6, TRUST-5)."""

import contextlib
import errno
import os
import stat
from collections.abc import Callable
from typing import Final

import trio

from camshaft.actors.ports.log_files import LockHeld, RealLogFiles

TRIES_MAX: Final = 10
"""Tries to get the lock."""
BETWEEN_TRIES_S: Final = 0.02
"""From one try to the next."""
NEW_FILE_MODE: Final = 0o666
"""Of a file that did not exist, less what the process masks."""


async def replace_locked(path: str, rewrite: Callable[[], bytes | None]) -> None:
    """Replaces the file by what `rewrite` gives, in one step, holding `path`.lock; None leaves it.

    `rewrite` is called once the lock is held, so what it reads is what nobody changes meanwhile. A link stays a link: what
    it leads to is replaced. The file keeps its mode. Cancelled, either nothing or everything has happened.
    Raises OSError, with EAGAIN if another process held the lock all the time.
    """
    locks = RealLogFiles()
    real = _made_ready(path)
    lock = f"{path}.lock"
    handle = await _locked(locks, lock)
    try:
        content = rewrite()
        if content is not None:
            _replace(real, content)
    finally:
        locks.unlock(lock, handle)


def _made_ready(path: str) -> str:
    """What the path leads to; its folder exists afterwards, and so does the folder of the lock."""
    real = os.path.realpath(path)
    for each in (path, real):
        os.makedirs(os.path.dirname(each), exist_ok=True)
    return real


async def _locked(locks: RealLogFiles, lock: str) -> int:
    for _ in range(TRIES_MAX):
        try:
            return locks.lock(lock, f"process {os.getpid()}")
        except LockHeld:
            await trio.sleep(BETWEEN_TRIES_S)
    raise OSError(errno.EAGAIN, "another process is writing it", lock)


def _replace(path: str, content: bytes) -> None:
    """The new file is never readable by more than the old one, and no link that lies ready under its name is followed."""
    new, mode = f"{path}.{os.getpid()}.new", _mode_of(path)
    _remove(new)
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, NEW_FILE_MODE if mode is None else 0o600)
    try:
        with open(handle, "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    finally:
        _remove(new)


def _mode_of(path: str) -> int | None:
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        return None


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
