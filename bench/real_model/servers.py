"""The two servers of the check, on a port of the loopback interface, each with a log."""

import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import attrs

from bench.real_model.install import Places

CONTEXT_TOKENS: Final = 16_384
"""Room for the prompt, the margin that is kept free and an answer (MOD-30)."""
READY_S: Final = 180
"""Longest time until a server answers."""
STOP_S: Final = 10
THREADS: Final = "1"
"""More of them wait for each other, busily, where others use the cores too."""


@attrs.frozen(kw_only=True)
class Kind:
    """A server, and what is asked of it."""

    name: str
    apis: tuple[str, ...]
    counts: bool
    """Whether it tells the usage of a stream."""
    log_mark: str
    """What its log says once for each request for an answer."""
    choices: dict[str, Any]
    """By api: the `tool_choice` that makes it hold the model to the tool's schema by a grammar."""


PYTHON_SERVER: Final = Kind(
    name="llama-cpp-python[server]",
    apis=("openai-completions",),
    counts=False,
    log_mark='"POST /v1/chat/completions',
    choices={"openai-completions": {"type": "function", "function": {"name": "weather"}}},
)
"""Knows no `stream_options`: its streams carry no usage, whatever is asked for."""

OWN_SERVER: Final = Kind(
    name="llama-server",
    apis=("openai-completions", "anthropic-messages", "openai-responses"),
    counts=True,
    log_mark="processing task",
    choices={"openai-completions": "required", "anthropic-messages": {"type": "any"}, "openai-responses": "required"},
)
"""llama.cpp's own, of the same sources."""


@attrs.frozen(kw_only=True)
class Running:
    """A server that answers."""

    url: str
    """`http://HOST:PORT`."""
    log: Path
    log_mark: str

    def requests(self) -> int:
        """How many requests for an answer its log shows."""
        return self.log.read_text(encoding="utf-8", errors="replace").count(self.log_mark)


@contextmanager
def running(kind: Kind, places: Places, *, with_tools: bool) -> Iterator[Running]:
    """The server, until the block ends. Raises TimeoutError if it does not come up."""
    log = places.folder / f"{kind.name}-{'tools' if with_tools else 'text'}.log"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with (
        log.open("wb") as out,
        subprocess.Popen(_command(kind, places, port, with_tools=with_tools), stdin=subprocess.DEVNULL, stdout=out, stderr=out) as process,
    ):
        try:
            _wait_until_ready(url, process, log)
            yield Running(url=url, log=log, log_mark=kind.log_mark)
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _command(kind: Kind, places: Places, port: int, *, with_tools: bool) -> Sequence[str]:
    at = ["--host", "127.0.0.1", "--port", str(port), "--model", str(places.model)]
    if kind is PYTHON_SERVER:
        return [str(places.python), "-m", "llama_cpp.server", *at, "--n_ctx", str(CONTEXT_TOKENS), "--n_threads", THREADS]
    template = ["--chat-template-file", str(places.template)] if with_tools else []
    return [str(places.server), *at, "--ctx-size", str(CONTEXT_TOKENS), "--threads", THREADS, "--parallel", "1", "--jinja", *template]


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/v1/models", timeout=1) as answer:
                if answer.status == 200:
                    return
        except OSError:
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.2)
    last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-3:]
    raise TimeoutError("\n".join(["the server does not answer; its log ends with:", *last]))
