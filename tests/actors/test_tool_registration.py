"""Tools from an attrs class of parameters and from a typed function, called by a model."""

from typing import Annotated, Any, Literal

import attrs
import pytest

from camshaft.actors.api import ExtensionAPI, OnUpdate, Signal, ToolContext, ToolDefinition, ToolResult, define_tool
from camshaft.actors.misuse import ExtensionMisuse
from camshaft.actors.tool_registration import tool_definition
from camshaft.extensions_std.providers.scripted import assistant, tool_call
from camshaft.kernel.messages import TextBlock
from camshaft.kernel.tools import Annotations, Namespace
from tests.actors.running import opened, results, simulate


@attrs.frozen
class Query:
    """What to look for."""

    words: list[str]
    limit: int = attrs.field(default=10, metadata={"description": "most lines to give"})
    order: Literal["up", "down"] = "up"


def calling(name: str, arguments: dict[str, Any], setup: Any) -> list[tuple[str, str, bool]]:
    """The results of one call."""

    async def run() -> list[tuple[str, str, bool]]:
        async with opened([assistant([tool_call(name, arguments, id="c1")]), assistant("done")], setup) as running:
            assert running.seat.load_errors == ()
            await running.seat.prompt("go")
            return results(running.seat.context_messages)
        raise AssertionError

    found: list[tuple[str, str, bool]] = simulate(run)
    return found


def definition_of(setup: Any, name: str) -> ToolDefinition:
    async def run() -> ToolDefinition:
        async with opened([], setup) as running:
            assert running.seat.load_errors == ()
            return running.seat.tools[name].definition
        raise AssertionError

    found: ToolDefinition = simulate(run)
    return found


# -- an attrs class ----------------------------------------------------------------------


def search(_id: str, query: Query, _signal: Signal, _on_update: OnUpdate, ctx: ToolContext) -> ToolResult:
    assert isinstance(query, Query)
    return ToolResult(content=(TextBlock(text=f"{query} in {ctx.cwd}"),))


@pytest.mark.rule("TOOL-1")
@pytest.mark.parametrize(
    "registered",
    [
        {"name": "search", "description": "d", "parameters": Query, "execute": search},
        define_tool("search", "d", Query, search),
    ],
    ids=["dict", "define_tool"],
)
def test_a_class_of_parameters_is_the_schema_and_execute_gets_an_object_of_it(registered: Any) -> None:
    found = calling("search", {"words": ["a"], "limit": "3"}, lambda api: api.register_tool(registered))

    assert found == [("c1", "Query(words=['a'], limit=3, order='up') in /", False)]


@pytest.mark.rule("TOOL-1")
def test_the_schema_of_a_class_tells_the_model_types_defaults_and_descriptions() -> None:
    definition = define_tool("search", "d", Query, search, exposure="deferred", namespace={"name": "finding", "aliases": ["f"]})

    assert definition.parameters == {
        "type": "object",
        "properties": {
            "words": {"type": "array", "items": {"type": "string"}},
            "limit": {"type": "integer", "default": 10, "description": "most lines to give"},
            "order": {"type": "string", "enum": ("up", "down"), "default": "up"},
        },
        "required": ("words",),
        "additionalProperties": False,
    }
    assert (definition.exposure, definition.namespace) == ("deferred", Namespace(name="finding", aliases=("f",)))


def test_arguments_that_do_not_fit_the_class_never_reach_the_tool() -> None:
    ((_, text, is_error),) = calling(
        "search", {"words": ["a"], "order": "sideways"}, lambda api: api.register_tool(define_tool("search", "d", Query, search))
    )

    assert is_error
    assert "order" in text


def test_what_the_class_itself_refuses_is_the_result_of_the_call() -> None:
    @attrs.frozen
    class Even:
        number: int = attrs.field()

        @number.validator
        def _is_even(self, _attribute: Any, value: int) -> None:
            if value % 2:
                raise ValueError(f"{value} is odd")

    found = calling("even", {"number": 3}, lambda api: api.register_tool(define_tool("even", "d", Even, lambda *_: None)))

    assert found == [("c1", "3 is odd", True)]


# -- a typed function --------------------------------------------------------------------


def test_a_typed_function_is_a_tool_with_its_name_its_docstring_and_its_signature() -> None:
    def setup(api: ExtensionAPI) -> None:
        @api.tool
        async def greet(name: Annotated[str, "whom"], ctx: ToolContext, times: int = 1, *, loud: bool | None = None) -> str:
            """Greets somebody.

            As often as wanted.
            """
            assert isinstance(ctx, ToolContext)
            return f"{'HELLO' if loud else 'hello'} {name} " * times

    definition = definition_of(setup, "greet")

    assert (definition.name, definition.description) == ("greet", "Greets somebody.\n\nAs often as wanted.")
    assert definition.parameters == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "whom"},
            "times": {"type": "integer", "default": 1},
            "loud": {"anyOf": ({"type": "boolean"}, {"type": "null"})},
        },
        "required": ("name",),
        "additionalProperties": False,
    }
    assert calling("greet", {"name": "Ada", "times": "2"}, setup) == [("c1", "hello Ada hello Ada ", False)]


