"""Selects that look at one row at a time: they run batch by batch, LIMIT and DISTINCT included, and one
that only names columns of its own block needs no stage at all.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from mediator.query.model import BlockStage, Column, Output, SqlStage
from mediator.query.rowparts import row_parts
from mediator.query.stages import Stages
from mediator.query.trees import collates, has_subquery, is_aggregate, plain

_WHOLE = ("group", "having", "qualify", "windows", "order", "with_", "laterals", "sample")


def settle(stages: Stages, node: exp.Expr, wish: str, own: bool = True) -> str:
    """A query as a stage, streaming if it can; returns the stage's name."""
    if isinstance(node, exp.Select) and row_by_row(stages, node):
        return stream(stages, node, wish, own)
    return stages.add_sql(node, wish).name


def row_by_row(stages: Stages, statement: exp.Select, order: bool = False) -> bool:
    """Whether each row of one finished stage gives its answers by itself."""
    whole = [k for k in _WHOLE if statement.args.get(k) and not (order and k == "order")]
    distinct = statement.args.get("distinct")
    if whole or _only_read(stages, statement) is None or (distinct is not None and distinct.args.get("on")):
        return False
    if distinct is not None and any(collates(e) for e in statement.expressions):
        return False  # several texts may be one
    nested = any(has_subquery(part) for part in statement.iter_expressions())
    if nested or any(is_aggregate(e) for e in statement.expressions):
        return False
    return cut_of(statement) is not None


def _only_read(stages: Stages, statement: exp.Select) -> str | None:
    """The one stage that a select reads."""
    clause = statement.args.get("from_")
    if clause is None or statement.args.get("joins") or not isinstance(clause.this, exp.Table):
        return None
    return clause.this.name if stages.has(clause.this.name) else None


def cut_of(statement: exp.Expr) -> tuple[int | None, int] | None:
    """LIMIT and OFFSET as numbers; none where they are anything else."""
    numbers: list[int | None] = []
    for key in ("limit", "offset"):
        clause = statement.args.get(key)
        value = clause.args.get("expression") if clause is not None else None
        whole = isinstance(value, exp.Literal) and not value.is_string and str(value.this).isdigit()
        if clause is not None and (not whole or clause.args.get("limit_options")):
            return None
        numbers.append(int(value.this) if whole and value is not None else None)
    return numbers[0], numbers[1] or 0


def stream(stages: Stages, statement: exp.Select, wish: str = "answer", own: bool = True) -> str:
    """Adds what a row-by-row select needs; returns the name of the stage that gives its rows.

    `own` says that nothing else will read the block below, so that its outputs can be made to fit.
    """
    limit, offset = cut_of(statement) or (None, 0)
    distinct = statement.args.get("distinct") is not None
    for key in ("limit", "offset", "distinct"):
        statement.set(key, None)
    below = _direct(stages, statement) if own else None
    if below is None:
        last = replace(stages.add_sql(statement, wish), parts=row_parts(statement))
    elif limit is None and not offset and not distinct:
        return below.name
    else:
        # Nothing to compute: rows are only counted, or told apart.
        last = stages.add(SqlStage(stages.fresh(wish), "", (below.name,), below.schema))
    stages.done[-1] = replace(last, rowwise=True, limit=limit, offset=offset, distinct=distinct)
    return last.name


def _direct(stages: Stages, statement: exp.Select) -> BlockStage | None:
    """The block below with the answer's own columns as its outputs, if the select list only names columns."""
    read = _only_read(stages, statement)
    assert read is not None, "it is row by row"
    at = stages.place(read)
    stage = stages.done[at]
    columns = [plain(e.this) for e in statement.expressions]
    if statement.args.get("where") or None in columns or not isinstance(stage, BlockStage):
        return None
    if any(isinstance(s, SqlStage) and stage.name in s.reads for s in stages.done):
        return None
    have: dict[str, Column] = {o.name: o.column for o in stage.block.outputs}
    pairs = zip(columns, statement.expressions, strict=True)
    outputs = tuple(Output(have[c.name], e.alias) for c, e in pairs if c is not None)
    block = replace(stage.block, outputs=outputs)
    stages.done[at] = made = BlockStage(stage.name, block, block.schema)
    return made
