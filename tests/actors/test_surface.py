"""What extensions offer to frontends, and who wins."""

from typing import Any

import pytest

from camshaft.actors.host import (
    ExtensionSurface,
    MarkdownContext,
    RenderView,
    ToolRenderers,
    bound_shortcuts,
    render_entry,
    render_message,
    tool_renderers,
    transform_markdown,
)
from camshaft.actors.surface import RESERVED_ACTIONS
from camshaft.kernel.entries import CustomEntry
from camshaft.kernel.messages import CustomMessage
from tests.actors.running import opened, simulate, tool

MESSAGE = CustomMessage(custom_type="note", content=(), display=True, timestamp=1)
ENTRY = CustomEntry(id="e", parent_id=None, timestamp="2026-01-01T00:00:00.000Z", custom_type="note")
TOOL = tool(lambda *_: None, render_call="own call", render_shell="self")


def offered(*setups: Any) -> ExtensionSurface:
    async def run() -> ExtensionSurface:
        async with opened([], *setups) as running:
            assert all(["conflicts with" in each.error for each in running.seat.load_errors])
            return running.seat.extension_surface
        raise AssertionError

    found: ExtensionSurface = simulate(run)
    return found


def pressing(key: str, handler: Any = print) -> Any:
    return lambda api: api.register_shortcut(key, handler)


def raises(*_: Any) -> Any:
    raise ValueError("bad")


# -- shortcuts ---------------------------------------------------------------------------

KEYS = {"app.exit": ("ctrl+d",), "app.editor.undo": ("ctrl+z", "ctrl+y"), "app.model.select": ("ctrl+y",)}


@pytest.mark.rule("EXT-30", "API-5")
def test_of_two_shortcuts_for_one_key_the_last_works_and_its_owner_is_warned() -> None:
    def last(*_: Any) -> None:
        """The one that counts."""

    bound = bound_shortcuts(offered(pressing("Ctrl+X"), pressing("ctrl+x", last)), KEYS)

    assert {key: each.handler for key, each in bound.by_key.items()} == {"ctrl+x": last}
    assert [(each.extension_path, each.text) for each in bound.problems] == [
        ("<inline:x1>", 'Shortcut "ctrl+x" replaces that of <inline:x0>')
    ]


@pytest.mark.rule("EXT-30", "EXT-32")
@pytest.mark.parametrize(
    ("key", "works", "warning"),
    [
        ("ctrl+d", False, 'Shortcut "ctrl+d" is reserved for app.exit; it is skipped'),
        ("CTRL+D", False, 'Shortcut "CTRL+D" is reserved for app.exit; it is skipped'),
        ("ctrl+y", False, 'Shortcut "ctrl+y" is reserved for app.model.select; it is skipped'),
        ("ctrl+z", True, 'Shortcut "ctrl+z" replaces the key of app.editor.undo'),
        ("ctrl+q", True, None),
    ],
)
def test_a_key_that_the_frontend_needs_stays_its_own_and_others_are_taken(key: str, works: bool, warning: str | None) -> None:
    bound = bound_shortcuts(offered(pressing(key)), KEYS)

    assert list(bound.by_key) == ([key.lower()] if works else [])
    assert [each.text for each in bound.problems] == ([warning] if warning else [])


@pytest.mark.rule("EXT-32")
def test_the_reserved_actions_are_those_of_the_specification() -> None:
    assert len(RESERVED_ACTIONS) == len(set(RESERVED_ACTIONS)) == 18


@pytest.mark.rule("API-5", "CTXT-10")
def test_a_shortcut_gets_a_context_and_its_failure_is_reported() -> None:
    seen: list[Any] = []

    def setup(api: Any) -> None:
        api.register_shortcut("F1", lambda ctx: seen.append(ctx.cwd))
        api.register_shortcut("f2", raises)

    async def run() -> tuple[list[bool], list[Any]]:
        async with opened([], setup) as running:
            ran = [await running.seat.run_shortcut(key) for key in ("f1", "F2", "f3")]
            return ran, running.errors()
        raise AssertionError

    assert simulate(run) == ([True, True, False], [("<inline:x0>", "shortcut", "bad")])
    assert seen == ["/"]


# -- renderers ---------------------------------------------------------------------------


@pytest.mark.rule("EXT-30", "API-9")
def test_the_renderer_of_the_first_extension_counts_and_of_one_extension_the_last() -> None:
    def first(api: Any) -> None:
        api.register_message_renderer("note", lambda *_: "replaced")
        api.register_message_renderer("note", lambda message, view: f"{message.custom_type} {view.width}")
        api.register_entry_renderer("note", lambda entry, _view: entry.id)

    def second(api: Any) -> None:
        api.register_message_renderer("note", lambda *_: "second")
        api.register_entry_renderer("note", lambda *_: "second")
        api.register_message_renderer("other", lambda *_: "other")

    surface = offered(first, second)

    assert render_message(surface, MESSAGE, RenderView(width=80)).value == "note 80"
    assert render_entry(surface, ENTRY).value == "e"


