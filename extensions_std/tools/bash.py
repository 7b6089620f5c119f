"""The `bash` tool, and `powershell`, which is the same with another shell (TOOL-70 to TOOL-79).

The port runs the shell and ends it (`run`: process group, time limit, abort, late output);
`captured_output.py` keeps what it prints. Here is what goes in, the environment, and what
comes out: the result, the errors, the updates on the way.
"""

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import attrs
import trio

from camshaft.actors.api import (
    FAMILIES,
    OUTPUT_BYTES_MAX,
    SESSION_VARIABLES,
    CapturedOutput,
    Files,
    FrozenDict,
    Json,
    OnUpdate,
    ProcessCommand,
    ProcessEnd,
    Processes,
    Signal,
    TextBlock,
    ToolDefinition,
    ToolResult,
    Truncation,
    encode,
    freeze,
    prefixed,
    size_text,
    spill_opener,
    without_session,
)
from camshaft.extensions_std.tools.failures import ToolFailure, error_code
from camshaft.extensions_std.tools.programs import shell_path

TIMEOUT_S_MAX: Final = 2147483.647
"""Milliseconds of it fit into 32 bits; the limit is the reference's (TOOL-73)."""

UPDATE_S: Final = 0.1
"""Least time between two updates (TOOL-78)."""

ABORTED: Final = "Command aborted"
"""TOOL-74."""

_POWERSHELL: Final = "powershell.exe"
_POWERSHELL_OPTIONS: Final = ("-NoProfile", "-NonInteractive", "-Command")

Arguments = Callable[[str, Processes, Mapping[str, str]], Awaitable[tuple[str, ...]]]
"""The program and its arguments that run a command in this environment. Raises ToolFailure."""


@attrs.frozen(kw_only=True)
class ShellOptions:
    """How a shell tool runs commands."""

    shell_path: str | None = None
    """The shell; None: /bin/bash, else bash on PATH, else sh."""
    command_prefix: str | None = None
    """Put on a line before each command."""
    expose_session: bool = True
    """Whether commands see the session variables."""
    processes: Processes | None = None
    """Where commands run; None: in the session's world."""
    files: Files | None = None
    """Where long output is kept; None: in the session's world."""
    cwd: str | None = None
    """Working directory in a context without one."""


def create_bash_tool(options: ShellOptions | None = None) -> ToolDefinition:
    """The tool."""
    chosen = options or ShellOptions()

    async def arguments(command: str, processes: Processes, environment: Mapping[str, str]) -> tuple[str, ...]:
        shell = await shell_path(processes, environment, chosen.shell_path)
        return (shell, "-c", command)

    return ToolDefinition(
        name="bash",
        label="Bash",
        description=(
            "Run a bash command in the working directory. Output and errors come back together, cut to the last 2000 lines "
            "or 50 KiB; longer output is kept in a file that the result names. Standard input is empty. No time limit unless given."
        ),
        parameters=_parameters("Bash command to run"),
        execute=_execute(chosen, arguments, "camshaft-bash"),
        prompt_snippet="Run shell commands",
        prompt_guidelines=("Give bash a timeout for commands that may hang.",),
        output_schema=OUTPUT_SCHEMA,
    )


def create_powershell_tool(options: ShellOptions | None = None) -> ToolDefinition:
    """The tool for Windows; elsewhere each call is an error (TOOL-79)."""
    chosen = options or ShellOptions()

    async def arguments(command: str, _processes: Processes, _environment: Mapping[str, str]) -> tuple[str, ...]:
        if sys.platform != "win32":
            raise ToolFailure("powershell runs on Windows only; use bash")
        return (chosen.shell_path or _POWERSHELL, *_POWERSHELL_OPTIONS, command)

    return ToolDefinition(
        name="powershell",
        label="PowerShell",
        description="Run a PowerShell command in the working directory (Windows only); results as those of bash.",
        parameters=_parameters("PowerShell command to run"),
        execute=_execute(chosen, arguments, "camshaft-powershell"),
        prompt_snippet="Run PowerShell commands",
        output_schema=OUTPUT_SCHEMA,
        default_active=False,
    )


def _parameters(command: str) -> FrozenDict:
    schema: FrozenDict = freeze(
        {
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": command},
                "timeout": {"type": "number", "description": "Seconds after which the command is killed (default: never)"},
            },
            "required": ["command"],
        }
    )
    return schema


OUTPUT_SCHEMA: Final[FrozenDict] = freeze(
    {
        "type": "object",
        "properties": {
            "output": {"type": "string"},
            "truncated": {"type": "boolean"},
            "full_output_path": {"type": "string"},
            "exit_code": {"type": "integer"},
            "wall_time_seconds": {"type": "number"},
        },
        "required": ["output", "truncated", "exit_code", "wall_time_seconds"],
    }
)
"""TOOL-77."""


def session_environment(inherited: Mapping[str, str], ctx: Any, *, expose: bool) -> dict[str, str]:
    """The environment of a command: what is inherited without session variables of another session, and our own (TOOL-71)."""
    environment = without_session(inherited)
    if expose and ctx.session_id:
        model = ctx.model
        known = (ctx.session_id, ctx.session_file, model and model.provider, model and model.id, ctx.thinking_level)
        for name, value in zip(SESSION_VARIABLES, known):
            if value:
                environment |= {family + name: value for family in FAMILIES}
    return environment


def checked_timeout(value: float | None) -> float | None:
    """Seconds, or None for no limit. Raises ToolFailure outside the range of TOOL-73."""
    if value is not None and not 0 < value <= TIMEOUT_S_MAX:
        raise ToolFailure(f"timeout is {value}; expected seconds, more than 0 and at most {TIMEOUT_S_MAX}")
    return value


