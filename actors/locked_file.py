"""Replacing a small file of the user while nobody else does: settings, the trust store (SET-6, TRUST-5)."""

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
    new = f"{path}.{os.getpid()}.new"
    try:
        with open(new, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(path):
            os.chmod(new, stat.S_IMODE(os.stat(path).st_mode))
        os.replace(new, path)
    finally:
        if os.path.exists(new):
            os.unlink(new)
