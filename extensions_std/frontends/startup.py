"""From checked arguments to a job."""

from camshaft.actors.api import World
from camshaft.extensions_std.frontends.arguments import Arguments
from camshaft.extensions_std.frontends.conversation import Job


class StartupFailed(Exception):
    """The job cannot be put together; `faults` has one text each."""

    def __init__(self, *faults: str) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


def job_of(_arguments: Arguments, _world: World, *, is_terminal: bool) -> Job:
    """Raises StartupFailed."""
    raise StartupFailed(f"Only --demo is available in this version ({is_terminal=})")
