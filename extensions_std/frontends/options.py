"""The options of the command line: one table, the split of an argument list by it, and the help text from it.

Imports nothing, so that `--help` and `--version` answer before anything else is loaded. The rules are CLI-1
to CLI-6; what is new is that a known option may also be written `--name=value`.
"""

MESSAGE = "message"
"""What `split` calls a word that is no option."""
FILE = "file"
"""What it calls an `@file`."""
FLAG = "flag"
"""What it calls `--name`, `--name=value` that may be a flag of an extension; the value as it is written, without the dashes."""
UNKNOWN = "unknown"
"""What it calls an option that is not in the table, or has no value where one is due (CLI-5)."""

OPTIONS = (
    (("--mode",), "text|json|rpc", "standard output: the last answer, or every event as JSON; rpc: commands on standard input, too"),
    (("--print", "-p"), None, "run the prompts, print the last answer, exit; the default where there is no terminal"),
    (("--verbose",), None, "show live progress on standard error also when that is no terminal"),
    (("--provider",), "NAME", "provider of the model; needs --model"),
    (("--model",), "PATTERN[:LEVEL]", "model, as provider/id, id or part of one; a thinking level may follow"),
    (("--models",), "A,B", "models to start with and to cycle through: provider/*, ids or parts of them, each with :level or without"),
    (("--api-key",), "KEY", "key of the model's provider, for this process only; others see it in the list of processes"),
    (("--list-models",), "[SEARCH]", "list the models that can be used, or those that contain SEARCH, and exit"),
    (("--faux-script",), "FILE", "a model that answers what this JSON file says, for tests: provider faux, no key"),
    (("--thinking",), "LEVEL", "off, minimal, low, medium, high, xhigh, max"),
    (("--continue", "-c"), None, "go on with the newest session of this folder"),
    (("--session",), "PATH|ID", "go on with this session: a path, an id, or the beginning of an id"),
    (("--session-id",), "ID", "open the session with exactly this id, or create it"),
    (("--fork",), "PATH|ID", "go on with a copy of this session, of any folder, in a new session of this one"),
    (("--session-dir",), "DIR", "where session files are"),
    (("--no-session",), None, "keep the session in memory only"),
    (("--name", "-n"), "NAME", "name of the session"),
    (("--tools", "-t"), "A,B", "only these tools (* is a wildcard); or +A,-B: the usual ones, changed"),
    (("--exclude-tools", "-xt"), "A,B", "never these tools"),
    (("--no-builtin-tools", "-nbt"), None, "start without the usual built-in tools"),
    (("--no-tools", "-nt"), None, "start without any tool"),
    (("--extension", "-e"), "PATH", "load this extension, or builtin:NAME; may be repeated"),
    (("--no-extensions", "-ne"), None, "load no extension but those of -e"),
    (("--skill",), "PATH", "a skill, or a folder of skills; may be repeated"),
    (("--no-skills", "-ns"), None, "find no skills but those of --skill"),
    (("--prompt-template",), "PATH", "a prompt template, or a folder of them; may be repeated"),
    (("--no-prompt-templates", "-np"), None, "find no prompt templates but those of --prompt-template"),
    (("--system-prompt",), "TEXT|FILE", "replaces the system prompt"),
    (("--append-system-prompt",), "TEXT|FILE", "added to the system prompt; may be repeated"),
    (("--no-context-files", "-nc"), None, "read no AGENTS.md and the like"),
    (("--approve", "-a"), None, "trust the project: its own settings, extensions, skills and prompts count"),
    (("--no-approve", "-na"), None, "do not trust the project"),
    (("--offline",), None, "no network but the requests to the model"),
    (("--demo",), None, "show the kernel at work: a scripted model mends a small project in a temporary folder"),
    (("--demo-project",), "DIR", "the demo on a copy of this folder instead of its own project"),
    (("--help", "-h"), None, "this text"),
    (("--version", "-v"), None, "the version"),
)
"""Names of an option (the first is the one `split` uses), what its value is called or None without one, its help.

A value in brackets may be left out."""

