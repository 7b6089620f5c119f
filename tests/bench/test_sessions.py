"""The made-up sessions of the bench are sessions."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.sessions import small_talk, tool_conversation, write_session
from camshaft.kernel.entries import MessageEntry
from camshaft.kernel.messages import AssistantMessage, ToolResultMessage, UserMessage
from camshaft.kernel.session_file import SessionFile, read_session

CASES = [
    (small_talk, [UserMessage, AssistantMessage, UserMessage, AssistantMessage]),
    (tool_conversation, [UserMessage, AssistantMessage, ToolResultMessage, AssistantMessage]),
]


@pytest.mark.parametrize(("conversation", "roles"), CASES, ids=["small talk", "tool conversation"])
def test_a_made_up_session_is_read_without_a_complaint(
    conversation: Callable[[int], Iterator[dict[str, Any]]], roles: list[type], tmp_path: Path
) -> None:
    path = tmp_path / "session.jsonl"
    write_session(path, conversation(len(roles)))

    read = read_session(path.read_bytes(), str(path), lambda: "")

    assert isinstance(read, SessionFile)
    assert read.diagnostics == ()
    entries = [read.image.entry(position) for position in range(len(roles))]
    assert [type(entry.message) for entry in entries if isinstance(entry, MessageEntry)] == roles
