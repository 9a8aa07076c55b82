"""What can be asked: `/v1/relations`, `/v1/sources`, `/v1/cache`, and `/v1/explain`."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from fastapi import APIRouter, Request, Response

from api.http.explaining import explained
from api.http.problems import Problem
from api.http.queries import ASKED, asked_of, desk_of, key_of
from api.http.replies import reply
from api.listing import sql_name
from mediator.access import Statistics
from mediator.access.limits.breaker import State
from mediator.access.statistics import MirrorStatistics
from mediator.access.web.quoting import bare
from mediator.catalog.model import AccessMethod, Catalog, Relation, Source

router = APIRouter(prefix="/v1", tags=["what can be asked"])

_HEALTH = {State.CLOSED: "well", State.OPEN: "failing", State.PROBATION: "on probation"}
_UNTRIED = "not asked yet"


@router.get("/relations", summary="The relations, and the ways to ask for their rows")
async def relations(request: Request) -> Response:
    """Fields, access methods with their bind-fields, mirrors and their health."""
    key_of(request, "read")
    mediator = desk_of(request).mediator
    statistics = mediator.statistics()
    shown = [_relation(r, statistics) for r in mediator.catalog.relations.values()]
    return reply({"relations": shown, "unavailable": list(mediator.catalog.unavailable)})


@router.get("/relations/{name}", summary="One relation")
async def relation(request: Request, name: str) -> Response:
    key_of(request, "read")
    mediator = desk_of(request).mediator
    found = mediator.catalog.relations.get(name)
    if found is None:
        raise Problem(
            404, "not-found", f"There is no relation {name[:100]!r}", hint="GET /v1/relations lists all"
        )
    return reply(_relation(found, mediator.statistics()))


@router.get("/sources", summary="The sources, and how they are")
async def sources(request: Request) -> Response:
    """Health, breaker, latency, limits, and what is under way."""
    key_of(request, "read")
    mediator = desk_of(request).mediator
    statistics, left = mediator.statistics(), mediator.left_today()
    shown = [_source(s, mediator.catalog, statistics, left) for s in mediator.catalog.sources.values()]
    return reply({"sources": shown})


@router.get("/sources/{name}", summary="One source")
async def source(request: Request, name: str) -> Response:
    key_of(request, "read")
    mediator = desk_of(request).mediator
    found = mediator.catalog.sources.get(name)
    if found is None:
        raise Problem(
            404, "not-found", f"There is no source {name[:100]!r}", hint="GET /v1/sources lists all"
        )
    return reply(_source(found, mediator.catalog, mediator.statistics(), mediator.left_today()))


@router.get("/cache", summary="What is held, and would not be asked again")
async def cache(request: Request) -> Response:
    """Of each relation: rows, and the lookups that are complete, by what they bind."""
    key_of(request, "read")
    return reply({"relations": [held.to_dict() for held in await desk_of(request).mediator.cached()]})


@router.post("/explain", summary="How a query would be answered", openapi_extra=ASKED)
async def explain(request: Request) -> Response:
    """Takes what `POST /v1/queries` takes. Asks no source."""
    key_of(request, "query")
    return reply(await explained(desk_of(request), await asked_of(request)))


def _relation(relation: Relation, statistics: Statistics) -> dict[str, Any]:
    return {
        "name": relation.name,
        "fields": [{"name": f.name, "type": sql_name(f.type)} for f in relation.fields],
        "key": list(relation.key),
        "rows": relation.rows,
        "methods": [_method(relation, method, statistics) for method in relation.methods],
        "origin": PurePath(relation.origin).name,  # not where it lies here
    }


def _method(relation: Relation, method: AccessMethod, statistics: Statistics) -> dict[str, Any]:
    asked = [s for s in statistics.methods if (s.relation, s.method) == (relation.name, method.name)]
    mirrors = {m.source: m for s in asked for m in s.mirrors}
    return {
        "name": method.name,
        "kind": method.kind,
        "required": list(method.required),
        "any_of": list(method.any_of),
        "optional": list(method.optional),
        "batch_size": method.batch_size,
        "whole": method.proves == "all",
        "mirrors": [
            {"source": m.source, "address": bare(m.base), "health": _health(mirrors.get(m.source))}
            for m in method.mirrors
        ],
    }


def _source(source: Source, catalog: Catalog, statistics: Statistics, left: dict[str, int]) -> dict[str, Any]:
    now = next((s for s in statistics.sources if s.source == source.name), None)
    mirrors = [m for s in statistics.methods for m in s.mirrors if m.source == source.name]
    worst = max((m.state for m in mirrors), key=list(_HEALTH).index, default=None)
    asked = {} if now is None else {
        "asked": now.asked,
        "answered": now.answered,
        "failed": now.failed,
        "in_flight": now.in_flight,
        "queued": now.queued,
        "waiting": now.waiting,
        "requests": now.requests,
        "retried": now.retried,
        "rows": now.rows,
        "latency": {"count": now.latency.count, "mean": now.latency.mean, "p50": now.latency.p50,
                    "p95": now.latency.p95},
    }  # fmt: skip
    return {
        "name": source.name,
        "health": _UNTRIED if worst is None or now is None or not now.requests else _HEALTH[worst],
        "breaker": worst.value if worst is not None else State.CLOSED.value,
        "relations": _relations_of(source.name, catalog),
        "limits": {
            "concurrency": source.concurrency,
            "rate": source.rate,
            "daily": source.daily,
            "left_today": left.get(source.name),
        },
        "statistics": asked or None,
    }


def _relations_of(source: str, catalog: Catalog) -> list[str]:
    return [
        r.name
        for r in catalog.relations.values()
        if any(mirror.source == source for method in r.methods for mirror in method.mirrors)
    ]


def _health(mirror: MirrorStatistics | None) -> str:
    return _UNTRIED if mirror is None or not mirror.requests else _HEALTH[mirror.state]
