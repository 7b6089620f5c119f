"""Extensions that misbehave, in every hook there is: the next prompt is answered, and nothing is left running.

Each handler is called by its hook until its extension is quarantined: by the conversation where a prompt does it, and
by a dispatch of the test for all of them.
"""

from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.host import Limits, WatchedUi
from camshaft.actors.standing import CallEnded, ExtensionQuarantined, TooManyActions
from camshaft.extensions_std.providers.scripted import assistant, tool_call
from camshaft.kernel.hooks import HOOKS
from tests.actors.running import Running, opened, said, simulate, tool
from tests.kernel.dispatching import SUBJECTS

DEADLINE_S = 5.0
ACTIONS_MAX = 20
STRIKES_MAX = 3
LIMITS = Limits(hook_deadline_s=DEADLINE_S, extension_actions_max=ACTIONS_MAX, strikes_max=STRIKES_MAX)
PATH = "<inline:x0>"
OK = {"content": [{"type": "text", "text": "ok"}]}
GATES = {"tool_call", "user_bash"}
SHOWN_ONLY = {name for name, row in HOOKS.items() if row.result is None}
"""What their handlers return is ignored, so that no type of it is wrong."""
ANYTHING = {name for name, row in HOOKS.items() if row.result is object}


async def execute(*_: Any) -> Any:
    return OK


@attrs.define
class Misbehaviour:
    """An extension with one handler, and what became of its calls."""

    kind: str
    hook: str
    refused: list[str] = attrs.field(factory=list)
    api: Any = None
    context: Any = None

    def setup(self, api: Any) -> None:
        self.api = api
        api.on(self.hook, getattr(self, self.kind))

    async def hang(self, _event: Any, _ctx: Any) -> None:
        await trio.sleep_forever()

    async def ignore_the_end(self, _event: Any, _ctx: Any) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(1000)
        self.act(None)

    def fail(self, _event: Any, _ctx: Any) -> None:
        raise ValueError("bad")

    async def fail_later(self, _event: Any, _ctx: Any) -> None:
        await trio.sleep(1)
        raise ValueError("bad")

    def flood(self, _event: Any, ctx: Any) -> None:
        for number in range(10_000):
            self.api.append_entry("flood", number)
            self.api.send_message({"custom_type": "flood", "content": "x"}, trigger_turn=False)
            ctx.ui.notify("flood")

    def wrong_type(self, _event: Any, _ctx: Any) -> Any:
        return 3.5

    async def act_late(self, _event: Any, ctx: Any) -> None:
        self.context = ctx
        try:
            await trio.sleep_forever()
        finally:
            self.act(ctx)

    def act(self, ctx: Any) -> None:
        """What must not count any more."""
        calls: list[Callable[[], Any]] = [
            lambda: self.api.append_entry("late"),
            lambda: self.api.send_user_message("late"),
            lambda: self.api.on("agent_start", print),
        ]
        calls += [] if ctx is None else [ctx.is_idle, ctx.abort, lambda: ctx.ui.notify("late"), lambda: ctx.start_task(execute)]
        for call in calls:
            try:
                call()
            except (CallEnded, ExtensionQuarantined) as error:
                self.refused.append(type(error).__name__)


async def provoked(running: Running, hook: str) -> None:
    """Calls the handlers of a hook until their extension is quarantined."""
    host = running.seat._parts.host
    for _ in range(STRIKES_MAX):
        subject = SUBJECTS.get(hook, lambda: None)()
        if HOOKS[hook].awaited:
            await host.dispatch(hook, subject)
        else:
            host.notify(hook, subject)
            await host.drained()


@attrs.frozen
class After:
    """What is there after the extension misbehaved, and a prompt."""

    said: list[tuple[str | None, str]]
    errors: list[tuple[str, str, str]]
    quarantined: tuple[str, ...]
    diagnostics: list[str]
    abandoned: tuple[str, ...]
    entries: int
    tasks: int


async def misbehaved(misbehaviour: Misbehaviour) -> After:
    async with opened([], misbehaviour.setup, limits=LIMITS, tools=[tool(execute)], ui=WatchedUi(), mode="tui") as running:
        await provoked(running, misbehaviour.hook)
        running.provider.set_responses([assistant(tool_call("work")), assistant("done")])
        seen = len(running.seat.context_messages)
        await running.seat.prompt("go")
        await trio.sleep(10_000)
        seat, kernel = running.seat, running.kernel
        kinds = [getattr(entry, "custom_type", None) for entry in seat.state.tree.entries()]
        errors = [(event.extension_path, event.event, event.error) for event in seat.errors]
        return After(
            said=said(seat.context_messages[seen:]),
            errors=errors,
            quarantined=seat.quarantined,
            diagnostics=[each.message for each in seat.diagnostics],
            abandoned=kernel.abandoned,
            entries=kinds.count("flood") + kinds.count("late"),
            tasks=len(kernel._nursery.child_tasks),
        )
    raise AssertionError


