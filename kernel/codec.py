"""The one place where Python names become JSON names: classes to camelCase JSON and back.

Two cattrs converters share one set of hooks. WIRE reads and writes camelCase, keeps unknown
fields and explicit nulls in `extra`, and is what files, RPC and the event schema use. PYTHON
reads plain dicts with snake_case keys, as handlers and tools may return them, refuses unknown
keys by name, and lets values that are already of our classes pass.

Rules that the classes do not show. A field whose default is None is left out when it is None;
a field without default that may be None is written as null. Primitives are strict (no text for
a number, no bool for an int); a whole float reads as an int. Reading a message or an entry
never fails: a wrong type in a known field gives the opaque class with the raw JSON (MSG-41).

Bytes: msgspec is the fast way in both directions, the standard library the fall-back that
loses nothing (lone surrogates, invalid UTF-8). Integers of any size stay exact; NaN and
infinities are refused when read and written as null (MSG-4, MSG-5).

Longer than 400 lines because reading and writing share one set of hooks and one table of
classes, and no JSON name may occur anywhere else.
"""

import json
import math
import re
import types
import typing
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, Final, TypeVar

import attrs
import cattrs
import msgspec

from camshaft.kernel.entries import (
    BranchSummaryEntry,
    CompactionDraft,
    CompactionEntry,
    ContextEditDraft,
    ContextEditEntry,
    CustomDraft,
    CustomEntry,
    CustomMessageDraft,
    CustomMessageEntry,
    Draft,
    Entry,
    LabelEntry,
    MessageEntry,
    ModelChangeEntry,
    OpaqueEntry,
    SessionHeader,
    SessionInfoEntry,
    ThinkingLevelChangeEntry,
    UsageEntry,
)
from camshaft.kernel.errors import CodecError, MalformedJson
from camshaft.kernel.messages import (
    AssistantMessage,
    BashExecutionMessage,
    Block,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    ImageBlock,
    Message,
    OpaqueBlock,
    OpaqueMessage,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from camshaft.kernel.persistent import EMPTY, FrozenDict, Json, NotJson, freeze
from camshaft.kernel.records import (
    BatchRecord,
    CallsRecord,
    DecisionRecord,
    FateRecord,
    FinishedRecord,
    InputRecord,
    LeafRecord,
    OpenRecord,
    Record,
    RunRecord,
    SettledRecord,
    WaitRecord,
)

A = TypeVar("A")

BLOCKS: Final[Mapping[str, type[Any]]] = {cls.type: cls for cls in (TextBlock, ImageBlock, ThinkingBlock, ToolCall)}
MESSAGES: Final[Mapping[str, type[Any]]] = {
    cls.role: cls
    for cls in (
        SystemMessage,
        UserMessage,
        AssistantMessage,
        ToolResultMessage,
        BashExecutionMessage,
        CustomMessage,
        BranchSummaryMessage,
        CompactionSummaryMessage,
    )
}
ENTRIES: Final[Mapping[str, type[Any]]] = {
    cls.type: cls
    for cls in (
        MessageEntry,
        ModelChangeEntry,
        ThinkingLevelChangeEntry,
        UsageEntry,
        CompactionEntry,
        BranchSummaryEntry,
        CustomEntry,
        CustomMessageEntry,
        ContextEditEntry,
        LabelEntry,
        SessionInfoEntry,
    )
}
DRAFTS: Final[Mapping[str, type[Any]]] = {cls.type: cls for cls in (CustomDraft, CustomMessageDraft, ContextEditDraft, CompactionDraft)}
RECORDS: Final[Mapping[str, type[Any]]] = {
    cls.type: cls
    for cls in (
        OpenRecord,
        InputRecord,
        RunRecord,
        BatchRecord,
        DecisionRecord,
        CallsRecord,
        FinishedRecord,
        WaitRecord,
        LeafRecord,
        FateRecord,
        SettledRecord,
    )
}

_EMPTY_CONTENT: Final[Mapping[type[Any], Json]] = {
    UserMessage: (),
    AssistantMessage: (),
    ToolResultMessage: (),
    CustomMessage: (),
    SystemMessage: "",
    CustomMessageEntry: (),
}
"""What missing or null content reads as (MSG-41)."""

_ALWAYS_BLOCKS: Final = (AssistantMessage, ToolResultMessage)
"""Classes whose content is a list; a plain text there reads as one text block (MSG-44)."""


class Envelope(msgspec.Struct, gc=False):
    """What loading needs of a line: everything else in it is skipped, not checked."""

    type: str
    id: str
    parentId: str | None = None
    timestamp: str = ""
    message: "Role | None" = None


class Role(msgspec.Struct, gc=False):
    """What loading needs of a message."""

    role: str


decode_envelope: Final = msgspec.json.Decoder(Envelope).decode
"""The envelope of a line (bytes or a view of them). Raises one of ENVELOPE_FAULTS if something in it is odd."""


class Listed(msgspec.Struct, gc=False):
    """What a listing of sessions needs of a line: everything else in it is skipped, not checked."""

    type: str
    id: str | None = None
    timestamp: str = ""
    name: str | None = None
    message: "ListedMessage | None" = None


class ListedMessage(msgspec.Struct, gc=False):
    """What a listing needs of a message."""

    role: str
    timestamp: int | float | None = None
    content: msgspec.Raw = msgspec.Raw(b"null")
    """Its text is `listed_texts`."""


class _ListedBlock(msgspec.Struct, gc=False):
    type: str
    text: str = ""


decode_listed: Final = msgspec.json.Decoder(Listed).decode
"""What a listing needs of a line. Raises one of ENVELOPE_FAULTS if something in it is odd."""

_LISTED_CONTENT: Final = msgspec.json.Decoder(str | list[_ListedBlock] | None)


def listed_texts(content: msgspec.Raw) -> list[str]:
    """The texts of a content: itself, or its text blocks. Raises one of ENVELOPE_FAULTS if something in it is odd."""
    value = _LISTED_CONTENT.decode(content)
    if isinstance(value, str):
        return [value]
    return [block.text for block in value or () if block.type == "text"]


ENVELOPE_FAULTS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError)
"""What a decoder of msgspec may raise for bytes that another decoder may still be able to read."""

