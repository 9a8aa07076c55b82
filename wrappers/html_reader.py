"""Rows from web pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from lxml import etree, html
from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from mediator.catalog.model import Field
from mediator.catalog.wrapper import Reply
from mediator.errors import SchemaChanged, Unreadable
from wrappers.columns import ABSENT, Absent, from_text, missing
from wrappers.parsed import Parsed, charset

Record = dict[str, str]  # label -> text


class HtmlReader(BaseModel):
    """Exactly one of three layouts, each an XPath to where it is on the page:

    - `table`: a table with a header row; `fields` gives the header of each field.
    - `details`: a page about one thing, as `<dl>` or `<th><td>`; `fields` gives the label of each field.
    - `rows`: whatever repeats; `fields` gives the XPath of each field inside it.

    A field that `fields` leaves out is labelled by its own name. `nothing` is what a page shows that has no
    rows: one that shows neither this nor the layout has changed. An empty text is NULL.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["html"]
    table: str = ""
    details: str = ""
    rows: str = ""
    nothing: str = ""
    fields: dict[str, str] = {}
    optional: tuple[str, ...] = ()

    @field_validator("table", "details", "rows", "nothing")
    @classmethod
    def _is_xpath(cls, path: str) -> str:
        try:
            etree.XPath(path or ".")
        except etree.XPathSyntaxError:
            raise ValueError(f"{path!r} is not an XPath") from None
        return path

    @model_validator(mode="after")
    def _has_one_layout(self) -> HtmlReader:
        if sum(map(bool, (self.table, self.details, self.rows))) != 1:
            raise ValueError("give exactly one of table, details, rows")
        for path in self.fields.values() if self.rows else ():
            self._is_xpath(path)
        return self

    def parse(self, relation: str, fields: Sequence[Field], reply: Reply) -> Parsed:
        page = _page(relation, reply)
        labels = [self.fields.get(f.name, f.name) for f in fields]
        layout = self.table or self.details or self.rows
        found = page.xpath(layout)
        if not found and not (self.nothing and page.xpath(self.nothing)):
            raise SchemaChanged(f"{relation}: expected {layout} on the page, found nothing there")
        if self.table:
            self._check_headers(relation, fields, found)
        records = self._records(found, labels)
        columns = []
        for field, label in zip(fields, labels, strict=True):
            texts = [record.get(label, ABSENT) for record in records]
            if ABSENT in texts and field.name not in self.optional:
                raise missing(relation, field, records[texts.index(ABSENT)])
            columns.append(from_text(relation, field, [None if isinstance(t, Absent) else t for t in texts]))
        return Parsed(tuple(columns), len(records), lambda path: _look(page, path))

    def _check_headers(self, relation: str, fields: Sequence[Field], tables: list[Any]) -> None:
        """A table without rows still shows whether it is the declared one."""
        for table in tables:
            _, headers = _header(table)
            for field in fields:
                if self.fields.get(field.name, field.name) not in headers and field.name not in self.optional:
                    raise missing(relation, field, headers)

    def _records(self, found: list[Any], labels: list[str]) -> list[Record]:
        if self.table:
            return [record for table in found for record in _table(table)]
        if self.details:
            return [_details(part) for part in found]
        paths = [etree.XPath(label) for label in labels]
        return [
            {label: _text(hit) for label, path in zip(labels, paths, strict=True) if (hit := path(row)) != []}
            for row in found
        ]


def _page(relation: str, reply: Reply) -> Any:
    try:
        text = reply.body.decode(charset(reply))
        return html.document_fromstring(text.encode(), parser=html.HTMLParser(encoding="utf-8"))
    except (UnicodeDecodeError, LookupError, etree.ParserError, etree.XMLSyntaxError) as error:
        raise Unreadable(f"{relation}: not a web page: {error}") from None


def _header(table: Any) -> tuple[int, list[str]]:
    """Which of a table's lines is the first with headers, and what they say."""
    for number, line in enumerate(table.xpath(".//tr")):
        if line.xpath("./th"):
            return number, [_text(cell) for cell in line.xpath("./th|./td")]
    return 0, []


def _table(table: Any) -> list[Record]:
    """The lines below the headers, under their labels. One that is too short lacks the fields at its end."""
    number, labels = _header(table)
    lines = table.xpath(".//tr")[number + 1 :]
    cells = ([_text(cell) for cell in line.xpath("./th|./td")] for line in lines)
    return [dict(zip(labels, row, strict=False)) for row in cells if row]


def _details(part: Any) -> Record:
    """Label and text, of each `<dt>` with the `<dd>` after it, or each `<th>` with the `<td>` beside it."""
    labels = part.xpath(".//dt[following-sibling::dd] | .//th[following-sibling::td]")
    return {
        _text(label).rstrip(":"): _text(label.xpath("following-sibling::*[self::dd or self::td][1]"))
        for label in labels
    }


def _look(page: Any, path: str) -> object:
    hit = page.xpath(path)
    return ABSENT if hit == [] else _text(hit)


def _text(hit: Any) -> str:
    """The text of what an XPath found, with its white space made plain."""
    if isinstance(hit, list):
        hit = hit[0]
    if isinstance(hit, float):  # XPath's only number
        return str(int(hit) if hit.is_integer() else hit)
    return " ".join((hit if isinstance(hit, str) else hit.text_content()).split())
