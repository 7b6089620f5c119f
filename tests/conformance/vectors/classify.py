"""Vector family `classify`: retryable texts, overflow, recoverable length and delays (VECTORS.md 5.11)."""

from typing import Any

from camshaft.kernel import codec
from camshaft.kernel.messages import AssistantMessage
from camshaft.kernel.retries import DELAY_MAX_MS, is_overflow, is_recoverable_length, is_retryable_text, retry_delay_ms


def run(case_input: dict[str, Any]) -> object:
    """The delay in ms, or what the message is."""
    if case_input["op"] == "delay":
        return retry_delay_ms(case_input["baseDelayMs"], case_input["attempt"], case_input.get("maxAgentDelayMs", DELAY_MAX_MS))
    message = codec.decode_message_strictly(
        {"role": "assistant", "content": [], "api": "", "model": "", "timestamp": 0, **case_input["message"]}
    )
    assert isinstance(message, AssistantMessage)
    output = {
        "retryable": message.stop_reason == "error" and is_retryable_text(message.error_message or ""),
        "overflow": is_overflow(message, case_input.get("contextWindow")),
    }
    if "maxTokens" in case_input:
        output["recoverableLength"] = is_recoverable_length(message, case_input["maxTokens"])
    return output
