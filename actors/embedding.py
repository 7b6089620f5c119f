"""The public face for hosts that do not run Trio: asyncio programs, and plain threads.

    async with AsyncioKernel() as kernel:                   with BlockingKernel() as kernel:
        seat = await kernel.open(OpenOptions(cwd=...))          seat = kernel.open(OpenOptions(cwd=...))
        await seat.prompt("hello")                              seat.prompt("hello")

Both have the operations of `Seat` and one contract, which `design/embedding.md` tells in full: the kernel
lives in one thread of its own; whoever gives up a wait ends the wait and not the run; leaving the block
aborts what runs and closes in order; and calls raise the same plain exceptions as the Trio face does.

What is not listed here goes through `call`, which runs a function in the kernel's thread; that is also how
to read something of a session, because what a seat gives is made when it is looked at.

Longer than 400 lines because half of it is the list of operations, a line for each and face.
"""

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

import attrs
import trio

from camshaft.actors.embedded_watches import AsyncioWatch, BlockingWatch, Taken, entered
from camshaft.actors.errors import KernelClosed, KernelMisuse
from camshaft.actors.field_docs import show_fields
from camshaft.actors.flights import Receipt
from camshaft.actors.host import Cursor, Kernel, Limits, Listener, OpenOptions, Seat, Watch, World
from camshaft.actors.on_loop import OnLoop
from camshaft.actors.portal import Portal
from camshaft.kernel import shapes

__all__ = ["AsyncioKernel", "AsyncioSeat", "AsyncioWatch", "BlockingKernel", "BlockingSeat", "BlockingWatch", "KernelClosed"]

P = ParamSpec("P")
T = TypeVar("T")

# -- operations --------------------------------------------------------------------------


