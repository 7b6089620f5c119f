"""Models on the command line: the list of them, patterns to start with, a key for one process."""

import json

import pytest

from camshaft.extensions_std.frontends.list_models import table, tokens
from camshaft.extensions_std.providers.builtin_models import WRITTEN
from camshaft.kernel.models import Model
from tests.extensions_std.frontends.command import Place, camshaft, says, serving
from tests.extensions_std.frontends.test_extensions import SERVES

CANARY = "sk-canary-0123456789"


def test_the_table_is_in_order_and_says_what_matters() -> None:
    models = [
        Model(id="b", provider="two", api="a", context_window=0, max_tokens=0),
        Model(id="B", provider="one", api="a", context_window=1_047_576, max_tokens=32_768, reasoning=True),
        Model(id="a", provider="one", api="a", input=("text", "image")),
    ]

    assert table(models) == [
        "provider  model  context  max-out  thinking  images",
        "one       a      128K     16.4K    no        yes",
        "one       B      1M       32.8K    yes       no",
        "two       b      ?        ?        no        no",
    ]


@pytest.mark.parametrize(("count", "shown"), [(999, "999"), (8_192, "8.2K"), (1_050_000, "1.1M"), (400_000, "400K")])
def test_tokens_are_shown_in_few_characters(count: int, shown: str) -> None:
    assert tokens(count) == shown


@pytest.mark.slow
@pytest.mark.rule("EXT-23", "EXT-26")
async def test_models_that_can_be_used_are_listed_those_of_extensions_too(where: Place) -> None:
    where.configure("http://127.0.0.1:9")
    where.write(".camshaft/extensions/s.py", SERVES)
    where.write(".camshaft/extensions/bad.py", "def setup(api):\n    raise ValueError('bad')\n")

    everything = await camshaft(where, "--list-models", OPENAI_API_KEY=CANARY)
    some = await camshaft(where, "--list-models", "M2")
    none = await camshaft(where, "--list-models=zzz")

    assert (everything.code, some.code, none.code) == (0, 0, 0)
    rows = [line.split()[:2] for line in everything.out.splitlines()]
    assert rows[0] == ["provider", "model"]
    assert ["local", "m1"] in rows
    assert ["own", "faux-1"] in rows
    assert ["openai", "gpt-4o"] in rows
    assert [line.split()[:2] for line in some.out.splitlines()[1:]] == [["local", "m2"]]
    assert WRITTEN in everything.err
    assert "bad.py" in everything.err
    assert none.out == ""
    assert 'No models matching "zzz"' in none.err
    assert where.session_files() == []
    assert CANARY not in f"{everything}"


@pytest.mark.slow
async def test_without_any_model_the_list_says_what_to_do(where: Place) -> None:
    ended = await camshaft(where, "--list-models")

    assert (ended.code, ended.out) == (0, "")
    assert "No model is configured." in ended.err


@pytest.mark.slow
@pytest.mark.rule("MOD-96", "MOD-72", "MOD-97")
async def test_a_pattern_chooses_the_model_and_a_given_key_is_sent_and_stays_nowhere(where: Place) -> None:
    async with serving(where, says("Hello.")) as server:
        ended = await camshaft(where, "--models", "zzz,local/*2", "--api-key", CANARY, "--mode", "json", "hi")

    (request,) = server.requests
    assert ended.code == 0
    assert json.loads(request.body)["model"] == "m2"
    assert request.headers["authorization"] == f"Bearer {CANARY}"
    assert 'No models match pattern "zzz"' in ended.err + ended.out
    left = [path for path in where.home.rglob("*") if path.is_file()]
    assert left
    assert [path for path in left if CANARY in path.read_text(encoding="utf-8", errors="replace")] == []
    assert CANARY not in ended.out + ended.err


@pytest.mark.slow
@pytest.mark.rule("MOD-96")
async def test_the_setting_enabled_models_says_where_a_session_starts(where: Place) -> None:
    where.write(".camshaft/settings.json", json.dumps({"enabledModels": ["m2"]}))

    async with serving(where, says("Hello.")) as server:
        await camshaft(where, "hi")

    assert json.loads(server.requests[0].body)["model"] == "m2"
