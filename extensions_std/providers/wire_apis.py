"""The wire APIs that this program speaks, by id (MOD-2)."""

from collections.abc import Mapping
from typing import Final

from camshaft.extensions_std.providers.anthropic_messages import ANTHROPIC
from camshaft.extensions_std.providers.openai_completions import COMPLETIONS
from camshaft.extensions_std.providers.openai_responses import RESPONSES
from camshaft.extensions_std.providers.wire_api import WireApi

WIRE_APIS: Final[Mapping[str, WireApi]] = {api.id: api for api in (ANTHROPIC, COMPLETIONS, RESPONSES)}
"""A model whose api is not among them can be listed, but not asked (PRV-15)."""
