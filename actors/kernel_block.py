"""What `open_kernel` gives: a block to be entered with `async with`, inside Trio; every other use says so."""

from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Final, Generic, NoReturn, TypeVar

import trio

from camshaft.actors.errors import KernelMisuse
from camshaft.kernel import shapes

T_co = TypeVar("T_co", covariant=True)

_USE: Final = """\
write it as

    async def main():
        async with open_kernel() as kernel:
            seat = await kernel.open(OpenOptions(cwd=...))

    trio.run(main)"""


@shapes.frozen(eq=False)
class KernelBlock(Generic[T_co]):
    """The kernel of the block that it is entered for."""

    _inside: AbstractAsyncContextManager[T_co]

    async def __aenter__(self) -> T_co:
        """Raises KernelMisuse outside Trio."""
        if not trio.lowlevel.in_trio_run():
            raise KernelMisuse(f"open_kernel() was entered outside trio.run(), in asyncio for example; {_USE}")
        return await self._inside.__aenter__()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool | None:
        return await self._inside.__aexit__(kind, error, trace)

    if not TYPE_CHECKING:  # a type checker knows by itself that there are no such methods

        def __enter__(self) -> NoReturn:
            raise KernelMisuse(f"open_kernel() was entered with a plain 'with'; {_USE}")

        def __exit__(self, *_raised: object) -> None:
            """Never reached; without it the mistake would be told as a missing method."""

        def __await__(self) -> NoReturn:
            raise KernelMisuse(f"open_kernel() was awaited; {_USE}")

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"open_kernel() gives no kernel yet, so there is no {name!r}; {_USE}")
