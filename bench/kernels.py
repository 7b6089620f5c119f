"""A kernel, a model and a tool for measuring: nothing in them costs anything."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from camshaft.actors.api import (
    BoundaryResult,
    CustomDraft,
    Emit,
    Ended,
    FrozenDict,
    Model,
    Started,
    TextBlock,
    TextDelta,
    TextEnded,
    TextStarted,
    ToolDefinition,
    ToolResult,
    Usage,
    freeze,
)
from camshaft.actors.host import InlineExtension, Kernel, MemorySession, OpenOptions, OpenSession, Provider, Settings
from camshaft.extensions_std.providers.scripted import ScriptedProvider, assistant, faux_model, tool_call
from camshaft.kernel.settings import CompactionSettings, RetrySettings

SCHEMA: Final = freeze({"type": "object", "properties": {"x": {"type": "number"}}})
WINDOW_TOKENS: Final = 100_000_000
"""No session here comes near it: nothing is compacted."""
QUIET: Final = Settings(compaction=CompactionSettings(enabled=False), retry=RetrySettings(enabled=False))
CHUNK: Final = "abcd efgh ijkl m"
"""Four tokens, as the reference's script cuts them."""
OK: Final = ToolResult(content=(TextBlock(text="ok"),))


async def _noop(*_call: Any) -> ToolResult:
    return OK


NOOP: Final = ToolDefinition(name="noop", label="noop", description="noop", parameters=SCHEMA, execute=_noop)


@attrs.define
class Boundaries:
    """A `turn_end` handler that looks at the preview as handlers do, and returns one more draft."""

    seen: int = 0

    def __call__(self, event: Any, _ctx: Any) -> BoundaryResult:
        """Reads length, last message and last entry: none of it may cost more on a longer session."""
        context = event.context
        self.seen += 1 if len(context.llm_messages) and context.llm_messages[-1] and context.context_entries[-1] else 0
        return BoundaryResult(entries=(*event.entries, CustomDraft(custom_type="bench", data=FrozenDict(n=self.seen))))

    def setup(self, api: Any) -> None:
        """Registers the handler."""
        api.on("turn_end", self)


def model_with(steps: Sequence[Any]) -> ScriptedProvider:
    """A model that gives these answers, reckons no usage and remembers no request: both would grow with the session."""
    model = faux_model(context_window=WINDOW_TOKENS, max_tokens=1_000_000)
    provider = ScriptedProvider(models=(model,), chunked=False, usage=Usage(), records_messages=False)
    provider.set_responses(steps)
    return provider


@attrs.define
class Flood:
    """A model that pushes `count` items of 16 characters and never pauses: what is measured is the kernel."""

    count: int
    name: str = "faux"
    api: str = "faux"
    models: tuple[Model, ...] = (faux_model(),)

    def configured(self) -> bool:
        """Always."""
        return True

    async def stream(self, _request: Any, _signal: Any, emit: Emit) -> None:
        """One text block."""
        await emit(Started())
        await emit(TextStarted(0))
        for _ in range(self.count):
            await emit(TextDelta(0, CHUNK))
        await emit(TextEnded(0))
        await emit(Ended("stop"))


async def warm_up(kernel: Kernel, folder: Path) -> None:
    """One turn with a call in a session of its own, so that what is loaded at first use is not measured."""
    seat = await kernel.open(options(folder, model_with([calls(0), assistant("done")]), setup=Boundaries().setup))
    await seat.prompt("go")
    await seat.close()


def calls(*numbers: int) -> Any:
    """An answer that calls the tool once for each number."""
    return assistant([tool_call("noop", FrozenDict({"x": number})) for number in numbers], stop_reason="toolUse")


def options(folder: Path, provider: Provider, *, setup: Callable[[Any], None] | None = None, **fields: Any) -> OpenOptions:
    """A session in memory with the model and the tool, `setup` as its only extension; `fields` replace."""
    given: dict[str, Any] = {
        "cwd": str(folder),
        "agent_dir": str(folder),
        "session": MemorySession(),
        "settings": QUIET,
        "providers": (provider,),
        "extensions": (InlineExtension(name="bench", setup=setup),) if setup else (),
        "builtin_tools": (NOOP,),
        "tools": ("noop",),
        "model": "faux/faux-1",
        "thinking_level": "off",
        "system_prompt": "You measure.",
        **fields,
    }
    return OpenOptions(**given)


def on_disk(path: Path, policy: str) -> dict[str, Any]:
    """Fields of `options` for a session file."""
    return {"session": OpenSession(path=str(path)), "durability": policy}
