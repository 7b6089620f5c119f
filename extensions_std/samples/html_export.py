"""A sample: writes the session as one HTML file, to read in a browser or to hand on.

Load it with `camshaft -e html_export.py`. `/export-html` writes `camshaft-session-<name of the session file>.html`
into the working directory, `/export-html path` another file. It has the active branch, and nothing outside of itself:
no script, no font, no picture from elsewhere. A session holds what models, tools and web pages said, so every text in
it is escaped, a picture is one only if it looks like one, and the page forbids scripts on top. It keeps nothing.
"""

import html
import json
import os
import re
from typing import Any, Final

from camshaft.actors.api import (
    AssistantMessage,
    Block,
    CommandContext,
    Content,
    Entry,
    ExtensionAPI,
    ExtensionContext,
    ImageBlock,
    MessageEntry,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    encode,
)

PICTURES: Final = ("image/gif", "image/jpeg", "image/png", "image/webp")
BASE64: Final = re.compile(r"[A-Za-z0-9+/\s]*={0,2}\s*")
PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{title}</title><style>
body {{ font: 15px/1.5 sans-serif; max-width: 60rem; margin: 2rem auto }} article {{ border-left: 4px solid #bbb; padding: .2rem 1rem }}
.user {{ border-color: #37c }} .assistant {{ border-color: #3a6 }} .error {{ border-color: #c33 }}
h2, small, summary {{ font-size: .8rem; color: #666 }} img {{ max-width: 100% }} pre {{ white-space: pre-wrap; overflow-wrap: anywhere }}
</style></head><body><h1>{title}</h1><p>{about}</p>
{body}
</body></html>
"""


def setup(api: ExtensionAPI) -> None:
    """Registers the command."""

    async def command(arguments: str, ctx: CommandContext) -> None:
        ctx.ui.notify(f"Exported to {await export(ctx, arguments.strip() or None)}")

    api.register_command("export-html", command, description="Write the session as an HTML file")


async def export(ctx: ExtensionContext, path: str | None = None) -> str:
    """Writes the file; its path as it was given. Raises RuntimeError if there is nothing to write, OSError if it cannot be."""
    session, session_file = ctx.session, ctx.session.get_session_file()
    if session_file is None:
        raise RuntimeError("Cannot export in-memory session to HTML")
    if not any(isinstance(entry, MessageEntry) for entry in session.get_branch()):
        raise RuntimeError("Nothing to export yet - start a conversation first")
    path = path or f"camshaft-session-{os.path.splitext(os.path.basename(session_file))[0]}.html"
    body = "\n".join(article(entry, session.get_label(entry.id)) for entry in session.get_branch())
    title, about = session.get_session_name() or session.get_session_id(), f"{session.get_header().timestamp}, {session.get_cwd()}"
    page = PAGE.format(title=escaped(title), about=escaped(about), body=body)
    # Half characters, which JSON can hold and a file cannot, become question marks.
    await ctx.world.files.write(os.path.join(ctx.cwd, path), page.encode("utf-8", "replace"))
    return path


def article(entry: Entry, label: str | None) -> str:
    """One entry, with its label."""
    message = entry.message if isinstance(entry, MessageEntry) else None
    kind = str(entry.type if message is None else message.role)
    mark = "error" if getattr(message, "is_error", False) or getattr(message, "stop_reason", "") == "error" else kind
    named = "" if label is None else f" · {label}"
    heading = escaped(f"{kind} · {entry.timestamp}{named}")
    return f'<article class="{escaped(mark)}"><h2>{heading}</h2>{said(message or entry)}</article>'


def said(message: Any) -> str:
    """What a message or an entry holds; of a kind that has neither content nor summary, all of it, folded."""
    match message:
        case SystemMessage():
            return folded("Prompt and tools", message)
        case AssistantMessage():
            return f"{contents(message.content)}{text(message.error_message or '')}<small>{escaped(message.model)}</small>"
        case ToolResultMessage():
            return f"<small>{escaped(message.tool_name)}</small>{contents(message.content)}{nested_calls(message.nested_calls)}"
    content = getattr(message, "content", getattr(message, "summary", None))
    return folded("Content", message) if content is None else contents(content)


def contents(content: Content) -> str:
    """Every block of a message."""
    return text(content) if isinstance(content, str) else "".join(block(each) for each in content)


def block(each: Block) -> str:
    """One block."""
    match each:
        case TextBlock():
            return text(each.text)
        case ThinkingBlock():
            return f"<details><summary>Thinking</summary>{text(each.thinking)}</details>"
        case ToolCall():
            return folded(f"Call of {each.name}", each.arguments)
        case ImageBlock() if each.mime_type in PICTURES and BASE64.fullmatch(each.data):
            return f'<img alt="" src="data:{each.mime_type};base64,{escaped(each.data)}">'
    return folded(f"A block of type {each.type} that is not shown", "" if isinstance(each, ImageBlock) else each)


def nested_calls(record: Any) -> str:
    """The calls that a tool made (RPC-125)."""
    if record is None:
        return ""
    calls = record.get("calls") if isinstance(record, dict) else None
    if not isinstance(calls, list | tuple) or not all(isinstance(call, dict) for call in calls):
        return folded("Calls of this tool", record)
    complete = [] if record.get("complete") is True else ["This record is not complete."]
    lines = "\n".join([*[nested_call(call) for call in calls], *complete])
    return f"<details open><summary>Calls of this tool</summary>{text(lines)}</details>"


def nested_call(call: dict[str, Any]) -> str:
    """One of them, in a line."""
    arguments = json.dumps(call["arguments"]) if "arguments" in call else f"{call.get('argumentsBytes')} bytes of arguments, omitted"
    took = f" after {call['durationMs']} ms" if "durationMs" in call else ""
    error = f": {call['error']}" if "error" in call else ""
    return f"{call.get('name')} ({arguments}): {call.get('status')}{took}{error}"


def folded(title: str, value: Any) -> str:
    """Something as JSON, behind a title."""
    pretty = json.dumps(encode(value), indent=2, ensure_ascii=False)
    return f"<details><summary>{escaped(title)}</summary>{text(pretty)}</details>"


def text(value: str) -> str:
    """A text as it is, line by line; nothing if it is empty."""
    return f"<pre>{escaped(value)}</pre>" if value else ""


def escaped(value: str) -> str:
    """A text that can do nothing in a page, between tags or in quotes."""
    return html.escape(value, quote=True)
