"""A sample: compacts when a run ends with more tokens in the context than one wants to pay for.

The kernel compacts by itself shortly before the window is full. This extension does it earlier, at a limit of
one's own, and only between two runs, because a compaction ends the run that is under way. `/trigger-compact`
compacts at once; a text behind it says what the summary should look at.

Load it with `camshaft -e trigger_compact.py`, with `--compact-at TOKENS` for another limit. In memory is only
whether a compaction was asked for and is not done yet.
"""

from typing import Final

from camshaft.actors.api import (
    AgentSettled,
    CommandContext,
    CompactionResult,
    ExtensionAPI,
    ExtensionContext,
    SessionStartEvent,
)

FLAG: Final = "compact-at"
TOKENS_DEFAULT: Final = "100000"


class Trigger:
    """Asks for compactions, one at a time."""

    def __init__(self, api: ExtensionAPI) -> None:
        self.api = api
        self.is_pending = False

    def begin(self, _event: SessionStartEvent, _ctx: ExtensionContext) -> None:
        """A session begins with nothing asked for."""
        self.is_pending = False

    def check(self, _event: AgentSettled, ctx: ExtensionContext) -> None:
        """Compacts if the run left too much; an unknown size, right after a compaction, is none."""
        usage = ctx.get_context_usage()
        if usage is not None and usage.tokens is not None and usage.tokens > int(str(self.api.get_flag(FLAG))):
            self.compact(ctx, None)

    def command(self, arguments: str, ctx: CommandContext) -> None:
        """The command."""
        self.compact(ctx, arguments.strip() or None)

    def compact(self, ctx: ExtensionContext, focus: str | None) -> None:
        """Asks, and tells the person how it ended."""
        if self.is_pending:
            return

        def complete(result: CompactionResult) -> None:
            self.is_pending = False
            ctx.ui.notify(f"Compacted {result.tokens_before} tokens to {result.estimated_tokens_after}")

        def fail(error: Exception) -> None:
            self.is_pending = False
            ctx.ui.notify(f"Not compacted: {error}", "warning")

        self.is_pending = True
        ctx.compact(custom_instructions=focus, on_complete=complete, on_error=fail)


def setup(api: ExtensionAPI) -> None:
    """Registers flag, hooks and command."""
    trigger = Trigger(api)
    api.register_flag(FLAG, type="string", default=TOKENS_DEFAULT, description="Tokens in context after which a run is compacted")
    api.on("session_start", trigger.begin)
    api.on("agent_settled", trigger.check)
    api.register_command("trigger-compact", trigger.command, description="Compact now")