def require_quarantine(after: After, hook: str) -> None:
    """It is withdrawn, the report says so twice and names extension and hook, and a prompt is answered all the same."""
    assert after.quarantined == (PATH,)
    assert {(path, event) for path, event, _ in after.errors} == {(PATH, hook)}
    assert len([text for _, _, text in after.errors if text.startswith("the extension is quarantined after 3 failures in a row")]) == 1
    assert [text for text in after.diagnostics if "quarantined" in text][0].startswith(f"{PATH}: the extension is quarantined after 3")
    require_answer(after, blocked=hook == "tool_call")


def require_answer(after: After, *, blocked: bool = False) -> None:
    """The whole answer, and nothing that still runs."""
    roles = [role for role, _ in after.said if role != "custom"]
    result = next(text for role, text in after.said if role == "toolResult")
    assert roles == ["user", "assistant", "toolResult", "assistant"]
    assert after.said[-1] == ("assistant", "done") or blocked
    assert ("is quarantined" in result) if blocked else (result == "ok")
    assert (after.tasks, after.abandoned) == (0, ())


@pytest.mark.rule("A27", "EVT-5")
@pytest.mark.parametrize("hook", HOOKS)
def test_a_handler_that_hangs_is_ended_and_its_extension_withdrawn(hook: str) -> None:
    after = simulate(misbehaved, Misbehaviour("hang", hook))

    require_quarantine(after, hook)
    assert after.errors[0][2] == "the handler was ended by force, because it did not end within 5 s"


@pytest.mark.rule("A27", "ERR-8")
@pytest.mark.parametrize("hook", HOOKS)
def test_a_handler_that_ignores_its_end_is_left_behind_and_acts_for_nobody_any_more(hook: str) -> None:
    misbehaviour = Misbehaviour("ignore_the_end", hook)

    after = simulate(misbehaved, misbehaviour)

    require_quarantine(after, hook)
    assert after.errors[0][2].endswith("; it ignores that and goes on, and nothing it does counts any more")
    assert set(misbehaviour.refused) <= {"CallEnded", "ExtensionQuarantined"}
    assert len(misbehaviour.refused) == STRIKES_MAX * 3
    assert after.entries == 0


@pytest.mark.rule("EVT-5", "ERR-1", "ERR-5")
@pytest.mark.parametrize("kind", ["fail", "fail_later"])
@pytest.mark.parametrize("hook", HOOKS)
def test_a_handler_that_raises_again_and_again_is_withdrawn(hook: str, kind: str) -> None:
    after = simulate(misbehaved, Misbehaviour(kind, hook))

    require_quarantine(after, hook)
    assert [text for _, _, text in after.errors][:STRIKES_MAX] == ["bad"] * STRIKES_MAX


@pytest.mark.parametrize("hook", HOOKS)
def test_a_handler_that_floods_is_refused_at_a_limit_and_withdrawn(hook: str) -> None:
    after = simulate(misbehaved, Misbehaviour("flood", hook))

    require_quarantine(after, hook)
    assert after.errors[0][2] == str(TooManyActions(PATH, ACTIONS_MAX))
    assert 0 < after.entries <= STRIKES_MAX * ACTIONS_MAX


@pytest.mark.parametrize("hook", [hook for hook in HOOKS if hook not in SHOWN_ONLY | ANYTHING])
def test_a_handler_that_returns_a_wrong_type_fails(hook: str) -> None:
    after = simulate(misbehaved, Misbehaviour("wrong_type", hook))

    require_quarantine(after, hook)
    assert after.errors[0][2].startswith(f"{hook} handler returned float: ")


@pytest.mark.parametrize("hook", sorted(SHOWN_ONLY))
def test_what_a_handler_returns_to_nobody_does_no_harm(hook: str) -> None:
    after = simulate(misbehaved, Misbehaviour("wrong_type", hook))

    assert (after.errors, after.quarantined) == ([], ())
    require_answer(after)


@pytest.mark.rule("A27", "A28")
@pytest.mark.parametrize("hook", HOOKS)
def test_calls_of_a_handler_that_was_ended_and_of_a_withdrawn_extension_do_nothing(hook: str) -> None:
    misbehaviour = Misbehaviour("act_late", hook)

    after = simulate(misbehaved, misbehaviour)

    require_quarantine(after, hook)
    assert misbehaviour.refused == ["CallEnded"] * 7 * STRIKES_MAX
    assert after.entries == 0


def test_a_handler_that_floods_with_prompts_is_answered_as_often_as_it_may_act_and_no_more() -> None:
    def setup(api: Any) -> None:
        def flood(_event: Any, _ctx: Any) -> None:
            unsubscribe()
            for number in range(10_000):
                api.send_user_message(f"flood {number}", deliver_as="followUp")

        unsubscribe = api.on("agent_start", flood)

    async def flooded() -> tuple[list[str], int]:
        async with opened([assistant("done")] * (ACTIONS_MAX + 2), setup, limits=LIMITS) as running:
            await running.seat.prompt("go")
            await running.seat.prompt("again")
            return [text for _, _, text in running.errors()], len(said(running.seat.context_messages))
        raise AssertionError

    assert simulate(flooded) == ([str(TooManyActions(PATH, ACTIONS_MAX))], 2 * (ACTIONS_MAX + 2))
