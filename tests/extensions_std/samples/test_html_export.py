"""The export as one page: what it shows, and what a hostile session cannot do to it."""

import html
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from camshaft.actors.api import CustomMessage, ImageBlock, TextBlock, UserMessage, freeze
from camshaft.extensions_std.providers.scripted import assistant, text, thinking, tool_call
from camshaft.extensions_std.samples import html_export
from tests.actors.replacing import sessions
from tests.actors.running import Running, simulate, tool
from tests.extensions_std.samples.trying import compared, log_of, people, played, prompting

EVIL: Final = "</pre></article><script>alert(1)</script><img src=x onerror=alert(1)> \" ' onload=x & {0} {title} \ud800 \x00"
PIXEL: Final = "iVBORw0KGgo="
ALLOWED: Final = {
    "html": {"lang"},
    "head": set(),
    "meta": {"charset", "http-equiv", "content"},
    "title": set(),
    "style": set(),
    "body": set(),
    "h1": set(),
    "h2": set(),
    "p": set(),
    "article": {"class"},
    "pre": set(),
    "small": set(),
    "details": {"open"},
    "summary": set(),
    "img": {"alt", "src"},
}
"""Everything a page may be made of."""


@attrs.define(eq=False)
class Page:
    """What a browser finds in a page."""

    tags: list[tuple[str, dict[str, str | None]]] = attrs.field(factory=list)
    texts: list[str] = attrs.field(factory=list)

    def read(self, page: str) -> "Page":
        parser = HTMLParser(convert_charrefs=True)
        parser.handle_starttag = lambda tag, given: self.tags.append((tag, dict(given)))  # type: ignore[method-assign, assignment]  # no subclasses here
        parser.handle_data = self.texts.append  # type: ignore[assignment]  # as above
        parser.feed(page)
        parser.close()
        return self


def exported(tmp_path: Path, script: list[Any], *prompts: str, prepare: Any = None, **more: Any) -> str:
    """The page of a session with these prompts."""

    async def act(running: Running) -> None:
        await prompting(*prompts)(running)
        if prepare is not None:
            prepare(running)
        await running.seat.prompt(f"/export-html {tmp_path / 'page.html'}")

    simulate(lambda: played(act, script, html_export.setup, **sessions(tmp_path), **more))
    return (tmp_path / "page.html").read_text("utf-8")


async def evil_tool(*_: Any) -> Any:
    return {"content": [{"type": "text", "text": EVIL}, {"type": "image", "data": '"onerror="alert(1)', "mime_type": "image/png"}]}


def make_worse(running: Running) -> None:
    seat = running.seat
    pictures = (ImageBlock(data=PIXEL, mime_type="image/png"), ImageBlock(data=PIXEL, mime_type='image/svg+xml" onload="x'))
    seat.append_message(UserMessage(content=(TextBlock(text=EVIL), *pictures), timestamp=0))
    seat.append_message(CustomMessage(custom_type=EVIL, content=EVIL, display=True, details=freeze({EVIL: EVIL}), timestamp=0))
    seat.append_entry(EVIL, freeze({EVIL: [EVIL]}))
    seat.set_label(str(seat.state.leaf_id), EVIL)
    seat.set_session_name(EVIL)


@pytest.mark.rule("RPC-46")
def test_a_hostile_session_brings_no_tag_and_no_attribute_into_the_page(tmp_path: Path) -> None:
    answer = assistant([thinking(EVIL), text(EVIL), tool_call("evil", {EVIL: EVIL}, id="a")])
    script = [answer, assistant("over")]

    source = exported(tmp_path, script, EVIL, prepare=make_worse, tools=[tool(evil_tool, "evil")])
    page = Page().read(source)

    assert [(tag, given) for tag, given in page.tags if not set(given) <= ALLOWED.get(tag, set()) or tag not in ALLOWED] == []
    assert [given["src"] for tag, given in page.tags if tag == "img"] == [f"data:image/png;base64,{PIXEL}"]
    assert "".join(page.texts).count("<script>alert(1)</script>") >= 9
    assert re.search(r"default-src 'none'; img-src data:; style-src", source)


def test_the_page_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    page = Page().read(exported(tmp_path, [assistant("one")], "hello"))

    assert [given for _, given in page.tags if "href" in given or (given.get("src") or "data:").partition(":")[0] != "data"] == []


def test_the_page_shows_what_was_said_in_order(tmp_path: Path) -> None:
    script = [assistant([thinking("hm"), text("I call."), tool_call("work", {"x": 1}, id="a")]), assistant("Done <b>.")]

    async def work(*_: Any) -> Any:
        return {"content": [{"type": "text", "text": "worked"}]}

    shown = "".join(Page().read(exported(tmp_path, script, "do it", tools=[tool(work)])).texts)

    places = [shown.index(part) for part in ("do it", "hm", "I call.", "Call of work", '"x": 1', "worked", "Done <b>.")]
    assert places == sorted(places)


@pytest.mark.rule("RPC-125")
def test_the_calls_that_a_tool_made_are_shown_with_their_end(tmp_path: Path) -> None:
    async def outer(_id: str, _params: Any, _signal: Any, _on_update: Any, ctx: Any) -> Any:
        await ctx.execute_tool("inner", {"fine": True})
        await ctx.execute_tool("inner", {"long": "x" * 9000})
        return {"content": []}

    async def inner(_id: str, params: Any, *_: Any) -> Any:
        if "long" in params:
            raise ValueError("<too> long")
        return {"content": []}

    script = [assistant([tool_call("outer", id="a")]), assistant("over")]
    source = exported(tmp_path, script, "go", tools=[tool(outer, "outer"), tool(inner, "inner")])

    assert 'inner ({"fine": true}): ok after 0 ms' in html.unescape(source)
    assert "inner (9011 bytes of arguments, omitted): error after 0 ms: &lt;too&gt; long" in source
    assert "This record is not complete." in source


@pytest.mark.parametrize("record", [{"calls": 3}, {"calls": [1]}, [EVIL], EVIL])
def test_a_record_of_another_shape_is_shown_as_it_is(record: Any) -> None:
    shown = html_export.nested_calls(freeze(record))

    assert shown.startswith("<details><summary>Calls of this tool</summary>")
    assert "<script>" not in shown


@pytest.mark.rule("RPC-46")
def test_the_default_name_comes_from_the_session_file_and_the_difference_is_the_command(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    options = {"cwd": str(tmp_path / "project"), **sessions(tmp_path / "sessions"), **people()}

    difference = compared(html_export.setup, prompting("hello", "/export-html"), [assistant("one"), assistant("two")], **options)

    (written,) = (tmp_path / "project").iterdir()
    assert (difference.added, difference.missing) == ([], ["user: /export-html", "assistant: two"])
    assert re.fullmatch(r"camshaft-session-.+\.html", written.name)
    assert difference.notified == [f"Exported to {written.name}"]


@pytest.mark.rule("RPC-46")
@pytest.mark.parametrize(
    ("options", "why"),
    [({}, "Cannot export in-memory session to HTML"), ({"saved": True}, "Nothing to export yet - start a conversation first")],
)
def test_where_there_is_nothing_to_export_that_is_told(tmp_path: Path, options: dict[str, bool], why: str) -> None:
    given = sessions(tmp_path) if options else {}

    running = simulate(lambda: played(prompting("/export-html"), [], html_export.setup, **given))

    assert [error for _, _, error in running.errors()] == [why]
    assert [line for line in log_of(running) if line.startswith("user")] == []
