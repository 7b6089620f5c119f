"""Faults met in the field, each as a whole run: the markers name the case.

Cases of the store stand beside the store, those of tools beside the tools, those of aborts in test_run_faults.py.
"""

import gc
from itertools import permutations
from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.host import Limits
from camshaft.actors.simulation.log_files import MemoryLogFiles, files_of
from camshaft.extensions_std.providers.scripted import Hang, assistant, tool_call
from camshaft.kernel.boundary import BoundaryResult
from camshaft.kernel.entries import CustomDraft, CustomEntry, CustomMessageDraft
from camshaft.kernel.hook_events import CustomInput
from camshaft.kernel.messages import ToolResultMessage
from camshaft.kernel.stream import Ended, Started, ToolCallDelta, ToolCallEnded, ToolCallStarted
from camshaft.kernel.tools import ToolResult
from tests.actors.running import NO_RETRY, Running, handling, opened, results, said, simulate, tool

OK = {"content": [{"type": "text", "text": "ok"}]}


async def reopened(files: MemoryLogFiles) -> tuple[list[tuple[str | None, str]], list[str]]:
    async with opened([], files=files) as running:
        return said(running.seat.context_messages), [event.message for event in running.seat.found]
    raise AssertionError


@pytest.mark.rule("A04")
def test_a_prompt_without_a_reply_is_there_after_a_crash_with_the_model_chosen_before_it() -> None:
    files = MemoryLogFiles()
    kept: list[MemoryLogFiles] = []

    async def crashed() -> None:
        async with opened([[Hang()]], files=files) as running:
            running.seat.set_thinking_level("off")
            await running.seat.submit("go")
            await trio.sleep(1)
            kept.append(after_death(files))

    simulate(crashed)
    found, told = simulate(reopened, kept[0])

    assert found == [("user", "go")]
    assert len(told) == 1 and "the last run was cut off (run " in told[0]


def after_death(files: MemoryLogFiles) -> MemoryLogFiles:
    """What another process finds: the same contents, no handles and no locks."""
    return files_of(files.photo())


@pytest.mark.rule("A06", "MSG-8")
def test_what_was_handed_over_is_stored_as_it_was_then() -> None:
    details, state, draft = {"list": [1]}, {"list": [1]}, {"list": [1]}

    async def work(*_: Any) -> Any:
        return ToolResult(content=(), details=details)

    def setup(api: Any) -> None:
        def turn_end(event: Any, _ctx: Any) -> Any:
            api.append_entry("state", state)
            for each in (details, state):
                each["list"].append(2)
            return BoundaryResult(entries=(*event.entries, CustomDraft(custom_type="draft", data=draft)))

        api.on("turn_end", turn_end)
        api.on("agent_end", lambda *_: draft["list"].append(2))

    async def run() -> list[Any]:
        async with opened([assistant(tool_call("work")), assistant("done")], setup, tools=[tool(work)]) as running:
            await running.seat.prompt("go")
            entries = list(running.seat.state.tree.entries())
            stored = [message.details for message in running.seat.context_messages if isinstance(message, ToolResultMessage)]
            return stored + [entry.data for entry in entries if isinstance(entry, CustomEntry)]
        raise AssertionError

    found = simulate(run)

    assert found == [{"list": (1,)}, {"list": (1,)}, {"list": (1,)}, {"list": (1, 2)}, {"list": (1,)}]


ACTS = ("custom", "steer", "edit", "end")


@pytest.mark.rule("A10", "LOOP-36", "SES-61")
@pytest.mark.parametrize("order", list(permutations(ACTS)), ids="-".join)
def test_nothing_comes_between_a_call_and_its_result(order: tuple[str, ...]) -> None:
    async def run() -> list[tuple[str | None, str]]:
        end = trio.Event()

        async def work(*_: Any) -> Any:
            await end.wait()
            return OK

        script = [assistant(tool_call("work", id="a")), assistant("done"), assistant("done")]
        async with opened(script, tools=[tool(work)]) as running:
            seat = running.seat
            acts = {
                "custom": lambda: seat.send_message(CustomInput(custom_type="k", content="quiet"), False, None),
                "steer": lambda: seat.send_user_message("steered", (), "steer", False),
                "edit": lambda: seat.append_entry("k", 1),
                "end": end.set,
            }
            await seat.submit("go")
            await trio.sleep(1)
            for name in order:
                acts[name]()
                await trio.lowlevel.checkpoint()
            await seat.wait_idle()
            return said(seat.context_messages)
        raise AssertionError

    found = simulate(run)

    assert found[:3] == [("user", "go"), ("assistant", ""), ("toolResult", "ok")]
    assert sorted([message for message in found[3:] if message[0] != "assistant"], key=str) == [("custom", "quiet"), ("user", "steered")]


