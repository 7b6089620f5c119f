"""Every row of the cost table: the target, what is measured, and the reference beside it where it is installed.

Each measurement is a process of its own. Ours and the reference's are taken in turn, several times, and the medians
are shown, because an absolute time on a shared machine says little.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import attrs

from camshaft.extensions_std.providers.wire_apis import WIRE_APIS

ROUNDS: Final = 3
"""Enough for a median; a round of all rows takes about three quarters of a minute."""
REFERENCE: Final = Path(".reference/node_modules")
NODE: Final = REFERENCE / "node/bin/node"
"""Installed beside the reference, which needs a newer one than many systems have."""
LOADED: Final = 100_000
"""Entries of the file that is loaded: 50 MB."""


@attrs.frozen
class Row:
    """A line of the table."""

    work: str
    case: tuple[str, ...]
    field: str
    """What of the case's fields is compared."""
    target: float
    recorded: float | None
    """The reference's figure on a two-core machine in late 2026, for where it is not installed."""
    compared: bool = True
    """Whether the reference's script measures this."""


ROWS: Final = (
    Row("turn, new session, ms", ("turns", "0", "200"), "ms_per_turn", 0.65, 1.3),
    Row("turn, 1,000 entries, ms", ("turns", "1000", "200"), "ms_per_turn", 0.78, 3.3),
    Row("turn, 10,000 entries, ms", ("turns", "10000", "100"), "ms_per_turn", 0.78, 25),
    Row("turn, 50,000 entries, ms", ("turns", "50000", "50"), "ms_per_turn", 0.78, 229),
    Row("turn, new session on disk, no sync, ms", ("turns", "0", "200", "--disk", "none"), "ms_per_turn", 0.65, None, False),
    Row("turn, new session on disk, synced, ms", ("turns", "0", "200", "--disk", "commit"), "ms_per_turn", 10, None, False),
    *[Row(f"body for {api}, 1,000 unchanged messages, ms", ("body", "10000", api), "ms_per_1000", 0.1, None, False) for api in WIRE_APIS],
    Row("open 100,000 entries, ms", ("load", "{file}"), "open_ms", 250, 342),
    Row("the same, looked around in and prompted, ms", ("load", "{file}"), "ready_ms", 390, 390, False),
    Row("stream item to one listener, µs", ("deltas", "20000"), "us_per_update", 5, 6.6),
    Row("item of 100 streams at 50 a second, from the server's write to its listener, p99, ms", ("streams",), "p99_ms", 50, None, False),
    Row("one of 200 parallel calls, µs", ("fanout", "200"), "us_per_call", 100, 137),
    Row("idle session, kB", ("idle", "1000"), "kb_per_session", 30, 496),
    Row("idle session, ms to open", ("idle", "1000"), "ms_per_session", 1, 8.8),
    Row("hooks nobody handles, % of a turn", ("hooks", "30"), "unhandled_turn_percent", 2, None, False),
    Row("hooks nobody handles, µs of a stream item", ("hooks", "30"), "unhandled_item_us", 0.2, None, False),
    Row("20 extensions, beyond their imports, ms", ("extensions", "20"), "beyond_imports_ms", 100, None, False),
    Row("--version, whole process, ms", ("start",), "version_ms", 60, 530, False),
    Row("command line to first event, ms", ("start",), "first_event_ms", 350, 500, False),
)


def show_table(rounds: int = ROUNDS) -> None:
    """Measures every row and prints the table."""
    reference = NODE.exists()
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "session.jsonl")
        _line([sys.executable, "-m", "bench", "session", file, str(LOADED)])
        print(f"| work | target | camshaft | reference{'' if reference else ' (recorded)'} | ratio |\n|---|---|---|---|---|")
        for row in ROWS:
            _show(row, tuple(file if word == "{file}" else word for word in row.case), rounds, reference)


def _show(row: Row, case: tuple[str, ...], rounds: int, reference: bool) -> None:
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(_line([sys.executable, "-m", "bench", *case])[row.field])
        if reference and row.compared:
            theirs.append(_line([str(NODE), "bench/reference_perf.mjs", str(REFERENCE.resolve()), *case])[row.field])
    measured = statistics.median(ours)
    beside = statistics.median(theirs) if theirs else row.recorded
    ratio = f"{measured / beside:.2f}" if beside else "–"
    print(f"| {row.work} | {row.target:g} | {measured:.3g} | {f'{beside:.3g}' if beside else '–'} | {ratio} |", flush=True)


def _line(command: list[str]) -> dict[str, float]:
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    line: dict[str, float] = json.loads(shown.stdout.splitlines()[-1])
    return line
