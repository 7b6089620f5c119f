"""The scenario runner as a command: `run_scenario.py SCENARIO.json OUT_TRACE.json` (README.md of the conformance data)."""

import json
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.conformance.scenario.driver import run_scenario


def main(arguments: list[str]) -> int:
    """Exit status 0 when a trace was written."""
    if len(arguments) != 2:
        print("usage: run_scenario.py SCENARIO.json OUT_TRACE.json", file=sys.stderr)
        return 2
    scenario = json.loads(Path(arguments[0]).read_text("utf-8"))
    trace = run_scenario(scenario)
    Path(arguments[1]).write_text(json.dumps(trace), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
