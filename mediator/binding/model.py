"""What the binding check finds, as data."""

from __future__ import annotations

from dataclasses import dataclass

from mediator.catalog.model import AccessMethod, BindSet
from mediator.query.model import Column


@dataclass(frozen=True, slots=True)
class Input:
    """Where one bind-field's value comes from: a column of another alias, or a constant.

    One with an operator has a constant.
    """

    field: str
    column: Column | None
    constant: object = None


@dataclass(frozen=True, slots=True)
class Provider:
    """One way to get all of an alias's rows that matter."""

    alias: int
    method: AccessMethod
    bind_set: BindSet
    inputs: tuple[Input, ...]  # in bind_set order
    depends: int  # bit mask of the aliases whose columns feed it; 0: a scan, or constants only

    @property
    def constants(self) -> int:
        return sum(i.column is None for i in self.inputs)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Every alias can be provided for, and how."""

    providers: tuple[tuple[Provider, ...], ...]  # per alias: all usable ones, preferred first
    chosen: tuple[Provider, ...]  # one per alias, none of which waits for itself
    order: tuple[int, ...]  # aliases, each after those that it depends on
