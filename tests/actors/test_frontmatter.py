"""The YAML at the head of a skill or template: what it says, and when it says nothing."""

from pathlib import Path

import pytest

from camshaft.actors.resources.found import Owner
from camshaft.actors.resources.frontmatter import frontmatter_of
from camshaft.actors.resources.templates import templates_at
from camshaft.kernel.skills import split_frontmatter


@pytest.mark.rule("RES-6", "RES-10")
@pytest.mark.parametrize("head", ["description:text", "- a", "5", "[a]", "# a remark", ""])
def test_a_template_whose_frontmatter_holds_no_keys_is_loaded_and_nothing_is_told(tmp_path: Path, head: str) -> None:
    (tmp_path / "fix.md").write_text(f"---\n{head}\n---\nBody\n", "utf-8")

    (found,) = templates_at(str(tmp_path), Owner(source="auto", scope="user"))

    assert found.template is not None and found.diagnostics == ()
    assert (found.template.description, found.template.content) == ("Body", "Body")


@pytest.mark.rule("RES-6")
@pytest.mark.parametrize(("style", "said"), [("|", "two\nlines\n"), (">", "two lines\n"), ("|-", "two\nlines")])
def test_a_block_that_ends_the_frontmatter_keeps_its_line_end(style: str, said: str) -> None:
    text = f"---\ndescription: {style}\n  two\n  lines\n---\nBody"

    assert frontmatter_of(split_frontmatter(text).frontmatter) == {"description": said}
