"""What looking for skills and prompt templates gives: the ones that count, and what was wrong on the way."""

from collections.abc import Iterable
from typing import Literal, TypeVar

from camshaft.kernel import shapes
from camshaft.kernel.skills import Skill
from camshaft.kernel.templates import PromptTemplate
from camshaft.kernel.tools import SourceInfo

Resource = TypeVar("Resource", Skill, PromptTemplate)


@shapes.frozen(kw_only=True)
class ResourceDiagnostic:
    """Something to tell about a resource (SDK-7). Nothing failed because of it."""

    type: Literal["warning", "collision"]
    """`collision`: another resource of the same name counts (RES-1)."""
    message: str
    path: str
    """The file or folder it is about; of a collision, the loser."""
    winner_path: str | None = None
    """Set for a collision."""


@shapes.frozen(kw_only=True)
class Resources:
    """Skills and templates in the order of RES-1, each name once."""

    skills: tuple[Skill, ...] = ()
    templates: tuple[PromptTemplate, ...] = ()
    diagnostics: tuple[ResourceDiagnostic, ...] = ()


@shapes.frozen(kw_only=True)
class Owner:
    """How and for whom something was found: what its provenance has besides the path (EXT-12)."""

    source: str
    """`local` (an entry of settings), `auto` or `cli`."""
    scope: Literal["user", "project", "temporary"] = "temporary"
    origin: Literal["package", "top-level"] = "top-level"
    base_dir: str | None = None

    def info(self, path: str) -> SourceInfo:
        """The provenance of what is at `path`."""
        return SourceInfo(path=path, source=self.source, scope=self.scope, origin=self.origin, base_dir=self.base_dir)


def warning(path: str, message: str) -> ResourceDiagnostic:
    """A warning about a file or folder; its path begins the message."""
    return ResourceDiagnostic(type="warning", message=f"{path}: {message}", path=path)


def first_of_each_name(kind: str, found: Iterable[Resource]) -> tuple[tuple[Resource, ...], tuple[ResourceDiagnostic, ...]]:
    """The first resource of each name, and a diagnostic for every later one (RES-1)."""
    winners: dict[str, Resource] = {}
    losers: list[ResourceDiagnostic] = []
    for each in found:
        winner = winners.setdefault(each.name, each)
        if winner is not each:
            text = f'{kind} "{each.name}" of {each.file_path} is not used: {winner.file_path} has the same name and comes first'
            losers.append(ResourceDiagnostic(type="collision", message=text, path=each.file_path, winner_path=winner.file_path))
    return tuple(winners.values()), tuple(losers)
