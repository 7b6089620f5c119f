"""What handlers of `project_trust` are given: no session exists yet, so there is little to act on (EXT-64)."""

from collections.abc import Callable, Sequence

from camshaft.actors.desk import Desk
from camshaft.actors.generation import Checked
from camshaft.actors.ui_context import ExtensionUi, Level
from camshaft.kernel import shapes
from camshaft.kernel.tools import Signal


@shapes.frozen(eq=False)
class TrustUi:
    """The reduced UI. Where nobody can be asked before the session begins, dialogs give their fallback."""

    _ui: ExtensionUi
    _can_ask: bool
    _say: Callable[[str], None]

    async def select(self, title: str, options: Sequence[str], *, timeout: int | None = None, signal: Signal | None = None) -> str | None:  # noqa: ASYNC109  # the spec's argument, a deadline people see
        """The chosen option, or None."""
        return await self._ui.select(title, options, timeout=timeout, signal=signal) if self._can_ask else None

    async def confirm(self, title: str, message: str = "", *, timeout: int | None = None, signal: Signal | None = None) -> bool:  # noqa: ASYNC109  # as for select
        """Whether it was confirmed."""
        return await self._ui.confirm(title, message, timeout=timeout, signal=signal) if self._can_ask else False

    async def input(
        self,
        title: str,
        placeholder: str | None = None,
        *,
        timeout: int | None = None,  # noqa: ASYNC109  # as for select
        signal: Signal | None = None,
    ) -> str | None:
        """The text, or None."""
        return await self._ui.input(title, placeholder, timeout=timeout, signal=signal) if self._can_ask else None

    def notify(self, message: str, type: Level = "info") -> None:  # the spec's name
        """Says something once; where there is no UI yet, the host says it."""
        if self._can_ask:
            self._ui.notify(message, type)
        else:
            self._say(message)


@shapes.frozen(eq=False, kw_only=True)
class TrustContext:
    """Context of `project_trust` handlers."""

    cwd: str
    """The directory that is to be trusted, absolute."""
    mode: str
    """How the host shows things."""
    has_ui: bool
    """Whether dialogs can be answered now; not so in RPC, whose client is attached later."""
    ui: TrustUi


def trust_context(desk: Desk, standing: Checked, cwd: str, extension: str, say: Callable[[str], None]) -> TrustContext:
    """The context for the handlers of one extension; `say` takes notifications where there is no UI, for standard error."""
    can_ask = desk.has_ui and desk.mode != "rpc"
    ui = TrustUi(ExtensionUi(desk, standing, extension), can_ask, say)
    return TrustContext(cwd=cwd, mode=desk.mode, has_ui=can_ask, ui=ui)
