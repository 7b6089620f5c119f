"""Our wording of the fixed texts, and the placeholders the recorded files have for them (README.md section 6.1).

The texts are public constants of the kernel. A constant that does not exist yet has no row
in the answer: the text it would hold cannot occur in an output either.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

import attrs

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
}
"""Placeholder to the name of the public constant that holds our text."""

WRAPPINGS: Final = ("compaction-summary", "branch-summary")
"""What is wrapped for the model, by constants NAME_PREFIX and NAME_SUFFIX. They stand for their placeholders
only together, because a suffix alone, such as a closing tag, may be anybody's."""

HOMES: Final = (
    "camshaft.kernel.prompt_texts",
    "camshaft.kernel.convert",
    "camshaft.kernel.summary_texts",
)
"""Modules that may hold the constants."""

SKILLS_INTRO_FOR: Final = "default_skills_intro"
"""Public function `tool name -> text` of the introduction that names the reading tool."""


@attrs.frozen(kw_only=True)
class FixedTexts:
    """Our wording by placeholder."""

    plain: Mapping[str, str]
    """Text to placeholder, longest text first, so that no text hides a longer one."""
    wrapped: Sequence[tuple[str, str, str]] = ()
    """Prefix, suffix and the name of what they wrap."""


def fixed_texts() -> FixedTexts:
    """What this version has."""
    modules = [module for module in map(_module, HOMES) if module is not None]
    found = {text: mark for mark, text in _texts(modules)}
    plain = {text: found[text] for text in sorted(found, key=len, reverse=True)}
    return FixedTexts(plain=plain, wrapped=tuple(_wrappings(modules)))


def masked(value: Any, pairs: FixedTexts) -> Any:
    """`value` with our fixed texts replaced by their placeholders."""
    if isinstance(value, str):
        return _masked_text(value, pairs)
    if isinstance(value, (list, tuple)):
        return [masked(item, pairs) for item in value]
    if isinstance(value, Mapping):
        return {key: masked(item, pairs) for key, item in value.items()}
    return value


def _masked_text(text: str, pairs: FixedTexts) -> str:
    for prefix, suffix, name in pairs.wrapped:
        if text.startswith(prefix) and text.endswith(suffix):
            text = f"<{name}-prefix>{text.removeprefix(prefix).removesuffix(suffix)}<{name}-suffix>"
        else:
            # A wrapped summary within the text of a summary request.
            inner = re.escape(prefix) + r"(.*?)" + re.escape(suffix)
            text = re.sub(inner, rf"<{name}-prefix>\1<{name}-suffix>", text, flags=re.DOTALL)
    for ours, mark in pairs.plain.items():
        text = text.replace(ours, mark)
    return text


def _texts(modules: Sequence[Any]) -> Iterator[tuple[str, str]]:
    for mark, name in CONSTANTS.items():
        text = _constant(modules, name)
        if text:
            yield mark, text
    for module in modules:
        intro = getattr(module, SKILLS_INTRO_FOR, None)
        if intro is not None:
            yield "<default-skills-intro:read>", intro("read")


def _wrappings(modules: Sequence[Any]) -> Iterator[tuple[str, str, str]]:
    for name in WRAPPINGS:
        constant = name.replace("-", "_").upper()
        prefix, suffix = _constant(modules, f"{constant}_PREFIX"), _constant(modules, f"{constant}_SUFFIX")
        if prefix and suffix:
            yield prefix, suffix, name


def _constant(modules: Sequence[Any], name: str) -> str | None:
    return next((text for module in modules if (text := getattr(module, name, None)) is not None), None)


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return None
