"""What is bound: sent, answered for, told from others, alone and in company."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from mediator.catalog.bindfields import EQUAL, operator_of
from mediator.errors import SourceError
from wrappers.conformance.asking import Lookup, Row
from wrappers.conformance.evidence import Evidence, bound, cut_of, request_of, said
from wrappers.conformance.finding import PASSED, Check, Look, failed, not_for, skipped
from wrappers.conformance.samples import strange

MEETS: dict[str, Callable[[Any, Any], bool]] = {
    EQUAL: operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "^=": lambda value, start: str(value).startswith(str(start)),
}


def _bindings_sent(e: Evidence) -> Look:
    if not e.method.bound:
        return not_for("nothing is bound")
    tried = 0
    for lookup in (*e.known, *(n.with_it for n in e.narrowed)):
        for number, name in enumerate(lookup.bind_set if lookup.exchanges else ()):
            binding = lookup.bindings[0]
            if (other := strange(binding[number])) is None:
                continue
            changed = (*binding[:number], other, *binding[number + 1 :])
            try:
                one = e.wrapper.request(lookup.bind_set, (binding,))
                two = e.wrapper.request(lookup.bind_set, (changed,))
            except SourceError:
                continue
            tried += 1
            if one == two and not _told_later(e, lookup, number):
                return failed(f"the request is the same for {name} = {binding[number]!r} and {other!r}", one)
    return PASSED if tried else e.nothing_read()


def _told_later(e: Evidence, lookup: Lookup, number: int) -> bool:
    """Whether the binding is in a request further on, where the first one only opens the door."""
    made = {x.request for x in lookup.exchanges}
    return any(
        other.bind_set == lookup.bind_set
        and other.bindings[0][number] != lookup.bindings[0][number]
        and made != {x.request for x in other.exchanges}
        for other in (*e.known, *e.unknown)
    )


def _rows_found(e: Evidence) -> Look:
    good = e.good
    if not good:
        return e.nothing_read()
    if any(lookup.rows for lookup in good):
        return PASSED
    origins = {known.origin: known.sure for known in e.samples.values() if known}
    where = ", ".join(origins)
    if any(origins.values()):
        return failed(f"no rows for any of the bindings from {where}", request_of(good[0]))
    return skipped(
        f"no rows for any of {len(good)} bindings from {where}: they may have none",
        f"add examples to {e.way.name}: bindings that have rows",
    )


def _bindings_echo(e: Evidence) -> Look:
    if not e.method.bound:
        return not_for("nothing is bound")
    if e.method.exact is False:
        return not_for("declared with exact: false")
    if not (e.method.required or e.method.any_of):
        return not_for("what is bound is optional: the site may ignore it")
    if set(e.method.required) <= set(e.given) and not e.method.any_of:
        return not_for("the rows do not repeat what is bound: it is given")
    for lookup in e.good:
        for row in lookup.rows:
            if (why := _strays(e, lookup, row)) is not None:
                return failed(why, request_of(lookup))
    if not any(lookup.rows for lookup in e.good):
        return e.nothing_read() if not e.good else skipped("no rows came that could show it")
    return PASSED


def _strays(e: Evidence, lookup: Lookup, row: Row) -> str | None:
    """How a row differs from what was asked for."""
    for name, value in zip(lookup.bind_set, lookup.bindings[0], strict=True):
        found = row[e.place(name)]
        if name not in e.given and (found is None or not MEETS[operator_of(name)](found, value)):
            return f"asked for {bound((name,), (value,))}, a row came with {found!r}: {said(row)}"
    return None


def _unknown_binding(e: Evidence) -> Look:
    if not (e.method.required or e.method.any_of):
        return not_for("nothing has to be bound")
    asked = [x for x in e.unknown if x.exchanges or x.error]
    if not asked:
        why = cut_of(e.unknown) or "there is no value that nobody could have"
        return e.nothing_read() if not e.good else skipped(why)
    for lookup in asked:
        what = bound(lookup.bind_set, lookup.bindings[0])
        if lookup.error is not None:
            return failed(f"{what}: {lookup.error.message}", request_of(lookup), _no_rows_remedy(lookup))
        for row in lookup.rows:
            if e.method.exact is False:
                continue
            if (stray := _strays(e, lookup, row)) is not None:
                return failed(f"{what}, which nobody has: {stray}", request_of(lookup))
        if lookup.rows and _all_given(e, lookup) and _same_rows(e, lookup):
            return failed(
                f"{what}, which nobody has, brings the same rows as {bound(lookup.bind_set, e.good[0].bindings[0])}",
                request_of(lookup),
            )
    return PASSED


def _no_rows_remedy(lookup: Lookup) -> str:
    last = lookup.last
    if last is None or last.reply is None:
        return ""
    if not 200 <= last.reply.status < 300:
        return f"if this is how the site says that it has none, declare empty: [{last.reply.status}]"
    return (
        "if this is how the site says that it has none, declare it in errors (at or says, means: empty),"
        " or on a web page in nothing"
    )


def _case_matters(e: Evidence) -> Look:
    if not e.other_case:
        return not_for("no text with letters is bound")
    for known, swapped in e.other_case:
        if not swapped.good:
            continue
        what = bound(swapped.bind_set, swapped.bindings[0])
        for row in () if e.method.exact is False else swapped.rows:
            if (why := _strays(e, swapped, row)) is not None:
                return failed(why, request_of(swapped))
        if (
            swapped.rows
            and _without(e, swapped) == _without(e, known)
            and set(swapped.bind_set) & set(e.given)
        ):
            return failed(
                f"{what} brings the rows of {bound(known.bind_set, known.bindings[0])}", request_of(swapped)
            )
    if any(s.good for _, s in e.other_case):
        return PASSED
    return skipped(cut_of(s for _, s in e.other_case) or "the lookup in other case could not be read")


def _all_given(e: Evidence, lookup: Lookup) -> bool:
    return set(lookup.bind_set) <= set(e.given)


def _same_rows(e: Evidence, lookup: Lookup) -> bool:
    return any(
        _without(e, known) == _without(e, lookup) for known in e.good if known.bind_set == lookup.bind_set
    )


def _without(e: Evidence, lookup: Lookup) -> list[Row]:
    """The rows without what was filled in from the binding."""
    kept = [n for n, name in enumerate(e.relation.schema.names) if name not in e.given]
    return [tuple(row[n] for n in kept) for row in lookup.rows]


def checks() -> Iterator[Check]:
    yield Check(
        "bindings-sent",
        "another binding makes another request",
        "write {field} where the site expects its value",
        _bindings_sent,
        after=("request-written",),
    )
    yield Check(
        "rows-found",
        "bindings that the site knows bring rows",
        "look at the reply: rows may have to name another place, or the examples are out of date",
        _rows_found,
        after=("error-in-disguise",),
    )
    yield Check(
        "bindings-echo",
        "every row of a lookup has the values that were asked for",
        "send the binding in the parameter that the site filters by; if it only searches, declare exact: false",
        _bindings_echo,
    )
    yield Check(
        "unknown-binding",
        "a binding that nobody has brings no rows, and no error",
        "find out which parameter the site filters by",
        _unknown_binding,
        after=("bindings-echo", "bindings-sent", "throttling-declared", "pace-borne"),
    )
    yield Check(
        "case-matters",
        "rows of a text in other case do not pass for rows of this one",
        "use the site's exact search; if it has none, declare exact: false, and read the field from the rows",
        _case_matters,
        after=("bindings-echo", "unknown-binding", "bindings-sent"),
    )
