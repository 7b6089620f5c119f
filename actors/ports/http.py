"""The HTTP port: one streaming request at a time, and its implementation over httpx2.

httpx2 is imported at the first request, and one client serves the process: building it costs a
TLS context (26 ms). Limits: connecting and writing have fixed limits; waiting for
headers and between chunks is bounded by the idle limit of the request; the time of a whole request
is its caller's cancel scope. There is no limit on connections: parallel sessions must not queue.

Failures are `HttpFailed` with a text that is never empty: generic words that the retry rules know
(WIRE-24, WIRE-29), then the low-level cause (STR-37). httpx2's own texts can be empty (timeouts), so
the cause always begins with the name of the exception.

Secrets: url, headers and body of a request are not part of its repr, and a url with a password is
never part of an error text: the password becomes an authorization header before httpx2 sees the url.
"""

import base64
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Final, Literal, Protocol
from urllib.parse import unquote, urlsplit, urlunsplit

import attrs

from camshaft.kernel import shapes

if TYPE_CHECKING:
    import httpx2

CONNECT_TIMEOUT_S: Final = 30.0
"""Longest wait for a connection; a host that does not answer by then is down."""

WRITE_TIMEOUT_S: Final = 30.0
"""Longest wait for one write to be taken."""

IDLE_TIMEOUT_S: Final = 300.0
"""Default wait for headers and between chunks (WIRE-30)."""

DIRECT_HOSTS: Final = ("localhost", "127.0.0.1", "[::1]")
"""Never reached through a proxy of the environment: a local model server is on this machine."""

FailureKind = Literal["connect", "timeout", "broken", "invalid"]
"""No connection; a limit passed; the connection broke after it stood; the request cannot be sent at all."""

GENERIC: Final[Mapping[FailureKind, str]] = {
    "connect": "Connection error.",
    "timeout": "Request timed out.",
    "broken": "terminated",
    "invalid": "Invalid request",
}
"""First words of the error text: matched by the retry rules (WIRE-29), except `invalid`, which no retry helps."""


class HttpFailed(Exception):
    """No response, or the body broke off. `str` is never empty and holds no secret."""

    def __init__(self, kind: FailureKind, cause: str) -> None:
        super().__init__(f"{GENERIC[kind]}: {cause}")
        self.kind = kind
        self.cause = cause


@shapes.frozen(kw_only=True)
class HttpRequest:
    """A request; what may be secret is not in its repr."""

    method: str = "POST"
    url: str = attrs.field(repr=False)
    headers: tuple[tuple[str, str], ...] = attrs.field(default=(), repr=False)
    """Names are unique, whatever their case; a User-Agent is added if there is none."""
    body: bytes = attrs.field(default=b"", repr=False)
    idle_timeout_s: float | None = IDLE_TIMEOUT_S
    """Longest wait for headers and between two chunks; None = no limit."""


class HttpResponse(Protocol):
    """A response whose body has not been read yet."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in lower case; the values of a repeated header are joined with a comma."""

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it arrives, decompressed; to be read once. Raises HttpFailed."""


class Http(Protocol):
    """What the world can be asked for over HTTP."""

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpResponse]:
        """Sends, and gives the response as soon as its headers are there. Raises HttpFailed.

        Leaving the context closes what was not read. It must be left in the task that entered it.
        """

    async def aclose(self) -> None:
        """Closes idle connections. The next request opens new ones."""


@shapes.frozen
class _Response:
    _response: "httpx2.Response"

    @property
    def status(self) -> int:
        return self._response.status_code

    @property
    def headers(self) -> Mapping[str, str]:
        return dict(self._response.headers)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        import httpx2

        try:
            async for chunk in self._response.aiter_bytes():
                yield chunk
        except httpx2.HTTPError as error:
            raise _failed(error) from error


@shapes.define(eq=False)
class RealHttp:
    """HTTP over httpx2; proxies and certificates as the process environment says at the first request."""

    _client: "httpx2.AsyncClient | None" = attrs.field(default=None, init=False)

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncGenerator[HttpResponse, None]:
        """See `Http.stream`. A cancelled request closes its connection."""
        import httpx2

        client = self._client or self._build()
        timeout = httpx2.Timeout(connect=CONNECT_TIMEOUT_S, write=WRITE_TIMEOUT_S, read=request.idle_timeout_s, pool=None)
        response, failed, below = None, None, None
        try:
            url, headers, extensions = _without_secrets(request)
            made = client.build_request(request.method, url, headers=headers, content=request.body, timeout=timeout, extensions=extensions)
            response = await client.send(made, stream=True)
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            failed = _failed(error)
            below = None if failed.kind == "invalid" else error
        if response is None:  # raised out here, where the error that may quote a secret is no context any more
            raise failed or HttpFailed("broken", "no response") from below
        client.cookies.clear()  # Nothing carries over from one request to the next.
        try:
            yield _Response(response)
        finally:
            # httpx2 shields and bounds the tear-down of a connection itself.
            await response.aclose()

    async def aclose(self) -> None:
        """Closes idle connections. The next request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _build(self) -> "httpx2.AsyncClient":
        import httpx2

        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
        self._client = httpx2.AsyncClient(limits=limits, mounts={f"all://{host}": None for host in DIRECT_HOSTS})
        return self._client


def _failed(error: Exception) -> HttpFailed:
    """Text of the deepest cause, always with the name of its class (STR-37, WIRE-29)."""
    import httpx2

    if isinstance(error, httpx2.TimeoutException):
        return HttpFailed("timeout", _told(error))
    if isinstance(error, (httpx2.ConnectError, httpx2.ProxyError)):
        return HttpFailed("connect", _told(error))
    if isinstance(error, (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, ValueError)):
        # These texts may quote parts of the url or of a header, a key with a line end for example: they are not passed on.
        return HttpFailed("invalid", "the url or a header cannot be sent; expected http(s)://host[:port]/path, headers without line ends")
    return HttpFailed("broken", _told(error))


def _told(error: Exception) -> str:
    """The error and, if it says something else, what lies deepest below it."""
    deepest = error
    while True:
        below = deepest.__cause__ or (None if deepest.__suppress_context__ else deepest.__context__)
        if not isinstance(below, Exception):
            break
        deepest = below
    if str(deepest) in ("", str(error)):
        return _named(error)
    return f"{_named(error)}; {_named(deepest)}"


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _without_secrets(request: HttpRequest) -> tuple[str, list[tuple[str, str]], dict[str, bytes]]:
    """Url, headers and extensions of a request, the url without what may be secret: httpx2 logs it.

    User and password become basic authorization, unless a header has that already; the query goes only into the target. Not
    so for an unencrypted request to another machine: it may go through a proxy, which needs the whole url there.
    """
    headers = list(request.headers)
    parts = urlsplit(request.url)
    given, _, host = parts.netloc.rpartition("@")
    if given and not any(name.lower() == "authorization" for name, _ in headers):
        user, _, password = given.partition(":")
        token = base64.b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()
        headers.append(("authorization", f"Basic {token}"))
    is_forwarded = parts.scheme == "http" and parts.hostname not in [each.strip("[]") for each in DIRECT_HOSTS]
    if not parts.query or is_forwarded:
        return (urlunsplit(parts._replace(netloc=host)) if given else request.url), headers, {}
    target = urlunsplit(("", "", parts.path or "/", parts.query, "")).encode("ascii")
    return urlunsplit(parts._replace(netloc=host, query="")), headers, {"target": target}
