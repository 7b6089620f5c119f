"""What each transcript was recorded with, and where a rule has it other than the reference."""

import json
from pathlib import Path
from typing import Any, Final

import attrs

from tests.extensions_std.frontends.command import Place
from tests.extensions_std.frontends.rpc.replay import Exempt

UI_EXTENSION: Final = Path(__file__).with_name("ui_extension.py")


@attrs.frozen(kw_only=True)
class Scene:
    """The surroundings of one transcript."""

    arguments: tuple[str, ...] = ()
    settings: dict[str, Any] = attrs.field(factory=dict)
    files: dict[str, str] = attrs.field(factory=dict)
    """Beneath the home or the project, as their names begin."""
    exempt: tuple[Exempt, ...] = ()

    def prepared(self, where: Place) -> dict[str, str]:
        """Writes the files; the folders of the transcript and ours."""
        if self.settings:
            where.write(".camshaft/settings.json", json.dumps(self.settings))
        for name, text in self.files.items():
            path = (where.home / name.removeprefix("home/")) if name.startswith("home/") else where.project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return {
            "/home/dev/ext/ui.js": str(UI_EXTENSION),
            "/home/dev/proj/.pi": f"{where.project}/.camshaft",
            "/home/dev/proj": str(where.project),
            "/home/user/.pi/agent": str(where.agent_dir),
            "valid pi session": "valid camshaft session",
        }

    def arguments_in(self, where: Place) -> list[str]:
        """The arguments."""
        return [each.format(ui=UI_EXTENSION, home=where.home, project=where.project) for each in self.arguments]


def line(rule: str, *numbers: int, instead: tuple[dict[str, Any], ...] = (), then: dict[str, Any] | None = None) -> tuple[Exempt, ...]:
    """Exemptions of single lines."""
    return tuple([Exempt(rule, range(number, number + 1), instead, then=then) for number in numbers])


GONE: Final = (
    '{"type":"session","version":3,"id":"00000000-0000-7000-8000-0000000000aa",'
    '"timestamp":"2026-01-01T00:00:00.000Z","cwd":"/home/dev/gone"}\n'
)
SKILL: Final = "---\nname: {}\ndescription: {}\n{}---\nP\n"

OPEN_BLOCK: Final = "RPC-84: the adapter for chat completions does not end an open block on an abort"
AT_ONCE: Final = "RPC-21: commands while the run goes on by itself, recorded in the order of one moment"
UNDISTURBED: Final = (
    *[{"type": type} for type in ("message_end", "turn_end", "turn_start", "queue_update", "message_start", "message_end")],
    *[{"type": type} for type in ("message_start", "message_end", "turn_end", "agent_end", "agent_settled")],
)
"""How that run goes on when nothing is sent."""
LEVEL: Final = {"type": "set_thinking_level", "level": "off"}


def command(name: str, description: str | None, path: str, scope: str, base: str = "/.pi") -> dict[str, Any]:
    """An item of `get_commands`, as the transcript has it."""
    folder = f"/home/dev/proj{base}" if scope == "project" else "/home/user/.pi/agent"
    kind = "extension" if description is None else "skill" if name.startswith("skill:") else "prompt"
    info = {"path": f"{folder}/{path}", "source": "auto", "scope": scope, "origin": "top-level", "baseDir": folder}
    return {"name": name, **({} if description is None else {"description": description}), "source": kind, "sourceInfo": info}


LONG: Final = "First line of the body that is quite long and goes on past s..."
COMMANDS: Final = [
    command("projcmd", None, "extensions/pe.py", "project"),
    command("proj", "project template $1", "prompts/proj.md", "project"),
    command("nodesc", LONG, "prompts/nodesc.md", "user"),
    command("review", "Review it", "prompts/review.md", "user"),
    command("skill:alpha", "Project alpha", "skills/alpha/SKILL.md", "project"),
    command("skill:agentsk", "In .agents", "skills/agentsk/SKILL.md", "project", "/.agents"),
    command("skill:Bad_Name", "bad name ok", "skills/Bad_Name/SKILL.md", "user"),
    command("skill:hidden", "Hidden", "skills/hidden/SKILL.md", "user"),
    command("skill:rootskill", "Root file", "skills/root.md", "user"),
]
"""Without those of the reference's built-in extensions, and of the home folder, which is another one there."""

