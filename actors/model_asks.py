"""What an extension asks a model outside the conversation, and how that fails. It is done in `model_answers.py`."""

from collections.abc import Sequence

from camshaft.actors.errors import CamshaftError
from camshaft.kernel import shapes
from camshaft.kernel.messages import Message
from camshaft.kernel.models import Model
from camshaft.kernel.tools import Signal


class ModelFailed(CamshaftError):
    """A model that an extension asked gave no answer, or was asked to stop; the text says why."""

    def __init__(self, why: str, *, aborted: bool = False) -> None:
        super().__init__(why)
        self.aborted = aborted
        """The signal was set; nothing to report."""


@shapes.frozen(kw_only=True)
class ModelAsk:
    """What an extension wants to have answered."""

    messages: str | Sequence[Message]
    """One question, or a conversation that ends with one; messages of any role, as the model would get them."""
    system_prompt: str | None = None
    model: Model | None = None
    """None: the selected one."""
    thinking_level: str | None = None
    """None: the effective one; clamped to the model."""
    signal: Signal | None = None
    kind: str
    """Of the `usage` entry."""
    record_usage: bool = True
