"""How a message becomes part of the conversation: announced, replaceable, stored, then told.

The order of a message of a run: X `message_start`, P `message_start`, X `message_end` (may
replace it), append, P `message_end` (LOOP-19). A message that is appended without such a flow
is stored and told to hosts first; handlers are notified afterwards (EVT-39).
"""

from camshaft.actors.event_stream import EventStream
from camshaft.actors.extension_host import ExtensionHost
from camshaft.actors.session import SessionActor
from camshaft.kernel import shapes
from camshaft.kernel.commands import AppendCustomMessage, AppendMessage
from camshaft.kernel.errors import Rejection
from camshaft.kernel.events import MessageEnd, MessageStart
from camshaft.kernel.messages import CustomMessage, Message


class RunFailed(Exception):
    """Something the loop itself needed was refused; becomes an error message of the run (LOOP-55)."""


@shapes.frozen(eq=False)
class Delivery:
    """Delivers messages to one session."""

    _session: SessionActor
    _host: ExtensionHost
    _stream: EventStream

    async def deliver(self, message: Message, entry_id: str | None = None) -> tuple[Message, str]:
        """Announces and appends one message; the message as stored, and its entry id. Raises RunFailed if it is refused."""
        await self.start(message)
        return await self.end(message, entry_id)

    async def start(self, message: Message) -> None:
        """Handlers, then hosts hear that a message begins."""
        await self._host.announce(MessageStart(message=message))
        await self._host.give_way()

    async def end(self, message: Message, entry_id: str | None = None) -> tuple[Message, str]:
        """Handlers may replace the message, then it is stored, then hosts hear of it."""
        if self._host.has("message_end"):
            message = (await self._host.dispatch("message_end", MessageEnd(message=message))).message
        stored_id = self.append(message, entry_id)
        self._stream.publish(MessageEnd(message=message))
        await self._host.give_way()
        return message, stored_id

    def append(self, message: Message, entry_id: str | None = None) -> str:
        """Stores a message, custom ones as entries of their own; its entry id. Raises RunFailed if it is refused."""
        command = (
            AppendCustomMessage(message=message, entry_id=entry_id)
            if isinstance(message, CustomMessage)
            else AppendMessage(message=message, entry_id=entry_id)
        )
        commit = self._session.post(command)
        if isinstance(commit, Rejection):
            raise RunFailed(commit.why)
        return commit.entries[0].id

    def tell(self, message: Message) -> None:
        """Hosts hear of a message that is stored already."""
        self._stream.publish(MessageStart(message=message))
        self._stream.publish(MessageEnd(message=message))

    async def notify(self, message: Message) -> None:
        """Handlers hear of a message that is stored already; replacements are ignored."""
        if self._host.has("message_start"):
            await self._host.dispatch("message_start", MessageStart(message=message))
        if self._host.has("message_end"):
            await self._host.dispatch("message_end", MessageEnd(message=message))

    def notify_later(self, message: Message) -> None:
        """As `notify`, without anybody waiting."""
        self._host.notify("message_start", MessageStart(message=message))
        self._host.notify("message_end", MessageEnd(message=message))
