"""The commit protocol against the real store: crashes, faults and foreign writers at every byte.

By default a sample with fixed strides, chosen to be coprime to the lengths of lines so that
over the cases every part of a line is hit; `just long` visits every byte. Each test prints
how many states it checked (`pytest -rP` shows it).
"""

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest

from camshaft.actors.logs.port import Durability
from tests.actors.logs import enumerations
from tests.actors.logs.enumerations import Strides
from tests.actors.logs.histories import HISTORIES, History
from tests.actors.logs.lives import POLICIES
from tests.actors.logs.promises import Counts

Enumeration = Callable[..., Awaitable[Counts]]


@attrs.frozen(kw_only=True)
class Case:
    """One enumeration, its sample and its full sweep."""

    run: Enumeration
    sample: Strides
    full: Strides
    options: dict[str, Any] = attrs.field(factory=dict)


CASES = {
    "a crash": Case(run=enumerations.crash_alone, sample=Strides(bytes=29), full=Strides()),
    "a crash, then a foreign append": Case(run=enumerations.crash_and_foreign, sample=Strides(bytes=97), full=Strides(bytes=3)),
    "a crash, then the file deleted": Case(run=enumerations.crash_and_deleted, sample=Strides(bytes=89), full=Strides(bytes=5)),
    "a crash in the recovery": Case(
        run=enumerations.crash_in_recovery, sample=Strides(bytes=41, points=31, recovery=41), full=Strides(bytes=7, points=5)
    ),
    "a crash in the recovery, with a foreign append": Case(
        run=enumerations.crash_in_recovery,
        sample=Strides(bytes=43, points=47, recovery=83),
        full=Strides(bytes=7, points=29, recovery=3),
        options={"foreign": True},
    ),
    "failing calls": Case(run=enumerations.failing_calls, sample=Strides(bytes=47, points=7), full=Strides(bytes=3)),
    "the file deleted while open": Case(run=enumerations.deleted_while_open, sample=Strides(bytes=499, points=7), full=Strides(bytes=11)),
    "a foreign append while open": Case(run=enumerations.foreign_while_open, sample=Strides(bytes=499, points=7), full=Strides(bytes=31)),
    "appends while a sync runs": Case(run=enumerations.appends_meanwhile, sample=Strides(bytes=499), full=Strides(bytes=7)),
    "two processes in turn": Case(run=enumerations.hand_overs, sample=Strides(bytes=61), full=Strides()),
    "power loss": Case(run=enumerations.power_loss, sample=Strides(bytes=499, points=2), full=Strides(bytes=43)),
    "power loss after a recovery": Case(
        run=enumerations.power_loss,
        sample=Strides(bytes=307, points=41),
        full=Strides(bytes=61, points=7),
        options={"after_recovery": True},
    ),
}


@pytest.mark.slow
@pytest.mark.rule("SES-8", "SES-43", "SES-44", "SES-46", "SES-90", "A01", "A02")
@pytest.mark.parametrize("name", CASES)
async def test_a_sample_of_what_can_end_a_session_leaves_it_whole(name: str) -> None:
    case = CASES[name]

    states = sum([await _states(case, history, policy, case.sample) for history in HISTORIES for policy in POLICIES])

    print(f"{name}: {states} states")
    assert states > 0


@pytest.mark.long
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.name)
@pytest.mark.parametrize("name", CASES)
async def test_nothing_that_ends_a_session_breaks_it(name: str, history: History, policy: Durability) -> None:
    case = CASES[name]

    states = await _states(case, history, policy, case.full)

    print(f"{name}, {history.name}, {policy}: {states} states")


async def _states(case: Case, history: History, policy: Durability, strides: Strides) -> int:
    counts = await case.run(history, policy, strides, **case.options)
    return counts.states
