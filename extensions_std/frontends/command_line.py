"""The command line: from the arguments to an exit code, in the order of CLI-12.

Before the loop, plain and synchronous: arguments, the user's settings, the session. Inside it, because extensions are
asked: trust, extensions, their flags, and with all that resources, models and prompts. What is wrong is told in full as
`Error: …`, what is only odd as `Warning: …`, both on standard error.
"""

import os
import sys
from collections.abc import MutableMapping

import trio

from camshaft.actors.host import real_world
from camshaft.extensions_std.frontends.arguments import Arguments, BadArguments, parse
from camshaft.extensions_std.frontends.conversation import StartupFailed, run_job
from camshaft.extensions_std.frontends.demo import run_demo
from camshaft.extensions_std.frontends.list_models import run_list
from camshaft.extensions_std.frontends.startup import startup_of
from camshaft.extensions_std.frontends.streams import Input, Output, say, take_input, take_output


def run(words: list[str]) -> int:
    """The exit code of these arguments. Standard output is taken over for good."""
    try:
        arguments = parse(words, None)
    except BadArguments as error:
        for fault in error.faults:
            say(f"Error: {fault}")
        return 1
    for warning in arguments.warnings:
        say(f"Warning: {warning}")
    out = Output(take_output())
    _mark(os.environ, arguments)
    try:
        return _run(words, arguments, out)
    finally:
        _end_streams()


def _run(words: list[str], arguments: Arguments, out: Output) -> int:
    world = real_world()
    if arguments.list_models is not None:
        return run_list(arguments, world, out)
    if arguments.demo:
        return trio.run(run_demo, arguments, world, out)
    if arguments.acp:  # imported here: the other modes would wait a hundredth of a second for it
        from camshaft.extensions_std.frontends.acp.mode import Invoked, run_acp

        source = Input(take_input())
        return trio.run(run_acp, Invoked(words=words, arguments=arguments, world=world), source, out)
    try:
        startup = startup_of(words, arguments, world, is_terminal=sys.stdin.isatty() and out.is_terminal)
    except StartupFailed as error:
        for fault in error.faults:
            say(f"Error: {fault}")
        return 1
    commands = Input(take_input()) if arguments.mode == "rpc" else None
    return trio.run(run_job, startup.job, world, out, commands)


def _mark(environment: MutableMapping[str, str], arguments: Arguments) -> None:
    """What child processes see of us."""
    environment.update(AI_AGENT="camshaft", CAMSHAFT="true")
    if arguments.offline:
        environment["CAMSHAFT_OFFLINE"] = "1"


def _end_streams() -> None:
    """Nothing is left to be written while the interpreter ends, where a closed reader would be an ugly last word."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
