"""Constrained sampling of tools: schemas made strict, and grammars (WIRE-35 to WIRE-39)."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from camshaft.actors.api import Json, ToolDeclaration

UNCONVERTIBLE: Final = (
    "$ref",
    "$defs",
    "definitions",
    "allOf",
    "oneOf",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
    "propertyNames",
    "contains",
    "prefixItems",
    "not",
    "if",
    "then",
    "else",
)
"""Keywords that strict mode does not know (WIRE-36)."""

Refusal = Callable[[Mapping[str, Any]], str | None]
"""What of one node of a schema an API does not take in strict mode, besides the above; None if it takes the node."""

SYNTAXES: Final = (("openai_lark", "lark"), ("openai_regex", "regex"))
"""Grammar variants that OpenAI's servers read, and what they call them."""

UNKNOWN_TOOL_PROPERTY: Final = "input"
"""Property that holds the text of a call of a grammar tool that was not declared (WIRE-39)."""


class ConstraintRefused(Exception):
    """A tool requires what the model or its schema cannot give; the text names tool and reason."""


class _Unconvertible(Exception):
    """A schema that cannot be made strict; the text says where."""


def strict_parameters(tool: ToolDeclaration, *, is_supported: bool, refusal: Refusal = lambda _schema: None) -> Json | None:
    """The tool's schema made strict, or None if it is sent as it is; `refusal` tells what this API does not take.

    Raises ConstraintRefused if the tool requires strictness that it cannot have (WIRE-37).
    """
    wish = tool.constrained_sampling
    if not isinstance(wish, Mapping) or wish.get("type") != "json_schema":
        return None
    reason = "strict tools are unsupported"
    if is_supported:
        try:
            return _strict(tool.parameters, "parameters", refusal, is_root=True)
        except _Unconvertible as error:
            reason = str(error)
    if wish.get("strict") == "require":
        raise ConstraintRefused(f'Tool "{tool.name}" requires JSON-schema constrained sampling, but {reason}.')
    return None


def grammar_of(tool: ToolDeclaration) -> tuple[str, str] | None:
    """Syntax and definition of a grammar tool, None for any other. Raises ConstraintRefused if no variant is usable (WIRE-39)."""
    variants = _variants(tool)
    if variants is None:
        return None
    if grammar_property(tool) is None:
        shape = "its schema must be an object with exactly one required text property"
        raise ConstraintRefused(f'Tool "{tool.name}" cannot use grammar constrained sampling: {shape}')
    for name, syntax in SYNTAXES:
        if isinstance(variants.get(name), str):
            return syntax, variants[name]
    raise ConstraintRefused(
        f'Tool "{tool.name}" cannot use grammar constrained sampling: it has no variant of {", ".join(name for name, _ in SYNTAXES)}'
    )


def grammar_property(tool: ToolDeclaration) -> str | None:
    """The one text property of a grammar tool; None for any other tool, or if the schema has another shape."""
    if _variants(tool) is None or tool.parameters.get("type") != "object":
        return None
    required, properties = tool.parameters.get("required"), tool.parameters.get("properties")
    if not isinstance(required, (list, tuple)) or len(required) != 1 or not isinstance(properties, Mapping):
        return None
    schema = properties.get(required[0])
    is_text = isinstance(schema, Mapping) and schema.get("type") == "string"
    return str(required[0]) if is_text else None


def _variants(tool: ToolDeclaration) -> Mapping[str, Any] | None:
    wish = tool.constrained_sampling
    if not isinstance(wish, Mapping) or wish.get("type") != "grammar":
        return None
    variants = wish.get("variants")
    return variants if isinstance(variants, Mapping) else {}


def _strict(schema: Json, path: str, refusal: Refusal, *, is_root: bool = False) -> dict[str, Any]:
    if not isinstance(schema, Mapping):
        raise _Unconvertible(f"{path} is a boolean schema")
    _check(schema, path, refusal)
    if is_root and schema.get("type") != "object":
        raise _Unconvertible(f"{path} is no object schema")
    done = dict(schema)
    if "anyOf" in schema:
        done["anyOf"] = [_variant(each, f"{path}.anyOf[{index}]", refusal) for index, each in enumerate(schema["anyOf"])]
    elif "type" not in schema and "enum" not in schema and "const" not in schema:
        raise _Unconvertible(f"{path} has no type")
    if "properties" in schema or "object" in _types(schema):
        done.update(_strict_object(schema, path, refusal))
    if "items" in schema:
        if not isinstance(schema["items"], Mapping):
            raise _Unconvertible(f"{path} uses tuple items")
        done["items"] = _strict(schema["items"], f"{path}.items", refusal)
    return done


def _check(schema: Mapping[str, Any], path: str, refusal: Refusal) -> None:
    """Raises _Unconvertible if one node of a schema, looked at alone, is nothing that strict mode takes."""
    for keyword in UNCONVERTIBLE:
        if keyword in schema:
            raise _Unconvertible(f"{path} uses {keyword}")
    refused = refusal(schema)
    if refused is not None:
        raise _Unconvertible(f"{path} uses {refused}")
    for keyword in ("anyOf", "enum"):
        if not isinstance(schema.get(keyword, ()), (list, tuple)):
            raise _Unconvertible(f"{path} has a malformed {keyword}")


def _variant(schema: Json, path: str, refusal: Refusal) -> dict[str, Any]:
    if isinstance(schema, Mapping) and not {"object", "array"}.isdisjoint(_types(schema)):
        raise _Unconvertible(f"{path} is an object or array variant")
    return _strict(schema, path, refusal)


def _strict_object(schema: Mapping[str, Any], path: str, refusal: Refusal) -> dict[str, Any]:
    if schema.get("additionalProperties", False) is not False:
        raise _Unconvertible(f"{path} allows additional properties")
    properties, required = schema.get("properties", {}), schema.get("required", ())
    if not isinstance(properties, Mapping) or not isinstance(required, (list, tuple)):
        raise _Unconvertible(f"{path} has malformed properties")
    for name in required:
        if not isinstance(name, str) or name not in properties:
            raise _Unconvertible(f"{path} requires the unknown property {name}")
    made = {}
    for name, child in properties.items():
        strict = _strict(child, f"{path}.{name}", refusal)
        made[name] = strict if name in required or _allows_null(strict) else {"anyOf": [strict, {"type": "null"}]}
    return {"properties": made, "required": list(properties), "additionalProperties": False}


def _types(schema: Mapping[str, Any]) -> tuple[str, ...]:
    kind = schema.get("type")
    return tuple(kind) if isinstance(kind, (list, tuple)) else (kind,) if isinstance(kind, str) else ()


def _allows_null(schema: Mapping[str, Any]) -> bool:
    if "null" in _types(schema) or None in (schema.get("enum") or ()):
        return True
    return any(isinstance(each, Mapping) and _allows_null(each) for each in schema.get("anyOf") or ())
