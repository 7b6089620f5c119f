"""Skills and templates in a conversation: which texts are expanded, when their files are read, what is told."""

from pathlib import Path
from typing import Any

import pytest

from camshaft.actors.resources.found import Resources
from camshaft.extensions_std.providers.scripted import assistant
from camshaft.kernel.skills import Skill
from camshaft.kernel.templates import PromptTemplate
from tests.actors.running import handling, opened, said

FIX = PromptTemplate(name="fix", content="Fix $1", description="Fixes", file_path="/t/fix.md")


def skill_in(folder: Path, body: str = "Do it.") -> Skill:
    path = folder / "SKILL.md"
    path.write_text(f"---\nname: go\ndescription: d\n---\n{body}\n", "utf-8")
    return Skill(name="go", description="d", file_path=str(path))


def damaged_skill(folder: Path, damage: str) -> Skill:
    skill = skill_in(folder)
    path = Path(skill.file_path)
    match damage:
        case "missing":
            path.unlink()
        case "folder":
            path.unlink()
            path.mkdir()
        case "huge":
            path.write_text("x" * (1024 * 1024 + 1), "utf-8")
    return skill


def expanded(skill: Skill, body: str = "Do it.") -> str:
    return f'<skill name="go" location="{skill.file_path}">\nReferences are relative to {skill.folder}.\n\n{body}\n</skill>'


@pytest.mark.rule("IN-1", "RES-9", "RES-11")
async def test_a_skill_goes_before_a_template_and_what_comes_out_is_not_expanded_again(tmp_path: Path) -> None:
    skill = skill_in(tmp_path, "/fix that")
    shadow = PromptTemplate(name="skill:go", content="shadow")

    async with opened([assistant("ok")] * 2, skills=(skill,), templates=(FIX, shadow)) as running:
        await running.seat.prompt("/skill:go")
        await running.seat.prompt("/fix /fix x")

        users = [each for each in said(running.seat.context_messages) if each[0] == "user"]
    assert users == [("user", expanded(skill, "/fix that")), ("user", "Fix /fix")]


@pytest.mark.rule("RES-9")
async def test_a_skill_is_read_when_it_is_used(tmp_path: Path) -> None:
    skill = skill_in(tmp_path)

    async with opened([assistant("ok")], skills=(skill,)) as running:
        skill_in(tmp_path, "Changed.")
        await running.seat.prompt("/skill:go now")

        assert said(running.seat.context_messages)[0] == ("user", f"{expanded(skill, 'Changed.')}\n\nnow")


@pytest.mark.rule("RES-9", "ERR-3", "ERR-4")
@pytest.mark.parametrize("damage", ["missing", "folder", "huge"])
async def test_a_skill_that_cannot_be_read_is_reported_and_the_text_goes_on(tmp_path: Path, damage: str) -> None:
    skill = damaged_skill(tmp_path, damage)

    async with opened([assistant("ok")], skills=(skill,)) as running:
        await running.seat.prompt("/skill:go now")

        assert said(running.seat.context_messages)[0] == ("user", "/skill:go now")
        ((path, event, _),) = running.errors()
    assert (path, event) == (skill.file_path, "skill_expansion")


@pytest.mark.rule("IN-1", "IN-2")
async def test_input_handlers_see_the_raw_text_and_what_they_make_of_it_is_expanded(tmp_path: Path) -> None:
    heard: list[str] = []

    def change(event: Any, _ctx: Any) -> dict[str, str]:
        heard.append(event.text)
        return {"action": "transform", "text": "/fix this"}

    async with opened([assistant("ok")], handling("input", change), templates=(FIX,)) as running:
        await running.seat.prompt("/fix that")

        assert heard == ["/fix that"]
        assert said(running.seat.context_messages)[0] == ("user", "Fix this")


@pytest.mark.rule("IN-1")
async def test_without_expansion_the_text_stays(tmp_path: Path) -> None:
    async with opened([assistant("ok")], templates=(FIX,)) as running:
        await running.seat.prompt("/fix that", expand=False)

        assert said(running.seat.context_messages)[0] == ("user", "/fix that")


@pytest.mark.rule("QUE-8")
async def test_queued_texts_are_expanded_when_they_are_queued(tmp_path: Path) -> None:
    skill = skill_in(tmp_path)

    async with opened([], skills=(skill,), templates=(FIX,)) as running:
        await running.seat.steer("/fix a")
        await running.seat.follow_up("/skill:go")

        assert (running.seat.queue.steering, running.seat.queue.follow_up) == (("Fix a",), (expanded(skill),))


@pytest.mark.rule("QUE-13")
@pytest.mark.parametrize("expand", [True, False])
async def test_what_an_extension_sends_is_expanded_if_it_says_so(tmp_path: Path, expand: bool) -> None:
    skill = skill_in(tmp_path)

    once = iter([True])

    def setup(api: Any) -> None:
        def send(_event: Any, _ctx: Any) -> None:
            if next(once, False):
                api.send_user_message("/skill:go", expand_prompt_templates=expand, deliver_as="followUp")

        api.on("turn_end", send)

    async with opened([assistant("one"), assistant("two")], setup, skills=(skill,)) as running:
        await running.seat.prompt("hello")

        users = [each[1] for each in said(running.seat.context_messages) if each[0] == "user"]
    assert users == ["hello", expanded(skill) if expand else "/skill:go"]


@pytest.mark.rule("RES-3", "RES-8", "API-19")
async def test_resources_can_be_replaced_and_show_in_the_prompt_and_among_the_commands(tmp_path: Path) -> None:
    skill = skill_in(tmp_path)

    async with opened([]) as running:
        before = running.seat.prompt_options().skills
        running.seat.use_resources(Resources(skills=(skill,), templates=(FIX,)))

        assert (before, running.seat.prompt_options().skills) == ((), (skill,))
        listed = [(each.name, each.description, each.source) for each in running.seat.commands()]
    assert listed == [("fix", "Fixes", "prompt"), ("skill:go", "d", "skill")]
