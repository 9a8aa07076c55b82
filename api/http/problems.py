"""What is wrong with a request, as a problem document (RFC 9457) that says what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mediator.errors import (
    CatalogError,
    FunctionFailed,
    MediatorError,
    QueryError,
    TypeMismatch,
    Unanswerable,
    UnknownColumn,
    UnknownRelation,
    Unparsable,
    Unsupported,
)
from mediator.steering import CannotSteer
from pipeline.errors import NoSpark

MEDIA_TYPE = "application/problem+json"
_TYPES = "https://mediator.invalid/problems/"

_TITLES = {
    "unparsable": "Not SQL",
    "unknown-relation": "No such relation",
    "unknown-column": "No such column",
    "type-mismatch": "Types that do not go together",
    "unsupported": "SQL that is not run here",
    "bad-query": "The query cannot be run",
    "unanswerable": "No source can be asked",
    "too-hard": "Planning it takes too long",
    "no-spark": "There is no Spark",
    "invalid-request": "The request is not as it should be",
    "unauthorized": "A key is needed",
    "forbidden": "The key may not do this",
    "not-found": "Nothing there",
    "method-not-allowed": "Not to be done here",
    "not-acceptable": "No such format",
    "not-yet": "Not yet",
    "gone": "Not kept any more",
    "too-large": "Too large",
    "too-many-queries": "Too many queries",
    "misdirected": "Not the name of this server",
    "shutting-down": "Shutting down",
    "internal": "An error of the server",
}


class Problem(Exception):
    """Ends a request: `kind` is the end of its type, `hint` says what would help."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        *,
        hint: str = "",
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail
        self.hint = hint
        self.headers = dict(headers or {})
        self.more = more

    def document(self) -> dict[str, Any]:
        """For JSON."""
        hint = {"hint": self.hint} if self.hint else {}
        return {
            "type": _TYPES + self.kind,
            "title": _TITLES[self.kind],
            "status": self.status,
            "detail": self.detail,
            **hint,
            **self.more,
        }


# The first that fits.
_QUERY_ERRORS: Sequence[tuple[type[QueryError], int, str]] = (
    (Unparsable, 400, "unparsable"),
    (UnknownRelation, 400, "unknown-relation"),
    (UnknownColumn, 400, "unknown-column"),
    (TypeMismatch, 400, "type-mismatch"),
    (Unsupported, 400, "unsupported"),
    (Unanswerable, 422, "unanswerable"),
    (QueryError, 400, "bad-query"),
)


def problem_of(error: MediatorError) -> Problem:
    """What an error of the engine is to a client. What it says of the server's own house is not for clients."""
    if isinstance(error, QueryError):
        status, kind = next((status, kind) for of, status, kind in _QUERY_ERRORS if isinstance(error, of))
        where = _place(error.sql, error.position)
        return Problem(status, kind, error.message, hint=error.hint, **where)
    if isinstance(error, NoSpark):
        return Problem(
            422, "no-spark", "No query runs on Spark here",
            hint="leave out engine; `mediator doctor` tells the operator what is missing",
        )  # fmt: skip
    if isinstance(error, CannotSteer):
        return Problem(422, "invalid-request", str(error))
    if isinstance(error, FunctionFailed | CatalogError):
        return Problem(400, "bad-query", str(error))
    return Problem(500, "internal", str(error))


def _place(sql: str, position: int | None) -> dict[str, Any]:
    """Where in the statement: the offset, and the line and column of it, counted from 1."""
    if position is None:
        return {}
    before = sql[:position]
    line = before.count("\n") + 1
    return {"position": position, "line": line, "column": position - (before.rfind("\n") + 1) + 1}
