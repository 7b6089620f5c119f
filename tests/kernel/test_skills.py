"""Skills: what calls one, what the call becomes, what is odd about a name."""

import pytest

from camshaft.kernel.skills import Skill, SkillCall, SplitText, description_faults, name_faults, skill_call, skill_text, split_frontmatter

REVIEW = Skill(name="review", description="d", file_path="/skills/review/SKILL.md")


@pytest.mark.rule("RES-9")
@pytest.mark.parametrize(
    ("text", "arguments"),
    [("/skill:review", ""), ("/skill:review  a  b \n", "a  b"), ("/skill:review ", "")],
)
def test_a_call_names_a_skill_up_to_the_first_space(text: str, arguments: str) -> None:
    assert skill_call(text, (REVIEW,)) == SkillCall(skill=REVIEW, arguments=arguments)


@pytest.mark.rule("RES-9")
@pytest.mark.parametrize("text", ["/skill:other", "/skill:review\tx", "/skills:review", " /skill:review", "/skill:", "review"])
def test_other_texts_call_nothing(text: str) -> None:
    assert skill_call(text, (REVIEW,)) is None


@pytest.mark.rule("RES-9")
def test_a_call_becomes_the_body_with_where_it_is_from_and_the_arguments_below() -> None:
    file = "---\nname: review\n---\n\nLook at $1.\n\n"
    head = '<skill name="review" location="/skills/review/SKILL.md">'
    opening = f"{head}\nReferences are relative to /skills/review.\n\nLook at $1.\n</skill>"

    assert skill_text(SkillCall(skill=REVIEW, arguments=""), file) == opening
    assert skill_text(SkillCall(skill=REVIEW, arguments="this"), file) == f"{opening}\n\nthis"


@pytest.mark.rule("RES-6")
@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("a\r\nb\rc", SplitText(frontmatter=None, body="a\nb\nc")),
        ("\ufeff---\r\na: 1\r\n---\r\nbody", SplitText(frontmatter="a: 1", body="\nbody")),
        ("---\n---\nbody", SplitText(frontmatter="", body="\nbody")),
        ("---\na: 1\n", SplitText(frontmatter=None, body="---\na: 1\n")),
        (" ---\na\n---\n", SplitText(frontmatter=None, body=" ---\na\n---\n")),
        ("", SplitText(frontmatter=None, body="")),
    ],
)
def test_frontmatter_is_what_stands_between_two_lines_of_dashes_at_the_head(text: str, split: SplitText) -> None:
    assert split_frontmatter(text) == split


@pytest.mark.rule("RES-7")
@pytest.mark.parametrize(
    ("name", "said"),
    [("x" * 65, "65 characters"), ("Bad_Name", "other than a-z"), ("-a", "hyphen"), ("a-", "hyphen"), ("a--b", "two hyphens")],
)
def test_an_odd_name_is_told(name: str, said: str) -> None:
    (fault,) = name_faults(name)

    assert said in fault


@pytest.mark.rule("RES-7")
def test_a_good_name_and_a_description_of_1024_characters_are_fine() -> None:
    assert (name_faults("a-1" + "x" * 61), description_faults("x" * 1024)) == ((), ())
    assert len(description_faults("x" * 1025)) == 1
