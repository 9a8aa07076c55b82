"""Blocks written: units and conjuncts in, the model's `Block` out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise

import pyarrow as pa
import pyarrow.types as pt
from sqlglot import exp

from mediator.catalog.model import AccessMethod, Field, Relation
from mediator.errors import TypeMismatch
from mediator.query.bounded import fits
from mediator.query.drafts import Draft, Unit
from mediator.query.equalities import absorb
from mediator.query.functions import functions_in
from mediator.query.model import ROW_ID, Alias, Block, Column, Comparison, EqualClass, Output, Predicate
from mediator.query.parameters import literal
from mediator.query.predicates import compiled
from mediator.query.trees import Name, may_fail, name_of, plain, position_of, text_of, why_costly
from mediator.query.types import family

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPERATORS: dict[type[exp.Expr], str] = {exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}


def write_block(
    units: list[Unit], conjuncts: Iterable[exp.Expr], wanted: Iterable[Name], rows: Iterable[int], sql: str
) -> Block:
    """The block that joins these units under these conjuncts.

    Its outputs are the wanted names, as `output_name` spells them, and the row ids of the aliases in `rows`.
    """
    draft = Draft(list(units), sql)
    for conjunct in conjuncts:
        with placed(sql, conjunct):
            absorb(draft, conjunct)
    _bind_choices(draft)
    outputs = [Output(draft.where[n], output_name(n)) for n in dict.fromkeys(wanted)]
    outputs += [Output(Column(number, ROW_ID), row_name(units[number])) for number in rows]
    if not outputs:
        # Answers are counted even when nothing of them is shown.
        outputs = [Output(Column(0, ROW_ID), row_name(units[0]))]
    predicates = _predicates(draft)  # may find that nothing can match
    bounds = tuple(draft.bounds)
    mixed = tuple(draft.mixed)
    return Block(_aliases(draft), _classes(draft), predicates, tuple(outputs), draft.never, bounds, mixed)


@contextmanager
def placed(sql: str, node: exp.Expr) -> Iterator[None]:
    """A type that does not fit is told with the place of the condition that it is in."""
    try:
        yield
    except TypeMismatch as error:
        position = error.position if error.position is not None else position_of(node)
        raise TypeMismatch(error.message, sql=sql, position=position) from None


def output_name(name: Name) -> str:
    return f"{name[0]}.{name[1]}"


def row_name(unit: Unit) -> str:
    return f"{unit.name}.{ROW_ID}"


def engine_relation(name: str, schema: pa.Schema, rows: pa.RecordBatch | None = None) -> Relation:
    """A relation whose rows the engine itself delivers: a stage's, or a literal's."""
    fields = tuple(Field(f.name, f.type) for f in schema)
    method = AccessMethod("stage" if rows is None else "literal", "scan", (), None)
    return Relation(name, fields, (method,), literal=rows)


def _bind_choices(draft: Draft) -> None:
    """IN-lists: where they let a source be asked, a relation of their values to join with; else a
    condition."""
    for column, values, conjunct in draft.choices:
        members = draft.members().get(draft.root(column), [column])
        if not any(draft.bindable(m) for m in members) or any(m in draft.constants for m in members):
            draft.conditions.append(conjunct)
            continue
        name = f"{draft.units[column.alias].name}.{column.field} in list"
        while any(u.name == name for u in draft.units):
            name += "'"
        rows = pa.record_batch([values], names=["value"])
        number = draft.add(Unit(name, engine_relation(name, rows.schema, rows), {(name, "value"): "value"}))
        draft.equate(column, Column(number, "value"))


def _aliases(draft: Draft) -> tuple[Alias, ...]:
    return tuple(
        Alias(number, unit.name, unit.relation, tuple(draft.computed.get(number, {}).values()), unit.position)
        for number, unit in enumerate(draft.units)
    )


def _classes(draft: Draft) -> tuple[EqualClass, ...]:
    classes = []
    for members in draft.members().values():
        known = [draft.constants[m] for m in members if m in draft.constants]
        classes.append(EqualClass(tuple(members), known[0] if known else None))
    return tuple(classes)


def _predicates(draft: Draft) -> tuple[Predicate, ...]:
    found = []
    lists = [conjunct for _, _, conjunct in draft.choices]
    for number, node in enumerate([*draft.conditions, *_implied(draft)]):
        before = [*lists, *draft.conditions[:number]]
        guards = [p for p in before if p is not node and draft.aliases_in(p) <= draft.aliases_in(node)]
        with placed(draft.sql, node):
            found.append(_predicate(draft, number, node, guards if may_fail(node) else []))
    return tuple(found)


def _implied(draft: Draft) -> list[exp.Expr]:
    """What follows from the classes and can be tested on one alias alone: a constant, two columns of one
    row."""
    found: list[exp.Expr] = []
    for members in draft.members().values():
        given = [m for m in members if m in draft.constants]
        draft.never |= any(draft.constants[m] != draft.constants[given[0]] for m in given)
        for member in members:
            if given and pt.is_integer(draft.type_of(member)):
                # What one of them has room for may be too much for another: no source is asked for that.
                draft.never |= not fits(draft.constants[given[0]], draft.type_of(member))
            if given and member not in draft.constants:
                value = literal(draft.constants[given[0]])
                found.append(exp.EQ(this=draft.expression_of(member), expression=value))
        for first, second in pairwise(members):
            if first.alias == second.alias:
                left, right = draft.expression_of(first), draft.expression_of(second)
                found.append(exp.EQ(this=left, expression=right))
    return found


def _predicate(draft: Draft, number: int, node: exp.Expr, guards: list[exp.Expr]) -> Predicate:
    """`guards` are the conditions that were written before one that may fail, to keep bad values from it."""
    tested = node
    if guards:
        sound = exp.If(this=exp.and_(*(g.copy() for g in guards)), true=node.copy())
        tested = exp.Case(ifs=[sound])
    reads, test, computes = compiled(tested, draft.where, draft.type_of)
    mask = sum(1 << alias for alias in {c.alias for c in reads})
    why = why_costly(tested)
    calls = functions_in(tested)
    seconds = sum(f.seconds or 0.0 for f in calls)
    return Predicate(
        number,
        text_of(node),
        mask,
        reads,
        test,
        _comparison(draft, node),
        bool(why),
        why,
        bool(calls),
        seconds,
        computes,
    )


def _comparison(draft: Draft, node: exp.Expr) -> Comparison | None:
    operator = _OPERATORS.get(type(node)) if isinstance(node, exp.Binary) else None
    if operator is None or not isinstance(node, exp.Binary):
        return None
    left, right = plain(node.left), plain(node.right)
    if left is None or right is None:
        return None
    a, b = draft.where[name_of(left)], draft.where[name_of(right)]
    if a.alias == b.alias or family(draft.type_of(a)) != family(draft.type_of(b)):
        return None
    return Comparison(a, operator, b) if a < b else Comparison(b, _FLIPPED[operator], a)
