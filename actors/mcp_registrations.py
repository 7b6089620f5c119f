"""MCP servers that extensions register: who has which name, and what is told of it (API-40, API-41, MCP-34 to MCP-43).

Nothing is connected here. An extension that handles `mcp_servers_change` does that: it reads the
list in `session_start` and follows the event. Without one, every registered server is reported
once a generation, because whoever registered it would wait for its tools in vain (ERR-9).
"""

from collections.abc import Callable

import attrs

from camshaft.actors.mcp_servers import InvalidServer, namespace_of, validated_server
from camshaft.actors.misuse import ExtensionMisuse
from camshaft.actors.registrations import Extension
from camshaft.kernel import shapes
from camshaft.kernel.session_events import RegisteredMcpServer


@shapes.define(eq=False)
class McpRegistrations:
    """The servers of one generation, in the order of their registration."""

    _tell: Callable[[], None]
    """Called after each change."""
    _servers: list[tuple[Extension, RegisteredMcpServer]] = attrs.field(factory=list)
    _reported: set[str] = attrs.field(factory=set)
    """Names that were reported as connected by nobody."""

    @property
    def servers(self) -> tuple[RegisteredMcpServer, ...]:
        """Those of the extensions that are loaded."""
        return tuple([server for owner, server in self._servers if owner.is_loaded and not owner.failed])

    def register(self, extension: Extension, name: str, config: object) -> None:
        """A server of this extension; one that it registered under this name before is replaced in its place (MCP-37).

        Raises ExtensionMisuse for an invalid entry, and for a name that another server has or resembles.
        """
        try:
            valid = validated_server(name, config)
        except InvalidServer as error:
            raise ExtensionMisuse(f'Invalid MCP server registered by extension "{extension.path}": {error}') from None
        self._check_name(extension, name)
        server = RegisteredMcpServer(name=name, config=valid, extension_path=extension.path)
        places = [place for place, (owner, each) in enumerate(self._servers) if owner is extension and each.name == name]
        if places:
            self._servers[places[0]] = (extension, server)
        else:
            self._servers.append((extension, server))
        self._tell()

    def unregister(self, extension: Extension, name: str) -> None:
        """Takes back a server of this extension; nothing for any other name (MCP-38)."""
        kept = [(owner, each) for owner, each in self._servers if owner is not extension or each.name != name]
        if len(kept) != len(self._servers):
            self._servers = kept
            self._tell()

    def unconnected(self) -> tuple[RegisteredMcpServer, ...]:
        """The servers that were not given out here before; for the report of ERR-9."""
        new = tuple([each for each in self.servers if each.name not in self._reported])
        self._reported |= {each.name for each in new}
        return new

    def _check_name(self, extension: Extension, name: str) -> None:
        for owner, each in self._servers:
            if owner.failed:
                continue
            if each.name == name and owner is not extension:
                raise ExtensionMisuse(f'MCP server "{name}" is already registered by extension "{owner.path}"')
            if each.name != name and namespace_of(each.name) == namespace_of(name):
                raise ExtensionMisuse(f'MCP server "{name}" conflicts with registered server "{each.name}"')
