"""Where the reference is installed, and whether it is."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / ".reference"
"""Git ignores it."""
PINNED: Final = Path(__file__).with_name("package.json")
"""The packages and their versions."""
INSTALLED: Final = FOLDER / "installed.json"
"""The pins of what is installed: a copy of PINNED, written when the installation was complete."""
NODE_MODULES: Final = FOLDER / "node_modules"
NODE: Final = NODE_MODULES / "node" / "bin" / "node"
DRIVER: Final = Path(__file__).with_name("driver.mjs")


def missing() -> str | None:
    """Why the reference cannot be asked; None if it can."""
    if not NODE.exists():
        return "the reference is not installed; `just reference` does that"
    if not INSTALLED.exists() or INSTALLED.read_bytes() != PINNED.read_bytes():
        return "another version of the reference is installed; `just reference` replaces it"
    return None
