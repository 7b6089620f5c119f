"""What editors are told of hooks is what the hook table says."""

import ast
import runpy

from camshaft.actors import api
from camshaft.kernel.hooks import HOOKS
from tests.house.sources import ROOT


def test_the_signatures_are_those_of_the_table() -> None:
    written = (ROOT / "actors/event_signatures.py").read_text("utf-8")
    made: str = runpy.run_path(str(ROOT / "design/event_signatures.py"))["text"]()

    assert ast.dump(ast.parse(written)) == ast.dump(ast.parse(made)), "run `python design/event_signatures.py`"


def test_every_event_and_result_of_the_table_can_be_imported_by_extensions() -> None:
    named = {each.__name__ for row in HOOKS.values() for each in (row.event, row.result) if each not in (None, object)}

    assert sorted(named - set(api.__all__)) == []