DEPTH_MAX: Final = 900
"""Levels of arrays and objects in a value: what Python 3.11 still reads, and far more than anybody writes."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ENCODER: Final = msgspec.json.Encoder()


# -- values ------------------------------------------------------------------------------


def decode_message(raw: Mapping[str, Json]) -> Message:
    """The message of a JSON object; opaque if its role is unknown or a known field has a wrong type."""
    try:
        return decode_message_strictly(raw)
    except (CodecError, NotJson):
        role = raw.get("role")
        return OpaqueMessage(role=role if isinstance(role, str) else None, raw=freeze(raw))


def decode_message_strictly(raw: Mapping[str, Json]) -> Message:
    """As decode_message, but raises CodecError, naming the field, when a known field has a wrong type."""
    role = raw.get("role")
    if not isinstance(role, str):
        raise CodecError("role", role, "a text")
    cls = MESSAGES.get(role)
    if cls is None:
        return OpaqueMessage(role=role, raw=freeze(raw))
    message: Message = _wire_hook(cls)(raw, cls)
    return message


def decode_entry(raw: Mapping[str, Json]) -> Entry:
    """The entry of a JSON object that has a text `id`; opaque if its type is unknown or its body cannot be read.

    A parent id that is missing or no text means a root, a time that is none reads as "";
    the stored form is kept (CTX-12, SES-34).
    """
    kind = raw.get("type")
    cls = ENTRIES.get(kind) if isinstance(kind, str) else None
    if cls is None:
        return decode_opaque(raw)
    if not isinstance(raw.get("timestamp"), str) or not isinstance(raw.get("parentId", 0), (str, NoneType)):
        return _decode_odd_entry(raw, cls)
    try:
        entry: Entry = _wire_hook(cls)(raw, cls)
    except (CodecError, NotJson):
        return _decode_what_can_be_read(raw, cls)
    return entry


def _decode_what_can_be_read(raw: Mapping[str, Json], cls: type[Any]) -> Entry:
    """An entry in which a field that may be missing has a wrong type: read without it, its stored form kept.

    A compaction whose token count is broken still compacts; taken for unreadable, the whole history would come back.
    """
    spare = {camel(field.name) for field in attrs.fields(cls) if field.default is not attrs.NOTHING and field.name != "extra"}
    odd: dict[str, Json] = {}
    while True:
        try:
            entry: Entry = _wire_hook(cls)({key: value for key, value in raw.items() if key not in odd}, cls)
        except CodecError as error:
            name = re.split(r"[.\[]", error.path, maxsplit=1)[0]
            if name not in spare or name in odd:
                return decode_opaque(raw)
            odd[name] = freeze(raw[name], name)
        except NotJson:
            return decode_opaque(raw)
        else:
            return entry if isinstance(entry, OpaqueEntry) else attrs.evolve(entry, extra=FrozenDict({**entry.extra, **odd}))


def _decode_odd_entry(raw: Mapping[str, Json], cls: type[Any]) -> Entry:
    """An entry without a usable parent id or time."""
    sound = {"parentId": None, "timestamp": ""}
    odd = {key: freeze(raw[key], key) for key in sound if key in raw and not isinstance(raw[key], str)}
    if raw.get("parentId", 0) is None:
        del odd["parentId"]
    kept = {key: value for key, value in raw.items() if key not in odd}
    entry = _decode_what_can_be_read({**sound, **kept}, cls)
    if isinstance(entry, OpaqueEntry):
        return decode_opaque(raw)
    return attrs.evolve(entry, extra=FrozenDict({**entry.extra, **odd})) if odd else entry


def decode_opaque(raw: Mapping[str, Json]) -> OpaqueEntry:
    """The entry of a JSON object with a text `id` as a mere node of the tree, its body unread."""
    kind = raw.get("type")
    parent = raw.get("parentId")
    stamp = raw.get("timestamp")
    return OpaqueEntry(
        type=kind if isinstance(kind, str) else "",
        id=raw["id"],
        parent_id=parent if isinstance(parent, str) else None,
        timestamp=stamp if isinstance(stamp, str) else "",
        raw=freeze(raw),
    )


def decode_header(raw: Mapping[str, Json]) -> SessionHeader:
    """The header of a session file. Raises CodecError, naming the field, if it is none."""
    return WIRE.structure(raw, SessionHeader)


def decode_record(raw: Mapping[str, Json]) -> Record:
    """A work record. Raises CodecError if the type is unknown or a field is wrong."""
    record: Record = _tagged(WIRE, raw, RECORDS, "type", "a work record")
    return record


def _wire_hook(cls: type[Any]) -> Callable[[Any, Any], Any]:
    """The reader of a class, without the dispatch of `structure`."""
    return WIRE.get_structure_hook(cls)


def encode(value: Any) -> Any:
    """Any of our values as JSON: dicts with camelCase keys; JSON values pass as they are."""
    return WIRE.unstructure(value)


def wire(cls: type[A], raw: Mapping[str, Json]) -> A:
    """An object of `cls` from camelCase JSON. Raises CodecError with the path of the first fault."""
    return WIRE.structure(raw, cls)


def python(cls: type[A], value: object) -> A:
    """An object of `cls` from itself or from a dict with snake_case keys.

    Raises CodecError if a key is unknown (it is named), missing, or has a wrong type.
    """
    return PYTHON.structure(value, cls)


# -- bytes -------------------------------------------------------------------------------


def dumps(value: Any) -> bytes:
    """Compact UTF-8 JSON of one of our values, without a line end (MSG-4)."""
    plain = WIRE.unstructure(value)
    try:
        return _ENCODER.encode(plain)
    except (UnicodeEncodeError, RecursionError):
        text = json.dumps(_finite(plain), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def line(value: Any) -> bytes:
    """`dumps` with its LF."""
    return dumps(value) + b"\n"


def loads(data: bytes) -> Json:
    """The JSON value of `data`: plain dicts and lists. Raises MalformedJson with the reason.

    Invalid UTF-8 reads as U+FFFD (SES-5), lone surrogates are kept, the last duplicate key wins. More than
    `DEPTH_MAX` levels are refused: how many a parser can read differs between releases of Python.
    """
    value = _loads(data)
    if may_be_deep(data) and _is_deeper_than(value, DEPTH_MAX):
        raise MalformedJson("nested too deeply")
    return value


def _loads(data: bytes) -> Json:
    try:
        return msgspec.json.decode(data)
    except ENVELOPE_FAULTS:
        pass
    try:
        value: Json = json.loads(data.decode("utf-8", "replace"), parse_constant=_refuse_constant)
    except RecursionError:
        raise MalformedJson("nested too deeply") from None
    except ValueError as error:
        raise MalformedJson(str(error)) from None
    if _has_infinity(value):
        raise MalformedJson("a number is beyond the finite range")
    return value


def may_be_deep(data: bytes) -> bool:
    """Whether `data` has enough brackets for more than `DEPTH_MAX` levels."""
    return len(data) > 2 * DEPTH_MAX and data.count(b"[") + data.count(b"{") > DEPTH_MAX


def _is_deeper_than(value: Json, levels: int) -> bool:
    """Without recursion, so that no depth is too much for it."""
    row: list[Json] = [value]
    for _ in range(levels):
        row = [item for each in row if isinstance(each, (dict, list)) for item in (each.values() if isinstance(each, dict) else each)]
        if not row:
            return False
    return any(isinstance(each, (dict, list)) for each in row)


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def _has_infinity(value: Json) -> bool:
    """Python's parser turns 1e999 into infinity without saying so."""
    if isinstance(value, float):
        return math.isinf(value)
    if isinstance(value, dict):
        return any(map(_has_infinity, value.values()))
    return isinstance(value, list) and any(map(_has_infinity, value))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


