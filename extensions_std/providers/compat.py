"""What an endpoint supports: compatibility flags, detected and configured (MOD-100).

A flag's value is, in this order, what the model's `compat` says (models.json merges the provider's
into it), what the provider id or the base url tells, or the default. A wrong type in a configured
flag counts as absent; unknown flags are ignored.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import attrs

from camshaft.actors.api import EMPTY, FrozenDict, Model

Flags = TypeVar("Flags")

VENDORS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "openai": (("openai",), ("api.openai.com",)),
    "openrouter": (("openrouter",), ("openrouter.ai",)),
    "nvidia": (("nvidia",), ("integrate.api.nvidia.com",)),
    "cerebras": (("cerebras",), ("cerebras.ai",)),
    "xai": (("xai",), ("api.x.ai",)),
    "together": (("together",), ("api.together.ai", "api.together.xyz")),
    "chutes": (("chutes",), ("chutes.ai",)),
    "deepseek": (("deepseek",), ("deepseek.com",)),
    "zai": (("zai", "zai-coding-cn"), ("api.z.ai", "open.bigmodel.cn")),
    "moonshot": (("moonshotai", "moonshotai-cn", "moonshot"), ("api.moonshot.",)),
    "opencode": (("opencode", "opencode-go"), ("opencode.ai",)),
    "cloudflare-gateway": (("cloudflare-ai-gateway",), ("gateway.ai.cloudflare.com",)),
    "cloudflare": (("cloudflare-workers-ai",), ("api.cloudflare.com",)),
    "ant-ling": (("ant-ling",), ("api.ant-ling.com",)),
}
"""Vendor to provider ids and parts of base urls."""

NO_STORE: Final = frozenset(VENDORS) - {"openai", "openrouter"}
NO_EFFORT: Final = frozenset({"xai", "zai", "moonshot", "together", "cloudflare-gateway", "nvidia", "ant-ling"})
OLD_CAP: Final = frozenset({"chutes", "deepseek", "moonshot", "cloudflare-gateway", "together", "nvidia", "ant-ling", "zai"})
"""Those that know the output cap as `max_tokens`."""
NO_LONG_CACHE: Final = frozenset({"together", "cloudflare", "cloudflare-gateway", "nvidia", "ant-ling"})
OWN_THINKING: Final = frozenset({"deepseek", "zai", "together", "ant-ling", "openrouter"})


@attrs.frozen(kw_only=True)
class CompletionsFlags:
    """The compatibility flags of a model (MOD-100), resolved. Names are the JSON names in snake case."""

    supports_store: bool = True
    supports_developer_role: bool = False
    supports_reasoning_effort: bool = True
    supports_usage_in_streaming: bool = True
    supports_finish_reason: bool = True
    max_tokens_field: str = "max_completion_tokens"
    requires_tool_result_name: bool = False
    requires_assistant_after_tool_result: bool = False
    requires_non_null_assistant_content: bool = False
    requires_tools_with_tool_history: bool = False
    requires_thinking_as_text: bool = False
    requires_reasoning_content_on_assistant_messages: bool = False
    thinking_format: str = "openai"
    chat_template_kwargs: FrozenDict = EMPTY
    chat_template_args: FrozenDict = EMPTY
    thinking_token_budget_field: str = ""
    supports_thinking_token_budget: bool = False
    open_router_routing: FrozenDict = EMPTY
    vercel_gateway_routing: FrozenDict = EMPTY
    zai_tool_stream: bool = False
    supports_open_ai_grammar_tools: bool = False
    supports_mid_convo_system_messages: bool = False
    supports_mid_convo_tool_additions: bool = False
    supports_strict_mode: bool = False
    cache_control_format: str = ""
    send_session_affinity_headers: bool = False
    session_affinity_format: str = "openai"
    prompt_cache_key_mode: str = "auto"
    supports_long_cache_retention: bool = True
    vllm_priority: int | None = None

    @property
    def budget_field(self) -> str:
        """Body field of the thinking budget; empty if it is not sent (WIRE-67)."""
        return self.thinking_token_budget_field or ("thinking_token_budget" if self.supports_thinking_token_budget else "")


@attrs.frozen(kw_only=True)
class ResponsesFlags:
    """The compatibility flags of a model for responses, resolved. Vendor betas are off, whatever is configured (MOD-103)."""

    supports_developer_role: bool = True
    supports_mid_convo_system_messages: bool = False
    session_affinity_format: str = "openai"
    prompt_cache_key_mode: str = "auto"
    supports_long_cache_retention: bool = True
    supports_explicit_prompt_cache_mode: bool = False
    supports_strict_mode: bool = False
    supports_open_ai_grammar_tools: bool = False
    supports_max_output_tokens: bool = True


def vendor_of(model: Model) -> str | None:
    """The known vendor behind a model's provider id or base url; None for any other, local servers among them."""
    for vendor, (providers, urls) in VENDORS.items():
        if model.provider in providers or any(part in model.base_url for part in urls):
            return vendor
    return None


def completions_flags(model: Model) -> CompletionsFlags:
    """The flags of `model` for chat completions."""
    return resolved_flags(CompletionsFlags, _detected(model), model)


def responses_flags(model: Model) -> ResponsesFlags:
    """The flags of `model` for responses."""
    detected = {"session_affinity_format": "openrouter"} if vendor_of(model) == "openrouter" else {}
    return resolved_flags(ResponsesFlags, detected, model)


def resolved_flags(kind: type[Flags], detected: Mapping[str, Any], model: Model) -> Flags:
    """The flags of class `kind`: configured ones over `detected` ones over defaults (MOD-100).

    Fields of the class are the JSON names in snake case; a default tells the type, None an integer.
    """
    valid = {}
    for field in attrs.fields(kind):  # type: ignore[arg-type]  # a class of flags, and so one of attrs
        value = model.compat.get(_json_name(field.name))
        if _fits(field.default, value):
            valid[field.name] = value
    return kind(**{**detected, **valid})


def _detected(model: Model) -> dict[str, Any]:
    vendor = vendor_of(model)
    found: dict[str, Any] = {"supports_developer_role": vendor == "openai"}
    if vendor is None or vendor == "openai":
        return found
    found["supports_store"] = vendor not in NO_STORE
    found["supports_reasoning_effort"] = vendor not in NO_EFFORT
    found["supports_long_cache_retention"] = vendor not in NO_LONG_CACHE
    found["requires_reasoning_content_on_assistant_messages"] = vendor == "deepseek"
    if vendor in OLD_CAP:
        found["max_tokens_field"] = "max_tokens"
    if vendor in OWN_THINKING:
        found["thinking_format"] = vendor
    if vendor == "openrouter":
        found["send_session_affinity_headers"] = True
        found["session_affinity_format"] = "openrouter"
        if model.id.startswith("anthropic/"):
            found["cache_control_format"] = "anthropic"
    return found


def _json_name(name: str) -> str:
    head, *rest = name.split("_")
    camel = head + "".join([part.capitalize() for part in rest])
    return camel.replace("OpenAi", "OpenAI")


def _fits(default: object, value: object) -> bool:
    kind = int if default is None else type(default)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
