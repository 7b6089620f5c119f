"""A sample: commits what was changed when the program ends.

Load it with `camshaft -e auto_commit_on_exit.py` in a git repository. Everything that git does not ignore is
committed, with the beginning of the last answer as the message, and the commit's name is left in the session as a
`custom` entry. A commit that git refuses is reported like everything a handler raises. It keeps nothing else.
"""

from typing import Final

from camshaft.actors.api import AssistantMessage, ExtensionAPI, ExtensionContext, MessageEntry, SessionShutdownEvent, text_of

COMMIT: Final = "auto-commit"
"""Type of the entry."""

SUBJECT_CHARACTERS_MAX: Final = 60


def setup(api: ExtensionAPI) -> None:
    """Registers what happens at the end. There is little time then: a handler is ended after some seconds."""

    async def commit_all(event: SessionShutdownEvent, ctx: ExtensionContext) -> None:
        if event.reason != "quit" or not await has_changes(api, ctx.cwd):
            return
        subject = subject_for(ctx)
        await git(api, ctx.cwd, "add", "--all")
        await git(api, ctx.cwd, "commit", "--quiet", f"--message={subject}")
        commit = await git(api, ctx.cwd, "rev-parse", "HEAD")
        api.append_entry(COMMIT, {"commit": commit, "subject": subject})

    api.on("session_shutdown", commit_all)


async def has_changes(api: ExtensionAPI, cwd: str) -> bool:
    """Whether there is something to commit; false outside of a repository."""
    status = await api.exec("git", ["status", "--porcelain"], cwd=cwd)
    return status.code == 0 and bool(status.stdout.strip())


async def git(api: ExtensionAPI, cwd: str, *arguments: str) -> str:
    """What git says. Raises RuntimeError with its complaint."""
    done = await api.exec("git", arguments, cwd=cwd)
    if done.code != 0:
        raise RuntimeError(f"git {arguments[0]} failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout.strip()


def subject_for(ctx: ExtensionContext) -> str:
    """The beginning of the last answer, in one line."""
    for entry in reversed(ctx.session.get_branch()):
        if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
            words = " ".join(text_of(entry.message.content).split())
            if words:
                return words if len(words) <= SUBJECT_CHARACTERS_MAX else f"{words[: SUBJECT_CHARACTERS_MAX - 1].rstrip()}…"
    return "Work in progress"
