"""Searching: limits across files, binary files, bad patterns, aborts."""

import os
from pathlib import Path
from typing import Any

import pytest
import trio

from camshaft.extensions_std.tools import ToolFailure, create_find_tool, create_grep_tool
from camshaft.extensions_std.tools.globs import BadGlob, glob_expression
from tests.extensions_std.tools.calls import CallContext, CallWorld, Switch, call, context, gone, open_handles, running, text


@pytest.mark.rule("TOOL-90")
async def test_the_limit_counts_across_files_in_order_of_their_paths(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        (tmp_path / name).write_text("hit\nhit\n")

    result = await call(create_grep_tool(), {"pattern": "hit", "limit": 3}, context(tmp_path))

    assert text(result).startswith("a:1: hit\na:2: hit\nb:1: hit\n\n[")
    assert result.details == {"matchLimitReached": 3}


@pytest.mark.rule("TOOL-90")
async def test_a_limit_that_is_met_exactly_proves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("hit\nhit\n")
    (tmp_path / "b").write_text("hit\nmiss\n")

    result = await call(create_grep_tool(), {"pattern": "hit", "limit": 3}, context(tmp_path))

    assert text(result) == "a:1: hit\na:2: hit\nb:1: hit"
    assert result.details is None


@pytest.mark.rule("TOOL-90")
async def test_a_file_that_turns_out_binary_late_is_left_out_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "late").write_bytes(b"hit\n" + b"x" * 200_000 + b"\0\n")
    (tmp_path / "text").write_text("hit\n")

    folder = await call(create_grep_tool(), {"pattern": "hit"}, context(tmp_path))
    named = await call(create_grep_tool(), {"pattern": "hit", "path": "late"}, context(tmp_path))

    assert text(folder) == "text:1: hit"
    assert text(named) == "late:1: hit"


@pytest.mark.rule("TOOL-90")
async def test_a_bad_expression_is_the_error_of_ripgrep(tmp_path: Path) -> None:
    (tmp_path / "a").touch()

    with pytest.raises(ToolFailure, match=r"(?s)Search failed: .*regex parse error"):
        await call(create_grep_tool(), {"pattern": "("}, context(tmp_path))


async def test_a_missing_ripgrep_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolFailure, match=r"Cannot run ripgrep \('/no/such/rg'\)"):
        await call(create_grep_tool(ripgrep="/no/such/rg"), {"pattern": "x"}, context(tmp_path))


@pytest.mark.rule("TOOL-90")
async def test_configuration_of_the_user_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("--invert-match\n")
    (tmp_path / "a").write_text("hit\nmiss\n")
    world = CallWorld(environment={**context(tmp_path).world.environment, "RIPGREP_CONFIG_PATH": str(tmp_path / "config")})

    result = await call(create_grep_tool(), {"pattern": "hit", "path": "a"}, CallContext(cwd=str(tmp_path), world=world))

    assert text(result) == "a:1: hit"


@pytest.mark.slow
@pytest.mark.rule("TOOL-56", "TOOL-90")
async def test_an_abort_or_a_cancel_during_a_search_leaves_nothing(tmp_path: Path) -> None:
    slow = tmp_path / "slow-rg"
    slow.write_text("#!/bin/bash\nsleep 60 & sleep 60\n")
    slow.chmod(0o755)
    tool, before, switch = create_grep_tool(ripgrep=str(slow)), open_handles(), Switch()

    with trio.move_on_after(0.1):
        await call(tool, {"pattern": "x"}, context(tmp_path))
    after_cancel = await gone(tmp_path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_aborted, tool, tmp_path, switch)
        with trio.move_on_after(0.1):
            await trio.sleep_forever()
        switch.give()

    assert after_cancel and await gone(tmp_path), running(tmp_path)
    assert open_handles() <= before


async def _aborted(tool: Any, folder: Path, switch: Switch) -> None:
    with pytest.raises(ToolFailure, match=r"^Operation aborted$"):
        await call(tool, {"pattern": "x"}, context(folder), switch)


@pytest.mark.rule("TOOL-91")
async def test_find_stops_at_an_abort_on_its_way(tmp_path: Path) -> None:
    for number in range(1000):
        (tmp_path / f"f{number}").touch()
    switch, looked = Switch(), list[str]()

    class Watched:
        """Real files, with an abort after ten entries."""

        def __getattr__(self, name: str) -> Any:
            return getattr(ctx.world.files, name)

        async def walk(self, root: str, accepts: Any, *, found_max: int) -> Any:
            def counted(path: str) -> bool:
                looked.append(path)
                if len(looked) == 10:
                    trio.from_thread.run_sync(switch.give)
                return bool(accepts(path))

            return await ctx.world.files.walk(root, counted, found_max=found_max)

    ctx = context(tmp_path)
    files: Any = Watched()

    with pytest.raises(ToolFailure, match=r"^Operation aborted$"):
        await call(create_find_tool(files=files), {"pattern": "*"}, ctx, switch)

    assert len(looked) < 1000