@pytest.mark.rule("API-9", "ERR-7")
@pytest.mark.parametrize(("renderer", "problem"), [(raises, "bad"), (lambda *_: None, None)])
def test_a_renderer_that_raises_or_gives_nothing_leaves_the_default(renderer: Any, problem: str | None) -> None:
    def setup(api: Any) -> None:
        api.register_message_renderer("note", renderer)

    rendered = render_message(offered(setup, lambda api: api.register_message_renderer("note", lambda *_: "second")), MESSAGE)

    assert rendered.value is None
    assert (rendered.problem and rendered.problem.text) == problem


def test_what_nobody_renders_is_shown_the_default_way() -> None:
    assert render_entry(ExtensionSurface(), ENTRY).value is None


@pytest.mark.rule("API-11", "EXT-30")
def test_the_resolvers_of_tool_renderers_are_a_chain_that_ends_at_the_tool() -> None:
    def first(api: Any) -> None:
        api.register_tool_renderer(lambda _name, rest: ToolRenderers(call=f"first({rest().call})"))  # type: ignore[arg-type]  # told apart by it
        api.register_tool_renderer(lambda name, rest: ToolRenderers(call=f"{name}({rest().call})"))  # type: ignore[arg-type]  # as above

    def second(api: Any) -> None:
        api.register_tool_renderer(raises)
        api.register_tool_renderer(lambda *_: None)
        api.register_tool_renderer(lambda *_: "nonsense")

    rendered = tool_renderers(offered(first, second), TOOL)

    assert rendered.value == ToolRenderers(call="first(work(own call))")  # type: ignore[arg-type]  # as above
    assert rendered.problem is not None
    assert (rendered.problem.extension_path, rendered.problem.text) == ("<inline:x1>", "bad")


def test_a_tool_that_nobody_resolves_keeps_its_own_renderers() -> None:
    assert tool_renderers(ExtensionSurface(), TOOL).value == ToolRenderers(shell="self", call="own call")  # type: ignore[arg-type]  # told apart by it


# -- Markdown ----------------------------------------------------------------------------


@pytest.mark.rule("API-10", "EXT-30")
def test_transformers_run_in_load_order_one_an_extension_and_a_raising_one_keeps_the_text_so_far() -> None:
    def first(api: Any) -> None:
        api.register_markdown_transformer(lambda *_: "replaced")
        api.register_markdown_transformer(lambda text, ctx: f"{text}-{ctx.message_type}")

    surface = offered(
        first,
        lambda api: api.register_markdown_transformer(raises),
        lambda api: api.register_markdown_transformer(lambda *_: 3),
        lambda api: api.register_markdown_transformer(lambda text, _ctx: text.upper()),
    )

    done = transform_markdown(surface, "x", MarkdownContext(message_type="user"))

    assert done.text == "X-USER"
    assert [(each.extension_path, each.text) for each in done.problems] == [
        ("<inline:x1>", "bad"),
        ("<inline:x2>", "the Markdown transformer returned 3; expected a text"),
    ]


@pytest.mark.rule("API-10")
@pytest.mark.parametrize(
    ("places", "where", "works"), [(None, "custom", False), (None, "assistant-thinking", True), (("custom",), "custom", True)]
)
def test_a_transformer_works_where_it_says_else_on_what_people_and_models_wrote(places: Any, where: str, works: bool) -> None:
    more = {} if places is None else {"message_types": places}
    surface = offered(lambda api: api.register_markdown_transformer(lambda *_: "changed", **more))

    assert (transform_markdown(surface, "x", MarkdownContext(message_type=where)).text == "changed") is works


# -- flags -------------------------------------------------------------------------------


def flag(default: Any, seen: list[Any], kind: str = "string") -> Any:
    def setup(api: Any) -> None:
        api.register_flag("plan", type=kind, default=default)
        seen.append(api.get_flag("plan"))
        api.on("session_start", lambda *_: seen.append(api.get_flag("plan")))

    return setup


@pytest.mark.rule("API-7", "EXT-30")
def test_the_first_default_counts_for_everybody_and_the_last_registration_says_the_type() -> None:
    seen: list[Any] = []

    surface = offered(flag(None, seen), flag("second", seen), flag("third", seen, "string"))

    assert seen == [None, "second", "second", "second", "second", "second"]
    assert surface.flags["plan"].default == "third"


@pytest.mark.rule("API-7")
def test_a_value_that_the_host_was_given_counts_and_is_nobody_elses() -> None:
    seen: list[Any] = []

    async def run() -> None:
        async with opened([], flag("default", seen), lambda api: seen.append(api.get_flag("plan")), flags={"plan": "given"}):
            pass

    simulate(run)

    assert seen == ["given", None, "given"]
