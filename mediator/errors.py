"""What can go wrong, as a tree.

    MediatorError
    ├── QueryError            the statement is at fault; knows where in the text
    │   ├── Unparsable
    │   ├── UnknownRelation
    │   ├── UnknownColumn
    │   ├── TypeMismatch
    │   ├── Unsupported
    │   └── Unanswerable      it reads well, but no source can be asked; carries advice
    ├── CatalogError          a declaration is at fault
    ├── FunctionFailed        a function that a caller brought along is at fault; names it
    ├── StoreError            the folder where SteMs are kept cannot be used
    └── SourceError           a site is at fault; becomes a `Cause` in the stream
        ├── Unreachable       no connection, reset, truncated
        ├── TimedOut
        ├── Refused           a status that says no
        │   └── Overloaded    for now: the site has too much to do
        ├── RateLimited       a status that says later
        ├── Unreadable        a reply that cannot be understood
        ├── SchemaChanged     understood, but not what was declared
        ├── NotAsDeclared     rows of the right shape that break a promise of the declaration
        ├── CutShort          as many rows as ever come: there may be more
        │   ├── FieldMissing
        │   ├── Mistyped
        │   └── Miscounted    not as many pages or rows as it says itself
        ├── Endless           pages without end
        └── Spent             nothing more may be sent to it: a ceiling of the query
            └── SpentToday    or of the day

A `SourceError` never ends a query: it is turned into data (`Cause`) where it is caught.
"""

from __future__ import annotations

from dataclasses import dataclass


class MediatorError(Exception):
    """Everything this engine raises on purpose."""


class QueryError(MediatorError):
    """The statement cannot be run; `position` is the character offset in it, where one is known."""

    def __init__(self, message: str, *, sql: str = "", position: int | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.sql = sql
        self.position = position
        self.hint = hint

    def __str__(self) -> str:
        parts = [self.message]
        if self.sql and self.position is not None:
            parts.append(_pointed(self.sql, self.position))
        if self.hint:
            parts.append(self.hint)
        return "\n".join(parts)


class Unparsable(QueryError):
    """Not SQL."""


class UnknownRelation(QueryError):
    """No such relation in the catalog."""


class UnknownColumn(QueryError):
    """No such column, or one of that name in several relations."""


class TypeMismatch(QueryError):
    """An expression whose types do not go together."""


class Unsupported(QueryError):
    """SQL that this engine does not run."""


class Unanswerable(QueryError):
    """No source can be asked: a bind-field that nothing provides. The hint says what would help."""


class CatalogError(MediatorError):
    """A declared source, relation or access method that cannot be used as it is written."""


class FunctionFailed(MediatorError):
    """A function that a caller brought along raised an error, or gave what it does not promise."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"the function {name} failed: {what}")
        self.name = name


class StoreError(MediatorError):
    """The folder where SteMs are kept is in use, cannot be read, or is no such folder."""


class SourceError(MediatorError):
    """A site's fault. `again` says whether asking once more may help, `after` how many seconds from now."""

    kind = "source"

    def __init__(self, message: str, *, again: bool = False, after: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.again = again
        self.after = after


class Unreachable(SourceError):
    kind = "unreachable"


class TimedOut(SourceError):
    kind = "timed out"


class Refused(SourceError):
    kind = "refused"


class Overloaded(Refused):
    """A 503."""


class RateLimited(SourceError):
    kind = "rate limited"


class Unreadable(SourceError):
    kind = "unreadable"


class SchemaChanged(SourceError):
    kind = "schema changed"


class FieldMissing(SchemaChanged):
    """A declared field that a row does not have."""


class Mistyped(SchemaChanged):
    """A value of another type than the declared one."""


class Miscounted(SchemaChanged):
    """What a reply says of the number of its pages or rows is not so, or not there."""


class NotAsDeclared(SourceError):
    kind = "not as declared"


class CutShort(SourceError):
    kind = "cut short"


class Endless(SourceError):
    kind = "endless"


class Spent(SourceError):
    kind = "ceiling"

    def __init__(self, message: str, source: str) -> None:
        super().__init__(message)
        self.source = source


class SpentToday(Spent):
    kind = "daily budget"


@dataclass(frozen=True, slots=True)
class Cause:
    """Why an ask failed for good, as data: it travels in events, coverage and the completeness report."""

    kind: str
    message: str

    @classmethod
    def of(cls, error: SourceError) -> Cause:
        return cls(error.kind, error.message)


def _pointed(sql: str, position: int) -> str:
    """The line of the statement that holds the position, with a mark under it."""
    start = sql.rfind("\n", 0, position) + 1
    end = sql.find("\n", position)
    line = sql[start : end if end >= 0 else len(sql)]
    number = sql.count("\n", 0, position) + 1
    label = f"line {number}: "
    return f"{label}{line}\n{' ' * (len(label) + position - start)}^"
