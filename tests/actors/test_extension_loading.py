"""Running factories: order, failures that leave no trace, equal names, loading in two passes, limits."""

import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from camshaft.actors.extension_loading import FACTORY_LIMIT_S
from camshaft.actors.extension_modules import MODULE_PREFIX
from camshaft.actors.host import BuiltinExtension, ExtensionMisuse, ExtensionSource, InlineExtension, LoadError, LoadWarning
from tests.actors.extensions_on_disk import Generations, loaded, with_generations, write
from tests.actors.running import opened, simulate


def inline(setup: Any, name: str = "x") -> InlineExtension:
    return InlineExtension(name=name, setup=setup)


def registering(kind: str, *names: str) -> Any:
    """A setup that registers tools, commands or flags."""

    def setup(api: Any) -> None:
        for name in names:
            getattr(api, kind)(name)

    return setup


@pytest.mark.rule("EXT-20")
def test_factories_run_one_after_the_other_and_an_async_one_is_awaited() -> None:
    seen: list[str] = []

    def setup_for(name: str, seconds: float) -> Any:
        async def setup(_api: Any) -> None:
            seen.append(f"{name} begins")
            await trio.sleep(seconds)
            seen.append(f"{name} ends")

        return setup

    loaded(inline(setup_for("slow", 30)), inline(lambda _api: seen.append("sync")), inline(setup_for("fast", 0)))

    assert seen == ["slow begins", "slow ends", "sync", "fast begins", "fast ends"]


@pytest.mark.rule("EXT-24")
@pytest.mark.parametrize("kind", ["raises", "never returns", "exits", "raises a group"])
def test_a_failed_factory_leaves_nothing_its_api_is_dead_and_later_ones_load(kind: str) -> None:
    kept: list[Any] = []

    async def failing(api: Any) -> None:
        kept.append(api)
        registering("tool", "t")(api)
        registering("flag", "f")(api)
        api.on("turn_end", print)
        if kind == "raises":
            raise ValueError("bad")
        if kind == "exits":
            raise SystemExit(4)
        if kind == "raises a group":
            raise ExceptionGroup("several", [ValueError("bad")])
        await trio.sleep_forever()

    async def load(generations: Generations) -> Any:
        await generations.load(inline(failing, "bad"), inline(registering("tool", "t"), "good"))
        with pytest.raises(ExtensionMisuse) as caught:
            kept[0].tool("late")
        host = generations.host
        return (
            [each.path for each in host.extensions],
            host.tools["t"].source_info.path,
            host.has("turn_end"),
            str(caught.value),
            host.load_errors,
        )

    texts = {
        "raises": "bad",
        "never returns": "setup did not return within 60 s",
        "exits": "setup called sys.exit(4)",
        "raises a group": "bad",
    }
    extensions, owner, handles, said, errors = with_generations(load)
    assert (extensions, owner, handles) == (["<inline:good>"], "<inline:good>", False)
    assert said == 'Extension "<inline:bad>" failed to load and its API is no longer active.'
    assert [(each.path, each.error) for each in errors] == [("<inline:bad>", texts[kind])]


@pytest.mark.rule("EXT-24")
def test_a_sync_factory_that_ends_the_interpreter_only_ends_its_own_loading(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "import sys\ndef setup(api):\n    sys.exit('no')\n"})

    _noted, errors = loaded(ExtensionSource(path=f"{tmp_path}/a.py"))

    assert errors == [
        (f"{tmp_path}/a.py", f"Failed to load extension: RuntimeError: setup called sys.exit('no') ({tmp_path}/a.py, line 3)")
    ]


def test_a_factory_that_refuses_to_end_is_given_up_after_its_limit() -> None:
    async def stubborn(_api: Any) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(1000)

    async def load(generations: Generations) -> tuple[list[tuple[str, str]], float]:
        begun = trio.current_time()
        await generations.load(inline(stubborn))
        return generations.errors(), trio.current_time() - begun

    errors, seconds = with_generations(load)

    assert errors == [("<inline:x>", "setup did not return within 60 s")]
    assert FACTORY_LIMIT_S < seconds < FACTORY_LIMIT_S + 10


def test_a_loading_that_is_cancelled_from_outside_reports_nothing_and_leaves_nothing() -> None:
    async def waiting(_api: Any) -> None:
        await trio.sleep_forever()

    async def load(generations: Generations) -> Any:
        with trio.move_on_after(1) as scope:
            await generations.load(inline(waiting))
        return scope.cancelled_caught, generations.host.extensions, generations.errors()

    assert with_generations(load) == (True, [], [])


