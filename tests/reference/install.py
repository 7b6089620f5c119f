"""`python -m tests.reference.install`: the reference and its Node.js from npm into a folder that git ignores.

Exit status 0 also where that cannot be done: it says why, and the interchange tests are skipped.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.reference.places import FOLDER, PINNED, missing

STEP_S: Final = 600
"""Longest time of one npm command: it fetches about 300 MB."""
PACKAGES: Final = ("install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
"""No package's install script runs, but for that of `node`, which fetches the program for this machine."""
PROGRAM: Final = ("rebuild", "node", "--loglevel=error")
APPROVAL: Final = ("install-scripts", "approve", "node")
"""A newer npm holds install scripts back until they are approved."""


def install(folder: Path, npm: str | None) -> str | None:
    """Why it could not be installed, for people; None once it is there. `folder` is complete or has no `installed.json`."""
    if npm is None:
        return "npm is not installed here"
    folder.mkdir(exist_ok=True)
    complete = folder / "installed.json"
    complete.unlink(missing_ok=True)
    shutil.copy(PINNED, folder / "package.json")
    failed = _run(npm, PACKAGES, folder) or _run(npm, PROGRAM, folder)
    program = folder / "node_modules" / "node" / "bin" / "node"
    if failed is None and not program.exists():
        failed = _run(npm, APPROVAL, folder) or _run(npm, PROGRAM, folder)
    if failed is None and not program.exists():
        failed = "the package `node` brought no program for this machine"
    if failed is None:
        shutil.copy(PINNED, complete)
    return failed


def _run(npm: str, words: tuple[str, ...], folder: Path) -> str | None:
    try:
        done = subprocess.run([npm, *words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=STEP_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"`npm {words[0]}` did not work: {error}"
    said = (done.stderr or done.stdout).strip().splitlines()
    return None if done.returncode == 0 else f"`npm {words[0]}` failed: {said[0] if said else f'exit status {done.returncode}'}"


def main() -> int:
    """Exit status 0."""
    if missing() is not None:
        failed = install(FOLDER, shutil.which("npm"))
        print("the reference is installed" if failed is None else f"the reference is not installed, its tests are skipped: {failed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
