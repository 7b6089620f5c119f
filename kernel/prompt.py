"""System prompt and tool state: sections, replay, patches (CTX-18 to CTX-27, RES-17 to RES-19).

Theory of operation. There is no stored prompt: the state is what replaying the system
messages of the context gives. A message adds text, sets or removes sections, removes and
then adds tools; one with `replace` begins anew (CTX-21). Sections and tools keep the place
of their first setting, and what is removed and set again moves to the end (CTX-22), which
is how Python dicts behave. What is to be sent next is compared with the state, and only the
difference is written. The texts of the default sections live in prompt_texts.py.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from camshaft.kernel import prompt_texts as texts
from camshaft.kernel import shapes
from camshaft.kernel.errors import Rejection
from camshaft.kernel.messages import BLANKS, Message, SystemMessage, ToolDeclaration, ToolName, text_of
from camshaft.kernel.persistent import EMPTY, FrozenDict, Json
from camshaft.kernel.skills import Skill

DEFAULT_TOOLS: Final = ("read", "bash", "edit", "write")
"""The tools a prompt is about if nothing else is said."""

_SECTION_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*")
_XML: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"}


# -- replay ------------------------------------------------------------------------------


@shapes.frozen(kw_only=True)
class SystemState:
    """Prompt and tools after replaying system messages (CTX-20)."""

    content: str = ""
    """The instruction texts, joined by blank lines."""
    sections: FrozenDict = EMPTY
    """Name to text, in order; texts may be empty."""
    tools: tuple[ToolDeclaration, ...] = ()
    timestamp: int
    """Of the first message, or of the last replacing one."""

    def as_message(self, timestamp: int | None = None) -> SystemMessage:
        """The state as one system message, at its own time or at `timestamp`."""
        return SystemMessage(
            content=self.content,
            sections=self.sections or None,
            tools_added=self.tools or None,
            timestamp=self.timestamp if timestamp is None else timestamp,
        )


def replay_one(state: SystemState | None, message: SystemMessage) -> SystemState:
    """The state after one more system message (CTX-19). O(sections + tools)."""
    if state is None or message.replace is True:
        state = SystemState(timestamp=message.timestamp)
    return SystemState(
        content="\n\n".join([text for text in (state.content, text_of(message.content)) if text]),
        sections=_sections_after(state.sections, message.sections),
        tools=_tools_after(state.tools, message),
        timestamp=state.timestamp,
    )


def replay(messages: Iterable[Message]) -> SystemState | None:
    """The state of all system messages among `messages`, or None if there is none."""
    state: SystemState | None = None
    for message in messages:
        if isinstance(message, SystemMessage):
            state = replay_one(state, message)
    return state


def collapse(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages with all system messages replayed into one at the head (CTX-24)."""
    listed = tuple(messages)
    state = replay(listed)
    rest = tuple([message for message in listed if not isinstance(message, SystemMessage)])
    return rest if state is None else (state.as_message(), *rest)


def current_prompt(messages: Iterable[Message]) -> str:
    """The text of the system prompt after all system messages of a transcript, as a model gets it (CTX-23); empty without one."""
    state = replay(messages)
    return "" if state is None else leading_text(state.as_message())


def current_tools(messages: Iterable[Message]) -> tuple[ToolDeclaration, ...]:
    """The tools declared after all system messages of a transcript, in order."""
    state = replay(messages)
    return () if state is None else state.tools


def leading_text(message: SystemMessage) -> str:
    """A leading system message as text: content, then the sections that have a text (CTX-23)."""
    sections = (message.sections or EMPTY).values()
    return "\n\n".join([part for part in (text_of(message.content), *sections) if isinstance(part, str) and part])


def update_text(message: SystemMessage) -> str:
    """A later system message as the text of an update sent in place (CTX-24)."""
    parts = [text_of(message.content)]
    for name, text in (message.sections or EMPTY).items():
        if text is None:
            parts.append(f'Removed system prompt section "{name}".')
        else:
            parts.append(f'Updated system prompt section "{name}":\n\n{text}')
    return "\n\n".join([part for part in parts if part])


def _sections_after(sections: FrozenDict, change: FrozenDict | None) -> FrozenDict:
    if not change:
        return sections
    after = dict(sections)
    for name, text in change.items():
        if text is None:
            after.pop(name, None)
        else:
            after[name] = text
    return FrozenDict(after)


