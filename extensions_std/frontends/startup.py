"""From checked arguments to a job: settings, session, resources, models, prompts, in the order of CLI-12."""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import attrs
import trio

from camshaft.actors.api import Json, Provider, World
from camshaft.actors.host import (
    BuildProvider,
    CamshaftError,
    DefaultTrust,
    FoundContext,
    GivenTexts,
    InvalidSetting,
    InvalidTrustStore,
    Invocation,
    Kernel,
    OpenOptions,
    Place,
    Preloaded,
    ResourcePlaces,
    SettingsFiles,
    Source,
    TrustResolver,
    context_files,
    discover,
    discover_extensions,
    participants,
    session_places,
    settings_files,
    system_texts,
    trust_store,
)
from camshaft.extensions_std.frontends import sessions
from camshaft.extensions_std.frontends.arguments import Arguments, BadArguments, parse
from camshaft.extensions_std.frontends.conversation import Job, StartupFailed
from camshaft.extensions_std.frontends.faux_script import scripted_of, with_default, with_script
from camshaft.extensions_std.frontends.file_arguments import FileArgumentError, Prompt, prompts_of
from camshaft.extensions_std.frontends.kept_settings import kept
from camshaft.extensions_std.frontends.model_choice import Chosen, ModelNotFound, choose_model
from camshaft.extensions_std.frontends.model_servers import look_at_servers
from camshaft.extensions_std.frontends.reports import report_loading
from camshaft.extensions_std.frontends.request_limits import limits_of
from camshaft.extensions_std.frontends.startup_texts import NOT_INTERACTIVE, UNCONFIGURED
from camshaft.extensions_std.frontends.streams import say
from camshaft.extensions_std.providers.builtin_models import BUILTIN
from camshaft.extensions_std.providers.models_json import LoadedProviders, ProviderSettings, load_all
from camshaft.extensions_std.providers.provider_keys import ENVIRONMENT_KEYS, ProcessKeys
from camshaft.extensions_std.providers.registered import provider_builder
from camshaft.extensions_std.providers.scripted import ScriptedProvider
from camshaft.extensions_std.tools import ShellOptions, builtin_tools

AGENT_DIR_VARIABLE: Final = "CAMSHAFT_DIR"


@attrs.frozen(kw_only=True)
class Startup:
    """A command before extensions were loaded for it."""

    words: list[str] = attrs.field(repr=False)
    start: "Start"
    """Its arguments were read without knowledge of flags of extensions: `messages` may hold their values."""
    piped: str
    is_terminal: bool

    async def job(self, kernel: Kernel) -> Job:
        """The job; extensions are loaded, and warnings told, on the way.

        Raises StartupFailed, and InvalidTrustStore for a damaged store of decisions (TRUST-6).
        """
        loaded = kernel.preload(self.start.chosen.cwd, mode=_mode(self.start.arguments), say=_warn)
        trust = resolver_of(self.start)
        sources = await loaded_extensions(self.start, trust, loaded)
        if report_loading(loaded.load_errors, loaded.load_warnings):
            raise StartupFailed
        start, prompts = self._prompts({name: flag.type for name, flag in loaded.flags.items()})
        start = attrs.evolve(start, registers_providers=loaded.registers_providers)
        try:
            options = options_of(start, await ready_providers(start))
            options = attrs.evolve(options, session=await sessions.made(start.chosen, start.world))
        except (InvalidSetting, CamshaftError) as error:
            raise StartupFailed(str(error)) from None
        services = FollowedFiles(kernel=kernel, start=start, trust=trust)
        job = _job(start, attrs.evolve(options, extensions=sources, preloaded=loaded, services=services), prompts)
        return attrs.evolve(job, keep=services.keep)

    def _prompts(self, flags: Mapping[str, str]) -> tuple["Start", tuple[Prompt, ...]]:
        """The arguments, read with the flags of extensions, and the prompts in them."""
        try:
            arguments = parse(self.words, flags)
            if arguments.mode == "rpc" or arguments.acp:  # prompts come from the client, those of the command line are ignored (CLI-11)
                return attrs.evolve(self.start, arguments=arguments), ()
            prompts = prompts_of(self.piped, arguments.files, arguments.messages, self.start.here)
        except BadArguments as error:
            raise StartupFailed(*error.faults) from None
        except FileArgumentError as error:
            raise StartupFailed(str(error)) from None
        _require_prompts(arguments, bool(prompts), self.is_terminal)
        return attrs.evolve(self.start, arguments=arguments), prompts