# -- hooks -------------------------------------------------------------------------------


def camel(name: str) -> str:
    """The JSON name of a Python name: `tool_call_id` to `toolCallId`, `continue_` to `continue`."""
    head, *rest = name.rstrip("_").split("_")
    return head + "".join([part[:1].upper() + part[1:] for part in rest])


def snake(name: str) -> str:
    """The Python name of a JSON name: `toolCallId` to `tool_call_id`."""
    return re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name)


def tag_of(cls: type[Any]) -> tuple[str, str] | None:
    """The constant (`type` or `role`) that marks a class in JSON, or None."""
    names = {field.name for field in attrs.fields(cls)}
    for name in ("type", "role"):
        value = cls.__dict__.get(name)
        if name not in names and isinstance(value, str):
            return name, value
    return None


def _strict(expected: str, *accepted: type[Any]) -> Callable[[Any, Any], Any]:
    def structure(value: Any, _cls: Any) -> Any:
        if type(value) in accepted:
            return value
        if isinstance(value, float) and int in accepted and value.is_integer():
            return int(value)
        raise CodecError("", value, expected)

    return structure


def _freeze(value: Any, _cls: Any) -> Json:
    """As `freeze`, but quick for what a JSON decoder gives: plain dicts with text keys, lists, scalars."""
    kind = type(value)
    if kind is str or kind is int or kind is FrozenDict or value is None or kind is bool or kind is float:
        return value
    if kind is dict:
        frozen = FrozenDict({key: item if type(item) is str else _freeze(item, None) for key, item in value.items()})
        return frozen if all(type(key) is str for key in value) else freeze(value)
    if kind is list:
        return tuple([item if type(item) is str else _freeze(item, None) for item in value])
    return freeze(value)


