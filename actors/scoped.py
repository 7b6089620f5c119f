"""A model of a scope: what is cycled through (SDK-13)."""

from camshaft.kernel import shapes
from camshaft.kernel.models import Model


@shapes.frozen(kw_only=True)
class ScopedModel:
    """A model to cycle through, and the level it is used with."""

    model: Model
    thinking_level: str | None = None
    """None: the level stays as it is."""
