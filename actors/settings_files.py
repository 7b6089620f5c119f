"""Settings in two scopes, the user's and the project's: read, merged, changed (SET-1 to SET-10).

Theory of operation. What a scope holds is kept as the object of its file. The settings that count are made from both
(`kernel/settings_merge.py`), the project's only while the project is trusted. A change counts in memory at once and waits
in a queue for its file; `flush` writes what waits, and so does a task of the nursery that `serve_in` was given. Writing
merges the changed keys into what the file holds by then, under a lock. A file that is no JSON object is never written:
its text is its owner's, half finished perhaps, and the changes stay in memory.

Nothing here fails for a bad file: what is wrong is in `warnings`, writes that failed are in `errors`.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol

import attrs
import trio

from camshaft.actors.actor import Failure, guard, guard_now
from camshaft.actors.locked_file import replace_locked
from camshaft.actors.ports.files import read_plain_file
from camshaft.kernel import shapes
from camshaft.kernel.codec import loads
from camshaft.kernel.errors import MalformedJson
from camshaft.kernel.persistent import EMPTY, FrozenDict, Json, freeze, thaw
from camshaft.kernel.settings import InvalidSetting, Settings, read_settings, valid_part
from camshaft.kernel.settings_merge import ResourceLists, changed, effective_settings, migrated, resource_lists

SETTINGS_FILE: Final = "settings.json"
PROJECT_FOLDER: Final = ".camshaft"

SETTINGS_BYTES_MAX: Final = 16 * 1024 * 1024
"""Largest settings file that is read."""

_BOM: Final = b"\xef\xbb\xbf"

Scope = Literal["user", "project"]
SCOPES: Final[tuple[Scope, ...]] = ("user", "project")

Rewrite = Callable[[bytes | None], bytes | None]
"""From what a file holds (None: it does not exist) to what it shall hold; None: it stays as it is."""


class ProjectNotTrusted(PermissionError):
    """Settings of a project that is not trusted were to be written."""


class SettingsStorage(Protocol):
    """Where the settings of the scopes are kept (SET-10)."""

    def name(self, scope: Scope) -> str:
        """What a scope's place is called in messages: a path."""
        ...

    def read(self, scope: Scope) -> bytes | None:
        """What it holds; None if it does not exist. Raises OSError."""
        ...

    async def change(self, scope: Scope, rewrite: Rewrite) -> None:
        """Rewrites it while nobody else does. Raises OSError."""
        ...


@shapes.define(eq=False)
class FileStorage:
    """`settings.json` of the user's folder and of the project's (SET-1)."""

    _paths: Mapping[Scope, str]

    def name(self, scope: Scope) -> str:
        """Its path."""
        return self._paths[scope]

    def read(self, scope: Scope) -> bytes | None:
        """As the port says; a file of more than SETTINGS_BYTES_MAX is an OSError."""
        return _read(self._paths[scope])

    async def change(self, scope: Scope, rewrite: Rewrite) -> None:
        """As the port says; waits for the lock at most 0.2 s (SET-6)."""
        path = self._paths[scope]
        await replace_locked(path, lambda: rewrite(_read(path)))


@shapes.define(eq=False)
class MemoryStorage:
    """Settings that are kept nowhere: for tests, and for hosts that have them elsewhere."""

    _held: dict[Scope, bytes] = attrs.field(factory=dict)

    def name(self, scope: Scope) -> str:
        """What it is called."""
        return f"<{scope} settings>"

    def read(self, scope: Scope) -> bytes | None:
        """As the port says."""
        return self._held.get(scope)

    async def change(self, scope: Scope, rewrite: Rewrite) -> None:
        """As the port says."""
        await trio.lowlevel.checkpoint()
        after = rewrite(self._held.get(scope))
        if after is not None:
            self._held[scope] = after


@shapes.frozen(kw_only=True)
class SettingsError:
    """A change that did not reach its file. It counts in memory all the same."""

    scope: Scope
    message: str


@shapes.frozen(kw_only=True)
class _Change:
    path: tuple[str, ...]
    value: Json


