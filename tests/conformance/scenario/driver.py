"""The driver: opens the session of a scenario, runs its steps and triggers, and takes the final state (README.md sections 4, 5).

Time is virtual unless a model server is involved. What is started and not awaited runs in the
stage's nursery and is cancelled when the trace is complete.
"""

import contextvars
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import attrs
import trio
from trio.testing import MockClock

from camshaft.actors.host import open_kernel
from tests.conformance.scenario import host_face, http_server
from tests.conformance.scenario.actions import perform
from tests.conformance.scenario.briefs import briefs
from tests.conformance.scenario.event_shapes import session_data
from tests.conformance.scenario.host_face import call
from tests.conformance.scenario.queries import ask
from tests.conformance.scenario.recorder import Recorder
from tests.conformance.scenario.stage import Folders, Place, Stage, Through
from tests.conformance.scenario.starting import Starter
from tests.conformance.scenario.templates import resolve
from tests.conformance.scenario.trace import extension_name, last_assistant_text, trace_of
from tests.conformance.scenario.wire_paths import matches, wire
from tests.conformance.scenario.world import fresh_folders, options_of, scenario_world

SETTLE_S: Final = 0.015
"""Wait after the last step, before the final state is taken."""

RUN_S: Final = 30
"""A run that takes longer (in its own time: longest sleeps of scenarios are minutes, virtual) is stuck."""

VIRTUAL_RUN_S: Final = 3600
"""The same on the virtual clock, where waiting costs nothing."""

UNSHOWN: Final = frozenset({"diagnostic", "session_replaced"})
"""Events of ours that the recorded runs do not have."""

LOADED: Final = "(load)"
"""Event name of the record that every loading extension writes first."""

Step = Mapping[str, Any]


