"""Extensions of a scenario as inline extensions: setup functions that register what the scenario lists.

Every load builds a new `Loaded`, so counters start again with each. A handler is one
registration; `when`, `nth` and `times` are looked at before anything is recorded.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from camshaft.actors.api import ToolDefinition
from camshaft.kernel.hooks import HOOKS
from camshaft.kernel.persistent import freeze
from tests.conformance.scenario.actions import ScriptedFailure, perform, tool_result
from tests.conformance.scenario.event_shapes import extension_data
from tests.conformance.scenario.host_face import call
from tests.conformance.scenario.limits import Limits
from tests.conformance.scenario.stage import Place, Stage, ToolCallPlace
from tests.conformance.scenario.virtual_models import register_virtual_models
from tests.conformance.scenario.wire_paths import wire

Spec = Mapping[str, Any]

PROBED: Final = (
    "session_start",
    "session_shutdown",
    "session_info_changed",
    "session_before_switch",
    "session_before_fork",
    "session_before_compact",
    "session_compact",
    "session_compact_failed",
    "session_before_tree",
    "session_tree",
    "context",
    "before_agent_start",
    "agent_start",
    "agent_end",
    "agent_before_settle",
    "agent_settled",
    "turn_start",
    "turn_end",
    "message_start",
    "message_end",
    "tool_execution_start",
    "tool_execution_update",
    "tool_execution_end",
    "model_select",
    "thinking_level_select",
    "tool_call",
    "tool_result",
    "input",
)
"""What the probe subscribes to by default; hooks this version does not have are left out."""

EMPTY_SCHEMA: Final = {"type": "object", "properties": {}}
"""Parameters of a tool that lists none."""


def specs(scenario: Spec) -> list[Spec]:
    """The extensions of a scenario in load order, the probe last."""
    listed = list(scenario.get("extensions") or ())
    probe = scenario.get("probe")
    if probe is False:
        return listed
    events = [event for event in PROBED if event in HOOKS] if probe is None else probe
    return [*listed, {"name": "probe", "handlers": [{"event": event, "actions": []} for event in events]}]


def setup_of(stage: Stage, spec: Spec) -> Callable[[Any], Any]:
    """The setup function of one extension."""

    async def setup(api: Any) -> None:
        await Loaded(stage=stage, spec=spec, api=api).load()

    return setup


@attrs.define(eq=False, kw_only=True)
class Loaded:
    """One load of one extension."""

    stage: Stage
    spec: Spec
    api: Any
    subscriptions: dict[str | None, Callable[[], None]] = attrs.field(factory=dict)
    """What `on` subscribed, by its `as`."""

    async def load(self) -> None:
        """Registers in the order the format asks for, then runs the `load` actions."""
        place = self.place("(load)")
        place.record()
        for flag in self.spec.get("flags") or ():
            await call(self.api, "register_flag", flag["name"], **{key: value for key, value in flag.items() if key != "name"})
        for tool in self.spec.get("tools") or ():
            self.register_tool(tool)
        for handler in self.spec.get("handlers") or ():
            self.subscribe(handler["event"], handler["actions"], handler)
        for listener in self.spec.get("bus") or ():
            self._listen(listener)
        for command in self.spec.get("commands") or ():
            self._register_command(command)
        register_virtual_models(self.api, place, self.spec.get("virtualModels") or ())
        await perform(place, self.spec.get("load") or ())

    def place(self, event_name: str, **fields: Any) -> Place:
        """A place of this extension."""
        head = {"ch": "ext", "ext": self.spec["name"], "event": event_name}
        return Place(stage=self.stage, head=head, api=self.api, builder=self, **fields)

    def subscribe(self, event_name: str, actions: Sequence[Spec], spec: Spec | None = None) -> Callable[[], None]:
        """Adds a handler; the answer removes it again."""
        limits = Limits.of(spec or {})

        async def handler(event: Any, context: Any) -> Any:
            if not limits.allow(event):
                return None
            place = self.place(event_name, event=event, context=context)
            if not limits.silent:
                place.record(data=extension_data(event))
            outcome = await perform(place, actions)
            return None if outcome is None else outcome.value

        unsubscribe: Callable[[], None] = self.api.on(event_name, handler)
        return unsubscribe

    def register_tool(self, tool: Spec) -> None:
        """Registers a scripted tool."""
        self.api.register_tool(self._definition(tool))

    def _listen(self, listener: Spec) -> None:
        channel = listener["channel"]

        def heard(value: Any) -> Any:
            place = self.place(f"(bus:{channel})", event=value)
            self.stage.recorder.record({**place.head, "data": wire(value)})
            return perform(place, listener["actions"])

        self.api.events.on(channel, heard)

    def _register_command(self, command: Spec) -> None:
        async def handler(arguments: str, context: Any) -> None:
            place = self.place("(command)", context=context)
            place.record(data={"name": command["name"], "args": arguments})
            await perform(place, command["actions"])

        self.api.register_command(command["name"], handler, description=command.get("description"))

    def _definition(self, tool: Spec) -> ToolDefinition:
        options: dict[str, Any] = {
            "execution_mode": tool.get("mode"),
            "exposure": tool.get("exposure"),
            "default_active": tool.get("defaultActive"),
            "prompt_snippet": tool.get("promptSnippet"),
            "prompt_guidelines": tuple(tool["promptGuidelines"]) if "promptGuidelines" in tool else None,
            "output_schema": freeze(tool["outputSchema"]) if "outputSchema" in tool else None,
            "prepare_arguments": _preparation(tool["prepare"]) if "prepare" in tool else None,
        }
        return ToolDefinition(
            name=tool["name"],
            description=tool.get("description", f"{tool['name']} tool"),
            parameters=freeze(tool.get("parameters", EMPTY_SCHEMA)),
            execute=self._body(tool),
            **{key: value for key, value in options.items() if value is not None},
        )

    def _body(self, tool: Spec) -> Callable[..., Any]:
        scripts = tool.get("scripts") or [tool.get("script") or [{"do": "return", "value": {"text": f"{tool['name']} ok"}}]]
        executions = 0

        async def execute(call_id: str, params: Any, signal: Any, on_update: Any, context: Any) -> Any:
            nonlocal executions
            script = scripts[min(executions, len(scripts) - 1)]
            executions += 1
            head = {"ch": "tool", "call": call_id, "tool": tool["name"]}
            call = ToolCallPlace(call_id=call_id, arguments=params, signal=signal, on_update=on_update)
            place = Place(stage=self.stage, head=head, context=context, api=self.api, builder=self, tool=call)
            place.record(at="start", args=wire(params))
            try:
                outcome = await perform(place, script)
            except Exception as error:
                place.record(at="raise", error=str(error))
                raise
            place.record(at="end")
            return tool_result({"text": f"{tool['name']} ok"}) if outcome is None else outcome.value

        return execute


def _preparation(spec: Spec) -> Callable[[Any], Any]:
    def prepare(arguments: Any) -> Any:
        if "raise" in spec:
            raise ScriptedFailure(spec["raise"])
        names = spec["rename"]
        return {names.get(name, name): value for name, value in arguments.items()}

    return prepare
