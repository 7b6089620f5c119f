"""A sample: asks before a session is left by a new one, another one or a fork.

Load it with `camshaft -e confirm_destructive.py`. Nothing is asked in a session without messages, and where
nobody can be asked everything goes its way: a job that leaves a session means to. It keeps nothing.
"""

from camshaft.actors.api import (
    CancelResult,
    ExtensionAPI,
    ExtensionContext,
    MessageEntry,
    SessionBeforeForkEvent,
    SessionBeforeSwitchEvent,
)


def setup(api: ExtensionAPI) -> None:
    """Registers both gates; with `fail_closed` a mistake in here keeps the session instead of leaving it."""
    api.on("session_before_switch", before_switch, fail_closed=True)
    api.on("session_before_fork", before_fork, fail_closed=True)


async def before_switch(event: SessionBeforeSwitchEvent, ctx: ExtensionContext) -> CancelResult | None:
    """Asks before a new session or another file."""
    return await ask(ctx, "Start a new session?" if event.reason == "new" else f"Go to {event.target_session_file}?")


async def before_fork(event: SessionBeforeForkEvent, ctx: ExtensionContext) -> CancelResult | None:
    """Asks before a copy of the branch."""
    return await ask(ctx, "Fork before this message?" if event.position == "before" else "Go on in a copy of the session?")


async def ask(ctx: ExtensionContext, question: str) -> CancelResult | None:
    """Cancels if the answer is no."""
    if not ctx.has_ui or not any(isinstance(entry, MessageEntry) for entry in ctx.session.get_branch()):
        return None
    if await ctx.ui.confirm(question, "The session you are in will be left."):
        return None
    return CancelResult(cancel=True)
