"""What looking for skills and prompt templates gives: the ones that count, and what was wrong on the way."""

from typing import Literal

import attrs

from camshaft.kernel.skills import Skill
from camshaft.kernel.templates import PromptTemplate


@attrs.frozen(kw_only=True)
class ResourceDiagnostic:
    """Something to tell about a resource (SDK-7). Nothing failed because of it."""

    type: Literal["warning", "collision"]
    """`collision`: another resource of the same name counts (RES-1)."""
    message: str
    path: str
    """The file or folder it is about; of a collision, the loser."""
    winner_path: str | None = None
    """Set for a collision."""


@attrs.frozen(kw_only=True)
class Resources:
    """Skills and templates in the order of RES-1, each name once."""

    skills: tuple[Skill, ...] = ()
    templates: tuple[PromptTemplate, ...] = ()
    diagnostics: tuple[ResourceDiagnostic, ...] = ()
