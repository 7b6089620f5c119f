"""Our wording of the fixed texts, and the placeholders the recorded files have for them (README.md section 6.1).

The texts are public constants of the kernel. A constant that does not exist yet has no row
in the answer: the text it would hold cannot occur in an output either.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Final

CONSTANTS: Final[Mapping[str, str]] = {
    "<default-preamble>": "DEFAULT_PREAMBLE",
    "<default-docs>": "DEFAULT_DOCS",
    "<default-tools-note>": "DEFAULT_TOOLS_NOTE",
    "<default-rule-1>": "DEFAULT_RULE_1",
    "<default-rule-2>": "DEFAULT_RULE_2",
    "<default-bash-rule>": "DEFAULT_BASH_RULE",
    "<default-powershell-rule>": "DEFAULT_POWERSHELL_RULE",
    "<default-bash-and-powershell-rule>": "DEFAULT_BASH_AND_POWERSHELL_RULE",
    "<default-project-context-intro>": "DEFAULT_PROJECT_CONTEXT_INTRO",
    "<default-skills-intro>": "DEFAULT_SKILLS_INTRO",
    "<default-summarization-system-prompt>": "SUMMARIZATION_SYSTEM_PROMPT",
    "<default-summarization-prompt>": "SUMMARIZATION_PROMPT",
    "<default-update-summarization-prompt>": "UPDATE_SUMMARIZATION_PROMPT",
    "<default-turn-prefix-prompt>": "TURN_PREFIX_PROMPT",
    "<default-branch-summary-prompt>": "BRANCH_SUMMARY_PROMPT",
    "<default-branch-summary-preamble>": "BRANCH_SUMMARY_PREAMBLE",
    "<compaction-summary-prefix>": "COMPACTION_SUMMARY_PREFIX",
    "<compaction-summary-suffix>": "COMPACTION_SUMMARY_SUFFIX",
    "<branch-summary-prefix>": "BRANCH_SUMMARY_PREFIX",
    "<branch-summary-suffix>": "BRANCH_SUMMARY_SUFFIX",
}
"""Placeholder to the name of the public constant that holds our text."""

HOMES: Final = (
    "camshaft.kernel.prompt_texts",
    "camshaft.kernel.convert",
    "camshaft.kernel.compaction",
    "camshaft.kernel.branch_summary",
)
"""Modules that may hold the constants."""

SKILLS_INTRO_FOR: Final = "default_skills_intro"
"""Public function `tool name -> text` of the introduction that names the reading tool."""

SHORT_MAX: Final = 24
"""A fixed text this short, such as a closing tag, is replaced only where a text ends with it."""


def placeholders() -> dict[str, str]:
    """Our text to its placeholder, longest text first, so that no text hides a longer one."""
    found = {text: mark for mark, text in _texts()}
    return {text: found[text] for text in sorted(found, key=len, reverse=True)}


def masked(value: Any, pairs: Mapping[str, str]) -> Any:
    """`value` with our fixed texts replaced by their placeholders."""
    if isinstance(value, str):
        return _masked_text(value, pairs)
    if isinstance(value, (list, tuple)):
        return [masked(item, pairs) for item in value]
    if isinstance(value, Mapping):
        return {key: masked(item, pairs) for key, item in value.items()}
    return value


def _masked_text(text: str, pairs: Mapping[str, str]) -> str:
    for ours, mark in pairs.items():
        if len(ours) > SHORT_MAX:
            text = text.replace(ours, mark)
        elif text.endswith(ours):
            text = text.removesuffix(ours) + mark
    return text


def _texts() -> Iterator[tuple[str, str]]:
    modules = [module for module in map(_module, HOMES) if module is not None]
    for mark, name in CONSTANTS.items():
        for module in modules:
            text = getattr(module, name, None)
            if isinstance(text, str) and text:
                yield mark, text
                break
    for module in modules:
        intro = getattr(module, SKILLS_INTRO_FOR, None)
        if intro is not None:
            yield "<default-skills-intro:read>", intro("read")


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return None
