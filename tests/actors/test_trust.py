"""Project trust: what asks for it, who decides, what is kept."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from camshaft.actors.trust import (
    PROTECTED,
    InvalidTrustStore,
    TrustAnswer,
    TrustDecision,
    TrustResolver,
    needs_trust,
    resolve_trust,
    trust_store,
)

YES, NO, UNDECIDED = (TrustAnswer(trusted=each) for each in (True, False, None))


class Asked(Exception):
    """A question that fails."""


def answering(answer: Any, asked: list[str] | None = None) -> Any:
    async def ask(cwd: str) -> Any:
        await trio.lowlevel.checkpoint()
        if asked is not None:
            asked.append(cwd)
        if answer is Asked:
            raise Asked("no idea")
        return answer

    return ask


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with something to protect, in a folder of the home's."""
    (tmp_path / "home" / "project" / ".camshaft" / "extensions").mkdir(parents=True)
    return tmp_path / "home" / "project"


def resolver(project: Path, saved: bool | None = None, **more: Any) -> TrustResolver:
    store = project.parent / "trust.json"
    if saved is not None:
        store.write_text(json.dumps({str(project): saved}), "utf-8")
    return TrustResolver(store=trust_store(str(project.parent)), home=str(project.parent), **more)


# -- what asks for trust -----------------------------------------------------------------


@pytest.mark.rule("TRUST-1")
@pytest.mark.parametrize("name", PROTECTED)
def test_settings_extensions_and_prompts_of_a_project_ask_for_trust(tmp_path: Path, name: str) -> None:
    (tmp_path / ".camshaft").mkdir()
    bare = needs_trust(str(tmp_path), "/home")
    (tmp_path / ".camshaft" / name).symlink_to("/nix")

    assert (bare, needs_trust(str(tmp_path), "/home")) == (False, True)


@pytest.mark.rule("TRUST-1")
def test_shared_skills_ask_for_trust_in_every_folder_above_but_the_home(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "a" / ".agents" / "skills").mkdir(parents=True)

    asks = [needs_trust(str(inner), home) for home in ("/home", str(tmp_path / "a"), str(tmp_path / "link"))]

    assert (asks, needs_trust(str(tmp_path), "/home")) == ([True, False, False], False)


# -- who decides -------------------------------------------------------------------------

HANDLERS: Final[dict[str, tuple[Any, bool | None]]] = {
    "none": (None, None),
    "yes": (answering(YES), True),
    "no": (answering(NO), False),
    "undecided": (answering(UNDECIDED), None),
    "nothing": (answering(None), None),
    "raises": (answering(Asked), None),
}
"""What handlers say, and what that means."""


@pytest.mark.rule("EXT-61", "EXT-63", "TRUST-2", "TRUST-9")
@pytest.mark.parametrize("saved", [None, True, False])
@pytest.mark.parametrize("handler", HANDLERS)
async def test_handlers_come_before_the_store_and_the_store_before_nobody(project: Path, handler: str, saved: bool | None) -> None:
    ask, said = HANDLERS[handler]

    decision = await resolver(project, saved, ask_handlers=ask).resolve(str(project))

    by_store = TrustDecision(trusted=False, by="nobody") if saved is None else TrustDecision(trusted=saved, by="store")
    assert decision == (by_store if said is None else TrustDecision(trusted=said, by="handler"))


ORDER: Final[list[tuple[dict[str, Any], bool | None, TrustDecision]]] = [
    ({"override": True, "ask_handlers": answering(NO)}, False, TrustDecision(trusted=True, by="override")),
    ({"override": False, "ask_handlers": answering(YES)}, True, TrustDecision(trusted=False, by="override")),
    ({"default": "always"}, None, TrustDecision(trusted=True, by="settings")),
    ({"default": "never", "ask_person": answering(YES)}, None, TrustDecision(trusted=False, by="settings")),
    ({"default": "always"}, False, TrustDecision(trusted=False, by="store")),
    ({"ask_person": answering(YES)}, None, TrustDecision(trusted=True, by="person")),
    ({"ask_person": answering(NO)}, None, TrustDecision(trusted=False, by="person")),
    ({"ask_person": answering(None)}, None, TrustDecision(trusted=False, by="nobody")),
    ({"ask_person": answering(YES)}, False, TrustDecision(trusted=False, by="store")),
    ({}, None, TrustDecision(trusted=False, by="nobody")),
]


@pytest.mark.rule("TRUST-2", "TRUST-3")
@pytest.mark.parametrize(("asked", "saved", "decision"), ORDER)
async def test_the_first_that_knows_decides(project: Path, asked: dict[str, Any], saved: bool | None, decision: TrustDecision) -> None:
    assert await resolver(project, saved, **asked).resolve(str(project)) == decision


