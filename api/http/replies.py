"""JSON to clients, spelt as everywhere else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import Response

from api.cells import json_of


def reply(said: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(json_of(said), status, dict(headers or {}), "application/json")
