"""The YAML at the head of a file: its texts and marks at the top level (RES-6).

The YAML is composed, not constructed: no tag makes an object, an alias is not followed, so a few lines cannot become a
million. What counts as text are quoted scalars, and plain ones that are no null, boolean or number in YAML 1.2.
"""

import re
from typing import Any, Final

from camshaft.actors.ports.files import read_plain_file
from camshaft.kernel.skills import SplitText, split_frontmatter

FRONTMATTER_CHARACTERS_MAX: Final = 64 * 1024
"""Longest frontmatter that is parsed."""

BRACKETS_MAX: Final = 500
"""Brackets and braces in it: what the parser needs grows with the square of those that are open, to seconds for some thousand."""

FILE_BYTES_MAX: Final = 1024 * 1024
"""Largest skill, template or prompt file that is read: more would fill the context of any model."""

_TRUE: Final = ("true", "True", "TRUE")
_NO_TEXT: Final = re.compile(
    r"~|null|Null|NULL|true|True|TRUE|false|False|FALSE"
    r"|[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)|"
)


class BadFrontmatter(Exception):
    """The YAML cannot be read; the text says why and where."""


def read_text(path: str) -> SplitText:
    """A file's frontmatter and body. Raises OSError, with EFBIG if it is larger than FILE_BYTES_MAX."""
    return split_frontmatter(read_plain_file(path, FILE_BYTES_MAX).decode("utf-8", "replace"))


def frontmatter_of(text: str | None) -> dict[str, str | bool]:
    """Texts by key, and True for a key whose value is exactly `true`; other values are left out. Raises BadFrontmatter.

    YAML that is something else than keys with values says nothing.
    """
    if text is None:
        return {}
    import yaml  # On use: most starts find no frontmatter at all.

    if len(text) > FRONTMATTER_CHARACTERS_MAX:
        raise BadFrontmatter(f"it has {len(text)} characters, more than {FRONTMATTER_CHARACTERS_MAX}")
    if text.count("[") + text.count("{") > BRACKETS_MAX:
        raise BadFrontmatter(f"it has more than {BRACKETS_MAX} brackets")
    try:
        root = yaml.compose(f"{text}\n", Loader=yaml.BaseLoader)  # the line end belongs to a block that ends there
    except yaml.YAMLError as error:
        raise BadFrontmatter(" ".join(str(error).split())) from error
    except RecursionError as error:
        raise BadFrontmatter("it is nested too deeply") from error
    if not isinstance(root, yaml.MappingNode):
        return {}
    scalars = [(key.value, value) for key, value in root.value if isinstance(key, yaml.ScalarNode)]
    keys = [key for key, _ in scalars]
    if len(set(keys)) != len(keys):
        raise BadFrontmatter(f"the key {max(keys, key=keys.count)!r} stands there twice")
    values = {key: _meaning(value) for key, value in scalars if isinstance(value, yaml.ScalarNode)}
    return {key: value for key, value in values.items() if value is not None}


def _meaning(node: Any) -> str | bool | None:
    """A text, True for a plain `true`, or None."""
    if node.style is not None or not _NO_TEXT.fullmatch(node.value):
        return str(node.value)
    return True if node.value in _TRUE else None
