"""`/v1/saved`: queries that are kept under a name."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Request, Response
from pydantic import ValidationError

from api.http.history import Saved
from api.http.negotiating import STREAMS, wanted
from api.http.problems import Problem
from api.http.queries import (
    ASKED,
    BEGUN,
    Accept,
    FormatOf,
    ShapeOf,
    asked_of,
    begun,
    desk_of,
    invalid,
    key_of,
)
from api.http.replies import reply
from api.http.requests import Asked, Options

router = APIRouter(prefix="/v1/saved", tags=["saved queries"])

Name = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]


@router.get("", summary="Your saved queries")
async def listed(request: Request) -> Response:
    key, desk = key_of(request, "query"), desk_of(request)
    return reply({"saved": [_document(saved) for saved in await desk.history.saved(key.name)]})


@router.put("/{name}", summary="Save a query", openapi_extra=ASKED)
async def save(request: Request, name: Name) -> Response:
    """It is planned, so that what cannot be run is not saved; a query of that name is replaced."""
    key, desk = key_of(request, "query"), desk_of(request)
    asked = await asked_of(request)
    await desk.plan(asked)
    saved = await desk.history.save(key.name, name, asked.model_dump(exclude_none=True))
    return reply(_document(saved))


@router.get("/{name}", summary="One saved query")
async def one(request: Request, name: Name) -> Response:
    return reply(_document(await _found(request, name)))


@router.delete("/{name}", summary="Forget a saved query", status_code=204)
async def forget(request: Request, name: Name) -> Response:
    key, desk = key_of(request, "query"), desk_of(request)
    if not await desk.history.forget_saved(key.name, name):
        raise _none(name)
    return Response(status_code=204)


@router.post("/{name}/queries", status_code=201, summary="Run a saved query", responses=BEGUN)
async def run(
    request: Request,
    name: Name,
    said: Annotated[Options | None, Body(description="takes the place of what was saved")] = None,
    accept: Accept = None,
    format: FormatOf = None,
    shape: ShapeOf = "objects",
) -> Response:
    """As `POST /v1/queries` does."""
    key, desk = key_of(request, "query"), desk_of(request)
    saved = await _found(request, name)
    chosen = wanted(format, accept)
    try:
        change = said.model_dump(exclude_none=True) if said is not None else {}
        asked = Asked.model_validate({**saved.request, **change})
    except ValidationError as error:
        raise invalid(error.errors(include_url=False, include_context=False, include_input=False)) from None
    started = await desk.start(asked, key, streams=chosen in STREAMS)
    return begun(request, started, chosen, shape)


async def _found(request: Request, name: str) -> Saved:
    key, desk = key_of(request, "query"), desk_of(request)
    saved = await desk.history.saved_one(key.name, name)
    if saved is None:
        raise _none(name)
    return saved


def _document(saved: Saved) -> dict[str, Any]:
    at = f"/v1/saved/{saved.name}"
    return {
        "name": saved.name,
        "request": saved.request,
        "created": saved.created,
        "changed": saved.changed,
        "links": {"self": at, "run": f"{at}/queries"},
    }


def _none(name: str) -> Problem:
    return Problem(404, "not-found", f"There is no saved query {name!r}", hint="GET /v1/saved lists yours")
