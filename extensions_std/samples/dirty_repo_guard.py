"""A sample: keeps the session while the repository has changes that are not committed.

Load it with `camshaft -e dirty_repo_guard.py`. Before a new session, another one or a fork it looks at
`git status`: what was changed in this session would otherwise be mixed with the next one's work. People are asked;
where nobody can be asked, the session is kept. Outside of a repository it does nothing. It keeps nothing.
"""

from typing import Final

from camshaft.actors.api import CancelResult, ExtensionAPI, ExtensionContext, SessionBeforeForkEvent, SessionBeforeSwitchEvent

GIT_MS: Final = 10_000
"""A status that takes longer counts as no answer."""


def setup(api: ExtensionAPI) -> None:
    """Registers one gate for both ways to leave a session; a mistake in here keeps the session."""

    async def gate(_event: SessionBeforeSwitchEvent | SessionBeforeForkEvent, ctx: ExtensionContext) -> CancelResult | None:
        changed = await changed_files(api, ctx.cwd)
        if not changed:
            return None
        question = f"{len(changed)} files have changes that are not committed. Leave the session?"
        if ctx.has_ui and await ctx.ui.confirm(question, "\n".join(changed[:20])):
            return None
        ctx.ui.notify("Commit or stash the changes first.", "warning")
        return CancelResult(cancel=True)

    api.on("session_before_switch", gate, fail_closed=True)
    api.on("session_before_fork", gate, fail_closed=True)


async def changed_files(api: ExtensionAPI, cwd: str) -> list[str]:
    """The lines of `git status`, new files among them; none outside of a repository."""
    inside = await api.exec("git", ["rev-parse", "--is-inside-work-tree"], cwd=cwd, timeout=GIT_MS)
    if inside.code != 0:
        return []
    status = await api.exec("git", ["status", "--porcelain"], cwd=cwd, timeout=GIT_MS)
    if status.code != 0:
        raise RuntimeError(f"git status failed: {status.stderr.strip()}")
    return status.stdout.splitlines()
