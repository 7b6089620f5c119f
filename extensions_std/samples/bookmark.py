"""A sample: bookmarks answers, to find them again in the tree of the session.

Load it with `camshaft -e bookmark.py`. `/bookmark words` labels the last answer, `/unbookmark` takes the label
away, `/bookmarks` lists all of them. Labels are entries of the session, so they stay with it.
"""

from camshaft.actors.api import AssistantMessage, CommandContext, Entry, ExtensionAPI, MessageEntry, text_of


def setup(api: ExtensionAPI) -> None:
    """Registers the three commands."""

    def bookmark(arguments: str, ctx: CommandContext) -> None:
        answer = last_answer(ctx)
        if answer is None:
            ctx.ui.notify("There is no answer to bookmark yet.", "warning")
            return
        label = arguments.strip() or "bookmark"
        api.set_label(answer.id, label)
        ctx.ui.notify(f"Bookmarked as {label!r}: {beginning(answer)}")

    def unbookmark(_arguments: str, ctx: CommandContext) -> None:
        answer = last_answer(ctx)
        if answer is not None and ctx.session.get_label(answer.id) is not None:
            api.set_label(answer.id, None)

    api.register_command("bookmark", bookmark, description="Label the last answer")
    api.register_command("unbookmark", unbookmark, description="Take the label of the last answer away")
    api.register_command("bookmarks", list_bookmarks, description="List the labels of this session")


def list_bookmarks(_arguments: str, ctx: CommandContext) -> None:
    """Shows every label with what it stands at."""
    session = ctx.session
    labels = [(session.get_label(entry.id), entry) for entry in session.get_entries()]
    lines = [f"{label}: {beginning(entry)}" for label, entry in labels if label is not None]
    ctx.ui.notify("\n".join(lines) or "There are no bookmarks.")


def last_answer(ctx: CommandContext) -> MessageEntry | None:
    """The newest answer of the active branch."""
    for entry in reversed(ctx.session.get_branch()):
        if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
            return entry
    return None


def beginning(entry: Entry) -> str:
    """The first 60 characters of what an entry says; its type if that is nothing."""
    text = text_of(getattr(entry.message, "content", "")) if isinstance(entry, MessageEntry) else ""
    return " ".join(text.split())[:60] or entry.type
