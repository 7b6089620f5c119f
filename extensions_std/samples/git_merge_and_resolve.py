"""A sample: merges a branch and lets the model resolve the conflicts, round after round until there are none.

Load it with `camshaft -e git_merge_and_resolve.py` in a git repository; the model needs the tools read and edit.
`/merge branch` merges. If files are in conflict the model is asked to resolve them; whenever it stops, the files
are looked at, and what is still in conflict is asked for again, three times at most. Then the merge is committed, or
people are told what is left. What is asked are ordinary messages of the session; whether a merge is under way is
kept in memory only, because git knows it better: `/merge` without a branch goes on with one.
"""

from typing import Final

import attrs

from camshaft.actors.api import AgentEndEvent, CommandContext, ExecResult, ExtensionAPI, ExtensionContext

ROUNDS_MAX: Final = 3
"""Times the model is asked. One that has not managed it by then will not."""


def setup(api: ExtensionAPI) -> None:
    """Registers the command and what looks at the files when the model stops."""
    merge = Merge(api)
    api.register_command("merge", merge.command, description="Merge a branch; the model resolves conflicts")
    api.on("agent_end", merge.on_agent_end)


@attrs.define(eq=False)
class Merge:
    """The merge under way, if one is."""

    api: ExtensionAPI
    rounds_left: int = 0
    """Times the model may still be asked; 0 while no merge is under way."""

    async def command(self, arguments: str, ctx: CommandContext) -> None:
        """Merges a branch, or goes on with the merge that git is in."""
        await ctx.wait_for_idle()
        branch = arguments.strip()
        why_not = "Nothing is in conflict."
        if branch:
            merged = await self.git(ctx, "merge", "--no-edit", branch)
            if merged.code == 0:
                ctx.ui.notify(f"Merged {branch} without conflicts.")
                return
            why_not = merged.stderr.strip()
        if unmerged := await self.unmerged(ctx):
            self.rounds_left = ROUNDS_MAX
            self.ask(unmerged)
        else:
            ctx.ui.notify(why_not, "warning")

    async def on_agent_end(self, _event: AgentEndEvent, ctx: ExtensionContext) -> None:
        """Looks at the files, and asks again or commits."""
        if self.rounds_left == 0 or (ctx.signal is not None and ctx.signal.cancelled):
            return
        conflicts = await self.marked(ctx, await self.unmerged(ctx))
        self.rounds_left -= 1
        if not conflicts:
            self.rounds_left = 0
            await self.commit(ctx)
        elif self.rounds_left:
            self.ask(conflicts)
        else:
            ctx.ui.notify(f"Still in conflict: {', '.join(conflicts)}", "warning")

    def ask(self, conflicts: list[str]) -> None:
        """Asks the model for these files; while it works, behind what it is doing."""
        names = "\n".join(conflicts)
        self.api.send_user_message(
            f"Resolve the merge conflicts in these files, keep what both sides meant, and leave no conflict markers:\n{names}",
            deliver_as="followUp",
        )

    async def commit(self, ctx: ExtensionContext) -> None:
        """Commits the merge as it is."""
        await self.git(ctx, "add", "--update")
        done = await self.git(ctx, "commit", "--no-edit")
        ctx.ui.notify("Merged and committed." if done.code == 0 else f"The merge could not be committed: {done.stderr.strip()}")

    async def unmerged(self, ctx: ExtensionContext) -> list[str]:
        """Files that git could not merge by itself, seen from the top of the repository."""
        return (await self.git(ctx, "diff", "--name-only", "--diff-filter=U")).stdout.splitlines()

    async def marked(self, ctx: ExtensionContext, files: list[str]) -> list[str]:
        """Those that still have conflict markers."""
        if not files:
            return []
        found = await self.git(ctx, "grep", "--files-with-matches", "-E", "^(<<<<<<<|>>>>>>>) ", "--", *[f":/{name}" for name in files])
        return found.stdout.splitlines()

    async def git(self, ctx: ExtensionContext, *arguments: str) -> ExecResult:
        """How git ended."""
        return await self.api.exec("git", ["-c", "core.quotepath=off", *arguments], cwd=ctx.cwd)
