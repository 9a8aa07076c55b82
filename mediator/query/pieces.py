"""What a FROM clause has become: finished stages, joined in SQL, and where in them each column is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from mediator.query.conjuncts import together
from mediator.query.scope import column_of
from mediator.query.trees import Name, name_of


@dataclass(frozen=True, slots=True)
class Part:
    """One item of the new FROM clause."""

    kind: str  # "", or how it is joined to what stands before: INNER, LEFT, FULL
    item: exp.Expr
    on: list[exp.Expr]


@dataclass(slots=True)
class Piece:
    parts: list[Part] = field(default_factory=list)
    columns: dict[Name, Name] = field(default_factory=dict)  # resolved name -> stage and its column

    def stage(self) -> str | None:
        """The stage that this is, when it is just one."""
        alone = len(self.parts) == 1 and isinstance(self.parts[0].item, exp.Table)
        return self.parts[0].item.name if alone else None

    def widened(self, kind: str, other: Piece, on: list[exp.Expr]) -> Piece:
        """This joined with another, which is in brackets if it has several parts."""
        item = other.parts[0].item if len(other.parts) == 1 else other.bracketed()
        return Piece([*self.parts, Part(kind, item, on)], {**self.columns, **other.columns})

    def bracketed(self) -> exp.Expr:
        first, *rest = self.parts
        item = first.item.copy()
        item.set("joins", [_join(part) for part in rest])
        return exp.Subquery(this=item)

    def put_into(self, select: exp.Select) -> None:
        """Makes this the FROM clause of a select. Its columns are still to be put."""
        first, *rest = self.parts
        select.set("from_", exp.From(this=first.item))
        select.set("joins", [_join(part) for part in rest] or None)

    def put_columns(self, node: exp.Expr) -> None:
        """Every column of this piece, wherever it is read below the node, by its new name."""
        for column in list(node.find_all(exp.Column)):
            place = self.columns.get(name_of(column)) if column.table else None
            if place is not None and "placed" not in column.meta:
                # Once only: an inner sub-query's columns may go by the very names that a piece around it
                # maps.
                column.meta["placed"] = True
                column.set("table", exp.to_identifier(place[0], quoted=True))
                column.set("this", exp.to_identifier(place[1], quoted=True))

    def distinct(self, wanted: Iterable[Name]) -> exp.Select:
        """The distinct values of some columns, as `output_name` spells them."""
        select = self.everything(wanted)
        select.set("distinct", exp.Distinct())
        return select

    def everything(self, wanted: Iterable[Name]) -> exp.Select:
        """A select of some columns."""
        items: list[exp.Expr] = [
            exp.Alias(this=column_of(*name), alias=exp.to_identifier(f"{name[0]}.{name[1]}", quoted=True))
            for name in wanted
        ] or [exp.Alias(this=exp.Literal.number(1), alias=exp.to_identifier("one", quoted=True))]
        select = exp.Select(expressions=items)
        copy = Piece(
            [Part(p.kind, p.item.copy(), [c.copy() for c in p.on]) for p in self.parts], self.columns
        )
        copy.put_into(select)
        copy.put_columns(select)
        return select

    def expressions(self) -> list[exp.Expr]:
        """All that may read from outside: sub-queries and join conditions."""
        items = [p.item for p in self.parts if not isinstance(p.item, exp.Table)]
        return [*items, *(c for p in self.parts for c in p.on)]

    def filtered(self, alias: str, wanted: Iterable[Name], conjuncts: list[exp.Expr]) -> Piece:
        """This under conditions of its own, as one sub-query."""
        wanted = list(wanted)
        select = self.everything(wanted)
        select.set("where", exp.Where(this=together([c.copy() for c in conjuncts])))
        self.put_columns(select)
        table = exp.Subquery(this=select, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
        return Piece([Part("", table, [])], {n: (alias, f"{n[0]}.{n[1]}") for n in wanted})


def _join(part: Part) -> exp.Join:
    kind = {"LEFT": {"side": "LEFT"}, "FULL": {"side": "FULL"}}.get(part.kind, {})
    on = together(part.on)
    if on is None and not kind:
        return exp.Join(this=part.item, kind="CROSS")
    return exp.Join(this=part.item, on=on if on is not None else exp.true(), **kind)
