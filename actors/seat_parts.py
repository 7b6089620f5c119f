"""What a conversation is made of, handed to everything that acts in it."""

from collections.abc import Callable

import attrs
import trio

from camshaft.actors.actor import Limbo
from camshaft.actors.errors import CommandRefused
from camshaft.actors.event_stream import EventStream
from camshaft.actors.extension_host import ExtensionHost
from camshaft.actors.model_registry import ScopedModel
from camshaft.actors.providers import Provider, provider_of
from camshaft.actors.rest import Rest
from camshaft.actors.session import SessionActor
from camshaft.actors.world import World
from camshaft.kernel.commands import Command
from camshaft.kernel.errors import Rejection
from camshaft.kernel.events import DiagnosticEvent
from camshaft.kernel.prompt import PromptOptions
from camshaft.kernel.records import InputRecord
from camshaft.kernel.state import Commit, SessionState

NO_MODEL_TEXT = "No model selected. Configure a model in models.json, or name one with --model or the option `model`."


@attrs.frozen(kw_only=True)
class SeatParts:
    """What a seat is made of; put together by `open_kernel`."""

    world: World
    session: SessionActor
    host: ExtensionHost
    stream: EventStream
    limbo: Limbo
    nursery: trio.Nursery
    providers: tuple[Provider, ...]
    base_prompt: PromptOptions
    mode: str
    abort_grace_s: float | None
    continuations_max: int | None
    rest: Rest
    found: tuple[DiagnosticEvent, ...] = ()
    scoped_models: tuple[ScopedModel, ...] = ()
    is_project_trusted: bool = True
    on_shutdown: Callable[[], None] | None = None

    @property
    def state(self) -> SessionState:
        """The session's snapshot."""
        return self.session.state

    def posted(self, command: Command) -> Commit:
        """Posts; a refusal is raised as CommandRefused."""
        commit = self.session.post(command)
        if isinstance(commit, Rejection):
            raise CommandRefused(commit.why)
        self.rest.soon()
        return commit

    def unready(self) -> str | None:
        """Why no request can be made with the selected model, or None."""
        model = self.state.selection.model
        if model is None:
            return NO_MODEL_TEXT
        provider = provider_of(self.providers, model)
        if provider is not None and not provider.configured():
            return f"No API key found for {model.provider}. Set it in models.json, in the environment, or with an option."
        return None


def input_of(commit: Commit) -> InputRecord:
    """The record of the input that a commit accepted."""
    record = commit.records[0]
    assert isinstance(record, InputRecord)
    return record
