"""Vector family `commands`: command syntax, templates, skills, names of sessions, paths of tools (VECTORS.md 5.14)."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from camshaft.actors.opening import SESSION_ID, SESSION_ID_TEXT, session_file_name, session_folder
from camshaft.actors.resources.found import Owner
from camshaft.actors.resources.skills import skills_at
from camshaft.actors.resources.templates import templates_at
from camshaft.extensions_std.tools import resolve_path
from camshaft.kernel.entries import SessionHeader
from camshaft.kernel.skills import skill_call, skill_text
from camshaft.kernel.slash_commands import split_command
from camshaft.kernel.templates import PromptTemplate, expand_template, substitute, template_arguments
from tests.conformance.vectors._tool_case import write_tree

OWNER: Final = Owner(source="cli")
AT: Final = "2026-03-01T09:00:07.400Z"


def run(case_input: dict[str, Any]) -> object:
    """What the operation gives."""
    return _OPERATIONS[case_input["op"]](case_input)


def _split(case: dict[str, Any]) -> object:
    found = split_command(case["text"])
    return None if found is None else {"name": found[0], "arguments": found[1]}


def _template(case: dict[str, Any]) -> str:
    return expand_template(case["text"], [PromptTemplate(name=each["name"], content=each["content"]) for each in case["templates"]])


def _template_files(case: dict[str, Any]) -> object:
    write_tree(Path.cwd(), case["files"])
    found = templates_at(str(Path.cwd()), OWNER)
    return {
        "templates": [_shown(each.template) for each in found if each.template is not None],
        "diagnostics": [{"type": told.type, "path": told.path} for each in found for told in each.diagnostics],
    }


def _shown(template: PromptTemplate) -> dict[str, str]:
    hint = {} if template.argument_hint is None else {"argumentHint": template.argument_hint}
    return {"name": template.name, "description": template.description, "content": template.content, **hint}


def _skill(case: dict[str, Any]) -> str:
    write_tree(Path.cwd(), case["files"])
    found = [each.skill for each in skills_at(str(Path.cwd()), OWNER) if each.skill is not None]
    call = skill_call(case["text"], found)
    return case["text"] if call is None else skill_text(call, Path(call.skill.file_path).read_bytes().decode("utf-8", "replace"))


def _session_id(case: dict[str, Any]) -> object:
    return {"ok": True} if SESSION_ID.fullmatch(case["id"]) else {"error": SESSION_ID_TEXT}


def _session_file(case: dict[str, Any]) -> object:
    name = session_file_name(SessionHeader(id=case["id"], timestamp=AT, cwd="/"))
    time, _, rest = name.partition("_")
    return {
        "rule": "TIME_ID.jsonl" if rest == f"{case['id']}.jsonl" else name,
        "timeSeparators": "".join(sorted({made for made, was in zip(time, AT, strict=True) if was in ":."})),
    }


_OPERATIONS: Final[dict[str, Callable[[dict[str, Any]], object]]] = {
    "split": _split,
    "args": lambda case: template_arguments(case["text"]),
    "substitute": lambda case: substitute(case["content"], case["args"]),
    "template": _template,
    "templateFiles": _template_files,
    "skill": _skill,
    "sessionFolder": lambda case: session_folder("", case["cwd"]),
    "sessionId": _session_id,
    "sessionFile": _session_file,
    "path": lambda case: resolve_path(case["path"], "/srv/app", os.environ),
}
