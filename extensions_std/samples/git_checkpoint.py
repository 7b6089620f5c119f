"""A sample: remembers what the files were like before every turn, and brings that back when a session is forked.

Load it with `camshaft -e git_checkpoint.py` in a git repository. `git stash create` writes a commit without
touching files, branches or the list of stashes. Which commit belongs behind which entry is stored when a run has
settled, as one `custom` entry, so a session that was closed and opened again still knows. Before a fork people are
asked whether the files shall be as they were at that place; what they are like at that moment is a commit as well,
which is named, so nothing is lost. Files that git does not track stay as they are. Git throws such
commits away when they are older than two weeks.
"""

from typing import Any, Final

import attrs

from camshaft.actors.api import (
    AgentSettled,
    CustomEntry,
    ExtensionAPI,
    ExtensionContext,
    SessionBeforeForkEvent,
    ToolResultEvent,
    TurnStartEvent,
)

CHECKPOINTS: Final = "git-checkpoints"
"""Type of the entries; their data is a list of `after`, an entry or null for the beginning, and `commit`."""


def setup(api: ExtensionAPI) -> None:
    """Registers the four moments."""
    run = Run(api)
    api.on("turn_start", run.on_turn_start)
    api.on("tool_result", run.on_tool_result)
    api.on("agent_settled", run.on_settled)
    api.on("session_before_fork", run.before_fork)


@attrs.define(eq=False)
class Run:
    """The checkpoints of the run under way; older ones are in the session."""

    api: ExtensionAPI
    made: list[dict[str, Any]] = attrs.field(factory=list)
    is_changed: bool = True
    """Whether files may have changed since the last checkpoint: a tool ran, or it is somebody else's turn."""

    async def on_turn_start(self, _event: TurnStartEvent, ctx: ExtensionContext) -> None:
        """One checkpoint before each turn."""
        await self.checkpoint(ctx)

    def on_tool_result(self, _event: ToolResultEvent, _ctx: ExtensionContext) -> None:
        """Any tool may have changed any file."""
        self.is_changed = True

    async def on_settled(self, _event: AgentSettled, ctx: ExtensionContext) -> None:
        """The last checkpoint of a run; then all of them are stored."""
        await self.checkpoint(ctx)
        if self.made:
            self.api.append_entry(CHECKPOINTS, self.made)
        self.made, self.is_changed = [], True

    async def before_fork(self, event: SessionBeforeForkEvent, ctx: ExtensionContext) -> None:
        """Brings files back if people want that. It lets the fork happen; if somebody else does not, the files are back all the same."""
        commit = self.commit_at(event, ctx)
        if commit is None or not ctx.has_ui or not await ctx.ui.confirm("Bring the files back to how they were there?"):
            return
        now = await snapshot(self.api, ctx.cwd)
        if now is None:
            ctx.ui.notify("The files stay as they are: git cannot keep what they are like now.", "error")
            return
        done = await self.api.exec("git", ["restore", f"--source={commit}", "--worktree", ":/"], cwd=ctx.cwd)
        if done.code == 0:
            ctx.ui.notify(f"The files are as they were. What they were like until now is commit {now}.")
        else:
            ctx.ui.notify(f"The files could not be brought back: {done.stderr.strip()}", "error")

    async def checkpoint(self, ctx: ExtensionContext) -> None:
        """Remembers the files behind the entry that is the last one now."""
        if self.is_changed and (commit := await snapshot(self.api, ctx.cwd)) is not None:
            self.made.append({"after": ctx.session.get_leaf_id(), "commit": commit})
            self.is_changed = False

    def commit_at(self, event: SessionBeforeForkEvent, ctx: ExtensionContext) -> str | None:
        """The newest checkpoint on the way from the beginning to the place of the fork."""
        stored = [entry.data for entry in ctx.session.get_entries() if isinstance(entry, CustomEntry) and entry.custom_type == CHECKPOINTS]
        known = {each["after"]: each["commit"] for checkpoints in (*stored, self.made) for each in checkpoints}
        path: list[str | None] = [None, *[entry.id for entry in ctx.session.get_branch(event.entry_id)]]
        if event.position == "before":
            path.pop()
        return next((known[place] for place in reversed(path) if place in known), None)


async def snapshot(api: ExtensionAPI, cwd: str) -> str | None:
    """A commit with the files as they are; None where git has none."""
    made = await api.exec("git", ["stash", "create"], cwd=cwd)
    if made.code == 0 and not made.stdout.strip():  # Nothing has changed since the last commit.
        made = await api.exec("git", ["rev-parse", "--verify", "HEAD"], cwd=cwd)
    return made.stdout.strip() if made.code == 0 else None
