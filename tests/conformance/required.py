"""The scenarios this version of the kernel has to pass, written out; a test compares the list with the rule it follows."""

from typing import Any, Final

import pytest

TOPICS: Final = (
    "lifecycle",
    "tools",
    "hooks",
    "context",
    "system",
    "boundary",
    "queue",
    "abort",
    "retry",
    "nested",
    "http",
)
"""Topics whose scenarios are all required, but for EXCEPTED."""

EXCEPTED: Final = ("http-400-overflow", "hooks-policies-session-before")
"""They need compaction, and tree navigation and session replacement."""

FROM_SESSION: Final = (
    "session-append-message",
    "session-load-error",
    "session-malformed-lines",
    "session-migrate-v2",
    "session-not-a-session",
    "session-resume",
    "session-resume-model-from-message",
    "session-resume-tools",
)
"""What is required of the topic `session`; the rest of it needs session replacement or reload."""

REQUIRED: Final = (
    "abort-aborted-message-next-prompt",
    "abort-during-retry-sleep",
    "abort-in-tool-call-hook",
    "abort-in-tool-result-hook",
    "abort-in-turn-start",
    "abort-mid-stream",
    "abort-sequential-remaining",
    "abort-tool-honours-signal",
    "boundary-abort-in-turn-end",
    "boundary-chain-two-extensions",
    "boundary-invalid-not-editable",
    "boundary-invalid-voids-all",
    "boundary-outcome-error",
    "boundary-send-message-inside",
    "boundary-settle-continue-loop",
    "boundary-settle-continue-no-context",
    "boundary-settle-queue-continues",
    "boundary-turn-end-compaction",
    "boundary-turn-end-continue-after-terminate",
    "boundary-turn-end-continue-no-context",
    "boundary-turn-end-custom",
    "boundary-turn-end-edit-result",
    "context-chain",
    "context-drop-keeps-system",
    "context-raises",
    "context-with-system-edit",
    "hooks-before-agent-start-null-content",
    "hooks-input-handled",
    "hooks-message-end-null-content",
    "hooks-message-end-raises",
    "hooks-message-end-replace-chain",
    "hooks-message-end-tool-result",
    "hooks-policies-observers",
    "hooks-tool-call-mutate-chain",
    "hooks-tool-call-raises-blocks",
    "hooks-tool-result-after-error",
    "hooks-tool-result-raises",
    "http-429-retry",
    "http-length-finish",
    "http-text",
    "lifecycle-ctx-state-in-handlers",
    "lifecycle-empty-reply",
    "lifecycle-provider-raises",
    "lifecycle-text",
    "lifecycle-two-prompts",
    "nested-call-limit",
    "nested-errors",
    "nested-result-hook",
    "nested-simple",
    "nested-terminate-ignored",
    "nested-updates-and-usage",
    "queue-clear",
    "queue-command-not-queueable",
    "queue-follow-up-one-at-a-time",
    "queue-follow-up-while-idle",
    "queue-prompt-in-settled",
    "queue-prompt-with-behavior",
    "queue-steer-before-follow-up",
    "queue-steer-one-at-a-time",
    "retry-429-then-ok",
    "retry-delay-cap",
    "retry-exhausted",
    "retry-not-retryable-quota",
    "retry-partial-content-error",
    "session-append-message",
    "session-load-error",
    "session-malformed-lines",
    "session-migrate-v2",
    "session-not-a-session",
    "session-resume",
    "session-resume-model-from-message",
    "session-resume-tools",
    "system-custom-section-overrides",
    "system-default-prompt",
    "system-options-guidelines",
    "system-sections-patch",
    "tools-args-error",
    "tools-block-terminate",
    "tools-blocked-in-parallel",
    "tools-first-registration-wins",
    "tools-is-error-details-usage",
    "tools-no-content",
    "tools-parallel-completion-order",
    "tools-prepare-arguments",
    "tools-terminate-partial",
    "tools-unknown",
)
"""Every required scenario."""

SLOW: Final = ("http-429-retry", "http-length-finish", "http-text", "nested-call-limit")
"""Those that take more than a quarter of a second: a real socket, or hundreds of calls."""


def required() -> list[Any]:
    """The required scenarios as parameters of a test."""
    return [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in REQUIRED]