def test_a_function_gets_what_belongs_to_the_call_by_the_annotation() -> None:
    def look(signal: Signal, on_update: OnUpdate, context: ToolContext) -> str:
        """Looks."""
        on_update({"content": [{"type": "text", "text": "half"}]})
        return f"{signal.cancelled} {context.tool_call_id}"

    assert calling("look", {}, lambda api: api.register_tool(look)) == [("c1", "False c1", False)]


def test_the_decorator_takes_further_fields_and_gives_the_function_back() -> None:
    kept: list[Any] = []

    def setup(api: ExtensionAPI) -> None:
        @api.tool(name="hi", exposure="model-only", annotations={"read_only_hint": True}, prompt_snippet="greets")
        def greet() -> str:
            """Greets."""
            return "hello"

        kept.append(greet())

    definition = definition_of(setup, "hi")

    assert kept == ["hello"]
    assert (definition.exposure, definition.annotations) == ("model-only", Annotations(read_only_hint=True))


@pytest.mark.parametrize(
    ("answer", "text", "is_error"),
    [("text", "text", False), (None, "", False), (ToolResult(content=(TextBlock(text="result"),), is_error=True), "result", True)],
)
def test_a_function_may_return_a_text_nothing_or_a_result(answer: Any, text: str, is_error: bool) -> None:
    def give() -> Any:
        """Gives."""
        return answer

    assert calling("give", {}, lambda api: api.register_tool(give)) == [("c1", text, is_error)]


def no_text(x: int) -> None:
    pass


def not_annotated(x) -> None:  # type: ignore[no-untyped-def]  # the mistake
    """Has a parameter of no type."""


def many(*words: str) -> None:
    """Takes any number."""


def unnamed(x: int, /) -> None:
    """Takes one by place."""


def bytes_of(x: bytes) -> None:
    """Takes bytes."""


def of_nobody(x: "Nobody") -> None:  # type: ignore[name-defined]  # noqa: F821  # the mistake
    """Names what is not there."""


def of_a_missing_member(x: "pytest.Nobody") -> None:  # type: ignore[name-defined]  # the mistake
    """Names what is not in a module."""


def half_written(x: Any) -> None:
    """Is annotated with half an expression."""


half_written.__annotations__["x"] = "int |"


MISTAKES: dict[str, tuple[Any, str]] = {
    "no docstring": (
        no_text,
        "function no_text registered as a tool by the host has no docstring; a model reads it as the description of the tool",
    ),
    "no annotation": (
        not_annotated,
        "function not_annotated registered as a tool by the host: parameter 'x' has no annotation; a model must be told its type",
    ),
    "any number of parameters": (
        many,
        "function many registered as a tool by the host: parameter *words: str cannot be named in a call; "
        "expected parameters that can be given by name",
    ),
    "a parameter without a name": (
        unnamed,
        "function unnamed registered as a tool by the host: parameter x: int cannot be named in a call; "
        "expected parameters that can be given by name",
    ),
    "an annotation that no schema says": (
        bytes_of,
        "function bytes_of registered as a tool by the host: x: bytes cannot be described to a model; "
        "expected str, int, float, bool, None, Any, Literal, list[T], tuple[T, ...], dict[str, T], a union of these, "
        'an attrs class, or Annotated[T, "what it is"]',
    ),
    "an annotation that names nothing": (
        of_nobody,
        "function of_nobody registered as a tool by the host: name 'Nobody' is not defined; "
        "an annotation may only name what the module defines or imports",
    ),
    "an annotation that names what its module has not": (
        of_a_missing_member,
        "function of_a_missing_member registered as a tool by the host: module 'pytest' has no attribute 'Nobody'; "
        "an annotation may only name what the module defines or imports",
    ),
    "an annotation that is none": (
        half_written,
        "function half_written registered as a tool by the host: an annotation is none: "
        "Forward reference must be an expression -- got 'int |'",
    ),
}


@pytest.mark.parametrize(("function", "text"), MISTAKES.values(), ids=MISTAKES)
def test_a_function_that_cannot_be_a_tool_is_refused_with_the_place(function: Any, text: str) -> None:
    with pytest.raises(ExtensionMisuse) as caught:
        tool_definition(function, None)

    assert str(caught.value) == text
