"""What --help says of the flags of extensions: they are loaded for it (API-8, EXT-23, EXT-26)."""

import os
import sys
from contextlib import redirect_stdout
from typing import Final

import attrs
import trio

from camshaft.actors.host import CamshaftError, InvalidSetting, open_kernel, real_world
from camshaft.extensions_std.frontends.arguments import BadArguments, parse
from camshaft.extensions_std.frontends.reports import report_loading
from camshaft.extensions_std.frontends.startup import Start, loaded_extensions, resolver_of, start_of
from camshaft.extensions_std.frontends.streams import say

HEADING: Final = "Flags of extensions:"


def flags_help(words: list[str]) -> str:
    """The paragraph about the flags; empty if there are none. What does not load is told, and nothing else happens."""
    try:
        start = start_of(attrs.evolve(parse(words, None), no_session=True), real_world(), os.getcwd())
    except (BadArguments, CamshaftError, InvalidSetting, OSError) as error:
        say(f"Error: {error}")
        return ""
    with redirect_stdout(sys.stderr):  # where extensions print while they are loaded
        rows = trio.run(_rows, start)
    width = max([len(left) for left, _help in rows], default=0)
    return "\n".join([HEADING, *[f"  {left.ljust(width)}  {text}".rstrip() for left, text in rows]]) if rows else ""


async def _rows(start: Start) -> list[tuple[str, str]]:
    async with open_kernel(world=start.world) as kernel:
        loaded = kernel.preload(start.chosen.cwd, mode="print", say=say)
        try:
            await loaded_extensions(start, resolver_of(start), loaded)
        except CamshaftError as error:
            say(f"Error: {error}")
            return []
        report_loading(loaded.load_errors, loaded.load_warnings)
        shown = [(f"--{flag.name}" + (" VALUE" if flag.type == "string" else ""), flag.description or "") for flag in loaded.flags.values()]
        loaded.discard()
        return shown
    raise AssertionError
