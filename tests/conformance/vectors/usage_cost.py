"""Vector family `usage-cost`: cost, sums of usage, session statistics (VECTORS.md 5.12)."""

from typing import Any

from camshaft.kernel import codec
from camshaft.kernel.estimates import context_usage, sum_usages
from camshaft.kernel.messages import Usage
from camshaft.kernel.models import Rates, cost_of
from camshaft.kernel.projection import project
from camshaft.kernel.statistics import tally
from tests.conformance.session_lines import tree_of_lines


def run(case_input: dict[str, Any]) -> object:
    """A cost record, a usage, or statistics."""
    match case_input["op"]:
        case "cost":
            return codec.encode(cost_of(codec.wire(Rates, case_input["cost"]), codec.wire(Usage, case_input["usage"])))
        case "sum":
            return codec.encode(sum_usages([codec.wire(Usage, usage) for usage in case_input["usages"]]))
        case _:
            return _statistics(case_input)


def _statistics(case_input: dict[str, Any]) -> object:
    tree = tree_of_lines(case_input)
    counted = tally(tree.entries())
    shown = codec.encode(counted.statistics)
    shown["breakdown"] = codec.encode(counted.costs)
    usage = context_usage(project(tree, tree.length - 1), case_input.get("contextWindow", 0))
    return {**shown, "contextUsage": {"tokens": None, "percent": None, **codec.encode(usage)}} if usage is not None else shown
