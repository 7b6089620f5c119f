"""A local model server for scenarios: OpenAI-compatible chat completions over plain HTTP (README.md section 2.3).

One connection is one request. A streamed answer is sent in HTTP chunks, so that a connection
that is cut can be told from an answer that is complete.
"""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import trio

from tests.conformance.scenario.stage import Stage
from tests.conformance.scenario.starting import Starter

CUT_AFTER_S: Final = 0.015
"""Time a client has to read the deltas before the connection is cut."""

REQUEST_BYTES_MAX: Final = 1 << 24
"""Longest request that is read; a longer one is a fault of the client."""


async def serve(stage: Stage, *, task_status: Starter = trio.TASK_STATUS_IGNORED) -> None:
    """Serves replies until cancelled; tells `task_status` its port."""
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, partial(_answer, stage), 0, host="127.0.0.1"))
        task_status.started(listeners[0].socket.getsockname()[1])


async def _answer(stage: Stage, stream: trio.SocketStream) -> None:
    try:
        headers, body = await _read_request(stream)
        payload = json.loads(body)
        number = _record(stage, headers, payload)
        reply = stage.replies.pop(0) if stage.replies else NO_MORE
        shared = {"id": f"r{number}", "object": "chat.completion.chunk", "created": 0, "model": payload.get("model")}
        await (_send_stream(stream, reply, shared) if "chunks" in reply else _send_error(stream, reply))
    except trio.BrokenResourceError:
        pass  # The client went away, as an aborted request does.
    finally:
        await trio.aclose_forcefully(stream)


NO_MORE: Final[Mapping[str, Any]] = {"status": 500, "body": {"error": {"message": "<error:no-more-replies>"}}}


async def _read_request(stream: trio.SocketStream) -> tuple[dict[str, str], bytes]:
    received = b""
    while b"\r\n\r\n" not in received:
        received += await _more(stream, len(received))
    head, _, body = received.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")[1:]
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += await _more(stream, len(body))
    return headers, body


async def _more(stream: trio.SocketStream, received: int) -> bytes:
    data = bytes(await stream.receive_some())
    if not data or received > REQUEST_BYTES_MAX:
        raise trio.BrokenResourceError
    return data


def _record(stage: Stage, headers: Mapping[str, str], payload: Mapping[str, Any]) -> int:
    """The number of the request, counted from 1."""
    wanted = stage.scenario.get("recordHeaders") or ()
    tools = [tool.get("name") or tool["function"]["name"] for tool in payload.get("tools") or ()]
    stage.recorder.request(
        {
            "model": payload.get("model"),
            "http": True,
            "headers": {name: headers[name.lower()] for name in wanted if name.lower() in headers},
            "stream": payload.get("stream", False),
            "messages": payload.get("messages"),
            **({"tools": tools} if tools else {}),
        }
    )
    return len(stage.recorder.requests)


async def _send_error(stream: trio.SocketStream, reply: Mapping[str, Any]) -> None:
    body = json.dumps(reply.get("body")).encode()
    extra = "".join([f"{name}: {value}\r\n" for name, value in (reply.get("headers") or {}).items()])
    head = f"HTTP/1.1 {reply.get('status', 500)} Scripted\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{extra}"
    await stream.send_all(head.encode() + b"Connection: close\r\n\r\n" + body)


async def _send_stream(stream: trio.SocketStream, reply: Mapping[str, Any], shared: Mapping[str, Any]) -> None:
    head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    await stream.send_all(head.encode())
    for delta in reply["chunks"]:
        await _send_event(stream, {**shared, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    if reply.get("cut"):
        await trio.sleep(CUT_AFTER_S)
        return
    await _send_event(stream, {**shared, "choices": [{"index": 0, "delta": {}, "finish_reason": reply.get("finish", "stop")}]})
    usage = {"input": 100, "output": 10, **(reply.get("usage") or {})}
    total = usage["input"] + usage["output"]
    counts = {"prompt_tokens": usage["input"], "completion_tokens": usage["output"], "total_tokens": total}
    await _send_event(stream, {**shared, "choices": [], "usage": counts})
    await _send_chunk(stream, b"data: [DONE]\n\n")
    await stream.send_all(b"0\r\n\r\n")


async def _send_event(stream: trio.SocketStream, event: Mapping[str, Any]) -> None:
    await _send_chunk(stream, f"data: {json.dumps(event)}\n\n".encode())


async def _send_chunk(stream: trio.SocketStream, data: bytes) -> None:
    await stream.send_all(f"{len(data):x}\r\n".encode() + data + b"\r\n")
