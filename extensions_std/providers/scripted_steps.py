"""The words of a script: actions, steps, guards, and what is refused (FAUX-3, FAUX-22, FAUX-25)."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, get_args

import attrs

from camshaft.actors.api import (
    EMPTY,
    AssistantMessage,
    Emit,
    ModelRequest,
    Signal,
    StreamItem,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    UserMessage,
    text_of,
)
from camshaft.extensions_std.providers.scripted_records import ScriptState

# -- actions -----------------------------------------------------------------------------


def _require_seconds(_sleep: Any, _field: Any, value: float) -> None:
    if not isinstance(value, int | float) or not value >= 0:
        raise TypeError(f"Sleep({value!r}); expected seconds, at least 0")


@attrs.frozen
class Sleep:
    """Wait; an abort ends the wait."""

    seconds: float = attrs.field(validator=_require_seconds)


@attrs.frozen
class WaitGate:
    """Wait until `ScriptedProvider.open_gate(name)` was called, or the request is aborted."""

    name: str


@attrs.frozen
class OpenGate:
    """Open a gate."""

    name: str


def _require_text(_fail: Any, _field: Any, value: str) -> None:
    if not isinstance(value, str):
        raise TypeError(f"Fail({value!r}) has no text; write Fail({str(value)!r}), or let a function of the script raise it")


@attrs.frozen
class Fail:
    """End with stop reason `error`; with a status the text becomes `STATUS TEXT`, as HTTP errors are told."""

    text: str = attrs.field(validator=_require_text)
    """Raises TypeError for anything else, an exception for example."""
    status: int | None = None


@attrs.frozen
class Drop:
    """End without a terminal item, as a dropped connection does."""


@attrs.frozen
class Hang:
    """Wait until the request is aborted."""


@attrs.frozen
class Call:
    """Run a function of the test at this point; what it raises fails the request."""

    body: Callable[[], Awaitable[None] | None]


@attrs.frozen
class Respond:
    """What handlers of `after_provider_response` see of this answer; the first action of a list (FAUX-23).

    Without it they see status 200, or that of a `Fail` which comes first, and no headers.
    """

    status: int = 200
    headers: Mapping[str, str] = EMPTY


@attrs.frozen
class Malformed:
    """Send anything, whether it is a stream item or not: what a broken adapter would do (FAUX-22)."""

    value: object


Action = StreamItem | Sleep | WaitGate | OpenGate | Fail | Drop | Hang | Call | Respond | Malformed

LIVE_ARGUMENTS: Final = 3
"""Of a function that emits for itself; others take one, or two."""

# -- steps -------------------------------------------------------------------------------

Reply = AssistantMessage | Sequence[Action]
"""What is played: a message, or actions."""
Answer = Callable[[ModelRequest], Reply | Awaitable[Reply]] | Callable[[ModelRequest, ScriptState], Reply | Awaitable[Reply]]
Live = Callable[[ModelRequest, Signal, Emit], Awaitable[None]]


@attrs.frozen(kw_only=True)
class When:
    """A step for some requests only (FAUX-25): for those that everything given here fits."""

    step: "Reply | Answer | Live"
    model: str | None = None
    """Its id, or `provider/id`."""
    session: str | None = None
    """The id of the session."""
    contains: str | None = None
    """A part of the newest user message."""
    test: Callable[[ModelRequest], bool] | None = None
    """What it raises fails the request, and the step stays."""
    repeats: bool = False
    """Whether it stays in the script when it was taken; then it does not count as left over."""

    def fits(self, request: ModelRequest) -> bool:
        """Whether the step is for this request. O(messages since the newest of the user)."""
        if self.model not in (None, request.model.id, request.model.reference):
            return False
        if self.session not in (None, request.options.session_id):
            return False
        if self.contains is not None and self.contains not in _newest_user_text(request):
            return False
        return self.test is None or bool(self.test(request))


Step = Reply | Answer | Live | When

PLAIN: Final = (*get_args(StreamItem), Sleep, WaitGate, OpenGate, Fail, Drop, Hang, Call, Malformed)
"""Actions that may stand anywhere in a list."""


def when(  # noqa: PLR0913  # conditions, all by name and all optional
    step: "Reply | Answer | Live",
    *,
    model: str | None = None,
    session: str | None = None,
    contains: str | None = None,
    test: Callable[[ModelRequest], bool] | None = None,
    repeats: bool = False,
) -> When:
    """A step for some requests only; see `When`. Without a condition it fits all."""
    return When(step=step, model=model, session=session, contains=contains, test=test, repeats=repeats)


def checked_steps(steps: Iterable[Step]) -> list[Step]:
    """The steps as a list. Raises TypeError for what is no step; the text says what to write instead."""
    if isinstance(steps, str | AssistantMessage | When | Mapping) or not isinstance(steps, Iterable):
        raise TypeError(f"the steps are {steps!r}; write a list of steps, for example [assistant('hello')]")
    found = list(steps)
    for step in found:
        wrong = _wrong(step.step if isinstance(step, When) else step)
        if wrong is not None:
            raise TypeError(wrong)
    return found


def checked_reply(reply: object, function: object) -> Reply:
    """What a function of the script answered. Raises TypeError if that cannot be played."""
    is_reply = isinstance(reply, AssistantMessage) or (isinstance(reply, list | tuple) and _wrong_actions(reply) is None)
    if is_reply:
        return reply  # type: ignore[return-value]  # a message, or actions
    name = getattr(function, "__name__", repr(function))
    hint = (
        f"assistant({reply!r})" if isinstance(reply, str | TextBlock | ThinkingBlock | ToolCall) else "assistant(...) or a list of actions"
    )
    raise TypeError(f"the scripted function {name} answered {reply!r}; expected {hint}")


def parameters_of(function: Callable[..., Any]) -> int:
    """How many arguments a function of the script takes: those without a default; of one that cannot be asked, one."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return 1
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [each for each in parameters if each.kind in positional and each.default is inspect.Parameter.empty]
    return len(required) or (1 if any(each.kind in (*positional, inspect.Parameter.VAR_POSITIONAL) for each in parameters) else 0)


