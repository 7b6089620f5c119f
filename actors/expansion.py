"""Expanding a text: `/skill:name` first, then `/template`, once (IN-1, RES-9, RES-11).

A skill's file is read when it is used. One that cannot be read is reported, and the text goes on unchanged. It is read at
once, not in a thread: what an extension sends for a person is queued within the call, and of two prompts at once the first
starts (QUE-13, RPC-63); a small file of this computer is not worth a wait between them.
"""

from typing import Final

from camshaft.actors.actor import Failure
from camshaft.actors.extension_host import ExtensionHost
from camshaft.actors.ports.files import read_plain_file
from camshaft.actors.resources.found import Resources
from camshaft.actors.runtime import CommandInfo
from camshaft.kernel import codec, shapes
from camshaft.kernel.skills import SkillCall, skill_call, skill_text
from camshaft.kernel.templates import expand_template

SKILL_BYTES_MAX: Final = 1024 * 1024
"""Largest skill file that goes into a prompt: more would fill the context of any model."""


@shapes.define(eq=False)
class Expansion:
    """Expands the texts of one conversation."""

    _host: ExtensionHost
    resources: Resources = Resources()
    """What is expanded with; may be replaced at any time."""

    def expanded(self, text: str) -> str:
        """The text, expanded."""
        if not text.startswith("/"):
            return text
        call = skill_call(text, self.resources.skills)
        filled = None if call is None else self._skill(call)
        return expand_template(text, self.resources.templates) if filled is None else filled

    def _skill(self, call: SkillCall) -> str | None:
        """The text of a skill; None if its file cannot be read, which is reported (ERR-3, ERR-4)."""
        try:
            raw = read_plain_file(call.skill.file_path, SKILL_BYTES_MAX)
        except OSError as error:
            self._host.report_failure(call.skill.file_path, "skill_expansion", Failure(error))
            return None
        return skill_text(call, raw.decode("utf-8", "replace"))


def commands_of(resources: Resources) -> tuple[CommandInfo, ...]:
    """Templates and skills as they are called (API-19)."""
    templates = [
        CommandInfo(name=each.name, description=each.description, source="prompt", source_info=codec.encode(each.source_info))
        for each in resources.templates
    ]
    skills = [
        CommandInfo(name=f"skill:{each.name}", description=each.description, source="skill", source_info=codec.encode(each.source_info))
        for each in resources.skills
    ]
    return (*templates, *skills)
