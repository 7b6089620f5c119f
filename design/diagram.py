"""Draws what `kernel/run.py` says: the diagram in 00-start.md and the tables of run.md.

`python design/diagram.py` writes both; with `--check` it writes nothing and fails if one of them is not up to date.
"""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from camshaft.kernel.run import ADMISSION, EFFECTS, TABLE, Operation
from camshaft.kernel.run_data import Row, State

FOLDER: Final = Path(__file__).resolve().parent
BEGIN: Final = "<!-- drawn by design/diagram.py from kernel/run.py -->"
END: Final = "<!-- end of the drawing -->"

RUN_PAGE: Final = """# The run and admission, as tables

Written by `design/diagram.py` from `kernel/run.py`; change the tables there. How to read a row is told at the top of that file.

## The run

{rows}

*does*: P is a public event, X the handlers of extensions. *next* `↓`: go on with the rows below, of the same state.
States with an effect: {effects}.
A state's effect that raises leads to `faulting` in a low-level run, and to `settling` otherwise (rows 66 to 68).

## Admission

{admission}
"""


def diagram() -> str:
    """The run as a Mermaid state diagram: an edge a pair of states, its label the numbers of its rows."""
    edges: dict[tuple[State, State], list[int]] = {}
    for row in TABLE:
        if row.next is not None:
            edges.setdefault((row.state, row.next), []).append(row.number)
    lines = [f"    {begin.value} --> {end.value}: {', '.join(map(str, numbers))}" for (begin, end), numbers in edges.items()]
    return "\n".join(["```mermaid", "stateDiagram-v2", f"    [*] --> {TABLE[0].state.value}: admitted", *lines, "```"])


def run_page() -> str:
    """The text of run.md."""
    effects = ", ".join(f"`{state.value}`" for state in State if state in EFFECTS)
    rows = _table(("#", "state", "on", "guards", "does", "next", "rules", "if the process dies here"), map(_cells, TABLE))
    return RUN_PAGE.format(rows=rows, effects=effects, admission=_admission())


def pages() -> dict[Path, str]:
    """Every drawn page and what it should be."""
    start = FOLDER / "00-start.md"
    before, _, rest = start.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return {start: f"{before}{BEGIN}\n\n{diagram()}\n\n{END}{after}", FOLDER / "run.md": run_page()}


def main(arguments: Sequence[str]) -> int:
    """Exit status 1 if `--check` finds a page that is not up to date."""
    stale = [path for path, text in pages().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in arguments:
        for path in stale:
            print(f"design/{path.name} is not what kernel/run.py says; run `just fmt`")
        return 1 if stale else 0
    for path in stale:
        path.write_text(pages()[path], encoding="utf-8")
    return 0


def _cells(row: Row) -> tuple[str, ...]:
    guards = ", ".join(guard.__name__.replace("_", " ") for guard in row.guards) or "–"
    does = "; ".join(each.value for each in row.does) or "–"
    following = "↓" if row.next is None else f"`{row.next.value}`"
    on = "–" if row.on == "-" else row.on
    return (
        str(row.number),
        f"`{row.state.value}`",
        on,
        guards,
        does,
        following,
        row.rules,
        row.resume.replace("-", "–", row.resume == "-"),
    )


def _admission() -> str:
    activities = list(dict.fromkeys(activity for _, activity in ADMISSION))
    cells = [(each.value, *[ADMISSION[each, activity].value for activity in activities]) for each in Operation]
    return _table(("", *[activity.value for activity in activities]), cells)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
