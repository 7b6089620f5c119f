"""`python -m bench CASE ARGS`: one JSON line; without arguments the table of all rows. See README.md."""

import json
import sys
import tempfile
from pathlib import Path

import trio

from bench.table import show_table


def main(arguments: list[str]) -> int:
    """Exit status 0; 2 for an unknown case."""
    if not arguments:
        show_table()
        return 0
    from bench.cases import CASES  # the table only starts processes

    name, *rest = arguments
    if name not in CASES:
        print(f"no case {name!r}; there are: {', '.join(CASES)}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        fields = trio.run(CASES[name], Path(folder), *rest)
    print(json.dumps({"case": name, "args": rest, **fields}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
