"""Vector family `session-append`: what appending to a session gives, and what stands in its file (VECTORS.md 5.6)."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from camshaft.actors.host import (
    CamshaftError,
    MemorySession,
    NewSession,
    OpenSession,
    SessionWriter,
    open_writer,
    real_world,
)
from camshaft.kernel import codec
from camshaft.kernel.commands import (
    Append,
    AppendBranchSummary,
    AppendCompaction,
    AppendContextEdit,
    AppendCustom,
    AppendCustomMessage,
    AppendMessage,
    AppendUsage,
    RecordSelection,
    SetLabel,
    SetName,
)
from camshaft.kernel.entries import CompactionDraft, CustomDraft
from camshaft.kernel.errors import MalformedJson
from camshaft.kernel.messages import CustomMessage, Usage
from camshaft.kernel.persistent import freeze
from tests.conformance.session_lines import data_of

CWD: Final = "/srv/app"
OWN_ID: Final = "$op:"
"""Begins a reference to the id that an earlier operation made."""

Op = Mapping[str, Any]


def run(case_input: Op) -> object:
    """What each operation gave, and the session in the end."""
    with open_writer(_target(case_input), real_world(), cwd=CWD) as writer:
        first = writer.path
        results = _results(writer, case_input["ops"])
        data = _bytes(writer)
        output = {
            "results": results,
            "file": None if data is None else [_line(line, first) for line in data.splitlines()],
            "leaf": writer.leaf_id,
            "labels": [list(pair) for pair in writer.labels],
            "name": writer.name,
        }
    if "contains" in case_input:
        output["contains"] = [text.encode("latin-1") in (data or b"") for text in case_input["contains"]]
    return output


def _target(case_input: Op) -> OpenSession | NewSession | MemorySession:
    if case_input.get("memory"):
        return MemorySession()
    if "lines" not in case_input:
        return NewSession(directory="sessions", id=case_input.get("id"))
    path = Path("session.jsonl")
    data = data_of(case_input["lines"])
    path.write_bytes(data[:-1] if case_input.get("noNewline") else data)
    return OpenSession(path=str(path))


def _results(writer: SessionWriter, ops: Sequence[Op]) -> list[dict[str, Any]]:
    made: list[str] = []
    results: list[dict[str, Any]] = []
    for op in ops:
        try:
            result = _done(writer, {name: _known(value, made) for name, value in op.items()})
        except CamshaftError as refused:
            result = {"error": str(refused)}
        made.append(result.get("entry", {}).get("id", ""))
        results.append({**result, "fileExists": writer.path is not None and Path(writer.path).exists()})
    return results


def _known(value: Any, made: Sequence[str]) -> Any:
    is_reference = isinstance(value, str) and value.startswith(OWN_ID)
    return made[int(value.removeprefix(OWN_ID))] if is_reference else value


def _done(writer: SessionWriter, op: Op) -> dict[str, Any]:
    """The result of one operation. Raises CommandRefused, StorageError."""
    match op["op"]:
        case "branch":
            writer.branch(op["id"])
        case "reset":
            writer.reset()
        case "takeFile":
            _path(writer).write_text("taken\n")
        case "deleteFile":
            _path(writer).unlink()
        case "extract":
            before = writer.path
            return {"newFile": writer.extract(op["leafId"]) != before}
        case kind:
            return {"entry": codec.encode(writer.append(COMMANDS[kind](op))[0])}
    return {}


def _path(writer: SessionWriter) -> Path:
    assert writer.path is not None
    return Path(writer.path)


def _bytes(writer: SessionWriter) -> bytes | None:
    return None if writer.path is None or not Path(writer.path).exists() else Path(writer.path).read_bytes()


def _line(line: bytes, first: str | None) -> Any:
    try:
        value = codec.loads(line)
    except MalformedJson:
        return {"malformed": line.decode("utf-8", "replace")}
    if isinstance(value, dict) and value.get("parentSession") == first is not None:
        value["parentSession"] = "<file>"
    return value


def _usage(op: Op) -> Usage | None:
    return codec.wire(Usage, op["usage"]) if "usage" in op else None


def _compaction(op: Op) -> Append:
    named = ("summary", "firstKeptEntryId", "details", "usage")
    draft = codec.wire(CompactionDraft, {name: op[name] for name in named if name in op})
    return AppendCompaction(draft=draft, tokens_before=op["tokensBefore"], from_hook=op.get("fromHook"))


def _branch_summary(op: Op) -> Append:
    return AppendBranchSummary(
        entry_id=op["fromId"], summary=op["summary"], details=freeze(op.get("details")), usage=_usage(op), from_hook=op.get("fromHook")
    )


def _custom(op: Op) -> Append:
    draft = codec.wire(CustomDraft, {name: op[name] for name in ("customType", "data") if name in op})
    return AppendCustom(custom_type=draft.custom_type, data=draft.data, extra=draft.extra)


def _custom_message(op: Op) -> Append:
    given = {name: value for name, value in op.items() if name != "op"}
    return AppendCustomMessage(message=codec.wire(CustomMessage, {**given, "role": "custom", "timestamp": 0}))


COMMANDS: Final[Mapping[str, Callable[[Op], Append]]] = {
    "message": lambda op: AppendMessage(message=codec.decode_message(op["message"])),
    "model": lambda op: RecordSelection(model=(op["provider"], op["modelId"])),
    "thinkingLevel": lambda op: RecordSelection(thinking_level=op["level"]),
    "usage": lambda op: AppendUsage(
        kind=op["kind"], provider=op["provider"], model=op["model"], usage=codec.wire(Usage, op["usage"]), note=op.get("note")
    ),
    "custom": _custom,
    "customMessage": _custom_message,
    "name": lambda op: SetName(name=op["name"]),
    "label": lambda op: SetLabel(target_id=op["targetId"], label=op.get("label")),
    "compaction": _compaction,
    "contextEdit": lambda op: AppendContextEdit(target_id=op["targetId"], replacement=op["replacement"]),
    "branchSummary": _branch_summary,
}
"""The command for each operation that appends."""
