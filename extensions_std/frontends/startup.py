"""From checked arguments to a job: settings, session, resources, models, prompts, in the order of CLI-12."""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from camshaft.actors.api import Provider, World
from camshaft.actors.host import ExtensionSource, InvalidSetting, OpenOptions
from camshaft.extensions_std.frontends import model_choice, resources, sessions
from camshaft.extensions_std.frontends.arguments import Arguments
from camshaft.extensions_std.frontends.conversation import Job
from camshaft.extensions_std.frontends.file_arguments import FileArgumentError, prompts_of
from camshaft.extensions_std.frontends.settings_files import FoundSettings, read_files
from camshaft.extensions_std.frontends.streams import say
from camshaft.extensions_std.providers.models_json import ENVIRONMENT_KEYS, ProviderSettings, load_providers
from camshaft.extensions_std.tools import ShellOptions, builtin_tools

AGENT_DIR_VARIABLE: Final = "CAMSHAFT_DIR"

UNCONFIGURED: Final = """\
No model is configured. Either set the key of a known provider, for example

    export OPENAI_API_KEY=...

(also {variables}; a provider other than openai needs its base url in models.json), or describe a server that \
speaks chat completions in {path}:

    {{
      "providers": {{
        "local": {{
          "baseUrl": "http://127.0.0.1:8080/v1",
          "api": "openai-completions",
          "models": [{{ "id": "my-model", "contextWindow": 32768 }}]
        }}
      }}
    }}

camshaft --demo works without any of this."""

NOT_INTERACTIVE: Final = (
    'There is no interactive mode; give a prompt, for example: camshaft "What does this project do?" (--help tells more)'
)


class StartupFailed(Exception):
    """The job cannot be put together; `faults` has one text each."""

    def __init__(self, *faults: str) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


def job_of(arguments: Arguments, world: World, *, is_terminal: bool) -> Job:
    """The job; warnings are told on the way. Raises StartupFailed.

    `is_terminal`: whether standard input and output are terminals. Piped input is read to its end.
    """
    environment = world.environment
    agent_dir = agent_dir_of(environment)
    try:
        cwd = os.getcwd()
        chosen, found = _session(arguments, environment, agent_dir, cwd)
        piped = "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.buffer.read().decode("utf-8", "replace")
        prompts = prompts_of(piped, arguments.files, arguments.messages, cwd)
    except (sessions.SessionNotFound, InvalidSetting, FileArgumentError) as error:
        raise StartupFailed(str(error)) from None
    except FileNotFoundError:
        raise StartupFailed("The working directory does not exist any more; change to one that does") from None
    if is_terminal and not prompts and not arguments.print_ and arguments.mode != "json":
        raise StartupFailed(NOT_INTERACTIVE)
    for warning in (*chosen.warnings, *found.warnings):
        say(f"Warning: {warning}")
    options = _options(arguments, chosen, found, world)
    return Job(
        options=options,
        prompts=prompts,
        mode=arguments.mode or "text",
        is_live=arguments.verbose or (arguments.mode != "json" and sys.stderr.isatty()),
        name=arguments.name,
        unconfigured=_unconfigured(agent_dir),
        continue_with=_continue_with(arguments),
    )


def _continue_with(arguments: Arguments) -> str:
    """The command that goes on with the session of these arguments."""
    where = ("--session-dir", arguments.session_dir) if arguments.session_dir else ()
    which = ("--session", arguments.session) if arguments.session else ("--session-id", arguments.session_id)
    return shlex.join(["camshaft", *where, *(which if which[1] else ("-c",))])


def agent_dir_of(environment: Mapping[str, str]) -> str:
    """The folder of the user's files."""
    home = environment.get("HOME") or os.path.expanduser("~")
    given = environment.get(AGENT_DIR_VARIABLE)
    if given:
        return os.path.abspath(os.path.join(home, given[2:]) if given.startswith("~/") else given)
    return os.path.join(home, ".camshaft")


def _session(arguments: Arguments, environment: Mapping[str, str], agent_dir: str, cwd: str) -> tuple[sessions.Chosen, FoundSettings]:
    """The session, and the settings of the directory it runs in, which may be another one (CLI-9)."""
    found = read_files(agent_dir, cwd)
    where = sessions.places(arguments, environment, found.session_dir, agent_dir, cwd)
    chosen = sessions.choose(arguments, where)
    return chosen, found if chosen.cwd == cwd else read_files(agent_dir, chosen.cwd)


def _options(arguments: Arguments, chosen: sessions.Chosen, found: FoundSettings, world: World) -> OpenOptions:
    agent_dir = agent_dir_of(world.environment)
    limits = ProviderSettings(limits=found.limits)
    providers: tuple[Provider, ...] = load_providers(agent_dir, world.environment, world, limits, _warn)
    providers, model = _model(arguments, providers)
    settings = found.settings
    shell = ShellOptions(shell_path=settings.shell_path, command_prefix=settings.shell_command_prefix)
    return OpenOptions(
        cwd=chosen.cwd,
        agent_dir=agent_dir,
        session=chosen.target,
        settings=settings,
        providers=providers,
        extensions=tuple([ExtensionSource(path=os.path.abspath(os.path.expanduser(path))) for path in arguments.extension]),
        builtin_tools=builtin_tools(shell),
        tools=arguments.tools,
        exclude_tools=arguments.exclude_tools,
        no_tools="all" if arguments.no_tools else "builtin" if arguments.no_builtin_tools else None,
        system_prompt=resources.system_prompt(arguments.system_prompt, agent_dir, _warn),
        append_system_prompt=resources.appended_prompts(arguments.append_system_prompt, agent_dir, _warn),
        context_files=() if arguments.no_context_files else resources.context_files(agent_dir, chosen.cwd, _warn),
        model=None if model is None else model.model.reference,
        thinking_level=arguments.thinking or (None if model is None else model.level),
        override_cwd=chosen.override_cwd,
        mode="json" if arguments.mode == "json" else "print",
    )


def _model(arguments: Arguments, providers: Sequence[Provider]) -> tuple[tuple[Provider, ...], model_choice.ModelChoice | None]:
    """The model that was asked for, and the providers with it in their lists."""
    if arguments.model is None:
        return tuple(providers), None
    try:
        choice = model_choice.choose(providers, arguments.model, arguments.provider, with_level=arguments.thinking is None)
    except model_choice.ModelNotFound as error:
        raise StartupFailed(str(error)) from None
    if choice.warning is not None:
        _warn(choice.warning)
    if not choice.is_custom:
        return tuple(providers), choice
    return tuple([_with(each, choice) if each.name == choice.model.provider else each for each in providers]), choice


def _with(provider: Any, choice: model_choice.ModelChoice) -> Provider:
    """The provider with one more model."""
    changed: Provider = attrs.evolve(provider, models=(*provider.models, choice.model))
    return changed


def _unconfigured(agent_dir: str) -> str:
    variables = ", ".join([names[0] for name, names in ENVIRONMENT_KEYS.items() if name != "openai"][:4]) + ", …"
    return UNCONFIGURED.format(variables=variables, path=os.path.join(agent_dir, "models.json"))


def _warn(text: str) -> None:
    say(f"Warning: {text}")
