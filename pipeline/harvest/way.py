"""How a relation is harvested: by which access method, and by which of its bind-fields."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from mediator.answering import verdicts_of
from mediator.catalog.bindfields import EQUAL, field_of, operator_of
from mediator.catalog.model import AccessMethod, BindSet, Catalog, Relation
from mediator.errors import Unanswerable
from mediator.query.understand import understand
from pipeline.errors import HarvestError
from wrappers.sql.dialect import quoted


@dataclass(frozen=True, slots=True)
class Way:
    """The empty bind set is a scan."""

    relation: Relation
    method: AccessMethod
    bind_set: BindSet


def relation_of(catalog: Catalog, name: str) -> Relation:
    """Raises `HarvestError` for one that is not there."""
    relation = catalog.relations.get(name)
    if relation is not None:
        return relation
    near = catalog.near(name)
    fix = (
        f"did you mean {' or '.join(map(repr, near))}?"
        if near
        else f"there are {', '.join(catalog.relations)}"
    )
    raise HarvestError(f"there is no relation {name!r}: {fix}")


def scans_of(catalog: Catalog, relation: Relation) -> list[Way]:
    """By which the whole site is walked: each brings all, so the next is for where one fails."""
    if relation.scans:
        return [
            Way(relation, method, ()) for method in sorted(relation.scans, key=lambda m: m.proves != "all")
        ]
    said = f"{relation.name} cannot be walked as a whole: {_ways_of(relation)}"
    try:
        verdicts_of(understand(f"SELECT * FROM {quoted(relation.name)}", catalog), catalog)
        hint = ""
    except Unanswerable as error:
        hint = f"\n{error.hint}" if error.hint else ""
    raise HarvestError(f"{said}. Say which with --bindings FILE, or --bindings SQL{hint}")


def lookup_of(relation: Relation, columns: Collection[str]) -> Way:
    """The access method that takes values of just these columns. Raises `HarvestError` where there is none."""
    bind_set = tuple(sorted(columns))
    found = [m for m in relation.methods if m.kind == "index" and _takes(m, bind_set)]
    if found:
        return Way(relation, min(found, key=lambda m: m.proves != "all"), bind_set)
    there = ", ".join(columns) or "none"
    raise HarvestError(
        f"the bindings have the columns {there}; {_ways_of(relation)}: give columns of these names, no others"
    )


def _takes(method: AccessMethod, bind_set: BindSet) -> bool:
    given, required = set(bind_set), set(method.required)
    some = not method.any_of or bool(given.intersection(method.any_of))
    equal = all(operator_of(name) == EQUAL for name in required)
    return equal and required <= given and some and given <= set(method.bound)


def _ways_of(relation: Relation) -> str:
    ways = list(_said(relation))
    return (
        f"{relation.name} can be asked by {', or by '.join(ways)}"
        if ways
        else f"{relation.name} has only a scan"
    )


def _said(relation: Relation) -> Iterator[str]:
    for method in relation.methods:
        if method.kind == "index":
            parts = [", ".join(map(field_of, method.required))] if method.required else []
            parts += [" or ".join(map(field_of, method.any_of))] if method.any_of else []
            yield f"{' and '.join(parts)} ({method.name})"
