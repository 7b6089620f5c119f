"""Everything that is not determined by the kernel's inputs, as ports: one value, handed in.

A test or a simulation gives another World; nothing in kernel, actors or tools reaches the
outside past it. Monotonic time and sleeping are Trio's, so a virtual clock rules them.
"""

import os
from collections.abc import Mapping

import attrs

from camshaft.actors.ports.clock import Clock, Ids, RealClock, RealIds
from camshaft.actors.ports.files import Files, RealFiles
from camshaft.actors.ports.http import Http, RealHttp
from camshaft.actors.ports.log_files import LogFiles, RealLogFiles
from camshaft.actors.ports.processes import Processes, RealProcesses
from camshaft.kernel import shapes


@shapes.frozen(kw_only=True)
class World:
    """The ports of one kernel."""

    clock: Clock
    ids: Ids
    files: Files
    processes: Processes
    http: Http
    log_files: LogFiles
    environment: Mapping[str, str] = attrs.field(repr=False)
    """A snapshot; hidden in reprs because it may hold keys."""

    @property
    def is_offline(self) -> bool:
        """Whether nothing but requests to models may use the network (MOD-43)."""
        return self.environment.get("CAMSHAFT_OFFLINE", "").strip().lower() in ("1", "true", "yes")


def real_world(environment: Mapping[str, str] | None = None) -> World:
    """The real ports. `environment` defaults to a copy of the process's, taken now."""
    clock = RealClock()
    return World(
        clock=clock,
        ids=RealIds(clock),
        files=RealFiles(),
        processes=RealProcesses(),
        http=RealHttp(),
        log_files=RealLogFiles(),
        environment=dict(os.environ) if environment is None else dict(environment),
    )
