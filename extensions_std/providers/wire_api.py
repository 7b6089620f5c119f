"""What differs between the wire APIs: one record per API, and what it keeps of a session between requests.

`wire_provider.WireProvider` knows HTTP, credentials, hooks, waits and retries; it knows no API. An API
says where a request goes, which header carries a key, what a refusal means, and begins `Conversation`s.
A conversation follows the messages of one session with one model, so that a request costs what is new;
it writes bodies and makes the `Reader` of each reply.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import attrs

from camshaft.actors.api import Json, MalformedJson, Model, ModelMessage, ModelRequest, StreamItem, Usage, loads
from camshaft.extensions_std.providers.sse import SseEvent

MALFORMED: Final = "Error reading response: malformed server-sent event JSON."
"""Error of an answer with an event whose data is no JSON (WIRE-78)."""


class MalformedEvent(Exception):
    """An event of a reply that cannot be read; the text becomes the error of the answer."""


def json_of(event: SseEvent) -> Json:
    """The JSON of an event's data. Raises MalformedEvent."""
    try:
        value: Json = loads(event.data)
    except MalformedJson:
        raise MalformedEvent(MALFORMED) from None
    return value


class Reader(Protocol):
    """Reads one reply: server-sent events in, stream items out."""

    @property
    def usage(self) -> Usage:
        """What is known so far; it stays when the reply breaks."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether the API's own mark of the end was read: what follows it is not waited for (STR-35)."""
        ...

    def parse(self, event: SseEvent) -> Json:
        """The event as handlers of `provider_stream_event` see it; None for one that says nothing (WIRE-107).

        Raises MalformedEvent.
        """
        ...

    def read(self, event: Json) -> Sequence[StreamItem]:
        """The items of a parsed event; an `Ended` among them ends the answer."""
        ...

    def finish(self) -> Sequence[StreamItem]:
        """The items of the end of the body, an `Ended` at last."""
        ...


class Conversation(Protocol):
    """One session with one model, from request to request. It must give the same bytes as one that begins anew."""

    @property
    def model(self) -> Model:
        """Whose requests these are."""
        ...

    def follow(self, messages: Sequence[ModelMessage]) -> None:
        """Takes the message list of the next request. O(new messages) if it continues the last one."""
        ...

    def layers(self, request: ModelRequest) -> tuple[Mapping[str, str | None], ...]:
        """Headers between those of the identity and those of the credentials, later ones win (WIRE-3).

        Asked after `follow`.
        """
        ...

    def body(self, request: ModelRequest) -> bytes:
        """The body for the messages followed last. Raises ConstraintRefused."""
        ...

    def reader(self, request: ModelRequest) -> Reader:
        """For the reply to the body made last."""
        ...

    def gives_in(self, status: int, text: str) -> bool:
        """Whether a refused request is worth sending again at once in the API's other form, if it has one (WIRE-38)."""
        ...


@attrs.frozen(kw_only=True)
class OtherForm:
    """A second way to write requests, for a session whose first one was refused (WIRE-38)."""

    begin: Callable[[Model], Conversation]
    """Begins a conversation that is written this way."""
    diagnostic: str
    """Type of the diagnostic that the answer gets whose request changed over (STR-38)."""
    reason: str
    """What the diagnostic says."""


@attrs.frozen(kw_only=True)
class WireApi:
    """One wire API."""

    id: str
    """As in a model's `api`."""
    path: str
    """Appended to the base url (WIRE-1)."""
    begin: Callable[[Model], Conversation]
    key_headers: Callable[[str], Mapping[str, str]]
    """The header of a key (WIRE-2)."""
    auth_headers: tuple[str, ...]
    """Headers that count as a credential, in lower case (STR-32)."""
    error_text: Callable[[int, bytes, str], str]
    """Of an HTTP error: status, body, provider id (WIRE-24)."""
    plain_error: Callable[[int, bytes], str]
    """Of an HTTP error: status and body in few words, to follow others (WIRE-21)."""
    other_form: OtherForm | None = None
    """What a session keeps to once `Conversation.gives_in` said so."""
