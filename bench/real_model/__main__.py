"""`python -m bench.real_model`: a streamed prompt and a forced tool call of a real model, through the command line.

Every server is asked over every wire API that it and this version speak. A check that fails is named,
and the exit status is 1; where nothing can be built it is 2. What is printed is also the last block of
`bench/results.md`.
"""

import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import attrs
import jsonschema

from bench.real_model import servers
from bench.real_model.install import VERSION, NotInstalled, installed
from bench.real_model.servers import Kind, Running
from bench.real_model.weather import PARAMETERS
from camshaft.actors.api import Json
from camshaft.extensions_std.providers.wire_apis import WIRE_APIS

ROOT: Final = Path(__file__).resolve().parents[2]
RESULTS: Final = ROOT / "bench" / "results.md"
TITLE: Final = "## A real model"
ANSWER_TOKENS: Final = 64
ASKED_S: Final = 300
"""Longest time of one process of the command line."""
PROMPT: Final = "Name three rivers of Europe, one per line."
FORCED: Final = "What will the weather be in Paris for the next 3 days, in celsius?"


@attrs.frozen(kw_only=True)
class Asked:
    """One run of the command line."""

    events: list[dict[str, Any]]
    stored: list[dict[str, Any]]
    """The messages of its session file."""
    seconds: float

    @property
    def deltas(self) -> int:
        """Events that carried a piece of text or arguments."""
        updates = [event["assistantMessageEvent"]["type"] for event in self.events if event["type"] == "message_update"]
        return sum([each in ("text_delta", "toolcall_delta") for each in updates])

    @property
    def answer(self) -> dict[str, Any]:
        """The stored answer."""
        return [message for message in self.stored if message["role"] == "assistant"][0]


def main() -> int:
    """See the header."""
    try:
        places = installed(ROOT / ".real-model")
    except NotInstalled as reason:
        print(f"no real model: {reason}", file=sys.stderr)
        return 2
    lines = [
        f"{datetime.date.today()}, {platform.machine()} with {os.cpu_count()} cores; Gemma 3 270M (Q4_K_M), llama-cpp-python {VERSION}",
        "",
    ]
    lines += ["| server | wire API | work | pieces | usage: input, output | seconds | checks |", "|---|---|---|---|---|---|---|"]
    is_well = True
    for kind in (servers.PYTHON_SERVER, servers.OWN_SERVER):
        for with_tools in (False, True):
            with tempfile.TemporaryDirectory() as folder, servers.running(kind, places, with_tools=with_tools) as server:
                for api in [api for api in kind.apis if api in WIRE_APIS]:
                    row, failures = _row(kind, api, server, Path(folder) / api, with_tools=with_tools)
                    lines.append(row)
                    is_well = is_well and not failures
    block = "\n".join([TITLE, "", *lines])
    print(block)
    keep(RESULTS, block)
    return 0 if is_well else 1


def _row(kind: Kind, api: str, server: Running, folder: Path, *, with_tools: bool) -> tuple[str, list[str]]:
    """The line, and the checks that do not hold."""
    before = server.requests()
    asked = ask(api, server, folder, FORCED if with_tools else PROMPT, kind.choices[api] if with_tools else None)
    checks = {"the server's log shows the request": server.requests() - before == 1}
    checks |= _call_checks(asked) if with_tools else _prompt_checks(asked)
    usage = asked.answer["usage"]
    if kind.counts:
        checks["the stored message has its usage"] = usage["input"] + usage["cacheRead"] > 0 and usage["output"] > 0
    failures = [name for name, holds in checks.items() if not holds]
    counted = f"{usage['input'] + usage['cacheRead']}, {usage['output']}" if kind.counts else "the server sends none"
    told = f"FAILED: {'; '.join(failures)} ({asked.answer.get('errorMessage', 'no error')})" if failures else f"{len(checks)} hold"
    work = "a forced tool call" if with_tools else "a streamed prompt"
    return f"| {kind.name} | {api} | {work} | {asked.deltas} | {counted} | {asked.seconds:.1f} | {told} |", failures


def _prompt_checks(asked: Asked) -> dict[str, bool]:
    texts = [block["text"] for block in asked.answer["content"] if block["type"] == "text"]
    return {
        "the answer came in pieces": asked.deltas > 1,
        "the stored answer has text": any([text.strip() for text in texts]),
        "it ended by itself or at the limit": asked.answer["stopReason"] in ("stop", "length"),
    }


def _call_checks(asked: Asked) -> dict[str, bool]:
    calls = [block for block in asked.answer["content"] if block["type"] == "toolCall"]
    results = [message for message in asked.stored if message["role"] == "toolResult"]
    return {
        "the arguments came in pieces": asked.deltas > 1,
        "one call of the tool is stored": [call["name"] for call in calls] == ["weather"],
        "its arguments fit the schema": all([jsonschema.Draft202012Validator(PARAMETERS).is_valid(call["arguments"]) for call in calls]),
        "the tool ran": [(result["toolCallId"], result["isError"]) for result in results] == [(call["id"], False) for call in calls],
        "it ended with the call": asked.answer["stopReason"] == "toolUse",
    }


def ask(api: str, server: Running, folder: Path, prompt: str, choice: Json) -> Asked:
    """One process of the command line, whose agent folder this is; with a `choice` it has the tool, and must call it."""
    folder.mkdir(parents=True)
    base_url = server.url if api == "anthropic-messages" else f"{server.url}/v1"
    model = {
        "id": "gemma",
        "contextWindow": servers.CONTEXT_TOKENS,
        "maxTokens": ANSWER_TOKENS,
        "samplingParams": {"temperature": 0, "seed": 7},
        "compat": {"maxTokensField": "max_tokens"},
    }
    provider = {"baseUrl": base_url, "api": api, "apiKey": "none", "models": [model]}
    (folder / "models.json").write_text(json.dumps({"providers": {"here": provider}}), encoding="utf-8")
    extension = ["-e", str(ROOT / "bench" / "real_model" / "weather.py"), "-nbt"] if choice is not None else ["-nt"]
    command = [str(Path(sys.executable).with_name("camshaft")), "--mode", "json", "--model", "here/gemma", "-ne", *extension]
    command += ["--system-prompt", "You answer briefly.", "--session-dir", str(folder / "sessions"), prompt]
    environment = {**os.environ, "CAMSHAFT_DIR": str(folder), "FORCED_TOOL_CHOICE": json.dumps(choice)}
    begun = time.perf_counter()
    shown = subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ASKED_S)
    seconds = time.perf_counter() - begun
    events = [json.loads(line) for line in shown.stdout.splitlines()]
    files = list((folder / "sessions").rglob("*.jsonl"))
    entries = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    stored = [entry["message"] for entry in entries if entry["type"] == "message"]
    if not [message for message in stored if message["role"] == "assistant"]:
        raise RuntimeError(f"no answer was stored: {shown.stderr.strip()}")
    return Asked(events=events, stored=stored, seconds=seconds)


def keep(page: Path, block: str) -> None:
    """Puts the block where the last one was, at the end of the page."""
    before, _, _ = page.read_text(encoding="utf-8").partition(TITLE)
    page.write_text(f"{before}{block}\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
