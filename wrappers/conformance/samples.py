"""Bindings to try: from a method's examples, from rows that were read, from other relations of the catalog."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from random import Random

import pyarrow as pa

from mediator.catalog.bindfields import EQUAL, field_of, operator_of
from mediator.catalog.model import AccessMethod, BindSet, Catalog, Relation
from mediator.catalog.wrapper import Binding
from wrappers.conformance.asking import Row

MOST = 3  # bindings of one bind set that are tried
_FAR = 7_654_321  # added to a number, it leads where hardly anybody has rows

Seen = Mapping[str, list[Row]]  # by relation, every row that was read so far


@dataclass(frozen=True)
class Samples:
    """Known bindings of one bind set, and where they come from; `sure` if they must have rows."""

    bindings: tuple[Binding, ...] = ()
    origin: str = ""
    sure: bool = False

    def __bool__(self) -> bool:
        return bool(self.bindings)


def samples(
    catalog: Catalog, relation: Relation, method: AccessMethod, bind_set: BindSet, seen: Seen
) -> Samples:
    """The best there are: examples, then rows of the relation, then others'. A scan has its one empty binding."""
    if not bind_set:
        return Samples(((),), "the scan", sure=True)
    given = [tuple(e[f] for f in bind_set) for e in method.examples if set(bind_set) <= e.keys()]
    own = _spread(_bindings(relation, seen.get(relation.name, []), bind_set))
    lent = _borrowed(catalog, relation, bind_set, seen)
    found = tuple(dict.fromkeys([*given, *own, *lent.bindings]))[:MOST]
    origins = {"examples": bool(given), f"rows of {relation.name}": bool(own), lent.origin: bool(lent)}
    origin = ", ".join(name for name, has in origins.items() if has)
    return Samples(found, origin, sure=bool(given or own))


def _borrowed(catalog: Catalog, relation: Relation, bind_set: BindSet, seen: Seen) -> Samples:
    """Values of fields with the same name and type elsewhere. One relation that has all of them goes first."""
    wanted = {field_of(f): relation.schema.field(field_of(f)).type for f in bind_set}
    lenders: dict[str, Relation] = {}
    for other in catalog.relations.values():
        if other.name == relation.name or not seen.get(other.name):
            continue
        has = {f.name: f.type for f in other.fields}
        if all(has.get(name) == type_ for name, type_ in wanted.items()):
            return Samples(_spread(_bindings(other, seen[other.name], bind_set)), f"rows of {other.name}")
        for name, type_ in wanted.items():
            if has.get(name) == type_:
                lenders.setdefault(name, other)
    if len(lenders) < len(wanted):
        return Samples()
    chosen = [lenders[field_of(f)] for f in bind_set]
    columns = [_spread(_bindings(r, seen[r.name], (f,))) for r, f in zip(chosen, bind_set, strict=True)]
    pairs = tuple(tuple(value[0] for value in row) for row in zip(*columns, strict=False))
    names = ", ".join(dict.fromkeys(r.name for r in chosen))
    return Samples(pairs, f"rows of {names}")


def unknown(bind_set: BindSet, binding: Binding, nth: int = 1) -> Binding | None:
    """A binding that looks like this one and that no site should have rows for; None where there is none.

    A bool has no third value, and a range has rows at its other end: such values stay, the others are strange enough.
    """
    values = []
    for name, value in zip(bind_set, binding, strict=True):
        other = strange(value, nth) if operator_of(name) == EQUAL else None
        values.append(value if other is None else other)
    return None if tuple(values) == binding else tuple(values)


def strange(value: object, nth: int = 1) -> object:
    """The `nth` value of the same type and shape that is another one. None where there is no such value."""
    match value:
        case bool():
            return None
        case int():
            return value + _FAR * nth if value + _FAR * nth < 2**31 or value > 2**31 else value - _FAR * nth
        case float():
            return value + _FAR * nth + 0.123457
        case datetime():
            long_ago = datetime(1801, 2, 3, tzinfo=value.tzinfo) + timedelta(days=nth)
            return long_ago if long_ago != value else long_ago + timedelta(seconds=1)
        case date():
            day = date(1801, 2, 3) + timedelta(days=nth)
            return day if day != value else date(1800, 1, 1)
        case str() if value:
            random = Random(f"{nth} {value}")
            turned = "".join(_turned(c, random.randrange(1, 10)) for c in value)
            return turned if turned != value else f"{value}zqx{nth}"
        case _:
            return None


def in_other_case(binding: Binding) -> Binding | None:
    """The same binding with capitals for small letters and the other way round, where that is another one."""
    swapped = tuple(v.swapcase() if isinstance(v, str) else v for v in binding)
    return None if swapped == binding else swapped


def needed(method: AccessMethod, relation: Relation, bind_set: BindSet) -> str:
    """What its author would add to give this bind set something to try."""
    pairs = ", ".join(f"{_key(f)}: {_placeholder(relation.schema.field(field_of(f)).type)}" for f in bind_set)
    return f"add examples: [{{{pairs}}}] to {relation.name}.{method.name}, of something that the site has"


def _bindings(relation: Relation, rows: Iterable[Row], bind_set: BindSet) -> Iterator[Binding]:
    places = [relation.schema.names.index(field_of(f)) for f in bind_set]
    for row in rows:
        binding = tuple(row[place] for place in places)
        if None not in binding:
            yield binding


def _spread(bindings: Iterable[Binding]) -> tuple[Binding, ...]:
    """The first of them, the last, and one in the middle."""
    distinct = list(dict.fromkeys(bindings))
    places = sorted({0, len(distinct) // 2, len(distinct) - 1})
    return tuple(distinct[place] for place in places) if distinct else ()


def _turned(c: str, by: int) -> str:
    """A digit for a digit and a letter for a letter."""
    if c.isdigit() and c.isascii():
        return str((int(c) + by) % 10)
    if c.isalpha() and c.isascii():
        first = ord("a") if c.islower() else ord("A")
        return chr(first + (ord(c) - first + by) % 26)
    return c


def _key(name: str) -> str:
    return name if name.isidentifier() else f'"{name}"'


def _placeholder(type_: pa.DataType) -> str:
    return '"..."' if pa.types.is_string(type_) or pa.types.is_temporal(type_) else "..."
