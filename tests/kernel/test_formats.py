"""The formats of JSON Schema 2020-12."""

import pytest

from camshaft.kernel.formats import has_format

RIGHT = [
    ("date", "2024-02-29"),
    ("time", "23:59:60Z"),
    ("date-time", "2024-01-01T00:00:00.5+01:00"),
    ("duration", "P1DT2H"),
    ("duration", "P3W"),
    ("email", "a.b@example.org"),
    ("hostname", "a-b.example"),
    ("idn-hostname", "bücher.example"),
    ("ipv4", "127.0.0.1"),
    ("ipv6", "::1"),
    ("uri", "https://example.org/a?b=c#d"),
    ("uri-reference", "../a#b"),
    ("iri", "https://example.org/ü"),
    ("uri-template", "https://example.org/{user}"),
    ("uuid", "123e4567-e89b-12d3-a456-426614174000"),
    ("json-pointer", "/a~1b/0"),
    ("relative-json-pointer", "1/a"),
    ("regex", "^a+$"),
    ("unheard-of", "anything"),
]
WRONG = [
    ("date", "2023-02-29"),
    ("date", "2023-13-01"),
    ("time", "24:00:00Z"),
    ("date-time", "2024-01-01 00:00:00Z"),
    ("duration", "P"),
    ("duration", "PT"),
    ("email", "a b@example.org"),
    ("hostname", "-a.example"),
    ("hostname", "a" * 64),
    ("ipv4", "127.0.0.01"),
    ("ipv6", "fe80::1%eth0"),
    ("uri", "not a uri"),
    ("uri", "//host/path"),
    ("uri-template", "{a"),
    ("uuid", "123e4567e89b12d3a456426614174000"),
    ("json-pointer", "a"),
    ("relative-json-pointer", "01"),
    ("regex", "("),
]


@pytest.mark.parametrize(("name", "text"), RIGHT)
def test_text_of_the_format_is_accepted(name: str, text: str) -> None:
    assert has_format(text, name)


@pytest.mark.parametrize(("name", "text"), WRONG)
def test_other_text_is_refused(name: str, text: str) -> None:
    assert not has_format(text, name)
