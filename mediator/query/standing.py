"""Could a block be answered by itself? A first look, for choosing between two ways of writing a query; the
verdict proper, with its reasons, is the room `binding`'s."""

from __future__ import annotations

from mediator.catalog.bindfields import EQUAL, operator_of
from mediator.catalog.model import AccessMethod
from mediator.query.bounded import bound_for
from mediator.query.model import Block, BlockStage, Column, Stage


def all_stand(stages: list[Stage]) -> bool:
    return all(stands(s.block) for s in stages if isinstance(s, BlockStage))


def stands(block: Block) -> bool:
    """Whether every alias has a scan, or an index that constants or other such aliases can feed."""
    if block.never:
        return True
    fed: set[int] = set()
    while True:
        more = {a.number for a in block.aliases if a.number not in fed and _reachable(block, a.number, fed)}
        if not more:
            return len(fed) == len(block.aliases)
        fed |= more


def _reachable(block: Block, alias: int, fed: set[int]) -> bool:
    return any(_usable(block, alias, method, fed) for method in block.aliases[alias].relation.methods)


def _usable(block: Block, alias: int, method: AccessMethod, fed: set[int]) -> bool:
    if method.kind == "scan":
        return True
    known = {f for f in (*method.required, *method.any_of) if _known(block, Column(alias, f), fed)}
    some = not method.any_of or any(f in known for f in method.any_of)
    return some and all(f in known for f in method.required)


def _known(block: Block, column: Column, fed: set[int]) -> bool:
    if operator_of(column.field) != EQUAL:
        return bound_for(block, column.alias, column.field) is not None
    for equal in block.classes:
        if column in equal.columns:
            return equal.constant is not None or any(c.alias in fed for c in equal.columns if c != column)
    return False