@shapes.define(eq=False)
class SettingsFiles:
    """The settings of one working directory. Its owner calls `flush` before it lets go of it, or lends it a nursery."""

    _storage: SettingsStorage
    _trusted: bool
    _raw: dict[Scope, FrozenDict] = attrs.field(factory=dict)
    _broken: dict[Scope, str] = attrs.field(factory=dict)
    """Scopes whose file cannot be read, and why."""
    _waiting: dict[Scope, list[_Change]] = attrs.field(factory=lambda: {scope: [] for scope in SCOPES})
    _overrides: FrozenDict = EMPTY
    _errors: list[SettingsError] = attrs.field(factory=list)
    _nursery: trio.Nursery | None = None
    _writing: trio.Lock = attrs.field(factory=trio.Lock)
    _is_task_due: bool = False
    _effective: FrozenDict = EMPTY
    _settings: Settings = Settings()
    _value_warnings: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        for scope in SCOPES:
            self._read(scope)
        self._refresh()

    # -- reads ---------------------------------------------------------------------------

    @property
    def effective(self) -> FrozenDict:
        """The settings that count, as a JSON object: the project's over the user's (SET-2)."""
        return self._effective

    @property
    def settings(self) -> Settings:
        """`effective`, read."""
        return self._settings

    @property
    def is_trusted(self) -> bool:
        """Whether the project's settings count (SET-3)."""
        return self._trusted

    @property
    def user(self) -> FrozenDict:
        """What the user's file holds, with the changes made here."""
        return self._raw["user"]

    @property
    def project(self) -> FrozenDict:
        """What the project's file holds, with the changes made here; empty while the project is not trusted."""
        return self._raw["project"] if self._trusted else EMPTY

    @property
    def user_lists(self) -> ResourceLists:
        """Resource lists of the user; their paths start at the user's folder (SET-13)."""
        return resource_lists(self.user)

    @property
    def project_lists(self) -> ResourceLists:
        """Resource lists of the project; their paths start at its `.camshaft`. Empty while it is not trusted."""
        return resource_lists(self.project)

    @property
    def session_dir(self) -> str | None:
        """Where sessions are, as written; the project's own counts without trust (SET-3)."""
        found = [read_settings({"sessionDir": self._raw[scope].get("sessionDir")}, "")[0].session_dir for scope in ("project", "user")]
        return found[0] or found[1]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with the files and with values in them, as of the last reading."""
        counted = SCOPES if self._trusted else ("user",)
        broken = [f"Invalid settings file {self._storage.name(scope)}: {self._broken[scope]}" for scope in counted if scope in self._broken]
        return (*broken, *self._value_warnings)

    def take_errors(self) -> tuple[SettingsError, ...]:
        """Writes that failed since the last call, in order (SET-6)."""
        taken, self._errors = tuple(self._errors), []
        return taken

    # -- changes -------------------------------------------------------------------------

    def write(self, scope: Scope, key: str | Sequence[str], value: Json) -> None:
        """Sets a key, or the nested key at a path; None removes it. It counts at once and reaches its file later (SET-6).

        Raises ProjectNotTrusted for a project that is not trusted, and InvalidSetting as `read_settings` and for what no
        file can hold; then nothing has changed.
        """
        if scope == "project" and not self._trusted:
            raise ProjectNotTrusted("Project is not trusted; refusing to write project settings")
        path = (key,) if isinstance(key, str) else tuple(key)
        change = _Change(path=path, value=_writable(path, value))
        before = self._raw[scope]
        self._raw[scope] = changed(migrated(before), change.path, change.value)
        try:
            self._refresh()
        except ValueError:
            self._raw[scope] = before
            self._refresh()
            raise
        self._waiting[scope].append(change)
        self._start_task()

    def override(self, key: str | Sequence[str], value: Json) -> None:
        """Sets a key over both scopes for this process, until `reload` (SET-2). Raises InvalidSetting as `write`."""
        path, before = (key,) if isinstance(key, str) else tuple(key), self._overrides
        self._overrides = changed(before, path, _writable(path, value))
        try:
            self._refresh()
        except ValueError:
            self._overrides = before
            self._refresh()
            raise

    def set_trusted(self, trusted: bool) -> None:
        """Lets the project's settings count, read anew, or drops them at once (SET-3)."""
        self._trusted = trusted
        if trusted:
            self._read("project")
        self._refresh()

    def reload(self) -> None:
        """Reads the files again. One that is broken keeps its values; overrides are gone; what waits to be written stays (SET-5)."""
        self._overrides = EMPTY
        for scope in SCOPES:
            self._read(scope)
        self._refresh()

    def serve_in(self, nursery: trio.Nursery) -> None:
        """From here on changes are written by a task of this nursery, which exists only while there are some."""
        self._nursery = nursery
        self._start_task()

    async def flush(self) -> None:
        """Writes what waits; returns when every change made before was written or failed."""
        async with self._writing:
            for scope in SCOPES:
                await self._flush(scope)

    # -- inside --------------------------------------------------------------------------

    def _start_task(self) -> None:
        if self._nursery is not None and not self._is_task_due and any(self._waiting.values()):
            self._is_task_due = True
            self._nursery.start_soon(self._serve)

    async def _serve(self) -> None:
        self._is_task_due = False  # what is changed from here on starts a task of its own
        await self.flush()

    async def _flush(self, scope: Scope) -> None:
        changes = tuple(self._waiting[scope])
        if not changes:
            return
        # They wait until they are written: who cancels this, or reads the files meanwhile, loses none.
        outcome = await guard(self._storage.change, scope, lambda current: _rewritten(current, changes))
        del self._waiting[scope][: len(changes)]
        if isinstance(outcome, Failure):
            message = f"Cannot write {self._storage.name(scope)}: {_why(outcome.error)}"
            self._errors.append(SettingsError(scope=scope, message=message))

    def _read(self, scope: Scope) -> None:
        read = guard_now(lambda: _object_of(self._storage.read(scope)))
        if isinstance(read, Failure):
            self._broken[scope] = _why(read.error)
            self._raw.setdefault(scope, EMPTY)
            return
        held: FrozenDict = read.value
        self._broken.pop(scope, None)
        for change in self._waiting[scope]:
            held = changed(migrated(held), change.path, change.value)
        self._raw[scope] = held

    def _refresh(self) -> None:
        user, wrong = valid_part(migrated(self.user), self._storage.name("user"))
        project, wrong_here = valid_part(migrated(self.project), self._storage.name("project"))
        self._effective = effective_settings(user, project, self._overrides)
        self._settings, wrong_overrides = read_settings(self._effective, "override")
        self._value_warnings = (*wrong, *wrong_here, *wrong_overrides)


