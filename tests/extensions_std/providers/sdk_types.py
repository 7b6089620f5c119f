"""The official SDK's request types as a check: unknown keys are refused, and lists are read to their end."""

from functools import cache
from typing import Any

from anthropic.types.beta.message_create_params import MessageCreateParamsStreaming
from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator


@cache
def _validator() -> SchemaValidator:
    return SchemaValidator(_strict(TypeAdapter(MessageCreateParamsStreaming).core_schema))


def anthropic_faults(body: Any) -> list[str]:
    """Why the SDK's types do not take a request body of the Anthropic API, given as parsed JSON; empty if they take it.

    Of blocks and messages, which are unions, each refused variant is told. The types of the day have lost
    `temperature`, because the vendor's newest models take none; other models and servers do.
    """
    temperature = body.get("temperature", 0)
    if not isinstance(temperature, (int, float)) or not 0 <= temperature <= 1:
        return [f"temperature: {temperature!r}"]
    try:
        _validator().validate_python({name: value for name, value in body.items() if name != "temperature"})
    except ValidationError as error:
        return [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_url=False, include_input=False)]
    return []


def _strict(schema: Any) -> Any:
    """A core schema whose objects have no unknown keys, and whose iterables are lists: generators are not looked into."""
    if isinstance(schema, list | tuple):
        return type(schema)([_strict(each) for each in schema])
    if not isinstance(schema, dict):
        return schema
    made = {name: _strict(value) for name, value in schema.items()}
    if made.get("type") in ("typed-dict", "model-fields"):
        made.pop("extras_schema", None)
        made["extra_behavior"] = "forbid"
    if made.get("type") == "generator":
        made["type"] = "list"
    return made
