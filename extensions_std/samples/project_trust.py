"""A sample: decides whether the extensions, settings and prompts that a project brings may be used.

Put it into the user's folder of extensions, or load it with `camshaft -e project_trust.py`; what a project itself
brings is not asked. It trusts everything below the folders of TRUSTED, asks about the rest, and where nobody can be
asked it leaves the decision to whatever was saved and to the settings. A remembered answer is saved by the host; here
nothing is kept.
"""

import os
from typing import Final

from camshaft.actors.api import ExtensionAPI, ProjectTrustEvent, ProjectTrustResult, TrustContext

TRUSTED: Final = ("~/own",)
"""Folders whose projects are trusted without a question."""

ANSWERS: Final = {
    "Trust it": ProjectTrustResult(trusted="yes", remember=True),
    "Trust it this time": ProjectTrustResult(trusted="yes"),
    "Do not trust it": ProjectTrustResult(trusted="no", remember=True),
    "Do not trust it this time": ProjectTrustResult(trusted="no"),
}
"""What can be said about a project; anything else leaves it undecided."""

UNDECIDED: Final = ProjectTrustResult(trusted="undecided")


def setup(api: ExtensionAPI) -> None:
    """Registers the decision. The first extension that says yes or no wins."""
    api.on("project_trust", decide)


async def decide(event: ProjectTrustEvent, ctx: TrustContext) -> ProjectTrustResult:
    """Yes, no, or nothing that would count."""
    if any(is_below(event.cwd, folder) for folder in TRUSTED):
        return ProjectTrustResult(trusted="yes")
    if not ctx.has_ui:
        return UNDECIDED
    answer = await ctx.ui.select(f"{event.cwd} brings extensions, settings or prompts of its own.", list(ANSWERS))
    return ANSWERS.get(answer or "", UNDECIDED)


def is_below(path: str, folder: str) -> bool:
    """Whether a path is in a folder, or is it; `~` is the home folder."""
    top = os.path.abspath(os.path.expanduser(folder))
    return os.path.commonpath([os.path.abspath(path), top]) == top