def _blocking(operation: Callable[Concatenate[Seat, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate["BlockingSeat", P], T]:
    @functools.wraps(operation)
    def crossing(face: "BlockingSeat", /, *args: P.args, **kwargs: P.kwargs) -> T:
        answer: T = face.portal.call(functools.partial(operation, face.seat, *args, **kwargs))
        return answer

    return crossing


def _blocking_post(operation: Callable[Concatenate[Seat, P], T]) -> Callable[Concatenate["BlockingSeat", P], T]:
    @functools.wraps(operation)
    def crossing(face: "BlockingSeat", /, *args: P.args, **kwargs: P.kwargs) -> T:
        answer: T = face.portal.call(functools.partial(operation, face.seat, *args, **kwargs))
        return answer

    return crossing


def _waiting(
    operation: Callable[Concatenate[Seat, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["AsyncioSeat", P], Coroutine[Any, Any, T]]:
    @functools.wraps(operation)
    async def crossing(face: "AsyncioSeat", /, *args: P.args, **kwargs: P.kwargs) -> T:
        answer: T = await face.portal.acall(functools.partial(operation, face.seat, *args, **kwargs))
        return answer

    return crossing


def _waiting_post(operation: Callable[Concatenate[Seat, P], T]) -> Callable[Concatenate["AsyncioSeat", P], Coroutine[Any, Any, T]]:
    @functools.wraps(operation)
    async def crossing(face: "AsyncioSeat", /, *args: P.args, **kwargs: P.kwargs) -> T:
        answer: T = await face.portal.acall(functools.partial(operation, face.seat, *args, **kwargs))
        return answer

    return crossing


@shapes.frozen(eq=False)
class BlockingSeat:
    """One conversation, for plain threads. Each operation blocks, and does what the one of `Seat` with its name does."""

    portal: Portal = attrs.field(repr=False)
    seat: Seat
    """The conversation itself; only for functions that run in the kernel's thread."""

    prompt = _blocking(Seat.prompt)
    submit = _blocking(Seat.submit)
    steer = _blocking(Seat.steer)
    follow_up = _blocking(Seat.follow_up)
    abort = _blocking(Seat.abort)
    wait_idle = _blocking(Seat.wait_idle)
    compact = _blocking(Seat.compact)
    navigate_tree = _blocking(Seat.navigate_tree)
    new_session = _blocking(Seat.new_session)
    switch_session = _blocking(Seat.switch_session)
    fork = _blocking(Seat.fork)
    clone = _blocking(Seat.clone)
    import_session = _blocking(Seat.import_session)
    reload = _blocking(Seat.reload)
    set_model = _blocking(Seat.set_model)
    cycle_model = _blocking(Seat.cycle_model)
    user_bash = _blocking(Seat.user_bash)
    send_custom = _blocking(Seat.send_custom)
    statistics = _blocking(Seat.statistics)
    export_jsonl = _blocking(Seat.export_jsonl)
    fetch_deferred = _blocking(Seat.fetch_deferred)
    cancel_deferred = _blocking(Seat.cancel_deferred)
    close = _blocking(Seat.close)
    request_abort = _blocking_post(Seat.request_abort)
    cancel_retry = _blocking_post(Seat.cancel_retry)
    abort_compaction = _blocking_post(Seat.abort_compaction)
    abort_bash = _blocking_post(Seat.abort_bash)
    clear_queue = _blocking_post(Seat.clear_queue)
    set_queue_mode = _blocking_post(Seat.set_queue_mode)
    answer_dialog = _blocking_post(Seat.answer_dialog)
    cancel_dialog = _blocking_post(Seat.cancel_dialog)
    append_entry = _blocking_post(Seat.append_entry)
    append_message = _blocking_post(Seat.append_message)
    set_label = _blocking_post(Seat.set_label)
    set_session_name = _blocking_post(Seat.set_session_name)
    set_active_tools = _blocking_post(Seat.set_active_tools)
    set_thinking_level = _blocking_post(Seat.set_thinking_level)
    cycle_thinking_level = _blocking_post(Seat.cycle_thinking_level)
    record_bash = _blocking_post(Seat.record_bash)
    commands = _blocking_post(Seat.commands)
    take_unreported_diagnostics = _blocking_post(Seat.take_unreported_diagnostics)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Calls `listener` with every event in the kernel's thread, inside the step that made it true; returns its unsubscribe.

        Everything in the kernel waits for it, and it must not call this face. Raises CommandRefused for an async function.
        """
        unsubscribe = self.portal.call(functools.partial(self.seat.subscribe, listener))
        return functools.partial(self.portal.post, unsubscribe)

    @overload
    def call(self, function: Callable[[Seat], Coroutine[Any, Any, T]]) -> T: ...
    @overload
    def call(self, function: Callable[[Seat], T]) -> T: ...
    def call(self, function: Callable[[Seat], Any]) -> Any:
        """What `function(seat)` gives in the kernel's thread, awaited there (in Trio) if it is a coroutine.

        Make lists of views before they leave: `seat.call(lambda seat: list(seat.context_messages))`.
        """
        return self.portal.call(functools.partial(function, self.seat))

    def wait(self, receipt: Receipt) -> None:
        """Blocks until the run of a receipt has settled. Raises what ended the run abnormally."""
        self.portal.call(receipt.wait)

    @contextmanager
    def watch(self, after: Cursor | None = None) -> Iterator["BlockingWatch"]:
        """As `Seat.watch`: a snapshot, and a plain iterator of what happens from that moment on. Raises SeatClosed."""
        block = self.seat.watch(after)
        watch = self.portal.call(functools.partial(entered, block), lambda _watch: _left(self.portal, block))
        try:
            yield BlockingWatch(self.portal, Taken(watch, watch.snapshot))
        finally:
            _left(self.portal, block)


@shapes.frozen(eq=False)
class AsyncioSeat:
    """One conversation, for asyncio. Each operation is awaited, and does what the one of `Seat` with its name does."""

    portal: Portal = attrs.field(repr=False)
    seat: Seat
    """The conversation itself; only for functions that run in the kernel's thread."""

    prompt = _waiting(Seat.prompt)
    submit = _waiting(Seat.submit)
    steer = _waiting(Seat.steer)
    follow_up = _waiting(Seat.follow_up)
    abort = _waiting(Seat.abort)
    wait_idle = _waiting(Seat.wait_idle)
    compact = _waiting(Seat.compact)
    navigate_tree = _waiting(Seat.navigate_tree)
    new_session = _waiting(Seat.new_session)
    switch_session = _waiting(Seat.switch_session)
    fork = _waiting(Seat.fork)
    clone = _waiting(Seat.clone)
    import_session = _waiting(Seat.import_session)
    reload = _waiting(Seat.reload)
    set_model = _waiting(Seat.set_model)
    cycle_model = _waiting(Seat.cycle_model)
    user_bash = _waiting(Seat.user_bash)
    send_custom = _waiting(Seat.send_custom)
    statistics = _waiting(Seat.statistics)
    export_jsonl = _waiting(Seat.export_jsonl)
    fetch_deferred = _waiting(Seat.fetch_deferred)
    cancel_deferred = _waiting(Seat.cancel_deferred)
    close = _waiting(Seat.close)
    request_abort = _waiting_post(Seat.request_abort)
    cancel_retry = _waiting_post(Seat.cancel_retry)
    abort_compaction = _waiting_post(Seat.abort_compaction)
    abort_bash = _waiting_post(Seat.abort_bash)
    clear_queue = _waiting_post(Seat.clear_queue)
    set_queue_mode = _waiting_post(Seat.set_queue_mode)
    answer_dialog = _waiting_post(Seat.answer_dialog)
    cancel_dialog = _waiting_post(Seat.cancel_dialog)
    append_entry = _waiting_post(Seat.append_entry)
    append_message = _waiting_post(Seat.append_message)
    set_label = _waiting_post(Seat.set_label)
    set_session_name = _waiting_post(Seat.set_session_name)
    set_active_tools = _waiting_post(Seat.set_active_tools)
    set_thinking_level = _waiting_post(Seat.set_thinking_level)
    cycle_thinking_level = _waiting_post(Seat.cycle_thinking_level)
    record_bash = _waiting_post(Seat.record_bash)
    commands = _waiting_post(Seat.commands)
    take_unreported_diagnostics = _waiting_post(Seat.take_unreported_diagnostics)

    async def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Calls `listener` with every event in the kernel's thread, inside the step that made it true; returns its unsubscribe.

        Everything in the kernel waits for it, and it must not call this face; `watch` is for what happens in the loop.
        Raises CommandRefused for an async function.
        """
        unsubscribe = await self.portal.acall(functools.partial(self.seat.subscribe, listener))
        return functools.partial(self.portal.post, unsubscribe)

    @overload
    async def call(self, function: Callable[[Seat], Coroutine[Any, Any, T]]) -> T: ...
    @overload
    async def call(self, function: Callable[[Seat], T]) -> T: ...
    async def call(self, function: Callable[[Seat], Any]) -> Any:
        """What `function(seat)` gives in the kernel's thread, awaited there (in Trio) if it is a coroutine.

        Make lists of views before they leave: `await seat.call(lambda seat: list(seat.context_messages))`.
        """
        return await self.portal.acall(functools.partial(function, self.seat))

    async def wait(self, receipt: Receipt) -> None:
        """Returns when the run of a receipt has settled. Raises what ended the run abnormally."""
        await self.portal.acall(receipt.wait)

    @asynccontextmanager
    async def watch(self, after: Cursor | None = None) -> AsyncIterator["AsyncioWatch"]:
        """As `Seat.watch`: a snapshot, and an async iterator of what happens from that moment on. Raises SeatClosed."""
        block = self.seat.watch(after)
        watch = await self.portal.acall(functools.partial(entered, block), lambda _watch: _left(self.portal, block))
        try:
            yield AsyncioWatch(self.portal, Taken(watch, watch.snapshot))
        finally:
            _left(self.portal, block)


def _left(portal: Portal, block: AbstractContextManager[Watch]) -> None:
    """Leaves a watch without waiting; nothing is left to be done if the kernel has closed."""
    portal.post(functools.partial(block.__exit__, None, None, None))


# -- kernels -----------------------------------------------------------------------------


def _in_worker(function: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    @functools.wraps(function)
    async def crossing(*args: P.args, **kwargs: P.kwargs) -> T:
        return await trio.to_thread.run_sync(functools.partial(function, *args, **kwargs), abandon_on_cancel=True)

    return crossing


def _give_back(portal: Portal, seat: Seat) -> None:
    """Closes a conversation that was opened for somebody who does not wait for it any more."""
    portal.post(functools.partial(seat.close, True))


@shapes.define(eq=False)
class BlockingKernel:
    """A kernel in a thread of its own, for plain threads: `with BlockingKernel() as kernel`.

    Any number of threads may use it at once. Without a block: `start()` and `close()`.
    """

    world: World | None = attrs.field(default=None, kw_only=True)
    """As in `open_kernel`."""
    limits: Limits | None = attrs.field(default=None, kw_only=True)
    """As in `open_kernel`."""
    portal: Portal = attrs.field(init=False, repr=False)
    """The way into the kernel's thread."""

    def __attrs_post_init__(self) -> None:
        self.portal = Portal(self.world, self.limits)

    @property
    def is_open(self) -> bool:
        """Whether calls are taken."""
        return self.portal.is_open

    def in_worker(self, function: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
        """For extensions of this host: a plain function that blocks, as a Trio function that runs it in a worker thread.

        A tool or handler that is given up leaves the thread to its end. At most 40 run at once, as Trio limits it.
        """
        return _in_worker(function)

    def start(self) -> "BlockingKernel":
        """Starts the thread; itself. Raises KernelMisuse the second time."""
        self.portal.start()
        return self

    def __enter__(self) -> "BlockingKernel":
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        """Closes; at once if an interrupt leaves the block."""
        self.close(kind is not None and not issubclass(kind, Exception))

    def open(self, options: OpenOptions) -> BlockingSeat:
        """As `Kernel.open`: raises InvalidOptions, StorageErrors, KernelClosed; nothing has changed then."""
        return BlockingSeat(
            self.portal, self.portal.call(lambda: self.portal.kernel.open(options), functools.partial(_give_back, self.portal))
        )

    @overload
    def call(self, function: Callable[[Kernel], Coroutine[Any, Any, T]]) -> T: ...
    @overload
    def call(self, function: Callable[[Kernel], T]) -> T: ...
    def call(self, function: Callable[[Kernel], Any]) -> Any:
        """What `function(kernel)` gives in the kernel's thread, awaited there (in Trio) if it is a coroutine."""
        return self.portal.call(lambda: function(self.portal.kernel))

    def close(self, at_once: bool = False) -> None:
        """Aborts and closes every conversation, `at_once` without the grace, and ends the thread. Idempotent.

        Raises the first fault of a log, when all are closed.
        """
        self.portal.close(at_once)


@shapes.define(eq=False)
class AsyncioKernel:
    """A kernel in a thread of its own, for asyncio: `async with AsyncioKernel() as kernel`.

    Without a block: `start()` and `close()`. It may be used from several loops.
    """

    world: World | None = attrs.field(default=None, kw_only=True)
    """As in `open_kernel`."""
    limits: Limits | None = attrs.field(default=None, kw_only=True)
    """As in `open_kernel`."""
    portal: Portal = attrs.field(init=False, repr=False)
    """The way into the kernel's thread."""
    _loop: asyncio.AbstractEventLoop | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.portal = Portal(self.world, self.limits)

    @property
    def is_open(self) -> bool:
        """Whether calls are taken."""
        return self.portal.is_open

    def in_worker(self, function: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
        """For extensions of this host: a plain function that blocks, as a Trio function that runs it in a worker thread.

        A tool or handler that is given up leaves the thread to its end. At most 40 run at once, as Trio limits it.
        """
        return _in_worker(function)

    async def start(self) -> "AsyncioKernel":
        """Starts the thread, which takes a millisecond; itself. Raises KernelMisuse the second time."""
        self._loop = asyncio.get_running_loop()
        self.portal.start()
        return self

    async def __aenter__(self) -> "AsyncioKernel":
        return await self.start()

    async def __aexit__(self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        """Closes; at once if a cancellation leaves the block."""
        await self.close(kind is not None and not issubclass(kind, Exception))  # noqa: ASYNC102  it bounds and shields itself

    async def open(self, options: OpenOptions) -> AsyncioSeat:
        """As `Kernel.open`: raises InvalidOptions, StorageErrors, KernelClosed; nothing has changed then."""
        return AsyncioSeat(
            self.portal, await self.portal.acall(lambda: self.portal.kernel.open(options), functools.partial(_give_back, self.portal))
        )

    @overload
    async def call(self, function: Callable[[Kernel], Coroutine[Any, Any, T]]) -> T: ...
    @overload
    async def call(self, function: Callable[[Kernel], T]) -> T: ...
    async def call(self, function: Callable[[Kernel], Any]) -> Any:
        """What `function(kernel)` gives in the kernel's thread, awaited there (in Trio) if it is a coroutine."""
        return await self.portal.acall(lambda: function(self.portal.kernel))

    async def close(self, at_once: bool = False) -> None:
        """Aborts and closes every conversation, `at_once` without the grace, and ends the thread. Idempotent.

        Cancelling it closes at once. Raises the first fault of a log, when all are closed.
        """
        await self.portal.aclose(at_once)

    def on_loop(self, function: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        """For extensions of this host: an asyncio function, as a Trio function that runs it in the loop the kernel was started from.

        For tools and handlers: `api.register_tool(kernel.on_loop(look_up))`. Who gives it up cancels its asyncio task. What is
        Trio's in its arguments, such as the `wait` of a signal, is awaited through `call`.
        """
        if self._loop is None:
            raise KernelMisuse("on_loop() was called before the kernel was started; call it inside its 'async with' block")
        loop = self._loop

        @functools.wraps(function)
        async def crossing(*args: P.args, **kwargs: P.kwargs) -> T:
            return await OnLoop(loop, functools.partial(function, *args, **kwargs)).result()

        return crossing


show_fields(__all__, globals())
