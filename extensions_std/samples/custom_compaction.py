"""A sample: makes the summary of a compaction itself, with its own instructions and, if wanted, another model.

The kernel has chosen what is summarised and what is kept (`preparation`); this extension only writes the text. If
the model fails or gives nothing, it returns nothing, and the kernel makes its own summary as if the extension were
not there. If the compaction is aborted, so is the request.

Load it with `camshaft -e custom_compaction.py`, with `--compaction-model PROVIDER/ID` for another model. The summary
is stored in the session as any other, marked as coming from an extension; what it cost is stored with it, and so
not once more as a `usage` entry.
"""

from typing import Final

from camshaft.actors.api import (
    CompactionPreparation,
    ExtensionAPI,
    ExtensionContext,
    Model,
    ModelFailed,
    SessionBeforeCompactEvent,
    SessionBeforeCompactResult,
    SuppliedCompaction,
    conversation_text,
    text_of,
)

FLAG: Final = "compaction-model"

INSTRUCTIONS: Final = """Write the minutes of this conversation, so that somebody can go on with the work without having been there.
Give these parts, leave out those that would be empty, and quote paths, names and error texts exactly:
Goal. Decisions, each with its reason. Done so far, with the files. Open points. The very next step."""


def setup(api: ExtensionAPI) -> None:
    """Registers the flag and the hook."""

    async def summarise(event: SessionBeforeCompactEvent, ctx: ExtensionContext) -> SessionBeforeCompactResult | None:
        """The compaction with the minutes as its summary; None: the kernel makes it."""
        try:
            answer = await ctx.ask_model(
                question(event.preparation, event.custom_instructions),
                model=wanted_model(api, ctx),
                signal=event.signal,
                record_usage=False,
            )
        except ModelFailed as failed:
            if not failed.aborted:
                ctx.ui.notify(f"The minutes failed ({failed}); the usual summary is made", "warning")
            return None
        minutes = text_of(answer.content).strip()
        if not minutes or answer.stop_reason == "length":
            return None
        return SessionBeforeCompactResult(
            compaction=SuppliedCompaction(
                summary=minutes,
                first_kept_entry_id=event.preparation.first_kept_entry_id,
                tokens_before=event.preparation.tokens_before,
                usage=answer.usage,
            )
        )

    api.register_flag(FLAG, type="string", description="Model that writes the summaries, as provider/id")
    api.on("session_before_compact", summarise)


def wanted_model(api: ExtensionAPI, ctx: ExtensionContext) -> Model | None:
    """The model of the flag; None, the selected one, if it names none that can be used."""
    reference = api.get_flag(FLAG)
    return next((model for model in ctx.model_registry.get_available() if model.reference == reference), None)


def question(preparation: CompactionPreparation, focus: str | None) -> str:
    """What the model is asked: everything that leaves the context, also the beginning of a turn whose end stays."""
    messages = (*preparation.messages_to_summarize, *preparation.turn_prefix_messages)
    parts = [f"<conversation>\n{conversation_text(messages)}\n</conversation>"]
    if preparation.previous_summary:
        parts.append(f"What was said before is in these minutes; carry on what still matters:\n{preparation.previous_summary}")
    parts.append(INSTRUCTIONS if focus is None else f"{INSTRUCTIONS}\nLook at this above all: {focus}")
    return "\n\n".join(parts)
