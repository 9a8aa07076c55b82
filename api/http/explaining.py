"""How a query is answered, for clients: the verdict, the ways in, the estimate; and how it goes meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from api.http.desk import Desk, settings_of
from api.http.problems import problem_of
from api.http.requests import Asked
from api.http.run import Run
from mediator.answering import Planned
from mediator.binding.explain import described, explain
from mediator.binding.model import Input, Provider, Verdict
from mediator.binding.warned import warned
from mediator.catalog.model import Catalog
from mediator.errors import MediatorError
from mediator.query.functions import shown
from mediator.query.model import Block, BlockStage, Query


async def explained(desk: Desk, asked: Asked) -> dict[str, Any]:
    """Asks no source. Raises a `Problem` with the advice where the query cannot be answered."""
    desk.check_length(asked)
    mediator = desk.mediator

    def both() -> tuple[Planned, dict[str, Any]]:
        planned = mediator.planned(asked.sql, asked.values)
        return planned, _stages(planned, mediator.catalog)

    planned, stages = await desk.planned(both, asked)
    try:
        estimate = await mediator.estimate_of(planned, **settings_of(asked))
        elsewhere = await mediator.explained_of(planned, **settings_of(asked))
    except MediatorError as error:
        raise problem_of(error) from None
    said = {"answerable": True, **stages, "estimate": {**estimate.to_dict(), "line": estimate.line()}}
    if elsewhere is not None:  # what it warns of is the server's own house
        said["engine"] = {**elsewhere.data, "lines": list(elsewhere.lines)}
    return said


def live(run: Run) -> dict[str, Any]:
    """How its rows are routed as things stand, what waits and for whom."""
    return run.live.to_dict()


def _stages(planned: Planned, catalog: Catalog) -> dict[str, Any]:
    query, verdicts = planned
    stages = [
        _block(stage.name, stage.block, verdicts[stage.name])
        if isinstance(stage, BlockStage)
        else {"stage": stage.name, "kind": "sql", "sql": shown(stage.sql), "reads": list(stage.reads)}
        for stage in query.stages
    ]
    return {
        "stages": stages,
        "lines": list(_lines(query, verdicts)),
        "warnings": warned(query, verdicts, catalog),
    }


def _lines(query: Query, verdicts: dict[str, Verdict]) -> Iterator[str]:
    """For people."""
    for stage in query.stages:
        yield f"{stage.name}:"
        if isinstance(stage, BlockStage):
            yield from (f"  {line}" for line in explain(stage.block, verdicts[stage.name]))
        else:
            yield f"  {shown(stage.sql) or 'as they come'}"


def _block(name: str, block: Block, verdict: Verdict) -> dict[str, Any]:
    aliases = [
        {
            "alias": alias.name,
            "relation": alias.relation.name,
            "chosen": _provider(block, verdict.chosen[alias.number]),
            "others": [
                _provider(block, p)
                for p in verdict.providers[alias.number]
                if p != verdict.chosen[alias.number]
            ],
        }
        for alias in block.aliases
    ]
    return {"stage": name, "kind": "join", "aliases": aliases, "never": block.never}


def _provider(block: Block, provider: Provider) -> dict[str, Any]:
    return {
        "method": provider.method.name,
        "kind": provider.method.kind,
        "binds": [_input(block, i) for i in provider.inputs],
        "mirrors": [mirror.source for mirror in provider.method.mirrors],
        "line": described(block, provider),
    }


def _input(block: Block, given: Input) -> dict[str, Any]:
    if given.column is None:
        return {"field": given.field, "value": given.constant}
    return {"field": given.field, "from": f"{block.aliases[given.column.alias].name}.{given.column.field}"}