def run_scenario(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """The trace of one scenario. Raises TooSlow of Trio if it does not end."""
    with fresh_folders() as folders:
        return run_scenario_in(folders, scenario)


def run_scenario_in(folders: Folders, scenario: Mapping[str, Any]) -> dict[str, Any]:
    """The same in folders of the caller, who may look at the session files afterwards."""
    if scenario.get("provider") == "http":
        return trio.run(play_scenario, scenario, folders, RUN_S)
    return trio.run(play_scenario, scenario, folders, VIRTUAL_RUN_S, clock=MockClock(autojump_threshold=0))


async def play_scenario(scenario: Mapping[str, Any], folders: Folders, limit_s: float, through: Through | None = None) -> dict[str, Any]:
    """The same inside Trio; with `through`, what the host asks for comes through a face."""
    only = scenario.get("recordOnly")
    recorder = Recorder(only=None if only is None else frozenset(only))
    with trio.fail_after(limit_s):
        async with trio.open_nursery() as nursery:
            replies = list(scenario.get("replies") or ())
            stage = Stage(
                scenario=scenario,
                folders=folders,
                recorder=recorder,
                nursery=nursery,
                outside=contextvars.copy_context(),
                replies=replies,
                through=through,
            )
            if scenario.get("provider") == "http":
                stage.port = await nursery.start(http_server.serve, stage)
            state = await _play(stage)
            nursery.cancel_scope.cancel()
    return trace_of(stage, state)


async def _play(stage: Stage) -> dict[str, Any] | None:
    """The final state; None if the session could not be opened."""
    async with open_kernel(world=scenario_world(stage.folders)) as kernel:
        try:
            subscriber = Subscriber(stage=stage)
            seat = await host_face.open_session(kernel, options_of(stage), subscriber)
            stage.seat = seat if stage.through is None else stage.through.faced(seat)
        except Exception as error:  # noqa: BLE001  a refusal to open is a result of the scenario
            stage.recorder.record({"ch": "driver", "do": "open", "error": error_text(error)})
            return None
        subscriber.tell_load_errors()
        stage.recorder.uses_session_file(host_face.session_file(stage.seat))
        driver = Driver(stage=stage)
        for number, step in enumerate(stage.scenario.get("steps") or (), start=1):
            await driver.take(number, step)
        await trio.sleep(SETTLE_S)
        state = final_state(stage)
        stage.recorder.close()
        await call(stage.seat, "close")
    return state


def error_text(error: BaseException) -> str:
    """What an exception says; of a group with one member, what that member says."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return str(error)


# -- subscriber --------------------------------------------------------------------------


@attrs.define(eq=False, kw_only=True)
class Subscriber:
    """The host's subscriber: records every event, then starts triggers that wait for it."""

    stage: Stage
    _seen: dict[int, int] = attrs.field(factory=dict)

    def __call__(self, event: Any) -> None:
        """Never blocks."""
        if event.type == "extension_error":
            self.stage.recorder.record(_error_record(event))
        elif event.type not in UNSHOWN:
            self.stage.recorder.record({"ch": "session", "event": event.type, "data": session_data(event)})
        for index, trigger in enumerate(self.stage.scenario.get("triggers") or ()):
            self._pull(index, trigger, event)

    def tell_load_errors(self) -> None:
        """Records what was refused while extensions loaded, which is no event, right after the loads."""
        refused = host_face.load_errors(self.stage.seat)
        records = [{"ch": "error", "event": LOADED, "error": extension_name(text)} for text in refused]
        self.stage.recorder.insert_after({"event": LOADED}, records)

    def _pull(self, index: int, trigger: Step, event: Any) -> None:
        on = trigger["on"]
        if on["event"] != event.type or not matches(on.get("when"), event):
            return
        self._seen[index] = self._seen.get(index, 0) + 1
        if self._seen[index] == on.get("nth", 1):
            self._start(trigger["do"], event)

    def _start(self, actions: Sequence[Step], event: Any) -> None:
        """Asks for an abort at once, inside the delivery; anything else, and what follows it, runs in a task of its own."""
        stage = self.stage
        for index, action in enumerate(actions):
            stage.recorder.record({"ch": "driver", "trigger": action["do"]})
            if action["do"] != "hostAbort":
                stage.outside.run(stage.nursery.start_soon, _pulled, stage, actions[index:], event)
                return
            stage.seat.request_abort()


def _error_record(event: Any) -> dict[str, Any]:
    return {"ch": "error", "ext": extension_name(event.extension_path), "event": event.event, "error": event.error}


async def _pulled(stage: Stage, actions: Sequence[Step], event: Any) -> None:
    """Runs the actions of a trigger; the record of the first one is written already."""
    place = Place(stage=stage, head={"ch": "driver"}, event=event)
    for index, action in enumerate(actions):
        if index:
            stage.recorder.record({"ch": "driver", "trigger": action["do"]})
        await perform(place, [action])


# -- steps -------------------------------------------------------------------------------


@attrs.define(eq=False, kw_only=True)
class Driver:
    """Runs steps one after the other; a started one can be awaited later."""

    stage: Stage
    _started: dict[str, trio.Event] = attrs.field(factory=dict)

    async def take(self, number: int, step: Step) -> None:
        """One step: its record, the call, the record of its end. Never raises for what the call raised."""
        self.stage.recorder.record({"ch": "driver", "step": number, "do": step["do"]})
        done = trio.Event()
        if "as" in step:
            self._started[step["as"]] = done
        if step.get("wait") is False:
            await self.stage.nursery.start(self._finish, number, step, done)
            if self.stage.through is not None:
                await self.stage.through.arrived()
        else:
            await self._finish(number, step, done)

    async def _finish(self, number: int, step: Step, done: trio.Event, *, task_status: Starter = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        end: dict[str, Any] = {"ch": "driver", "step": number, "done": True}
        try:
            result = await self._perform(step)
            end.update({} if result is None or result == "" else {"result": result})
        except Exception as error:  # noqa: BLE001  a failing step is a result and does not stop the scenario
            end["error"] = error_text(error)
        self.stage.recorder.record(end)
        done.set()

    async def _perform(self, step: Step) -> Any:
        if step["do"] == "await":
            await self._started[step["ref"]].wait()
            return None
        row = STEPS.get(step["do"])
        if row is None:
            raise ValueError(f"unknown step {step['do']!r}; known are {', '.join(STEPS)}")
        place = Place(stage=self.stage, head={"ch": "driver"})
        return await row(self.stage, resolve(step, place.sources()))


async def _simple(stage: Stage, name: str, *arguments: Any) -> None:
    await call(stage.seat, name, *arguments)


async def _wait_gate(stage: Stage, step: Step) -> None:
    await stage.gate(step["name"]).wait()


async def _signal(stage: Stage, step: Step) -> None:
    stage.gate(step["name"]).set()


async def _sleep(_stage: Stage, step: Step) -> None:
    await trio.sleep(step["ms"] / 1000)


async def _query(stage: Stage, step: Step) -> Any:
    return ask(Place(stage=stage, head={"ch": "driver"}), step["get"])


async def _compact(stage: Stage, step: Step) -> Any:
    return wire(await call(stage.seat, "compact", custom_instructions=step.get("instructions")))


async def _set_model(stage: Stage, step: Step) -> None:
    await call(stage.seat, "set_model", step["model"])


async def _statistics(stage: Stage, _step: Step) -> Any:
    return wire((await stage.seat.statistics()).totals)


async def _replacing(stage: Stage, name: str, *arguments: Any, **options: Any) -> Any:
    answer = await host_face.replace(stage.seat, name, *arguments, **options)
    stage.recorder.uses_session_file(host_face.session_file(stage.seat))
    return answer


async def _switch(stage: Stage, step: Step) -> Any:
    return await _replacing(stage, "switch_session", stage.recorder.session_files[step["session"] - 1])


async def _fork(stage: Stage, step: Step) -> Any:
    return await _replacing(stage, "fork", step["entry"], **(step.get("options") or {}))


STEPS: Final[Mapping[str, Callable[[Stage, Step], Awaitable[Any]]]] = {
    "prompt": lambda stage, step: host_face.prompt(stage.seat, step),
    "steer": lambda stage, step: call(stage.seat, "steer", step["text"]),
    "followUp": lambda stage, step: call(stage.seat, "follow_up", step["text"]),
    "abort": lambda stage, step: _simple(stage, "abort"),
    "settle": lambda stage, step: _simple(stage, "wait_idle"),
    "sleep": _sleep,
    "compact": _compact,
    "navigate": lambda stage, step: host_face.navigate(stage.seat, step["target"], step.get("options")),
    "setModel": _set_model,
    "setThinkingLevel": lambda stage, step: _simple(stage, "set_thinking_level", step["level"]),
    "cycleThinkingLevel": lambda stage, step: call(stage.seat, "cycle_thinking_level"),
    "setActiveTools": lambda stage, step: _simple(stage, "set_active_tools", tuple(step["tools"])),
    "setSessionName": lambda stage, step: _simple(stage, "set_session_name", step["name"]),
    "clearQueue": lambda stage, step: host_face.clear_queue(stage.seat),
    "sendCustom": lambda stage, step: host_face.send_custom(stage.seat, step),
    "recordBash": lambda stage, step: host_face.record_bash(stage.seat, step),
    "appendMessage": lambda stage, step: host_face.append_message(stage.seat, step["message"]),
    "appendLabel": lambda stage, step: _simple(stage, "set_label", step["entry"], step.get("label")),
    "reload": lambda stage, step: _simple(stage, "reload"),
    "newSession": lambda stage, step: _replacing(stage, "new_session"),
    "switchSession": _switch,
    "fork": _fork,
    "query": _query,
    "stats": _statistics,
    "signal": _signal,
    "waitGate": _wait_gate,
    "dispose": lambda stage, step: _simple(stage, "close"),
}
"""Every step by its name; `await` is the driver's own."""


# -- final state -------------------------------------------------------------------------

STATE_QUERIES: Final = ("isIdle", "model", "thinkingLevel", "activeTools", "leaf")


def final_state(stage: Stage) -> dict[str, Any]:
    """The state after the last step (README.md section 5.3)."""
    place = Place(stage=stage, head={"ch": "driver"})
    queue = ask(place, ["queue"])["queue"]
    messages = wire(tuple(stage.seat.context_messages))
    state = {
        **ask(place, STATE_QUERIES),
        "pendingMessages": len(queue["steering"]) + len(queue["followUp"]),
        "sessionName": ask(place, ["sessionName"]).get("sessionName"),
        "lastAssistantText": last_assistant_text(messages),
        "messages": briefs(messages),
    }
    return state if stage.port is not None else {**state, "repliesLeft": len(stage.replies)}
