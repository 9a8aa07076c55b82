"""The application: routes, errors as problem documents, and what lives as long as the server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse

from api.cells import json_of
from api.http import about, health, queries, saved
from api.http.desk import Desk
from api.http.guard import left_to_the_guard
from api.http.problems import MEDIA_TYPE, Problem
from api.http.reference import page
from api.http.requests import Asked

_ABOUT = """\
One SQL query over relations that live behind web sites. `POST /v1/queries` asks one; its answers are streamed as they
are found, and a last record says whether they are complete, and if not, exactly what is missing.
"""
_KINDS = {404: "not-found", 405: "method-not-allowed", 406: "not-acceptable", 413: "too-large"}


def application(open_desk: Callable[[], AbstractAsyncContextManager[Desk]]) -> FastAPI:
    """`open_desk` opens what the server works with, within its event loop."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_desk() as desk:
            app.state.desk = desk
            yield

    app = FastAPI(
        title="The mediator",
        version=version("mediator"),
        description=_ABOUT,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
        responses={"default": {"description": "What is wrong, and what to do", "content": _PROBLEM}},
    )
    for router in (queries.router, saved.router, about.router, health.router):
        app.include_router(router)
    app.add_exception_handler(Problem, _told)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, left_to_the_guard)
    _describe(app)

    @app.get("/docs", include_in_schema=False)
    def docs() -> HTMLResponse:
        return HTMLResponse(page(app.openapi()))

    return app


_PROBLEM = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
_PROBLEM_SCHEMA: dict[str, Any] = {
    "title": "Problem",
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "hint": {"type": "string", "description": "what to do"},
        "position": {"type": "integer", "description": "where in the statement, from 0"},
        "line": {"type": "integer"},
        "column": {"type": "integer"},
    },
}


def _describe(app: FastAPI) -> None:
    """Schemas that no signature names are put into the document by hand."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = made()
            schemas = document.setdefault("components", {}).setdefault("schemas", {})
            asked = Asked.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas |= asked.pop("$defs", {})
            schemas |= {"Asked": asked, "Problem": _PROBLEM_SCHEMA}
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


async def _told(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return Response(json_of(error.document()), error.status, error.headers, MEDIA_TYPE)


async def _not_valid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return await _told(request, queries.invalid(error.errors()))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kind = _KINDS.get(error.status_code, "invalid-request")
    detail = f"{request.method} {request.url.path}: {error.detail}"
    return await _told(request, Problem(error.status_code, kind, detail, headers=error.headers))
