"""The finished trace: session files read back, real paths and our fixed texts replaced by their placeholders (README.md section 6.1).

Ids, times and abort texts stay as they are; the comparison normalises them.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from camshaft.actors.tool_executor import TRUNCATED_TEXT
from camshaft.extensions_std.providers.scripted import EXHAUSTED
from tests.conformance.fixed_texts import fixed_texts, masked
from tests.conformance.notation import replaced
from tests.conformance.scenario.briefs import text
from tests.conformance.scenario.queries import PREAMBLE_MARK
from tests.conformance.scenario.stage import Stage

INLINE: Final = re.compile(r"<inline:([^>]*)>")
"""The path of an inline extension; traces name the extension alone."""


def extension_name(path: str) -> str:
    """The name a trace has for an extension path."""
    return INLINE.sub(r"\1", path)


def trace_of(stage: Stage, state: Mapping[str, Any] | None) -> dict[str, Any]:
    """The whole trace in the format's shape."""
    recorder, scenario = stage.recorder, stage.scenario
    trace = {
        "format": 1,
        "scenario": scenario["name"],
        "compare": scenario.get("compare") or {},
        "events": recorder.events,
        "requests": recorder.requests,
        "sessions": [session_lines(path) for path in recorder.session_files],
        "state": state,
    }
    plain = _plain(replaced(trace, _path_marks(stage)))
    plain = named_cut(plain)
    return _prompt_queries(masked(replaced(plain, {EXHAUSTED: "<error:no-more-replies>"}), fixed_texts()))


def session_lines(path: str | None) -> list[Any] | None:
    """The lines of a session file as JSON; None if it was never created."""
    if path is None or not Path(path).exists():
        return None
    return [_line(line) for line in Path(path).read_bytes().decode("utf-8", "replace").split("\n") if line]


def last_assistant_text(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """The text of the newest assistant message that has one or stopped normally, trimmed (RPC-37)."""
    for message in reversed(messages):
        if message.get("role") != "assistant":
            continue
        said = text(message.get("content")).strip()
        if said or message.get("stopReason") == "stop":
            return said or None
    return None


def named_cut(value: Any, tool: str = "") -> Any:
    """`value` with our text about a call whose reply hit the output limit replaced by the placeholder, which names the tool."""
    if isinstance(value, str):
        return value.replace(TRUNCATED_TEXT, f"<tool-call-truncated:{tool}>")
    if isinstance(value, list):
        owner = value[2] if value[:1] == ["toolResult"] and len(value) > 2 else tool
        return [named_cut(item, owner) for item in value]
    if isinstance(value, dict):
        owner = value.get("toolName") or tool
        return {key: named_cut(item, owner) for key, item in value.items()}
    return value


def _line(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return {"malformed": line}


def _path_marks(stage: Stage) -> dict[str, str]:
    """Real paths to placeholders, the longer ones first."""
    folders = stage.folders
    files = {path: f"<session-file-{number}>" for number, path in enumerate(stage.recorder.session_files, start=1) if path}
    marks = {
        **files,
        str(folders.cwd): "<cwd>",
        str(folders.agent): "<agent-dir>",
        str(folders.root): "<root>",
    }
    port = {} if stage.port is None else {f":{stage.port}": ":<port>"}
    return {**{path: marks[path] for path in sorted(marks, key=len, reverse=True)}, **port}


def _plain(value: Any) -> Any:
    """`value` with extension names in place of inline paths."""
    if isinstance(value, str):
        return extension_name(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _prompt_queries(trace: dict[str, Any]) -> dict[str, Any]:
    """An answer to the query `systemPrompt` that begins with the default preamble is that mark alone."""
    for record in trace["events"]:
        for answers in (record.get("got"), record.get("result")):
            prompt = answers.get("systemPrompt") if isinstance(answers, dict) else None
            if isinstance(prompt, str) and prompt.startswith(PREAMBLE_MARK):
                answers["systemPrompt"] = PREAMBLE_MARK
    return trace