ARGUMENTS = '{"path": "a", "n": 1}'


@pytest.mark.rule("A15", "LOOP-21", "LOOP-23")
@pytest.mark.parametrize("cut", range(len(ARGUMENTS) + 1))
@pytest.mark.parametrize("reason", ["length", "error", "aborted"])
def test_a_call_of_an_unfinished_answer_is_never_run(reason: Any, cut: int) -> None:
    ran: list[str] = []

    async def work(call_id: str, *_: Any) -> Any:
        ran.append(call_id)
        return OK

    whole = [ToolCallStarted(0, "a", "work"), ToolCallDelta(0, ARGUMENTS), ToolCallEnded(0)]
    half = [ToolCallStarted(1, "b", "work"), ToolCallDelta(1, ARGUMENTS[:cut])]
    unfinished: Any = [Started(), *whole, *half, Ended(reason, None if reason == "length" else "broke")]

    async def run() -> tuple[list[tuple[str, bool]], int]:
        async with opened([unfinished, assistant("done")], tools=[tool(work)]) as running:
            await running.seat.prompt("go")
            answered = [(call_id, is_error) for call_id, _, is_error in results(running.seat.context_messages)]
            return answered, running.provider.state.call_count
        raise AssertionError

    answered, requests = simulate(run)

    assert ran == []
    assert (answered, requests) == (([("a", True), ("b", True)], 2) if reason == "length" else ([], 1))


async def leaks(*_: Any) -> Any:
    """Raises the cancellation of a scope that is over."""
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.lowlevel.checkpoint()
        except trio.Cancelled as cancelled:
            kept = cancelled
            raise
    raise BaseExceptionGroup("late", [ValueError("bad"), kept])


@pytest.mark.rule("A29", "TOOL-27")
@pytest.mark.parametrize(
    "given",
    [
        None,
        3,
        {"content": [{"text": "no type"}]},
        {"content": "text"},
        {"content": [3]},
        {"details": {1, 2}},
        {"details": {1: 2}},
        {"is_error": "no"},
        ToolResult(content="text"),  # type: ignore[arg-type]  # the mistake
        ToolResult(content=(assistant("x"),)),  # type: ignore[arg-type]  # the mistake
        ToolResult(details=object()),
        assistant("x"),
    ],
    ids=lambda given: str(given).partition(" object at ")[0],
)
def test_a_malformed_result_is_replaced_by_an_error_and_the_log_loads(given: Any) -> None:
    async def gives(*_: Any) -> Any:
        return given

    assert malformed(gives)[:1] == [("a", True)]


@pytest.mark.rule("A29")
def test_a_cancellation_that_is_not_ours_is_an_error_of_the_tool() -> None:
    assert malformed(leaks) == [("a", True)]


@pytest.mark.rule("A29", "TOOL-27")
@pytest.mark.parametrize("given", [{}, {"content": None}, ToolResult(), {"details": None}], ids=str)
def test_a_result_without_content_has_an_empty_list(given: Any) -> None:
    async def gives(*_: Any) -> Any:
        return given

    assert malformed(gives) == [("a", False)]


def malformed(execute: Any) -> list[tuple[str, bool]]:
    """Results after one call, with the same found in the log; the next prompt is answered."""
    files = MemoryLogFiles()

    async def run() -> list[tuple[str | None, str]]:
        script = [assistant(tool_call("work", id="a")), assistant("done"), assistant("again")]
        async with opened(script, files=files, tools=[tool(execute)]) as running:
            await running.seat.prompt("go")
            await running.seat.prompt("next")
            found.extend([(call_id, is_error) for call_id, _, is_error in results(running.seat.context_messages)])
            return said(running.seat.context_messages)
        raise AssertionError

    found: list[tuple[str, bool]] = []
    before = simulate(run)
    after, _ = simulate(reopened, files)

    assert after == before and before[-1] == ("assistant", "again")
    return found


def continues(event: Any, _ctx: Any) -> Any:
    note = CustomMessageDraft(custom_type="more", content="go on", display=False)
    return BoundaryResult(entries=(*event.entries, note), continue_=True)


@pytest.mark.rule("A30", "BND-35")
@pytest.mark.parametrize("hook", ["turn_end", "agent_before_settle"])
@pytest.mark.parametrize("limit", [0, 1, 50])
def test_a_handler_that_always_says_continue_is_stopped_at_the_limit_and_named(hook: str, limit: int) -> None:
    async def run() -> tuple[int, list[tuple[str, str, str]], int]:
        script = [assistant("done") for _ in range(100)]
        async with opened(script, handling(hook, continues), limits=Limits(continuations_max=limit)) as running:
            await running.seat.prompt("go")
            return running.provider.state.call_count, running.errors(), running.count("agent_settled")
        raise AssertionError

    requests, errors, settled = simulate(run)

    assert (requests, settled) == (limit + 1, 1)
    assert [(path, text.partition(",")[0]) for path, _, text in errors] == [
        ("<inline:x0>", f"the run was continued {limit} times by extensions")
    ]


