"""Skills: instructions that a model loads when it needs them, or that a person calls with `/skill:name` (RES-6 to RES-9)."""

import re
from collections.abc import Iterable
from typing import Final

from camshaft.kernel import shapes
from camshaft.kernel.messages import BLANKS
from camshaft.kernel.tools import SourceInfo

PREFIX: Final = "/skill:"
"""What a call of a skill begins with."""

NAME_MAX: Final = 64
"""Longest name without a warning, in characters (RES-7)."""
DESCRIPTION_MAX: Final = 1024
"""Longest description without a warning, in characters (RES-7)."""

_LINE_END: Final = re.compile(r"\r\n?")
_NAME: Final = re.compile(r"[a-z0-9-]*")
_BOM: Final = "\ufeff"


@shapes.frozen(kw_only=True)
class Skill:
    """A skill as it was found. Its body is read when it is used, so that a changed file counts at once."""

    name: str
    description: str
    file_path: str
    """Absolute."""
    base_dir: str = ""
    """What relative paths in the skill start at; empty: the folder of its file."""
    source_info: SourceInfo | None = None
    disable_model_invocation: bool = False
    """Whether the model is not told about it."""

    @property
    def folder(self) -> str:
        """The base dir, or the folder of the file."""
        return self.base_dir or self.file_path.rpartition("/")[0] or "/"


@shapes.frozen(kw_only=True)
class SkillCall:
    """A text that calls a skill."""

    skill: Skill
    arguments: str
    """Trimmed."""


def skill_call(text: str, skills: Iterable[Skill]) -> SkillCall | None:
    """The skill that `text` calls, or None. The name ends at the first space; the first skill of a name counts."""
    if not text.startswith(PREFIX):
        return None
    name, _, arguments = text[len(PREFIX) :].partition(" ")
    found = next((skill for skill in skills if skill.name == name), None)
    return None if found is None else SkillCall(skill=found, arguments=arguments.strip(BLANKS))


def skill_text(call: SkillCall, file_text: str) -> str:
    """What a call becomes, given the text of the skill's file (RES-9)."""
    body = split_frontmatter(file_text).body.strip(BLANKS)
    skill = call.skill
    opening = f'<skill name="{skill.name}" location="{skill.file_path}">'
    shown = f"{opening}\nReferences are relative to {skill.folder}.\n\n{body}\n</skill>"
    return f"{shown}\n\n{call.arguments}" if call.arguments else shown


def name_faults(name: str) -> tuple[str, ...]:
    """What is wrong with a skill's name, one text each; it is loaded all the same (RES-7)."""
    faults = [
        (len(name) > NAME_MAX, f"name has {len(name)} characters, more than {NAME_MAX}"),
        (not _NAME.fullmatch(name), f"name {name!r} has characters other than a-z, 0-9 and -"),
        (name.startswith("-") or name.endswith("-"), f"name {name!r} begins or ends with a hyphen"),
        ("--" in name, f"name {name!r} has two hyphens in a row"),
    ]
    return tuple([text for is_so, text in faults if is_so])


def description_faults(description: str) -> tuple[str, ...]:
    """What is wrong with the description of a skill that is loaded all the same (RES-7)."""
    long = len(description) > DESCRIPTION_MAX
    return (f"description has {len(description)} characters, more than {DESCRIPTION_MAX}",) if long else ()


@shapes.frozen(kw_only=True)
class SplitText:
    """A text with the YAML at its head taken off."""

    frontmatter: str | None
    """None if there is none."""
    body: str
    """The rest as it is; the whole text if there is no frontmatter."""


def split_frontmatter(text: str) -> SplitText:
    """Frontmatter and body, line ends normalised, a byte-order mark dropped (RES-6)."""
    text = _LINE_END.sub("\n", text.removeprefix(_BOM))
    end = text.find("\n---", 3) if text.startswith("---") else -1
    if end < 0:
        return SplitText(frontmatter=None, body=text)
    return SplitText(frontmatter=text[4:end], body=text[end + 4 :])
