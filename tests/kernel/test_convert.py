"""What a model receives: the exact texts of section 17."""

from typing import Any

import pytest

from camshaft.kernel.convert import bash_text, model_message, model_messages, without_images
from camshaft.kernel.messages import (
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    ImageBlock,
    Message,
    OpaqueMessage,
    TextBlock,
    ToolResultMessage,
    UserMessage,
)
from camshaft.kernel.persistent import EMPTY
from tests.kernel.made import assistant, system

IMAGE = ImageBlock(data="AA==", mime_type="image/png")


def ran(output: str = "", **fields: Any) -> BashExecutionMessage:
    return BashExecutionMessage(command="ls", output=output, timestamp=1, **{"cancelled": False, "truncated": False, **fields})


@pytest.mark.rule("CTX-30")
@pytest.mark.parametrize(
    ("message", "text"),
    [
        (ran(), "Ran `ls`\n(no output)"),
        (ran("a\n"), "Ran `ls`\n```\na\n\n```"),
        (ran("a", exit_code=0), "Ran `ls`\n```\na\n```"),
        (ran(exit_code=2), "Ran `ls`\n(no output)\n\nCommand exited with code 2"),
        (ran(exit_code=2, cancelled=True), "Ran `ls`\n(no output)\n\n(command cancelled)"),
        (ran("a", truncated=True), "Ran `ls`\n```\na\n```"),
        (ran("a", truncated=True, full_output_path="/f"), "Ran `ls`\n```\na\n```\n\n[Output truncated. Full output: /f]"),
    ],
)
def test_a_command_of_the_user_is_told_as_text(message: BashExecutionMessage, text: str) -> None:
    assert bash_text(message) == text
    assert model_message(message) == UserMessage(content=(TextBlock(text=text),), timestamp=1)


@pytest.mark.rule("CTX-31", "CTX-32", "CTX-33")
@pytest.mark.parametrize(
    ("message", "content"),
    [
        (CustomMessage(custom_type="k", content="x", timestamp=1), (TextBlock(text="x"),)),
        (CustomMessage(custom_type="k", content=(), timestamp=1), ()),
        (CustomMessage(custom_type="k", content=(IMAGE,), timestamp=1), (IMAGE,)),
        (
            CompactionSummaryMessage(summary="S", tokens_before=1, timestamp=1),
            (
                TextBlock(
                    text="The conversation history before this point was compacted into the following summary:\n\n<summary>\nS\n</summary>"
                ),
            ),
        ),
        (
            BranchSummaryMessage(summary="S", from_id="x", timestamp=1),
            (TextBlock(text="The following is a summary of a branch that this conversation came back from:\n\n<summary>\nS</summary>"),),
        ),
    ],
)
def test_what_only_projections_know_is_told_by_the_user(message: Message, content: object) -> None:
    converted = model_message(message)

    assert isinstance(converted, UserMessage)
    assert (converted.content, converted.timestamp) == (content, 1)


@pytest.mark.rule("CTX-29", "MSG-38")
def test_model_messages_pass_as_they_are_and_the_rest_is_dropped() -> None:
    passing: list[Message] = [system("x"), UserMessage(content="u", timestamp=1), assistant("a", None).message]
    dropped: list[Message] = [ran(exclude_from_context=True), OpaqueMessage(role="odd", raw=EMPTY)]

    converted = list(model_messages([*passing, *dropped]))

    assert [id(message) for message in converted] == [id(message) for message in passing]


@pytest.mark.rule("CTX-34", "SET-11")
def test_blocked_images_become_one_text_a_run() -> None:
    image, text = ImageBlock(data="", mime_type="image/png"), TextBlock(text="t")
    blocked = TextBlock(text="Image reading is disabled.")
    user = UserMessage(content=(image, image, text, image), timestamp=1)
    result = ToolResultMessage(tool_call_id="c", tool_name="read", content=(text, image), is_error=False, timestamp=1)

    assert without_images(user) == UserMessage(content=(blocked, text, blocked), timestamp=1)
    assert without_images(result).content == (text, blocked)


@pytest.mark.rule("CTX-34")
@pytest.mark.parametrize("content", ["plain", (TextBlock(text="t"),), (TextBlock(text="Image reading is disabled."),) * 2])
def test_a_message_without_images_is_left_alone(content: Any) -> None:
    message = UserMessage(content=content, timestamp=1)

    assert without_images(message) is message
