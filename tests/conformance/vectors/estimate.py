"""Vector family `estimate`: token estimates and the compaction threshold (VECTORS.md 5.8)."""

from typing import Any

from camshaft.kernel import codec
from camshaft.kernel.estimates import ContextEstimate, compaction_due, compaction_limits, estimate, plain, projected
from camshaft.kernel.projection import project
from tests.conformance.session_lines import tree_of_lines


def run(case_input: dict[str, Any]) -> object:
    """A list of estimates, a context estimate, or whether compaction is due."""
    match case_input["op"]:
        case "messages":
            return [estimate(codec.decode_message(message)) for message in case_input["messages"]]
        case "context":
            return _shown(plain([codec.decode_message(message) for message in case_input["messages"]]))
        case "branch":
            tree = tree_of_lines(case_input)
            return _shown(projected(project(tree, tree.length - 1)))
        case _:
            return compaction_due(case_input["tokens"], case_input["contextWindow"], compaction_limits(case_input["settings"]))


def _shown(found: ContextEstimate) -> dict[str, Any]:
    shown = codec.encode(found)
    return {"lastUsageIndex": None, **shown}
