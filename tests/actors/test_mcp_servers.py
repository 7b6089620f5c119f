"""What an entry of an MCP server may be."""

from typing import Any

import pytest

from camshaft.actors.mcp_servers import InvalidServer, is_http, namespace_of, validated_server

HTTP = {"url": "https://example.org/mcp"}
STDIO = {"command": "docs"}
LOOPBACK = "localhost, 127.0.0.1, or [::1]"
ONE_OF = 'must be one of "codemode", "deferred", "direct", "hidden"'


@pytest.mark.rule("MCP-17", "MCP-21")
def test_a_valid_entry_is_copied_with_fields_that_we_do_not_know() -> None:
    given: dict[str, Any] = {**STDIO, "args": ["-v"], "env": {"A": "b"}, "cwd": "~", "enabled": False, "timeout": 0.5, "other": [1]}

    made = validated_server("docs", given)
    given["args"].append("changed")

    assert made == {**given, "args": ("-v",), "other": (1,)}


@pytest.mark.rule("MCP-20")
def test_the_old_word_for_an_exposure_is_replaced_in_the_copy() -> None:
    given = {**STDIO, "exposure": "codemode-deferred", "toolExposure": {"a*": "codemode-deferred", "b": "direct"}}

    made = validated_server("docs", given)

    assert (made["exposure"], made["toolExposure"]) == ("codemode", {"a*": "codemode", "b": "direct"})
    assert given["exposure"] == "codemode-deferred"


@pytest.mark.rule("MCP-18", "MCP-19")
@pytest.mark.parametrize(
    ("config", "over_http"),
    [
        (HTTP, True),
        (STDIO, False),
        ({**HTTP, **STDIO}, True),
        ({**HTTP, **STDIO, "type": "stdio"}, False),
        ({**HTTP, "type": "http"}, True),
    ],
)
def test_the_transport_is_decided_by_type_and_url(config: dict[str, Any], over_http: bool) -> None:
    assert is_http(validated_server("s", config)) is over_http


@pytest.mark.rule("MCP-11", "MCP-35")
def test_names_that_differ_in_dashes_have_one_namespace() -> None:
    assert namespace_of("a-b_c") == namespace_of("a_b-c") == "a_b_c"


FAULTS: dict[str, tuple[Any, str]] = {
    "enabled": ({**STDIO, "enabled": "yes"}, "enabled must be a boolean"),
    "description": ({**STDIO, "description": 3}, "description must be a string"),
    "timeout": ({**STDIO, "timeout": 0}, "timeout must be a positive number of seconds"),
    "a true timeout": ({**STDIO, "timeout": True}, "timeout must be a positive number of seconds"),
    "sse": ({**HTTP, "type": "sse"}, "legacy SSE transport is not supported; use the streamable HTTP URL"),
    "url": ({"url": "ftp://x"}, "url must be an http or https URL"),
    "broken url": ({"url": "http://[x"}, "url must be an http or https URL"),
    "headers": ({**HTTP, "headers": {"a": 1}}, "headers must map names to strings"),
    "args": ({**STDIO, "args": "-v"}, "args must be an array of strings"),
    "env": ({**STDIO, "env": ["A=b"]}, "env must map names to strings"),
    "cwd": ({**STDIO, "cwd": 1}, "cwd must be a string"),
    "exposure": ({**STDIO, "exposure": "model-only"}, f"exposure {ONE_OF}"),
    "toolExposure": ({**STDIO, "toolExposure": ["a"]}, "toolExposure must map tool names to exposures"),
    "toolExposure of a tool": ({**STDIO, "toolExposure": {"a": "all"}}, f'toolExposure "a" {ONE_OF}'),
    "auth": ({**HTTP, "auth": {"provider": ""}}, "auth.provider must be a provider name"),
    "auth over http": ({"url": "http://example.org", "auth": {"provider": "p"}}, f"auth requires an https URL, or http on {LOOPBACK}"),
    "oauth": ({**HTTP, "oauth": 1}, "oauth must be an object"),
    "oauth text": ({**HTTP, "oauth": {"scope": 1}}, "oauth.scope must be a string"),
    "oauth port": ({**HTTP, "oauth": {"callbackPort": 70000}}, "oauth.callbackPort must be a port number"),
    "oauth url": (
        {**HTTP, "oauth": {"callbackUrl": "http://localhost/?a"}},
        f"oauth.callbackUrl must be an http URI on {LOOPBACK} without query or fragment",
    ),
    "oauth ports": (
        {**HTTP, "oauth": {"callbackUrl": "http://localhost:1/", "callbackPort": 2}},
        "oauth.callbackUrl and oauth.callbackPort name different ports",
    ),
    "oauth client": ({**HTTP, "oauth": {"clientName": " "}}, "oauth.clientName must be a non-empty string"),
    "oauth registration": ({**HTTP, "oauth": {"clientRegistration": "x"}}, 'oauth.clientRegistration must be "auto", "dcr", or "cimd"'),
    "oauth cimd": (
        {**HTTP, "oauth": {"clientRegistration": "cimd", "clientId": "x"}},
        'oauth.clientRegistration "cimd" cannot be combined with oauth.clientId or oauth.clientName',
    ),
    "oauth server": (
        {**HTTP, "oauth": {"authServerMetadataUrl": "http://example.org"}},
        f"oauth.authServerMetadataUrl must be an https URL, or http on {LOOPBACK}",
    ),
}


@pytest.mark.rule("MCP-17", "MCP-34", "MCP-141")
@pytest.mark.parametrize(("config", "text"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_told_with_the_server_and_the_field(config: Any, text: str) -> None:
    with pytest.raises(InvalidServer) as caught:
        validated_server("s", config)

    assert str(caught.value) == f'server "s": {text}'


@pytest.mark.rule("MCP-16", "MCP-18")
@pytest.mark.parametrize(
    ("name", "config", "text"),
    [
        ("a.b", STDIO, 'invalid server name "a.b" (use letters, digits, "_" and "-")'),
        ("", STDIO, 'invalid server name "" (use letters, digits, "_" and "-")'),
        ("s", [], 'server "s" must be an object'),
        ("s", {"type": "stdio", "url": "http://x"}, 'server "s" needs either "command" (stdio) or "url" (streamable HTTP)'),
        ("s", {**STDIO, "x": {1}}, 'server "s".x: {1} (set) is not JSON; '),
    ],
)
def test_a_name_or_an_entry_that_is_none_is_refused(name: str, config: Any, text: str) -> None:
    with pytest.raises(InvalidServer) as caught:
        validated_server(name, config)

    assert str(caught.value)[: len(text)] == text
