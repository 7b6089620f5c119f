"""A sample: shows what is sent to the model, and how its server answers.

Load it with `camshaft -e provider_payload.py`. After each turn a `custom` entry, which no model sees, says how many
bytes each part of the request had and with which status and headers every response began; requests that were
repeated have several. `/payload` shows the last request as a whole. That is kept in memory only, because it
holds the whole conversation once more.
"""

from typing import Any, Final

import attrs

from camshaft.actors.api import (
    AfterProviderResponseEvent,
    BeforeProviderRequestEvent,
    BoundaryResult,
    CommandContext,
    CustomDraft,
    ExtensionAPI,
    ExtensionContext,
    TurnEndEvent,
    dumps,
    freeze,
)

PAYLOAD: Final = "provider-payload"
"""Type of the entries."""

HEADERS: Final = ("content-type", "request-id", "retry-after", "x-request-id")
"""Headers that are stored. Others may hold what is nobody's business, like cookies."""


def setup(api: ExtensionAPI) -> None:
    """Registers the two looks at a request, what stores them, and the command."""
    seen = Seen()
    api.on("before_provider_request", seen.on_request)
    api.on("after_provider_response", seen.on_response)
    api.on("turn_end", seen.on_turn_end)
    api.register_command("payload", seen.show, description="Show the last request to the model")


@attrs.define(eq=False)
class Seen:
    """What was seen of the last request."""

    payload: Any = None
    responses: list[dict[str, Any]] = attrs.field(factory=list)

    def on_request(self, event: BeforeProviderRequestEvent, _ctx: ExtensionContext) -> None:
        """Returns nothing, so the request is sent as it is."""
        self.payload = freeze(event.payload)

    def on_response(self, event: AfterProviderResponseEvent, _ctx: ExtensionContext) -> None:
        """The head of a response; its body comes later."""
        headers = {name: event.headers[name] for name in HEADERS if name in event.headers}
        self.responses.append({"status": event.status, "headers": headers})

    def on_turn_end(self, event: TurnEndEvent, _ctx: ExtensionContext) -> BoundaryResult:
        """Stores the numbers behind the messages of the turn."""
        note = CustomDraft(custom_type=PAYLOAD, data=freeze({"bytes": sizes(self.payload), "responses": self.responses}))
        self.responses = []
        return BoundaryResult(entries=(*event.entries, note))

    async def show(self, _arguments: str, ctx: CommandContext) -> None:
        """Opens the request in an editor; what becomes of it there is of no consequence."""
        if self.payload is None:
            ctx.ui.notify("Nothing was sent to a model yet.")
        else:
            await ctx.ui.editor("The last request", dumps(self.payload).decode())


def sizes(payload: Any) -> dict[str, int]:
    """Bytes of each part of a request, as JSON."""
    parts = payload if isinstance(payload, dict) else {"body": payload}
    return {name: len(dumps(part)) for name, part in parts.items()}
