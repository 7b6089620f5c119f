"""The host's face as the runner uses it: every call on a seat is in this file.

What a later version will offer (replacement, reload) is called
by its obvious name; while it is absent the call raises NotOffered, which becomes the error
of the step.
"""

import inspect
from collections.abc import Sequence
from typing import Any

import attrs

from camshaft.actors.virtual_models import limiting_model
from camshaft.kernel import estimates
from camshaft.kernel.codec import decode_message, python
from camshaft.kernel.entries import Entry
from camshaft.kernel.hook_events import CustomInput
from camshaft.kernel.messages import ImageBlock
from camshaft.kernel.state import SessionState
from tests.conformance.scenario.wire_paths import get, snaked, wire


class NotOffered(Exception):
    """The host has no such call in this version."""


async def call(target: Any, name: str, *arguments: Any, **options: Any) -> Any:
    """The answer of a call, awaited if it is awaitable; options that are None are left to the host. Raises NotOffered."""
    method = getattr(target, name, None)
    if method is None:
        raise NotOffered(f"{type(target).__name__} does not offer {name!r} in this version")
    answer = method(*arguments, **{key: value for key, value in options.items() if value is not None})
    return await answer if inspect.isawaitable(answer) else answer


async def prompt(seat: Any, step: Any) -> None:
    """Sends a prompt; returns when its run has settled."""
    images = tuple([ImageBlock(data=image["data"], mime_type=image["mimeType"]) for image in step.get("images") or ()])
    await call(
        seat,
        "prompt",
        step["text"],
        images=images or None,
        streaming_behavior=step.get("behavior"),
        expand=step.get("expand"),
        source=step.get("source"),
    )


async def navigate(seat: Any, target: str, options: Any) -> Any:
    """Moves to another entry; the answer in the trace's shape."""
    answer = await call(seat, "navigate_tree", target, **snaked(options or {}))
    shown = {
        "editorText": get(answer, "editorText"),
        "cancelled": get(answer, "cancelled"),
        "summaryEntry": get(answer, "summaryEntry.id"),
    }
    return {key: value for key, value in shown.items() if value is not None}


async def replace(seat: Any, name: str, *arguments: Any, **options: Any) -> Any:
    """A call that replaces the session (`new_session`, `switch_session`, `fork`); the answer without what is absent."""
    answer = wire(await call(seat, name, *arguments, **options)) or {}
    return {key: value for key, value in answer.items() if value is not None}


async def record_bash(seat: Any, action: Any) -> None:
    """Records a command that was run by the user."""
    result, options = action.get("result") or {}, action.get("options") or {}
    message = {
        "role": "bashExecution",
        "command": action["command"],
        "output": result.get("output", ""),
        "cancelled": result.get("cancelled", False),
        "truncated": result.get("truncated", False),
        "timestamp": seat.world.clock.now_ms(),
    }
    optional = {
        "exitCode": result.get("exitCode"),
        "fullOutputPath": result.get("fullOutputPath"),
        "excludeFromContext": options.get("excludeFromContext"),
    }
    present = {key: value for key, value in optional.items() if value is not None}
    await call(seat, "record_bash", decode_message({**message, **present}))


async def send_custom(seat: Any, action: Any) -> None:
    """Sends a custom message as the host does; a run it starts is waited for."""
    message = python(CustomInput, snaked(action["message"]))
    receipt = await call(seat, "send_custom", message, **snaked(action.get("options") or {}))
    if receipt is not None:
        await receipt.wait()


async def set_steering_mode(seat: Any, mode: str) -> None:
    """How queued steering messages are delivered."""
    await call(seat, "set_queue_mode", "steer", mode)


async def append_message(seat: Any, message: Any) -> None:
    """Appends a message entry while idle."""
    await call(seat, "append_message", decode_message(message))


async def clear_queue(seat: Any) -> dict[str, Any]:
    """Empties both queues and tells what was in them."""
    cleared = await call(seat, "clear_queue")
    return {"steering": wire(cleared.steering), "followUp": wire(cleared.follow_up)}


@attrs.frozen(eq=False)
class StateView:
    """The session as extensions read it, from a snapshot of the host."""

    _state: SessionState

    def get_leaf_id(self) -> str | None:
        """Id of the current position."""
        return self._state.leaf_id

    def get_entry(self, entry_id: str) -> Entry | None:
        """An entry by id, or None."""
        position = self._state.tree.position(entry_id)
        return None if position is None else self._state.tree.entry(position)

    def get_entries(self) -> Sequence[Entry]:
        """All entries in file order."""
        return tuple(self._state.tree.entries())

    def get_branch(self) -> Sequence[Entry]:
        """The entries from the root to the current position."""
        leaf, tree = self._state.projection.leaf, self._state.tree
        return () if leaf is None else tuple([tree.entry(each) for each in tree.branch(leaf)])

    def get_session_name(self) -> str | None:
        """The session's name, if it has one."""
        return self._state.tree.name


def view(seat: Any) -> StateView:
    """The session, to read."""
    return StateView(seat.state)


def session_file(seat: Any) -> str | None:
    """Path of the session file, also before the file exists; None for a session without one."""
    path: str | None = seat.session_file
    return path


def reference(model: Any) -> str | None:
    """`provider/id` of a model, or None."""
    return None if model is None else str(model.reference)


def context_usage(seat: Any) -> Any:
    """The tokens in context; None without a model."""
    model = limiting_model(seat.state, seat.providers)
    return None if model is None else estimates.context_usage(seat.state.projection, model.context_window)


async def open_session(kernel: Any, options: Any, listener: Any) -> Any:
    """The opened seat; `listener` gets every event from the first one on."""
    return await kernel.open(attrs.evolve(options, listeners=(listener,)))


def load_errors(seat: Any) -> list[str]:
    """What was refused while extensions loaded."""
    return [error.error for error in seat.load_errors]
