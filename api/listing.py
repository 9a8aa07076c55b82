"""`mediator sources`: the relations of a catalog, and how each can be asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from rich.text import Text

from api.catalogs import NO_CATALOG
from api.cells import harmless
from api.exits import Mistake
from api.measures import measured_in_words
from mediator.access.web.quoting import bare
from mediator.binding.advice import fields_of, spelt
from mediator.catalog.bindfields import RANGES, STARTS, field_of
from mediator.catalog.ceilings import Ceilings
from mediator.catalog.measured import Measurements, Place
from mediator.catalog.model import AccessMethod, Catalog, Mirror, Relation, Source
from mediator.clock import wall
from mediator.preflight import left_today
from mediator.query import duck
from mediator.store import statistics
from mediator.store.store import must_be_store
from sources.plugins import installed

_SQL_NAMES = {
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "float": "REAL",
    "double": "DOUBLE",
    "bool": "BOOLEAN",
    "string": "VARCHAR",
    "date32[day]": "DATE",
}


def listed(catalog: Catalog, store: Path | None = None) -> Iterator[Text]:
    """Relation by relation: fields, then the ways in; with a store's folder, also what was measured of them."""
    known = _Known.of(catalog, store)
    for number, relation in enumerate(catalog.relations.values()):
        if number:
            yield Text()
        yield from _relation(relation, catalog, known)
    for why in catalog.unavailable:
        yield Text()
        yield Text(f"cannot be used: {harmless(why)}", "yellow")


def installed_plugins() -> Iterator[Text]:
    """What is installed, by name. Raises `Mistake` where nothing is."""
    plugins = installed()
    if not plugins:
        raise Mistake(f"no plugin is installed, and there is no catalog: {NO_CATALOG}")
    yield Text(
        "Plugins that are installed, to be asked with --catalog plugin:NAME; with plugins, all of them:"
    )
    for plugin in plugins:
        yield Text.assemble(
            "  ",
            (harmless(plugin.name), "bold cyan"),
            (f"   {harmless(plugin.value)}, of {plugin.brought_by}", "dim"),
        )


@dataclass(frozen=True)
class _Known:
    """What is known of the sources besides what they declare."""

    measured: Measurements | None  # none where there is no store
    left: Mapping[str, int]  # requests, today

    @classmethod
    def of(cls, catalog: Catalog, store: Path | None) -> _Known:
        now = wall()
        if store is None:
            return cls(None, left_today(catalog, None, now))
        must_be_store(store)
        return cls(statistics.load(store, now), left_today(catalog, store, now))


def _relation(relation: Relation, catalog: Catalog, known: _Known) -> Iterator[Text]:
    key = f"   key: {', '.join(relation.key)}" if relation.key else ""
    yield Text.assemble((harmless(relation.name), "bold cyan"), (key, "dim"))
    fields = ", ".join(f"{f.name} {sql_name(f.type)}" for f in relation.fields)
    yield Text(f"  {harmless(fields)}")
    for method in relation.methods:
        yield Text.assemble(
            "  ", (f"{method.kind} {harmless(method.name)}", "bold"), f": {harmless(_asked(method))}"
        )
        for mirror in method.mirrors:
            source = catalog.sources[mirror.source]
            yield Text(f"    from {harmless(_place(mirror, source, known.left.get(source.name)))}", "dim")
            if known.measured is not None:
                found = known.measured.at(Place(relation.name, method.name, source.name))
                said = measured_in_words(found) if found.requests else "never asked"
                yield Text(f"      {harmless(said)}", "dim")
    if relation.origin:
        yield Text(f"  declared in {harmless(relation.origin)}", "dim")


def _asked(method: AccessMethod) -> str:
    """`needs isbn; takes year if it is known; 20 bindings per request`."""
    needs = fields_of(method)
    parts = [f"needs {needs}" if needs else "needs nothing, gives all rows"]
    if method.optional:
        parts.append(f"takes {', '.join(_optional(method))} if known")
    if method.proves != "all":
        parts.append("may not give all rows")
    if method.at_most is not None:
        parts.append(f"{method.at_most:,} rows at most")
    if method.order:
        parts.append(f"in the order {', '.join(method.order)}")
    if method.batch_size > 1:
        parts.append(f"{method.batch_size} bindings per request")
    if len(method.mirrors) > 1:
        parts.append(f"{len(method.mirrors)} mirrors")
    return "; ".join(parts)


def _optional(method: AccessMethod) -> list[str]:
    """In words; a field that takes every order in which values may stand is named once."""
    fields = dict.fromkeys(map(field_of, method.optional))
    ranges = [f for f in fields if all(f + operator in method.optional for operator in RANGES)]
    others = [spelt(name) for name in method.optional if field_of(name) not in ranges]
    starts = [spelt(f + STARTS) for f in ranges if f + STARTS in method.optional]
    return others + starts + ([f"ranges of {', '.join(ranges)}"] if ranges else [])


def _place(mirror: Mirror, source: Source, left: int | None) -> str:
    """A source's name and address, and what it asks of its visitors."""
    limits = [f"{source.concurrency} requests at once"]
    if source.rate is not None:
        limits.append(f"{source.rate:g} a second")
    if source.daily is not None:
        limits.append(f"{source.daily:,} a day, of which {left:,} are left today")
    limits += [f"{most} a query" for most in _per_query(source.per_query)]
    if source.secrets:
        limits.append(f"logs in with {' and '.join(map(str, source.secrets))}")
    return f"{mirror.source}, {bare(mirror.base)} ({', '.join(limits)})"


def _per_query(most: Ceilings) -> Iterator[str]:
    if most.calls is not None:
        yield f"{most.calls:,} requests"
    if most.bytes is not None:
        yield f"{most.bytes:,} bytes"
    if most.seconds is not None:
        yield f"{most.seconds:g} s"


def sql_name(kind: pa.DataType) -> str:
    """A type under the name that SQL has for it, where that is another one."""
    return _SQL_NAMES.get(str(kind)) or duck.type_name(kind)
