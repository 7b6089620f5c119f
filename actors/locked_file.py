"""Replacing a small file of the user while nobody else does: settings, the trust store (SET-6, TRUST-5)."""

import contextlib
import errno
import os
import stat
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final

import trio

from camshaft.actors.ports.log_files import LockHeld, RealLogFiles
from camshaft.kernel import shapes

WAIT_S: Final = 0.2
"""For the lock."""
BETWEEN_TRIES_S: Final = 0.02
"""From one try to the next."""
NEW_FILE_MODE: Final = 0o666
"""Of a file that did not exist, less what the process masks."""
PRIVATE_FILE_MODE: Final = 0o600
PRIVATE_FOLDER_MODE: Final = 0o700


@shapes.frozen
class HeldFile:
    """A file that nobody else replaces meanwhile."""

    _real: str
    _new_mode: int

    def replace(self, content: bytes) -> None:
        """In one step. Raises OSError."""
        _replace(self._real, content, self._new_mode)


async def replace_locked(path: str, rewrite: Callable[[], bytes | None]) -> None:
    """Replaces the file by what `rewrite` gives, in one step, holding `path`.lock; None leaves it.

    `rewrite` is called once the lock is held, so what it reads is what nobody changes meanwhile. A link stays a link: what
    it leads to is replaced. The file keeps its mode. Cancelled, either nothing or everything has happened.
    Raises OSError, with EAGAIN if another process held the lock all the time.
    """
    async with held(path) as file:
        content = rewrite()
        if content is not None:
            file.replace(content)


@asynccontextmanager
async def held(path: str, *, wait_s: float = WAIT_S, is_private: bool = False) -> AsyncGenerator[HeldFile, None]:
    """Holds `path`.lock for the block. A process that dies gives the lock back.

    `is_private`: what does not exist yet, file and folder, is made for the user alone. Raises OSError, with EAGAIN if
    another process held the lock for `wait_s`.
    """
    locks = RealLogFiles()
    real = _made_ready(path, is_private)
    lock = f"{path}.lock"
    handle = await _locked(locks, lock, wait_s)
    try:
        yield HeldFile(real, PRIVATE_FILE_MODE if is_private else NEW_FILE_MODE)
    finally:
        locks.unlock(lock, handle)


def _made_ready(path: str, is_private: bool) -> str:
    """What the path leads to; its folder exists afterwards, and so does the folder of the lock."""
    real = os.path.realpath(path)
    for each in (path, real):
        folder = os.path.dirname(each)
        if is_private and not os.path.isdir(folder):
            os.makedirs(os.path.dirname(folder), exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder, PRIVATE_FOLDER_MODE)
        os.makedirs(folder, exist_ok=True)
    return real


async def _locked(locks: RealLogFiles, lock: str, wait_s: float) -> int:
    for _ in range(round(wait_s / BETWEEN_TRIES_S)):
        try:
            return locks.lock(lock, f"process {os.getpid()}")
        except LockHeld:
            await trio.sleep(BETWEEN_TRIES_S)
    raise OSError(errno.EAGAIN, "another process is writing it", lock)


def _replace(path: str, content: bytes, new_mode: int) -> None:
    """The new file is never readable by more than the old one, and no link that lies ready under its name is followed."""
    new, mode = f"{path}.{os.getpid()}.new", _mode_of(path)
    _remove(new)
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, new_mode if mode is None else PRIVATE_FILE_MODE)
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
