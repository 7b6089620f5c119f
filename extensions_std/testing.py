"""For tests of extensions: a whole conversation in one call, with a scripted model and scripted people.

    def test_the_model_can_count():
        script = [assistant(tool_call("count_words", {"text": "one two"})), assistant("Two.")]
        played = rehearse(words.setup, script=script, prompts=["How many?"])
        assert ("toolResult", "2 words") in played.said

Everything is real but two things: the model, which says what the script says, and the person, who gives
`answers`. The session is in memory. What a test forgets to look at fails it by itself: an extension that did
not load, a handler that failed, an answer of the script that was not asked for, a conversation that hangs. For
finer work open a conversation yourself: `rehearse` uses the public faces only.

This module is the one door for tests: whatever a script is made of is here too, and so are a world without chance
(`scripted_world`), HTTP that a test writes down (`ScriptedHttp`), and models that speak over it (`wire_model`).
`design/testing-an-agent.md` shows all of it at work.
"""

import inspect
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import trio
import trio.testing

from camshaft.actors.api import BranchSummaryMessage, CompactionSummaryMessage, Entry, Message, text_of
from camshaft.actors.host import (
    DialogOpened,
    Event,
    ExtensionErrorEvent,
    ExtensionSource,
    InlineExtension,
    Notified,
    OpenOptions,
    Provider,
    Seat,
    WatchedUi,
    World,
    open_kernel,
)
from camshaft.extensions_std.providers.scripted import (
    Call,
    Drop,
    Fail,
    Hang,
    Malformed,
    OpenGate,
    RecordedRequest,
    Respond,
    ScriptedProvider,
    ScriptState,
    Sleep,
    Step,
    WaitGate,
    assistant,
    faux_model,
    message_items,
    text,
    text_items,
    thinking,
    thinking_items,
    tool_call,
    tool_call_items,
    when,
)
from camshaft.extensions_std.providers.scripted_file import ScriptFileError, load_script, script_of
from camshaft.extensions_std.providers.scripted_http import (
    Cut,
    HttpAnswer,
    Pause,
    ScriptedHttp,
    Silence,
    json_answer,
    split_at,
    split_every,
    with_pauses,
)
from camshaft.extensions_std.providers.scripted_wire import wire_stream
from camshaft.extensions_std.testing_world import scripted_world, wire_model
from camshaft.extensions_std.tools import builtin_tools

__all__ = [
    "Answer",
    "Call",
    "Cut",
    "Drop",
    "Extension",
    "Fail",
    "Hang",
    "HttpAnswer",
    "LIMIT_S",
    "Malformed",
    "OpenGate",
    "Pause",
    "Played",
    "RecordedRequest",
    "Respond",
    "Scene",
    "ScriptFileError",
    "ScriptState",
    "ScriptedHttp",
    "ScriptedProvider",
    "Silence",
    "Sleep",
    "Step",
    "WaitGate",
    "assistant",
    "faux_model",
    "json_answer",
    "load_script",
    "message_items",
    "rehearse",
    "script_of",
    "scripted_world",
    "split_at",
    "split_every",
    "text",
    "text_items",
    "thinking",
    "thinking_items",
    "tool_call",
    "tool_call_items",
    "when",
    "wire_model",
    "wire_stream",
    "with_pauses",
]

LIMIT_S: Final = 60.0
"""A conversation that takes longer hangs, most likely: then a test should fail, and not stand still."""

JUMPING_LIMIT_S: Final = 7 * 24 * 3600.0
"""The same on a clock that jumps: there a week of waiting takes no time, and what hangs is over at once."""

Extension = Callable[[Any], Any] | str | Path
"""A `setup` function, or the path of a file or folder that has one."""
Scene = Callable[[Seat], Awaitable[Any]]
"""What happens in a conversation that is open."""
Answer = str | bool | None
"""Of a person: a text, yes or no, or None for a dialog that is cancelled."""


