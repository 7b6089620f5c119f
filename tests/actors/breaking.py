"""A disk that breaks at one step of a job, for each of its steps in turn."""

import errno
from collections.abc import Iterator

import attrs

from camshaft.actors.simulation.log_files import Fault, MemoryLogFiles, Operation, Photo, files_of

STEPS_MAX = 30
"""More than any of the jobs has."""


@attrs.define
class Breaking:
    """Breaks step number `at` (from 0), or is killed there; the rest works."""

    at: int
    killed: bool = False
    seen: list[str] = attrs.field(factory=list)

    def __call__(self, operation: Operation) -> Fault | None:
        self.seen.append(operation.kind)
        if len(self.seen) != self.at + 1:
            return None
        return Fault(killed=True) if self.killed else Fault(error=OSError(errno.EIO, "broken"))

    @property
    def is_over(self) -> bool:
        """Whether the job had no such step."""
        return len(self.seen) <= self.at


def breaking(photo: Photo, *, killed: bool = False) -> Iterator[tuple[MemoryLogFiles, Breaking]]:
    """A machine with the files of `photo` for every step that may break; ends with the first that had no such step."""
    for at in range(STEPS_MAX):
        fault = Breaking(at, killed)
        yield files_of(photo, fault), fault
        if fault.is_over:
            return
    raise AssertionError("the job has more steps than expected")
