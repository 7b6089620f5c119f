"""A sample: `/plan` lets the agent look and think but change nothing, until the person says: carry it out.

While planning, only tools that are annotated as reading are active and let through, and of shell commands only
known ones. An answer with a numbered list under "Plan:" is the plan; when the run is over the person may have it
carried out. Then each step that the model marks with `[DONE:n]` is ticked off beside the editor.

Load it with `camshaft -e plan_mode.py`, with `--plan` to begin so. Nothing is kept in memory: mode, steps and the
tools from before are `custom` entries of the branch, which no model sees. What a turn changes is stored together
with that turn, and a session that is opened again, or gone back in, is in the mode it was in there.
"""

import re
from typing import Any, Final

import attrs

from camshaft.actors.api import (
    AgentSettled,
    BeforeAgentStartEvent,
    BoundaryResult,
    CustomDraft,
    CustomEntry,
    ExtensionAPI,
    ExtensionContext,
    SessionStartEvent,
    ToolCallEvent,
    ToolCallResult,
    TurnEndEvent,
    freeze,
    text_of,
)

PLAN: Final = "plan-mode"
"""Type of the entries, name of the section, and key of status and widget."""
STEP: Final = re.compile(r"^\s*\d+[.)]\s+(.+?)\s*$", re.MULTILINE)
DONE: Final = re.compile(r"\[DONE:(\d+)\]")
READING_COMMAND: Final = re.compile(r"(cat|du|grep|head|ls|pwd|stat|tail|wc|git (blame|diff|log|show|status))( [^;&|<>()$`\n]*)?")
"""One command, and nothing in it that could start another one or write a file."""
CARRY_OUT: Final = "Carry it out"
PLANNING: Final = """You are planning: look at what is there, but change nothing; tools that change something are refused.
When you know enough, answer with a line "Plan:" and below it the steps as a numbered list."""


@attrs.frozen
class Mode:
    """How the branch is worked on."""

    planning: bool = False
    steps: tuple[tuple[str, bool], ...] = ()
    """Text, and whether it is done."""
    tools: tuple[str, ...] = ()
    """Active before the planning began."""

    def __str__(self) -> str:
        return "\n".join([f"{at}. [{'x' if done else ' '}] {step}" for at, (step, done) in enumerate(self.steps, start=1)])


def mode_of(ctx: ExtensionContext) -> Mode:
    """The mode that the last entry on the branch says."""
    found = [entry.data for entry in ctx.session.get_branch() if isinstance(entry, CustomEntry) and entry.custom_type == PLAN]
    said: Any = found[-1] if found else attrs.asdict(Mode())
    return Mode(said["planning"], tuple([(text, done) for text, done in said["steps"]]), tuple(said["tools"]))


def show(_event: object, ctx: ExtensionContext) -> None:
    """Shows mode and steps of the branch."""
    mode = mode_of(ctx)
    ctx.ui.set_status(PLAN, "planning" if mode.planning else None)
    ctx.ui.set_widget(PLAN, str(mode).splitlines() or None)


def explain(event: BeforeAgentStartEvent, ctx: ExtensionContext) -> None:
    """Tells the model of the mode, in the prompt of the run."""
    mode = mode_of(ctx)
    if mode.planning:
        event.system_prompt_options.sections[PLAN] = PLANNING
    elif not all(done for _, done in mode.steps):
        event.system_prompt_options.sections[PLAN] = f"Carry out this plan; write [DONE:n] after step n:\n{mode}"


def follow(event: TurnEndEvent, ctx: ExtensionContext) -> BoundaryResult | None:
    """Stores a plan, or steps that were done, together with the turn."""
    mode, text = mode_of(ctx), text_of(event.message.content)
    if mode.planning:
        steps = tuple([(step, False) for step in STEP.findall(text.partition("Plan:")[2])]) or mode.steps
    else:
        marked = DONE.findall(text)
        steps = tuple([(step, done or str(at) in marked) for at, (step, done) in enumerate(mode.steps, start=1)])
    if steps == mode.steps:
        return None
    draft = CustomDraft(custom_type=PLAN, data=freeze(attrs.asdict(attrs.evolve(mode, steps=steps))))
    return BoundaryResult(entries=(*event.entries, draft))


def setup(api: ExtensionAPI) -> None:
    """Registers flag, command, shortcut and hooks."""

    def reads(tool: str) -> bool:
        found = [each.annotations for each in api.get_all_tools() if each.name == tool]
        return tool == "bash" or any(hints is not None and hints.read_only_hint is True for hints in found)

    def toggle(ctx: ExtensionContext) -> None:
        """Begins to plan, with no steps yet; or stops, with the steps as they are."""
        mode = mode_of(ctx)
        after = attrs.evolve(mode, planning=False) if mode.planning else Mode(planning=True, tools=api.get_active_tools())
        api.set_active_tools([tool for tool in after.tools if reads(tool) or not after.planning])
        api.append_entry(PLAN, attrs.asdict(after))
        show(None, ctx)

    def begin(event: SessionStartEvent, ctx: ExtensionContext) -> None:
        """A session that knows no mode yet begins as the flag says."""
        if mode_of(ctx) == Mode() and api.get_flag("plan") is True:
            toggle(ctx)
        show(event, ctx)

    def guard(event: ToolCallEvent, ctx: ExtensionContext) -> ToolCallResult | None:
        """Refuses what could change something while planning, whoever calls it."""
        is_known = reads(event.tool_name) and (event.tool_name != "bash" or READING_COMMAND.fullmatch(event.input["command"]))
        if is_known or not mode_of(ctx).planning:
            return None
        return ToolCallResult(block=True, reason="Plan mode: this is not known to only read. Leave it to the plan.")

    async def offer(ctx: ExtensionContext) -> None:
        """Asks whether to carry the plan out, beside everything else: nobody has to answer."""
        if await ctx.ui.select("The plan is made.", [CARRY_OUT, "Go on planning"]) == CARRY_OUT and mode_of(ctx).planning:
            toggle(ctx)
            api.send_user_message("Carry out the plan.", deliver_as="followUp")

    def settle(event: AgentSettled, ctx: ExtensionContext) -> None:
        """A run is over: shows what became of the plan, and asks whoever can answer about a new one."""
        show(event, ctx)
        mode = mode_of(ctx)
        if mode.planning and mode.steps and ctx.has_ui and not event.aborted:
            ctx.start_task(offer, ctx)

    api.register_flag("plan", type="boolean", default=False, description="Begin in plan mode")
    api.register_command("plan", lambda _arguments, ctx: toggle(ctx), description="Plan, or stop planning")
    api.register_shortcut("ctrl+alt+p", toggle, description="Plan, or stop planning")
    api.on("session_start", begin)
    api.on("session_tree", show)
    api.on("before_agent_start", explain)
    api.on("tool_call", guard)
    api.on("turn_end", follow)
    api.on("agent_settled", settle)
