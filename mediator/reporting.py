"""From an eddy's tallies to the completeness report."""

from __future__ import annotations

from collections.abc import Callable

from mediator.eddy.eddy import Eddy
from mediator.errors import Cause
from mediator.flow.events import Binding
from mediator.output.report import Failure, RelationReport, Report


def report_of(eddy: Eddy, is_site: Callable[[str], bool]) -> Report:
    """What one block asked of the sites, and what it did not get."""
    failures = _failures(eddy)
    relations = []
    for name, tally in eddy.asking.tallies.items():
        view = eddy.run.views[name]
        if is_site(name) and view.stem.relation.literal is None:
            failed = failures.get(name, ())
            relations.append(
                RelationReport(
                    name,
                    asked=tally.asked,
                    answered=tally.answered,
                    failed=tally.failed,
                    cancelled=tally.cancelled,
                    parked=tally.parked,
                    served=tally.served,
                    rows=view.count + eddy.unbuilt.rows.get(name, 0),
                    failures=failed,
                )
            )
    return Report(tuple(relations))


def _failures(eddy: Eddy) -> dict[str, tuple[Failure, ...]]:
    """What is missing, together where it was lost for one reason."""
    together: dict[tuple[str, str, tuple[str, ...], str, str], list[Binding]] = {}
    for relation, bind_set, binding, entry in eddy.asking.missing():
        cause = entry.cause
        assert cause is not None
        where = (relation, entry.method, bind_set, cause.kind, cause.message)
        together.setdefault(where, []).append(binding)
    found: dict[str, tuple[Failure, ...]] = {}
    for (relation, method, bind_set, kind, message), bindings in together.items():
        failure = Failure(method, bind_set, tuple(bindings), Cause(kind, message))
        found[relation] = (*found.get(relation, ()), failure)
    return found
