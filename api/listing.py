"""`mediator sources`: the relations of a catalog, and how each can be asked."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from rich.text import Text

from api.cells import harmless
from mediator.binding.advice import fields_of
from mediator.catalog.model import AccessMethod, Catalog, Mirror, Relation, Source

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


def listed(catalog: Catalog) -> Iterator[Text]:
    """Relation by relation: fields, then the ways in."""
    for number, relation in enumerate(catalog.relations.values()):
        if number:
            yield Text()
        yield from _relation(relation, catalog)


def _relation(relation: Relation, catalog: Catalog) -> Iterator[Text]:
    key = f"   key: {', '.join(relation.key)}" if relation.key else ""
    yield Text.assemble((harmless(relation.name), "bold cyan"), (key, "dim"))
    fields = ", ".join(f"{f.name} {sql_name(f.type)}" for f in relation.fields)
    yield Text(f"  {harmless(fields)}")
    for method in relation.methods:
        yield Text.assemble(
            "  ", (f"{method.kind} {harmless(method.name)}", "bold"), f": {harmless(_asked(method))}"
        )
        for mirror in method.mirrors:
            yield Text(f"    from {harmless(_place(mirror, catalog.sources[mirror.source]))}", "dim")


def _asked(method: AccessMethod) -> str:
    """`needs isbn; takes year if it is known; 20 bindings per request`."""
    needs = fields_of(method)
    parts = [f"needs {needs}" if needs else "needs nothing, gives all rows"]
    if method.optional:
        parts.append(f"takes {', '.join(method.optional)} if known")
    if method.batch_size > 1:
        parts.append(f"{method.batch_size} bindings per request")
    if len(method.mirrors) > 1:
        parts.append(f"{len(method.mirrors)} mirrors")
    return "; ".join(parts)


def _place(mirror: Mirror, source: Source) -> str:
    """A source's name and address, and what it asks of its visitors."""
    limits = [f"{source.concurrency} requests at once"]
    if source.rate is not None:
        limits.append(f"{source.rate:g} a second")
    return f"{mirror.source}, {mirror.base} ({', '.join(limits)})"


def sql_name(kind: pa.DataType) -> str:
    """A type under the name that SQL has for it, where that is another one."""
    return _SQL_NAMES.get(str(kind), str(kind).upper())