def _frozen_object(value: Any, _cls: Any) -> FrozenDict:
    if not isinstance(value, Mapping):
        raise CodecError("", value, "an object")
    frozen: FrozenDict = _freeze(value, None)
    return frozen


def _literal(value: Any, cls: Any) -> Any:
    allowed = typing.get_args(cls)
    if value not in allowed or isinstance(value, bool):
        raise CodecError("", value, f"one of {', '.join(map(repr, allowed))}")
    return value


def _tuple_factory(cls: Any, converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    """`tuple[X, ...]` of any number, `tuple[X, Y]` of exactly these."""
    args = typing.get_args(cls)
    many = len(args) == 2 and args[1] is Ellipsis
    hooks = [converter.get_structure_hook(arg) for arg in (args[:1] if many else args)]

    def structure(value: Any, _cls: Any) -> Any:
        if not isinstance(value, (list, tuple)) or (not many and len(value) != len(hooks)):
            raise CodecError("", value, "a list" if many else f"a list of {len(hooks)}")
        done = []
        for index, item in enumerate(value):
            position = 0 if many else index
            try:
                done.append(hooks[position](item, args[position]))
            except CodecError as error:
                raise _under(f"[{index}]", error) from None
        same = type(value) is tuple and all([item is before for item, before in zip(done, value)])
        return value if same else tuple(done)

    return structure


def _optional_factory(cls: Any, converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    """`X | None`, and a union of a text and something else."""
    members = [arg for arg in typing.get_args(cls) if arg is not type(None)]
    nullable = len(members) < len(typing.get_args(cls))
    textual = str in members
    rest = [arg for arg in members if arg is not str]
    known = [union for union in (Block, Message, Entry, Draft) if set(typing.get_args(union)) == set(rest)]
    if known:
        # `Message | None` is flattened into one union; read it as its name says.
        rest = known
    if len(rest) > 1:
        raise TypeError(f"no rule reads {cls}; register a hook for it")
    hook = converter.get_structure_hook(rest[0]) if rest else None

    def structure(value: Any, _cls: Any) -> Any:
        if value is None and nullable:
            return None
        if textual and (isinstance(value, str) or hook is None):
            return _TEXT(value, str)
        assert hook is not None
        return hook(value, rest[0])

    return structure


_TEXT: Final = _strict("a text", str)


def _under(name: str, error: CodecError) -> CodecError:
    path = error.path
    joined = f"{name}{path}" if path.startswith("[") or not path else f"{name}.{path}"
    return CodecError(joined, error.value, error.expected)


_Row = tuple[str, frozenset[type[Any]], Callable[[Any, Any], Any], Any, bool]
"""How one field is read: its name, types taken as they are, hook, annotation, whether null may be left out.

A tuple, because it is unpacked for every field of every message that is read.
"""


_EXACT: Final[Mapping[Any, frozenset[type[Any]]]] = {
    str: frozenset({str}),
    int: frozenset({int}),
    float: frozenset({float, int}),
    bool: frozenset({bool}),
}


def _exact(annotation: Any) -> frozenset[type[Any]]:
    members = [arg for arg in typing.get_args(annotation) if arg is not NoneType] if _is_union(annotation) else [annotation]
    return _EXACT.get(members[0], frozenset()) if len(members) == 1 else frozenset()


def _class_factory(wire_names: bool) -> Callable[[type[Any], cattrs.Converter], Callable[[Any, Any], Any]]:
    """Readers for attrs classes, one per class, built at first use."""

    def build(cls: type[Any], converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
        attrs.resolve_types(cls)
        fields = [field for field in attrs.fields(cls) if field.init and field.name != "extra"]
        keeps_extra = wire_names and "extra" in {field.name for field in attrs.fields(cls)}
        rows: dict[str, _Row] = {
            (camel(field.name) if wire_names else field.name.rstrip("_")): (
                field.name,
                _exact(field.type),
                converter.get_structure_hook(field.type),
                field.type,
                field.default is None,
            )
            for field in fields
        }
        required = {field.name: json_name for field, json_name in zip(fields, rows) if field.default is attrs.NOTHING}
        tag = tag_of(cls)
        prepare = _prepare(cls, wire_names)

        def structure(value: Any, _cls: Any) -> Any:
            if type(value) is not dict:
                if isinstance(value, cls):
                    return value if wire_names else _checked(value, rows)
                if not isinstance(value, Mapping):
                    raise CodecError("", value, f"an object ({cls.__name__})")
            extra: dict[str, Json] = {}
            if prepare is not None and not (wire_names and type(value.get("content")) is list):
                value, extra = prepare(value)
            found = _read_rows(value, rows, tag, extra)
            if extra:
                if keeps_extra:
                    found["extra"] = FrozenDict(extra)
                else:
                    _refuse_unknown(cls, extra, rows)
            try:
                return cls(**found)
            except TypeError:
                # Cheaper than looking before each construction; a class has no other reason to raise it.
                missing = [json_name for name, json_name in required.items() if name not in found]
                if not missing:
                    raise
                raise CodecError(missing[0], None, "a value; it is missing") from None

        return structure

    return build


def _checked(value: Any, rows: Mapping[str, _Row]) -> Any:
    """An object whose fields were checked and frozen; the same one if nothing had to change."""
    changes: dict[str, Any] = {}
    for key, (name, exact, hook, annotation, nullable) in rows.items():
        item = getattr(value, name)
        if type(item) in exact or (item is None and nullable):
            continue
        try:
            done = hook(item, annotation)
        except CodecError as error:
            raise _under(key, error) from None
        if done is not item:
            changes[name] = done
    if type(getattr(value, "extra", EMPTY)) is not FrozenDict:
        changes["extra"] = _frozen_object(value.extra, None)
    return attrs.evolve(value, **changes) if changes else value


def _read_rows(value: Mapping[str, Json], rows: Mapping[str, _Row], tag: tuple[str, str] | None, extra: dict[str, Json]) -> dict[str, Any]:
    """The fields that are there, by Python name; what is unknown, and nulls of optional fields, go into `extra`."""
    found: dict[str, Any] = {}
    for key, item in value.items():
        row = rows.get(key)
        if row is None:
            if tag is None or key != tag[0]:
                extra[key] = _freeze(item, None)
            elif item != tag[1]:
                raise CodecError(key, item, repr(tag[1]))
            continue
        name, exact, hook, annotation, nullable = row
        if type(item) in exact:
            found[name] = item
        elif item is None and nullable:
            extra[key] = None
        else:
            try:
                found[name] = hook(item, annotation)
            except CodecError as error:
                raise _under(key, error) from None
    return found


def _refuse_unknown(cls: type[Any], extra: Mapping[str, Json], rows: Mapping[str, _Row]) -> None:
    """Raises CodecError if `extra` holds a key that the class does not have; nulls of known fields pass."""
    for key, item in extra.items():
        if key not in rows:
            raise CodecError(key, item, f"no such field; {cls.__name__} has {', '.join(sorted(rows))}")


def _prepare(cls: type[Any], wire_names: bool) -> Callable[[Any], tuple[Mapping[str, Json], dict[str, Json]]] | None:
    """What a class wants done to its JSON before the fields are read, or None."""
    has_content = cls in _EMPTY_CONTENT
    if not has_content and wire_names:
        return None

    def prepare(value: Mapping[str, Json]) -> tuple[Mapping[str, Json], dict[str, Json]]:
        if not wire_names and "continue_" in value:
            value = {("continue" if key == "continue_" else key): item for key, item in value.items()}
        return _harmless_content(value, cls) if has_content else (value, {})

    return prepare


def _harmless_content(value: Mapping[str, Json], cls: type[Any]) -> tuple[Mapping[str, Json], dict[str, Json]]:
    """Missing or null content, and plain text of an assistant, read harmlessly; the stored form is kept (MSG-41, MSG-44)."""
    found = value.get("content")
    if type(found) is list:
        return value, {}
    if found is None:
        return {**value, "content": _EMPTY_CONTENT[cls]}, ({"content": None} if "content" in value else {})
    if cls in _ALWAYS_BLOCKS and isinstance(found, str):
        return {**value, "content": ({"type": "text", "text": found},)}, {"content": found}
    return value, {}


def _writer_factory(cls: type[Any], converter: cattrs.Converter) -> Callable[[Any], Any]:
    attrs.resolve_types(cls)
    tag = tag_of(cls)
    rows = [
        (field.name, camel(field.name), _holds_classes(field.type), field.default is None)
        for field in attrs.fields(cls)
        if field.name != "extra" and not field.name.startswith("_")
    ]
    has_extra = "extra" in {field.name for field in attrs.fields(cls)}
    unstructure = converter.unstructure

    def write(value: Any) -> Any:
        done: dict[str, Any] = {tag[0]: tag[1]} if tag else {}
        for name, json_name, nested, omit_none in rows:
            item = getattr(value, name)
            if item is None:
                if not omit_none:
                    done[json_name] = None
            elif not nested or isinstance(item, str):
                done[json_name] = item
            elif isinstance(item, tuple):
                done[json_name] = [unstructure(part) for part in item]
            else:
                done[json_name] = unstructure(item)
        if has_extra and value.extra:
            done.update(value.extra)
        return done

    return write


def _holds_classes(annotation: Any) -> bool:
    """Whether a field of this type can hold objects of our classes, so that writing must look inside."""
    if attrs.has(annotation) if isinstance(annotation, type) else False:
        return True
    return any(_holds_classes(arg) for arg in typing.get_args(annotation))


_BLOCK_CLASSES: Final = frozenset({*BLOCKS.values(), OpaqueBlock})
_MESSAGE_CLASSES: Final = frozenset({*MESSAGES.values(), OpaqueMessage})


def _tagged(converter: cattrs.Converter, value: Any, table: Mapping[str, type[Any]], tag: str, what: str) -> Any:
    if not isinstance(value, Mapping):
        raise CodecError("", value, f"an object ({what})")
    kind = value.get(tag)
    cls = table.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise CodecError(tag, kind, f"one of {', '.join(table)}")
    return converter.structure(value, cls)


def _block(converter: cattrs.Converter) -> Callable[[Any, Any], Block]:
    hooks: dict[str, Callable[[Any, Any], Any]] = {}

    def structure(value: Any, _cls: Any) -> Block:
        if type(value) in _BLOCK_CLASSES:
            block: Block = value if type(value) is OpaqueBlock else converter.structure(value, type(value))
            return block
        kind = value.get("type") if isinstance(value, (dict, Mapping)) else None
        if not isinstance(kind, str):
            raise CodecError("", value, "a content block (an object with a text `type`)")
        hook = hooks.get(kind)
        if hook is None:
            cls = BLOCKS.get(kind)
            if cls is None:
                return OpaqueBlock(type=kind, raw=freeze(value))
            hook = hooks[kind] = converter.get_structure_hook(cls)
        done: Block = hook(value, None)
        return done

    return structure


def _message(converter: cattrs.Converter, *, lenient: bool) -> Callable[[Any, Any], Message]:
    def structure(value: Any, _cls: Any) -> Message:
        if type(value) in _MESSAGE_CLASSES:
            message: Message = value if lenient or type(value) is OpaqueMessage else converter.structure(value, type(value))
            return message
        if not isinstance(value, Mapping):
            raise CodecError("", value, "a message (an object)")
        if lenient:
            return decode_message(value)
        role = value.get("role")
        cls = MESSAGES.get(role) if isinstance(role, str) else None
        if cls is None:
            raise CodecError("role", role, f"one of {', '.join(MESSAGES)}")
        done: Message = converter.structure(value, cls)
        return done

    return structure


def _entry(value: Any, _cls: Any) -> Entry:
    if not isinstance(value, Mapping) or not isinstance(value.get("id"), str):
        raise CodecError("", value, "an entry (an object with a text `id`)")
    return decode_entry(value)


def _draft(converter: cattrs.Converter) -> Callable[[Any, Any], Draft]:
    def structure(value: Any, _cls: Any) -> Draft:
        if type(value) in DRAFTS.values():
            known: Draft = converter.structure(value, type(value))
            return known
        draft: Draft = _tagged(converter, value, DRAFTS, "type", "a draft")
        return draft

    return structure


def _is_tuple(annotation: Any) -> bool:
    return bool(typing.get_origin(annotation) is tuple)


def _is_literal(annotation: Any) -> bool:
    return bool(typing.get_origin(annotation) is typing.Literal)


def _is_union(annotation: Any) -> bool:
    return typing.get_origin(annotation) in (types.UnionType, typing.Union)


def _converter(*, wire_names: bool) -> cattrs.Converter:
    converter = cattrs.Converter(detailed_validation=False)
    converter.register_structure_hook_factory(_is_union, _optional_factory)
    converter.register_structure_hook_factory(_is_tuple, _tuple_factory)
    converter.register_structure_hook_factory(attrs.has, _class_factory(wire_names))
    converter.register_structure_hook(str, _TEXT)
    converter.register_structure_hook(int, _strict("a whole number", int))
    converter.register_structure_hook(float, _strict("a number", float, int))
    converter.register_structure_hook(bool, _strict("true or false", bool))
    converter.register_structure_hook(FrozenDict, _frozen_object)
    converter.register_structure_hook_func(lambda cls: cls is Any, _freeze)
    converter.register_structure_hook_func(lambda cls: cls is object, lambda value, _cls: value)
    converter.register_structure_hook_func(_is_literal, _literal)
    converter.register_structure_hook_func(lambda cls: cls == Block, _block(converter))
    converter.register_structure_hook_func(lambda cls: cls == Message, _message(converter, lenient=wire_names))
    converter.register_structure_hook_func(lambda cls: cls == Draft, _draft(converter))
    converter.register_structure_hook_func(lambda cls: cls == Entry, _entry)
    converter.register_unstructure_hook_factory(attrs.has, _writer_factory)
    converter.register_unstructure_hook_func(lambda cls: cls in (OpaqueMessage, OpaqueBlock, OpaqueEntry), lambda value: value.raw)
    converter.register_unstructure_hook_func(lambda cls: cls in (FrozenDict, dict), lambda value: value)
    converter.register_unstructure_hook_func(
        lambda cls: cls in (tuple, list), lambda value: [converter.unstructure(item) for item in value]
    )
    return converter


WIRE: Final = _converter(wire_names=True)
"""camelCase JSON of files and protocols."""

PYTHON: Final = _converter(wire_names=False)
"""snake_case dicts of handlers and tools."""
