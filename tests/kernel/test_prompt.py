"""Prompt sections and the replay of system messages."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camshaft.kernel.errors import Rejection
from camshaft.kernel.messages import Message, SystemMessage, ToolDeclaration, ToolName, UserMessage
from camshaft.kernel.persistent import FrozenDict, freeze
from camshaft.kernel.prompt import (
    BuiltPrompt,
    ContextFile,
    PromptOptions,
    SystemState,
    build_prompt,
    build_sections,
    check_section_name,
    collapse,
    current_prompt,
    current_tools,
    leading_text,
    prompt_text,
    replay,
    replay_one,
    same_declaration,
    same_json,
    section_patch,
    tool_patch,
    update_text,
)
from camshaft.kernel.prompt_texts import (
    DEFAULT_BASH_AND_POWERSHELL_RULE,
    DEFAULT_BASH_RULE,
    DEFAULT_POWERSHELL_RULE,
    DEFAULT_PREAMBLE,
    DEFAULT_RULE_1,
    DEFAULT_RULE_2,
    default_skills_intro,
)
from camshaft.kernel.skills import Skill
from tests.kernel.made import system

NAMES = st.sampled_from(["a", "b", "c"])
TOOLS = st.lists(st.builds(lambda name, text: tool(name, text), NAMES, st.sampled_from(["one", "two"])), max_size=3)
SYSTEM_MESSAGES = st.builds(
    lambda content, sections, added, removed, replace: system(
        content,
        sections=sections,
        tools_added=tuple(added),
        tools_removed=tuple([ToolName(name=name) for name in removed]),
        replace=replace,
    ),
    st.sampled_from(["", "x", "y"]),
    st.dictionaries(NAMES, st.sampled_from(["1", "", None])),
    TOOLS,
    st.lists(NAMES, max_size=2),
    st.sampled_from([None, None, None, False, True]),
)


def tool(name: str, description: str = "d", **parameters: Any) -> ToolDeclaration:
    return ToolDeclaration(name=name, description=description, parameters=freeze(parameters))


def shown(state: SystemState | None) -> tuple[object, ...]:
    assert state is not None
    return (state.content, list(state.sections.items()), [each.name for each in state.tools], state.timestamp)


EXAMPLE = [
    system("Base", 1000, sections={"a": "A1", "b": "B1"}, tools_added=(tool("read"), tool("write"))),
    system("", 2000, sections={"b": None, "c": "C1"}, tools_removed=(ToolName(name="read"),)),
    system("New", 3000, sections={"d": "D1"}, tools_removed=(ToolName(name="write"),), tools_added=(tool("grep"),), replace=True),
    system("More", 4000, sections={"a": "A2"}, tools_added=(tool("read"),)),
]


# -- replay ------------------------------------------------------------------------------


@pytest.mark.rule("CTX-21", "MSG-20")
def test_a_replacing_message_begins_anew() -> None:
    assert shown(replay(EXAMPLE[:2])) == ("Base", [("a", "A1"), ("c", "C1")], ["write"], 1000)
    assert shown(replay(EXAMPLE[:3])) == ("New", [("d", "D1")], ["grep"], 3000)
    assert shown(replay(EXAMPLE)) == ("New\n\nMore", [("d", "D1"), ("a", "A2")], ["grep", "read"], 3000)


def test_of_several_replacing_messages_the_last_decides() -> None:
    assert shown(replay([system("a", 1, replace=True), system("b", 2, replace=True)])) == ("b", [], [], 2)


@pytest.mark.rule("CTX-22")
def test_what_is_removed_and_set_again_moves_to_the_end() -> None:
    sections = replay(
        [system(sections={"a": "1", "b": "1"}), system(sections={"a": "2"}), system(sections={"b": None}), system(sections={"b": "3"})]
    )
    tools = replay([system(tools_added=(tool("a"), tool("b"))), system(tools_removed=(ToolName(name="a"),), tools_added=(tool("a"),))])

    assert shown(sections)[1] == [("a", "2"), ("b", "3")]
    assert shown(tools)[2] == ["b", "a"]


@given(st.lists(SYSTEM_MESSAGES, max_size=6), st.integers(0, 6))
def test_replaying_in_pieces_equals_replaying_whole(messages: list[SystemMessage], cut: int) -> None:
    state = replay(messages[:cut])
    for message in messages[cut:]:
        state = replay_one(state, message)

    assert state == replay(messages)


@given(st.lists(SYSTEM_MESSAGES, min_size=1, max_size=6))
def test_a_checkpoint_replays_to_the_state_it_holds(messages: list[SystemMessage]) -> None:
    state = replay(messages)
    assert state is not None

    assert replay([state.as_message()]) == state
    assert state.as_message(7).timestamp == 7
    assert state.as_message().replace is None


def test_empty_parts_of_a_state_are_left_out_of_its_message() -> None:
    state = replay([system("x")])
    assert state is not None

    assert (state.as_message().sections, state.as_message().tools_added) == (None, None)


def test_without_system_messages_there_is_no_state() -> None:
    user = UserMessage(content="x", timestamp=1)

    assert replay([user]) is None
    assert collapse([user]) == (user,)
    assert (current_prompt([user]), current_tools([user])) == ("", ())


@pytest.mark.rule("API-28")
def test_a_transcript_says_its_current_prompt_and_tools() -> None:
    said: list[Message] = [
        system("Text", sections={"a": "A", "b": "B"}, tools_added=(tool("read"), tool("write"))),
        UserMessage(content="x", timestamp=1),
        system("More", sections={"a": None}, tools_removed=(ToolName(name="read"),)),
    ]

    assert current_prompt(said) == "Text\n\nMore\n\nB"
    assert current_tools(said) == (tool("write"),)


def test_collapsing_puts_one_system_message_first() -> None:
    user = UserMessage(content="x", timestamp=1)
    messages: list[Message] = [user, system("A"), user, system("B", 9)]

    assert collapse(messages) == (system("A\n\nB"), user, user)


@pytest.mark.rule("CTX-23", "CTX-24")
def test_messages_are_rendered_for_the_head_and_for_later() -> None:
    message = system("Text", sections={"a": "A", "b": "", "c": None})

    assert leading_text(message) == "Text\n\nA"
    assert update_text(message) == (
        'Text\n\nUpdated system prompt section "a":\n\nA\n\nUpdated system prompt section "b":\n\n\n\nRemoved system prompt section "c".'
    )


# -- differences -------------------------------------------------------------------------


@given(st.dictionaries(NAMES, st.sampled_from(["1", "2"])), st.dictionaries(NAMES, st.sampled_from(["1", "2"])))
def test_replaying_a_section_patch_gives_the_wanted_sections(previous: dict[str, str], current: dict[str, str]) -> None:
    patch = section_patch(previous, current)

    state = replay([system(sections=previous), system(sections=patch)])

    assert state is not None
    assert dict(state.sections) == current
    assert (patch is None) == (previous == current)


@given(TOOLS, TOOLS)
def test_replaying_a_tool_patch_gives_the_executable_tools(previous: list[ToolDeclaration], current: list[ToolDeclaration]) -> None:
    patch = tool_patch(previous, current)

    state = replay([system(tools_added=tuple(previous)), system(tools_added=patch.added, tools_removed=patch.removed)])

    assert state is not None
    assert {each.name: each for each in state.tools} == {each.name: each for each in current}
    assert bool(patch) == ({each.name: each for each in previous} != {each.name: each for each in current})


@pytest.mark.rule("CTX-26")
def test_declarations_are_compared_by_value() -> None:
    assert same_declaration(tool("a", x={"p": 1, "q": 2}), tool("a", x={"q": 2, "p": 1}))
    assert not same_declaration(tool("a", x=1), tool("a", x=True))
    assert not same_declaration(tool("a", x=[1, 2]), tool("a", x=[2, 1]))
    assert not same_declaration(tool("a"), ToolDeclaration(name="a", description="d", parameters=FrozenDict(), constrained_sampling=False))


def test_json_is_equal_by_value_and_true_is_not_one() -> None:
    assert same_json({"a": [1.0, "x", None]}, freeze({"a": [1, "x", None]}))
    assert not same_json([True], [1])
    assert not same_json({"a": 1}, {"a": 1, "b": 2})
    assert not same_json([], {})


# -- sections ----------------------------------------------------------------------------


def built(**options: Any) -> dict[str, str]:
    sections = build_sections(PromptOptions(**{"cwd": "/srv/app", **options}))
    assert isinstance(sections, FrozenDict)
    return dict(sections)


@pytest.mark.rule("RES-17")
def test_the_sections_stand_in_their_order() -> None:
    sections = built(
        append_system_prompt="More",
        context_files=(ContextFile(path="A.md", content="a"),),
        skills=(Skill(name="s", description="d", file_path="/s"),),
        sections=FrozenDict({"zeta": "z", "alpha": "a"}),
    )

    assert list(sections) == ["preamble", "tools", "rules", "docs", "addendum", "project_context", "skills", "cwd", "zeta", "alpha"]
    assert sections["preamble"] == DEFAULT_PREAMBLE
    assert sections["zeta"] == "<zeta>\nz\n</zeta>"


def test_a_custom_prompt_leaves_the_default_sections_out() -> None:
    assert built(custom_prompt="SYS", cwd="C:\\x") == {"preamble": "SYS", "cwd": "<cwd>\nC:/x\n</cwd>"}


@pytest.mark.rule("PB-2")
def test_an_extension_replaces_a_standard_section_in_place_unless_its_text_is_empty() -> None:
    replaced = built(sections=FrozenDict({"docs": "mine", "cwd": ""}))

    assert list(replaced) == ["preamble", "tools", "rules", "docs", "cwd"]
    assert replaced["docs"] == "<docs>\nmine\n</docs>"
    assert replaced["cwd"] == "<cwd>\n/srv/app\n</cwd>"


@pytest.mark.rule("RES-19", "PB-3")
@pytest.mark.parametrize("name", ["", "preamble", "A", "1a", "a.b", "a b", "a\n"])
def test_a_bad_section_name_is_refused(name: str) -> None:
    options = PromptOptions(cwd="/", custom_prompt="SYS", sections=FrozenDict({name: "x", "good": "y"}))
    refused = Rejection(f"Invalid system prompt section name: {name}")

    assert (check_section_name(name), build_sections(options), build_prompt(options)) == (refused, refused, refused)
    assert prompt_text(options) == "SYS\n\n<cwd>\n/\n</cwd>\n\n<good>\ny\n</good>"


def test_a_forced_prompt_replaces_everything_even_if_it_is_empty() -> None:
    options = PromptOptions(cwd="/", force_system_prompt="", sections=FrozenDict({"bad name": "x"}))

    assert build_prompt(options) == BuiltPrompt(content="", sections=None)
    assert prompt_text(options) == ""


def rules(*tools: str, **options: Any) -> list[str]:
    body = built(selected_tools=tools, **options)["rules"]
    return [line.removeprefix("- ") for line in body.split("\n")[1:-3]]


@pytest.mark.rule("RES-18")
@pytest.mark.parametrize(
    ("tools", "hint"),
    [
        (("bash",), [DEFAULT_BASH_RULE]),
        (("powershell",), [DEFAULT_POWERSHELL_RULE]),
        (("bash", "powershell"), [DEFAULT_BASH_AND_POWERSHELL_RULE]),
        (("bash", "find"), []),
        (("read",), []),
    ],
)
def test_a_shell_hint_is_given_where_nothing_else_can_search(tools: tuple[str, ...], hint: list[str]) -> None:
    assert rules(*tools) == hint


def test_rules_are_given_once_in_the_order_of_the_tools() -> None:
    guidelines = FrozenDict({"read": ("R", " same "), "write": ("W", "same", "")})

    assert rules("write", "read", tool_guidelines=guidelines, prompt_guidelines=("P", "W", DEFAULT_RULE_1)) == ["W", "same", "R", "P"]
    assert built()["rules"].endswith(f"- {DEFAULT_RULE_1}\n- {DEFAULT_RULE_2}\n</rules>")


@pytest.mark.rule("RES-8")
def test_skills_name_the_tool_that_reads_them() -> None:
    skill = (Skill(name="s", description="d", file_path="/s"),)

    assert default_skills_intro("read") in built(selected_tools=("bash", "read"), skills=skill)["skills"]
    assert default_skills_intro("bash") in built(selected_tools=("bash", "read"), hidden_tools=("read",), skills=skill)["skills"]
    assert "skills" not in built(selected_tools=("write",), skills=skill)
