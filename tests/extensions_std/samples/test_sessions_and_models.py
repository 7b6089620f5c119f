"""Samples about what a session runs with: trust, files, resources, requests, tools, presets."""

from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from camshaft.actors.host import InlineExtension, open_kernel
from camshaft.actors.simulation.log_files import MemoryLogFiles
from camshaft.extensions_std.providers.scripted import ScriptedProvider, assistant, faux_model, text_items, tool_call
from camshaft.extensions_std.samples import (
    debug_provider,
    dynamic_resources,
    file_trigger,
    preset,
    project_trust,
    provider_payload,
    reload_runtime,
    tools,
)
from camshaft.kernel.stream import Ended, Started
from tests.actors.running import Running, opened, simulate, tool, virtual_world
from tests.extensions_std.samples.trying import (
    answered,
    compared,
    line_of,
    people,
    played,
    prompting,
)

ANSWER = [assistant("one"), assistant("two"), assistant("three")]


async def says_done(*_: Any) -> Any:
    return {"content": [{"type": "text", "text": "done"}]}


# -- project-trust -----------------------------------------------------------------------


@attrs.frozen
class Person:
    """A UI whose every choice has the same end."""

    answer: str | None

    async def select(self, title: str, options: Any, *, timeout_ms: int | None) -> str | None:
        assert self.answer is None or self.answer in options
        return self.answer

    confirm = input = editor = select


def decided(cwd: str, mode: str, answer: str | None) -> tuple[bool, bool] | None:
    """What the extension says about a folder: trusted, remembered; None: nothing."""

    async def ask() -> Any:
        async with open_kernel(world=virtual_world()) as kernel:
            ui: Any = Person(answer)
            early = kernel.preload("/", mode=mode, ui=ui)
            await early.load([InlineExtension(name="trust", setup=project_trust.setup)])
            said = await early.ask_trust(cwd)
            early.discard()
            return said
        raise AssertionError

    said = simulate(ask)
    return None if said is None else (said.trusted, said.remember)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("Trust it", (True, True)),
        ("Trust it this time", (True, False)),
        ("Do not trust it", (False, True)),
        ("Do not trust it this time", (False, False)),
        (None, None),
    ],
)
def test_people_say_whether_a_project_is_trusted(answer: str | None, said: tuple[bool, bool] | None) -> None:
    assert decided("/somewhere", "tui", answer) == said


@pytest.mark.parametrize(("folder", "said"), [("~/own/project", (True, False)), ("~/own", (True, False)), ("~/owner", None), ("/", None)])
def test_where_nobody_can_be_asked_only_the_listed_folders_are_trusted(folder: str, said: tuple[bool, bool] | None) -> None:
    assert decided(str(Path(folder).expanduser()), "print", None) == said


# -- file-trigger ------------------------------------------------------------------------


def waiting_for(event_type: str, *, after: Any = None) -> Any:
    """Waits for an event, if the extension is there that has the flag; a thread reads the file, so no time is told."""

    async def act(running: Running) -> None:
        heard = trio.Event()
        running.seat.subscribe(lambda event: heard.set() if event.type == event_type else None)
        if after is not None:
            after()
        if file_trigger.FLAG in running.seat.extension_surface.flags:
            await heard.wait()

    return act


def test_a_text_in_the_file_begins_a_run_and_the_file_is_emptied(tmp_path: Path) -> None:
    trigger = tmp_path / "trigger.txt"
    act = waiting_for("agent_settled", after=lambda: trigger.write_text("The build is broken.\n"))

    difference = compared(file_trigger.setup, act, ANSWER, cwd=str(tmp_path))

    assert difference.added[-2:] == ["custom_message file-trigger: The build is broken.", "assistant: one"]
    assert (difference.missing, difference.errors) == ([], [])
    assert trigger.read_text() == ""


def test_the_flag_names_another_file_and_one_that_is_too_large_stops_the_watch_with_a_report(tmp_path: Path) -> None:
    large = b"x" * (file_trigger.TEXT_BYTES_MAX + 1)
    act = waiting_for("extension_error", after=lambda: (tmp_path / "other").write_bytes(large))

    difference = compared(file_trigger.setup, act, ANSWER, cwd=str(tmp_path), flags={"trigger-file": "other"})

    assert [(event, "Larger than" in error) for _, event, error in difference.errors] == [("task", True)]
    assert difference.added == []