@pytest.mark.rule("BND-33", "BND-34")
@pytest.mark.parametrize(("hook", "requests"), [("turn_end", 1), ("agent_before_settle", 2)])
def test_a_failed_turn_is_continued_by_the_settle_boundary_only(hook: str, requests: int) -> None:
    async def run() -> int:
        script: list[Any] = [[Ended("error", "bad key")], assistant("done")]
        once = [continues]
        async with opened(script, handling(hook, lambda *given: once.pop()(*given) if once else None)) as running:
            await running.seat.prompt("go")
            return running.provider.state.call_count
        raise AssertionError

    assert simulate(run) == requests


@pytest.mark.rule("A30", "LOOP-64", "LOOP-65")
@pytest.mark.parametrize("hook", ["turn_end", "agent_before_settle"])
def test_an_abort_beats_a_handler_that_always_says_continue(hook: str) -> None:
    async def run() -> tuple[bool, list[str]]:
        async with opened([assistant("done") for _ in range(1000)], handling(hook, continues)) as running:

            def stop(event: Any) -> None:
                if event.type == "turn_end" and running.count("turn_end") == 5:
                    running.seat.request_abort()

            running.seat.subscribe(stop)
            await running.seat.prompt("go")
            return running.heard[-1].aborted, running.types()[-1:]
        raise AssertionError

    assert simulate(run) == (True, ["agent_settled"])


ENDINGS: dict[str, Any] = {
    "a retry": ([[Ended("error", "529 overloaded_error")], assistant("done")], None),
    "a follow-up": ([assistant("done"), assistant("more")], "followUp"),
    "a continuation": ([assistant("done"), assistant("more")], "continue"),
    "work from agent_settled": ([assistant("done"), assistant("more")], "settled"),
}


@pytest.mark.rule("A32", "LOOP-33", "LOOP-37", "LOOP-42")
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_run_is_over_at_its_one_agent_settled_and_idle_means_all_is_done(ending: str) -> None:
    script, act = ENDINGS[ending]

    def setup(api: Any) -> None:
        left = [1]

        def once(name: str, reply: Any) -> Any:
            return lambda *_: reply() if act == name and left and left.pop() else None

        api.on("agent_end", once("followUp", lambda: api.send_user_message("more", deliver_as="followUp")))
        api.on("agent_before_settle", once("continue", lambda: continues(Empty(), None)))
        api.on("agent_settled", once("settled", lambda: api.send_user_message("more")))

    async def run() -> tuple[list[str], bool, int]:
        settings = attrs.evolve(NO_RETRY, retry=attrs.evolve(NO_RETRY.retry, enabled=True))
        async with opened(script, setup, settings=settings) as running:
            await running.seat.submit("go")
            await running.seat.wait_idle()
            kinds, idle = running.types(), running.seat.is_idle
            await trio.sleep(100)
            assert running.types() == kinds, "nothing follows"
            return kinds, idle, running.provider.state.call_count
        raise AssertionError

    kinds, idle, requests = simulate(run)

    assert (kinds[-1], idle, requests) == ("agent_settled", True, 2)
    assert kinds.count("agent_settled") == (2 if act == "settled" else 1)
    assert kinds.count("agent_start") == 2


@attrs.frozen
class Empty:
    """An event without proposals."""

    entries: tuple[Any, ...] = ()


@pytest.mark.slow
@pytest.mark.rule("A39")
def test_tasks_and_objects_are_back_after_every_run() -> None:
    async def work(*_: Any) -> Any:
        return OK

    async def measured(running: Running, runs: int) -> tuple[int, int]:
        for number in range(runs):
            running.provider.append_responses([assistant(tool_call("work", id=f"c{number}")), assistant("done")])
            async with running.seat.follow():
                await running.seat.prompt("go")
        running.heard.clear()
        running.provider.requests.clear()
        gc.collect()
        living = [each for each in gc.get_objects() if type(each).__name__ in LIVE]
        return trio.lowlevel.current_statistics().tasks_living, len(living)

    async def run() -> list[tuple[int, int]]:
        async with opened([], tools=[tool(work)]) as running:
            return [await measured(running, runs) for runs in (5, 20, 20)]
        raise AssertionError

    first, second, third = simulate(run)

    assert first == second == third


LIVE = {"AgentLoop", "AbortSignal", "Follower", "CancelScope", "Nursery", "Task", "_Sink", "_Call", "Bounds"}
"""What a run makes and must not leave behind."""
