"""HTTP that a test writes down: the wire beneath an adapter, in the process, at the pace of Trio's clock (FAUX-26).

    http = ScriptedHttp([HttpAnswer(body=split_every(completions_stream(assistant("Hello.")), 7))])
    world = attrs.evolve(real_world({}), http=http)

Every request takes the next answer that is for it. An answer is a status, headers and the pieces of a body: bytes, `Pause`,
`Silence` (nothing more comes, the connection stays), `Cut` (it breaks). An exception `HttpFailed` instead of an answer
is a connection that never stood. The idle limit of the request is kept, as a real connection keeps it: on a virtual
clock a test of five minutes of silence takes none. A request that finds no answer fails to connect, and
`assert_exhausted` tells.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

import attrs
import trio

from camshaft.actors.api import EMPTY, HttpFailed, HttpRequest, HttpResponse, Json, loads

SSE_HEADERS: Final[Mapping[str, str]] = {"content-type": "text/event-stream"}

NO_ANSWER: Final = "no scripted HTTP answer is left"


@attrs.frozen
class Pause:
    """Nothing comes for that long."""

    seconds: float


@attrs.frozen
class Silence:
    """Nothing more comes, and the connection stays open."""


@attrs.frozen
class Cut:
    """The connection breaks."""

    cause: str = "RemoteProtocolError: peer closed connection"


Piece = bytes | Pause | Silence | Cut


def _pieces(body: bytes | Iterable[Piece]) -> tuple[Piece, ...]:
    pieces = (body,) if isinstance(body, bytes) else tuple(body)
    for piece in pieces:
        if not isinstance(piece, Piece):
            raise TypeError(f"a body holds {piece!r}; expected bytes, Pause, Silence or Cut")
    return pieces


@attrs.frozen(kw_only=True)
class HttpAnswer:
    """One response. Raises TypeError for a body that cannot be sent."""

    status: int = 200
    headers: Mapping[str, str] = SSE_HEADERS
    """Names in lower case."""
    body: Sequence[Piece] = attrs.field(default=(), converter=_pieces)
    """Bytes, or pieces; each piece of bytes arrives as one chunk."""
    delay_s: float = 0
    """Before the headers come."""
    test: Callable[[HttpRequest], bool] | None = None
    """For which requests it is; None: for any."""
    repeats: bool = False
    """Whether it stays when it was taken."""


def _listed(answers: Iterable[HttpAnswer | HttpFailed]) -> list[HttpAnswer | HttpFailed]:
    found = list(answers)
    for answer in found:
        if not isinstance(answer, HttpAnswer | HttpFailed):
            raise TypeError(f"an answer is {answer!r}; expected HttpAnswer(...), or HttpFailed for a connection that never stood")
    return found


@attrs.define(eq=False)
class ScriptedHttp:
    """An `Http` port for `World`; see the header. Raises TypeError for what is no answer."""

    _answers: list[HttpAnswer | HttpFailed] = attrs.field(converter=_listed, factory=list)
    requests: list[HttpRequest] = attrs.field(factory=list, init=False)
    """As they were sent; what may be secret is not in their repr."""
    unexpected_count: int = attrs.field(default=0, init=False)
    """Requests that found no answer."""
    left_count: int = attrs.field(default=0, init=False)
    """Responses that were left before their end: aborted requests, and readers that had enough."""

    def append(self, *answers: HttpAnswer | HttpFailed) -> None:
        """Adds answers at the end."""
        self._answers.extend(_listed(answers))

    def json(self, index: int = -1) -> Json:
        """The body of a request, the last one without `index`. Raises MalformedJson if it is none."""
        return loads(self.requests[index].body)

    def assert_exhausted(self) -> None:
        """Raises AssertionError if an answer was not taken, or a request found none."""
        left = [answer for answer in self._answers if isinstance(answer, HttpFailed) or not answer.repeats]
        faults = [f"{len(left)} scripted HTTP answers were not requested"] if left else []
        if self.unexpected_count:
            faults.append(f"{self.unexpected_count} of {len(self.requests)} HTTP requests found no scripted answer")
        if faults:
            raise AssertionError("; ".join(faults))

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncGenerator[HttpResponse, None]:
        """See `Http.stream`."""
        await trio.lowlevel.checkpoint()
        self.requests.append(request)
        answer = self._take(request)
        if isinstance(answer, HttpFailed):
            raise answer
        idle = _Idle(request.idle_timeout_s)
        await idle.wait(answer.delay_s)
        response = _Response(answer, idle)
        try:
            yield response
        finally:
            self.left_count += not response.is_read

    async def aclose(self) -> None:
        """Nothing is kept open."""

    def _take(self, request: HttpRequest) -> HttpAnswer | HttpFailed:
        for index, answer in enumerate(self._answers):
            if isinstance(answer, HttpFailed):
                return self._answers.pop(index)
            if answer.test is None or answer.test(request):
                return answer if answer.repeats else self._answers.pop(index)
        self.unexpected_count += 1
        return HttpFailed("connect", NO_ANSWER)


@attrs.define(eq=False)
class _Idle:
    """How long nothing has come."""

    _limit_s: float | None
    _waited_s: float = 0

    async def wait(self, seconds: float) -> None:
        """Raises HttpFailed when the limit is over first."""
        limit_s = self._limit_s
        if limit_s is not None and self._waited_s + seconds >= limit_s:
            await trio.sleep(max(0.0, limit_s - self._waited_s))
            raise HttpFailed("timeout", "ReadTimeout")
        self._waited_s += seconds
        await trio.sleep(seconds)

    def came(self) -> None:
        self._waited_s = 0


@attrs.define(eq=False)
class _Response:
    _answer: HttpAnswer
    _idle: _Idle
    is_read: bool = False

    @property
    def status(self) -> int:
        return self._answer.status

    @property
    def headers(self) -> Mapping[str, str]:
        return dict(self._answer.headers)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        self._idle.came()
        for piece in self._answer.body:
            match piece:
                case Pause(seconds):
                    await self._idle.wait(seconds)
                case Silence():
                    await self._idle.wait(float("inf"))
                case Cut(cause):
                    self.is_read = True
                    raise HttpFailed("broken", cause)
                case bytes():
                    await trio.lowlevel.checkpoint()
                    self._idle.came()
                    yield piece
        self.is_read = True


def split_every(body: bytes, size: int) -> tuple[bytes, ...]:
    """The body in pieces of `size` bytes, 1 for byte by byte."""
    if size < 1:
        raise ValueError(f"size is {size!r}; expected at least 1")
    return tuple([body[start : start + size] for start in range(0, len(body), size)])


def split_at(body: bytes, *positions: int) -> tuple[bytes, ...]:
    """The body in pieces that end at these positions, empty ones left out."""
    edges = [0, *sorted(positions), len(body)]
    return tuple([piece for start, end in zip(edges, edges[1:]) if (piece := body[start:end])])


def with_pauses(pieces: Iterable[bytes], seconds: float) -> tuple[Piece, ...]:
    """The pieces with a pause before each."""
    return tuple([each for piece in pieces for each in (Pause(seconds), piece)])


def json_answer(status: int, body: bytes, headers: Mapping[str, str] = EMPTY) -> HttpAnswer:
    """A response with a JSON body: an HTTP error, most of the time."""
    return HttpAnswer(status=status, headers={"content-type": "application/json", **headers}, body=body)