# -- reload-runtime ----------------------------------------------------------------------


def test_the_model_has_everything_loaded_anew_when_the_run_is_over() -> None:
    loads: list[str] = []

    def counting(api: Any) -> None:
        api.on("session_start", lambda event, _ctx: loads.append(event.reason))

    script = [assistant([tool_call("reload_runtime", {"reason": "a new skill"}, id="a")]), assistant("over")]
    difference = compared(reload_runtime.setup, prompting("go"), script, counting, **people())

    assert loads == ["startup", "startup", "reload"]
    assert difference.added[-1] == "result of reload_runtime: They are loaded anew when this run is over. Finish your answer."
    assert difference.notified == ["Loading extensions anew …"]


# -- dynamic-resources -------------------------------------------------------------------


def team(tmp_path: Path) -> None:
    (tmp_path / "team" / "prompts").mkdir(parents=True)
    (tmp_path / "team" / "prompts" / "review.md").write_text("Review $1 with care.")
    (tmp_path / "team" / "skills" / "deploy").mkdir(parents=True)
    (tmp_path / "team" / "skills" / "deploy" / "SKILL.md").write_text("---\nname: deploy\ndescription: how to deploy\n---\nPush it.")


def test_templates_and_skills_of_the_team_can_be_called(tmp_path: Path) -> None:
    team(tmp_path)

    difference = compared(dynamic_resources.setup, prompting("/review x.py", "/skill:deploy"), ANSWER, cwd=str(tmp_path))

    assert [line for line in difference.missing if line.startswith("user")] == ["user: /review x.py", "user: /skill:deploy"]
    first, second = [line for line in difference.added if line.startswith("user")]
    assert first == "user: Review x.py with care."
    assert "Push it." in second


@pytest.mark.parametrize("options", [{"project_trusted": False}, {"flags": {"team-folder": "nowhere"}}])
def test_texts_of_a_project_that_is_not_trusted_or_not_there_do_not_count(tmp_path: Path, options: dict[str, Any]) -> None:
    team(tmp_path)

    difference = compared(dynamic_resources.setup, prompting("/review x.py"), ANSWER, cwd=str(tmp_path), **options)

    assert (difference.added, difference.missing, difference.errors) == ([], [], [])


# -- provider-payload, debug-provider ----------------------------------------------------


def test_each_turn_says_how_large_its_request_was_and_how_it_was_answered() -> None:
    difference = compared(provider_payload.setup, prompting("hello"), ANSWER)

    (line,) = difference.added
    assert line.startswith('custom provider-payload: {"bytes":{"')
    assert line.endswith('"responses":[{"status":200,"headers":{}}]}')
    assert difference.missing == []


def test_the_last_request_can_be_looked_at() -> None:
    async def act(running: Running) -> None:
        await running.seat.prompt("/payload")
        await running.seat.prompt("find these words")
        await answered(running, lambda: running.seat.prompt("/payload"), None)

    async def shown() -> list[str]:
        running = await played(act, ANSWER, provider_payload.setup, **people())
        assert [event.message for event in running.heard if event.type == "notified"] == ["Nothing was sent to a model yet."]
        return [event.dialog.prefill for event in running.heard if event.type == "dialog_opened"]

    (body,) = simulate(shown)
    assert "find these words" in body


async def raw(request: Any, _signal: Any, emit: Any) -> None:
    """An answer whose provider shows two events of its own."""
    for number in (1, 2):
        if request.hooks.on_stream_event is not None:
            await request.hooks.on_stream_event({"number": number})
    for item in (Started(), *text_items(0, "raw"), Ended(stop_reason="stop")):
        await emit(item)


def test_raw_events_are_kept_beside_their_answer_while_that_is_on() -> None:
    prompts = prompting("before", "/debug-provider", "first", "second", "/debug-provider", "after")

    async def lines() -> list[tuple[str, str]]:
        running = await played(prompts, [raw] * 6, debug_provider.setup)
        entries = list(running.seat.state.tree.entries())
        return [(before.id, line_of(entry)) for before, entry in zip(entries, entries[1:], strict=False) if entry.type == "custom"]

    kept = simulate(lines)
    model = faux_model().reference
    assert [line for _, line in kept] == [
        f'custom provider-events: {{"answer":"{answer}","model":"{model}","events":[{{"number":1}},{{"number":2}}],"dropped":0}}'
        for answer, _ in kept
    ]
    assert len(kept) == 2


