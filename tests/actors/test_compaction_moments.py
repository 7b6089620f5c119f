"""Compactions and navigations that are cancelled, aborted, refused by the log or killed at every single moment.

Whatever happened, the session is untouched or has exactly one complete new group of entries, in memory and in the
file, and the next prompt is answered.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.errors import CommandRefused, StorageError
from camshaft.actors.simulation.log_files import MemoryLogFiles, Operation, Photo, files_of
from camshaft.extensions_std.providers.scripted import Hang
from camshaft.kernel.entries import Entry
from tests.actors.breaking import STEPS_MAX, Breaking
from tests.actors.compacting import FULL, OVERFLOW, answer, entries, failed, talking
from tests.actors.running import Running, handling, opened, simulate

Act = Callable[[Running], Awaitable[Any]]


async def compact(running: Running) -> None:
    """A manual compaction."""
    await running.seat.compact()


async def navigate(running: Running) -> None:
    """A navigation with a summary and a label."""
    target = next(entry.id for entry in entries(running) if entry.type == "message")
    await running.seat.navigate_tree(target, summarize=True, label="here")


GROUPS = {compact: ["compaction"], navigate: ["branch_summary", "label"]}
"""What is appended together."""
SCRIPT = [answer("S"), *[answer("again")] * 3]
HOOKS = ("session_before_compact", "session_compact", "session_compact_failed", "session_before_tree", "session_tree")


async def watches(_event: Any, _ctx: Any) -> None:
    """A handler that waits, so that there is a moment in it."""
    await trio.sleep(0.001)


WATCHING = [handling(hook, watches) for hook in HOOKS]


def group(before: list[Entry], after: list[Entry]) -> list[str]:
    """The types of what was appended; what was there is as it was."""
    assert after[: len(before)] == before
    return [entry.type for entry in after[len(before) :]]


async def is_answered(running: Running) -> bool:
    await running.seat.prompt("next")
    return running.seat.is_idle and entries(running)[-1].type == "message"


@attrs.define(eq=False)
class Steps(trio.abc.Instrument):
    """Calls something when tasks have made so many steps."""

    left: int
    then: Callable[[], None]

    def before_task_step(self, _task: Any) -> None:
        self.left -= 1
        if self.left == 0:
            self.then()


@attrs.frozen
class Stopped:
    """What an operation that was stopped left."""

    appended: list[str]
    over: bool
    """It was over before its turn came."""
    active: bool
    answered: bool
    ends: int


async def stopped(act: Act, at: int, how: str) -> Stopped:
    async with talking(SCRIPT, *WATCHING) as running:
        before = entries(running)
        with trio.CancelScope() as scope:
            then = scope.cancel if how == "cancel" else running.seat.request_abort
            steps = Steps(at, then)
            trio.lowlevel.add_instrument(steps)
            try:
                await act(running)
            except CommandRefused:
                pass
            finally:
                trio.lowlevel.remove_instrument(steps)
        appended, active = group(before, entries(running)), running.seat.state.live.activity.value != "idle"
        return Stopped(appended, steps.left > 0, active, await is_answered(running), running.count("compaction_end"))
    raise AssertionError


def moments(act: Act, how: str) -> list[Stopped]:
    """The operation, stopped at each of its steps in turn."""
    found = []
    for at in range(1, 60):
        found.append(simulate(stopped, act, at, how))
        if found[-1].over:
            return found
    raise AssertionError("it takes more steps than expected")


@pytest.mark.rule("CMP-48", "CMP-69", "SDK-23")
@pytest.mark.parametrize("how", ["cancel", "abort"])
@pytest.mark.parametrize("act", [compact, navigate], ids=lambda act: act.__name__)
def test_stopped_at_any_step_the_session_is_untouched_or_has_one_whole_group(act: Act, how: str) -> None:
    found = moments(act, how)

    whole = GROUPS[act]  # type: ignore[index]  # the functions are the keys
    assert len(found) > 4, "there are moments"
    assert {tuple(each.appended) for each in found} == {(), tuple(whole)}
    assert found[-1].appended == whole, "undisturbed it is done"
    assert not any(each.active for each in found)
    assert all(each.answered for each in found)
    assert act is navigate or {each.ends for each in found} == {1}, "each compaction that began is told to have ended, once"


@pytest.mark.rule("CMP-48", "LOOP-71")
def test_a_run_whose_kernel_is_cancelled_in_its_compaction_leaves_all_or_nothing_of_it() -> None:
    files = MemoryLogFiles()

    async def cut(at: int) -> bool:
        with trio.CancelScope() as scope:
            async with talking([answer("ok", usage=FULL), answer("S")], *WATCHING, files=files) as running:

                def listen(event: Any) -> None:
                    if event.type == "compaction_start":
                        trio.lowlevel.add_instrument(Steps(at, scope.cancel))

                running.seat.subscribe(listen)
                await running.seat.prompt("go")
        return scope.cancelled_caught

    kinds = set()
    for at in range(1, 30):
        files = MemoryLogFiles()
        was_cut = simulate(cut, at)
        types, answered = simulate(reopened, files.photo())
        kinds.add((was_cut, types.count("compaction")))
        assert answered

    assert {(True, 0), (True, 1)} <= kinds
    assert kinds <= {(True, 0), (True, 1), (False, 1)}


async def on_disk(act: Act, files: MemoryLogFiles, fault: Callable[[Operation], Any]) -> tuple[list[str], bool]:
    """What the operation appended in memory, and whether the log refused, with this disk."""
    async with talking(SCRIPT, files=files) as running:
        await trio.sleep(1)
        before, raised = entries(running), False
        files.fault = fault
        try:
            await act(running)
        except StorageError:
            raised = True
        files.fault = None
        return group(before, entries(running)), raised
    raise AssertionError


async def reopened(photo: Photo) -> tuple[list[str], bool]:
    """The types of the entries in these files, and whether a prompt is answered."""
    async with opened(SCRIPT[1:], files=files_of(photo)) as running:
        return [entry.type for entry in entries(running)], await is_answered(running)
    raise AssertionError


@pytest.mark.rule("SES-43", "CMP-48")
@pytest.mark.parametrize("act", [compact, navigate], ids=lambda act: act.__name__)
def test_a_disk_that_refuses_any_step_of_it_leaves_all_or_nothing_and_says_so(act: Act) -> None:
    whole = GROUPS[act]  # type: ignore[index]  # the functions are the keys
    seen = set()
    for at in range(STEPS_MAX):
        files, fault = MemoryLogFiles(), Breaking(at)
        appended, raised = simulate(on_disk, act, files, fault)
        types, answered = simulate(reopened, files.photo())
        is_whole = types[-len(whole) :] == whole
        seen.add((is_whole, raised))
        assert answered
        assert is_whole == (appended == whole), "memory never leads the file"
        assert is_whole or not any(kind in types for kind in whole), "never a part of it"
        if fault.is_over:
            break
    assert {(False, True), (True, False)} <= seen


@pytest.mark.rule("SES-43", "CMP-48")
@pytest.mark.parametrize("act", [compact, navigate], ids=lambda act: act.__name__)
def test_a_process_that_dies_at_any_step_of_it_leaves_all_or_nothing(act: Act) -> None:
    whole = GROUPS[act]  # type: ignore[index]  # the functions are the keys
    files, photos = MemoryLogFiles(), list[Photo]()

    simulate(on_disk, act, files, lambda _operation: photos.append(files.photo()))

    left = [simulate(reopened, photo) for photo in [*photos, files.photo()]]
    kept = [[kind for kind in types if kind in whole] for types, _ in left]
    assert all(answered for _, answered in left)
    assert (kept[0], kept[-1]) == ([], whole)
    assert all(each in ([], whole) for each in kept)


@pytest.mark.rule("CMP-56", "LOOP-71")
def test_a_process_that_dies_while_it_recovers_leaves_the_omission_and_an_unfinished_run_that_is_reported() -> None:
    files, photos = MemoryLogFiles(), list[Photo]()

    async def dies() -> None:
        async with talking([failed(OVERFLOW), [Hang()]], files=files) as running, trio.open_nursery() as nursery:
            nursery.start_soon(running.seat.prompt, "go")
            await trio.sleep(5)
            photos.append(files.photo())
            await running.seat.abort()

    async def again() -> tuple[list[str], list[str], bool]:
        async with opened([answer("again")], files=files_of(photos[0])) as running:
            found = [each.message for each in running.seat.found]
            return [entry.type for entry in entries(running)][-2:], found, await is_answered(running)
        raise AssertionError

    simulate(dies)
    types, found, answered = simulate(again)

    assert types == ["message", "context_edit"]
    assert any("the last run was cut off" in each for each in found)
    assert answered