def _tools_after(tools: tuple[ToolDeclaration, ...], message: SystemMessage) -> tuple[ToolDeclaration, ...]:
    if not message.tools_added and not message.tools_removed:
        return tools
    after = {tool.name: tool for tool in tools}
    for removed in message.tools_removed or ():
        after.pop(removed.name, None)
    for added in message.tools_added or ():
        after[added.name] = added
    return tuple(after.values())


# -- differences -------------------------------------------------------------------------


@shapes.frozen(kw_only=True)
class ToolPatch:
    """What has to be declared so that the transcript's tools become the executable ones."""

    added: tuple[ToolDeclaration, ...]
    removed: tuple[ToolName, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


def section_patch(previous: Mapping[str, Json], current: Mapping[str, Json]) -> FrozenDict | None:
    """New and changed sections in the order of `current`, then vanished ones as null; None if nothing differs (CTX-25)."""
    changed = {name: text for name, text in current.items() if name not in previous or previous[name] != text}
    patch = FrozenDict({**changed, **{name: None for name in previous if name not in current}})
    return patch or None


def tool_patch(previous: Sequence[ToolDeclaration], current: Sequence[ToolDeclaration]) -> ToolPatch:
    """What to declare; a changed definition is removed and added (CTX-26). Compared by value, order of keys aside."""
    before = {tool.name: tool for tool in previous}
    after = {tool.name: tool for tool in current}
    kept = {name for name, tool in after.items() if name in before and same_declaration(before[name], tool)}
    return ToolPatch(
        added=tuple([tool for name, tool in after.items() if name not in kept]),
        removed=tuple([ToolName(name=name) for name in before if name not in kept]),
    )


def same_declaration(one: ToolDeclaration, other: ToolDeclaration) -> bool:
    """Whether two declarations say the same (MSG-19): name, description, parameters, sampling."""
    return one is other or (
        one.name == other.name
        and one.description == other.description
        and same_json(one.parameters, other.parameters)
        and same_json(one.constrained_sampling, other.constrained_sampling)
    )


def same_json(one: Json, other: Json) -> bool:
    """Equality of JSON values: key order aside, and true is not 1."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same_json(item, other[key]) for key, item in one.items())
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same_json, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


# -- sections ----------------------------------------------------------------------------


@shapes.frozen(kw_only=True)
class ContextFile:
    """A file with instructions for the project (RES-14)."""

    path: str
    content: str


@shapes.frozen(kw_only=True)
class PromptOptions:
    """What the system prompt is built from (PB-1)."""

    cwd: str
    custom_prompt: str | None = None
    """Replaces the preamble, the tools, the rules and the docs; empty means none."""
    force_system_prompt: str | None = None
    """Replaces everything (PB-5); an empty text counts."""
    selected_tools: tuple[str, ...] = DEFAULT_TOOLS
    hidden_tools: tuple[str, ...] = ()
    """Selected, but not told to the model."""
    tool_snippets: FrozenDict = EMPTY
    """Tool name to a line of text."""
    tool_guidelines: FrozenDict = EMPTY
    """Tool name to a list of texts."""
    prompt_guidelines: tuple[str, ...] = ()
    append_system_prompt: str | None = None
    sections: FrozenDict = EMPTY
    """Sections of extensions: name to text (RES-19)."""
    context_files: tuple[ContextFile, ...] = ()
    skills: tuple[Skill, ...] = ()


@shapes.frozen(kw_only=True)
class BuiltPrompt:
    """The desired prompt: one opaque text, or sections."""

    content: str
    """The forced prompt; empty if there are sections."""
    sections: FrozenDict | None


def build_prompt(options: PromptOptions) -> BuiltPrompt | Rejection:
    """The prompt that `options` ask for; rejected if a section name is bad (RES-19)."""
    if options.force_system_prompt is not None:
        return BuiltPrompt(content=options.force_system_prompt, sections=None)
    sections = build_sections(options)
    return sections if isinstance(sections, Rejection) else BuiltPrompt(content="", sections=sections)


def build_sections(options: PromptOptions) -> FrozenDict | Rejection:
    """The named sections in order, wrapped (RES-17, PB-2); empty ones are absent. A forced prompt is not looked at."""
    for name in options.sections:
        refused = check_section_name(name)
        if refused is not None:
            return refused
    return _wrapped(options, options.sections)


def _wrapped(options: PromptOptions, extensions: Mapping[str, str]) -> FrozenDict:
    standard = {
        "preamble": options.custom_prompt or texts.DEFAULT_PREAMBLE,
        **({} if options.custom_prompt else _default_bodies(options)),
        "addendum": options.append_system_prompt or "",
        "project_context": _project_context(options.context_files),
        "skills": _skills(options),
        "cwd": options.cwd.replace("\\", "/"),
    }
    bodies = {name: body for name, body in standard.items() if body}
    bodies.update({name: text for name, text in extensions.items() if text})
    return FrozenDict({name: body if name == "preamble" else f"<{name}>\n{body}\n</{name}>" for name, body in bodies.items()})


def prompt_text(options: PromptOptions) -> str:
    """The whole prompt as text; badly named sections are left out (PB-3)."""
    if options.force_system_prompt is not None:
        return options.force_system_prompt
    named = {name: text for name, text in options.sections.items() if check_section_name(name) is None}
    return "\n\n".join(_wrapped(options, named).values())


def check_section_name(name: str) -> Rejection | None:
    """Why an extension may not call a section so, or None (PB-3)."""
    if _SECTION_NAME.fullmatch(name) and name != "preamble":
        return None
    return Rejection(f"Invalid system prompt section name: {name}")


def _default_bodies(options: PromptOptions) -> dict[str, str]:
    """The sections that a custom prompt leaves out."""
    visible = [name for name in options.selected_tools if name not in options.hidden_tools]
    snippets = [f"- {name}: {options.tool_snippets[name]}" for name in visible if options.tool_snippets.get(name)]
    rules = "\n".join([f"- {rule}" for rule in _rules(options, visible)])
    return {"tools": "\n".join(snippets or ["(none)"]) + f"\n\n{texts.DEFAULT_TOOLS_NOTE}", "rules": rules, "docs": texts.DEFAULT_DOCS}


def _rules(options: PromptOptions, visible: Sequence[str]) -> list[str]:
    """The rules in order, each once (RES-18)."""
    rules = [_shell_rule(visible)]
    for name in visible:
        rules += options.tool_guidelines.get(name) or ()
    rules += options.prompt_guidelines
    rules += (texts.DEFAULT_RULE_1, texts.DEFAULT_RULE_2)
    trimmed = [rule.strip(BLANKS) for rule in rules if isinstance(rule, str)]
    return list(dict.fromkeys([rule for rule in trimmed if rule]))


def _shell_rule(visible: Sequence[str]) -> str:
    """How to look at files with a shell; empty if a tool for that is there."""
    if any(name in visible for name in ("grep", "find", "ls")):
        return ""
    if "bash" in visible and "powershell" in visible:
        return texts.DEFAULT_BASH_AND_POWERSHELL_RULE
    if "powershell" in visible:
        return texts.DEFAULT_POWERSHELL_RULE
    return texts.DEFAULT_BASH_RULE if "bash" in visible else ""


def _project_context(files: Sequence[ContextFile]) -> str:
    shown = [f'<project_instructions path="{file.path}">\n{file.content}\n</project_instructions>' for file in files]
    return "\n\n".join([texts.DEFAULT_PROJECT_CONTEXT_INTRO, *shown]) if shown else ""


def _skills(options: PromptOptions) -> str:
    """The skills the model may load; none without a tool that can read them (RES-8)."""
    shown = [skill for skill in options.skills if not skill.disable_model_invocation]
    readers = [name for name in ("read", "bash") if name in options.selected_tools]
    if not shown or not readers:
        return ""
    reader = next((name for name in readers if name not in options.hidden_tools), None)
    intro = texts.DEFAULT_SKILLS_INTRO if reader is None else texts.default_skills_intro(reader)
    listed = "\n".join([_skill(skill) for skill in shown])
    return f"{intro}\n\n<available_skills>\n{listed}\n</available_skills>"


def _skill(skill: Skill) -> str:
    parts = {"name": skill.name, "description": skill.description, "location": skill.file_path}
    inner = "\n".join([f"    <{tag}>{_escaped(text)}</{tag}>" for tag, text in parts.items()])
    return f"  <skill>\n{inner}\n  </skill>"


def _escaped(text: str) -> str:
    return "".join([_XML.get(character, character) for character in text])