def live_of(step: Any) -> Live | None:
    """The step if it is a function that emits for itself."""
    return step if callable(step) and parameters_of(step) == LIVE_ARGUMENTS else None


def response_of(step: object) -> Respond:
    """What handlers see of the response before the first item."""
    actions = step if isinstance(step, list | tuple) else ()
    first = next((each for each in actions if not isinstance(each, Sleep | WaitGate | OpenGate | Call)), None)
    if isinstance(first, Respond):
        return first
    return Respond(first.status) if isinstance(first, Fail) and first.status is not None else Respond()


def shown(step: object) -> str:
    """A step in an error: the text of an answer that has one, else everything."""
    if isinstance(step, When):
        terms = {name: getattr(step, name) for name in ("model", "session", "contains") if getattr(step, name) is not None}
        told = [*[f"{name}={value!r}" for name, value in terms.items()], *(["test=…"] if step.test is not None else [])]
        return f"when({', '.join([shown(step.step), *told])})"
    text = text_of(step.content) if isinstance(step, AssistantMessage) else ""
    return f"assistant({text!r})" if text else repr(step)


def _wrong(step: object) -> str | None:
    """What is wrong with a step. A text would be played as a list of actions, letter by letter."""
    if isinstance(step, str | TextBlock | ThinkingBlock | ToolCall):
        return f"a step is {step!r}; write assistant({step!r})"
    if isinstance(step, (*PLAIN, Respond)):
        return f"a step is the action {step!r}; write a list of actions, [{step!r}]"
    if isinstance(step, BaseException):
        return f"a step is the exception {step!r}; write [Fail({str(step)!r})]"
    if isinstance(step, tuple | list):
        return _wrong_actions(step)
    if isinstance(step, AssistantMessage):
        return None
    if callable(step) and not isinstance(step, type):
        count = parameters_of(step)
        return (
            None
            if 1 <= count <= 3
            else f"the function {step!r} takes {count} arguments; expected (request), (request, state) or (request, signal, emit)"
        )
    return f"a step is {step!r}; expected assistant(...), a function of the request, or a list of actions"


def _wrong_actions(actions: Sequence[object]) -> str | None:
    for index, item in enumerate(actions):
        if isinstance(item, Respond) and index > 0:
            return f"{item!r} is action {index + 1} of a list; it says how the answer begins, and comes first"
        if not isinstance(item, (*PLAIN, Respond)):
            return f"a list of actions holds {item!r}; expected stream items, Sleep, Fail, Hang and the like"
    return None


def _newest_user_text(request: ModelRequest) -> str:
    messages = request.messages
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, UserMessage):
            return text_of(message.content)
    return ""