SCENES: Final[dict[str, Scene]] = {
    "rpc-basic": Scene(
        exempt=(
            *line("RPC-37", 11, instead=({"id": "r5", "success": True, "data": {"text": None}},)),
            *line("RPC-34", 51, instead=({"id": "r17", "success": True},)),
            *line("RPC-23", 62, instead=({"id": "r22", "success": False},)),
            *line("RPC-45", 69, instead=({"id": "r25", "success": True, "data": {"commands": []}},)),
        )
    ),
    "rpc-framing": Scene(
        exempt=(
            *line("RPC-37", 6, instead=({"id": "crlf", "success": True, "data": {"text": None}},)),
            *line("RPC-10", 9, 12, 15, 81, instead=({"command": "parse", "success": False},)),
            *line("RPC-11", 18, 21, 24, 27, instead=({"command": "unknown", "success": False},)),
            *line("RPC-23", 91, 94, instead=({"command": "prompt", "success": False},)),
        )
    ),
    "rpc-framing-null": Scene(exempt=line("RPC-12", 5, instead=({"command": "unknown", "success": False},))),
    "rpc-no-session": Scene(
        arguments=("--no-session", "--name", "my name"),
        exempt=line("RPC-46", 5, 39, instead=({"command": "export_html", "success": False},)),
    ),
    "rpc-export-html": Scene(exempt=line("RPC-46", 5, 25, 27, 29, instead=({"command": "export_html", "success": False},))),
    "rpc-models": Scene(
        exempt=(
            *line("RPC-23", 9, instead=({"id": "r4", "success": False},)),
            *line("RPC-41", 23, instead=({"id": "r11", "success": False},), then={**LEVEL, "id": "r11"}),
            *line("RPC-23", 28, instead=({"id": "r13", "success": False},), then={**LEVEL, "id": "r13"}),
            *line("RPC-23", 73, 77, 81, instead=({"success": False},)),
            *line("RPC-23", 85, instead=({"data": {"steeringMode": "all", "followUpMode": "all", "autoCompactionEnabled": False}},)),
        )
    ),
    "rpc-streaming-queue": Scene(
        exempt=line(
            "RPC-61",
            19,
            instead=({"id": "r5", "success": False},),
            then={"id": "r5", "type": "prompt", "message": "bad behavior", "streamingBehavior": "steer"},
        )
    ),
    "rpc-bash": Scene(
        exempt=(
            *line("RPC-23", 15, instead=({"id": "r4", "success": False},), then={"id": "r4", "type": "bash", "command": "undefined"}),
            *line("RPC-23", 37, 39, 88, instead=({"success": True},)),
            *line("RES-21", 93, instead=({"data": {"output": "AI_AGENT=camshaft\n"}},)),
            *line("RES-21", 110, instead=({"type": "tool_execution_end"},)),
            *line("RES-21", 111, instead=({"type": "message_start"},)),
            *line("RES-21", 112, instead=({"type": "message_end"},)),
            *line("RES-21", 113, 121, instead=({"type": "turn_end"},)),
            *line("RES-21", 118, 119),
            *line("RES-21", 120, instead=({"type": "message_end"},)),
            *line("RES-21", 122, instead=({"type": "agent_end"},)),
        )
    ),
    "rpc-abort": Scene(
        exempt=(
            *line(OPEN_BLOCK, 20, 47),
            Exempt(AT_ONCE, range(71, 108), UNDISTURBED, is_sent=False),
            *line(AT_ONCE, 109, instead=({"id": "r18", "data": {"isStreaming": False, "pendingMessageCount": 0}},)),
            *line(AT_ONCE, 115, instead=({"id": "r20", "data": {"isStreaming": False, "pendingMessageCount": 1}},)),
            *line(AT_ONCE, 120, instead=({"id": "r22", "data": {"isStreaming": False, "pendingMessageCount": 2}},)),
            *line(AT_ONCE, 153, instead=({"id": "r24", "data": {"isStreaming": False, "pendingMessageCount": 0}},)),
            Exempt("RPC-63", range(172, 211), is_sent=False),  # test_prompting.py has two prompts at once
        )
    ),
    "rpc-retry": Scene(settings={"retry": {"baseDelayMs": 50}}),
    "rpc-retry-abort": Scene(settings={"retry": {"baseDelayMs": 5000}}),
    "rpc-compact": Scene(settings={"compaction": {"keepRecentTokens": 1}}, exempt=line(OPEN_BLOCK, 136)),
    "rpc-sessions": Scene(
        files={"garbage.jsonl": "garbage\n", "empty.jsonl": "", "gone.jsonl": GONE},
        exempt=(
            *line("RPC-23", 10, 123, instead=({"success": False},)),
            *line("RPC-53", 125, instead=({"success": False},)),
            *line(OPEN_BLOCK, 172),
        ),
    ),
    "rpc-extension-ui": Scene(
        arguments=("-e", "{ui}"),
        exempt=(
            *line("RPC-45", 4, instead=({"id": "r1", "success": True},)),
            *line("RPC-98", 41, instead=({"entry": {"data": {"value": "<undefined>"}}},)),
        ),
    ),
    "rpc-commands": Scene(
        arguments=("--approve",),
        files={
            ".camshaft/settings.json": '{"steeringMode": "all", "defaultTools": ["+grep"]}',
            ".camshaft/SYSTEM.md": "You are terse.",
            ".camshaft/APPEND_SYSTEM.md": "And polite.",
            "AGENTS.md": "Rules.",
            ".camshaft/extensions/pe.py": "def setup(api):\n    api.register_command('projcmd', lambda arguments, ctx: None)\n",
            ".camshaft/prompts/proj.md": "project template $1",
            ".camshaft/skills/alpha/SKILL.md": SKILL.format("alpha", "Project alpha", ""),
            ".agents/skills/agentsk/SKILL.md": SKILL.format("agentsk", "In .agents", ""),
            "home/.camshaft/prompts/nodesc.md": "First line of the body that is quite long and goes on past sixty characters\nmore\n",
            "home/.camshaft/prompts/review.md": "---\ndescription: Review it\n---\nReview $1 then $@ and ${2:-x} and ${@:2}.\n",
            "home/.camshaft/skills/Bad_Name/SKILL.md": SKILL.format("Bad_Name", "bad name ok", ""),
            "home/.camshaft/skills/hidden/SKILL.md": SKILL.format("hidden", "Hidden", "disable-model-invocation: true\n"),
            "home/.camshaft/skills/root.md": SKILL.format("rootskill", "Root file", ""),
        },
        exempt=line("RPC-45", 5, instead=({"id": "r2", "success": True, "data": {"commands": COMMANDS}},)),
    ),
}
