"""How a query stands, as clients see it."""

from __future__ import annotations

from typing import Any

from api.http.history import Past
from api.http.run import Run


def links(id_: str) -> dict[str, str]:
    """Where to go from a query."""
    at = f"/v1/queries/{id_}"
    return {"self": at, "results": f"{at}/results", "explain": f"{at}/explain", "retry": f"{at}/retry"}


def document(run: Run) -> dict[str, Any]:
    """Of one that runs, or whose results are kept."""
    steering = run.steering
    return {
        "id": run.id,
        "status": run.status,
        "sql": run.sql,
        "request": {k: v for k, v in run.request.items() if k != "sql"},
        "created": run.created,
        "ended": run.ended_at,
        "seconds": round(run.elapsed, 3),
        "rows": run.journal.rows,
        "first_row": None if run.first_row is None else round(run.first_row, 4),
        "steering": {
            "prefer": dict(steering.prefer),
            "pause": sorted(steering.paused),
            "boost": dict(steering.boost),
        },
        "warnings": list(run.warnings),
        "report": run.report.as_dict() | ({} if run.over.is_set() else {"complete": None}),
        "results": "kept",
        **({"retry_of": run.retry_of} if run.retry_of else {}),
        **({"problem": run.problem.document()} if run.problem else {}),
        "links": links(run.id),
    }


def history_document(past: Past) -> dict[str, Any]:
    """Of one that only the history remembers."""
    return {
        "id": past.id,
        "status": past.status,
        "sql": past.sql,
        "request": {k: v for k, v in past.request.items() if k != "sql"},
        "created": past.created,
        "ended": past.finished,
        "seconds": past.seconds,
        "rows": past.rows,
        "first_row": past.first_row,
        "report": past.report,
        "results": "gone",
        **({"retry_of": past.retry_of} if past.retry_of else {}),
        **({"problem": past.problem} if past.problem else {}),
        "links": {"self": links(past.id)["self"]},
    }
