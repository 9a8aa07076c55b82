"""What can go wrong between a client and its server, as a tree.

ClientError
├── Closed                  the client was closed
├── Unreachable             no server answers there
│   ├── TimedOut            it took longer than the client waits
│   └── CutOff              what was being read broke off, and could not be taken up again
├── Cancelled               the query was cancelled before its end
├── Incomplete              an answer that was to be whole is not; carries the report
└── Problem                 the server says no; carries its problem document
    ├── QueryProblem        the statement is at fault; knows where
    │   ├── Unparsable
    │   ├── UnknownRelation
    │   ├── UnknownColumn
    │   ├── TypeMismatch
    │   ├── Unsupported
    │   ├── Unanswerable    it reads well, but no source can be asked
    │   └── TooHard         planning it takes too long
    ├── InvalidRequest      a field of the request; `errors` names each
    ├── Unauthorized        no key, or none that is known
    ├── Forbidden           a key that may not do this
    ├── NotFound
    ├── Gone                not kept any more
    ├── NotYet
    ├── TooLarge
    ├── TooManyQueries      `retry_after` says when
    ├── ShuttingDown
    └── Internal            the server's own fault; `request` finds it in its log
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class IncompleteWarning(UserWarning):
    """A table is handed over that is not the whole answer."""


class ClientError(Exception):
    """Everything that the client raises on purpose."""


class Closed(ClientError):
    """The client was closed."""


class Unreachable(ClientError):
    """No server answers there."""


class TimedOut(Unreachable):
    """It took longer than the client waits."""


class CutOff(Unreachable):
    """What was being read broke off, and could not be taken up again."""


class Cancelled(ClientError):
    """The query was cancelled before its end."""

    def __init__(self, message: str, report: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.report = report


class Incomplete(ClientError):
    """Not the whole answer: `report` says what is missing, and why."""

    def __init__(self, message: str, report: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.report = report


class Problem(ClientError):
    """What the server says no with. `document` is all of it; `report` is there where the query had begun."""

    def __init__(
        self,
        document: Mapping[str, Any],
        *,
        status: int | None = None,
        retry_after: float | None = None,
        report: Mapping[str, Any] | None = None,
    ) -> None:
        self.document = dict(document)
        self.kind = str(document.get("type", "about:blank")).rsplit("/", 1)[-1]
        self.status = int(document.get("status") or status or 0)
        self.title = str(document.get("title") or "")
        self.detail = str(document.get("detail") or "")
        self.hint = str(document.get("hint") or "")
        self.retry_after = retry_after
        self.report = report
        super().__init__(self._message())

    def _message(self) -> str:
        parts = [self.detail or self.title or f"the server answers {self.status}"]
        return "\n".join([*parts, *([self.hint] if self.hint else [])])


class QueryProblem(Problem):
    """The statement is at fault: `position` counts characters from 0, `line` and `column` from 1."""

    position: int | None
    line: int | None
    column: int | None

    def _message(self) -> str:
        self.position = self.document.get("position")
        self.line = self.document.get("line")
        self.column = self.document.get("column")
        where = "" if self.line is None else f" (line {self.line}, column {self.column})"
        message, *hint = super()._message().split("\n", 1)
        return "\n".join([message + where, *hint])


class Unparsable(QueryProblem):
    """Not SQL."""


class UnknownRelation(QueryProblem):
    """No such relation."""


class UnknownColumn(QueryProblem):
    """No such column, or one of that name in several relations."""


class TypeMismatch(QueryProblem):
    """Types that do not go together."""


class Unsupported(QueryProblem):
    """SQL that is not run there; all that would change data is."""


class Unanswerable(QueryProblem):
    """No source can be asked: the hint says what would help."""


class TooHard(QueryProblem):
    """Planning it takes longer than a query may."""


class NoSpark(Problem):
    """The server runs no queries on Spark."""


class InvalidRequest(Problem):
    """A field of the request is not as it should be."""

    @property
    def errors(self) -> list[Any]:
        return list(self.document.get("errors") or ())


class Unauthorized(Problem):
    """A key is needed, and there is none, or one that is not known."""


class Forbidden(Problem):
    """The key may not do this."""


class NotFound(Problem):
    """There is no such thing, or it is another key's."""


class Gone(Problem):
    """It is not kept any more."""


class NotYet(Problem):
    """It is not there yet."""


class TooLarge(Problem):
    """The request or the statement is too large."""


class TooManyQueries(Problem):
    """A quota is used up for now."""


class ShuttingDown(Problem):
    """The server is about to end."""


class Internal(Problem):
    """The server's own fault."""

    @property
    def request(self) -> str | None:
        return self.document.get("request")


_KINDS: Mapping[str, type[Problem]] = {
    "unparsable": Unparsable,
    "unknown-relation": UnknownRelation,
    "unknown-column": UnknownColumn,
    "type-mismatch": TypeMismatch,
    "unsupported": Unsupported,
    "bad-query": QueryProblem,
    "unanswerable": Unanswerable,
    "too-hard": TooHard,
    "no-spark": NoSpark,
    "invalid-request": InvalidRequest,
    "unauthorized": Unauthorized,
    "forbidden": Forbidden,
    "not-found": NotFound,
    "gone": Gone,
    "not-yet": NotYet,
    "too-large": TooLarge,
    "too-many-queries": TooManyQueries,
    "shutting-down": ShuttingDown,
    "internal": Internal,
}
# For answers that have no document, such as those of a proxy in between.
_STATUSES: Mapping[int, type[Problem]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: NotYet,
    410: Gone,
    413: TooLarge,
    429: TooManyQueries,
    500: Internal,
    503: ShuttingDown,
}


def problem_of(
    document: Mapping[str, Any],
    *,
    status: int | None = None,
    retry_after: float | None = None,
    report: Mapping[str, Any] | None = None,
) -> Problem:
    """The exception for a problem document."""
    kind = str(document.get("type", "")).rsplit("/", 1)[-1]
    number = document.get("status") or status or 0
    error = _KINDS.get(kind) or _STATUSES.get(int(number), Problem)
    return error(document, status=status, retry_after=retry_after, report=report)