@pytest.mark.rule("TOOL-91")
async def test_a_path_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(ToolFailure, match="not a directory"):
        await call(create_find_tool(), {"pattern": "*", "path": "file"}, context(tmp_path))


@pytest.mark.rule("TOOL-91")
async def test_names_that_are_no_utf_8_are_found_and_shown_readably(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / os.fsdecode(b"\xff.txt")).touch()

    result = await call(create_find_tool(), {"pattern": "*.txt", "path": "d"}, context(tmp_path))

    assert text(result) == "\ufffd.txt"


GLOBS = [
    ("*.ts", ["a.ts", "A.TS", ".ts"], ["a.js", "d/a.ts"]),
    ("*.Ts", ["a.Ts"], ["a.ts"]),
    ("a?c", ["abc"], ["ac", "a/c", "aéc"]),
    ("a??c", ["aéc"], ["ac"]),
    ("[é]c", [], ["éc"]),
    ("a*c", ["ac", "abbc"], ["a/c"]),
    ("a**c", ["ac", "abbc"], ["a/c"]),
    ("**", ["a", "a/b"], []),
    ("**/a", ["a", "b/a", "b/c/a"], ["ba"]),
    ("a/**", ["a/b", "a/b/c"], ["a", "ab"]),
    ("**/**/a", ["a", "b/a"], ["ba"]),
    ("a/**/**/b", ["a/b", "a/x/b"], ["ab"]),
    ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/xb"]),
    ("[a-c]x", ["ax", "cx"], ["dx"]),
    ("[!a-c]x", ["dx", "/x"], ["ax"]),
    ("[^a]x", ["dx"], ["ax"]),
    ("[]x]", ["]", "x"], ["y"]),
    ("[a^&]", ["^", "&"], ["b"]),
    ("{a,b*}.{ts,py}", ["a.ts", "bcd.py"], ["c.ts", "a.js"]),
    ("x{,y}", ["xy"], ["x", "xyy"]),
    ("{**/a,b/**}", ["a", "x/a", "b/c"], ["b"]),
    ("a}", ["a"], ["a}"]),
    ("[a-]b", ["-b"], ["bb"]),
    ("[a-b-d]", ["b", "d"], ["-", "e"]),
    (r"[\\]", ["\\"], ["a"]),
    (r"\*", ["*"], ["a"]),
    ("a.b+c(d)|$", ["a.b+c(d)|$"], ["aXb+c(d)|$"]),
    ("a,b", ["a,b"], ["a"]),
]


@pytest.mark.rule("TOOL-91")
@pytest.mark.parametrize(("pattern", "yes", "no"), GLOBS)
def test_a_glob_matches_what_fd_finds(pattern: str, yes: list[str], no: list[str]) -> None:
    expression = glob_expression(pattern)

    assert [path for path in yes if not expression.fullmatch(path.encode())] == []
    assert [path for path in no if expression.fullmatch(path.encode())] == []


@pytest.mark.parametrize("pattern", ["a[", "[", "[]", "[!", "{a", "{a,{b}}", "a\\", "[z-a]"])
def test_a_malformed_glob_says_where(pattern: str) -> None:
    with pytest.raises(BadGlob):
        glob_expression(pattern)


@pytest.mark.rule("TOOL-91")
@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("", ["d/", "d/a.ts", "top.ts"]),
        ("././", ["d/", "d/a.ts", "top.ts"]),
        ("././a.ts", ["d/a.ts"]),
        ("d/*.ts", ["d/a.ts"]),
        ("/d/*.ts", []),
        ("ROOT/d/*.ts", ["d/a.ts"]),
        ("**/", []),
        ("**/**", ["d/", "d/a.ts", "top.ts"]),
    ],
)
async def test_a_pattern_with_a_slash_is_for_the_path_and_one_that_begins_with_it_for_the_whole_path(
    tmp_path: Path, pattern: str, found: list[str]
) -> None:
    root = tmp_path / "root"
    (root / "d").mkdir(parents=True)
    (root / "d" / "a.ts").touch()
    (root / "top.ts").touch()

    result = await call(create_find_tool(), {"pattern": pattern.replace("ROOT", str(root)), "path": "root"}, context(tmp_path))

    assert text(result).split("\n") == (found or ["No files found matching pattern"])
