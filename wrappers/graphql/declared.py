"""A GraphQL query as a declaration has it, and the parts of a wrapper that it stands for."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from mediator.errors import SchemaChanged
from wrappers.columns import ABSENT
from wrappers.json_reader import JsonReader
from wrappers.paging import CursorPages
from wrappers.record_reader import Path, steps, walk
from wrappers.rules import Rule
from wrappers.template import Template

_ACCEPTED = "application/graphql-response+json, application/json"
_TOO_MANY = "(?i)^(rate_?limit(ed|_exceeded)?|throttled|too_many_requests)$"

# GraphQL answers with status 200 even when it fails. What came beside an error is not all that was asked for.
RULES = (
    Rule(status=("2xx",), at="/errors/0/extensions/code", says=_TOO_MANY, means="rate_limited"),
    Rule(status=("2xx",), at="/errors/0/type", says=_TOO_MANY, means="rate_limited"),
    Rule(status=("2xx",), at="/errors/0/message", means="fail"),
    Rule(status=("2xx",), at="/errors", says=r"^(?!\[\]$)", means="fail"),
)


class GraphqlQuery(BaseModel):
    """`query` is the document, `rows` the place of the rows in the reply, such as `/data/books/edges`.

    A variable has the value that `variables` gives it, else that of the bind-field of the same name. `cursor` is
    the variable that takes the mark of the next page, where the rows are a connection as Relay has them. Below
    `edges`, a field is in the edge's `node` if `fields` gives it no place.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    query: str = Field(min_length=1)
    rows: str = Field(min_length=1)
    path: str = Field(default="/graphql", pattern="^/")
    variables: dict[str, Any] = {}
    fields: dict[str, str] = {}
    optional: tuple[str, ...] = ()
    headers: dict[str, str] = {}
    cursor: str = ""

    def template(self, text: str, variables: dict[str, Any], join: str) -> Template:
        """The request: `text` is the document as it is sent."""
        return Template.model_validate(
            {
                "path": self.path,
                "json": {"query": text, "variables": variables},
                "headers": {"Accept": _ACCEPTED, **self.headers},
                "join": join,
            }
        )

    def reader(self) -> GraphqlReader:
        return GraphqlReader(
            kind="json",
            rows=self.rows,
            fields=self.fields,
            optional=self.optional,
            connection=self.connection if self.cursor else "",
        )

    @property
    def connection(self) -> str:
        """The place of what has `edges` or `nodes`; empty where the rows are in no connection."""
        *above, last = steps(self.rows)
        return "/" + "/".join(above) if above and last in ("edges", "nodes") else ""

    def paging(self) -> CursorPages:
        """How `cursor` turns the pages."""
        page = f"{self.connection}/pageInfo"
        return CursorPages(
            cursor=f"{page}/endCursor",
            more=f"{page}/hasNextPage",
            param=f"/variables/{self.cursor}",
            place="json",
        )


class GraphqlReader(JsonReader):
    """Rows of a GraphQL reply.

    By GraphQL's rules null, where there is no error beside it, is the answer "there is none": at `rows`, on the
    way to it, or as one of the rows. Where pages are turned by `connection`, it has to say whether there are more.
    """

    connection: str = ""

    def place(self, field: str) -> str:
        if field in self.fields:
            return self.fields[field]
        return f"/node/{field}" if steps(self.rows)[-1] == "edges" else f"/{field}"

    def _records(self, relation: str, document: object) -> list[Any]:
        if not isinstance(walk(document, ("data",)), dict):
            raise SchemaChanged(f"{relation}: expected 'data', found neither that nor errors")
        if _ends_in_null(document, steps(self.rows)):
            return []
        if self.connection and not isinstance(
            walk(document, (*steps(self.connection), "pageInfo", "hasNextPage")), bool
        ):
            raise SchemaChanged(
                f"{relation}: expected true or false at '{self.connection}/pageInfo/hasNextPage', found neither"
            )
        return [record for record in super()._records(relation, document) if not self._is_null(record)]

    def _at(self, record: Any, path: Path) -> Any:
        found = walk(record, path)
        return None if found is ABSENT and _ends_in_null(record, path) else found

    def _is_null(self, record: object) -> bool:
        """Of an edge, whether it leads to nothing."""
        if isinstance(record, dict) and steps(self.rows)[-1] == "edges":
            return record.get("node", ABSENT) is None
        return record is None


def _ends_in_null(document: object, path: Path) -> bool:
    return any(walk(document, path[:n]) is None for n in range(1, len(path) + 1))
