"""Whether the files of a project count: what asks for trust, who decides, and where decisions are kept (TRUST-1 to TRUST-9).

Theory of operation. A project may bring settings, extensions and prompts, which can run programs; none of them is read
before somebody decided that they may. Who is asked, in this order; the first that knows decides:

    1  the invocation              its override, for every folder of this process
    2  the folder itself           nothing to protect: the saved decision, else trusted
    3  `project_trust` handlers    yes or no; undecided, silent and failing ones are passed over (EXT-63)
    4  the store                   nearest decision for the folder or one above it
    5  the user's settings         always or never
    6  a person                    if there is somebody to ask; else not trusted

Trust is about what is loaded. It does not limit tools: extensions run with the rights of the process (TRUST-10).
A store that is damaged decides nothing and is never overwritten (TRUST-6).
"""

import json
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Literal

import attrs

from camshaft.actors.actor import Failure, guard
from camshaft.actors.errors import CamshaftError
from camshaft.actors.locked_file import replace_locked
from camshaft.actors.ports.files import read_plain_file
from camshaft.actors.settings_files import PROJECT_FOLDER
from camshaft.kernel import shapes
from camshaft.kernel.codec import loads
from camshaft.kernel.errors import MalformedJson

PROTECTED: Final = ("settings.json", "mcp.json", "extensions", "skills", "prompts", "themes", "SYSTEM.md", "APPEND_SYSTEM.md")
"""What in a project's `.camshaft` asks for trust (TRUST-1)."""

SHARED_SKILLS: Final = os.path.join(".agents", "skills")
"""Asks for trust in the folder and in every one above it (TRUST-1)."""

TRUST_FILE: Final = "trust.json"
STORE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Largest store that is read."""

DefaultTrust = Literal["ask", "always", "never"]


class InvalidTrustStore(CamshaftError):
    """The store of trust decisions is damaged: nothing is trusted, and nothing is written, until a person has mended it."""


@shapes.frozen(kw_only=True)
class TrustAnswer:
    """What a `project_trust` handler or a person said."""

    trusted: bool | None
    """None: undecided."""
    remember: bool = False
    """Whether the decision is kept for later processes."""


@shapes.frozen(kw_only=True)
class TrustDecision:
    """Whether a folder is trusted, and who said so."""

    trusted: bool
    by: Literal["override", "nothing protected", "handler", "store", "settings", "person", "nobody"]


Ask = Callable[[str], Awaitable[TrustAnswer | None]]
"""Asks about a folder; None or an answer without `trusted` leaves it undecided."""


@shapes.define(eq=False)
class TrustStore:
    """Decisions by folder, in `trust.json` of the user's folder (TRUST-5)."""

    path: str

    def nearest(self, cwd: str) -> bool | None:
        """The decision for the folder or the nearest one above it that has one. Raises InvalidTrustStore."""
        decisions = self._decisions()
        for folder in folders_up(canonical(cwd)):
            found = decisions.get(folder)
            if found is not None:
                return found
        return None

    async def save(self, cwd: str, trusted: bool | None) -> None:
        """Keeps a decision; None takes it back. Raises InvalidTrustStore, and OSError if the store cannot be written."""
        folder = canonical(cwd)
        await replace_locked(self.path, lambda: _encoded({**self._decisions(), folder: trusted}))

    def _decisions(self) -> dict[str, bool | None]:
        try:
            value = loads(read_plain_file(self.path, STORE_BYTES_MAX))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise InvalidTrustStore(f"Invalid trust store {self.path}: {error.strerror or error}") from error
        except MalformedJson as error:
            raise InvalidTrustStore(f"Invalid trust store {self.path}: {error}") from error
        if not isinstance(value, dict):
            raise InvalidTrustStore(f"Invalid trust store {self.path}: expected a JSON object, got {type(value).__name__}")
        for folder, decision in value.items():
            if decision is not None and not isinstance(decision, bool):
                raise InvalidTrustStore(
                    f"Invalid trust store {self.path}: {folder!r} has a {type(decision).__name__}; expected true, false or null"
                )
        return value


def trust_store(agent_dir: str) -> TrustStore:
    """The store in the user's folder."""
    return TrustStore(os.path.join(agent_dir, TRUST_FILE))


