"""Credentials of a request, and how they become headers (WIRE-2, WIRE-3)."""

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote, unquote

import attrs

from camshaft.actors.api import EMPTY, FrozenDict, Model, dumps
from camshaft.actors.host import ProviderFailed

SECRET_WORDS: Final = ("auth", "key", "token", "secret", "cookie", "password")
"""A header whose name contains one of these may carry a credential."""

_GIVEN: Final = re.compile(r"//([^/?#]*)@")
"""Name and password of a url, also of one that is none."""

SECRET_MIN: Final = 8
"""Shorter values are not cut out of texts: `local` or `ollama` as a key is no secret, and an ordinary word."""


class AuthUnresolved(ProviderFailed):
    """A request cannot be authorized; the text says what is missing, never a secret. Its code is `auth` (MOD-80)."""

    def __init__(self, why: str) -> None:
        super().__init__("auth", why)


@attrs.frozen(kw_only=True)
class Auth:
    """Resolved credentials; nothing of them is in the repr."""

    api_key: str | None = attrs.field(default=None, repr=False)
    headers: Mapping[str, str | None] = attrs.field(default=EMPTY, repr=False)
    """Of the provider and the model as configured; null removes."""
    base_url: str | None = attrs.field(default=None, repr=False)
    """Instead of the model's."""

    def owns(self, layers: Sequence[Mapping[str, str | None]], auth_headers: Sequence[str]) -> bool:
        """Whether the request would carry a credential: a key, or one of `auth_headers` (STR-32)."""
        merged = merged_headers(layers)
        return bool(self.api_key) or any(merged.get(name) for name in auth_headers)


def merged_headers(layers: Sequence[Mapping[str, str | None]]) -> dict[str, str]:
    """Headers with lower-case names; later layers win, null removes (WIRE-3)."""
    merged: dict[str, str | None] = {}
    for layer in layers:
        for name, value in layer.items():
            merged[name.lower()] = value
    return {name: value for name, value in merged.items() if value is not None}


def own_headers(layers: Sequence[Mapping[str, str | None]]) -> FrozenDict:
    """What handlers of `before_provider_headers` see: headers given as such, spelt as the last layer that has them (WIRE-102)."""
    merged: dict[str, tuple[str, str | None]] = {}
    for layer in layers:
        for name, value in layer.items():
            merged[name.lower()] = (name, value)
    return FrozenDict(dict(merged.values()))


def joined(base_url: str, path: str) -> str:
    """The url of an endpoint; a query of the base url stays at the end (WIRE-1)."""
    root, _, query = base_url.partition("?")
    mark = ("&" if "?" in path else "?") if query else ""
    return f"{root.rstrip('/')}{path}{mark}{query}"


def secrets_of(auth: Auth, request_headers: Mapping[str, str | None] | None, model: Model) -> tuple[str, ...]:
    """What must not appear in an error text, in all spellings that servers use, longest first."""
    found = {auth.api_key or ""}
    for headers, is_given in ((auth.headers, True), (request_headers or EMPTY, True), (model.headers, False)):
        for name, value in headers.items():
            if value and (is_given or any(word in name.lower() for word in SECRET_WORDS)):
                found.update((value, value.rpartition(" ")[2]))
    for url in (auth.base_url, model.base_url):
        found.update(_secrets_of_url(url or ""))
    found = {each for each in found if len(each) >= SECRET_MIN}
    spelt = {spelling for each in found for spelling in (each, quote(each), quote(each, safe=""), dumps(each).decode()[1:-1])}
    return tuple(sorted(spelt, key=len, reverse=True))


def shown_url(url: str) -> str:
    """A url that may be shown: without name, password and query, which may hold a key; the whole one goes to the request only."""
    return _GIVEN.sub("//", url.partition("?")[0])


def _secrets_of_url(url: str) -> set[str]:
    """The password as it is written, as it is meant and as it is sent; and the values of the query."""
    rest, _, query = url.partition("?")
    match = _GIVEN.search(rest)
    name, _, password = ("" if match is None else match[1]).partition(":")
    found = {password, unquote(password)}
    if password:
        found.add(base64.b64encode(f"{unquote(name)}:{unquote(password)}".encode()).decode())
    for pair in query.split("&"):
        value = pair.partition("=")[2]
        found.update((value, unquote(value)))
    return found
