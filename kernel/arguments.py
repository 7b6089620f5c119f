"""Arguments of a tool call on their way to `execute`: coerced, checked, or refused with a text for the model.

The text is exact, because models were trained on it and transcripts are compared (TOOL-12, TOOL-14).
"""

import json
from functools import lru_cache
from typing import Any, Final

from camshaft.kernel import shapes
from camshaft.kernel.coercion import coerced
from camshaft.kernel.errors import KernelError
from camshaft.kernel.persistent import FrozenDict, Json, thaw
from camshaft.kernel.plain_schemas import fits_plainly
from camshaft.kernel.schema_errors import errors_of, validator_class
from camshaft.kernel.schemas import cleaned

SCHEMAS_MAX: Final = 256
"""Prepared schemas kept; a session has some dozens of tools."""


class InvalidArguments(KernelError):
    """The arguments do not fit; the text is the tool result the model gets."""


def prepared_arguments(tool_name: str, schema: Json, arguments: Json, arguments_error: str | None = None) -> dict[str, Any]:
    """A private mutable copy of the arguments, coerced (TOOL-13) and valid by the schema.

    A prepared schema is kept while its object is the same FrozenDict. Raises InvalidArguments
    if the model's text was no JSON object, the value does not fit, or it is nested too deeply.
    """
    if arguments_error:
        raise InvalidArguments(f'Invalid arguments for tool "{tool_name}": {arguments_error}')
    try:
        plain = thaw(arguments)
        if isinstance(plain, dict) and fits_plainly(schema, plain):
            return plain
        validator = _prepared(_SameObject(schema)) if isinstance(schema, FrozenDict) else _validator(schema)
        value = coerced(validator, plain)
        errors = errors_of(validator, value)
    except RecursionError:
        raise InvalidArguments(f'Validation failed for tool "{tool_name}":\n  - root: nested too deeply') from None
    if not errors and not isinstance(value, dict):
        errors = [((), "expected object")]
    if errors:
        raise InvalidArguments(_text(tool_name, errors, arguments))
    made: dict[str, Any] = value
    return made


def _text(tool_name: str, errors: list[tuple[tuple[str | int, ...], str]], arguments: Json) -> str:
    lines = [f"  - {'.'.join(map(str, path)) or 'root'}: {message}" for path, message in errors]
    received = json.dumps(arguments, indent=2, ensure_ascii=False)
    return "\n".join([f'Validation failed for tool "{tool_name}":', *lines, "", "Received arguments:", received])


@shapes.frozen(eq=False)
class _SameObject:
    """A key that is equal only for the same schema object; holding it keeps its identity from being reused."""

    schema: FrozenDict

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SameObject) and other.schema is self.schema

    def __hash__(self) -> int:
        return id(self.schema)


@lru_cache(maxsize=SCHEMAS_MAX)
def _prepared(key: _SameObject) -> Any:
    return _validator(key.schema)


def _validator(schema: Json) -> Any:
    from referencing import Registry

    return validator_class()(cleaned(schema), registry=Registry())