def startup_of(words: list[str], arguments: Arguments, world: World, *, is_terminal: bool) -> Startup:
    """What there is to start from. Raises StartupFailed.

    `is_terminal`: whether standard input and output are terminals. Piped input is read to its end.
    """
    try:
        start = start_of(arguments, world, os.getcwd())
        is_unread = arguments.mode == "rpc" or sys.stdin is None or sys.stdin.isatty()
        piped = "" if is_unread else sys.stdin.buffer.read().decode("utf-8", "replace")
    except (sessions.SessionNotFound, InvalidSetting, InvalidTrustStore) as error:
        raise StartupFailed(str(error)) from None
    except FileNotFoundError:
        raise StartupFailed("The working directory does not exist any more; change to one that does") from None
    _require_prompts(arguments, bool(piped.strip() or arguments.files or arguments.messages), is_terminal)
    return Startup(words=words, start=start, piped=piped, is_terminal=is_terminal)


def _require_prompts(arguments: Arguments, has_some: bool, is_terminal: bool) -> None:
    if is_terminal and not has_some and not arguments.print_ and arguments.mode not in ("json", "rpc"):
        raise StartupFailed(NOT_INTERACTIVE)


def _job(start: "Start", options: OpenOptions, prompts: tuple[Prompt, ...]) -> Job:
    arguments = start.arguments
    return Job(
        options=options,
        prompts=prompts,
        mode=arguments.mode or "text",
        is_live=arguments.mode != "rpc" and (arguments.verbose or (arguments.mode != "json" and sys.stderr.isatty())),
        name=arguments.name,
        unconfigured=unconfigured(agent_dir_of(start.world.environment)),
        continue_with=_continue_with(arguments),
    )


@attrs.define(eq=False, kw_only=True)
class FollowedFiles:
    """Gives the options again when extensions are reloaded or a session of another folder begins (EXT-42, EXT-49)."""

    kernel: Kernel
    start: "Start"
    trust: TrustResolver
    """Keeps its decisions: nobody is asked twice about a folder (EXT-65)."""

    def check(self, cwd: str) -> None:
        """Raises InvalidSetting for settings of that folder with which nothing can run, as if it were not trusted (EXT-44)."""
        limits_of(settings_files(agent_dir_of(self.start.world.environment), cwd, trusted=False).effective)

    async def renewed(self, options: OpenOptions, reason: str) -> OpenOptions:
        """The options with what the files of `options.cwd` say now; a broken settings file keeps its values on a reload (SET-5).

        Raises InvalidSetting, InvalidTrustStore, StartupFailed.
        """
        cwd, before = options.cwd, self.start
        if reason == "reload":
            before.found.reload()
            found = before.found
        else:
            found = settings_files(agent_dir_of(before.world.environment), cwd, trusted=False)
        start = attrs.evolve(before, chosen=attrs.evolve(before.chosen, cwd=cwd, warnings=()), found=found)
        loaded = None
        if self.trust.known(cwd) is None:
            loaded = self.kernel.preload(cwd, mode=options.mode, ui=options.ui, say=_warn)
            sources = await loaded_extensions(start, self.trust, loaded)
        else:
            found.set_trusted((await self.trust.resolve(cwd)).trusted)
            sources = discover_extensions(_invocation(start), _place(found, cwd))
        self.start = start
        return attrs.evolve(
            options_of(start, await ready_providers(start)),
            session=options.session,
            override_cwd=options.override_cwd,
            listeners=options.listeners,
            followers=options.followers,
            ui=options.ui,
            on_shutdown=options.on_shutdown,
            extensions=sources,
            preloaded=loaded,
            services=self,
        )

    async def keep(self, path: Sequence[str], value: Json) -> None:
        """Writes a value to the user's settings."""
        await kept(self.start.found, path, value)


async def loaded_extensions(start: "Start", trust: TrustResolver, loaded: Preloaded) -> tuple[Source, ...]:
    """Loads the extensions of a start, and gives their list; where it matters, they are asked about trust before (TRUST-8).

    Raises InvalidTrustStore.
    """
    found, looking = start.found, _invocation(start)
    if trust.known(loaded.cwd) is None:
        found.set_trusted(False)
        trust.ask_handlers = loaded.ask_trust
        await loaded.load(participants(discover_extensions(looking, _place(found, loaded.cwd))))
    found.set_trusted((await trust.resolve(loaded.cwd)).trusted)
    while trust.warnings:
        _warn(trust.warnings.pop(0))
    sources = discover_extensions(looking, _place(found, loaded.cwd))
    await loaded.load(sources)
    return sources


