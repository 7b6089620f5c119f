"""Samples that change the system prompt: pirate, prompt_customizer, claude_rules."""

from pathlib import Path
from typing import Any

from camshaft.extensions_std.providers.scripted import assistant
from camshaft.extensions_std.samples import claude_rules, pirate, prompt_customizer
from camshaft.extensions_std.tools import create_read_tool
from tests.actors.extensions_on_disk import write
from tests.extensions_std.samples.trying import prompting
from tests.extensions_std.samples.with_and_without import Left, left_in_real_time, without_and_with


def test_the_manner_counts_for_the_runs_between_two_commands() -> None:
    script = [assistant("one"), assistant("two"), assistant("three")]
    without, with_it = without_and_with(script, prompting("a", "/pirate", "b", "/pirate", "c"), pirate.setup)

    assert [list(sections) for sections in without.sections] == [list(without.sections[0])]
    assert with_it.sections[0] == without.sections[0]
    assert [list(sections) for sections in with_it.sections[1:]] == [["pirate"], ["pirate"]]
    assert pirate.MANNER in with_it.sections[1]["pirate"]
    assert with_it.sections[2]["pirate"] is None
    assert "/pirate" not in "".join(with_it.lines)


def guidelines(left: Left) -> str:
    return "".join([text for text in left.sections[0].values() if isinstance(text, str)])


def test_the_rules_are_those_of_the_active_tools() -> None:
    without, with_it = without_and_with([assistant("ok")], prompting("go"), prompt_customizer.setup, tools=[create_read_tool()])

    assert "You can look at files but not change them" in guidelines(with_it)
    assert "You cannot run commands" in guidelines(with_it)
    assert "Before you edit" not in guidelines(with_it)
    assert "You can look at files but not change them" not in guidelines(without)


def test_each_rule_asks_for_the_tools_it_is_about() -> None:
    everything = prompt_customizer.rules_for(["read", "bash", "edit", "write"])

    assert everything == ["Before you edit a file, say in one sentence what will be different.", "Search with `grep -rn` in bash."]
    assert prompt_customizer.rules_for(["bash", "grep"]) == []


def rules_of(folder: Path, *setups: Any, trusted: bool) -> dict[str, Any]:
    left = left_in_real_time([assistant("ok")], prompting("go"), *setups, cwd=str(folder), project_trusted=trusted)
    return left.sections[0]


def test_the_rules_of_a_trusted_project_are_named(tmp_path: Path) -> None:
    write(tmp_path, {".claude/rules/tests.md": "…", ".claude/rules/api/errors.md": "…", ".claude/rules/notes.txt": "…"})

    without, with_it = rules_of(tmp_path, trusted=True), rules_of(tmp_path, claude_rules.setup, trusted=True)

    assert "project-rules" not in without
    assert "- .claude/rules/api/errors.md\n- .claude/rules/tests.md" in with_it["project-rules"]
    assert "notes.txt" not in with_it["project-rules"]


def test_the_rules_of_a_project_that_is_not_trusted_are_left_alone(tmp_path: Path) -> None:
    write(tmp_path, {".claude/rules/tests.md": "…"})

    assert "project-rules" not in rules_of(tmp_path, claude_rules.setup, trusted=False)


def test_a_project_without_rules_has_no_section(tmp_path: Path) -> None:
    assert "project-rules" not in rules_of(tmp_path, claude_rules.setup, trusted=True)
