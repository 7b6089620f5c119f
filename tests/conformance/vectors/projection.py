"""Vector family `projection`: the context of a leaf (VECTORS.md 5.7)."""

from typing import Any

from camshaft.kernel import codec
from camshaft.kernel.projection import project
from tests.conformance.session_lines import tree_of_lines


def run(case_input: dict[str, Any]) -> object:
    """Settings, selected entries with their messages, model messages and system state."""
    tree = tree_of_lines(case_input)
    last = tree.length - 1 if tree.length else None
    leaf = last
    if "leaf" in case_input:
        leaf = None if case_input["leaf"] is None else tree.position(case_input["leaf"])
        leaf = last if leaf is None and case_input["leaf"] is not None else leaf
    context = project(tree, leaf)
    system = context.system
    return {
        "thinkingLevel": context.thinking_level,
        "model": None if context.model is None else {"provider": context.model[0], "modelId": context.model[1]},
        "entries": [{"id": each.entry.id, "messages": codec.encode(each.messages)} for each in context.context_entries],
        "llm": codec.encode(list(context.llm_messages)),
        "system": None
        if system is None
        else {
            "content": system.content,
            "sections": [list(pair) for pair in system.sections.items()],
            "tools": [tool.name for tool in system.tools],
            "timestamp": system.timestamp,
        },
    }
