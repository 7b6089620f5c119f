"""Vector family `prompt-sections`: building, replaying and comparing prompts (VECTORS.md 5.13)."""

from typing import Any

from camshaft.kernel import codec
from camshaft.kernel.errors import Rejection
from camshaft.kernel.messages import SystemMessage, ToolDeclaration
from camshaft.kernel.prompt import (
    PromptOptions,
    build_prompt,
    collapse,
    leading_text,
    replay,
    section_patch,
    tool_patch,
    update_text,
)

OPTION_NAMES = {"skills": ("name", "description", "filePath", "disableModelInvocation")}
"""Fields of an item that the kernel's prompt needs; a skill has more of them."""


def run(case_input: dict[str, Any]) -> object:
    """What the operation gives, maps as pairs."""
    match case_input["op"]:
        case "build":
            return _built(case_input["options"])
        case "replay":
            return _replayed(case_input["messages"])
        case "diff":
            patch = section_patch(dict(case_input["previous"]), dict(case_input["current"]))
            return None if patch is None else _pairs(patch)
        case "toolDiff":
            before, after = ([codec.wire(ToolDeclaration, tool) for tool in case_input[key]] for key in ("previous", "current"))
            found = tool_patch(before, after)
            return {"toolsAdded": codec.encode(found.added), "toolsRemoved": codec.encode(found.removed)}
        case "update":
            return update_text(codec.wire(SystemMessage, case_input["message"]))
        case _:
            return _collapsed(case_input["messages"])


def _built(options: dict[str, Any]) -> object:
    skills = [{key: skill[key] for key in OPTION_NAMES["skills"]} for skill in options.get("skills", ())]
    built = build_prompt(codec.wire(PromptOptions, {**options, "skills": skills}))
    if isinstance(built, Rejection):
        return {"error": built.why}
    return {"content": built.content, "sections": None if built.sections is None else _pairs(built.sections)}


def _replayed(raw: list[Any]) -> object:
    state = replay([codec.decode_message(message) for message in raw])
    if state is None:
        return {"state": None, "text": ""}
    message = state.as_message()
    shown = {
        "content": state.content,
        "sections": _pairs(state.sections),
        "toolsAdded": codec.encode(state.tools),
        "timestamp": state.timestamp,
    }
    return {"state": shown, "text": leading_text(message)}


def _collapsed(raw: list[Any]) -> object:
    shown = codec.encode(collapse([codec.decode_message(message) for message in raw]))
    for message in shown:
        if message["role"] == "system":
            message["sections"] = _pairs(message.get("sections") or {})
            message.setdefault("toolsAdded", [])
    return shown


def _pairs(sections: Any) -> list[list[Any]]:
    return [list(pair) for pair in sections.items()]
