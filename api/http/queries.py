"""`/v1/queries`: queries are asked, read, watched, steered, asked again and ended."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Body, Header, Query, Request, Response
from pydantic import ValidationError

from api.http.desk import Desk
from api.http.documents import document, history_document, links
from api.http.encoding import Shape, columns_of, encoder, rows_of, storable
from api.http.explaining import explained, live
from api.http.journal import Gone, batch_of
from api.http.keys import Key, Scope
from api.http.negotiating import STREAMS, Format, wanted
from api.http.places import Place
from api.http.problems import Problem
from api.http.replies import reply
from api.http.requests import Asked, Steer
from api.http.run import Run, Status
from api.http.stream import Streamed

router = APIRouter(prefix="/v1/queries", tags=["queries"])

_TEXTS = ("application/sql", "text/plain")
_MOST_PAGE = 10_000

Accept = Annotated[str | None, Header(description="what is to come back; a stream type streams at once")]
FormatOf = Annotated[Format | None, Query(description="takes the place of Accept")]
ShapeOf = Annotated[Shape, Query(description="rows as objects, or as arrays in the order of the columns")]
Id = str


def desk_of(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


def key_of(request: Request, scope: Scope) -> Key:
    """Whose request it is. Raises a `Problem` where the key is not for this."""
    key: Key = request.state.key
    key.check(scope)
    return key


async def asked_of(request: Request) -> Asked:
    """A query as JSON, or the SQL alone."""
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    body = await request.body()
    try:
        if kind in _TEXTS:
            return Asked.model_validate({"sql": body.decode()})
        if kind != "application/json":
            raise Problem(
                415, "invalid-request", f"A query is not sent as {kind[:100]}",
                hint=f"send application/json, or the SQL alone as {_TEXTS[0]}",
            )  # fmt: skip
        return Asked.model_validate_json(body)
    except UnicodeDecodeError as error:
        raise Problem(400, "invalid-request", f"The statement is not UTF-8: {error.reason}") from None
    except ValidationError as error:
        raise invalid(error.errors(include_url=False, include_context=False, include_input=False)) from None


def invalid(errors: Sequence[Any]) -> Problem:
    """What pydantic has found, for clients."""
    told = [
        {"field": ".".join(str(part) for part in e["loc"] if part != "body") or "body", "message": e["msg"]}
        for e in errors
    ]
    detail = "; ".join(f"{e['field']}: {e['message']}" for e in told[:3])
    return Problem(422, "invalid-request", detail, errors=told)


_SQL = {"schema": {"type": "string", "minLength": 1}, "example": "SELECT title FROM books LIMIT 10"}
ASKED: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/Asked"}},
            "application/sql": _SQL,
            "text/plain": _SQL,
        },
    }
}
_TEXT = {"schema": {"type": "string"}}
_BYTES = {"schema": {"type": "string", "format": "binary"}}
_STREAMS: dict[str, Any] = {
    "application/x-ndjson": _TEXT,
    "text/event-stream": _TEXT,
    "text/csv": _TEXT,
    "application/vnd.apache.arrow.stream": _BYTES,
}
BEGUN: dict[int | str, dict[str, Any]] = {
    200: {"description": "its answers, as they are found", "content": _STREAMS},
    201: {"description": "it runs: its status, and links"},
}
_TOLD: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "what it tells, or a page of rows",
        "content": {**_STREAMS, "application/vnd.apache.parquet": _BYTES, "application/json": {"schema": {}}},
    },
    204: {"description": "an event stream has had its end"},
}
GONE: dict[int | str, dict[str, Any]] = {204: {"description": "forgotten"}}


@router.post("", status_code=201, summary="Ask a query", openapi_extra=ASKED, responses=BEGUN)
async def ask(
    request: Request, accept: Accept = None, format: FormatOf = None, shape: ShapeOf = "objects"
) -> Response:
    """Answers with the query's status and links, or, when a stream type is wanted, with the answers at once."""
    key = key_of(request, "query")
    chosen = wanted(format, accept)
    asked = await asked_of(request)
    streams = chosen in STREAMS
    run = await desk_of(request).start(asked, key, streams=streams)
    return begun(request, run, chosen, shape)


