"""Whether there may be extensions, from a look that costs nothing: for `--help`, which must come at once where there are none.

Imports nothing of the kernel.
"""

import os
import sys
from collections.abc import Iterator, Mapping

GROUP = "[camshaft.extensions]"
"""How the group of entry points begins in a distribution's list (EXT-13)."""


def may_be_there(words: list[str], environment: Mapping[str, str]) -> bool:
    """Whether it is worth looking: an extension is named, a folder or a file of settings is there, a distribution announces some."""
    home = environment.get("CAMSHAFT_DIR") or os.path.join(environment.get("HOME", ""), ".camshaft")
    places = [os.path.join(home, "extensions"), os.path.join(home, "settings.json"), ".camshaft"]
    is_named = any([word == "-e" or word.startswith("--extension") for word in words])
    return is_named or any([os.path.exists(each) for each in places]) or any(_announcing())


def _announcing() -> Iterator[bool]:
    for folder in sys.path:
        try:
            names = [name for name in os.listdir(folder or ".") if name.endswith((".dist-info", ".egg-info"))]
        except OSError:
            continue
        for name in names:
            try:
                with open(os.path.join(folder, name, "entry_points.txt"), encoding="utf-8", errors="replace") as file:
                    yield GROUP in file.read()
            except OSError:
                continue