def test_without_debugging_the_log_has_no_raw_events() -> None:
    off = compared(debug_provider.setup, prompting("first"), [raw])
    on = compared(debug_provider.setup, prompting("/debug-provider", "first"), [raw, raw])

    assert (off.added, off.missing) == ([], [])
    assert ([line.partition(":")[0] for line in on.added], on.missing[0]) == (["custom provider-events"], "user: /debug-provider")


# -- tools -------------------------------------------------------------------------------

TOOLS = [tool(says_done, "one"), tool(says_done, "two")]


def test_tools_are_switched_off_for_the_branch() -> None:
    async def act(running: Running) -> None:
        await prompting("first", "/tools off two none", "/tools off two", "second")(running)
        active.append(running.seat.active_tools)
        first = next(entry.id for entry in running.seat.state.tree.entries() if line_of(entry) == "assistant: one")
        await running.seat.navigate_tree(first)
        active.append(running.seat.active_tools)

    active: list[tuple[str, ...]] = []
    difference = compared(tools.setup, act, [assistant("one")] * 4, tools=TOOLS, **people())

    assert active[2:] == [("one",), ("one", "two")]
    assert difference.added == ['custom tools: ["one"]', "system: -two"]
    assert [line for line in difference.missing if line.startswith("user")] == ["user: /tools off two none", "user: /tools off two"]
    assert difference.notified == ["No such tools: none", "[x] one\n[x] two", "[x] one\n[ ] two"]


def test_a_choice_of_tools_is_there_again_when_the_session_is_opened(tmp_path: Path) -> None:
    files = MemoryLogFiles()

    async def twice() -> tuple[str, ...]:
        await played(prompting("first", "/tools off two"), ANSWER, tools.setup, tools=TOOLS, files=files)
        async with opened([], tools.setup, tools=TOOLS, files=files) as running:
            return running.seat.active_tools
        raise AssertionError

    assert simulate(twice) == ("one",)


# -- preset ------------------------------------------------------------------------------


def thinker() -> ScriptedProvider:
    return ScriptedProvider(chunked=False, models=(faux_model(reasoning=True),))


READ = [tool(says_done, "read"), tool(says_done, "bash")]


def test_a_preset_changes_level_tools_and_prompt_and_gives_everything_back() -> None:
    seen: list[tuple[str, tuple[str, ...]]] = []

    async def act(running: Running) -> None:
        for text in ("/preset plan", "plan it", "/preset off", "now talk"):
            await running.seat.prompt(text)
            seen.append((running.seat.thinking_level, running.seat.active_tools))

    difference = compared(preset.setup, act, [assistant("one")] * 4, tools=READ, provider=thinker(), **people())

    plan, back = ("high", ("read",)), ("off", ("read", "bash"))
    assert seen[4:] == [plan, plan, back, back]
    customs = [line for line in difference.added if line.startswith("custom")]
    assert customs == [
        'custom preset: {"name":"plan","before":{"model":"faux/faux-1","thinking_level":"off","tools":["read","bash"]}}',
        'custom preset: {"name":null}',
    ]
    assert [line for line in difference.added if line.startswith("system")] == [
        "system: preamble tools rules docs cwd preset +read",
        "system: rules preset +bash",
    ]
    assert [line for line in difference.missing if line.startswith("user")] == ["user: /preset plan", "user: /preset off"]
    assert difference.notified == ["[x] plan\n[ ] build", "[ ] plan\n[ ] build"]


def test_a_flag_begins_with_a_preset_and_a_wrong_one_is_reported() -> None:
    right = compared(preset.setup, prompting("go"), ANSWER, tools=READ, provider=thinker(), flags={"preset": "plan"})
    wrong = compared(preset.setup, prompting("go"), ANSWER, tools=READ, provider=thinker(), flags={"preset": "nonsense"})

    assert [line for line in right.added if line.startswith("custom")][0].startswith("custom preset:")
    assert [error.partition(";")[0] for _, _, error in wrong.errors] == ["no preset 'nonsense'"]
    assert (wrong.added, wrong.missing) == ([], [])
