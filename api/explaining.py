"""`mediator explain`: how a query would be answered, in words. Nothing is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.text import Text

from api.cells import harmless
from mediator.answering import verdicts_of
from mediator.binding.explain import explain
from mediator.binding.model import Verdict
from mediator.catalog.model import Catalog
from mediator.query.model import BlockStage, Query, SqlStage, Stage
from mediator.query.understand import understand

_INDENT = "  "


def explained(sql: str, catalog: Catalog, parameters: Mapping[str, str]) -> Iterator[Text]:
    """Line by line. Raises a `QueryError`, with advice, where the query cannot be answered."""
    query = understand(sql, catalog, parameters)
    verdicts = verdicts_of(query, catalog)
    yield Text("This query can be answered. Nothing has been asked.", "bold green")
    for stage in query.stages:
        yield Text()
        yield from _stage(stage, query, verdicts)


def _stage(stage: Stage, query: Query, verdicts: Mapping[str, Verdict]) -> Iterator[Text]:
    yield Text.assemble((stage.name, "bold cyan"), (f": {_what(stage, query)}", ""))
    if isinstance(stage, BlockStage):
        for line in explain(stage.block, verdicts[stage.name]):
            warns = line.lstrip().startswith("warning:")
            yield Text(_INDENT + harmless(line), "yellow" if warns else "")
    elif stage.sql:
        yield Text(_INDENT + harmless(stage.sql), "dim")


def _what(stage: Stage, query: Query) -> str:
    """What a stage does, and when its rows come."""
    if isinstance(stage, BlockStage):
        return _joined(stage)
    reads = " and ".join(stage.reads)
    if stage.rowwise:
        return f"{_rowwise(stage)} of {reads}, as they come"
    kept = ", of which only what matters is kept meanwhile" if stage.prune else ""
    return f"SQL over all rows of {reads}{kept}; its answer comes at the end"


def _joined(stage: BlockStage) -> str:
    count = len(stage.block.aliases)
    if count == 1:
        return "rows of one relation, as they come"
    return f"a join of {count} relations, in whatever order pays; its rows come as they are found"


def _rowwise(stage: SqlStage) -> str:
    which = "different rows" if stage.distinct else "rows"
    if stage.limit is None:
        return which
    return (
        f"the first {stage.limit} {which}"
        if not stage.offset
        else f"{stage.limit} {which} after {stage.offset}"
    )
