"""The `grep` tool: lines that match, found by ripgrep (TOOL-90).

Theory of operation. ripgrep prints JSON, one event a line, files one after the other in order
of their paths. Lines of a file are held until its end, because only then it is known to be
binary (left out; one named itself is searched as text). The search is over when the limit is
passed: another match was then proven, and ripgrep is killed. Of each file ripgrep looks for
one match more than the limit, so what is held is bounded; a line longer than EVENT_BYTES_MAX
is left out.

A line after the last match shown, though a match itself, is context.
"""

import base64
import json
import os
from collections.abc import Mapping
from typing import Any, Final

import attrs
import trio

from camshaft.actors.api import (
    Annotations,
    Files,
    FrozenDict,
    OnUpdate,
    ProcessCommand,
    ProcessEnd,
    Processes,
    Signal,
    TextBlock,
    ToolDefinition,
    ToolResult,
    freeze,
    truncate_line,
)
from camshaft.extensions_std.tools.failures import ABORTED, ToolFailure, error_code, os_failure, raise_if_aborted
from camshaft.extensions_std.tools.listing import limit_of, listing_result
from camshaft.extensions_std.tools.paths import path_of
from camshaft.extensions_std.tools.programs import ripgrep_path

MATCHES_MAX: Final = 100
"""Matches shown unless the call says otherwise (TOOL-90)."""

EVENT_BYTES_MAX: Final = 8 * 1024 * 1024
"""Longest event that is read; a line of half this size, shown to 500 characters."""

ERROR_BYTES_MAX: Final = 4096
"""What is kept of ripgrep's complaints."""

PARAMETERS: Final[FrozenDict] = freeze(
    {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "Regular expression, or text with literal"},
            "path": {"type": "string", "description": "File or folder to search (default: the working directory)"},
            "glob": {"type": "string", "description": "Only files matching this, e.g. '*.ts' or 'src/**/*.ts'; '!' first excludes"},
            "ignoreCase": {"type": "boolean", "description": "Upper and lower case alike"},
            "literal": {"type": "boolean", "description": "Take the pattern as text"},
            "context": {"type": "number", "description": "Lines to show before and after each match"},
            "limit": {"type": "number", "description": f"Most matches to show (default: {MATCHES_MAX})"},
        },
        "required": ["pattern"],
    }
)


def create_grep_tool(
    *, processes: Processes | None = None, files: Files | None = None, cwd: str | None = None, ripgrep: str | None = None
) -> ToolDefinition:
    """The tool; operations given here replace those of the session's world, `ripgrep` is the program's path."""

    async def execute(_id: str, params: dict[str, Any], signal: Signal, _on_update: OnUpdate, ctx: Any) -> ToolResult:
        raise_if_aborted(signal)
        path, shown = path_of(params, ctx, cwd), params.get("path") or "."
        runner = processes or ctx.world.processes
        try:
            kind = await (files or ctx.world.files).kind(path)
            if kind is None:
                raise ToolFailure(f"Path not found: {shown!r}")
            program = ripgrep or await ripgrep_path(runner, ctx.world.environment)
        except OSError as error:
            raise os_failure("search", shown, error) from error
        search = _Search(limit=limit_of(params, MATCHES_MAX), context=_context(params))
        folder, name = (path, None) if kind == "directory" else os.path.split(path)
        # A file that was named is searched as text, whatever it holds.
        options = [*_options(params, search), *(["--text"] if name is not None else [])]
        arguments = (program, *options, "--", params["pattern"], f"./{name or ''}")
        await search.run(runner, ProcessCommand(arguments=arguments, cwd=folder, environment=ctx.world.environment), signal)
        return search.result()

    return ToolDefinition(
        name="grep",
        label="Grep",
        description=(
            f"Search file contents with ripgrep; ignore files are respected. At most {MATCHES_MAX} matches or 50 KiB, "
            "lines of 500 characters. Paths, and a glob with '/', are relative to the searched folder."
        ),
        parameters=PARAMETERS,
        execute=execute,
        prompt_snippet="Search file contents for a pattern",
        default_active=False,
        annotations=Annotations(read_only_hint=True, open_world_hint=False),
        replay="safe",
    )


def _context(params: Mapping[str, Any]) -> int:
    return max(0, int(params.get("context") or 0))


