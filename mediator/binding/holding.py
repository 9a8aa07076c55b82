"""What is stored of a relation and need not be asked, as an estimate sees it."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

import pyarrow as pa

from mediator.catalog.model import BindSet
from mediator.catalog.wrapper import Binding


@dataclass(frozen=True)
class Holding:
    """`covered` are the lookups that are answered already, and fresh."""

    count: int = 0  # of its rows
    whole: bool = False  # these are all rows there are
    rows: pa.Table | None = None  # all of them, where they are not too many to be looked at
    covered: Mapping[BindSet, Set[Binding]] = field(default_factory=dict)

    def covers(self, bind_set: BindSet, binding: Binding) -> bool:
        """Whether a lookup costs nothing, because it, or one that asked for more, is answered."""
        if self.whole:
            return True
        values = dict(zip(bind_set, binding, strict=True))
        return any(
            tuple(values[f] for f in fewer) in bindings
            for fewer, bindings in self.covered.items()
            if all(f in values for f in fewer)
        )
