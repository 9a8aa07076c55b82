"""What comes: fields, types, keys; and that mirrors and ways in agree about it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from mediator.access.web.quoting import quoted
from mediator.catalog.bindfields import EQUAL, field_of, operator_of
from mediator.errors import (
    Endless,
    FieldMissing,
    Miscounted,
    Mistyped,
    SchemaChanged,
    SourceError,
    Unreadable,
)
from wrappers.conformance.asking import Lookup, Row
from wrappers.conformance.evidence import Evidence, bound, request_of, said
from wrappers.conformance.finding import PASSED, Check, Look, failed, not_for, skipped

_TELLING = 3  # rows by which a field that is always NULL is noticed


def _read_with(e: Evidence, *kinds: type[SourceError], but: tuple[type[SourceError], ...] = ()) -> Look:
    """Whether a lookup that should have worked failed in one of these ways."""
    for lookup, error in e.failures():
        if isinstance(error, kinds) and not isinstance(error, but):
            return failed(error.message, request_of(lookup))
    return PASSED if e.good else e.nothing_read()


def _replies_read(e: Evidence) -> Look:
    return _read_with(e, Unreadable, SchemaChanged, but=(FieldMissing, Mistyped, Miscounted, Endless))


def _fields_present(e: Evidence) -> Look:
    return _read_with(e, FieldMissing)


def _types_hold(e: Evidence) -> Look:
    return _read_with(e, Mistyped)


def _numbers_finite(e: Evidence) -> Look:
    for lookup in e.good:
        for row in lookup.rows:
            for name, value in zip(e.relation.schema.names, row, strict=True):
                if isinstance(value, float) and not math.isfinite(value):
                    return failed(f"{name} is {value} in {said(row)}", request_of(lookup))
    return PASSED if e.good else e.nothing_read()


def _text_sound(e: Evidence) -> Look:
    for lookup in e.good:
        for row in lookup.rows:
            for name, value in zip(e.relation.schema.names, row, strict=True):
                if isinstance(value, str) and not value.isascii() and (why := _garbled(value)):
                    return failed(f"{name} is {quoted(value)}: {why}", request_of(lookup))
    return PASSED if e.good else e.nothing_read()


def _garbled(text: str) -> str:
    """How a text shows that it was read in another encoding than it was written in."""
    if "\ufffd" in text:
        return "a character in it was lost"
    if any("\x80" <= c < "\xa0" for c in text):
        return "there are control characters in it, as where one encoding is read as another"
    for encoding in ("cp1252", "latin-1"):
        try:
            meant = text.encode(encoding).decode()
        except UnicodeError:
            continue
        if meant != text:
            return f"it looks like {quoted(meant)} in UTF-8, read as {encoding}"
    return ""


def _never_null(e: Evidence) -> Look:
    kept = {*e.relation.key, *(field_of(n) for n in (*e.method.required,))}
    if not kept:
        return not_for("there is no key, and nothing is bound")
    places = [(name, e.relation.schema.names.index(name)) for name in kept]
    for lookup in e.good:
        for row in lookup.rows:
            for name, place in places:
                if row[place] is None:
                    return failed(f"{name} is NULL in {said(row)}", request_of(lookup))
    return PASSED if e.good else e.nothing_read()


def _sometimes_there(e: Evidence) -> Look:
    rows = [row for lookup in e.good for row in lookup.rows]
    if not e.good:
        return e.nothing_read()
    if len(set(rows)) < _TELLING:
        return skipped(f"only {len(set(rows))} different rows came: too few to tell by")
    for place, name in enumerate(e.relation.schema.names):
        if name not in e.optional and all(row[place] is None for row in rows):
            shows = next(lookup for lookup in e.good if lookup.rows)
            return failed(f"{name} is NULL in all of {len(rows)} rows", request_of(shows))
    return PASSED


def _key_unique(e: Evidence) -> Look:
    if not e.relation.key:
        return not_for("there is no key")
    if not e.good:
        return e.nothing_read()
    for mirror in e.method.mirrors:
        first: dict[Row, Row] = {}
        for lookup in e.good:
            for row in lookup.rows if lookup.mirror == mirror else ():
                key = key_of(e, row)
                if first.setdefault(key, row) != row:
                    return failed(
                        f"two rows have the key {key!r}: {said(first[key])} and {said(row)}",
                        request_of(lookup),
                    )
    return PASSED


def key_of(e: Evidence, row: Row) -> Row:
    """The key of a row; the whole row where no key is declared."""
    return tuple(row[e.relation.schema.names.index(name)] for name in e.relation.key) or row


def _mirrors_agree(e: Evidence) -> Look:
    if len(e.method.mirrors) < 2:
        return not_for("there is one mirror")
    compared = 0
    for lookup in e.good:
        for other in e.good:
            same = (other.bind_set, other.bindings) == (lookup.bind_set, lookup.bindings)
            if not same or other.mirror == lookup.mirror:
                continue
            if not (lookup.whole and other.whole):
                continue
            compared += 1
            if missing := Counter(lookup.rows) - Counter(other.rows):
                return failed(
                    f"{lookup.mirror.source} has {said(next(iter(missing)))}, {other.mirror.source} does not"
                    + _for(lookup),
                    request_of(other),
                )
    if compared:
        return PASSED
    return e.nothing_read() if not e.good else skipped("nothing was read to its end at two mirrors")


def _ways_agree(e: Evidence) -> Look:
    """Every row that another way brought, and that a lookup of this one asked for, is among its rows."""
    if not e.others:
        return not_for("there is one way in")
    theirs = [row for other in e.others for lookup in other.good for row in lookup.rows]
    compared = 0
    for mine in e.good:
        if not mine.whole or any(operator_of(n) != EQUAL for n in mine.bind_set):
            continue
        here = set(mine.rows)
        places = [e.place(n) for n in mine.bind_set]
        for row in theirs:
            if tuple(row[p] for p in places) != mine.bindings[0]:
                continue
            compared += 1
            if row not in here:
                return failed(
                    f"{said(row)} came another way, and not here{_for(mine)}: EOT is said too early, or they differ",
                    request_of(mine),
                )
    if compared:
        return PASSED
    return (
        e.nothing_read()
        if not e.good
        else skipped("no row came by two ways", "add examples that are in both")
    )


def _for(lookup: Lookup) -> str:
    return f", for {bound(lookup.bind_set, lookup.bindings[0])}" if lookup.bind_set else ""


def checks() -> Iterator[Check]:
    yield from _of_one_reply()
    yield from _of_several()


def _of_one_reply() -> Iterator[Check]:
    yield Check(
        "replies-read",
        "what the site says to a known binding can be read",
        "compare the reply with what kind, rows and charset declare",
        _replies_read,
        after=("throttling-declared",),
    )
    yield Check(
        "fields-present",
        "every row has the declared fields",
        "give the field's place in reply.fields; if it may be missing, name it in reply.optional",
        _fields_present,
    )
    yield Check(
        "types-hold",
        "every value is of the declared type",
        "declare the type that the site sends; string takes every text",
        _types_hold,
    )
    yield Check(
        "numbers-finite",
        "no number is NaN or infinite",
        "declare the field as string, or ask the site to leave such values empty",
        _numbers_finite,
    )
    yield Check(
        "text-sound",
        "texts are in the encoding that the site names",
        "the site names the wrong charset in Content-Type: it has to be told",
        _text_sound,
    )
    yield Check(
        "never-null",
        "what tells rows apart, and what is bound, is never NULL",
        "give the field's place in reply.fields, or take it out of the key",
        _never_null,
    )
    yield Check(
        "sometimes-there",
        "no field is NULL in every row",
        "look for the field's place in the reply; if it is empty on purpose, name it in reply.optional",
        _sometimes_there,
    )


def _of_several() -> Iterator[Check]:
    yield Check(
        "key-unique",
        "no two different rows have the same key",
        "add the fields to key that tell the rows apart",
        _key_unique,
        after=("numbers-finite",),
    )
    yield Check(
        "mirrors-agree",
        "all mirrors bring the same rows",
        "leave out the mirror that is stale, or make it a method of a relation of its own",
        _mirrors_agree,
        after=("nothing-left-out", "numbers-finite", "pages-disjoint", "reading-repeats", "request-repeats"),
    )
    yield Check(
        "ways-agree",
        "a row that one way brings comes by every other way that asks for it",
        "look for a filter, a limit or a delay of one of the ways: that one says EOT too early",
        _ways_agree,
        after=(
            "bindings-echo",
            "bindings-sent",
            "error-in-disguise",
            "key-unique",
            "listing-whole",
            "mirrors-agree",
            "nothing-left-out",
            "numbers-finite",
            "pages-disjoint",
            "rows-found",
        ),
        ways=True,
    )