def _invocation(start: "Start") -> Invocation:
    arguments = start.arguments
    return Invocation(
        agent_dir=agent_dir_of(start.world.environment),
        started_in=start.here,
        explicit=arguments.extension,
        only_explicit=arguments.no_extensions,
    )


def resolver_of(start: "Start") -> TrustResolver:
    """Who decides about trust for the rest of the process."""
    return _resolver(start.arguments, start.world.environment, start.found.settings.default_project_trust)


def _place(found: SettingsFiles, cwd: str) -> Place:
    """What the settings say about extensions in a folder."""
    return Place(cwd=cwd, is_trusted=found.is_trusted, project=found.project_lists.extensions, user=found.user_lists.extensions)


def _resolver(arguments: Arguments, environment: Mapping[str, str], default: DefaultTrust) -> TrustResolver:
    store = trust_store(agent_dir_of(environment))
    return TrustResolver(store=store, home=_home(environment), override=arguments.approve, default=default)


def _continue_with(arguments: Arguments) -> str:
    """The command that goes on with the session of these arguments."""
    where = ("--session-dir", arguments.session_dir) if arguments.session_dir else ()
    which = ("--session", arguments.session) if arguments.session else ("--session-id", arguments.session_id)
    return shlex.join(["camshaft", *where, *(which if which[1] else ("-c",))])


def agent_dir_of(environment: Mapping[str, str]) -> str:
    """The folder of the user's files."""
    home = _home(environment)
    given = environment.get(AGENT_DIR_VARIABLE)
    if given:
        return os.path.abspath(os.path.join(home, given[2:]) if given.startswith("~/") else given)
    return os.path.join(home, ".camshaft")


@attrs.frozen(kw_only=True)
class Start:
    """What is known before anything of a project but its session folder was used, and whether the rest may be."""

    arguments: Arguments
    world: World
    here: str
    """Where the command was given: relative paths of arguments start there."""
    chosen: sessions.Chosen
    """The session; it may run in another directory (CLI-9)."""
    found: SettingsFiles
    """The settings of that directory; `is_trusted` is decided as far as that goes without asking anybody."""
    keys: ProcessKeys = attrs.field(factory=ProcessKeys)
    """A reload keeps them."""
    scripted: ScriptedProvider | None = None
    """Of `--faux-script`; a reload keeps it, because it must not begin the script anew."""
    registers_providers: bool = False
    """Whether extensions do: then a model that is not known yet may be one of theirs, and is looked for when they serve it (SDK-6)."""


def start_of(arguments: Arguments, world: World, cwd: str) -> Start:
    """The session, then trust in the directory it runs in (CLI-12).

    Where sessions are is read of a project before anybody decided whether it is trusted (SET-3).
    Raises SessionNotFound, InvalidSetting, InvalidTrustStore, StartupFailed.
    """
    environment, agent_dir = world.environment, agent_dir_of(world.environment)
    found = settings_files(agent_dir, cwd, trusted=False)
    where = session_places(arguments.session_dir, environment, found.session_dir, agent_dir, cwd)
    chosen = trio.run(sessions.choose, arguments, where, world)
    return started(arguments, world, cwd, chosen, scripted_of(arguments, environment, cwd))


def started(arguments: Arguments, world: World, here: str, chosen: sessions.Chosen, scripted: ScriptedProvider | None) -> Start:
    """What is known when the session is chosen. Raises InvalidSetting, InvalidTrustStore."""
    environment = world.environment
    found = settings_files(agent_dir_of(environment), chosen.cwd, trusted=False)
    trust = _resolver(arguments, environment, found.settings.default_project_trust)
    found.set_trusted(trust.resolve_unasked(chosen.cwd).trusted)
    limits_of(found.effective)
    return Start(arguments=arguments, world=world, here=here, chosen=chosen, found=found, scripted=scripted)


def _home(environment: Mapping[str, str]) -> str:
    return environment.get("HOME") or os.path.expanduser("~")


