"""The cases: each measures one thing and returns the fields of its line."""

import gc
import importlib
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from bench import bodies, hooks, kernels, plugins, sessions, streams
from camshaft.actors.api import decode_message
from camshaft.actors.host import Invocation, Place, Seat, discover_extensions, open_kernel
from camshaft.extensions_std.providers.scripted import assistant

Fields = dict[str, Any]

MESSAGES_READ: Final = 200
"""Last messages of a loaded session that are read."""
IDS_READ: Final = 1000
"""Entries of a loaded session that are read by id, drawn with a fixed seed."""


async def load(folder: Path, file: str) -> Fields:
    """Opening a session file for writing; the file itself is copied and stays as it is."""
    path = folder / "session.jsonl"
    shutil.copy(file, path)
    async with open_kernel() as kernel:
        await kernels.warm_up(kernel, folder)
        begun = time.perf_counter()
        answers = kernels.model_with([assistant("done")])
        seat = await kernel.open(kernels.options(folder, answers, **kernels.on_disk(path, "commit")))
        opened = time.perf_counter()
        looked = _look_around(seat)
        await seat.submit("go")
        ready = time.perf_counter()
        messages = seat.context_messages
        read = sum(1 for _ in messages)
        ended = time.perf_counter()
        await seat.wait_idle()
    return {
        "open_ms": _ms(begun, opened),
        "ready_ms": _ms(begun, ready),
        "all_messages_ms": _ms(ready, ended),
        "entries": looked,
        "messages": read,
        "rss_mb": _rss_kb() // 1000,
    }


def _look_around(seat: Seat) -> int:
    """What a host reads of a session it has opened: where it is, what it is called, the end of it, and entries here and there."""
    state = seat.state
    ids = [state.tree.id_at(position) for position in random.Random(7).choices(range(state.tree.length), k=IDS_READ)]
    looked: list[Any] = [state.leaf_id, state.tree.name, state.tree.labels(), state.projection.model, state.projection.length]
    looked += seat.context_messages[-MESSAGES_READ:]
    looked += [state.tree.entry(position) for each in ids if (position := state.tree.position(each)) is not None]
    return state.tree.length if all([item is not None for item in looked[-IDS_READ:]]) else 0


