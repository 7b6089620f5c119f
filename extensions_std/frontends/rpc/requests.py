"""The fields of the commands, and what is wrong with those that a client sent (RPC-23, RPC-34, RPC-53, RPC-61).

A command is checked as a whole before anything of it is done. Fields that are not listed are ignored (RPC-13); null
for a field that may be left out counts as left out.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeVar

import attrs

from camshaft.actors.api import ImageBlock, Json
from camshaft.actors.host import CamshaftError, CodecError, wire

QueueMode = Literal["all", "one-at-a-time"]
Level = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]

FAULT_CHARACTERS_MAX: Final = 500
"""Of a fault that is told: it may hold what the client sent."""

MISSING: Final = "expected a value; it is missing, got None"
"""How the codec says so; a client did not send None."""


class InvalidCommand(CamshaftError):
    """A field is missing or has a wrong value; nothing was done."""


@attrs.frozen(kw_only=True)
class NoFields:
    """A command without fields."""


@attrs.frozen(kw_only=True)
class PromptRequest:
    """`prompt`."""

    message: str
    images: tuple[ImageBlock, ...] = ()
    streaming_behavior: Literal["steer", "followUp"] | None = None


@attrs.frozen(kw_only=True)
class QueueRequest:
    """`steer` and `follow_up`."""

    message: str
    images: tuple[ImageBlock, ...] = ()


@attrs.frozen(kw_only=True)
class NewSessionRequest:
    """`new_session`."""

    parent_session: str | None = None


@attrs.frozen(kw_only=True)
class SetModelRequest:
    """`set_model`."""

    provider: str
    model_id: str


@attrs.frozen(kw_only=True)
class SetLevelRequest:
    """`set_thinking_level`."""

    level: Level


@attrs.frozen(kw_only=True)
class SetModeRequest:
    """`set_steering_mode` and `set_follow_up_mode`."""

    mode: QueueMode


@attrs.frozen(kw_only=True)
class SetEnabledRequest:
    """`set_auto_compaction` and `set_auto_retry`."""

    enabled: bool


@attrs.frozen(kw_only=True)
class CompactRequest:
    """`compact`."""

    custom_instructions: str | None = None


@attrs.frozen(kw_only=True)
class BashRequest:
    """`bash`."""

    command: str
    exclude_from_context: bool = False


@attrs.frozen(kw_only=True)
class ExportRequest:
    """`export_html`."""

    output_path: str | None = None


@attrs.frozen(kw_only=True)
class SwitchRequest:
    """`switch_session`."""

    session_path: str


@attrs.frozen(kw_only=True)
class ForkRequest:
    """`fork`."""

    entry_id: str


@attrs.frozen(kw_only=True)
class EntriesRequest:
    """`get_entries`."""

    since: str | None = None


@attrs.frozen(kw_only=True)
class NameRequest:
    """`set_session_name`."""

    name: str


R = TypeVar("R")


def read(command: str, cls: type[R], record: Mapping[str, Json]) -> R:
    """The fields of a command. Raises InvalidCommand with the first fault, by the field's name."""
    try:
        return fields_of(cls, record)
    except CodecError as error:
        raise InvalidCommand(f"Invalid {command} command: {fault_of(error)}") from None


def fault_of(error: CodecError) -> str:
    """What is wrong with a field, for whoever sent it; not longer than FAULT_CHARACTERS_MAX."""
    fault = str(error).replace(MISSING, "it is missing")
    return fault if len(fault) <= FAULT_CHARACTERS_MAX else fault[:FAULT_CHARACTERS_MAX] + "…"


def fields_of(cls: type[R], record: Mapping[str, Json]) -> R:
    """An object of the attrs class `cls` from the fields of a record that it knows. Raises CodecError with the first fault."""
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(cls)  # type: ignore[arg-type]  # every request is an attrs class
    known: dict[str, Any] = {}
    for each in fields:
        name = _json_name(each.name)
        if name in record and not (record[name] is None and each.default is not attrs.NOTHING):
            known[name] = record[name]
    return wire(cls, known)


def _json_name(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join([each.capitalize() for each in others])
