"""What refreshes persist is in a private file, beside what other processes wrote, and survives the program."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from camshaft.actors.host import ProviderFailed
from camshaft.extensions_std.providers.model_lists import ModelLists
from tests.actors.running import Running
from tests.actors.test_model_refresh import acme, registered
from tests.actors.test_provider_registrations import doing


def lists(folder: Path) -> ModelLists:
    made = ModelLists(path=str(folder / "agent" / "model-lists.json"))
    made.reload()
    return made


def mode_of(path: str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.mark.rule("PRV-17", "MOD-71")
async def test_an_entry_is_kept_for_the_user_alone_beside_the_others(tmp_path: Path) -> None:
    first, second = lists(tmp_path), lists(tmp_path)
    await first.keep("a", {"models": [1]})

    await second.keep("b", {"checkedAt": 3})
    await second.keep("a", {"models": [2]})

    again = lists(tmp_path)
    assert (again.stored("a"), again.stored("b"), again.stored("c")) == ({"models": [2]}, {"checkedAt": 3}, None)
    assert [mode_of(again.path), mode_of(str(tmp_path / "agent"))] == [0o600, 0o700]


@pytest.mark.rule("PRV-17")
async def test_none_deletes(tmp_path: Path) -> None:
    made = lists(tmp_path)
    await made.keep("a", {"models": []})
    await made.keep("a", None)

    assert (made.stored("a"), lists(tmp_path).stored("a")) == (None, None)


@pytest.mark.parametrize("content", [b"", b"no json", b"[]", b'{"a": 3, "b": []}', b"[" * 100_000])
async def test_a_damaged_file_counts_as_empty_and_is_replaced(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "model-lists.json").write_bytes(content)
    made = lists(tmp_path)
    assert made.stored("a") is None

    await made.keep("a", {"models": []})

    assert lists(tmp_path).stored("a") == {"models": []}


async def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "agent").write_text("a file where the folder should be")

    with pytest.raises(ProviderFailed, match="^keeping the models of a failed: ") as caught:
        await lists(tmp_path).keep("a", {})

    assert caught.value.code == "model_source"


@pytest.mark.rule("PRV-17", "MOD-42")
def test_a_catalogue_that_was_persisted_is_restored_before_the_network_is_asked(tmp_path: Path) -> None:
    seen: list[Any] = []

    def refresh(context: Any) -> Any:
        seen.append((context.allow_network, context.stored))
        if not context.allow_network:
            return context.stored["models"]
        context.publish(persist={"models": [{"id": "kept"}]})
        return [{"id": "fresh"}]

    first = doing(registered, acme(refresh_models=refresh), model_lists=lists(tmp_path))
    stored = {"models": [{"id": "kept"}]}
    assert (first, seen) == (["fresh"], [(True, None)])
    assert json.loads(Path(lists(tmp_path).path).read_text()) == {"acme": stored}

    doing(registered, acme(refresh_models=refresh), model_lists=lists(tmp_path))

    assert seen[1:] == [(False, stored), (True, stored)]


@pytest.mark.rule("PRV-17", "MOD-42")
def test_a_store_that_fails_is_the_fault_of_the_refresh() -> None:
    class Full:
        def stored(self, _provider: str) -> None:
            return None

        async def keep(self, _provider: str, _entry: Any) -> None:
            raise ProviderFailed("model_source", "no space left")

    async def test(running: Running) -> Any:
        await registered(running)
        return running.seat.model_registry.get_error()

    why = doing(test, acme(refresh_models=lambda context: context.publish(persist={}) and None), model_lists=Full())

    assert why == 'Availability refresh: Provider "acme": no space left'
