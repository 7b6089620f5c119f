"""The surroundings of a run: new folders, a clock that follows Trio's, an empty environment, the options of the session."""

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import trio

from camshaft.actors.host import InlineExtension, NewSession, OpenOptions, OpenSession
from camshaft.actors.world import World, real_world
from camshaft.kernel.persistent import freeze
from camshaft.kernel.settings import read_settings
from tests.conformance.scenario import local_provider
from tests.conformance.scenario.extensions import setup_of, specs
from tests.conformance.scenario.provider import Replies, models_of
from tests.conformance.scenario.stage import Folders, Stage

STARTED_AT_MS: Final = 1_772_355_600_000
"""Wall clock at the start of a run; any time will do."""


@attrs.frozen
class FollowingClock:
    """A wall clock that moves with Trio's time, virtual or real."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch."""
        return STARTED_AT_MS + round(trio.current_time() * 1000)


@attrs.frozen
class UnthreadedFiles:
    """Log files without threads: a virtual clock does not wait for them."""

    _files: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    async def blocking(self, job: Callable[[], None]) -> None:
        """Runs the call here."""
        await trio.lowlevel.checkpoint()
        job()


@contextlib.contextmanager
def fresh_folders() -> Iterator[Folders]:
    """New empty folders, removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="scenario-", ignore_cleanup_errors=True) as name:
        root = Path(name).resolve()
        folders = Folders(root=root, cwd=root / "cwd", agent=root / "agent", sessions=root / "sessions", home=root / "home")
        for each in (folders.cwd, folders.agent, folders.sessions, folders.home):
            each.mkdir()
        yield folders


def scenario_world(folders: Folders) -> World:
    """The real world but for its clock and its environment."""
    world = real_world({"HOME": str(folders.home)})
    files: Any = UnthreadedFiles(world.log_files)
    return attrs.evolve(world, clock=FollowingClock(), log_files=files)


def options_of(stage: Stage) -> OpenOptions:
    """How the session of the scenario is opened."""
    scenario = stage.scenario
    settings, _warnings = read_settings(freeze(settings_of(scenario)), "scenario")
    optional: dict[str, Any] = {
        "tools": tuple(scenario["tools"]) if scenario.get("tools") is not None else None,
        "exclude_tools": tuple(scenario["excludeTools"]) if scenario.get("excludeTools") else None,
        "append_system_prompt": tuple(scenario["appendSystemPrompt"]) if scenario.get("appendSystemPrompt") else None,
    }
    return OpenOptions(
        cwd=str(stage.folders.cwd),
        agent_dir=str(stage.folders.agent),
        session=_session(stage),
        settings=settings,
        providers=(_provider(stage),),
        extensions=tuple([InlineExtension(name=spec["name"], setup=setup_of(stage, spec)) for spec in specs(scenario)]),
        system_prompt=scenario.get("systemPrompt", "SYS"),
        durability="none",
        mode="print",
        **{key: value for key, value in optional.items() if value is not None},
    )


def settings_of(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """The default settings of every scenario under those it lists (README.md section 1)."""
    provider = local_provider.NAME if scenario.get("provider") == "http" else "scripted"
    models = scenario.get("models") or [{"id": "m1"}]
    defaults = {
        "defaultProvider": provider,
        "defaultModel": models[0]["id"],
        "defaultThinkingLevel": "off",
        "defaultTools": [],
        "cacheWarming": "off",
        "retry": {"enabled": True, "maxRetries": 3, "baseDelayMs": 4},
        "compaction": {"enabled": False, "reserveTokens": 1000, "keepRecentTokens": 2},
        "branchSummary": {"reserveTokens": 1000},
    }
    return {**defaults, **(scenario.get("settings") or {})}


def _session(stage: Stage) -> NewSession | OpenSession:
    lines = stage.scenario.get("sessionFile")
    if lines is None:
        return NewSession(directory=str(stage.folders.sessions))
    path = stage.folders.sessions / "session.jsonl"
    path.write_bytes(_file_text(stage, lines).encode())
    return OpenSession(path=str(path))


def _file_text(stage: Stage, lines: list[Any]) -> str:
    texts = [line if isinstance(line, str) else json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in lines]
    text = "\n".join(texts).replace("<cwd>", str(stage.folders.cwd))
    return text if stage.scenario.get("sessionFileNoNewline") else text + "\n"


def _provider(stage: Stage) -> Any:
    local = stage.port is not None
    provider: Any = local_provider.provider_of(stage) if local else Replies(stage=stage, models=models_of(stage.scenario))
    stage.models = {model.reference: model for model in provider.models}
    return provider
