"""A sample: says in the title of the window, in the status line and with a notification how a run stands.

Load it with `camshaft -e notify.py`. Somebody who looks elsewhere meanwhile sees when it is their turn. It
keeps only the time at which the run began, in memory; where there is no UI, nothing is shown.
"""

from typing import Final

import trio

from camshaft.actors.api import AgentSettled, AgentStart, ExtensionAPI, ExtensionContext

STATUS: Final = "notify"
"""Key of the status line."""

QUIET_S: Final = 5.0
"""A run that is over sooner is not worth a notification: whoever asked is still there."""


def setup(api: ExtensionAPI) -> None:
    """Registers the beginning and the end of a run; a retry begins again, but the time counts from the first beginning."""
    began: list[float] = []

    def on_start(_event: AgentStart, ctx: ExtensionContext) -> None:
        began.append(trio.current_time())
        show(ctx, "working", "Working …")

    def on_settled(event: AgentSettled, ctx: ExtensionContext) -> None:
        took_s = trio.current_time() - began[0] if began else 0.0
        began.clear()
        show(ctx, "ready", None)
        if took_s >= QUIET_S:
            ctx.ui.notify("Stopped." if event.aborted else f"Done after {took_s:.0f} s. It is your turn.")

    api.on("agent_start", on_start)
    api.on("agent_settled", on_settled)


def show(ctx: ExtensionContext, state: str, status: str | None) -> None:
    """The state in the title, with the name of the session; the status line says more, or nothing."""
    ctx.ui.set_title(f"camshaft: {ctx.session.get_session_name() or ctx.cwd} ({state})")
    ctx.ui.set_status(STATUS, status)
