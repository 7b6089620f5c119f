"""`help()` of what a host or an extension author fills in names every field with its meaning."""

import inspect
import pydoc

import attrs
import pytest

from camshaft.actors import api, host
from camshaft.actors.field_docs import FieldDocs, field_docs, show_fields
from camshaft.kernel.settings import CompactionSettings, RetrySettings

FILLED_IN = [
    *(host.OpenOptions, host.Limits, host.Settings, host.NewSession, host.OpenSession, host.MemorySession),
    *(host.ExtensionSource, host.InlineExtension, api.ToolDefinition, api.ToolResult, api.BoundaryResult),
    *(RetrySettings, CompactionSettings),
]


@pytest.mark.parametrize("filled_in", FILLED_IN)
def test_every_field_of_what_is_filled_in_says_what_it_is(filled_in: type) -> None:
    names = [field.name for field in attrs.fields(filled_in)]

    assert list(field_docs(filled_in)) == names


@pytest.mark.parametrize("shown", [host.OpenOptions, api.ToolDefinition, api.BoundaryResult])
def test_help_shows_the_fields(shown: type) -> None:
    text = " ".join(pydoc.plain(pydoc.render_doc(shown)).replace("|", "").split())

    for name, told in field_docs(shown).items():
        assert f"{name}: {told}" in text


def test_a_class_without_source_keeps_its_own_text() -> None:
    made = attrs.make_class("Made", ["field"])

    show_fields(["Made"], {"Made": made})
    show_fields(["Made"], {"Made": made})

    assert isinstance(vars(made)["__doc__"], FieldDocs)
    assert not (inspect.getdoc(made) or "").count("Fields:")
