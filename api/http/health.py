"""`/healthz`, `/readyz`, `/metrics`: for those who look after the server."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from api.http.metrics import MEDIA_TYPE
from api.http.problems import Problem
from api.http.queries import desk_of, key_of
from api.http.replies import reply

router = APIRouter(tags=["operation"])


@router.get("/healthz", summary="Whether the process lives")
async def healthz() -> Response:
    return reply({"status": "alive"})


@router.get("/readyz", summary="Whether it takes queries")
async def readyz(request: Request) -> Response:
    """503 while it is shutting down."""
    if desk_of(request).closing:
        raise Problem(503, "shutting-down", "The server is shutting down")
    return reply({"status": "ready"})


@router.get("/metrics", summary="For Prometheus", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    key_of(request, "metrics")
    desk = desk_of(request)
    text = desk.metrics.render(desk.mediator.statistics())
    return Response(text, media_type=MEDIA_TYPE)
