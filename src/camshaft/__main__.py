"""The command `camshaft`: answers `--version` and `--help` at once, and hands everything else to the command line.

Nothing of the kernel is imported before it is needed: together with its libraries that takes longer than
such an answer may.
"""

import gc
import os
import sys

from camshaft import __version__
from camshaft.extensions_std.frontends.extension_signs import may_be_there
from camshaft.extensions_std.frontends.options import HELP, split

INTERRUPTED = 130
"""Exit code after SIGINT."""


def main() -> int:
    """The exit code of this process's arguments."""
    names = [name for name, _value in split(sys.argv[1:])]
    if "--help" in names:
        print(HELP, flush=True)
        _help_on_flags([word for word in sys.argv[1:] if word not in ("--help", "-h")])
        return 0
    if "--version" in names:
        print(__version__)
        return 0
    try:
        gc.disable()  # what importing makes stays, so that looking for garbage meanwhile only takes time
        from camshaft.extensions_std.frontends.command_line import run

        gc.enable()
        return run(sys.argv[1:])
    except KeyboardInterrupt:
        return INTERRUPTED  # before or after the loop, which has its own way to end (interrupts.py)


def _help_on_flags(words: list[str]) -> None:
    """Of extensions, if there may be some: those have to be loaded for it."""
    if may_be_there(words, os.environ):
        from camshaft.extensions_std.frontends.extension_flags import flags_help

        said = flags_help(words)
        print(f"\n{said}" if said else "", end="\n" if said else "")


if __name__ == "__main__":
    sys.exit(main())
