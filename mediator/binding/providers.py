"""Every way to ask for an alias's rows, given what the block knows to be equal. Which of them to take is
`choice.py`'s."""

from __future__ import annotations

from itertools import islice, product

from mediator.binding.model import Input, Provider
from mediator.catalog.model import AccessMethod, BindSet
from mediator.query.model import Block, Column

# Combinations of inputs looked at per bind set; past these, more of the same.
_MOST = 32


def providers_of(block: Block, alias: int) -> list[Provider]:
    """All providers of one alias, preferred first, whether or not their inputs can be had."""
    found = [p for method in block.aliases[alias].relation.methods for p in _of_method(block, alias, method)]
    return sorted(_undominated(found), key=lambda provider: _preference(block, provider))


def inputs_for(block: Block, column: Column) -> list[Input]:
    """Where a value for this column can come from: the constant it equals, else columns of other aliases."""
    for equal in block.classes:
        if column in equal.columns:
            if equal.constant is not None:
                return [Input(column.field, None, equal.constant)]
            return [Input(column.field, c) for c in equal.columns if c.alias != column.alias]
    return []


def _of_method(block: Block, alias: int, method: AccessMethod) -> list[Provider]:
    return [p for bind_set in method.bind_sets() for p in _of_bind_set(block, alias, method, bind_set)]


def _of_bind_set(block: Block, alias: int, method: AccessMethod, bind_set: BindSet) -> list[Provider]:
    choices = []
    for field in bind_set:
        inputs = inputs_for(block, Column(alias, field))
        if field in method.optional and field not in method.required:
            # A selection is pushed where it is known; a join column is not, for it would multiply the asks.
            inputs = [i for i in inputs if i.column is None]
        choices.append(inputs)
    return [_provider(alias, method, bind_set, inputs) for inputs in islice(product(*choices), _MOST)]


def _provider(alias: int, method: AccessMethod, bind_set: BindSet, inputs: tuple[Input, ...]) -> Provider:
    depends = 0
    for given in inputs:
        if given.column is not None:
            depends |= 1 << given.column.alias
    return Provider(alias, method, bind_set, inputs, depends)


def _undominated(found: list[Provider]) -> list[Provider]:
    """Without those that push fewer optional constants than another that is else the same."""

    def core(provider: Provider) -> tuple[object, ...]:
        must = {*provider.method.required, *provider.method.any_of}
        return (
            provider.method.name,
            *(i for i in provider.inputs if i.field in must or i.column is not None),
        )

    fullest: dict[tuple[object, ...], int] = {}
    for provider in found:
        key = tuple(map(repr, core(provider)))
        fullest[key] = max(fullest.get(key, 0), len(provider.bind_set))
    return [p for p in found if len(p.bind_set) == fullest[tuple(map(repr, core(p)))]]


def _preference(block: Block, provider: Provider) -> tuple[int, ...]:
    """At plan time, before anything was measured: constants, then scans, then what waits for others, for
    those that are there at once (a list's values, say) rather than for a source."""
    if provider.depends:
        kind = 2
    else:
        kind = 0 if provider.method.kind == "index" else 1
    remote = [a for a in block.aliases if provider.depends >> a.number & 1 and a.relation.literal is None]
    waits = provider.depends.bit_count()
    return (kind, len(remote), waits, -provider.constants, -provider.method.batch_size)
