"""What every actor is made of: `guard` around foreign code, the operation chain, the limbo.

An actor owns a frozen snapshot and has three doors. *Read* is the snapshot, an attribute.
*Post* is a plain call without a checkpoint: Trio runs one task at a time, so a function that
does not await is a serial mailbox. *Call* is awaitable and may take time; calls carry their
chain, so that waiting for an operation one is part of raises SelfWait instead of hanging.

`guard` is the only place where foreign code runs (handlers, tools, adapters, listeners) and
the only `except Exception`. What happens to what comes out of it:

    it returned, its scope was not cancelled      Value
    it raised, or a group of ordinary errors      Failure (a group of one is unwrapped)
    it raised what is no Exception of Python's    Failure: libraries do, a panic of compiled code, a cancellation of asyncio
    its own scope was cancelled hard              Cut, even if it returned or raised
    the scope around was cancelled                Cancelled travels on, alone
    a Cancelled of neither                        Failure: somebody else's cancellation leaked
    KeyboardInterrupt, SystemExit                 travel on
"""

import math
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import CoroutineType
from typing import Any, Final, Generic, TypeVar

import attrs
import trio

from camshaft.actors.misuse import meant
from camshaft.kernel import shapes

T = TypeVar("T")

HEARING_ROUNDS_MAX: Final = 64
"""Rounds of the scheduler for texts with their handlers: two a handler, more than anybody has."""

KILL_AFTER_S: Final = 2.0
"""From cancelling the scope of foreign code to giving it up: what remains of it gets this long to end."""


@shapes.frozen
class Value(Generic[T]):
    """Foreign code returned."""

    value: T


@shapes.frozen
class Failure:
    """Foreign code raised."""

    error: Exception

    @property
    def text(self) -> str:
        """The message for people and models; the class name if the error has none, and before a KeyError's, which is only a key."""
        name, said = type(self.error).__name__, _said(self.error)
        if isinstance(self.error, KeyError) and said:
            return f"{name}: {said}"
        return said + _hint(self.error) if said else name

    @property
    def stack(self) -> str:
        """The traceback, for logs."""
        return "".join(traceback.format_exception(self.error))


def _hint(error: Exception) -> str:
    """What an author may have meant: a result, an attribute of nearly that name, or Trio."""
    if isinstance(error, attrs.exceptions.FrozenInstanceError):
        return " (events, entries and messages cannot be changed; return what is to be changed)"
    if isinstance(error, AttributeError) and error.name is not None and error.obj is not None:
        return meant(error.name, dir(type(error.obj)))
    if isinstance(error, RuntimeError) and str(error) == "no running event loop":
        return " (this runs on Trio, not on asyncio: use trio.sleep and the like)"
    return ""


@shapes.frozen
class Cut:
    """The scope of the foreign code was cancelled hard; whatever it did gives no value."""


@shapes.frozen
class Abandoned:
    """The foreign code did not end after its scope was cancelled; it is in limbo, its outcome unknown."""


Outcome = Value[T] | Failure | Cut

_TRAVELLING: Final = (KeyboardInterrupt, SystemExit, GeneratorExit, trio.Cancelled)
"""What ends more than the code that it passes through."""


async def guard(call: Callable[..., Any], *args: Any, scope: trio.CancelScope | None = None) -> Outcome[Any]:
    """The outcome of `call(*args)`, awaited if it gives an awaitable. `scope`, if given, is entered here and is its own."""
    started = guard_now(call, *args)
    if isinstance(started, Failure) or not is_awaitable(started.value):
        return started
    if scope is None:
        return await _awaited(started.value)
    with scope:
        outcome = await _awaited(started.value)
        if not scope.cancel_called:
            return outcome
    return Cut()


def is_awaitable(value: object) -> bool:
    """Whether a call gave something to await; a look at the type, because it is asked after every call."""
    return type(value) is CoroutineType or hasattr(type(value), "__await__")


def guard_now(call: Callable[..., Any], *args: Any) -> Value[Any] | Failure:
    """As `guard`, for code that does not await."""
    try:
        return Value(call(*args))
    except Exception as error:  # noqa: BLE001  # the one place where foreign failures become values
        return Failure(_unwrapped(error))
    except _TRAVELLING:
        raise
    except BaseException as error:  # noqa: BLE001  # as above: an extension's own kind of error must not end the kernel (ERR-5)
        return _unusual(error)


