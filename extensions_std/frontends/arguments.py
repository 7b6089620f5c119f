"""What the arguments of the command line ask for, or everything that is wrong with them."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import attrs

from camshaft.actors.api import EMPTY, THINKING_LEVELS
from camshaft.extensions_std.frontends.options import FILE, FLAG, MESSAGE, MODES, RESERVED, UNKNOWN, split

Mode = Literal["text", "json", "rpc"]

DEMO_TAKES: Final = {"demo", "demo_project", "session_dir", "no_session", "no_extensions", "mode", "print_", "verbose", "offline"}
"""What may stand beside --demo: the scripted model, its project and its prompt are the demo."""

NOT_WITH_ACP: Final = {
    *("mode", "print_", "verbose", "list_models", "continue_", "session", "session_id", "fork", "name", "demo", "demo_project"),
    *("messages", "files"),
}
"""What cannot stand beside `acp`: prompts and sessions are the client's."""


class BadArguments(Exception):
    """The arguments cannot be followed; `faults` has one text each (CLI-4)."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


@attrs.frozen(kw_only=True)
class Arguments:
    """The arguments, checked by themselves; whether a file, model or session exists is not known here."""

    mode: Mode | None = None
    print_: bool = False
    verbose: bool = False
    provider: str | None = None
    model: str | None = None
    models: tuple[str, ...] | None = None
    """Patterns of the models to start with and to cycle through (MOD-96)."""
    api_key: str | None = attrs.field(default=None, repr=False)
    """Of the provider of the model; never stored (MOD-72)."""
    list_models: str | None = None
    """What to look for; empty: all."""
    faux_script: str | None = None
    """File of a scripted provider (FAUX-27)."""
    thinking: str | None = None
    """One of THINKING_LEVELS."""
    continue_: bool = False
    session: str | None = None
    session_id: str | None = None
    fork: str | None = None
    session_dir: str | None = None
    no_session: bool = False
    name: str | None = None
    tools: tuple[str, ...] | None = None
    exclude_tools: tuple[str, ...] = ()
    no_builtin_tools: bool = False
    no_tools: bool = False
    extension: tuple[str, ...] = ()
    no_extensions: bool = False
    skill: tuple[str, ...] = ()
    no_skills: bool = False
    prompt_template: tuple[str, ...] = ()
    no_prompt_templates: bool = False
    flags: Mapping[str, bool | str] = attrs.field(factory=dict)
    """Values of flags of extensions; of those that are not known yet, what stands behind `=`, or true."""
    approve: bool | None = None
    """Whether the project is trusted; None: nothing was said."""
    system_prompt: str | None = None
    append_system_prompt: tuple[str, ...] = ()
    no_context_files: bool = False
    offline: bool = False
    acp: bool = False
    """Whether an editor is the client."""
    demo: bool = False
    demo_project: str | None = None
    files: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """What was ignored, and why."""


def parse(words: list[str], flags: Mapping[str, str] | None = EMPTY) -> Arguments:
    """The arguments. Raises BadArguments with every fault.

    `flags`: the flags of extensions, each `boolean` or `string` (API-8). None: they are not known yet; then every
    long option that is not in the table may be one, and what follows it is still a prompt.
    """
    words, is_acp, faults = _without_subcommand(words)
    given: dict[str, Any] = {"acp": True} if is_acp else {}
    unknown: list[str] = []
    warnings: list[str] = []
    for name, value in split(words, None if flags is None else dict(flags)):
        if name == UNKNOWN:
            unknown.append(value)
        elif name == FLAG:
            given["flags"], fault = _with_flag(given.get("flags", {}), value, flags)
            faults += fault
        elif name in _GATHERED:
            field, read = _GATHERED[name]
            given[field] = (*given.get(field, ()), *read(value))
        elif name in _VALUES:
            given[_VALUES[name]] = value
        elif name in ("--approve", "--no-approve"):
            given["approve"] = name == "--approve"
        elif name in ("--tools", "--models"):
            given[name[2:]] = _names(value)
        else:
            given[_FLAGS[name]] = True
    if given.get("thinking") not in (None, *THINKING_LEVELS):
        warnings.append(f'Invalid thinking level "{given.pop("thinking")}". Valid values: {", ".join(THINKING_LEVELS)}')
    faults += _faults(given, unknown)
    if faults:
        raise BadArguments(tuple(faults))
    if given.get("mode") == "text":
        given["print_"] = True
    return Arguments(**given, warnings=tuple(warnings))


def _with_flag(
    before: Mapping[str, bool | str], written: str, flags: Mapping[str, str] | None
) -> tuple[Mapping[str, bool | str], list[str]]:
    """The values with one more, of which the last counts, and what is wrong with it (API-8)."""
    name, has_value, text = written.partition("=")
    if flags is None:
        return {**before, name: text if has_value else True}, []
    if flags[name] == "string":
        return ({**before, name: text}, []) if has_value else (before, [f'Extension flag "--{name}" requires a value'])
    if has_value and text not in ("true", "false"):
        return before, [f'Extension flag "--{name}" is true or false, not {text!r}']
    return {**before, name: text != "false"}, []


def _names(value: str) -> tuple[str, ...]:
    return tuple([each.strip() for each in value.split(",") if each.strip()])


def _itself(value: str) -> tuple[str, ...]:
    return (value,)


_FLAGS: Final[Mapping[str, str]] = {
    "--print": "print_",
    "--verbose": "verbose",
    "--continue": "continue_",
    "--no-session": "no_session",
    "--no-builtin-tools": "no_builtin_tools",
    "--no-tools": "no_tools",
    "--no-extensions": "no_extensions",
    "--no-context-files": "no_context_files",
    "--no-skills": "no_skills",
    "--no-prompt-templates": "no_prompt_templates",
    "--offline": "offline",
    "--demo": "demo",
}
_VALUES: Final[Mapping[str, str]] = {
    "--mode": "mode",
    "--provider": "provider",
    "--model": "model",
    "--api-key": "api_key",
    "--list-models": "list_models",
    "--faux-script": "faux_script",
    "--thinking": "thinking",
    "--session": "session",
    "--session-id": "session_id",
    "--fork": "fork",
    "--session-dir": "session_dir",
    "--name": "name",
    "--system-prompt": "system_prompt",
    "--demo-project": "demo_project",
}
_GATHERED: Final[Mapping[str, tuple[str, Callable[[str], tuple[str, ...]]]]] = {
    MESSAGE: ("messages", _itself),
    FILE: ("files", _itself),
    "--extension": ("extension", _itself),
    "--skill": ("skill", _itself),
    "--prompt-template": ("prompt_template", _itself),
    "--append-system-prompt": ("append_system_prompt", _itself),
    "--exclude-tools": ("exclude_tools", _names),
}


def _without_subcommand(words: list[str]) -> tuple[list[str], bool, list[str]]:
    """The words as options, whether they call `acp`, and a fault if they call a subcommand there is none of (CLI-21).

    `demo` is `--demo`. Another reserved word calls its subcommand when it stands alone or before an option;
    before words it begins a prompt, and so does `run` without options of its own. `acp` is one of ours and takes options only.
    """
    first, rest = (words[0], words[1:]) if words else ("", [])
    if first not in RESERVED or first == "run":
        return words, False, []
    if first in ("demo", "acp"):
        if any([name in (MESSAGE, FILE) for name, _value in split(rest)]):
            return words, False, []
        return (["--demo", *rest] if first == "demo" else rest), first == "acp", []
    if rest and not rest[0].startswith("-"):
        return words, False, []
    fault = f'Subcommand "{first}" is not available in this version; a prompt that begins with this word is written after --'
    return words, False, [fault]


def _faults(given: Mapping[str, Any], unknown: list[str]) -> list[str]:
    faults = []
    if unknown:
        faults.append(f"Unknown option{'s' if len(unknown) > 1 else ''}: {', '.join(unknown)}")
    faults += _faults_of_mode(given.get("mode"))
    if given.get("mode") == "rpc" and given.get("files"):
        faults.append("@file arguments are not supported in RPC mode")
    faults += _faults_of_session(given)
    faults += _faults_of_tools(given.get("tools") or ())
    if given.get("provider") is not None and given.get("model") is None:
        name = given["provider"]
        faults.append(f"--provider requires --model (for example: --provider {name} --model <pattern>)")
    if given.get("api_key") is not None and not (given["api_key"].strip() and (given.get("model") or given.get("models"))):
        needs = "a model to be specified via --model, --provider/--model, or --models" if given["api_key"].strip() else "a key"
        faults.append(f"--api-key requires {needs}")
    if given.get("acp"):
        faults += [f"acp cannot be combined with {_written(field)}" for field in given if field in NOT_WITH_ACP]
    if given.get("demo") and given.get("mode") == "rpc":
        faults.append("--demo cannot be combined with --mode rpc")
    if given.get("demo") or given.get("demo_project") is not None:
        faults += [f"--demo cannot be combined with {_written(field)}" for field in given if field not in DEMO_TAKES]
    if given.get("demo_project") is not None and not given.get("demo"):
        faults.append("--demo-project requires --demo")
    return faults


def _faults_of_mode(mode: str | None) -> list[str]:
    if mode is None or mode in MODES:
        return []
    if mode == "":
        return ["--mode requires text, json, or rpc"]
    return [f'Invalid mode "{mode}". Valid values: text, json, rpc']


def _faults_of_session(given: Mapping[str, Any]) -> list[str]:
    faults = []
    ways = [field for field in ("session", "continue_", "session_id", "no_session") if field in given]
    if "fork" in given:
        faults += [f"--fork cannot be combined with {_written(other)}" for other in ways if other != "session_id"]
    elif len(ways) > 1:
        first = "session_id" if "session_id" in ways else ways[0]
        faults += [f"{_written(first)} cannot be combined with {_written(other)}" for other in ways if other != first]
    id = given.get("session_id")
    if id is not None and not re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", id):
        faults.append(
            "Session id must be non-empty, contain only alphanumeric characters, '-', '_', and '.', "
            "and start and end with an alphanumeric character"
        )
    if given.get("name") is not None and not given["name"].strip():
        faults.append("--name requires a non-empty value")
    return faults


def _faults_of_tools(tools: tuple[str, ...]) -> list[str]:
    """CLI-18."""
    modifiers = [name for name in tools if name[0] in "+-"]
    if modifiers and len(modifiers) != len(tools):
        return ["--tools: tool names cannot be mixed with +name or -name entries"]
    patterns = [name for name in modifiers if "*" in name]
    return [f"--tools: +name and -name entries take exact tool names, not patterns: {', '.join(patterns)}"] if patterns else []


def _written(field: str) -> str:
    return {"messages": "a prompt", "files": "a file"}.get(field, "--" + field.strip("_").replace("_", "-"))