@attrs.frozen(kw_only=True)
class Played:
    """What a conversation left."""

    said: tuple[tuple[str, str], ...]
    """Role and text of each message in context but the system prompt: `user`, `assistant`, `custom`, …; of summaries what they say."""
    entries: tuple[Entry, ...]
    """The session, of all branches."""
    shown: tuple[str, ...]
    """What `ctx.ui.notify` told people; nothing without `answers`, because then nobody is there."""
    asked: tuple[str, ...]
    """Titles of the dialogs that people were asked."""
    errors: tuple[ExtensionErrorEvent, ...]
    """What extensions did wrong; something only with `allow_errors`."""
    events: tuple[Event, ...]
    """Everything that subscribers heard, from the opening on."""
    requests: tuple[RecordedRequest, ...]
    """What a scripted model was asked; of another one nothing is known here."""


def rehearse(  # noqa: PLR0913  # what a conversation has, all by name and all optional
    *extensions: Extension,
    script: Sequence[Step] = (),
    prompts: Sequence[str] = (),
    answers: Sequence[Answer] | None = None,
    scene: Scene | None = None,
    allow_errors: bool = False,
    limit_s: float | None = None,
    jumping: bool = False,
    provider: Provider | None = None,
    world: World | None = None,
    **options: Any,
) -> Played:
    """Plays one conversation: sends the prompts, one after the other, then plays the scene.

    `answers` are given to dialogs in order; without them nobody is there to ask, with `[]` somebody is, who is asked nothing.
    `options` are fields of OpenOptions, such as `flags`, `cwd` (default: this folder) and `builtin_tools` (default: the usual ones).

    `jumping`: the clock jumps over every wait; for extensions that sleep, and that use neither files nor programs meanwhile.

    `provider`: whom to ask instead of a plain scripted model, with a pace of its own or over the wire; a scripted one gets `script`
    after what it has. `world`: the ports; `scripted_world()` leaves nothing to chance, the default is the real one.

    Raises AssertionError if an extension does not load or, unless `allow_errors`, does something wrong, and if the
    model or the people were asked for more or less than was written down, or it takes longer than `limit_s` (default:
    LIMIT_S; JUMPING_LIMIT_S where the clock jumps).
    Raises TypeError for an argument that cannot be meant, such as one text where a list of them is expected.
    """
    _require_lists({"prompts": prompts, "answers": answers})
    asked = _asked(provider, script)
    patience_s = limit_s if limit_s is not None else JUMPING_LIMIT_S if jumping else LIMIT_S
    person = None if answers is None else _Person(answers=list(answers))
    events: list[Event] = []
    opening = _opening(asked, extensions, options, events, person)

    async def play() -> Played:
        async with open_kernel(world=world) as kernel:
            seat = await kernel.open(opening)
            _require_none([f"{each.path}: {each.error}" + (f" ({each.place})" if each.place else "") for each in seat.load_errors])
            with trio.move_on_after(patience_s) as patience:
                for prompt in prompts:
                    await seat.prompt(prompt)
                if scene is not None:
                    played_out = scene(seat)
                    if not inspect.isawaitable(played_out):
                        raise TypeError(f"scene returned {played_out!r}; expected a function that begins with `async def`")
                    await played_out
                await seat.wait_idle()
            _require_none([f"the conversation did not end within {patience_s:g} s"] if patience.cancelled_caught else [])
            return _played(seat, person, events, asked)
        raise AssertionError

    played: Played = trio.run(play, clock=trio.testing.MockClock(autojump_threshold=0) if jumping else None)
    _require_none([] if allow_errors else [_shown(error) for error in played.errors])
    _require_none([] if person is None else person.left())
    if isinstance(asked, ScriptedProvider):
        asked.assert_exhausted()
    return played