def guard_at_once(call: Callable[..., Any], *args: Any) -> Value[Any] | Failure:
    """As `guard`, for code that comes to its end without waiting for anything. Raises RuntimeError if it does wait."""
    begun = guard(call, *args)
    try:
        begun.send(None)
    except StopIteration as ended:
        outcome: Value[Any] | Failure = ended.value
        return outcome
    begun.close()
    raise RuntimeError(f"{call!r} waits for something; it was called where nothing can be waited for")


def unless_exit(call: Callable[..., Any], *args: Any) -> Any:
    """What a call of an extension gives, to be awaited if that is; `sys.exit` in it is an error: only the host ends the program.

    Not a part of `guard`, which also runs what a signal handler of the host may interrupt to end the program.
    """
    try:
        started = call(*args)
    except SystemExit as error:
        raise _no_exit(error) from None
    return _without_exit(started) if is_awaitable(started) else started


async def _without_exit(awaitable: Awaitable[T]) -> T:
    try:
        return await awaitable
    except SystemExit as error:
        raise _no_exit(error) from None


def _no_exit(error: SystemExit) -> RuntimeError:
    said = f"the extension called sys.exit({error.code!r}); use ctx.shutdown() to ask the host to end"
    return RuntimeError(said).with_traceback(error.__traceback__)


async def _awaited(awaitable: Awaitable[T]) -> Value[T] | Failure:
    try:
        return Value(await awaitable)
    except Exception as error:  # noqa: BLE001  # as in guard_now
        return Failure(_unwrapped(error))
    except trio.Cancelled as cancelled:
        if _is_cancelled():
            raise
        return Failure(_leaked(cancelled))
    except _TRAVELLING:
        raise
    except BaseException as error:  # noqa: BLE001  # as in guard_now
        return _unusual(error)


def _said(error: BaseException) -> str:
    """The error's own text; empty if it cannot say it, for that is foreign code as well."""
    said = guard_now(str, error)
    return said.value if isinstance(said, Value) else ""


def _unusual(error: BaseException) -> Failure:
    """Of what is no Exception and ends nothing but the code that raised it; raises what is in a group and ends more."""
    if isinstance(error, BaseExceptionGroup):
        return _split(error)
    made = RuntimeError(": ".join([each for each in (type(error).__name__, _said(error)) if each])).with_traceback(error.__traceback__)
    made.__cause__ = error
    return Failure(made)


def _split(group: BaseExceptionGroup[BaseException]) -> Failure:
    """A group that holds more than ordinary errors."""
    cancelled, rest = group.split(trio.Cancelled)
    if rest is not None and not isinstance(rest, ExceptionGroup):
        if rest.subgroup(_TRAVELLING) is not None:
            raise rest
        return (
            Failure(RuntimeError(str(rest)).with_traceback(rest.__traceback__))
            if len(rest.exceptions) > 1
            else _unusual(rest.exceptions[0])
        )
    if cancelled is not None and _is_cancelled():
        raise cancelled
    if rest is not None:
        return Failure(_unwrapped(rest))
    return Failure(_leaked(group))


def _unwrapped(error: Exception) -> Exception:
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _leaked(cause: BaseException) -> Exception:
    error = RuntimeError("the code was ended by a cancellation that belongs to another scope")
    error.__cause__ = cause
    return error


def _is_cancelled() -> bool:
    """Whether a scope around this task is cancelled, so that a Cancelled here is legitimate."""
    return trio.current_effective_deadline() == -math.inf


def _nobody() -> int:
    return 0


async def give_way(busy: Callable[[], int] = _nobody) -> None:
    """Lets tasks that can run go first: what a host started when it heard of an event comes before what follows the event.

    Nothing but a look at a number if there are none. Two rounds, because tasks of one round run in any order; a cancellation
    waits for the next await, so that what was said is also noted. Who is still `busy` then gets more rounds, as foreign code
    runs in tasks of its own; who waits for something is not waited for.
    """
    if trio.lowlevel.current_statistics().tasks_runnable:
        await trio.lowlevel.cancel_shielded_checkpoint()
        await trio.lowlevel.cancel_shielded_checkpoint()
    for _ in range(HEARING_ROUNDS_MAX):
        if not busy():
            return
        await trio.lowlevel.cancel_shielded_checkpoint()


# -- the operation chain -----------------------------------------------------------------

_CHAIN: ContextVar[tuple[str, ...]] = ContextVar("camshaft_operation_chain", default=())
"""The operations this task is part of, outermost first. Tasks inherit it from their starter."""