def test_an_interrupt_in_a_factory_goes_through() -> None:
    def interrupted(_api: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(BaseExceptionGroup) as caught:
        loaded(inline(interrupted))

    assert caught.value.subgroup(KeyboardInterrupt) is not None


# -- equal names -----------------------------------------------------------------------------------


@pytest.mark.rule("EXT-30")
@pytest.mark.parametrize(
    ("kind", "error"), [("tool", 'Tool "n" conflicts with <inline:1>'), ("flag", 'Flag "--n" conflicts with <inline:1>')]
)
def test_a_name_of_two_extensions_is_a_load_error_of_the_later_one(kind: str, error: str) -> None:
    async def load(generations: Generations) -> Any:
        await generations.load(
            inline(registering(kind, "n", "m"), "1"), inline(registering(kind, "n"), "2"), inline(registering(kind, "k"), "3")
        )
        return [each.path for each in generations.host.extensions], generations.errors()

    assert with_generations(load) == (["<inline:1>", "<inline:2>", "<inline:3>"], [("<inline:2>", error)])


@pytest.mark.rule("EXT-30")
def test_equal_names_of_different_kinds_or_in_one_extension_or_of_commands_are_no_conflict() -> None:
    def both(api: Any) -> None:
        for _ in range(2):
            api.tool("a"), api.flag("b"), api.command("c")

    def other(api: Any) -> None:
        api.tool("b"), api.flag("a"), api.command("c")

    assert loaded(inline(both), inline(other)) == (["c", "c"], [])


@pytest.mark.rule("EXT-11")
@pytest.mark.parametrize("kind", ["tool", "command", "flag"])
def test_a_replaceable_builtin_steps_back_before_any_other_extension_with_a_name_of_its(kind: str) -> None:
    replaceable = BuiltinExtension(name="mcp", setup=registering(kind, "n", "m"), replaceable=True)
    fixed = BuiltinExtension(name="fixed", setup=registering("tool", "z"))

    async def load(generations: Generations) -> Any:
        await generations.load(replaceable, fixed, inline(registering(kind, "m")))
        return [each.path for each in generations.host.extensions], generations.errors(), generations.warnings()

    said = f'left out, because <inline:x> registers the {kind} "m" too'
    assert with_generations(load) == (["builtin:fixed", "<inline:x>"], [], [("builtin:mcp", said)])


@pytest.mark.rule("EXT-11")
def test_replaceable_builtins_do_not_replace_each_other() -> None:
    one = BuiltinExtension(name="1", setup=registering("command", "n"), replaceable=True)
    two = BuiltinExtension(name="2", setup=registering("command", "n"), replaceable=True)

    assert loaded(one, two) == (["n", "n"], [])


# -- lists -------------------------------------------------------------------------------------------


@pytest.mark.rule("EXT-7")
def test_the_same_file_by_another_name_loads_once_where_it_came_first(tmp_path: Path) -> None:
    write(
        tmp_path, {"real/a.py": "def setup(api): api.note(api.extension.path)\n", "pack/__init__.py": "def setup(api): api.note('pack')\n"}
    )
    (tmp_path / "link.py").symlink_to(tmp_path / "real" / "a.py")
    (tmp_path / "linked").symlink_to(tmp_path / "pack")

    sources = [ExtensionSource(path=each) for each in ("link.py", "pack", "real/a.py", "./linked", "pack/__init__.py")]

    assert loaded(*sources, cwd=str(tmp_path)) == ([f"{tmp_path}/link.py", "pack"], [])


@pytest.mark.rule("EXT-26")
def test_reports_in_a_list_are_told_in_their_order() -> None:
    async def load(generations: Generations) -> Any:
        await generations.load(
            LoadError(path="a", error="1"), inline(lambda _api: 1 / 0), LoadWarning(path="b", warning="2"), LoadError(path="c", error="3")
        )
        return generations.errors(), generations.warnings()

    assert with_generations(load) == ([("a", "1"), ("<inline:x>", "division by zero"), ("c", "3")], [("b", "2")])


# -- two passes --------------------------------------------------------------------------------------


@pytest.mark.rule("EXT-62", "TRUST-8")
def test_a_second_pass_uses_what_was_loaded_retries_nothing_leaves_out_what_is_gone_and_orders_anew() -> None:
    seen: list[str] = []

    def noting(name: str, fails: bool = False) -> InlineExtension:
        def setup(api: Any) -> None:
            seen.append(name)
            api.tool("t")
            if fails:
                raise ValueError("bad")

        return inline(setup, name)

    kept, gone, failing, late = noting("kept"), noting("gone"), noting("failing", fails=True), noting("late")

    async def load(generations: Generations) -> Any:
        loader = generations.new()
        await loader.load((kept, gone, failing))
        first = [each.path for each in generations.host.extensions], generations.errors()
        dropped = generations.host.extensions[1]
        await loader.load((late, kept, failing))
        return first, ([each.path for each in generations.host.extensions], generations.errors()), dropped.failed

    first, second, is_dropped = with_generations(load)

    assert first == (
        ["<inline:kept>", "<inline:gone>"],
        [("<inline:failing>", "bad"), ("<inline:gone>", 'Tool "t" conflicts with <inline:kept>')],
    )
    assert second == (
        ["<inline:late>", "<inline:kept>"],
        [("<inline:failing>", "bad"), ("<inline:kept>", 'Tool "t" conflicts with <inline:late>')],
    )
    assert seen == ["kept", "gone", "failing", "late"]
    assert is_dropped


def test_a_conversation_takes_its_modules_with_it(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "def setup(api): pass\n"})
    before = [name for name in sys.modules if name.startswith(MODULE_PREFIX)]

    async def live() -> int:
        async with opened([], sources=[ExtensionSource(path=f"{tmp_path}/a.py")]):
            return len([name for name in sys.modules if name.startswith(MODULE_PREFIX)]) - len(before)
        raise AssertionError

    assert simulate(live) == 2
    assert [name for name in sys.modules if name.startswith(MODULE_PREFIX)] == before
