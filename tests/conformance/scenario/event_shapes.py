"""What a trace records of an event: one row an event with a shape of its own, every field otherwise (README.md section 5.2)."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from tests.conformance.scenario.briefs import brief, briefs
from tests.conformance.scenario.wire_paths import cameled, fields, get, wire

Shape = Callable[[Any], dict[str, Any]]


def extension_data(event: Any) -> dict[str, Any]:
    """The data of an event as an extension handler sees it."""
    return _present(EXTENSION_SHAPES.get(event.type, fields)(event))


def session_data(event: Any) -> dict[str, Any]:
    """The data of an event as the host's subscriber sees it."""
    return _present(SESSION_SHAPES.get(event.type, fields)(event))


class _Absent:
    """A field that has no value here; it is left out."""


ABSENT: Final = _Absent()


def _present(shown: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in shown.items() if value is not ABSENT}


def _optional(value: Any) -> Any:
    return ABSENT if value is None else wire(value)


def _brief_message(event: Any) -> dict[str, Any]:
    return {"message": brief(wire(event.message))}


def _brief_messages(event: Any) -> dict[str, Any]:
    return {"messages": briefs(wire(event.messages))}


def _message_update(event: Any) -> dict[str, Any]:
    change = wire(get(event, "assistantMessageEvent"))
    return {
        "update": change.get("type"),
        "contentIndex": _optional(change.get("contentIndex")),
        "delta": _optional(change.get("delta")),
    }


def _boundary(event: Any) -> dict[str, Any]:
    context = event.context
    return {
        "outcome": event.outcome,
        "entries": _drafts(event.entries),
        "continue": event.continue_,
        "context": {
            "canContinue": context.can_continue,
            "llm": briefs(wire(tuple(context.llm_messages))),
            "pending": briefs(wire(tuple(context.pending_messages))),
        },
    }


def _drafts(entries: Any) -> Any:
    """Drafts as wire JSON; one that was refused is shown as its handler wrote it, with Python keys."""
    if not isinstance(entries, (list, tuple)):
        return wire(entries)
    return [wire(entry) if attrs.has(type(entry)) else cameled(entry) for entry in entries]


def _turn(event: Any) -> dict[str, Any]:
    return {"message": brief(wire(event.message)), "toolResults": briefs(wire(event.tool_results))}


def _turn_boundary(event: Any) -> dict[str, Any]:
    entry_ids = {"messageEntryId": event.message_entry_id, "toolResultEntryIds": wire(event.tool_result_entry_ids)}
    return {"turnIndex": event.turn_index, **_turn(event), **entry_ids, **_boundary(event)}


def _agent_end(event: Any) -> dict[str, Any]:
    return {**_brief_messages(event), "willRetry": event.will_retry}


def _before_agent_start(event: Any) -> dict[str, Any]:
    options = event.system_prompt_options
    message, images = get(event, "message"), get(event, "images")
    return {
        "messageType": event.message_type,
        "prompt": _optional(get(event, "prompt")),
        "message": ABSENT if message is None else brief(wire(message)),
        "images": len(images) if images else ABSENT,
        "selectedTools": list(options.selected_tools),
        "forced": _optional(get(options, "forceSystemPrompt")),
        "sections": list(options.sections),
    }


def _before_compact(event: Any) -> dict[str, Any]:
    preparation = event.preparation
    return {
        "reason": event.reason,
        "willRetry": event.will_retry,
        "customInstructions": _optional(get(event, "customInstructions")),
        "firstKeptEntryId": _optional(preparation.first_kept_entry_id),
        "isSplitTurn": preparation.is_split_turn,
        "messagesToSummarize": briefs(wire(preparation.messages_to_summarize)),
        "turnPrefixMessages": briefs(wire(preparation.turn_prefix_messages)),
        "previousSummary": _optional(get(preparation, "previousSummary")),
        "tokensBefore": preparation.tokens_before,
    }


def _compacted(event: Any) -> dict[str, Any]:
    return {
        "reason": event.reason,
        "willRetry": event.will_retry,
        "fromExtension": event.from_extension,
        "entry": event.compaction_entry.id,
        "summary": event.compaction_entry.summary,
    }


def _before_tree(event: Any) -> dict[str, Any]:
    shown = fields(event.preparation)
    return {**shown, "entriesToSummarize": [entry.id for entry in event.preparation.entries_to_summarize]}


def _tree(event: Any) -> dict[str, Any]:
    summary = get(event, "summaryEntry")
    shown = {key: value for key, value in fields(event).items() if key != "summaryEntry"}
    return {**shown, "summaryEntry": ABSENT if summary is None else summary.id}


def _model_select(event: Any) -> dict[str, Any]:
    previous = get(event, "previousModel")
    return {
        "model": event.model.reference,
        "previousModel": ABSENT if previous is None else previous.reference,
        "source": event.source,
    }


def _entry_appended(event: Any) -> dict[str, Any]:
    return {"entry": entry_summary(event.entry)}


def entry_summary(entry: Any) -> dict[str, Any]:
    """Id, type and, where there is one, custom type of an entry."""
    return _present({"id": entry.id, "type": entry.type, "customType": _optional(get(entry, "customType"))})


def _request_payload(event: Any) -> dict[str, Any]:
    payload = event.payload
    tools = [_tool_name(tool) for tool in payload.get("tools") or ()]
    return {
        "payloadModel": payload.get("model"),
        "payloadRoles": [message.get("role") for message in payload.get("messages") or ()],
        "payloadTools": tools or ABSENT,
    }


def _tool_name(tool: Mapping[str, Any]) -> Any:
    return tool.get("name") or get(tool, "function.name")


EXTENSION_SHAPES: Final[Mapping[str, Shape]] = {
    "message_start": _brief_message,
    "message_update": _message_update,
    "message_end": _brief_message,
    "turn_start": lambda event: {"turnIndex": event.turn_index},
    "turn_end": _turn_boundary,
    "agent_before_settle": _boundary,
    "agent_end": _brief_messages,
    "context": _brief_messages,
    "context_with_system": _brief_messages,
    "before_agent_start": _before_agent_start,
    "session_before_compact": _before_compact,
    "session_compact": _compacted,
    "session_before_tree": _before_tree,
    "session_tree": _tree,
    "model_select": _model_select,
    "before_provider_request": _request_payload,
    "before_provider_headers": lambda event: {},
    "after_provider_response": lambda event: {"status": event.status},
}
"""Events whose record for an extension is not simply their fields."""

SESSION_SHAPES: Final[Mapping[str, Shape]] = {
    "message_start": _brief_message,
    "message_update": _message_update,
    "message_end": lambda event: {"message": wire(event.message)},
    "turn_start": lambda event: {},
    "turn_end": _turn,
    "agent_end": _agent_end,
    "entry_appended": _entry_appended,
}
"""The same for the host's subscriber."""
