"""`mediator explain`: how a query would be answered, in words. Nothing is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.text import Text

from api.cells import harmless
from mediator.answering import verdicts_of
from mediator.assembly import Settings
from mediator.binding.counting import Known
from mediator.binding.estimate import estimate
from mediator.binding.explain import explain
from mediator.binding.model import Verdict
from mediator.binding.warned import warned
from mediator.catalog.model import Catalog
from mediator.clock import wall
from mediator.eddy.goals.goal import Goal
from mediator.eddy.goals.words import meant, provided
from mediator.engines import LOCAL, Understood, engine_called
from mediator.preflight import allowed_by, known_of_store, left_today, relations_of
from mediator.query.functions import shown
from mediator.query.model import BlockStage, Query, SqlStage, Stage
from mediator.query.understand import understand

_INDENT = "  "


def explained(
    sql: str,
    catalog: Catalog,
    parameters: Mapping[str, str],
    said: Mapping[str, Any] | None = None,
    store: Path | None = None,
) -> Iterator[Text]:
    """Line by line. Raises a `QueryError`, with advice, where the query cannot be answered.

    `said` are settings of the query, by name; a store's folder is looked at for what the query need not ask.
    """
    query = understand(sql, catalog, parameters)
    verdicts = verdicts_of(query, catalog)
    yield Text("This query can be answered. Nothing has been asked.", "bold green")
    for stage in query.stages:
        yield Text()
        yield from _stage(stage, query, verdicts)
    yield Text()
    settings, now = Settings(**(said or {})), wall()
    known = Known()
    if store is not None:
        known = known_of_store(store, relations_of(query), now, settings.max_age)
    asked = Understood(catalog, query, verdicts, settings, known)
    yield from _estimate(asked, left_today(catalog, store, now))
    yield from _elsewhere(asked)
    for line in warned(query, verdicts, catalog):
        yield Text(harmless(f"warning: {line}"), "yellow")


def _estimate(asked: Understood, today: Mapping[str, int]) -> Iterator[Text]:
    """What it would cost, by alias and in all, and which ceilings it may reach."""
    query, verdicts, catalog, known = asked.query, asked.verdicts, asked.catalog, asked.known
    yield from _goal(query, verdicts, asked.settings.goal, known)
    found = estimate(query, verdicts, catalog.sources, known, allowed_by(asked.settings, catalog, today))
    yield Text("Estimate", "bold cyan")
    for alias in found.aliases:
        name = alias.relation if alias.alias == alias.relation else f"{alias.relation} ({alias.alias})"
        yield Text(_INDENT + harmless(f"{name}: {alias.line()}"))
    yield Text(_INDENT + found.line())
    for warning in found.warnings:
        yield Text(harmless(f"warning: {warning}"), "yellow")


def _elsewhere(asked: Understood) -> Iterator[Text]:
    """How another engine would run it, where one was said."""
    if asked.settings.engine == LOCAL:
        return
    found = engine_called(asked.settings.engine).explained(asked)
    yield Text()
    for line in found.lines:
        yield Text(harmless(line), "" if line.startswith(_INDENT) else "bold cyan")
    for warning in found.warnings:
        yield Text(harmless(f"warning: {warning}"), "yellow")


def _goal(query: Query, verdicts: Mapping[str, Verdict], goal: Goal, known: Known) -> Iterator[Text]:
    """What the goal changes, where one was said."""
    if goal == Settings().goal:
        return
    yield Text(meant(goal), "bold cyan")
    for stage in query.stages:
        if isinstance(stage, BlockStage):
            for line in provided(goal, stage.block, verdicts[stage.name], known):
                yield Text(_INDENT + harmless(line))
    yield Text()


def _stage(stage: Stage, query: Query, verdicts: Mapping[str, Verdict]) -> Iterator[Text]:
    yield Text.assemble((stage.name, "bold cyan"), (f": {_what(stage, query)}", ""))
    if isinstance(stage, BlockStage):
        for line in explain(stage.block, verdicts[stage.name]):
            warns = line.lstrip().startswith("warning:")
            yield Text(_INDENT + harmless(line), "yellow" if warns else "")
    elif stage.sql:
        yield Text(_INDENT + harmless(shown(stage.sql)), "dim")


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
