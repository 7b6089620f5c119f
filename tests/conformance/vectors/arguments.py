"""Vector family `arguments`: coercion and validation of a call's arguments (VECTORS.md 5.2)."""

from typing import Any

from camshaft.kernel.arguments import InvalidArguments, prepared_arguments


def run(case_input: dict[str, Any]) -> object:
    """The coerced arguments, or the text the model gets."""
    try:
        value = prepared_arguments(case_input["tool"], case_input["parameters"], case_input["arguments"], case_input.get("argumentsError"))
    except InvalidArguments as error:
        return {"error": str(error)}
    return {"value": value}
