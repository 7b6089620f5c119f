"""A sample: fits the system prompt to the tools that are active.

A rule about a tool that is not there confuses a model, and one that is missing costs a turn. So the rules are
chosen anew for each run, from the tools that the run will have.

Load it with `camshaft -e prompt_customizer.py`. It keeps nothing; the session gets the difference between two
prompts by itself.
"""

from collections.abc import Collection
from typing import Final

from camshaft.actors.api import BeforeAgentStartEvent, ExtensionAPI, ExtensionContext

RULES: Final[tuple[tuple[frozenset[str], frozenset[str], str], ...]] = (
    (frozenset({"edit"}), frozenset(), "Before you edit a file, say in one sentence what will be different."),
    (frozenset({"read"}), frozenset({"edit", "write"}), "You can look at files but not change them; propose changes as diffs."),
    (frozenset({"bash"}), frozenset({"grep"}), "Search with `grep -rn` in bash."),
    (frozenset(), frozenset({"bash"}), "You cannot run commands; name the commands that the user should run."),
)
"""Tools that must be there, tools that must not, and the rule that then holds."""


def setup(api: ExtensionAPI) -> None:
    """Registers the hook."""
    api.on("before_agent_start", add_rules)


def add_rules(event: BeforeAgentStartEvent, _ctx: ExtensionContext) -> None:
    """Adds the rules that hold to the guidelines of the prompt."""
    options = event.system_prompt_options
    options.prompt_guidelines.extend(rules_for(options.selected_tools))


def rules_for(tools: Collection[str]) -> list[str]:
    """The rules that hold with these tools."""
    return [rule for present, absent, rule in RULES if present <= set(tools) and not absent & set(tools)]
