"""A block that cannot be answered, explained: what is missing, who could provide it, what to add to the query."""

from __future__ import annotations

from mediator.binding.model import Provider
from mediator.binding.providers import inputs_for
from mediator.catalog.model import AccessMethod, Catalog, Relation
from mediator.errors import Unanswerable
from mediator.query.model import Alias, Block, Column
from mediator.query.types import family


def unanswerable(
    block: Block, providers: list[list[Provider]], reached: int, sql: str, catalog: Catalog | None
) -> Unanswerable:
    """Names the first alias that cannot be asked for reasons of its own, and the others behind it."""
    stuck = [a for a in block.aliases if not reached >> a.number & 1]
    first = next((a for a in stuck if not providers[a.number]), stuck[0])
    lines = _advice(block, first, reached, catalog)
    others = [called(a) for a in stuck if a is not first]
    if others:
        lines.append(f"{' and '.join(others)} cannot be asked before that is mended.")
    message = f"{called(first)} {_needs(block, first, reached)}"
    return Unanswerable(message, sql=sql, position=first.position, hint="\n".join(lines))


def called(alias: Alias) -> str:
    """An alias as the user knows it."""
    name = alias.relation.name
    return name if alias.name == name else f"{name} ({alias.name})"


def _needs(block: Block, alias: Alias, reached: int) -> str:
    """`needs isbn and library_id (lookup), and nothing gives library_id`."""
    parts = [f"{fields_of(m)} (access method {m.name})" for m in alias.relation.methods]
    missing = list(dict.fromkeys(f for m in alias.relation.methods for f in _missing(block, alias, m, reached)))
    return f"needs {', or '.join(parts)}, and nothing in the query gives {' or '.join(missing)}"


def fields_of(method: AccessMethod) -> str:
    """What an access method must be given, in words."""
    some = f"one of {', '.join(method.any_of)}" if len(method.any_of) > 1 else "".join(method.any_of)
    return " and ".join([*method.required, *([some] if some else [])])


def _missing(block: Block, alias: Alias, method: AccessMethod, reached: int) -> list[str]:
    required = [f for f in method.required if not _given(block, Column(alias.number, f), reached)]
    some = [f for f in method.any_of if _given(block, Column(alias.number, f), reached)]
    return required + ([] if some else list(method.any_of))


def _given(block: Block, column: Column, reached: int) -> bool:
    return any(i.column is None or reached >> i.column.alias & 1 for i in inputs_for(block, column))


def _advice(block: Block, alias: Alias, reached: int, catalog: Catalog | None) -> list[str]:
    lines = []
    for method in alias.relation.methods:
        for field in _missing(block, alias, method, reached):
            lines += _for_field(block, alias, field, catalog)
    return list(dict.fromkeys(lines))


def _for_field(block: Block, alias: Alias, field: str, catalog: Catalog | None) -> list[str]:
    name = f"{alias.name}.{field}"
    waiting = [i.column for i in inputs_for(block, Column(alias.number, field)) if i.column is not None]
    lines = [
        f"{name} would come from {_named(block, c)}, but {called(block.aliases[c.alias])} cannot be asked itself."
        for c in waiting
    ]
    ways = _in_query(block, alias, field) or _in_catalog(block, alias, field, catalog)
    ways.append(f"add WHERE {name} = ..., or {name} IN (...)")
    return [*lines, f"To give {field}: {'; or '.join(ways)}."]


def _in_query(block: Block, alias: Alias, field: str) -> list[str]:
    """Joins with what the query has already."""
    joined = {i.column for i in inputs_for(block, Column(alias.number, field))}
    found = []
    for other in block.aliases:
        if other.number == alias.number:
            continue
        for theirs in _alike(other.relation, alias.relation, field):
            if Column(other.number, theirs) not in joined:
                found.append(f"add {other.name}.{theirs} = {alias.name}.{field}")
    return found


def _in_catalog(block: Block, alias: Alias, field: str, catalog: Catalog | None) -> list[str]:
    """Joins with relations that the query has not."""
    there = {a.relation.name for a in block.aliases}
    found = []
    for relation in (catalog.relations if catalog else {}).values():
        if relation.name not in there:
            for theirs in _alike(relation, alias.relation, field):
                condition = f"{relation.name}.{theirs} = {alias.name}.{field}"
                found.append(f"join it with {relation.name} (ON {condition})")
    return found


def _alike(relation: Relation, wanting: Relation, field: str) -> list[str]:
    """Fields of a relation that look like the one that is missing: by name, or as `author_id` is to authors.id."""
    kind = family(wanting.schema.field(field).type)
    same = [f.name for f in relation.fields if family(f.type) == kind]
    spelt = {field.lower(), *(f"{s}_{field}".lower() for s in _stems(wanting.name))}
    spelt |= {field.lower().removeprefix(f"{s}_") for s in _stems(relation.name)}
    return [name for name in same if name.lower() in spelt]


def _stems(name: str) -> list[str]:
    """A relation's name, and what one of its rows may be called."""
    lowered = name.lower()
    found = [lowered]
    if lowered.endswith("ies"):
        found.append(lowered[:-3] + "y")
    if lowered.endswith("s"):
        found.append(lowered[:-1])
    return found


def _named(block: Block, column: Column) -> str:
    return f"{block.aliases[column.alias].name}.{column.field}"
