"""Commands of extensions: how they are called, completed and told apart."""

from typing import Any

import pytest

from camshaft.actors.api import Completion
from camshaft.actors.host import PromptRefused
from camshaft.extensions_std.providers.scripted import assistant
from tests.actors.running import Running, opened, said, simulate


def commanding(*names: str, seen: list[Any] | None = None) -> Any:
    """A setup that registers commands, which note their arguments."""

    def setup(api: Any) -> None:
        for name in names:
            api.register_command(name, lambda arguments, _ctx, name=name: (seen if seen is not None else []).append((name, arguments)))

    return setup


def doing(test: Any, *setups: Any, **more: Any) -> Any:
    async def run() -> Any:
        async with opened([assistant("done")], *setups, **more) as running:
            return await test(running)
        raise AssertionError

    return simulate(run)


async def names(running: Running) -> list[str]:
    return [each.name for each in running.seat.commands()]


@pytest.mark.rule("CMD-5")
def test_a_name_of_several_extensions_gets_the_next_free_number_for_each_of_them() -> None:
    both = commanding("same", "same:2")

    assert doing(names, both, both) == ["same:1", "same:2:1", "same:2", "same:2:2"]
    assert doing(names, commanding("a"), commanding("b"), commanding("a")) == ["a:1", "b", "a:2"]


@pytest.mark.rule("CMD-1")
@pytest.mark.parametrize(
    ("text", "arguments"), [("/c", ""), ("/c ", ""), ("/c  a  b ", " a  b "), ("/c\tx", None), ("/c\nx", None), (" /c", None), ("/C", None)]
)
def test_the_name_ends_at_the_first_space_and_the_rest_is_left_as_it_is(text: str, arguments: str | None) -> None:
    seen: list[Any] = []

    async def test(running: Running) -> list[tuple[str | None, str]]:
        await running.seat.prompt(text)
        return said(running.seat.context_messages)

    found = doing(test, commanding("c", seen=seen))

    assert seen == ([] if arguments is None else [("c", arguments)])
    assert found == ([("user", text), ("assistant", "done")] if arguments is None else [])


@pytest.mark.rule("CMD-5", "CMD-3")
def test_the_bare_name_goes_to_the_model_unless_the_host_refuses_it() -> None:
    async def sent(running: Running) -> list[tuple[str | None, str]]:
        await running.seat.prompt("/same x")
        return said(running.seat.context_messages)

    async def refused(running: Running) -> tuple[str, list[Any]]:
        with pytest.raises(PromptRefused) as caught:
            await running.seat.prompt("/same x")
        return str(caught.value), said(running.seat.context_messages)

    both = (commanding("same"), commanding("same"))
    text = 'The command "/same" is ambiguous; call one of /same:1 (<inline:x0>), /same:2 (<inline:x1>)'

    assert doing(sent, *both) == [("user", "/same x"), ("assistant", "done")]
    assert doing(refused, *both, ambiguous_commands="refuse") == (text, [])


@pytest.mark.rule("CMD-7")
def test_a_command_with_the_name_of_a_built_in_one_is_there_with_a_warning() -> None:
    async def test(running: Running) -> tuple[list[str], list[Any]]:
        return await names(running), [(each.path, each.warning) for each in running.seat.load_warnings]

    text = 'Command "/quit" has the name of a built-in command of interactive frontends'

    assert doing(test, commanding("quit", "quite")) == (["quit", "quite"], [("<inline:x0>", text)])


async def later(prefix: str) -> list[Any]:
    return [{"value": prefix + "x", "label": "X"}]


PROPOSALS: dict[str, tuple[Any, tuple[Completion, ...], str | None]] = {
    "objects": (
        lambda prefix: [Completion(value=prefix, label="p", description="d")],
        (Completion(value="ab", label="p", description="d"),),
        None,
    ),
    "dicts, later": (later, (Completion(value="abx", label="X"),), None),
    "nothing": (lambda _prefix: None, (), None),
    "a text": (lambda _prefix: "abc", (), "get_argument_completions returned 'abc'; expected a list of completions, or None"),
    "a wrong field": (lambda _prefix: [{"value": "a"}], (), "label: expected a value, got nothing"),
    "a raise": (lambda prefix: prefix.missing, (), "'str' object has no attribute 'missing'"),
}


@pytest.mark.rule("CMD-8")
@pytest.mark.parametrize(("complete", "found", "error"), PROPOSALS.values(), ids=PROPOSALS)
def test_a_command_proposes_how_its_arguments_go_on(complete: Any, found: tuple[Completion, ...], error: str | None) -> None:
    async def test(running: Running) -> tuple[Any, list[Any]]:
        proposed = await running.seat.complete_command("c", "ab")
        return proposed, [(path, event) for path, event, _ in running.errors()]

    def setup(api: Any) -> None:
        api.register_command("c", print, get_argument_completions=complete)

    assert doing(test, setup) == (found, [] if error is None else [("command:c", "command")])


def test_what_is_no_command_or_proposes_nothing_has_no_completions() -> None:
    async def test(running: Running) -> Any:
        return await running.seat.complete_command("c", ""), await running.seat.complete_command("gone", "")

    assert doing(test, commanding("c")) == ((), ())
