"""The completeness report of a spread, of what its askers counted and its cells had to report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mediator.errors import Cause
from mediator.flow.events import Binding
from mediator.output.report import Failure, RelationReport, Report
from mediator.store import bindings
from pipeline.cells.envelopes import Broken
from pipeline.cells.packing import unpacked
from pipeline.spread.folder import Folder
from pipeline.spread.given import Status
from pipeline.spread.plan import Plan
from pipeline.spread.strands import entries, total

_Where = tuple[str, str, tuple[str, ...], str, str]  # relation, method, fields, and the cause
_Lost = dict[_Where, dict[Binding, None]]


def report(plan: Plan, folder: Folder, cells: Iterable[Status], stopped: str = "") -> Report:
    """Of one that was stopped, what the sites refused is missing, whether or not it would have mattered."""
    said = [status["relations"] for status in cells if status["finished"]]
    strands = sorted((folder.path / "log").iterdir())
    counts = total(strands)
    lost = _refused(plan, strands) if stopped else _lost(plan, said)
    relations = []
    for name, relation in plan.relations.items():
        if name in plan.stages or relation.literal is not None:
            continue
        counted = counts.get(name, {})
        failures = tuple(
            Failure(method, fields, tuple(some), Cause(kind, message))
            for (of, method, fields, kind, message), some in lost.items()
            if of == name
        )
        relations.append(
            RelationReport(
                name,
                asked=counted.get("asked", 0),
                answered=counted.get("answered", 0),
                failed=counted.get("failed", 0),
                cancelled=counted.get("asked", 0) - counted.get("answered", 0) - counted.get("failed", 0),
                parked=sum(s[name]["parked"] for s in said if name in s),
                served=counted.get("served", 0),
                rows=counted.get("rows", 0),
                failures=failures,
            )
        )
    return Report(tuple(relations), stopped)


def _lost(plan: Plan, said: Iterable[Mapping[str, Any]]) -> _Lost:
    """What any cell misses; what several miss is missing once."""
    found: _Lost = {}
    for relations in said:
        for name, one in relations.items():
            for failure in one["failures"]:
                fields = tuple(failure["fields"])
                where = (name, failure["method"], fields, *failure["cause"])
                read = bindings.read(plan.relations[name].schema, fields, failure["bindings"])
                found.setdefault(where, {}).update(dict.fromkeys(read))
    return found


def _refused(plan: Plan, strands: Iterable[Any]) -> _Lost:
    found: _Lost = {}
    for folder in strands:
        for entry in entries(folder):
            envelope = unpacked(entry.envelope, plan.relations) if entry.envelope else None
            if isinstance(envelope, Broken):
                lookup, cause = envelope.lookup, envelope.cause
                where = (lookup.relation, lookup.method, lookup.bind_set, cause.kind, cause.message)
                found.setdefault(where, {})[lookup.binding] = None
    return found