def _opening(
    asked: Provider, extensions: Sequence[Extension], options: Mapping[str, Any], events: list[Event], person: "_Person | None"
) -> OpenOptions:
    given: dict[str, Any] = {"cwd": os.getcwd(), "builtin_tools": builtin_tools(), **options}
    return OpenOptions(
        **given,
        providers=(asked,),
        extensions=tuple([_source(extension) for extension in extensions]),
        listeners=(events.append,) if person is None else (events.append, person.hear),
        ui=None if person is None else person.ui,
    )


def _require_lists(given: Mapping[str, object]) -> None:
    for name, value in given.items():
        if isinstance(value, str):
            raise TypeError(f"{name} is {value!r}; expected a list: {name}=[{value!r}]")


def _asked(provider: Provider | None, script: Sequence[Step]) -> Provider:
    """The model of a conversation, with its script."""
    if provider is not None and not isinstance(provider, ScriptedProvider):
        if script:
            raise TypeError(f"script is given beside the provider {provider!r}, which is not scripted")
        return provider
    scripted = provider or ScriptedProvider(chunked=False)
    scripted.append_responses(script)
    return scripted


def _played(seat: Seat, person: "_Person | None", events: Sequence[Event], model: Provider) -> Played:
    said = [(each.role or "", _text(each)) for each in seat.context_messages if each.role != "system"]
    return Played(
        said=tuple(said),
        entries=seat.session.get_entries(),
        shown=tuple([each.message for each in events if isinstance(each, Notified)]),
        asked=() if person is None else tuple(person.asked),
        errors=seat.errors,
        events=tuple(events),
        requests=tuple(model.requests) if isinstance(model, ScriptedProvider) else (),
    )


def _text(message: Message) -> str:
    """What stands in a message, whatever its kind calls it."""
    if isinstance(message, CompactionSummaryMessage | BranchSummaryMessage):
        return message.summary
    return text_of(getattr(message, "content", ""))


def _source(extension: Extension) -> ExtensionSource | InlineExtension:
    if callable(extension):
        return InlineExtension(name=getattr(extension, "__module__", "extension"), setup=extension)
    if not isinstance(extension, str | Path):
        raise TypeError(f"an extension is {extension!r}; expected its function `setup`, or the path of its file")
    return ExtensionSource(path=os.path.abspath(extension))


def _require_none(faults: Sequence[str]) -> None:
    if faults:
        raise AssertionError("; ".join(faults))


def _shown(error: ExtensionErrorEvent) -> str:
    """As the command line tells it."""
    details = ", ".join([each for each in (error.error_type, f"in {error.event}", error.place) if each])
    return f"{error.extension_path}: {error.error} [{details}]"


@attrs.define(eq=False, kw_only=True)
class _Person:
    """Whoever sits in front of the conversation: answers each dialog as soon as it opens."""

    answers: list[Answer]
    """Not given yet."""
    given: int = attrs.field(init=False)
    """How many there were."""
    ui: WatchedUi = attrs.field(factory=WatchedUi)
    asked: list[str] = attrs.field(factory=list)
    faults: list[str] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.given = len(self.answers)

    def hear(self, event: Event) -> None:
        """A listener."""
        if not isinstance(event, DialogOpened):
            return
        dialog = event.dialog
        self.asked.append(dialog.title)
        answer = self.answers.pop(0) if self.answers else None
        if len(self.asked) > self.given:
            self.faults.append(f"no answer was written down for the {dialog.kind} {dialog.title!r} of {dialog.extension}")
        if answer is None:
            self.ui.cancel(dialog.id)
        else:
            if dialog.read(answer) != answer or type(dialog.read(answer)) is not type(answer):
                self.faults.append(f"answer {answer!r} does not fit the {dialog.kind} {dialog.title!r} of {dialog.extension}")
            self.ui.answer(dialog.id, answer)

    def left(self) -> list[str]:
        """What is wrong in the end."""
        return [*self.faults, *[f"the answer {answer!r} was not asked for" for answer in self.answers]]
