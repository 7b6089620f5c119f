"""The stage of one run: what every part of the runner may reach, and the place an action runs at."""

import contextvars
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import attrs
import trio

from tests.conformance.scenario.host_face import view
from tests.conformance.scenario.recorder import Recorder
from tests.conformance.scenario.templates import Sources


@attrs.frozen(kw_only=True)
class Folders:
    """The folders of a run, all new and empty."""

    root: Path
    cwd: Path
    agent: Path
    sessions: Path
    home: Path


class Through(Protocol):
    """A way for the host's calls that leaves the kernel's thread."""

    def faced(self, seat: Any) -> Any:
        """A seat whose operations go that way."""
        ...

    async def arrived(self) -> None:
        """Returns when every call that was made has begun."""
        ...


@attrs.define(eq=False, kw_only=True)
class Stage:
    """One run of one scenario."""

    scenario: Mapping[str, Any]
    folders: Folders
    recorder: Recorder
    nursery: trio.Nursery
    """Runs what is started and not awaited; cancelled when the trace is complete."""
    outside: contextvars.Context
    """The driver's context: what is started from inside a run and must not count as part of it runs in a copy."""
    models: Mapping[str, Any] = attrs.field(factory=dict)
    """Model objects by `provider/id`."""
    port: int | None = None
    """Port of the local model server, if there is one."""
    replies: list[Mapping[str, Any]] = attrs.field(factory=list)
    """Scripted replies not taken yet."""
    through: Through | None = None
    """The way the host's calls go; None: none."""
    seat: Any = None
    """The session as the host holds it; None until it is open."""
    _gates: dict[str, trio.Event] = attrs.field(factory=dict)

    def gate(self, name: str) -> trio.Event:
        """The gate of this name; closed at first."""
        return self._gates.setdefault(name, trio.Event())


@attrs.define(eq=False, kw_only=True)
class ToolCallPlace:
    """What an action may use while it runs in the body of a tool."""

    call_id: str
    arguments: Any
    signal: Any
    on_update: Any


@attrs.define(eq=False, kw_only=True)
class Place:
    """Where an action runs: in a handler, a command, a listener, a tool, the provider, or the driver."""

    stage: Stage
    head: Mapping[str, Any]
    """The fields that records written from here begin with."""
    event: Any = None
    context: Any = None
    """The extension or tool context; None in the provider and the driver."""
    api: Any = None
    """The face of the extension the action belongs to; None outside of extensions."""
    builder: Any = None
    """What registers handlers and tools of that extension; None outside of extensions."""
    tool: ToolCallPlace | None = None
    variables: dict[str, Any] = attrs.field(factory=dict)

    def record(self, **fields: Any) -> None:
        """Writes a record on the channel of this place; fields that are None are left out."""
        self.stage.recorder.record({**self.head, **{key: value for key, value in fields.items() if value is not None}})

    def entries(self) -> Sequence[Any]:
        """All entries of the current session in append order."""
        found: Sequence[Any] = self.session().get_entries()
        return found

    def session(self) -> Any:
        """The session, to read, as an extension does or as the host does."""
        return self.context.session if self.context is not None else view(self.stage.seat)

    def sources(self) -> Sources:
        """Where templates of an action at this place take their values from."""
        return Sources(
            event=self.event,
            arguments=self.tool.arguments if self.tool else None,
            variables=self.variables,
            entries=self.entries,
            model=self.stage.models.__getitem__,
        )