def _options(params: Mapping[str, Any], search: "_Search") -> list[str]:
    options = ["--json", "--no-config", "--no-messages", "--hidden", "--sort=path", f"--max-count={search.limit + 1}"]
    if search.context:
        options.append(f"--context={search.context}")
    if params.get("ignoreCase"):
        options.append("--ignore-case")
    if params.get("literal"):
        options.append("--fixed-strings")
    if params.get("glob"):
        glob = params["glob"]
        excluded = "!" * glob.startswith("!")
        options.append(f"--glob={excluded}{glob.removeprefix('!').removeprefix('./')}")
    return options


@attrs.frozen
class _Found:
    """A line of the file that is being searched."""

    number: int
    text: str
    """Cut to the length that is shown."""
    was_cut: bool
    is_match: bool


@attrs.define(eq=False)
class _Search:
    """One search: takes ripgrep's output, holds what will be shown."""

    limit: int
    context: int
    rows: list[str] = attrs.field(factory=list)
    matches: int = 0
    lines_cut: bool = False
    passed_limit: bool = False
    _file: list[_Found] = attrs.field(factory=list)
    _unfinished: bytearray = attrs.field(factory=bytearray)
    _skipping: bool = False
    _complaints: bytearray = attrs.field(factory=bytearray)
    _scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)

    async def run(self, processes: Processes, command: ProcessCommand, signal: Signal) -> None:
        """Until ripgrep ends or the limit is passed. Raises ToolFailure."""
        end: ProcessEnd | None = None
        try:
            with self._scope:
                end = await processes.run(command, self._take, on_errors=self._complain, signal=signal)
        except OSError as error:
            raise ToolFailure(f"Cannot run ripgrep ({command.arguments[0]!r}): {error.strerror} ({error_code(error)})") from error
        if end is None:
            return
        if end.why == "aborted":
            raise ToolFailure(ABORTED)
        complaint = self._complaints.decode("utf-8", "replace").strip()
        if end.exit_code not in (0, 1) and complaint and not self.rows:
            raise ToolFailure(f"Search failed: {complaint}")

    def result(self) -> ToolResult:
        """The list, or that there is nothing."""
        if not self.rows:
            return ToolResult(content=(TextBlock(text="No matches found"),))
        details: dict[str, Any] = {}
        notices = []
        if self.passed_limit:
            details["matchLimitReached"] = self.limit
            notices.append(f"First {self.limit} matches; use a larger limit or a narrower pattern to see more")
        if self.lines_cut:
            details["linesTruncated"] = True
            notices.append("Some lines were cut to 500 characters; see them whole with read")
        return listing_result("\n".join(self.rows), details, notices)

    async def _take(self, chunk: bytes) -> None:
        await trio.lowlevel.checkpoint()
        *complete, rest = chunk.split(b"\n")
        for piece in complete:
            if not self._skipping and len(self._unfinished) + len(piece) <= EVENT_BYTES_MAX:
                self._event(json.loads(bytes(self._unfinished) + piece))
            self._unfinished.clear()
            self._skipping = False
            if self.passed_limit:
                self._scope.cancel()
                return
        self._skipping = self._skipping or len(self._unfinished) + len(rest) > EVENT_BYTES_MAX
        if self._skipping:
            self._unfinished.clear()
        else:
            self._unfinished += rest

    async def _complain(self, chunk: bytes) -> None:
        await trio.lowlevel.checkpoint()
        self._complaints += chunk[: ERROR_BYTES_MAX - len(self._complaints)]

    def _event(self, event: dict[str, Any]) -> None:
        body = event["data"]
        match event["type"]:
            case "begin":
                self._file.clear()
            case "match" | "context":
                text, was_cut = truncate_line(_text(body["lines"]).removesuffix("\n").removesuffix("\r"))
                self._file.append(_Found(body["line_number"], text, was_cut, event["type"] == "match"))
            case "end" if body["binary_offset"] is None:
                self._show(_text(body["path"]).removeprefix("./"))

    def _show(self, path: str) -> None:
        """Takes over the lines of the file: as many matches as the limit leaves room for, and their context."""
        matches = [found.number for found in self._file if found.is_match]
        shown = matches[: self.limit - self.matches]
        self.matches += len(shown)
        self.passed_limit = len(shown) < len(matches)
        for found in self._file:
            if shown and found.number <= shown[-1] + self.context:
                mark = ":" if found.is_match and found.number <= shown[-1] else "-"
                self.rows.append(f"{path}{mark}{found.number}{mark} {found.text}")
                self.lines_cut = self.lines_cut or found.was_cut


def _text(value: Mapping[str, str]) -> str:
    """ripgrep's texts: as they are if they are UTF-8, else base64."""
    return value["text"] if "text" in value else base64.b64decode(value["bytes"]).decode("utf-8", "replace")
