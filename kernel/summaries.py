"""What compactions and branch summaries have in common: the text a model is shown, the files it touched, what counts as an answer.

A summary request is one system message and one user message that holds the conversation as
text, so that the model reports on it instead of carrying it on (CMP-36 to CMP-38).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

from camshaft.kernel import codec, shapes
from camshaft.kernel.convert import model_messages
from camshaft.kernel.estimates import utf16_length
from camshaft.kernel.messages import (
    AssistantMessage,
    Message,
    ModelMessage,
    SystemMessage,
    TextBlock,
    ToolResultMessage,
    Usage,
    UserMessage,
    text_of,
)
from camshaft.kernel.persistent import FrozenDict, Json
from camshaft.kernel.session_events import FileOperations
from camshaft.kernel.summary_texts import SUMMARIZATION_SYSTEM_PROMPT
from camshaft.kernel.truncate import cut_to_units

RESULT_UNITS_MAX: Final = 2000
"""UTF-16 units of a tool result that a summary request shows."""

Label = Literal["Summarization", "Turn prefix summarization", "Branch summarization"]
"""What failed, as its error text begins (CMP-42)."""


# -- the conversation as text ------------------------------------------------------------


def conversation_text(messages: Iterable[Message]) -> str:
    """The messages as the summarising model reads them (CMP-36)."""
    return "\n\n".join([part for message in model_messages(messages) for part in _parts(message)])


def _parts(message: ModelMessage) -> Iterator[str]:
    if isinstance(message, UserMessage):
        text = text_of(message.content, "")
        if text:
            yield f"[User]: {text}"
    elif isinstance(message, AssistantMessage):
        texts = [block.text for block in message.content if isinstance(block, TextBlock)]
        if texts:
            yield "[Assistant]: " + "\n".join(texts)
        if message.tool_calls:
            yield "[Assistant tool calls]: " + "; ".join([_call_text(call.name, call.arguments) for call in message.tool_calls])
    elif isinstance(message, ToolResultMessage):
        text = text_of(message.content, "")
        if text:
            yield f"[Tool result]: {_shortened(text)}"


def _call_text(name: str, arguments: Json) -> str:
    given = arguments if isinstance(arguments, dict) else {}
    return f"{name}({', '.join([f'{key}={codec.dumps(value).decode()}' for key, value in given.items()])})"


def _shortened(text: str) -> str:
    length = utf16_length(text)
    if length <= RESULT_UNITS_MAX:
        return text
    return f"{cut_to_units(text, RESULT_UNITS_MAX)}\n\n[... {length - RESULT_UNITS_MAX} more characters truncated]"


# -- requests ----------------------------------------------------------------------------


@shapes.frozen(kw_only=True)
class SummaryRequest:
    """One request to a model, without tools, cache writes or an output limit of its own (CMP-37)."""

    label: Label
    prompt: str
    """The text of its user message."""

    def messages(self, now_ms: int) -> tuple[ModelMessage, ...]:
        """What is sent, stamped with the wall clock in ms."""
        return (
            SystemMessage(content=SUMMARIZATION_SYSTEM_PROMPT, timestamp=now_ms),
            UserMessage(content=(TextBlock(text=self.prompt),), timestamp=now_ms),
        )


def focused(instructions: str, focus: str | None) -> str:
    """Instructions with what the user wants to have looked at (CMP-38)."""
    return f"{instructions}\n\nAdditional focus: {focus}" if focus else instructions


@shapes.frozen(kw_only=True)
class SummaryText:
    """An accepted answer."""

    text: str
    usage: Usage


@shapes.frozen
class SummaryFailure:
    """Why an answer is no summary; nothing may be stored (CMP-42 to CMP-44)."""

    text: str
    aborted: bool = False
    """The request was aborted: no failure to report, but a cancel (CMP-43)."""


def answered(label: Label, message: AssistantMessage) -> SummaryText | SummaryFailure:
    """What an answer is worth (CMP-42 to CMP-44)."""
    if message.stop_reason == "aborted":
        return SummaryFailure(f"{label} aborted", aborted=True)
    if message.stop_reason == "error":
        return SummaryFailure(f"{label} failed: {message.error_message or 'Unknown error'}")
    if message.stop_reason == "length":
        return SummaryFailure(f"{label} failed: generation hit the token cap and the summary is incomplete")
    if message.tool_calls:
        return SummaryFailure(f"{label} attempted to call a tool")
    text = text_of(message.content)
    return SummaryText(text=text, usage=message.usage) if text.strip() else SummaryFailure(f"{label} failed: empty summary")


# -- files -------------------------------------------------------------------------------


def modified_files(files: FileOperations) -> tuple[str, ...]:
    """Written or edited ones, in code unit order (CMP-34)."""
    return _in_order({*files.written, *files.edited})


def read_files(files: FileOperations) -> tuple[str, ...]:
    """Those that were only read, in code unit order (CMP-34)."""
    return _in_order({*files.read} - {*files.written, *files.edited})


def details_of(files: FileOperations) -> FrozenDict:
    """The lists as an entry stores them (CMP-41)."""
    return FrozenDict({"readFiles": read_files(files), "modifiedFiles": modified_files(files)})


_SETS: Final = {"read": "read", "write": "written", "edit": "edited"}


def files_of_details(details: Json) -> FileOperations:
    """What an earlier summary's `details` say; lists that are none are ignored."""
    listed = details if isinstance(details, dict) else {}

    def names(key: str) -> tuple[str, ...]:
        value = listed.get(key)
        return _in_order({name for name in value if isinstance(name, str)}) if isinstance(value, (list, tuple)) else ()

    return FileOperations(read=names("readFiles"), edited=names("modifiedFiles"))


def files_of_messages(messages: Iterable[Message]) -> FileOperations:
    """What the calls in these messages touched, nested calls included; an empty path names no file (CMP-33)."""
    found: dict[str, set[str]] = {name: set() for name in _SETS.values()}
    for message in messages:
        for name, arguments in _calls(message):
            path = arguments.get("path") if isinstance(arguments, dict) else None
            if isinstance(name, str) and name in _SETS and isinstance(path, str) and path:
                found[_SETS[name]].add(path)
    return FileOperations(**{name: _in_order(paths) for name, paths in found.items()})


def joined_files(parts: Sequence[FileOperations]) -> FileOperations:
    """The union."""
    return FileOperations(
        read=_in_order({path for part in parts for path in part.read}),
        written=_in_order({path for part in parts for path in part.written}),
        edited=_in_order({path for part in parts for path in part.edited}),
    )


def file_lists(files: FileOperations) -> str:
    """What is put after a summary's text; empty lists are left out (CMP-41)."""
    return _listed("read-files", read_files(files)) + _listed("modified-files", modified_files(files))


def _listed(tag: str, paths: tuple[str, ...]) -> str:
    lines = "\n".join(paths)
    return f"\n\n<{tag}>\n{lines}\n</{tag}>" if paths else ""


def _calls(message: Message) -> Iterator[tuple[object, Json]]:
    if isinstance(message, AssistantMessage):
        for call in message.tool_calls:
            yield call.name, call.arguments
    elif isinstance(message, ToolResultMessage) and isinstance(message.nested_calls, dict):
        calls = message.nested_calls.get("calls")
        for each in calls if isinstance(calls, (list, tuple)) else ():
            if isinstance(each, dict):
                yield each.get("name"), each.get("arguments")


def _in_order(paths: set[str]) -> tuple[str, ...]:
    """By UTF-16 code units (CMP-34)."""
    return tuple(sorted(paths, key=lambda path: path.encode("utf-16-be", "surrogatepass")))
