"""auth.json keeps what people stored: privately, whoever else writes, whatever is in it."""

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.lowlevel

from camshaft.actors.host import OAuthConfig, OAuthPort, ProviderFailed, held
from camshaft.extensions_std.providers.auth_store import FRESH_MS, AuthStore

KEY = {"type": "api_key", "key": "sk-1"}
NOW_MS = 1_000_000_000


def store_of(folder: Path) -> AuthStore:
    store = AuthStore(path=str(folder / "agent" / "auth.json"), now_ms=lambda: NOW_MS)
    store.reload()
    return store


def login(**fields: Any) -> dict[str, Any]:
    return {"type": "oauth", "access": "access-0", "refresh": "refresh-0", "expires": NOW_MS + FRESH_MS, **fields}


def _text(store: AuthStore) -> str:
    return Path(store.path).read_text(encoding="utf-8")


def _write(store: AuthStore, text: str) -> None:
    Path(store.path).write_text(text, encoding="utf-8")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.rule("MOD-71")
async def test_a_new_file_and_its_folder_are_for_the_user_alone(tmp_path: Path) -> None:
    store = store_of(tmp_path)

    await store.put("acme", KEY)

    path = tmp_path / "agent" / "auth.json"
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    assert path.read_text(encoding="utf-8") == '{\n  "acme": {\n    "type": "api_key",\n    "key": "sk-1"\n  }\n}\n'
    assert os.listdir(path.parent) == ["auth.json"]


@pytest.mark.rule("MOD-71")
async def test_modes_that_exist_stay_and_foreign_entries_and_keys_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "agent"
    folder.mkdir(mode=0o755)
    path = folder / "auth.json"
    other = {"type": "oauth", "access": "a", "expires": 1, "account": {"ö": 1}}
    path.write_text(json.dumps({"$note": "mine", "other": other}), encoding="utf-8")
    path.chmod(0o640)

    await store_of(tmp_path).put("acme", KEY)

    assert (mode(path), mode(folder)) == (0o640, 0o755)
    assert json.loads(path.read_text(encoding="utf-8")) == {"$note": "mine", "other": other, "acme": KEY}


@pytest.mark.rule("MOD-71")
async def test_what_another_process_wrote_meanwhile_is_kept(tmp_path: Path) -> None:
    one, two = store_of(tmp_path), store_of(tmp_path)

    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(one.put, f"one-{number}", KEY)
            nursery.start_soon(two.put, f"two-{number}", KEY)

    one.reload()
    assert all([one.credential(f"{name}-{number}") == KEY for name in ("one", "two") for number in range(5)])


@pytest.mark.rule("MOD-71")
@pytest.mark.parametrize(("broken", "fault"), [("{", "Failed to load auth.json"), ("[]", "Invalid auth.json")])
async def test_a_file_that_cannot_be_read_leaves_what_was_known_and_is_not_written_over(tmp_path: Path, broken: str, fault: str) -> None:
    store = store_of(tmp_path)
    await store.put("acme", KEY)
    _write(store, broken)

    store.reload()
    with pytest.raises(ProviderFailed, match=fault) as failed:
        await store.put("other", KEY)

    assert failed.value.code == "auth"
    assert store.fault is not None
    assert store.fault.startswith(fault)
    assert store.credential("acme") == KEY
    assert _text(store) == broken


async def test_a_credential_is_removed(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    await store.put("acme", KEY)

    assert [await store.remove("acme"), await store.remove("acme")] == [True, False]
    assert json.loads(_text(store)) == {}


def renewing(calls: list[str], answer: Any = None) -> OAuthPort:
    async def refresh(credential: Mapping[str, Any], _signal: object) -> Any:
        calls.append(credential["refresh"])
        await trio.lowlevel.checkpoint()
        if isinstance(answer, Exception):
            raise answer
        return answer or {"access": "access-1", "refresh": "refresh-1", "expires": NOW_MS + 2 * FRESH_MS, "account": "kept"}

    return OAuthPort("acme", OAuthConfig(name="Acme", login=refresh, refresh_token=refresh, get_api_key=lambda each: each["access"]))


@pytest.mark.rule("MOD-75")
@pytest.mark.parametrize(("expires", "calls"), [(NOW_MS + FRESH_MS, []), (NOW_MS + FRESH_MS - 1, ["refresh-0"]), (0, ["refresh-0"])])
async def test_a_token_that_ends_soon_is_renewed_once_and_stored(tmp_path: Path, expires: int, calls: list[str]) -> None:
    store, asked = store_of(tmp_path), list[str]()
    await store.put("acme", login(expires=expires))
    port = renewing(asked)
    found: list[Any] = []

    async def ask() -> None:
        found.append((await store.fresh("acme", port.refresh))["access"])

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(ask)

    assert asked == calls
    assert found == ["access-1" if calls else "access-0"] * 3
    stored = json.loads(_text(store))["acme"]
    assert stored["access"] == found[0]
    assert stored["type"] == "oauth"


@pytest.mark.rule("MOD-75", "MOD-73")
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (ValueError("bad refresh-token-0123"), "OAuth refresh failed for acme: bad <hidden>"),
        ({"access": 1}, "OAuth refresh failed for acme: got dict; expected a dict with access, refresh and expires"),
    ],
)
async def test_a_renewal_that_fails_keeps_the_credential_and_hides_its_tokens(tmp_path: Path, answer: Any, why: str) -> None:
    store = store_of(tmp_path)
    kept = login(expires=0, refresh="refresh-token-0123")
    await store.put("acme", kept)

    with pytest.raises(ProviderFailed) as failed:
        await store.fresh("acme", renewing([], answer).refresh)

    assert (failed.value.code, str(failed.value)) == ("oauth", why)
    store.reload()
    assert store.credential("acme") == kept


@pytest.mark.rule("MOD-75", "MOD-76")
async def test_who_is_cancelled_stops_waiting_and_the_new_token_is_stored_all_the_same(tmp_path: Path) -> None:
    store, begun, go = store_of(tmp_path), trio.Event(), trio.Event()
    await store.put("acme", login(expires=0))

    async def renew(_credential: Mapping[str, Any]) -> Mapping[str, Any]:
        begun.set()
        await go.wait()
        return login(access="access-1")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.fresh, "acme", renew)
        await begun.wait()
        nursery.cancel_scope.cancel()
    go.set()
    async with held(store.path, wait_s=5):
        pass

    assert json.loads(_text(store))["acme"]["access"] == "access-1"


@pytest.mark.rule("MOD-75")
async def test_a_login_that_is_gone_meanwhile_is_not_renewed(tmp_path: Path) -> None:
    store, asked = store_of(tmp_path), list[str]()
    await store.put("acme", login(expires=0))
    _write(store, "{}")

    with pytest.raises(ProviderFailed, match="^Provider is not configured: acme$"):
        await store.fresh("acme", renewing(asked).refresh)

    assert asked == []