def options_of(start: Start, served: tuple[LoadedProviders, BuildProvider] | None = None) -> OpenOptions:
    """What the conversation is opened with; warnings are told on the way. `served`: of `ready_providers`. Raises StartupFailed."""
    arguments, chosen, found, world = start.arguments, start.chosen, start.found, start.world
    for warning in (*chosen.warnings, *found.warnings):
        _warn(warning)
    agent_dir = agent_dir_of(world.environment)
    loaded, build = served or loaded_providers(start)
    chosen_model = with_default(_chosen(start, with_script(loaded.providers, start.scripted)), arguments, start.scripted)
    settings = found.settings
    shell = ShellOptions(shell_path=settings.shell_path, command_prefix=settings.shell_command_prefix)
    resources = discover(_places(start))
    given = GivenTexts(system_prompt=arguments.system_prompt, appended=arguments.append_system_prompt)
    texts = system_texts(agent_dir, chosen.cwd, is_trusted=found.is_trusted, given=given)
    context = FoundContext() if arguments.no_context_files else context_files(agent_dir, chosen.cwd)
    for diagnostic in (*resources.diagnostics, *texts.diagnostics, *context.diagnostics):
        _warn(diagnostic.message)
    return OpenOptions(
        cwd=chosen.cwd,
        agent_dir=agent_dir,
        session=chosen.target,
        settings=settings,
        providers=chosen_model.providers,
        flags=arguments.flags,
        provider_faults=loaded.faults,
        build_provider=build,
        model_lists=loaded.lists,
        model_overlay=loaded.overlay,
        builtin_tools=builtin_tools(shell),
        tools=arguments.tools,
        exclude_tools=arguments.exclude_tools,
        no_tools="all" if arguments.no_tools else "builtin" if arguments.no_builtin_tools else None,
        system_prompt=texts.system_prompt,
        append_system_prompt=texts.appended,
        context_files=context.files,
        skills=resources.skills,
        templates=resources.templates,
        project_trusted=found.is_trusted,
        model=chosen_model.reference,
        model_patterns=arguments.models,
        thinking_level=arguments.thinking or chosen_model.level,
        override_cwd=chosen.override_cwd,
        mode=_mode(arguments),
    )


def _mode(arguments: Arguments) -> str:
    return "acp" if arguments.acp else arguments.mode if arguments.mode in ("json", "rpc") else "print"


def _places(start: Start) -> ResourcePlaces:
    """Where skills and templates are."""
    arguments, found, environment = start.arguments, start.found, start.world.environment
    return ResourcePlaces(
        agent_dir=agent_dir_of(environment),
        cwd=start.chosen.cwd,
        home=_home(environment),
        is_trusted=found.is_trusted,
        user=found.user_lists,
        project=found.project_lists,
        skill_paths=tuple([_path_of(path, start.here) for path in arguments.skill]),
        template_paths=tuple([_path_of(path, start.here) for path in arguments.prompt_template]),
        is_without_skills=arguments.no_skills,
        is_without_templates=arguments.no_prompt_templates,
    )


def _path_of(written: str, here: str) -> str:
    return written if written.startswith("~") else os.path.join(here, written)


def loaded_providers(start: Start) -> tuple[LoadedProviders, BuildProvider]:
    """What the files and the environment give, and what makes adapters for providers of extensions; faults of the files are told."""
    world = start.world
    settings = ProviderSettings(limits=limits_of(start.found.effective), keys=start.keys)
    loaded = load_all(agent_dir_of(world.environment), world.environment, world, settings, _warn)
    return loaded, provider_builder(world, settings, loaded)


async def ready_providers(start: Start) -> tuple[LoadedProviders, BuildProvider]:
    """The same, after servers that list their models were asked for them."""
    served = loaded_providers(start)
    default, is_offline = start.found.settings.default_provider, start.world.is_offline
    await look_at_servers(served[0], start.arguments, default, is_offline=is_offline, warn=_warn)
    return served


def _chosen(start: Start, providers: tuple[Provider, ...]) -> Chosen:
    """Raises StartupFailed."""
    try:
        return choose_model(start.arguments, providers, start.keys.given, is_final=not start.registers_providers, warn=_warn)
    except ModelNotFound as error:
        raise StartupFailed(str(error)) from None


def unconfigured(agent_dir: str) -> str:
    """What to do about having no model at all."""
    variables = ", ".join([ENVIRONMENT_KEYS[name][-1] for name in BUILTIN if name != "anthropic"])
    return UNCONFIGURED.format(variables=variables, path=os.path.join(agent_dir, "models.json"))


def _warn(text: str) -> None:
    say(f"Warning: {text}")
