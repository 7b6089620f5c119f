"""Prompt templates in folders: Markdown files directly in a root (RES-10)."""

import os
from typing import Final

from camshaft.actors.resources.found import Owner, ResourceDiagnostic, warning
from camshaft.actors.resources.frontmatter import BadFrontmatter, frontmatter_of, read_text
from camshaft.kernel import shapes
from camshaft.kernel.messages import BLANKS
from camshaft.kernel.templates import PromptTemplate

SUFFIX: Final = ".md"

DESCRIPTION_CHARACTERS: Final = 60
"""How much of its first line describes a template that does not describe itself."""


@shapes.frozen(kw_only=True)
class FoundTemplate:
    """One file that is, or was to be, a template."""

    path: str
    template: PromptTemplate | None
    """None: it is not loaded."""
    diagnostics: tuple[ResourceDiagnostic, ...] = ()


def templates_at(path: str, owner: Owner) -> tuple[FoundTemplate, ...]:
    """The templates of a folder, or the one at a file, in the order of their names."""
    if os.path.isfile(path):
        return (_loaded(path, owner),) if path.endswith(SUFFIX) else ()
    try:
        names = sorted(os.listdir(path))
    except OSError:
        return ()
    files = [os.path.join(path, name) for name in names if name.endswith(SUFFIX)]
    return tuple([_loaded(file, owner) for file in files if os.path.isfile(file)])


def _loaded(path: str, owner: Owner) -> FoundTemplate:
    try:
        split = read_text(path)
        said = frontmatter_of(split.frontmatter)
    except OSError as error:
        return FoundTemplate(path=path, template=None, diagnostics=(warning(path, f"cannot be read: {error.strerror or error}"),))
    except BadFrontmatter as error:
        return FoundTemplate(path=path, template=None, diagnostics=(warning(path, f"broken YAML: {error}"),))
    content = split.body if split.frontmatter is None else split.body.strip(BLANKS)
    description, hint = said.get("description"), said.get("argument-hint")
    template = PromptTemplate(
        name=os.path.basename(path).removesuffix(SUFFIX),
        content=content,
        description=description if isinstance(description, str) and description else _first_line(content),
        argument_hint=hint if isinstance(hint, str) and hint else None,
        file_path=path,
        source_info=owner.info(path),
    )
    return FoundTemplate(path=path, template=template)


def _first_line(content: str) -> str:
    line = next((line for line in content.split("\n") if line.strip(BLANKS)), "")
    return line if len(line) <= DESCRIPTION_CHARACTERS else f"{line[:DESCRIPTION_CHARACTERS]}..."