def begun(request: Request, run: Run, chosen: Format | None, shape: Shape) -> Response:
    """What is said of a query that has just begun: its answers, or where they are."""
    location = {"Location": f"/v1/queries/{run.id}"}
    if chosen in STREAMS:
        assert chosen is not None
        return _streamed(request, run, chosen, Place(), shape, location)
    return reply(document(run), 201, location)


@router.get("", summary="Your queries, the latest first")
async def history(
    request: Request,
    status: Status | None = None,
    after: Annotated[str | None, Query(max_length=200)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Response:
    """Those that run, and those that have ended, as long as the history keeps them."""
    key = key_of(request, "query")
    desk = desk_of(request)
    page = await desk.history.page(key.name, status=status, after=after, limit=limit)
    shown = [document(desk.runs[q.id]) if q.id in desk.runs else history_document(q) for q in page.queries]
    following = None
    if page.next is not None:
        state = f"&status={status}" if status else ""
        following = f"/v1/queries?after={page.next}&limit={limit}{state}"
    return reply({"queries": shown, "next": following})


@router.get("/{id}", summary="How a query stands")
async def status(request: Request, id: Id) -> Response:
    """Its status and report; of one whose results are not kept any more, what the history says."""
    key, desk = key_of(request, "query"), desk_of(request)
    run = desk.runs.get(id)
    if run is not None and run.owner == key.name:
        return reply(document(run))
    past = await desk.history.get(key.name, id)
    if past is None:
        raise Problem(404, "not-found", "There is no such query")
    return reply(history_document(past))


@router.get("/{id}/results", summary="What a query tells", responses=_TOLD)
async def results(
    request: Request,
    id: Id,
    accept: Accept = None,
    format: FormatOf = None,
    shape: ShapeOf = "objects",
    after: Annotated[
        str | None, Query(max_length=40, description="the id of the last event that came")
    ] = None,
    last_event_id: Annotated[str | None, Header()] = None,
    limit: Annotated[int, Query(ge=1, le=_MOST_PAGE, description="rows of a page (format=json)")] = 1_000,
    wait: Annotated[float, Query(ge=0, le=60, description="seconds to wait for a page's first row")] = 10.0,
) -> Response:
    """From the beginning, or after an event; while it runs and afterwards."""
    key = key_of(request, "query")
    desk = desk_of(request)
    chosen = wanted(format, accept) or "ndjson"
    run = await desk.find(id, key)
    place = Place.read(after or last_event_id)
    if chosen == "json":
        return await _page(run, place, limit, wait, shape)
    if chosen == "parquet" and not run.over.is_set():
        raise Problem(
            409, "not-yet", "Parquet is there when the query has ended, and it still runs",
            hint="read another format as it comes, or wait", headers={"Retry-After": "1"},
        )  # fmt: skip
    if chosen == "parquet" and not storable(run.schema):
        raise Problem(
            406, "not-acceptable", "Parquet has no place for the type of a column",
            hint="read another format, or cast the column, as in v::varchar",
        )  # fmt: skip
    if place.entry > run.journal.last or place.entry < run.journal.first - 1:
        raise _not_kept()
    if chosen == "sse" and run.over.is_set() and place.entry == run.journal.last:
        return Response(status_code=204)  # by which an EventSource knows that it need not come back
    name = {"Content-Disposition": f'attachment; filename="{run.id}.parquet"'} if chosen == "parquet" else {}
    return _streamed(request, run, chosen, place, shape, name)


@router.get("/{id}/explain", summary="How a query is answered, and why so")
async def explain(request: Request, id: Id) -> Response:
    """Verdict, ways in, estimate; and how its rows are routed as it stands."""
    key, desk = key_of(request, "query"), desk_of(request)
    run = await desk.find(id, key)
    asked = Asked.model_validate(run.request)
    return reply({**await explained(desk, asked), "live": live(run)})


@router.patch("/{id}", summary="Steer a query that runs")
async def steer(request: Request, id: Id, change: Annotated[Steer, Body()]) -> Response:
    """What is preferred, paused or boosted changes the order of things at once; the answer stays what it is."""
    key = key_of(request, "query")
    desk = desk_of(request)
    run = await desk.find(id, key)
    if run.over.is_set():
        raise Problem(
            409, "not-yet", "The query has ended: there is nothing left to steer", hint="ask it anew"
        )
    await desk.planned(lambda: run.steer(change), Asked.model_validate(run.request))
    if change.stop == "enough":
        run.cancel("what was found was said to be enough")
    return reply(document(run))


@router.delete("/{id}", summary="Cancel a query, or forget one that has ended", responses=GONE)
async def delete(request: Request, id: Id) -> Response:
    """A query that runs ends with what was found so far; one that has ended is forgotten, and its results."""
    key, desk = key_of(request, "query"), desk_of(request)
    run = desk.runs.get(id)
    if run is not None and run.owner == key.name:
        if not run.over.is_set():
            run.cancel()
            await run.over.wait()
            return reply(document(run))
        await desk.forget(run)
        return Response(status_code=204)
    if not await desk.history.forget(key.name, id):
        raise Problem(404, "not-found", "There is no such query")
    return Response(status_code=204)


@router.post("/{id}/retry", status_code=201, summary="Ask again what failed", responses=BEGUN)
async def retry(
    request: Request, id: Id, accept: Accept = None, format: FormatOf = None, shape: ShapeOf = "objects"
) -> Response:
    """A query of its own that asks only what failed, and gives only the rows that the first had not given."""
    key = key_of(request, "query")
    chosen = wanted(format, accept)
    run = await desk_of(request).retry(id, key, streams=chosen in STREAMS)
    return begun(request, run, chosen, shape)


async def _page(run: Run, place: Place, limit: int, wait: float, shape: Shape) -> Response:
    """Rows after a place, as soon as there are any."""
    journal = run.journal
    rows: list[Any] = []
    at, skip = place.entry, place.rows
    end: Mapping[str, Any] | None = None
    deadline = asyncio.get_running_loop().time() + wait
    if run.over.is_set() and at >= journal.last:  # there is nothing after the end
        end = run.end_record()
    with run.read():
        while len(rows) < limit and end is None:
            news = journal.stirred()
            try:
                entry = journal.entry(at + 1)
            except Gone:
                raise _not_kept() from None
            if entry is None:
                if rows or not await _in_time(news, deadline):
                    break
                continue
            if entry.kind == "rows":
                batch = batch_of(entry, run.schema)
                some = batch.slice(skip, limit - len(rows))
                rows += rows_of(some, shape)
                skip += some.num_rows
                if skip < batch.num_rows:
                    break
            at, skip = at + 1, 0
            end = entry.body if entry.kind == "end" else None
    said: dict[str, Any] = {"query": run.id, "columns": columns_of(run.schema), "rows": rows}
    if end is None:
        after = Place(at, skip)
        style = "" if shape == "objects" else f"&shape={shape}"
        address = f"{links(run.id)['results']}?format=json&limit={limit}&wait={wait:g}&after={after}{style}"
        return reply({**said, "status": "running" if not run.over.is_set() else run.status, "next": address})
    return reply({**said, "status": end["status"], "end": end})


async def _in_time(news: asyncio.Event, deadline: float) -> bool:
    try:
        async with asyncio.timeout_at(deadline):
            await news.wait()
    except TimeoutError:
        return False
    return True


def _streamed(
    request: Request, run: Run, chosen: Format, place: Place, shape: Shape, headers: dict[str, str]
) -> Response:
    desk = desk_of(request)
    return Streamed(
        run, encoder(chosen, run.schema, shape), place, run.warnings,
        stalled=desk.limits.stalled, metrics=desk.metrics, headers=headers,
    )  # fmt: skip


def _not_kept() -> Problem:
    return Problem(
        410, "gone", "What came after this event is not kept any more",
        hint="read the results from the beginning, or run the query again: what is held is not asked again",
    )  # fmt: skip