def settings_files(agent_dir: str, cwd: str, *, trusted: bool = True) -> SettingsFiles:
    """The settings for work in `cwd`, from their files.

    Who gives no `trusted` trusts the project (SDK-2): its settings can name programs to run. Hosts that work in folders of
    others ask `resolve_trust` first. Raises InvalidSetting for a value that must not be replaced by a default (SET-7).
    """
    paths: dict[Scope, str] = {
        "user": os.path.join(agent_dir, SETTINGS_FILE),
        "project": os.path.join(cwd, PROJECT_FOLDER, SETTINGS_FILE),
    }
    return SettingsFiles(FileStorage(paths), trusted)


def settings_in_memory(user: Mapping[str, Any] = EMPTY, project: Mapping[str, Any] = EMPTY, *, trusted: bool = True) -> SettingsFiles:
    """Settings without files (SET-10)."""
    held: dict[Scope, bytes] = {"user": _encoded(freeze(user)), "project": _encoded(freeze(project))}
    return SettingsFiles(MemoryStorage(held), trusted)


def _rewritten(current: bytes | None, changes: Sequence[_Change]) -> bytes:
    """The file with the changed keys merged in. Raises MalformedJson if it is broken: then it is not to be touched (SET-5)."""
    held = migrated(_object_of(current))
    for change in changes:
        held = changed(held, change.path, change.value)
    return _encoded(held)


def _writable(path: Sequence[str], value: Json) -> Json:
    """The value, if a file can hold it so that it is read again. Raises InvalidSetting."""
    try:
        frozen = freeze(value)
        _object_of(_encoded(FrozenDict({"value": frozen})))
    except (MalformedJson, ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InvalidSetting(f"The value for {'.'.join(path)} cannot be kept in a settings file: {why}") from error
    return frozen


def _encoded(value: Json) -> bytes:
    """Half of a surrogate pair is written as its escape, which UTF-8 has no bytes for. Raises ValueError for NaN and infinities."""
    return (json.dumps(thaw(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8", "backslashreplace")


def _object_of(content: bytes | None) -> FrozenDict:
    """The JSON object; a byte-order mark is accepted. Raises MalformedJson."""
    if content is None:
        return EMPTY
    try:
        value = loads(content.removeprefix(_BOM))
        frozen = freeze(value)
    except RecursionError:
        raise MalformedJson("it is nested too deeply") from None
    if not isinstance(frozen, FrozenDict):
        raise MalformedJson(f"expected a JSON object, got {type(value).__name__}")
    return frozen


def _read(path: str) -> bytes | None:
    try:
        return read_plain_file(path, SETTINGS_BYTES_MAX)
    except FileNotFoundError:
        return None


def _why(error: BaseException) -> str:
    return str(getattr(error, "strerror", None) or error)
