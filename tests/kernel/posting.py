"""A session without a log: a state, commands posted to it, and a counter for ids."""

from typing import Any

import attrs

from camshaft.kernel.commands import Command
from camshaft.kernel.entries import SessionHeader
from camshaft.kernel.errors import Rejection
from camshaft.kernel.messages import CustomMessage, UserMessage
from camshaft.kernel.settings import Settings
from camshaft.kernel.state import Commit, SessionState, Stamps, decide, evolve, ids_needed, initial
from camshaft.kernel.tree import tree_of
from tests.kernel.made import TIME, assistant, user

HEADER = SessionHeader(id="s", timestamp=TIME, cwd="/")
STARTED_MS = 1_772_355_600_000


def said(text: str) -> UserMessage:
    return UserMessage(content=text, timestamp=1)


def custom(text: str) -> CustomMessage:
    return CustomMessage(custom_type="k", content=text, timestamp=1)


def opened(*entries: Any) -> SessionState:
    return initial(HEADER, tree_of(entries=list(entries)), len(entries) - 1 if entries else None, (), Settings())


@attrs.define
class Session:
    """A state with a counter for ids: what the session actor is, without a log."""

    state: SessionState = attrs.field(factory=lambda: opened(user("u", None), assistant("a", "u")))
    commits: list[Commit] = attrs.field(factory=list)
    _made: int = 0

    def post(self, command: Command) -> Commit | Rejection:
        count = ids_needed(self.state, command)
        ids = tuple([f"n{self._made + number}" for number in range(count)])
        self._made += count
        commit = decide(self.state, command, Stamps(now_ms=STARTED_MS, ids=ids))
        if isinstance(commit, Commit):
            self.state = evolve(self.state, commit)
            self.commits.append(commit)
        return commit

    def posted(self, command: Command) -> Commit:
        commit = self.post(command)
        assert isinstance(commit, Commit), commit
        return commit
