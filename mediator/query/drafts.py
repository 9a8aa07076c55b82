"""A block while it is being written: what is joined, and what is known to be equal. Rules
(`equalities.py`) fill it in, `blocks.py` turns it into the model's `Block`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from sqlglot import exp

from mediator.catalog.bindfields import EQUAL, operator_of
from mediator.catalog.model import Relation
from mediator.query import duck
from mediator.query.model import Bound, Column, Computed
from mediator.query.predicates import evaluator
from mediator.query.scope import column_of
from mediator.query.trees import Name, is_volatile, may_fail, name_of, names_in


@dataclass(frozen=True, slots=True)
class Unit:
    """One alias to be: a relation, and which of its fields each resolved name is."""

    name: str
    relation: Relation
    columns: Mapping[Name, str]
    position: int | None = None


@dataclass(slots=True)
class Draft:
    units: list[Unit]
    sql: str
    where: dict[Name, Column] = field(default_factory=dict)
    computed: dict[int, dict[str, Computed]] = field(default_factory=dict)
    constants: dict[Column, object] = field(default_factory=dict)
    choices: list[tuple[Column, pa.Array, exp.Expr]] = field(default_factory=list)  # IN-lists
    conditions: list[exp.Expr] = field(default_factory=list)
    bounds: list[Bound] = field(default_factory=list)
    never: bool = False
    mixed: list[str] = field(default_factory=list)
    made_from: dict[Column, exp.Expr] = field(default_factory=dict)  # computed columns, in resolved names
    _equal: dict[Column, Column] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number, unit in enumerate(self.units):
            self.where.update({name: Column(number, f) for name, f in unit.columns.items()})

    def add(self, unit: Unit) -> int:
        self.units.append(unit)
        number = len(self.units) - 1
        self.where.update({name: Column(number, f) for name, f in unit.columns.items()})
        return number

    def type_of(self, column: Column) -> pa.DataType:
        made = self.computed.get(column.alias, {}).get(column.field)
        return made.type if made else self.units[column.alias].relation.schema.field(column.field).type

    def fix(self, column: Column, value: object) -> None:
        """A column equals a constant; two that differ match nothing."""
        self.never |= self.constants.setdefault(column, value) != value

    def aliases_in(self, node: exp.Expr) -> set[int]:
        return {self.where[name].alias for name in names_in(node)}

    def expression_of(self, column: Column) -> exp.Expr:
        """A column, plain or computed, in resolved names."""
        if column in self.made_from:
            return exp.Paren(this=self.made_from[column].copy())
        return column_of(*next(n for n, c in self.where.items() if c == column))

    def bindable(self, column: Column) -> bool:
        """Whether a value for this column lets a source be asked."""
        methods = self.units[column.alias].relation.methods
        return any(column.field in (*m.required, *m.any_of) for m in methods)

    @property
    def ranged(self) -> bool:
        """Whether any source can be asked by more than equality."""
        methods = (m for unit in self.units for m in unit.relation.methods)
        return any(operator_of(name) != EQUAL for m in methods for name in m.bound)

    # Equality

    def equate(self, left: Column, right: Column) -> None:
        a, b = self.root(left), self.root(right)
        if a != b:
            self._equal[max(a, b)] = min(a, b)

    def root(self, column: Column) -> Column:
        while column in self._equal:
            column = self._equal[column]
        return column

    def members(self) -> dict[Column, list[Column]]:
        """Every class of equal columns, those with a constant and no equals included."""
        known = {*self._equal, *self._equal.values(), *self.constants}
        classes: dict[Column, list[Column]] = {}
        for column in sorted(known):
            classes.setdefault(self.root(column), []).append(column)
        return classes

    # Computed columns

    def type_of_expression(self, node: exp.Expr, alias: int) -> pa.DataType:
        text = self._over_fields(node, alias).sql("duckdb")
        return (
            duck.shape(f"SELECT {text} AS v FROM t", {"t": self.units[alias].relation.schema}).field(0).type
        )

    def compute(self, node: exp.Expr, alias: int) -> Column:
        """An expression over one alias as a column of it. One that may fail is of the rows that meet what was written
        before it."""
        guards = self._guards(alias) if may_fail(node) else []
        if guards:
            node = exp.Case(ifs=[exp.If(this=exp.and_(*guards), true=node)])
        name = self._over_fields(node, alias).sql("duckdb")
        if name not in self.computed.setdefault(alias, {}):
            order = list(names_in(node))
            reads = tuple(self.where[n].field for n in order)
            kind, evaluate = self.type_of_expression(node, alias), evaluator(node, order)
            made = Computed(name, kind, reads, evaluate, duck.computes(name))
            self.computed[alias][name] = made
            self.made_from[Column(alias, name)] = node
        return Column(alias, name)

    def _guards(self, alias: int) -> list[exp.Expr]:
        known = [*self.conditions, *(conjunct for _, _, conjunct in self.choices)]
        return [c for c in known if self.aliases_in(c) == {alias} and not is_volatile(c)]

    def _over_fields(self, node: exp.Expr, alias: int) -> exp.Expr:
        def renamed(part: exp.Expr) -> exp.Expr:
            if isinstance(part, exp.Column) and part.table:
                return exp.column(exp.to_identifier(self.where[name_of(part)].field, quoted=True))
            return part

        return node.copy().transform(renamed)
