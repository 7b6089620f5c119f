"""Extensions that are loaded before their conversation: the question of trust, and going on with the same instances."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from camshaft.actors.host import (
    InlineExtension,
    Kernel,
    LoadError,
    MemorySession,
    OpenOptions,
    Preloaded,
    Seat,
    TrustAnswer,
    open_kernel,
)
from camshaft.actors.misuse import ExtensionMisuse
from camshaft.extensions_std.providers.scripted import ScriptedProvider, assistant
from tests.actors.running import NO_RETRY, simulate, virtual_world


def in_kernel(test: Callable[[Kernel], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with open_kernel(world=virtual_world()) as kernel:
            return await test(kernel)
        raise AssertionError

    return simulate(run)


def answering(*answers: Any, seen: list[Any] | None = None) -> InlineExtension:
    """An extension with one `project_trust` handler for each answer; an exception is raised."""

    def handler_of(answer: Any) -> Callable[[Any, Any], Any]:
        def handle(event: Any, ctx: Any) -> Any:
            if seen is not None:
                seen.append((event.cwd, ctx, answer))
            if isinstance(answer, Exception):
                raise answer
            return answer

        return handle

    def setup(api: Any) -> None:
        for answer in answers:
            api.on("project_trust", handler_of(answer))

    return InlineExtension(name="asked", setup=setup)


def asked(*sources: InlineExtension, mode: str = "print") -> tuple[TrustAnswer | None, list[str]]:
    """What the handlers answer, and what was said."""
    said: list[str] = []

    async def ask(kernel: Kernel) -> TrustAnswer | None:
        early = kernel.preload("/", mode=mode, say=said.append)
        await early.load(sources)
        answer = await early.ask_trust("/project")
        early.discard()
        return answer

    return in_kernel(ask), said


YES, NO, UNDECIDED = {"trusted": "yes"}, {"trusted": "no"}, {"trusted": "undecided"}
ERROR = 'Extension "<inline:asked>" project_trust error: '

ANSWERS: dict[str, tuple[tuple[Any, ...], TrustAnswer | None, list[str]]] = {
    "nobody": ((), None, []),
    "yes": ((YES, NO), TrustAnswer(trusted=True), []),
    "no": ((NO, YES), TrustAnswer(trusted=False), []),
    "undecided": ((UNDECIDED, UNDECIDED), None, []),
    "undecided, then no, remembered": ((UNDECIDED, {"trusted": "no", "remember": True}), TrustAnswer(trusted=False, remember=True), []),
    "raises, then yes": ((ValueError("bad"), YES), TrustAnswer(trusted=True), [f"{ERROR}bad"]),
    "says nothing": ((None,), None, [f"{ERROR}the handler returned nothing; expected trusted to be yes, no or undecided"]),
}


@pytest.mark.rule("EXT-61", "EXT-63", "TRUST-9")
@pytest.mark.parametrize(("answers", "answer", "said"), ANSWERS.values(), ids=ANSWERS)
def test_the_first_yes_or_no_wins_and_mistakes_are_told_and_passed_over(
    answers: tuple[Any, ...], answer: TrustAnswer | None, said: list[str]
) -> None:
    assert asked(answering(*answers)) == (answer, said)


@pytest.mark.rule("EXT-63")
@pytest.mark.parametrize("answer", ["yes", {"trusted": "maybe"}, {"trusted": True}, 3])
def test_a_malformed_answer_is_a_mistake(answer: Any) -> None:
    decision, said = asked(answering(answer))

    assert decision is None
    assert [line[: len(ERROR)] for line in said] == [ERROR]


@pytest.mark.rule("EXT-64")
def test_the_context_of_the_question_can_ask_nobody_before_there_is_an_interface() -> None:
    async def all_of_it(_event: Any, ctx: Any) -> Any:
        ctx.ui.notify("hello", "warning")
        answers = (await ctx.ui.select("t", ["a"]), await ctx.ui.confirm("t", "m"), await ctx.ui.input("t"))
        ctx.ui.notify(str((ctx.cwd, ctx.mode, ctx.has_ui, *answers)))
        return {"trusted": "no"}

    def setup(api: Any) -> None:
        api.on("project_trust", all_of_it)

    answer, said = asked(InlineExtension(name="x", setup=setup), mode="rpc")

    assert answer == TrustAnswer(trusted=False)
    assert said == ["hello", "('/project', 'rpc', False, None, False, None)"]


# -- going on ----------------------------------------------------------------------------------------


def conversation(preloaded: Preloaded, *sources: InlineExtension | LoadError, cwd: str = "/") -> OpenOptions:
    model = ScriptedProvider(chunked=False)
    model.set_responses([assistant("done")])
    return OpenOptions(
        cwd=cwd,
        session=MemorySession(),
        settings=NO_RETRY,
        providers=(model,),
        extensions=sources,
        preloaded=preloaded,
        flags={"plan": "b"},
        override_cwd=True,
    )


def noting(name: str, seen: list[str]) -> InlineExtension:
    """Notes its setup, its start, the value of its flag, and what it hears on the bus."""

    def setup(api: Any) -> None:
        seen.append(f"{name} set up")
        api.register_flag("plan" if name == "first" else name, type="string", default="a")
        api.events.on("note", lambda value: seen.append(f"{name} hears {value}"))

        def on_start(_event: Any, ctx: Any) -> None:
            seen.append(f"{name} starts with {api.get_flag('plan')} in {ctx.mode}")
            if name == "first":
                api.events.emit("note", "hello")
            if name == "failing":
                raise ValueError("bad")

        api.on("session_start", on_start)

    return InlineExtension(name=name, setup=setup)


@pytest.mark.rule("EXT-40", "EXT-62", "TRUST-8")
def test_a_conversation_goes_on_with_the_extensions_that_were_loaded_for_it() -> None:
    seen: list[str] = []
    first, second, failing = noting("first", seen), noting("second", seen), noting("failing", seen)

    async def open_later(kernel: Kernel) -> tuple[Any, ...]:
        early = kernel.preload("/")
        await early.load((second,))
        await early.load((first, second))
        flags = {name: flag.type for name, flag in early.flags.items()}
        seat = await kernel.open(conversation(early, first, second, failing))
        seat.subscribe(lambda event: seen.append(event.type))
        await seat.prompt("go")
        return flags, [(each.extension_path, each.error) for each in seat.errors], early.load_errors

    assert in_kernel(open_later) == ({"plan": "string", "second": "string"}, [("<inline:failing>", "bad")], ())
    assert seen[:9] == [
        *("second set up", "first set up", "failing set up", "first starts with b in embedded"),
        *(
            "second hears hello",
            "first hears hello",
            "failing hears hello",
            "second starts with None in embedded",
            "failing starts with None in embedded",
        ),
    ]


def test_what_was_loaded_counts_for_one_conversation_and_for_its_folder_only() -> None:
    seen: list[str] = []
    first = noting("first", seen)

    async def open_twice(kernel: Kernel) -> list[Seat]:
        early = kernel.preload("/")
        await early.load((first,))
        options = conversation(early, first)
        return [await kernel.open(conversation(early, first, cwd="/tmp")), await kernel.open(options), await kernel.open(options)]

    in_kernel(open_twice)

    assert [each for each in seen if "set up" in each] == ["first set up"] * 3


@pytest.mark.rule("EXT-26")
def test_errors_are_known_before_there_is_a_session(tmp_path: Any) -> None:
    async def load(kernel: Kernel) -> tuple[LoadError, ...]:
        early = kernel.preload(str(tmp_path))
        await early.load((InlineExtension(name="x", setup=lambda _api: 1 / 0), LoadError(path="a", error="gone")))
        return early.load_errors

    errors = in_kernel(load)

    assert [(each.path, each.error) for each in errors] == [("<inline:x>", "division by zero"), ("a", "gone")]
    assert not list(tmp_path.iterdir())


def test_extensions_that_are_discarded_are_over() -> None:
    kept: list[Any] = []

    async def load(kernel: Kernel) -> None:
        early = kernel.preload("/")
        await early.load((InlineExtension(name="x", setup=kept.append),))
        early.discard()

    in_kernel(load)

    with pytest.raises(Exception, match="stale after session replacement or reload"):
        kept[0].on("turn_end", print)


@pytest.mark.rule("EXT-62")
def test_an_extension_that_is_not_wanted_any_more_is_told_so() -> None:
    kept: list[Any] = []

    async def load(kernel: Kernel) -> None:
        early = kernel.preload("/")
        await early.load((InlineExtension(name="x", setup=kept.append),))
        await early.load(())
        with pytest.raises(ExtensionMisuse, match='Extension "<inline:x>" was left out and its API is no longer active.'):
            kept[0].on("turn_end", print)

    in_kernel(load)


@pytest.mark.rule("EXT-22")
def test_before_the_conversation_actions_raise() -> None:
    kept: list[Any] = []

    async def load(kernel: Kernel) -> None:
        early = kernel.preload("/")
        await early.load((InlineExtension(name="x", setup=kept.append),))
        with pytest.raises(ExtensionMisuse, match="Extension runtime not initialized"):
            kept[0].send_user_message("hello")

    in_kernel(load)
