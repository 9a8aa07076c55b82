"""A block that cannot be answered, explained: what is missing, who could provide it, what to add to the
query.
"""

from __future__ import annotations

from collections.abc import Sequence

from mediator.binding.choice import reachable
from mediator.binding.model import Provider
from mediator.binding.providers import inputs_for
from mediator.catalog.bindfields import EQUAL, STARTS, operator_of, parted, shown
from mediator.catalog.model import AccessMethod, Catalog, Relation
from mediator.errors import Unanswerable
from mediator.query.model import Alias, Block, Column
from mediator.query.types import family


def unanswerable(
    block: Block, providers: Sequence[Sequence[Provider]], sql: str, catalog: Catalog | None
) -> Unanswerable:
    """Names every alias that cannot be asked for reasons of its own, and those that only wait behind them."""
    reached = reachable(providers)
    roots, waiting = _parted(block, providers, reached)
    lines = [line for root in roots for line in _advice(block, root, reached, catalog)]
    if waiting:
        mended = "that is" if len(roots) == 1 else "these are"
        lines.append(f"{' and '.join(map(called, waiting))} can be asked once {mended} mended.")
    message = "; ".join(f"{called(root)} {_needs(block, root, reached)}" for root in roots)
    return Unanswerable(message, sql=sql, position=roots[0].position, hint="\n".join(lines))


def called(alias: Alias) -> str:
    """An alias as the user knows it."""
    name = alias.relation.name
    return name if alias.name == name else f"{name} ({alias.name})"


def fields_of(method: AccessMethod) -> str:
    """What an access method must be given, in words."""
    any_of = [spelt(name) for name in method.any_of]
    some = f"one of {', '.join(any_of)}" if len(any_of) > 1 else "".join(any_of)
    return " and ".join([*map(spelt, method.required), *([some] if some else [])])


def spelt(name: str) -> str:
    """A bind-field in words: its name, and what it is compared with if it has an operator."""
    return name if operator_of(name) == EQUAL else shown(name)


def _parted(
    block: Block, providers: Sequence[Sequence[Provider]], reached: int
) -> tuple[list[Alias], list[Alias]]:
    """Stuck aliases: those to be mended, and those that this frees. What has no provider at all comes
    first."""
    stuck = [a for a in block.aliases if not reached >> a.number & 1]
    roots: list[Alias] = []
    freed = reached
    for alias in sorted(stuck, key=lambda a: bool(providers[a.number])):
        if not freed >> alias.number & 1:
            roots.append(alias)
            freed = reachable(providers, given=freed | 1 << alias.number)
    return roots, [a for a in stuck if a not in roots]


def _needs(block: Block, alias: Alias, reached: int) -> str:
    """`needs isbn and library_id (access method lookup), and nothing in the query gives library_id`."""
    parts = [f"{fields_of(m)} (access method {m.name})" for m in alias.relation.methods]
    missing = [f for m in alias.relation.methods for f in _missing(block, alias, m, reached)]
    return (
        f"needs {', or '.join(parts)}, and nothing in the query gives "
        f"{' or '.join(dict.fromkeys(map(spelt, missing)))}"
    )


def _missing(block: Block, alias: Alias, method: AccessMethod, reached: int) -> list[str]:
    required = [f for f in method.required if not _given(block, Column(alias.number, f), reached)]
    some = [f for f in method.any_of if _given(block, Column(alias.number, f), reached)]
    return required + ([] if some else list(method.any_of))


def _given(block: Block, column: Column, reached: int) -> bool:
    return any(i.column is None or reached >> i.column.alias & 1 for i in inputs_for(block, column))


def _advice(block: Block, alias: Alias, reached: int, catalog: Catalog | None) -> list[str]:
    missing = [f for m in alias.relation.methods for f in _missing(block, alias, m, reached)]
    return [line for f in dict.fromkeys(missing) for line in _for_field(block, alias, f, catalog)]


def _for_field(block: Block, alias: Alias, field: str, catalog: Catalog | None) -> list[str]:
    if operator_of(field) != EQUAL:
        return [_for_bound(alias, field)]
    name = f"{alias.name}.{field}"
    waiting = [i.column for i in inputs_for(block, Column(alias.number, field)) if i.column is not None]
    lines = []
    for column in waiting:
        other = called(block.aliases[column.alias])
        lines.append(f"{name} would come from {_named(block, column)}, but {other} cannot be asked itself.")
    ways = _in_query(block, alias, field) or _in_catalog(block, alias, field, catalog)
    ways.append(f"add WHERE {name} = ..., or {name} IN (...)")
    return [*lines, f"To give {field}: {'; or '.join(ways)}."]


def _for_bound(alias: Alias, name: str) -> str:
    """A bound comes from the query itself: from what it compares with a constant."""
    field, operator = parted(name)
    column = f"{alias.name}.{field}"
    written = f"{column} LIKE '...%'" if operator == STARTS else f"{column} {operator} ..."
    return f"To give {spelt(name)}: add WHERE {written}, or {column} = ...."


def _in_query(block: Block, alias: Alias, field: str) -> list[str]:
    """Joins with what the query has already."""
    joined = {i.column for i in inputs_for(block, Column(alias.number, field))}
    return [
        f"add {other.name}.{theirs} = {alias.name}.{field}"
        for other in block.aliases
        if other.number != alias.number
        for theirs in _alike(other.relation, alias.relation, field)
        if Column(other.number, theirs) not in joined
    ]


def _in_catalog(block: Block, alias: Alias, field: str, catalog: Catalog | None) -> list[str]:
    """Joins with relations that the query has not."""
    there = {a.relation.name for a in block.aliases}
    return [
        f"join it with {relation.name} (ON {relation.name}.{theirs} = {alias.name}.{field})"
        for relation in (catalog.relations if catalog else {}).values()
        if relation.name not in there
        for theirs in _alike(relation, alias.relation, field)
    ]


def _alike(relation: Relation, wanting: Relation, field: str) -> list[str]:
    """Fields of a relation that look like the one that is missing: of its name, or as author_id is to
    authors.id."""
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
