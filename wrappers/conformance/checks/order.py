"""What a method says of the rows of one lookup: their order, and how many there may be."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from wrappers.conformance.asking import Lookup, Row
from wrappers.conformance.evidence import Evidence, request_of, said
from wrappers.conformance.finding import PASSED, Check, Look, failed, not_for, skipped


def _order_kept(e: Evidence) -> Look:
    if not e.method.order:
        return not_for("no order is declared")
    several = [lookup for lookup in e.good if len(lookup.rows) > 1]
    for lookup in several:
        if (pair := _out_of_order(e, lookup)) is not None:
            return failed(f"{said(pair[1])} came after {said(pair[0])}", request_of(lookup))
    if several:
        return PASSED
    return (
        e.nothing_read()
        if not e.good
        else skipped("no lookup brought two rows", "add an example with several")
    )


def _out_of_order(e: Evidence, lookup: Lookup) -> tuple[Row, Row] | None:
    """The first two rows of which the second should have come first. NULLs come last."""
    rows = lookup.rows
    names = e.relation.schema.names
    for before, after in pairwise(rows):
        for spelt in e.method.order:
            place = names.index(spelt.removeprefix("-"))
            sign = _compared(before[place], after[place], down=spelt.startswith("-"))
            if sign > 0:
                return before, after
            if sign < 0:
                break
    return None


def _compared(before: Any, after: Any, *, down: bool) -> int:
    """Below 0 where this is the order, above 0 where it is the other one."""
    if before == after:
        return 0
    if before is None or after is None:
        return 1 if before is None else -1
    return 1 if (before < after) == down else -1


def _at_most(e: Evidence) -> Look:
    most = e.method.at_most
    if most is None:
        return not_for("no most is declared")
    for lookup in e.good:
        if (came := len(lookup.rows)) > most:
            return failed(f"{came} rows came, where {most} are declared to be the most", request_of(lookup))
    return PASSED if e.good else e.nothing_read()


def checks() -> Iterator[Check]:
    yield Check(
        "order-kept",
        "the rows of a lookup come in the declared order",
        "declare the order that the site keeps, or leave out order",
        _order_kept,
    )
    yield Check(
        "at-most-holds",
        "no lookup brings more rows than at_most says",
        "declare as many as the site sends at most",
        _at_most,
    )
