"""Every way to ask for an alias's rows, given what the block knows to be equal. Which of them to take is
`choice.py`'s."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice, product

from mediator.binding.model import Input, Provider
from mediator.catalog.bindfields import EQUAL, field_of, follows, operator_of, parted
from mediator.catalog.model import AccessMethod, BindSet
from mediator.query.bounded import bound_for
from mediator.query.model import Block, Column

# Combinations of inputs looked at per bind set; past these, more of the same.
_MOST = 32


def providers_of(block: Block, alias: int) -> list[Provider]:
    """All providers of one alias, preferred first, whether or not their inputs can be had."""
    found = [p for method in block.aliases[alias].relation.methods for p in _of_method(block, alias, method)]
    return sorted(found, key=lambda provider: _preference(block, provider))


def inputs_for(block: Block, column: Column) -> list[Input]:
    """Where a value for this bind-field can come from: the constant it equals, else columns of other aliases; or, where
    it has an operator, the narrowest bound."""
    if operator_of(column.field) != EQUAL:
        bound = bound_for(block, column.alias, column.field)
        return [] if bound is None else [Input(column.field, None, bound)]
    for equal in block.classes:
        if column in equal.columns:
            if equal.constant is not None:
                return [Input(column.field, None, equal.constant)]
            return [Input(column.field, c) for c in equal.columns if c.alias != column.alias]
    return []


def _of_method(block: Block, alias: int, method: AccessMethod) -> list[Provider]:
    return [p for bind_set in method.bind_sets() for p in _of_bind_set(block, alias, method, bind_set)]


def _of_bind_set(block: Block, alias: int, method: AccessMethod, bind_set: BindSet) -> list[Provider]:
    must = [inputs_for(block, Column(alias, field)) for field in bind_set]
    pushed = _pushed(block, alias, method, bind_set)
    return [_provider(alias, method, (*inputs, *pushed)) for inputs in islice(product(*must), _MOST)]


def _pushed(block: Block, alias: int, method: AccessMethod, bind_set: BindSet) -> list[Input]:
    """Optional bind-fields that the query gives a constant for.

    A selection is pushed where it is known; a join column is not, for it would multiply the asks. Where the value
    itself can be pushed, its bounds say nothing more, nor does a bound that follows from another.
    """
    known = {
        name: given
        for name in method.optional
        if name not in bind_set
        for given in inputs_for(block, Column(alias, name))
        if given.column is None
    }
    bounds = {
        name: given.constant
        for name, given in known.items()
        if operator_of(name) != EQUAL and field_of(name) not in known.keys() | set(bind_set)
    }
    return [
        given
        for name, given in known.items()
        if operator_of(name) == EQUAL or (name in bounds and not _needless(name, bounds))
    ]


def _needless(name: str, bounds: Mapping[str, object]) -> bool:
    """Whether the other bounds on the field say as much."""
    return follows(name, bounds[name], {parted(other): bounds[other] for other in bounds if other != name})


def _provider(alias: int, method: AccessMethod, inputs: tuple[Input, ...]) -> Provider:
    inputs = tuple(sorted(inputs, key=lambda given: given.field))
    depends = 0
    for given in inputs:
        if given.column is not None:
            depends |= 1 << given.column.alias
    return Provider(alias, method, tuple(given.field for given in inputs), inputs, depends)


def _preference(block: Block, provider: Provider) -> tuple[int, ...]:
    """At plan time, before anything was measured: constants, then scans, then what waits for others, for
    those that are there at once (a list's values, say) rather than for a source. Last what does not bring all rows."""
    if provider.depends:
        kind = 2
    else:
        kind = 0 if provider.method.kind == "index" else 1
    remote = [a for a in block.aliases if provider.depends >> a.number & 1 and a.relation.literal is None]
    waits = provider.depends.bit_count()
    some = provider.method.proves != "all"
    return (some, kind, len(remote), waits, -provider.constants, -provider.method.batch_size)