@pytest.mark.rule("TRUST-2", "EXT-60")
@pytest.mark.parametrize(("saved", "trusted"), [(None, True), (True, True), (False, False)])
async def test_where_nothing_is_protected_handlers_are_not_asked(tmp_path: Path, saved: bool | None, trusted: bool) -> None:
    asked: list[str] = []
    (tmp_path / "p").mkdir()

    decision = await resolver(tmp_path / "p", saved, ask_handlers=answering(NO, asked)).resolve(str(tmp_path / "p"))

    assert (decision.trusted, asked) == (trusted, [])


@pytest.mark.rule("TRUST-9")
async def test_a_question_that_fails_is_a_warning(project: Path) -> None:
    asking = resolver(project, ask_handlers=answering(Asked))

    await asking.resolve(str(project))

    assert asking.warnings == [f"Asking whether {project} is trusted failed: no idea"]


@pytest.mark.rule("TRUST-7", "EXT-65")
async def test_a_folder_is_decided_once_for_a_process_and_another_one_by_itself(project: Path) -> None:
    asked: list[str] = []
    other = project.parent / "other"
    (other / ".camshaft" / "skills").mkdir(parents=True)
    asking = resolver(project, ask_handlers=answering(YES, asked))

    answers = [await resolve_trust(str(each), asking) for each in (project, project, other)]

    assert (answers, asked) == ([True, True, True], [str(project), str(other)])


# -- the store ---------------------------------------------------------------------------


@pytest.mark.rule("EXT-63")
@pytest.mark.parametrize(("remember", "kept"), [(True, True), (False, None)])
async def test_a_decision_is_kept_if_that_was_asked_for(project: Path, remember: bool, kept: bool | None) -> None:
    await resolver(project, ask_handlers=answering(TrustAnswer(trusted=True, remember=remember))).resolve(str(project))

    assert trust_store(str(project.parent)).nearest(str(project)) is kept


@pytest.mark.rule("TRUST-5")
@pytest.mark.parametrize(
    ("decisions", "found"),
    [
        ({}, None),
        ({"": True}, True),
        ({"a": True, "a/b": False}, False),
        ({"a": False, "a/b": True}, True),
        ({"a": True, "a/b": None}, True),
        ({"a/bb": True}, None),
    ],
)
def test_the_nearest_decision_counts(tmp_path: Path, decisions: dict[str, bool | None], found: bool | None) -> None:
    root = tmp_path / "root"
    (root / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to(root / "a" / "b")
    written = {str(root / name): value for name, value in decisions.items()}
    (tmp_path / "trust.json").write_text(json.dumps(written), "utf-8")
    store = trust_store(str(tmp_path))

    assert (store.nearest(str(root / "a" / "b")), store.nearest(str(tmp_path / "link"))) == (found, found)


@pytest.mark.rule("TRUST-5")
async def test_the_store_is_sorted_with_real_folders_and_ends_in_a_newline(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "b")
    store = trust_store(str(tmp_path / "agent"))

    await store.save(str(tmp_path / "link"), True)
    await store.save(str(tmp_path / "a"), False)
    await store.save(str(tmp_path), None)

    expected = {str(tmp_path): None, str(tmp_path / "a"): False, str(tmp_path / "b"): True}
    assert (tmp_path / "agent" / "trust.json").read_text("utf-8") == json.dumps(expected, indent=2) + "\n"


DAMAGED: Final[list[bytes]] = [b"{", b"[]", b'{"/a": "yes"}', b'{"/a": 1}', b"", b"\xff\x00", b'{"/a":' * 3000]


@pytest.mark.rule("TRUST-6")
@pytest.mark.parametrize("content", DAMAGED)
async def test_a_damaged_store_is_an_error_and_is_never_written(project: Path, content: bytes) -> None:
    path = project.parent / "trust.json"
    path.write_bytes(content)
    asking = resolver(project, ask_handlers=answering(TrustAnswer(trusted=True, remember=True)))
    calls: list[Callable[[], Any]] = [lambda: asking.resolve(str(project)), lambda: asking.store.save(str(project), True)]

    for call in calls:
        with pytest.raises(InvalidTrustStore, match=f"^Invalid trust store {path}: "):
            await call()

    assert path.read_bytes() == content


@pytest.mark.rule("TRUST-6")
async def test_a_store_that_cannot_be_written_costs_the_memory_not_the_decision(project: Path) -> None:
    asking = resolver(project, ask_person=answering(TrustAnswer(trusted=True, remember=True)))
    (project.parent / "agent").symlink_to("/proc/nix")
    asking.store = trust_store(str(project.parent / "agent"))

    decision = await asking.resolve(str(project))

    assert (decision.trusted, len(asking.warnings)) == (True, 1)


@pytest.mark.rule("TRUST-5")
def test_a_folder_whose_name_is_no_utf_8_keeps_its_decision(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/o\xff"))
    folder.mkdir()
    store = trust_store(str(tmp_path))

    trio.run(store.save, str(folder), False)

    assert store.nearest(str(folder)) is False
    assert (tmp_path / "trust.json").read_bytes().decode("utf-8")
