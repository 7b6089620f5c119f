"""What the report of an extension's failure tells its author: the class, the line, the stack (ERR-1)."""

from pathlib import Path
from typing import Any

import pytest

from camshaft.actors.host import ExtensionSource, LoadError
from camshaft.extensions_std.providers.scripted import assistant, tool_call
from tests.actors.running import opened, simulate

FAULTY = """\
import json

def handler(event, ctx):
    return lacking({})

def lacking(found):
    return found["x"]

async def later(value):
    json.loads("{")

def setup(api):
    api.on("agent_start", handler)
    api.on("turn_end", handler)
    api.on("turn_end", lambda event, ctx: api.events.emit("c", 1))
    api.on("agent_end", lambda event, ctx: api.events.emit("d", 1))
    api.register_command("c", handler)
    api.events.on("c", lacking)
    api.events.on("d", later)
"""


@pytest.mark.rule("ERR-1")
def test_every_exception_of_an_extension_keeps_its_class_its_line_and_its_stack(tmp_path: Path) -> None:
    path = tmp_path / "extension.py"
    path.write_text(FAULTY)

    async def failed() -> list[Any]:
        async with opened([assistant("done")], sources=[ExtensionSource(path=str(path))]) as running:
            await running.seat.prompt("/c x")
            await running.seat.prompt("go")
            return list(running.seat.errors)
        raise AssertionError

    errors = simulate(failed)

    assert [(each.extension_path, each.event, each.error_type, each.place) for each in errors] == [
        ("command:c", "command", "KeyError", f"{path}, line 7"),
        (str(path), "agent_start", "KeyError", f"{path}, line 7"),
        (str(path), "turn_end", "KeyError", f"{path}, line 7"),
        (str(path), "events:c", "TypeError", f"{path}, line 7"),
        (str(path), "events:d", "JSONDecodeError", f"{path}, line 10"),
    ]
    assert [each.error for each in errors[:3]] == ["KeyError: 'x'"] * 3
    assert all([f"line {each.place.rpartition(' ')[2]}, in " in each.stack for each in errors])


@pytest.mark.rule("ERR-1")
def test_an_inline_extension_that_fails_is_reported_with_the_line_of_its_own_function() -> None:
    def setup(api: Any) -> None:
        api.on("no_such_event", print)

    async def loaded() -> LoadError:
        async with opened([assistant("done")], setup) as running:
            return running.seat.load_errors[0]
        raise AssertionError

    failed = simulate(loaded)

    line = setup.__code__.co_firstlineno + 1
    assert failed.error.startswith("there is no event 'no_such_event'; ")
    assert failed.place == f"{__file__}, line {line}"


@pytest.mark.rule("TOOL-27", "ERR-1")
@pytest.mark.parametrize(
    ("given", "text"),
    [
        (None, "Tool work returned no result; expected a result object with content"),
        ("ok", "Tool work returned no valid result object: "),
        ({"text": "ok"}, "Tool work returned no valid result object: text: expected no such field; "),
    ],
)
def test_a_tool_that_returns_no_result_is_also_reported_to_its_author(given: Any, text: str) -> None:
    async def gives(*_: Any) -> Any:
        return given

    def setup(api: Any) -> None:
        api.register_tool({"name": "work", "description": "d", "parameters": {"type": "object"}, "execute": gives})

    async def called() -> list[tuple[str, str, str]]:
        async with opened([assistant(tool_call("work")), assistant("done")], setup) as running:
            await running.seat.prompt("go")
            return running.errors()
        raise AssertionError

    assert [(path, event, said_[: len(text)]) for path, event, said_ in simulate(called)] == [("<inline:x0>", "execute", text)]
