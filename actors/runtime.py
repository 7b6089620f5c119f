"""What extensions can reach of the conversation they are loaded in: the port behind contexts and API.

The seat implements it. Everything synchronous here is a read or a post: its effect is visible
on the caller's next line.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from camshaft.actors.desk import Desk
from camshaft.actors.generation import Checked
from camshaft.actors.model_asks import ModelAsk
from camshaft.actors.model_registry import ModelSource
from camshaft.actors.providers import Provider
from camshaft.actors.scoped import ScopedModel
from camshaft.actors.signal import AbortSignal
from camshaft.actors.world import World
from camshaft.kernel import shapes
from camshaft.kernel.branch_summaries import NavigationResult
from camshaft.kernel.compaction import CompactionResult
from camshaft.kernel.hook_events import CustomInput
from camshaft.kernel.messages import AssistantMessage, ImageBlock
from camshaft.kernel.models import Model
from camshaft.kernel.persistent import EMPTY, FrozenDict, Json
from camshaft.kernel.prompt import PromptOptions
from camshaft.kernel.state import SessionState
from camshaft.kernel.tools import Annotations, CallOutcome, Namespace, RegisteredTool, Signal, ToolDefinition

if TYPE_CHECKING:
    from camshaft.actors.children import ChildBlock, ChildOptions
    from camshaft.actors.flights import Receipt
    from camshaft.actors.replacement import Replacement


@shapes.frozen(kw_only=True)
class ToolInfo:
    """A registered tool as `get_all_tools` lists it (EXPO-8)."""

    name: str
    description: str
    parameters: Json
    prompt_guidelines: tuple[str, ...]
    exposure: str
    source_info: Json
    namespace: Namespace | None = None
    annotations: Annotations | None = None
    reaches_tools: Callable[[Any], Any] | None = attrs.field(default=None, repr=False)


@shapes.frozen(kw_only=True)
class CommandInfo:
    """A command as `get_commands` lists it (API-19)."""

    name: str
    description: str | None
    source: str
    source_info: Json


class Runtime(Protocol):
    """One conversation, as its extensions see it."""

    @property
    def state(self) -> SessionState:
        """The session's snapshot."""
        ...

    @property
    def world(self) -> World:
        """The ports of the host."""
        ...

    @property
    def replacement(self) -> "Replacement":
        """What goes on in another session, or loads extensions anew."""
        ...

    def open_child(self, options: "ChildOptions | None", signal: Signal | None) -> "ChildBlock":
        """A conversation beneath this one, for the length of a block."""
        ...

    async def send_custom(
        self, message: CustomInput, *, trigger_turn: bool | None = None, deliver_as: str | None = None
    ) -> "Receipt | None":
        """Send a custom message by QUE-11; when it is appended at once, handlers have heard of it on return."""
        ...

    async def prompt(self, text: str, *, streaming_behavior: Any = None, expand: bool = True, source: str = "interactive") -> "Receipt":
        """Submit a prompt and wait until the run it started has settled. Raises PromptRefused."""
        ...

    @property
    def cwd(self) -> str:
        """The working directory, absolute."""
        ...

    @property
    def mode(self) -> str:
        """How the host shows things: `print`, `json`, `rpc`, `tui` or `embedded`."""
        ...

    @property
    def desk(self) -> Desk:
        """Where dialogs are asked and things are shown."""
        ...

    @property
    def signal(self) -> AbortSignal | None:
        """The signal of the active run; None outside runs (CTXT-4)."""
        ...

    @property
    def run_signal(self) -> AbortSignal | None:
        """The signal whose stages bound what handlers do: of the run that is starting, active or settling."""
        ...

    @property
    def tools(self) -> Mapping[str, RegisteredTool]:
        """The visible tools by name."""
        ...

    @property
    def session_file(self) -> str | None:
        """Path of the session file, whether it exists yet or not; None in memory."""
        ...

    @property
    def providers(self) -> tuple[Provider, ...]:
        """Who serves the models, those of extensions included."""
        ...

    @property
    def model_source(self) -> ModelSource:
        """What a registry of models asks at each call."""
        ...

    @property
    def scoped_models(self) -> tuple[ScopedModel, ...]:
        """The models that are cycled through; empty: all that can be used."""
        ...

    @property
    def is_project_trusted(self) -> bool:
        """Whether the files of the working directory may decide what runs."""
        ...

    def shutdown(self) -> None:
        """Ask the host to end (CTXT-6)."""
        ...

    def prompt_options(self) -> PromptOptions:
        """The base options of the system prompt."""
        ...

    @property
    def system_prompt(self) -> str:
        """The effective prompt text (CTXT-2)."""
        ...

    def send_message(self, message: CustomInput, trigger_turn: bool | None, deliver_as: str | None) -> None:
        """Deliver a custom message by QUE-11; failures are reported, not raised."""
        ...

    def send_user_message(self, text: str, images: Sequence[ImageBlock], deliver_as: str | None, expand: bool) -> None:
        """Send a user message by QUE-13; failures are reported, not raised."""
        ...

    @property
    def has_sends(self) -> bool:
        """Whether a user message that a handler sent was not accepted or refused yet."""
        ...

    async def sends_begun(self) -> None:
        """Let what a handler just sent begin (QUE-13)."""
        ...

    def append_entry(self, custom_type: str, data: Json = None, extra: FrozenDict = EMPTY) -> str:
        """Append a `custom` entry now, with further fields by their JSON names; its id."""
        ...

    def set_label(self, entry_id: str, label: str | None) -> None:
        """Label an entry. Raises CommandRefused for an unknown id."""
        ...

    def set_session_name(self, name: str) -> None:
        """Name the session; empty clears."""
        ...

    def set_active_tools(self, names: Sequence[str]) -> None:
        """Replace the active set (EXPO-3)."""
        ...

    def tool_registered(self, definition: ToolDefinition) -> None:
        """Activate a tool just registered, by its exposure or because the branch has it active (API-3, EXPO-7)."""
        ...

    async def select_model(self, model: Model | str, source: str) -> bool:
        """Use another model; False if it has no credentials (API-22). Raises UnknownModel."""
        ...

    def set_thinking_level(self, level: str) -> None:
        """Use another level, clamped to the model. Raises CommandRefused for an unknown level (API-23)."""
        ...

    def request_abort(self) -> None:
        """Ask the active run to stop; returns at once."""
        ...

    def request_compaction(
        self,
        custom_instructions: str | None,
        on_complete: Callable[[CompactionResult], Any] | None,
        on_error: Callable[[Exception], Any] | None,
    ) -> None:
        """Compact; returns at once, failures go to `on_error` or are reported (CTXT-7)."""
        ...

    async def navigate_tree(  # as the seat's
        self,
        target: str,
        *,
        summarize: bool = False,
        custom_instructions: str | None = None,
        replace_instructions: bool | None = None,
        label: str | None = None,
    ) -> NavigationResult:
        """Move to another entry (CTXT-9). Raises CommandRefused."""
        ...

    async def ask_model(self, standing: Checked, ask: ModelAsk) -> AssistantMessage:
        """Ask a model outside the conversation. Raises ModelFailed."""
        ...

    async def fetch_deferred(self, handle: Mapping[str, Any], *, wait_ms: int = 0, signal: Signal | None = None) -> AssistantMessage:
        """What a handle stands for (STR-41)."""
        ...

    async def cancel_deferred(self, handle: Mapping[str, Any]) -> None:
        """Ask the provider not to make the answer behind a handle. Raises DeferredUnsupported, ModelFailed."""
        ...

    async def wait_idle(self) -> None:
        """Returns when no run is active. Raises SelfWait from inside a run."""
        ...

    def commands(self) -> tuple[CommandInfo, ...]:
        """What can be called by name."""
        ...

    def start_task(self, path: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        """Run a task of the extension at `path` until its generation ends (EXT-23)."""
        ...

    async def execute_nested(self, caller: Any, name: str, arguments: Any, signal: Any, on_update: Any) -> CallOutcome:
        """Run a callable tool for the call `caller` (NEST)."""
        ...
