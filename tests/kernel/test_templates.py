"""Prompt templates: what calls one, its arguments, what is put in."""

import pytest

from camshaft.kernel.templates import PromptTemplate, expand_template, substitute, template_arguments

FIX = PromptTemplate(name="fix", content="Fix $1: $@")


@pytest.mark.rule("RES-11")
@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("/fix a b", "Fix a: a b"),
        ("/fix\na\nb", "Fix a: a b"),
        ("/fix", "Fix : "),
        ("/fixx a", "/fixx a"),
        (" /fix a", " /fix a"),
        ("/ fix", "/ fix"),
        ("fix", "fix"),
        ("", ""),
        ("/fix /fix b", "Fix /fix: /fix b"),
    ],
)
def test_a_text_that_is_a_slash_and_an_exact_name_is_expanded_once(text: str, expanded: str) -> None:
    assert expand_template(text, (FIX, PromptTemplate(name="fix", content="second"))) == expanded


@pytest.mark.rule("RES-12")
@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("", []),
        (" a\tb\nc ", ["a", "b", "c"]),
        ("'a b' \"c d\"", ["a b", "c d"]),
        ("'' \"\"", ["", ""]),
        ("don't", ["don't"]),
        ("'a'b c", ["ab", "c"]),
        ('"a""b c"', ['a"b', 'c"']),
        (r"'it\'s' \n", ["it's", r"\n"]),
        (r"'a\nb'", [r"a\nb"]),
        ("'a b", ["'a", "b"]),
        ("' a", ["'", "a"]),
        ("a\u00a0b\ufeffc", ["a", "b", "c"]),
    ],
)
def test_arguments_are_split_at_blanks_outside_quotes_that_open_them(text: str, arguments: list[str]) -> None:
    assert template_arguments(text) == arguments


@pytest.mark.rule("RES-13")
@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("$1 $2 $3 $0", "a b c "),
        ("$@|$ARGUMENTS", "a b c|a b c"),
        ("${1:-x}|${4:-x y}|${4:-}", "a|x y|"),
        ("${@:-x}|${ARGUMENTS:-x}", "a b c|a b c"),
        ("${@:2}|${@:0:2}|${@:2:1}|${@:9}|${@:1:0}", "b c|a b|b||"),
        ("$10|$99999999999999999999|${@:99999999999999999999}", "||"),
        ("${1}|$x|$|${4:-a}b}", "${1}|$x|$|ab}"),
    ],
)
def test_placeholders_are_filled_in(content: str, text: str) -> None:
    assert substitute(content, ["a", "b", "c"]) == text


@pytest.mark.rule("RES-13")
def test_an_empty_argument_gives_the_default_and_a_value_is_never_expanded_again() -> None:
    assert substitute("${1:-none} $2 $@", ["", "$1 ${3:-x}"]) == "none $1 ${3:-x}  $1 ${3:-x}"