@shapes.define(eq=False, kw_only=True)
class TrustResolver:
    """Decides for one process: each folder once, whatever happens to it afterwards (TRUST-7, EXT-65)."""

    store: TrustStore
    home: str
    """The user's own folder: its `.agents/skills` never asks for trust (TRUST-1)."""
    override: bool | None = None
    """What the invocation says, for every folder."""
    default: DefaultTrust = "ask"
    """The user's `defaultProjectTrust`."""
    ask_handlers: Ask | None = None
    """Runs the `project_trust` handlers, in load order, to the first yes or no; None: there are none. Failures are told by it."""
    ask_person: Ask | None = None
    """Asks a person; None: there is nobody to ask (TRUST-3)."""
    warnings: list[str] = attrs.field(factory=list)
    """Decisions that could not be kept, and questions that failed."""
    _decided: dict[str, TrustDecision] = attrs.field(factory=dict)

    def known(self, cwd: str) -> TrustDecision | None:
        """The decision if it can be had without asking handlers or a person, else None. Raises InvalidTrustStore."""
        decided = self._decided.get(canonical(cwd))
        if decided is not None:
            return decided
        if self.override is not None:
            return TrustDecision(trusted=self.override, by="override")
        if not needs_trust(cwd, self.home):
            saved = self.store.nearest(cwd)
            return TrustDecision(trusted=True, by="nothing protected") if saved is None else TrustDecision(trusted=saved, by="store")
        return None

    def resolve_unasked(self, cwd: str) -> TrustDecision:
        """The decision where nobody can be asked and no extension was loaded that could. Raises InvalidTrustStore."""
        decision = self.known(cwd) or self._without_answer(self.store.nearest(cwd)) or TrustDecision(trusted=False, by="nobody")
        self._decided[canonical(cwd)] = decision
        return decision

    async def resolve(self, cwd: str) -> TrustDecision:
        """The decision for a folder, the same one every time. Raises InvalidTrustStore."""
        decision = self.known(cwd) or await self._asked(cwd)
        self._decided[canonical(cwd)] = decision
        return decision

    async def _asked(self, cwd: str) -> TrustDecision:
        # Before anybody is asked: a store that is damaged decides nothing, so no answer could be kept.
        saved = self.store.nearest(cwd)
        answer = await self._answer(self.ask_handlers, cwd)
        if answer is not None:
            return TrustDecision(trusted=answer, by="handler")
        decision = self._without_answer(saved)
        if decision is not None:
            return decision
        answer = await self._answer(self.ask_person, cwd)
        return TrustDecision(trusted=False, by="nobody") if answer is None else TrustDecision(trusted=answer, by="person")

    def _without_answer(self, saved: bool | None) -> TrustDecision | None:
        if saved is not None:
            return TrustDecision(trusted=saved, by="store")
        return None if self.default == "ask" else TrustDecision(trusted=self.default == "always", by="settings")

    async def _answer(self, ask: Ask | None, cwd: str) -> bool | None:
        if ask is None:
            return None
        asked = await guard(ask, cwd)
        if isinstance(asked, Failure):
            self.warnings.append(f"Asking whether {cwd} is trusted failed: {asked.text}")
            return None
        answer = getattr(asked, "value", None)
        if not isinstance(answer, TrustAnswer) or answer.trusted is None:
            return None
        if answer.remember:
            try:
                await self.store.save(cwd, answer.trusted)
            except OSError as error:
                self.warnings.append(f"Cannot keep the decision on {cwd} in {self.store.path}: {error.strerror or error}")
        return answer.trusted


async def resolve_trust(cwd: str, resolver: TrustResolver) -> bool:
    """Whether the project in `cwd` is trusted. Raises InvalidTrustStore."""
    return (await resolver.resolve(cwd)).trusted


def needs_trust(cwd: str, home: str) -> bool:
    """Whether there is anything in the folder that may only count if the project is trusted (TRUST-1)."""
    own = os.path.join(cwd, PROJECT_FOLDER)
    if any([os.path.lexists(os.path.join(own, name)) for name in PROTECTED]):
        return True
    users = canonical(home)
    above = [each for each in folders_up(os.path.abspath(cwd)) if canonical(each) != users]
    return any([os.path.lexists(os.path.join(each, SHARED_SKILLS)) for each in above])


def canonical(folder: str) -> str:
    """The folder as the store names it: absolute, links resolved (TRUST-5)."""
    return os.path.realpath(folder)


def folders_up(folder: str) -> list[str]:
    """The folder and every one above it, up to the root of the file system."""
    found = [folder]
    while os.path.dirname(found[-1]) != found[-1]:
        found.append(os.path.dirname(found[-1]))
    return found


def _encoded(decisions: Mapping[str, bool | None]) -> bytes:
    # A folder whose name is no UTF-8 has halves of surrogate pairs in it: JSON can only escape them.
    return (json.dumps(decisions, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")
