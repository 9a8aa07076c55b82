"""The last stage: can its rows be given one batch at a time, and is anything left to do to them at all?"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from mediator.query.model import BlockStage, Column, Output, SqlStage, Stage
from mediator.query.pieces import Piece
from mediator.query.stages import Stages
from mediator.query.trees import is_aggregate, plain

_WHOLE = ("group", "having", "qualify", "windows", "order", "with_", "laterals", "sample")


def finish(stages: Stages, statement: exp.Expr, piece: Piece | None, columns: list[str]) -> list[Stage]:
    """All stages; the last gives the answers under these names."""
    if not isinstance(statement, exp.Select) or piece is None or not _row_by_row(statement, piece):
        last = stages.add_sql(statement, "answer")
        names = [c if i >= len(columns) else columns[i] for i, c in enumerate(last.schema.names)]
        if names != last.schema.names:
            quoted = ", ".join(exp.to_identifier(n, quoted=True).sql("duckdb") for n in names)
            sql = f"SELECT * FROM ({last.sql}) AS answer({quoted})"
            stages.done[-1] = replace(last, sql=sql, schema=last.schema.rename_columns(names))
        return stages.done
    limit, offset = _number(statement, "limit"), _number(statement, "offset")
    distinct = statement.args.get("distinct") is not None
    for key in ("limit", "offset", "distinct"):
        statement.set(key, None)
    return [*_streamed(stages, statement, piece, (limit, offset or 0, distinct))]


def _streamed(
    stages: Stages, statement: exp.Select, piece: Piece, cut: tuple[int | None, int, bool]
) -> list[Stage]:
    direct = _direct(stages, statement, piece)
    if direct is not None:
        stages.done[-1] = direct
        if cut == (None, 0, False):
            return stages.done
        # Nothing to compute: rows are only counted or told apart.
        last = SqlStage("answer", "", (direct.name,), direct.schema)
        stages.done.append(last)
    else:
        last = stages.add_sql(statement, "answer")
    limit, offset, distinct = cut
    stages.done[-1] = replace(last, rowwise=True, limit=limit, offset=offset, distinct=distinct)
    return stages.done


def _row_by_row(statement: exp.Select, piece: Piece) -> bool:
    """Whether each row of one finished stage gives its answers by itself."""
    if piece.stage() is None or any(statement.args.get(k) for k in _WHOLE):
        return False
    distinct = statement.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is not None:
        return False
    if any(is_aggregate(e) for e in statement.expressions):
        return False
    if any(q is not statement for q in statement.find_all(exp.Query) if not isinstance(q, exp.Table)):
        return False
    return all(statement.args.get(k) is None or _number(statement, k) is not None for k in ("limit", "offset"))


def _number(statement: exp.Select, key: str) -> int | None:
    clause = statement.args.get(key)
    value = clause.args.get("expression") if clause is not None else None
    if isinstance(value, exp.Literal) and not value.is_string and str(value.this).isdigit():
        percent = clause.args.get("limit_options") if clause is not None else None
        return None if percent else int(value.this)
    return None


def _direct(stages: Stages, statement: exp.Select, piece: Piece) -> BlockStage | None:
    """The last block with the answer's own columns as its outputs, if the select list only names columns."""
    stage = stages.done[-1]
    if statement.args.get("where") or not isinstance(stage, BlockStage) or stage.name != piece.stage():
        return None
    columns = [plain(e.this) for e in statement.expressions]
    if any(c is None for c in columns):
        return None
    have = {o.name: o.column for o in stage.block.outputs}
    chosen = [_output(have, c.name, e.alias) for c, e in zip(columns, statement.expressions, strict=True) if c]
    block = replace(stage.block, outputs=tuple(chosen))
    return BlockStage(stage.name, block, block.schema)


def _output(have: dict[str, Column], column: str, name: str) -> Output:
    return Output(have[column], name)
