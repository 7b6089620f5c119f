"""What a provider keeps of its sessions: conversations to continue, and who writes in an API's other form.

Both are bounded, and the second by far more: a conversation that was dropped is made again from the
messages, but a session that forgot its form would be refused once more (WIRE-38).
"""

from collections import OrderedDict
from typing import Final

import attrs

from camshaft.actors.api import Model
from camshaft.extensions_std.providers.wire_api import Conversation, WireApi

CONVERSATIONS_MAX: Final = 64
"""Sessions whose encoded messages are kept between requests; the one not used longest is dropped and made again when needed."""

CHANGED_OVER_MAX: Final = 10_000
"""Sessions remembered to use the other form; the one that changed over first is forgotten."""


@attrs.define(eq=False)
class Conversations:
    """Conversations by session and model; those of requests without a session share one place."""

    _kept: OrderedDict[tuple[str | None, str], Conversation] = attrs.field(factory=OrderedDict, init=False)
    _changed_over: OrderedDict[str, None] = attrs.field(factory=OrderedDict, init=False)

    def of(self, api: WireApi, model: Model, session_id: str | None) -> Conversation:
        """The conversation to continue; a model that is not the same value any more starts anew."""
        key = (session_id, model.id)
        kept = self._kept.get(key)
        if kept is None or not (kept.model is model or kept.model == model):
            form = api.other_form if session_id in self._changed_over else None
            kept = self._kept[key] = (form or api).begin(model)
        self._kept.move_to_end(key)
        if len(self._kept) > CONVERSATIONS_MAX:
            self._kept.popitem(last=False)
        return kept

    def change_over(self, session_id: str | None) -> None:
        """From now on the session's requests are written in the other form; without a session nothing is remembered."""
        if session_id is None:
            return
        self._changed_over[session_id] = None
        if len(self._changed_over) > CHANGED_OVER_MAX:
            self._changed_over.popitem(last=False)
        for key in [key for key in self._kept if key[0] == session_id]:
            del self._kept[key]
