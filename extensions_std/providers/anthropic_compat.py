"""What an Anthropic-compatible endpoint supports (MOD-100).

`supportsMessageThreads`, `supportsMidConvoEffort`, `supportsMidConvoToolChanges` and
`allowedFallbackModels` save cost only and rest on vendor betas: they stay in a model's `compat` and
change nothing (MOD-103, WIRE-58).
"""

from typing import Any

import attrs

from camshaft.actors.api import Model
from camshaft.extensions_std.providers.compat import resolved_flags, vendor_of


@attrs.frozen(kw_only=True)
class AnthropicFlags:
    """The flags of a model, resolved. Names are the JSON names in snake case."""

    supports_eager_tool_input_streaming: bool = True
    supports_long_cache_retention: bool = True
    send_session_affinity_headers: bool = False
    session_affinity_format: str = ""
    supports_cache_control_on_tools: bool = True
    supports_temperature: bool = True
    force_adaptive_thinking: bool = False
    allow_empty_signature: bool = False
    supports_strict_tools: bool = False
    supports_mid_convo_system_messages: bool = False


def anthropic_flags(model: Model) -> AnthropicFlags:
    """The flags of `model` for the Anthropic API."""
    detected: dict[str, Any] = {}
    if vendor_of(model) == "openrouter":
        detected = {"send_session_affinity_headers": True, "session_affinity_format": "openrouter"}
    return resolved_flags(AnthropicFlags, detected, model)
