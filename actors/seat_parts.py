"""What a conversation is made of, handed to everything that acts in it."""

import trio

from camshaft.actors.actor import Limbo
from camshaft.actors.bus import EventBus
from camshaft.actors.children import Opener
from camshaft.actors.desk import Desk
from camshaft.actors.errors import CommandRefused
from camshaft.actors.event_stream import EventStream
from camshaft.actors.extension_host import ExtensionHost
from camshaft.actors.extension_modules import ModuleCache
from camshaft.actors.options import Limits, OpenOptions
from camshaft.actors.providers import Provider, provider_of
from camshaft.actors.rest import Rest
from camshaft.actors.session import SessionActor
from camshaft.actors.watchdog import Watchdog
from camshaft.actors.world import World
from camshaft.kernel import shapes
from camshaft.kernel.commands import Command
from camshaft.kernel.errors import Rejection
from camshaft.kernel.events import DiagnosticEvent
from camshaft.kernel.models import Model
from camshaft.kernel.prompt import PromptOptions
from camshaft.kernel.records import InputRecord
from camshaft.kernel.state import Commit, SessionState

NO_MODEL_TEXT = "No model selected. Configure a model in models.json, or name one with --model or the option `model`."


@shapes.frozen(kw_only=True)
class Ground:
    """What all sessions of one conversation stand on; outlives each of them."""

    world: World
    limits: Limits
    limbo: Limbo
    nursery: trio.Nursery
    """Of the kernel: tasks in it end with the block of `open_kernel`."""
    stream: EventStream
    desk: Desk
    bus: EventBus
    """What extensions tell each other by; a reload leaves it (API-27)."""
    modules: ModuleCache
    """What extensions are loaded from; a reload clears it, and so does the end of the conversation (EXT-28)."""
    open_child: Opener
    watchdog: Watchdog | None = None
    depth: int = 0
    """How many parents the conversation has."""


@shapes.frozen(kw_only=True)
class SeatParts:
    """What a conversation is made of now: one session and one generation of extensions; see `assembly.py`."""

    ground: Ground
    options: OpenOptions
    """What it was opened with, or loaded anew with."""
    session: SessionActor
    host: ExtensionHost
    rest: Rest
    base_prompt: PromptOptions
    found: tuple[DiagnosticEvent, ...] = ()

    @property
    def providers(self) -> tuple[Provider, ...]:
        """Who serves the models: the host's providers, and those of extensions."""
        return self.host.registry.providers

    @property
    def world(self) -> World:
        """The ports of the host."""
        return self.ground.world

    @property
    def stream(self) -> EventStream:
        """The event stream of the conversation."""
        return self.ground.stream

    @property
    def limbo(self) -> Limbo:
        """Where code runs that may refuse to die."""
        return self.ground.limbo

    @property
    def nursery(self) -> trio.Nursery:
        """The kernel's nursery."""
        return self.ground.nursery

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
            return no_key_text(model)
        return None


def no_key_text(model: Model) -> str:
    """Why a model whose provider has no credentials cannot be asked."""
    return f"No API key found for {model.provider}. Set it in models.json, in the environment, or with an option."


def input_of(commit: Commit) -> InputRecord:
    """The record of the input that a commit accepted."""
    record = commit.records[0]
    assert isinstance(record, InputRecord)
    return record
