"""A process that opens a session for writing, appends one entry, says so, and waits to be killed."""

import sys

from camshaft.actors.logs.jsonl import JsonlOptions, open_jsonl
from camshaft.actors.ports.log_files import RealLogFiles, holder_name
from camshaft.kernel.entries import MessageEntry, SessionHeader
from camshaft.kernel.messages import UserMessage

TIME = "2026-01-01T00:00:00.000Z"


def main() -> None:
    options = JsonlOptions(
        files=RealLogFiles(),
        new_header=lambda: SessionHeader(id="ses", timestamp=TIME),
        new_entry_id=lambda: "m",
        holder=holder_name(0),
        durability="none",
    )
    log, _ = open_jsonl(sys.argv[1], options)
    log.append([MessageEntry(id="e1", parent_id=None, timestamp=TIME, message=UserMessage(content="u", timestamp=1))])
    print("held", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