RESERVED = ("run", "resume", "supervise", "serve", "mcp-serve", "log", "export", "demo", "acp")
"""Words that are, or will be, subcommands when they come first (CLI-21)."""

MODES = ("text", "json", "rpc")
"""Values of --mode."""


def split(arguments: list[str], flags: dict[str, str] | None = None) -> list[tuple[str, str]]:
    """The arguments as (name, value) pairs, left to right; never fails.

    `flags`: those of extensions, by name, each `boolean` or `string`; a word behind a `string` one is its value (API-8).
    None: not known yet, so any long option may be one, and takes nothing.
    """
    found: list[tuple[str, str]] = []
    at, ended = 0, False
    while at < len(arguments):
        word = arguments[at]
        at += 1
        if ended or word == "-" or not word.startswith("-"):
            found.append((FILE, word[1:]) if word.startswith("@") else (MESSAGE, word))
            continue
        if word == "--":
            ended = True
            continue
        pair, taken = _option(word, arguments[at:], flags)
        at += taken
        found.append(pair)
        if pair[0] == "--print" and arguments[at : at + 1] and arguments[at].startswith("---"):
            found.append((MESSAGE, arguments[at]))
            at += 1
    return found


def _option(word: str, following: list[str], flags: dict[str, str] | None) -> tuple[tuple[str, str], int]:
    """The pair that an option gives, and how many of the following words it took."""
    written, has_value, value = word.partition("=") if word.startswith("--") else (word, "", "")
    for names, wants, _help in OPTIONS:
        if written not in names:
            continue
        if wants is None:
            return ((UNKNOWN, word) if has_value else (names[0], "")), 0
        if has_value:
            return (names[0], value), 0
        is_optional = wants.startswith("[")
        if following and not (is_optional and following[0].startswith(("-", "@"))):
            return (names[0], following[0]), 1
        if is_optional:
            return (names[0], ""), 0
        return ((names[0], "") if names[0] == "--mode" else (UNKNOWN, f"{written} (without its value, {wants})")), 0
    name = written[2:]
    if not word.startswith("--") or not name[:1].isalnum() or (flags is not None and name not in flags):
        return (UNKNOWN, written), 0
    if flags is None or has_value or flags[name] != "string" or not following or following[0].startswith(("-", "@")):
        return (FLAG, word[2:]), 0
    return (FLAG, f"{name}={following[0]}"), 1


def _help() -> str:
    rows = [(", ".join(names) + (f" {wants}" if wants else ""), text) for names, wants, text in OPTIONS]
    width = max(len(left) for left, _text in rows if len(left) <= 34)
    lines = []
    for left, text in rows:
        lines += [f"  {left.ljust(width)}  {text}"] if len(left) <= width else [f"  {left}", f"  {' ' * width}  {text}"]
    return "\n".join([_USAGE, *lines, "", _NOTES])


_USAGE = """\
Usage: camshaft [options] [--] [@files...] [prompts...]
       camshaft acp [options]

Runs the prompts one after another in this folder. What is piped in and the @files come before the first one.
As camshaft acp it serves an editor that speaks the Agent Client Protocol on standard input and output.

Options:"""

_NOTES = """\
Files: models.json, auth.json, settings.json, trust.json, SYSTEM.md, APPEND_SYSTEM.md, skills/, prompts/ and sessions/
in ~/.camshaft, or in the folder that CAMSHAFT_DIR names. A project has the same in its own .camshaft, which counts only
if the project is trusted: by --approve, by trust.json, or by the setting defaultProjectTrust. Trust is about these
files; it does not limit tools. A prompt that begins with a subcommand's name is written after --.

Exit codes: 0 done; 1 the last answer failed, or nothing could be run; 130, 143, 129 ended by SIGINT, SIGTERM, SIGHUP.
With --mode json a failed answer is an event, not an exit code."""

HELP = _help()
"""What --help prints."""
