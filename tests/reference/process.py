"""The reference as a process: started once, asked by lines of JSON, ended with the tests (driver.mjs is its other end)."""

import json
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import attrs

from tests.reference.places import DRIVER, NODE, NODE_MODULES

ANSWER_S: Final = 60
"""Longest wait for one answer; the first one includes the start of Node.js, on a machine that does other things too."""
END_S: Final = 10
"""How long the process may take to end once its input is closed."""

View = dict[str, Any]
"""What is read in a session file: header, entries, leaf, branch, tree, labels, name, messages, thinkingLevel, model."""


@attrs.define(eq=False)
class Reference:
    """Asks the reference. Every answer is a view; AssertionError if it refuses."""

    _process: subprocess.Popen[str]
    _told: IO[str]
    """What it writes to its standard error."""

    def view(self, path: Path) -> View:
        """What the reference reads in a file."""
        return self._view(do="view", path=str(path))

    def refusal(self, path: Path) -> str | None:
        """Why the reference does not open a file; None if it does."""
        said: str | None = self._ask(do="view", path=str(path)).get("error")
        return said

    def run(self, acts: Sequence[dict[str, Any]], **where: str) -> View:
        """Prompts and compactions in an agent session of its own, whose scripted model gives the replies that are named."""
        return self._view(do="run", acts=acts, **where)

    def listed(self, folder: Path, cwd: Path) -> list[dict[str, Any]]:
        """The sessions it finds in a folder."""
        found: list[dict[str, Any]] = self._view(do="list", folder=str(folder), cwd=str(cwd))["sessions"]
        return found

    def write(self, steps: Sequence[Sequence[Any]], **where: Any) -> View:
        """Calls of its session manager, one after the other; the text `$N` stands for what call N returned."""
        return self._view(do="write", steps=steps, **where)

    def _view(self, **request: Any) -> View:
        answer = self._ask(**request)
        assert "error" not in answer, answer["error"]
        return answer

    def _ask(self, **request: Any) -> View:
        """Raises AssertionError with what the process said last if it died or did not answer in time."""
        assert self._process.stdin is not None and self._process.stdout is not None
        deadline = threading.Timer(ANSWER_S, self._process.kill)
        deadline.start()
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        finally:
            deadline.cancel()
        if not line:
            self._told.seek(0)
            raise AssertionError(f"the reference gave no answer to {request['do']!r}: {self._told.read()[-2000:]}")
        answer: View = json.loads(line)
        return answer


@contextmanager
def running(home: Path) -> Iterator[Reference]:
    """A running reference whose home folder is `home`; it has ended when the block is left."""
    environment = {"HOME": str(home), "PATH": str(NODE.parent), "TMPDIR": str(home)}
    with tempfile.TemporaryFile("w+") as told:
        command = [NODE, DRIVER, NODE_MODULES]
        process = subprocess.Popen(
            command, cwd=home, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=told, text=True, encoding="utf-8"
        )
        with process:
            try:
                yield Reference(process, told)
            finally:
                _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
