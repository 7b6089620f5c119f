"""Dialogs and what is shown, as data: answers of any shape, and what a screen draws."""

import pytest

from camshaft.kernel.dialogs import NOTHING_SHOWN, Dialog, UiState, Widget
from camshaft.kernel.persistent import FrozenDict


def dialog(kind: str, dialog_id: str = "d") -> Dialog:
    return Dialog(id=dialog_id, kind=kind, title="Title", extension="x.py")  # type: ignore[arg-type]  # one of the four


@pytest.mark.rule("UI-4", "RPC-98")
@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("select", "a", "a"),
        ("select", "not among the options", "not among the options"),
        ("select", True, None),
        ("select", 3, None),
        ("confirm", True, True),
        ("confirm", False, False),
        ("confirm", "yes", False),
        ("confirm", 1, False),
        ("confirm", None, False),
        ("input", "", ""),
        ("input", None, None),
        ("editor", "text", "text"),
        ("editor", ["text"], None),
    ],
)
def test_an_answer_of_the_wrong_shape_is_the_fallback(kind: str, value: object, expected: object) -> None:
    assert dialog(kind).read(value) is expected


@pytest.mark.rule("UI-1")
@pytest.mark.parametrize(
    ("count", "last"),
    [(0, None), (10, "line 9"), (11, "… (1 more line)"), (30, "… (20 more lines)")],
)
def test_a_widget_shows_ten_lines_and_how_many_more_there_are(count: int, last: str | None) -> None:
    shown = Widget(lines=tuple([f"line {number}" for number in range(count)])).shown

    assert (shown[-1] if shown else None) == last
    assert len(shown) == min(count, 11)


def test_status_lines_and_widgets_keep_their_places_until_they_are_cleared() -> None:
    one, two, other = Widget(lines=("1",)), Widget(lines=("2",)), Widget(lines=("3",))

    shown = NOTHING_SHOWN.with_status("a", "1").with_status("b", "2").with_status("a", "3")
    shown = shown.with_widget("a", one).with_widget("b", two).with_widget("a", other)

    assert list(shown.statuses.items()) == [("a", "3"), ("b", "2")]
    assert shown.widgets == (("a", other), ("b", two))
    cleared = shown.with_status("a", None).with_status("gone", None).with_widget("b", None).with_widget("gone", None)
    assert cleared == UiState(statuses=FrozenDict(b="2"), widgets=(("a", other),))
