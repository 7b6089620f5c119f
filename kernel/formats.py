"""The formats of JSON Schema 2020-12 as predicates on text. An unknown format accepts everything."""

import re
from collections.abc import Callable, Mapping
from ipaddress import AddressValueError, IPv6Address
from types import MappingProxyType
from typing import Final

_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_WIDE_LABEL: Final = r"[^\W_](?:(?:[^\W_]|-){0,61}[^\W_])?"
_OCTET: Final = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_URI_CHARACTER: Final = r"(?:[A-Za-z0-9\-._~:/?\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})"
_IRI_CHARACTER: Final = r"(?:[A-Za-z0-9\-._~:/?\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2}|[^\x00-\x9f\s])"
_SCHEME: Final = r"[A-Za-z][A-Za-z0-9+.-]*:"
_POINTER: Final = r"(?:/(?:[^~/]|~[01])*)*"
_TIME: Final = (
    r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})(?:\.[0-9]+)?(?:[Zz]|[+-](?P<ahead>[0-9]{2}):(?P<off>[0-9]{2}))"
)
_DATE: Final = r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_DURATION_TIME: Final = r"T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+S)?"
_DURATION: Final = rf"P(?:[0-9]+W|(?=[0-9T])(?:[0-9]+Y)?(?:[0-9]+M)?(?:[0-9]+D)?(?:{_DURATION_TIME})?)"

_DAYS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_HOST_CHARACTERS_MAX: Final = 253


def has_format(text: str, name: str) -> bool:
    """Whether the text has the format `name`. O(len(text))."""
    check = _FORMATS.get(name)
    return check is None or check(text)


def compiled_pattern(pattern: str) -> "re.Pattern[str] | None":
    """The regular expression, or None if it is none here. Named groups may be written as in ECMAScript."""
    try:
        return re.compile(re.sub(r"\(\?<(?![=!])", "(?P<", pattern))
    except (re.error, OverflowError, RecursionError):
        return None


def _full(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


def _is_date(text: str) -> bool:
    found = re.fullmatch(_DATE, text)
    return found is not None and _names_a_day(found)


def _is_time(text: str) -> bool:
    found = re.fullmatch(_TIME, text)
    return found is not None and _names_a_time(found)


def _is_date_time(text: str) -> bool:
    found = re.fullmatch(rf"{_DATE}[Tt]{_TIME}", text)
    return found is not None and _names_a_day(found) and _names_a_time(found)


def _names_a_day(found: "re.Match[str]") -> bool:
    year, month, day = int(found["year"]), int(found["month"]), int(found["day"])
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 1 <= month <= 12 and 1 <= day <= _DAYS[month - 1] and (is_leap or (month, day) != (2, 29))


def _names_a_time(found: "re.Match[str]") -> bool:
    is_offset = found["ahead"] is None or (int(found["ahead"]) < 24 and int(found["off"]) < 60)
    return int(found["hour"]) < 24 and int(found["minute"]) < 60 and int(found["second"]) <= 60 and is_offset


def _is_host(label: str) -> Callable[[str], bool]:
    check = _full(rf"{label}(?:\.{label})*\.?")
    return lambda text: len(text) <= _HOST_CHARACTERS_MAX and check(text)


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return "%" not in text


_FORMATS: Final[Mapping[str, Callable[[str], bool]]] = MappingProxyType(
    {
        "date": _is_date,
        "time": _is_time,
        "date-time": _is_date_time,
        "duration": _full(_DURATION),
        "email": _full(rf'(?:[^\s@"]+|"[^"]*")@(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9A-Za-z:.]+\])'),
        "idn-email": _full(r"[^\s@]+@[^\s@]+"),
        "hostname": _is_host(_LABEL),
        "idn-hostname": _is_host(_WIDE_LABEL),
        "ipv4": _full(rf"{_OCTET}(?:\.{_OCTET}){{3}}"),
        "ipv6": _is_ipv6,
        "uri": _full(rf"{_SCHEME}{_URI_CHARACTER}*(?:#{_URI_CHARACTER}*)?"),
        "uri-reference": _full(rf"{_URI_CHARACTER}*(?:#{_URI_CHARACTER}*)?"),
        "iri": _full(rf"{_SCHEME}{_IRI_CHARACTER}*(?:#{_IRI_CHARACTER}*)?"),
        "iri-reference": _full(rf"{_IRI_CHARACTER}*(?:#{_IRI_CHARACTER}*)?"),
        "uri-template": _full(r"""(?:[^\x00-\x20"'<>\\^`{|}]|\{[^{}\s]+\})*"""),
        "uuid": _full(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"),
        "json-pointer": _full(_POINTER),
        "relative-json-pointer": _full(rf"(?:0|[1-9][0-9]*)(?:#|{_POINTER})"),
        "regex": lambda text: compiled_pattern(text) is not None,
    }
)
