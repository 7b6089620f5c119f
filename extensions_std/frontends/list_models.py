"""`--list-models`: the models that can be used, as a table (EXT-23, EXT-26)."""

import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout

import attrs
import trio

from camshaft.actors.api import Model, Provider, World
from camshaft.actors.host import CamshaftError, InvalidSetting, open_kernel
from camshaft.extensions_std.frontends.arguments import Arguments
from camshaft.extensions_std.frontends.reports import report_loading
from camshaft.extensions_std.frontends.startup import (
    Start,
    agent_dir_of,
    loaded_extensions,
    ready_providers,
    resolver_of,
    start_of,
    unconfigured,
)
from camshaft.extensions_std.frontends.streams import Output, say
from camshaft.extensions_std.providers.builtin_models import WRITTEN

HEADING = ("provider", "model", "context", "max-out", "thinking", "images")


def run_list(arguments: Arguments, world: World, out: Output) -> int:
    """The exit code: 1 if the settings cannot be read, else 0. Extensions are loaded, because they may bring models; no session starts."""
    try:
        start = start_of(attrs.evolve(arguments, no_session=True), world, os.getcwd())
    except (CamshaftError, InvalidSetting, OSError) as error:
        say(f"Error: {error}")
        return 1
    with redirect_stdout(sys.stderr):  # where extensions print while they are loaded
        providers = trio.run(_served, start)
    usable = [model for provider in providers if provider.configured() for model in provider.models if model.is_chat]
    wanted = arguments.list_models or ""
    shown = [model for model in usable if wanted.lower() in f"{model.reference} {model.name}".lower()]
    if not usable:
        say(unconfigured(agent_dir_of(world.environment)))
    elif not shown:
        say(f'No models matching "{wanted}"')
    else:
        trio.run(out.write, "".join([f"{line}\n" for line in table(shown)]).encode())
        say(f"Built-in models are those of {WRITTEN}; models.json changes them, --model takes others of the same providers too.")
    return 0


def table(models: Sequence[Model]) -> list[str]:
    """The lines, in the order of provider and id."""
    rows = [HEADING]
    for model in sorted(models, key=lambda each: (each.provider, each.id.lower())):
        sizes = (tokens(model.context_window), tokens(model.max_tokens))
        rows.append((model.provider, model.id, *sizes, _yes(model.reasoning), _yes("image" in model.input)))
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEADING))]
    return ["  ".join([cell.ljust(width) for cell, width in zip(row, widths, strict=True)]).rstrip() for row in rows]


def tokens(count: float) -> str:
    """A number of tokens in few characters; `?` for one that is not known."""
    if count <= 0:
        return "?"
    for size, unit in ((1e6, "M"), (1e3, "K")):
        if count >= size:
            return f"{count / size:.1f}".removesuffix(".0") + unit
    return f"{count:g}"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


async def _served(start: Start) -> tuple[Provider, ...]:
    files, build = await ready_providers(start)
    async with open_kernel(world=start.world) as kernel:
        loaded = kernel.preload(start.chosen.cwd, mode="print", say=say)
        try:
            await loaded_extensions(start, resolver_of(start), loaded)
        except CamshaftError as error:
            say(f"Error: {error}")
            return files.providers
        served = loaded.serve(files.providers, build)
        report_loading(loaded.load_errors, loaded.load_warnings)
        loaded.discard()
        return served
    raise AssertionError
