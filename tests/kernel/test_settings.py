"""Settings of a file: what is read, what is reported with its key, and what is refused."""

from typing import Any

import pytest

from camshaft.kernel.persistent import FrozenDict, freeze
from camshaft.kernel.settings import (
    TOKENS_MAX,
    BranchSummarySettings,
    CompactionSettings,
    InvalidSetting,
    RetrySettings,
    Settings,
    read_settings,
)


def read(raw: dict[str, Any]) -> tuple[Settings, tuple[str, ...]]:
    return read_settings(freeze(raw), "s.json")


@pytest.mark.parametrize(
    ("raw", "settings"),
    [
        ({}, Settings()),
        ({"unknown": 1, "retry": None}, Settings()),
        ({"defaultProvider": "p", "defaultModel": "m"}, Settings(default_provider="p", default_model="m")),
        ({"defaultTools": ["read"]}, Settings(default_tools=("read",))),
        ({"steeringMode": "all", "followUpMode": "all"}, Settings(steering_mode="all", follow_up_mode="all")),
        ({"queueMode": "all"}, Settings(steering_mode="all")),
        ({"queueMode": "all", "steeringMode": "one-at-a-time"}, Settings()),
        ({"retry": {"maxRetries": 1}}, Settings(retry=RetrySettings(max_retries=1))),
        ({"branchSummary": {"reserveTokens": 7}}, Settings(branch_summary=BranchSummarySettings(reserve_tokens=7))),
        ({"compaction": {"reserveTokens": 0, "keepRecentTokens": TOKENS_MAX}}, None),
        ({"compaction": {"modelOverrides": {"m": {"a": 1}}}}, None),
    ],
)
def test_what_is_valid_is_read_without_a_word(raw: dict[str, Any], settings: Settings | None) -> None:
    found, warnings = read(raw)

    assert warnings == ()
    assert settings is None or found == settings


def test_compaction_values_are_read() -> None:
    found, _ = read({"compaction": {"reserveTokens": 0, "keepRecentTokens": 5, "enabled": False, "modelOverrides": {"m": {"a": [1]}}}})

    overrides = FrozenDict({"m": freeze({"a": [1]})})
    assert found.compaction == CompactionSettings(enabled=False, reserve_tokens=0, keep_recent_tokens=5, model_overrides=overrides)


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        ({"steeringMode": "some"}, "steeringMode"),
        ({"queueMode": "some"}, "steeringMode"),
        ({"defaultTools": "read"}, "defaultTools"),
        ({"defaultTools": [1]}, "defaultTools"),
        ({"retry": {"maxRetries": "three"}}, "retry"),
        ({"retry": []}, "retry"),
        ({"retry": {"enabled": 1}}, "retry"),
        ({"defaultModel": 3}, "defaultModel"),
    ],
)
def test_what_is_invalid_is_reported_with_file_and_key_and_the_default_is_used(raw: dict[str, Any], key: str) -> None:
    found, warnings = read(raw)

    assert found == Settings()
    assert len(warnings) == 1 and warnings[0].startswith(f"s.json: setting '{key}': ")


@pytest.mark.rule("CMP-10")
@pytest.mark.parametrize("name", ["reserveTokens", "keepRecentTokens"])
@pytest.mark.parametrize("value", [-1, 1.5, "16384", True, TOKENS_MAX + 1, []])
def test_a_token_limit_that_is_none_is_an_error(name: str, value: Any) -> None:
    with pytest.raises(InvalidSetting, match=rf"Invalid compaction\.{name} setting: "):
        read({"compaction": {name: value}})
