"""The parameters of the requests of a client, and what is wrong with those that it sent.

Fields that are not listed are ignored, `_meta` among them; null for a field that may be left out counts as left out.
"""

from typing import TypeVar

import attrs

from camshaft.actors.api import Json
from camshaft.actors.host import CodecError
from camshaft.extensions_std.frontends.acp.records import INVALID_PARAMS, RpcError
from camshaft.extensions_std.frontends.rpc.requests import fault_of, fields_of


@attrs.frozen(kw_only=True)
class NoParams:
    """A request without parameters."""


@attrs.frozen(kw_only=True)
class Initialize:
    """`initialize`."""

    protocol_version: Json
    """There is one version, which is answered whatever is asked for."""
    client_capabilities: Json = None
    """Looked at leniently: what is not known is not used."""

    @property
    def has_forms(self) -> bool:
        """Whether the client can ask for a text (`elicitation.form`, which the protocol calls unstable)."""
        capabilities = self.client_capabilities if isinstance(self.client_capabilities, dict) else {}
        elicitation = capabilities.get("elicitation")
        return isinstance(elicitation, dict) and isinstance(elicitation.get("form"), dict)


@attrs.frozen(kw_only=True)
class Authenticate:
    """`authenticate`."""

    method_id: str


@attrs.frozen(kw_only=True)
class NewSessionParams:
    """`session/new`."""

    cwd: str
    mcp_servers: tuple[Json, ...] = ()
    additional_directories: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class LoadSession:
    """`session/load` and `session/resume`."""

    session_id: str
    cwd: str
    mcp_servers: tuple[Json, ...] = ()
    additional_directories: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class ListSessions:
    """`session/list`."""

    cwd: str | None = None
    cursor: str | None = None


@attrs.frozen(kw_only=True)
class PromptParams:
    """`session/prompt`."""

    session_id: str
    prompt: tuple[Json, ...]


@attrs.frozen(kw_only=True)
class OfSession:
    """`session/cancel` and `session/close`."""

    session_id: str


@attrs.frozen(kw_only=True)
class SetOption:
    """`session/set_config_option`."""

    session_id: str
    config_id: str
    value: str


R = TypeVar("R")


def read(cls: type[R], params: Json) -> R:
    """The parameters of a request. Raises RpcError with the first fault, by the field's name."""
    if params is not None and not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "expected an object")
    try:
        return fields_of(cls, params or {})
    except CodecError as error:
        raise RpcError(INVALID_PARAMS, fault_of(error)) from None
