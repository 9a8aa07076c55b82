"""Bindings in company: several in one request, and an optional one beside the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from mediator.catalog.bindfields import operator_of
from wrappers.conformance.asking import Row
from wrappers.conformance.checks.bindings import MEETS
from wrappers.conformance.evidence import Evidence, bound, cut_of, request_of, said
from wrappers.conformance.finding import PASSED, Check, Look, failed, not_for, skipped


def _batch_is_union(e: Evidence) -> Look:
    if e.method.batch_size == 1:
        return not_for("one binding is asked for at a time")
    if not e.packed:
        return (
            e.nothing_read() if not e.good else skipped("there is only one binding to try", _more_examples(e))
        )
    seen = False
    why = cut_of(p.together for p in e.packed) or "there is only one binding to try"
    for packed in e.packed:
        if packed.full and packed.together.bindings[-len(packed.alone) :] != packed.together.bindings:
            continue
        if packed.together.error is not None:
            return failed(packed.together.error.message, request_of(packed.together))
        if not packed.together.whole or not all(x.whole for x in packed.alone):
            continue
        seen = True
        if unlike := _unlike(packed.together.rows, [row for x in packed.alone for row in x.rows]):
            return failed(
                f"{len(packed.alone)} bindings together do not bring what they bring one by one: {unlike}",
                request_of(packed.together),
            )
    return PASSED if seen else skipped(why, _more_examples(e))


def _batch_size(e: Evidence) -> Look:
    if e.method.batch_size == 1:
        return not_for("one binding is asked for at a time")
    full = [p for p in e.packed if p.full]
    if not full:
        return e.nothing_read() if not e.good else skipped("there are not enough bindings to fill a request")
    for packed in full:
        size = len(packed.together.bindings)
        if packed.together.error is not None:
            return failed(f"{size} at once: {packed.together.error.message}", request_of(packed.together))
        if not packed.together.whole:
            return skipped(packed.together.cut)
        here = set(packed.together.rows)
        for lookup in packed.alone:
            if missing := [row for row in lookup.rows if row not in here]:
                return failed(
                    f"of {size} bindings at once, {bound(lookup.bind_set, lookup.bindings[0])} is not answered: "
                    f"{said(missing[0])} is missing",
                    request_of(packed.together),
                )
    return PASSED


def _optional(e: Evidence) -> Look:
    if not e.method.optional:
        return not_for("there is no optional bind-field")
    if not e.narrowed:
        return e.nothing_read() if not e.good else skipped("no row has a value to narrow a lookup with")
    for n in e.narrowed:
        value = n.with_it.bindings[0][n.with_it.bind_set.index(n.name)]
        if n.with_it.error is not None:
            return failed(
                f"with {bound((n.name,), (value,))}: {n.with_it.error.message}", request_of(n.with_it)
            )
        if not n.with_it.whole:
            return skipped(n.with_it.cut or "the narrower lookup could not be read")
        here = set(n.with_it.rows)
        meets = MEETS[operator_of(n.name)]
        for row in n.without.rows:
            found = row[e.place(n.name)]
            if found is not None and meets(found, value) and row not in here:
                return failed(
                    f"with {bound((n.name,), (value,))} this row does not come any more: {said(row)}",
                    request_of(n.with_it),
                )
    return PASSED


def _more_examples(e: Evidence) -> str:
    return f"add a second example to {e.way.name}"


def _unlike(together: list[Row], alone: list[Row]) -> str:
    more, fewer = Counter(together) - Counter(alone), Counter(alone) - Counter(together)
    if fewer:
        return f"{said(next(iter(fewer)))} is missing"
    return f"{said(next(iter(more)))} is one too many" if more else ""


def checks() -> Iterator[Check]:
    yield Check(
        "batch-is-union",
        "several bindings in one request bring the rows that they bring one by one",
        "look at join: the separator, repeat or list; or leave out batch_size",
        _batch_is_union,
        after=("bindings-echo", "bindings-sent", "error-in-disguise", "numbers-finite"),
    )
    yield Check(
        "batch-size",
        "as many bindings as batch_size says are answered in one request",
        "declare the batch_size that the site takes",
        _batch_size,
        after=("batch-is-union", "bindings-echo", "bindings-sent", "unknown-binding"),
    )
    yield Check(
        "optional-loses-nothing",
        "an optional bind-field filters, or is ignored; no row that meets it is lost",
        "look at the format of the value that is sent, or take the field out of optional",
        _optional,
        after=("nothing-left-out", "pages-disjoint", "paging-ends", "total-agrees"),
    )
