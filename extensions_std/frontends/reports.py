"""What standard error is told besides progress: what opening found, extension errors, diagnostics (JSONM-4)."""

from collections.abc import Sequence
from typing import Final

import attrs

from camshaft.actors.host import (
    AutoRetryStart,
    DiagnosticEvent,
    Event,
    ExtensionErrorEvent,
    LoadError,
    LoadWarning,
    OpenOptions,
    Seat,
)
from camshaft.extensions_std.frontends.streams import say

LOAD_FAILURE: Final = "Failed to load extension: "
"""How the loader begins most of its texts; here the path comes first."""


def report_event(event: Event) -> None:
    """A listener."""
    if isinstance(event, ExtensionErrorEvent):
        details = ", ".join([each for each in (event.error_type, f"in {event.event}", event.place) if each])
        say(f"Extension error ({event.extension_path}): {event.error} [{details}]")
    elif isinstance(event, DiagnosticEvent):
        say(f"Warning: {event.source}: {event.message}")


@attrs.frozen
class Retries:
    """Tells of each retry in one line, where no progress does."""

    _seat: Seat

    def see(self, event: Event) -> None:
        """A listener."""
        if isinstance(event, AutoRetryStart):
            model = self._seat.model
            of = "" if model is None else f" ({model.reference})"
            wait = f"retry {event.attempt} of {event.max_attempts} in {event.delay_ms / 1000:.1f} s"
            say(f"{wait}{of}: {' '.join(event.error_message.split())}")


def report_opening(seat: Seat, options: OpenOptions) -> bool:
    """Tells what opening found; whether any of it is fatal, which a load failure is (CLI-13)."""
    for found in seat.found:
        say(f"Warning: {found.source}: {found.message}")
    for error in seat.errors:
        report_event(error)
    is_bad = bool(seat.load_errors) if options.preloaded is not None else report_loading(seat.load_errors, seat.load_warnings)
    _report_tools(seat, options)
    _report_model(seat)
    return is_bad


def report_loading(errors: Sequence[LoadError], warnings: Sequence[LoadWarning]) -> bool:
    """Tells what extensions did not load; whether that is fatal (EXT-26)."""
    for odd in warnings:
        say(f'Warning: Extension "{odd.path}": {odd.warning}')
    for failure in errors:
        said = failure.error.removeprefix(LOAD_FAILURE) + (f" ({failure.place})" if failure.place else "")
        say(f'Error: Failed to load extension "{failure.path}": {said}')
    if errors:
        say('Start without extensions using "camshaft -ne".')
    return bool(errors)


def _report_tools(seat: Seat, options: OpenOptions) -> None:
    """Names that were asked for and that no tool has; a wildcard may well match nothing."""
    known = {tool.name for tool in options.builtin_tools} | set(seat.tools)
    for name in options.tools or ():
        if name.lstrip("+-") not in known and not any([sign in name for sign in "*?["]):
            say(f"Warning: There is no tool {name.lstrip('+-')!r}; the tools are: {', '.join(sorted(known)) or 'none'}")


def _report_model(seat: Seat) -> None:
    """What was odd about the choice of the model (MOD-96, MOD-97)."""
    for each in seat.take_unreported_diagnostics():
        if each.source == "model":
            say(f"Warning: {each.message}")
