"""What an MCP server entry may be, in a file or registered by an extension (MCP-16 to MCP-23, MCP-34, MCP-141).

Validation gives a frozen copy or raises InvalidServer with the first fault, in the order of the
tables. A name and the name it becomes in tool names differ in `-` and `_`: two servers whose
namespaces are equal cannot both be there (MCP-11, MCP-35).
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from camshaft.kernel.persistent import FrozenDict, NotJson, freeze

EXPOSURES: Final = ("codemode", "deferred", "direct", "hidden")
_LEGACY: Final = {"codemode-deferred": "codemode"}
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_PORT_MAX: Final = 65_535
_ONE_OF: Final = 'must be one of "codemode", "deferred", "direct", "hidden"'
_HOSTS: Final = "localhost, 127.0.0.1, or [::1]"


class InvalidServer(ValueError):
    """A server entry that cannot be used; the text names server and field."""


def namespace_of(name: str) -> str:
    """The part of tool names that a server's name becomes: `-` is `_` there."""
    return name.replace("-", "_")


def validated_server(name: str, config: object) -> FrozenDict:
    """A copy of the entry that can be used, legacy exposures replaced (MCP-20). Raises InvalidServer."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidServer(f'invalid server name "{name}" (use letters, digits, "_" and "-")')
    if not isinstance(config, Mapping):
        raise InvalidServer(f'server "{name}" must be an object')
    for check in (_common, _http if is_http(config) else _stdio, _exposures):
        fault = check(name, config)
        if fault is not None:
            raise InvalidServer(fault)
    try:
        frozen: FrozenDict = freeze(_current(config), f'server "{name}"')
    except NotJson as error:
        raise InvalidServer(str(error)) from None
    return frozen


def is_http(config: Mapping[str, Any]) -> bool:
    """Whether the server is reached over HTTP; decided here, once (MCP-18, MCP-19)."""
    return isinstance(config.get("url"), str) and config.get("type") in (None, "http", "streamable-http")


def _common(name: str, config: Mapping[str, Any]) -> str | None:
    said = f'server "{name}": '
    timeout = config.get("timeout", 60)
    if not isinstance(config.get("enabled", True), bool):
        return f"{said}enabled must be a boolean"
    if not isinstance(config.get("description", ""), str):
        return f"{said}description must be a string"
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
        return f"{said}timeout must be a positive number of seconds"
    if config.get("type") == "sse":
        return f"{said}legacy SSE transport is not supported; use the streamable HTTP URL"
    if not is_http(config) and not (isinstance(config.get("command"), str) and config.get("type") in (None, "stdio")):
        return f'server "{name}" needs either "command" (stdio) or "url" (streamable HTTP)'
    return None


def _http(name: str, config: Mapping[str, Any]) -> str | None:
    said = f'server "{name}": '
    url = _url(config["url"])
    if url is None or url.scheme not in ("http", "https") or not url.hostname:
        return f"{said}url must be an http or https URL"
    if not _is_map_of_texts(config.get("headers", {})):
        return f"{said}headers must map names to strings"
    if "oauth" in config:
        fault = _oauth(config["oauth"])
        if fault is not None:
            return f"{said}{fault}"
    if "auth" in config:
        auth = config["auth"]
        if not isinstance(auth, Mapping) or not isinstance(auth.get("provider"), str) or not auth["provider"]:
            return f"{said}auth.provider must be a provider name"
        if not _is_safe(url):
            return f"{said}auth requires an https URL, or http on {_HOSTS}"
    return None


def _stdio(name: str, config: Mapping[str, Any]) -> str | None:
    said = f'server "{name}": '
    arguments = config.get("args", [])
    if not isinstance(arguments, list | tuple) or not all([isinstance(each, str) for each in arguments]):
        return f"{said}args must be an array of strings"
    if not _is_map_of_texts(config.get("env", {})):
        return f"{said}env must map names to strings"
    if not isinstance(config.get("cwd", ""), str):
        return f"{said}cwd must be a string"
    return None


def _exposures(name: str, config: Mapping[str, Any]) -> str | None:
    said = f'server "{name}": '
    if not _is_exposure(config.get("exposure", "codemode")):
        return f"{said}exposure {_ONE_OF}"
    by_tool = config.get("toolExposure", {})
    if not isinstance(by_tool, Mapping):
        return f"{said}toolExposure must map tool names to exposures"
    wrong = [key for key, value in by_tool.items() if not _is_exposure(value)]
    return f'{said}toolExposure "{wrong[0]}" {_ONE_OF}' if wrong else None


_TEXTS: Final = ("clientId", "clientSecret", "callbackUrl", "scope", "clientName", "clientRegistration", "authServerMetadataUrl")


def _oauth(oauth: object) -> str | None:
    if not isinstance(oauth, Mapping):
        return "oauth must be an object"
    wrong = [field for field in _TEXTS if field in oauth and not isinstance(oauth[field], str)]
    if wrong:
        return f"oauth.{wrong[0]} must be a string"
    return next((fault for check in _OAUTH_CHECKS if (fault := check(oauth)) is not None), None)


def _oauth_callback(oauth: Mapping[str, Any]) -> str | None:
    port = oauth.get("callbackPort")
    if port is not None and (isinstance(port, bool) or not isinstance(port, int) or not 1 <= port <= _PORT_MAX):
        return "oauth.callbackPort must be a port number"
    if "callbackUrl" not in oauth:
        return None
    url = _url(oauth["callbackUrl"])
    if url is None or url.scheme != "http" or url.hostname not in _LOOPBACK or url.query or url.fragment:
        return f"oauth.callbackUrl must be an http URI on {_HOSTS} without query or fragment"
    if port is not None and _port(url) not in (None, port):
        return "oauth.callbackUrl and oauth.callbackPort name different ports"
    return None


def _oauth_client(oauth: Mapping[str, Any]) -> str | None:
    if "clientName" in oauth and not oauth["clientName"].strip():
        return "oauth.clientName must be a non-empty string"
    registration = oauth.get("clientRegistration", "auto")
    if registration not in ("auto", "dcr", "cimd"):
        return 'oauth.clientRegistration must be "auto", "dcr", or "cimd"'
    if registration != "cimd":
        return None
    if "clientId" in oauth or "clientName" in oauth:
        return 'oauth.clientRegistration "cimd" cannot be combined with oauth.clientId or oauth.clientName'
    return 'oauth.clientRegistration "cimd" is not supported: there are no Client ID Metadata Documents'


def _oauth_server(oauth: Mapping[str, Any]) -> str | None:
    if "authServerMetadataUrl" not in oauth:
        return None
    url = _url(oauth["authServerMetadataUrl"])
    return None if url is not None and _is_safe(url) else f"oauth.authServerMetadataUrl must be an https URL, or http on {_HOSTS}"


_OAUTH_CHECKS: Final[tuple[Callable[[Mapping[str, Any]], str | None], ...]] = (_oauth_callback, _oauth_client, _oauth_server)


def _current(config: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(config)
    if made.get("exposure") in _LEGACY:
        made["exposure"] = _LEGACY[made["exposure"]]
    if "toolExposure" in made:
        made["toolExposure"] = {tool: _LEGACY.get(value, value) for tool, value in made["toolExposure"].items()}
    return made


def _is_exposure(value: object) -> bool:
    return isinstance(value, str) and (value in EXPOSURES or value in _LEGACY)


def _is_map_of_texts(value: object) -> bool:
    return isinstance(value, Mapping) and all([isinstance(name, str) and isinstance(each, str) for name, each in value.items()])


def _is_safe(url: SplitResult) -> bool:
    return bool(url.hostname) and (url.scheme == "https" or (url.scheme == "http" and url.hostname in _LOOPBACK))


def _port(url: SplitResult) -> int | None:
    try:
        return url.port
    except ValueError:
        return -1


def _url(text: str) -> SplitResult | None:
    try:
        return urlsplit(text)
    except ValueError:
        return None
