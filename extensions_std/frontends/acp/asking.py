"""Dialogs of extensions as questions to the client.

`confirm` and `select` become permission requests, which every client has; a text (`input`, `editor`) needs a client with
forms. Each has to belong to a tool call: the one that runs, or, if nothing runs, one that is made up for the question.
"""

from collections.abc import Sequence
from typing import Any, Final

from camshaft.actors.api import Json
from camshaft.actors.host import Dialog
from camshaft.extensions_std.frontends.acp.peer import Peer
from camshaft.extensions_std.frontends.acp.tool_calls import ShownCall

CANCELLED: Final = object()
"""The person did not answer."""

_REFUSING: Final = frozenset({"no", "not", "never", "deny", "denied", "reject", "block", "cancel", "abort", "refuse", "don't", "disallow"})
"""First words of an option that refuses."""
_LASTING: Final = frozenset({"always", "never", "session", "remember"})
"""Words of an option that is meant for later, too."""


def can_ask(dialog: Dialog, *, has_forms: bool) -> bool:
    """Whether the client can show it."""
    return has_forms or dialog.kind in ("confirm", "select")


async def ask(peer: Peer, session_id: str, dialog: Dialog, call: ShownCall) -> object:
    """The answer for the dialog, or CANCELLED. Raises RpcError if the client cannot ask."""
    if dialog.kind in ("confirm", "select"):
        answer = await peer.ask("session/request_permission", {"sessionId": session_id, **_permission(dialog, call)})
        return _permitted(dialog, answer)
    answer = await peer.ask("elicitation/create", {"sessionId": session_id, **_form(dialog, call)})
    content = answer.get("content") if isinstance(answer, dict) and answer.get("action") == "accept" else None
    return content.get("value", CANCELLED) if isinstance(content, dict) else CANCELLED


def made_up_call(dialog: Dialog) -> ShownCall:
    """For a question that no running call asks."""
    return ShownCall(id=f"dialog-{dialog.id}", title=dialog.title, kind="other", locations=(), diffs=(), raw_input={})


def _permission(dialog: Dialog, call: ShownCall) -> dict[str, Any]:
    question = dialog.title if not dialog.message else f"{dialog.title}\n\n{dialog.message}"
    said = {"type": "content", "content": {"type": "text", "text": question}}
    options = [{"optionId": str(number), "name": name, "kind": kind} for number, (name, kind) in enumerate(permission_options(dialog))]
    return {"toolCall": {**call.fields(), "status": "pending", "content": [*call.diffs, said]}, "options": options}


def permission_options(dialog: Dialog) -> Sequence[tuple[str, str]]:
    """Name and kind of each option."""
    if dialog.kind == "confirm":
        return (("Yes", "allow_once"), ("No", "reject_once"))
    return [(option, _kind_of(option)) for option in dialog.options]


def _kind_of(option: str) -> str:
    """A guess for the look of the option; what it does is the extension's."""
    words = [word.strip(".,:;!()").lower() for word in option.split()]
    verb = "reject" if words[:1] and words[0] in _REFUSING else "allow"
    return f"{verb}_{'always' if _LASTING.intersection(words) else 'once'}"


def _permitted(dialog: Dialog, answer: Json) -> object:
    outcome = answer.get("outcome") if isinstance(answer, dict) else None
    if not isinstance(outcome, dict) or outcome.get("outcome") != "selected":
        return CANCELLED
    chosen = outcome.get("optionId")
    if dialog.kind == "confirm":
        return chosen == "0"
    known = {str(number): option for number, option in enumerate(dialog.options)}
    return known.get(chosen, CANCELLED) if isinstance(chosen, str) else CANCELLED


def _form(dialog: Dialog, call: ShownCall) -> dict[str, Any]:
    field: dict[str, Any] = {"type": "string", "title": dialog.title}
    if dialog.placeholder:
        field["description"] = dialog.placeholder
    if dialog.prefill:
        field["default"] = dialog.prefill
    schema = {"type": "object", "properties": {"value": field}, "required": ["value"]}
    return {"mode": "form", "message": dialog.message or dialog.title, "requestedSchema": schema, "toolCallId": call.id}