def _execute(options: ShellOptions, arguments: Arguments, spill_prefix: str) -> Any:
    async def execute(_id: str, params: dict[str, Any], signal: Signal, on_update: OnUpdate, ctx: Any) -> ToolResult:
        world, timeout_s = ctx.world, checked_timeout(params.get("timeout"))
        processes = options.processes or world.processes
        command = prefixed(params["command"], options.command_prefix)
        environment = session_environment(world.environment, ctx, expose=options.expose_session)
        if signal.cancelled:
            raise ToolFailure(ABORTED)
        on_update(ToolResult(content=()))
        prepared = ProcessCommand(
            arguments=await arguments(command, processes, environment),
            cwd=ctx.cwd or options.cwd or "/",
            environment=environment,
            timeout_s=timeout_s,
        )

        output = CapturedOutput(spill_opener(world, environment, spill_prefix, options.files))
        try:
            return await _Call(command=prepared, output=output, on_update=on_update).result(processes, signal)
        finally:
            output.close()

    return execute


@attrs.define(eq=False)
class _Call:
    """One command on its way."""

    command: ProcessCommand
    output: CapturedOutput
    on_update: OnUpdate
    news: trio.Event = attrs.field(factory=trio.Event)

    async def result(self, processes: Processes, signal: Signal) -> ToolResult:
        """Raises ToolFailure if the command could not start, took too long or was aborted."""
        started_s = trio.current_time()
        end = await self._run(processes, signal)
        wall_s = trio.current_time() - started_s
        await self.output.finish()
        cut = self.output.tail()
        shown = _shown(self.output, cut)
        match end.why:
            case "aborted":
                raise ToolFailure(_below(shown, ABORTED))
            case "timeout":
                raise ToolFailure(_below(shown, _timeout_text(self.command.timeout_s, end)))
            case "exited":
                return _result(self.output, cut, shown or "(no output)", (end.exit_code or 0, wall_s))

    async def _run(self, processes: Processes, signal: Signal) -> ProcessEnd:
        ends: list[ProcessEnd] = []
        failures: list[OSError] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._send_updates)
            try:
                ends.append(await processes.run(self.command, self._take, signal=signal))
            except OSError as error:
                failures.append(error)
            nursery.cancel_scope.cancel()
        if failures:
            raise _not_started(self.command, failures[0])
        return ends[0]

    async def _take(self, chunk: bytes) -> None:
        self.news.set()
        await self.output.add(chunk)

    async def _send_updates(self) -> None:
        """The current tail, when there is news, and then not before UPDATE_S have gone by."""
        while True:
            await self.news.wait()
            self.news = trio.Event()
            cut = self.output.tail()
            self.on_update(ToolResult(content=(TextBlock(text=cut.content),), details=_details(self.output, cut)))
            await trio.sleep(UPDATE_S)


def _result(output: CapturedOutput, cut: Truncation, shown: str, code_and_time: tuple[int, float]) -> ToolResult:
    exit_code, wall_s = code_and_time
    full = output.for_programs()
    structured: dict[str, Any] = {"output": full.text, "truncated": full.truncated}
    if full.truncated and output.spill_path is not None:
        structured["full_output_path"] = output.spill_path
    structured |= {"exit_code": exit_code, "wall_time_seconds": round(wall_s, 3)}
    return ToolResult(
        content=(TextBlock(text=_below(shown, f"Command exited with code {exit_code}") if exit_code else shown),),
        details=_details(output, cut),
        structured_content=freeze(structured),
        is_error=True if exit_code else None,
    )


def _details(output: CapturedOutput, cut: Truncation) -> Json:
    if not cut.truncated:
        return None
    return freeze({"truncation": encode(cut)} | ({"fullOutputPath": output.spill_path} if output.spill_path else {}))


def _shown(output: CapturedOutput, cut: Truncation) -> str:
    """The tail with the notice of what was left out (TOOL-76)."""
    if not cut.truncated:
        return cut.content
    if cut.last_line_partial:
        size, number = size_text(cut.output_bytes), cut.total_lines
        notice = f"Showing the last {size} of line {number}, which is {size_text(output.last_line_size)}"
    else:
        limit = f" ({size_text(OUTPUT_BYTES_MAX)} limit)" if cut.truncated_by == "bytes" else ""
        notice = f"Showing lines {cut.total_lines - cut.output_lines + 1}-{cut.total_lines} of {cut.total_lines}{limit}"
    return f"{cut.content}\n\n[{notice}. {_where_kept(output)}]"


def _where_kept(output: CapturedOutput) -> str:
    code = error_code(output.spill_error) if output.spill_error is not None else ""
    if output.spill_path is None:
        return f"The full output was not kept ({code})"
    return f"Full output: {output.spill_path}" + (f" (incomplete: {code})" if code else "")


def _below(shown: str, line: str) -> str:
    return f"{shown}\n\n{line}" if shown else line


def _timeout_text(timeout_s: float | None, end: ProcessEnd) -> str:
    text = f"Command timed out after {_plain(timeout_s or 0)} seconds"
    if end.exit_code is None:
        return text
    return f"{text} (the shell had exited with code {end.exit_code} after {end.exited_after_s or 0:.1f} s; its output was still held open)"


def _plain(number: float) -> str:
    """Without `.0`."""
    return str(int(number)) if float(number).is_integer() else repr(float(number))


def _not_started(command: ProcessCommand, error: OSError) -> ToolFailure:
    if error.filename == command.cwd:
        return ToolFailure(f"Working directory {command.cwd!r} cannot be entered: {error.strerror} ({error_code(error)})")
    return ToolFailure(f"Cannot run {command.arguments[0]!r}: {error.strerror or error} ({error_code(error)})")
