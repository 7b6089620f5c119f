"""`python -m bench.stream_server STREAMS RATE ITEMS`: a model server for measuring; prints its port, answers STREAMS requests, ends.

Each answer is a stream of chat completions with ITEMS items, RATE a second from its request on, whatever
the client does: an item that is due goes out at once. The text of an item is the time just before it was
written to the socket, in ns of the machine's monotonic clock, which all processes share.
"""

import heapq
import json
import select
import socket
import sys
import time
from typing import Any, Final

HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
LONGEST_REQUEST_BYTES: Final = 1_000_000


def main(streams: int, rate: float, items: int) -> None:
    """Serves until the last of `streams` answers is sent."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=streams)
    print(listener.getsockname()[1], flush=True)
    due: list[tuple[float, int, int, socket.socket]] = []
    begun = 0
    while begun < streams or due:
        wait_s = max(0.0, due[0][0] - time.monotonic()) if due else None
        if select.select([listener] if begun < streams else [], [], [], wait_s)[0]:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _read_request(connection)
            connection.sendall(HEAD)
            heapq.heappush(due, (time.monotonic(), 0, begun, connection))
            begun += 1
            continue
        at, item, number, connection = heapq.heappop(due)
        if item < items:
            connection.sendall(_chunk({"delta": {"content": f"{time.monotonic_ns()} "}}))
            heapq.heappush(due, (at + 1 / rate, item + 1, number, connection))
        else:
            connection.sendall(_chunk({"delta": {}, "finish_reason": "stop"}) + _framed(b"data: [DONE]\n\n") + b"0\r\n\r\n")
            connection.close()


def _read_request(connection: socket.socket) -> None:
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(LONGEST_REQUEST_BYTES)
    head, _, body = received.partition(b"\r\n\r\n")
    lines = [line.partition(":") for line in head.decode("latin-1").lower().split("\r\n")]
    expected = next(int(value) for name, _, value in lines if name == "content-length")
    while len(body) < expected:
        body += connection.recv(LONGEST_REQUEST_BYTES)


def _chunk(choice: dict[str, Any]) -> bytes:
    """As servers send it: every chunk repeats what the answer is."""
    event = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0, **choice}]}
    return _framed(f"data: {json.dumps(event)}\n\n".encode())


def _framed(piece: bytes) -> bytes:
    return f"{len(piece):x}\r\n".encode() + piece + b"\r\n"


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