async def turns(folder: Path, prior: str, count: str, disk: str = "", policy: str = "commit") -> Fields:
    """`count` turns with a call each, and a last one, after `prior` messages."""
    boundaries = kernels.Boundaries()
    steps = [*[kernels.calls(number) for number in range(int(count))], assistant("done")]
    fields: Fields = {}
    if disk:
        sessions.write_session(folder / "session.jsonl", sessions.small_talk(int(prior)))
        fields = kernels.on_disk(folder / "session.jsonl", policy)
    async with open_kernel() as kernel:
        await kernels.warm_up(kernel, folder)
        seat = await kernel.open(kernels.options(folder, kernels.model_with(steps), setup=boundaries.setup, **fields))
        for message in () if disk else sessions.small_talk(int(prior)):
            seat.append_message(decode_message(message))
        begun = time.perf_counter()
        await seat.prompt("go")
        ended = time.perf_counter()
    return {"ms_per_turn": _ms(begun, ended) / (int(count) + 1), "boundaries": boundaries.seen, "rss_mb": _rss_kb() // 1000}


async def deltas(folder: Path, count: str) -> Fields:
    """One answer of `count` items to one listener. The model pushes without a pause."""
    updates = 0

    def listen(event: Any) -> None:
        nonlocal updates
        updates += event.type == "message_update"

    async with open_kernel() as kernel:
        await kernels.warm_up(kernel, folder)
        seat = await kernel.open(kernels.options(folder, kernels.Flood(int(count))))
        seat.subscribe(listen)
        begun = time.perf_counter()
        await seat.prompt("go")
        ended = time.perf_counter()
    return {"updates": updates, "us_per_update": _ms(begun, ended) * 1000 / updates, "rss_mb": _rss_kb() // 1000}


async def fanout(folder: Path, count: str) -> Fields:
    """One batch of `count` parallel calls."""
    steps = [kernels.calls(*range(int(count))), assistant("done")]
    async with open_kernel() as kernel:
        await kernels.warm_up(kernel, folder)
        seat = await kernel.open(kernels.options(folder, kernels.model_with(steps)))
        begun = time.perf_counter()
        await seat.prompt("go")
        ended = time.perf_counter()
    return {"ms": _ms(begun, ended), "us_per_call": _ms(begun, ended) * 1000 / int(count), "rss_mb": _rss_kb() // 1000}


async def idle(folder: Path, count: str) -> Fields:
    """`count` sessions without extensions that do nothing; one before them has loaded what all share."""
    async with open_kernel() as kernel:
        provider = kernels.model_with([])
        await kernel.open(kernels.options(folder, provider))
        gc.collect()
        before, begun = _rss_kb(), time.perf_counter()
        for _ in range(int(count)):
            await kernel.open(kernels.options(folder, provider))
        ended, after = time.perf_counter(), _rss_kb()
        return {"ms_per_session": _ms(begun, ended) / int(count), "kb_per_session": (after - before) / int(count)}


async def extensions(folder: Path, count: str) -> Fields:
    """`count` folder extensions of two modules: found, imported and set up; beside it the plain import of the same files."""
    home = folder / "agent"
    plugins.write_extensions(home / "extensions", int(count))
    plugins.write_extensions(folder / "plain", int(count))
    async with open_kernel() as kernel:
        await kernels.warm_up(kernel, folder)
        begun = time.perf_counter()
        await kernel.open(kernels.options(folder, kernels.model_with([])))
        opened = time.perf_counter()
        looking = Invocation(agent_dir=str(home), started_in=str(folder))
        found = discover_extensions(looking, Place(cwd=str(folder), is_trusted=True))
        discovered = time.perf_counter()
        seat = await kernel.open(kernels.options(folder, kernels.model_with([]), extensions=found))
        loaded = time.perf_counter()
        commands = len(seat.commands())
    sys.path.append(str(folder / "plain"))
    sys.dont_write_bytecode = True
    imported = time.perf_counter()
    for number in range(int(count)):
        importlib.import_module(f"extension_{number}")
    ended = time.perf_counter()
    whole, imports = _ms(opened, loaded) - _ms(begun, opened), _ms(imported, ended)
    return {
        "whole_ms": whole,
        "discover_ms": _ms(opened, discovered),
        "imports_ms": imports,
        "beyond_imports_ms": max(0.0, whole - imports),
        "commands": commands,
    }


async def start(folder: Path, repeats: str = "5") -> Fields:
    """Whole processes of the command line; medians of wall time."""
    camshaft = str(Path(sys.executable).with_name("camshaft"))
    commands = {
        "version_ms": [camshaft, "--version"],
        "help_ms": [camshaft, "--help"],
        "import_ms": [sys.executable, "-c", "import camshaft.actors.host"],
    }
    whole = {name: statistics.median([_process_ms(command, folder) for _ in range(int(repeats))]) for name, command in commands.items()}
    first = statistics.median([_first_event_ms([camshaft, "--demo", "--mode", "json"], folder) for _ in range(int(repeats))])
    return {**whole, "first_event_ms": first}


async def body(_folder: Path, count: str, api: str = "openai-completions") -> Fields:
    """The body of a request from `count` messages, in the form of a wire API."""
    return bodies.measure(int(count), api)


async def hook_costs(folder: Path, repeats: str = "30") -> Fields:
    """Hooks that nobody handles, and handlers that do nothing; in pairs."""
    return await hooks.measure(folder, int(repeats))


async def many_streams(folder: Path, count: str = "100", rate: str = "50", seconds: str = "10") -> Fields:
    """`count` answers at once over real sockets, `rate` items a second each."""
    return await streams.measure(folder, int(count), float(rate), float(seconds))


async def session(_folder: Path, out: str, count: str) -> Fields:
    """Writes a session file with `count` entries."""
    sessions.write_session(Path(out), sessions.tool_conversation(int(count)))
    return {"entries": int(count)}


CASES: Final[dict[str, Callable[..., Awaitable[Fields]]]] = {
    "load": load,
    "turns": turns,
    "deltas": deltas,
    "fanout": fanout,
    "idle": idle,
    "extensions": extensions,
    "body": body,
    "start": start,
    "hooks": hook_costs,
    "streams": many_streams,
    "session": session,
}


def _process_ms(command: list[str], folder: Path) -> float:
    begun = time.perf_counter()
    subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return _ms(begun, time.perf_counter())


def _first_event_ms(command: list[str], folder: Path) -> float:
    """Until the process has written the line of its first event."""
    begun = time.perf_counter()
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        while b'"agent_start"' not in process.stdout.readline():
            assert process.poll() is None, "the demo ended before its run began"
        seen = time.perf_counter()
        process.stdout.read()
    return _ms(begun, seen)


def _ms(begun_s: float, ended_s: float) -> float:
    return (ended_s - begun_s) * 1000


def _rss_kb() -> float:
    """Resident memory of this process now, in kB of 1000 bytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 1000