class SelfWait(RuntimeError):
    """Code waits for an operation that waits for it; it would never return. The text prints the chain."""


@contextmanager
def operation(name: str) -> Iterator[None]:
    """Marks what runs inside as part of an operation."""
    token = _CHAIN.set((*_CHAIN.get(), name))
    try:
        yield
    finally:
        _CHAIN.reset(token)


@contextmanager
def apart() -> Iterator[None]:
    """Marks what runs inside as part of no operation: nobody waits for it, whoever asked for it."""
    token = _CHAIN.set(())
    try:
        yield
    finally:
        _CHAIN.reset(token)


def is_part_of(name: str) -> bool:
    """Whether this code is part of the operation `name`."""
    return name in _CHAIN.get()


def refuse_self_wait(name: str, what: str) -> None:
    """Raises SelfWait if this code is part of the operation `name` that it is about to wait for."""
    chain = _CHAIN.get()
    if name in chain:
        raise SelfWait(f"{what} waits for {name}, which waits for this code ({' > '.join(chain)}); call it without waiting")


# -- limbo -------------------------------------------------------------------------------


@shapes.define(eq=False)
class _Slot:
    """One piece of foreign code running in limbo's nursery, and its answer."""

    outcome: Outcome[Any] | None = None
    has_ended: bool = False


@shapes.define(eq=False)
class Limbo:
    """Runs code that may refuse to die, apart from the task that waits for it.

    Owned by the kernel: its nursery outlives every session. What does not end within
    `KILL_AFTER_S` of being cancelled is abandoned here and listed by name until it ends.
    """

    _nursery: trio.Nursery
    abandoned: list[str] = attrs.field(factory=list)
    """Names of what was given up and still runs."""

    async def run(self, name: str, call: Callable[..., Any], *args: Any, bounds: "Bounds") -> Outcome[Any] | Abandoned:
        """The outcome of `call(*args)` under `bounds.scope`, or Abandoned. A cancelled caller cancels it and waits as long."""
        slot = _Slot()
        self._nursery.start_soon(self._serve, name, slot, bounds, call, args)
        try:
            await bounds.wait(slot)
        except trio.Cancelled:
            bounds.scope.cancel()
            bounds.end_after(0)
            with trio.CancelScope(shield=True):
                await bounds.wait(slot)
            if slot.outcome is None:
                self.abandoned.append(name)
            raise
        if slot.outcome is None:
            self.abandoned.append(name)
            return Abandoned()
        return slot.outcome

    async def _serve(self, name: str, slot: _Slot, bounds: "Bounds", call: Callable[..., Any], args: tuple[Any, ...]) -> None:
        try:
            slot.outcome = await guard(call, *args, scope=bounds.scope)
        finally:
            if name in self.abandoned:
                self.abandoned.remove(name)
            slot.has_ended = True
            bounds.stir()


@shapes.define(eq=False)
class Bounds:
    """How long foreign code may go on: its scope, and the patience of who waits for it, which ends KILL_AFTER_S later.

    While there is no end in sight the wait has no scope of its own: a scope costs as much as most handlers.
    """

    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    _asked_at: float = math.inf
    _limit_at: float = math.inf
    _stirred: trio.Event | None = None
    """While somebody waits: set when the code ended, or its end was moved."""

    def end_after(self, grace_s: float) -> None:
        """Cancel the scope after `grace_s`; stop waiting KILL_AFTER_S later. An earlier end stays."""
        self._asked_at = min(self._asked_at, trio.current_time() + grace_s)
        self._apply()

    def limit(self, at: float | None) -> None:
        """Cancel the scope at `at`, a time of Trio's clock, if it was not ended before; None takes this limit away."""
        self._limit_at = math.inf if at is None else at
        self._apply()

    def _apply(self) -> None:
        self.scope.deadline = min(self._asked_at, self._limit_at)
        self.stir()

    def stir(self) -> None:
        """Whoever waits looks again."""
        if self._stirred is not None:
            self._stirred.set()

    async def wait(self, slot: _Slot) -> None:
        """Returns when the code ended or patience did."""
        while not slot.has_ended:
            end = min(self._asked_at, self._limit_at)
            self._stirred = trio.Event()
            if end == math.inf:
                await self._stirred.wait()
                continue
            with trio.move_on_at(end + KILL_AFTER_S) as patience:
                await self._stirred.wait()
            if patience.cancelled_caught:
                return
