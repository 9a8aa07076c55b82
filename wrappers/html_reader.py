"""Rows from web pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from lxml import etree
from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from mediator.catalog.model import Field
from mediator.catalog.wrapper import Reply
from mediator.errors import SchemaChanged, Unreadable
from wrappers.columns import ABSENT, Absent, from_text, missing
from wrappers.parsed import Parsed
from wrappers.selecting import elements, xpath
from wrappers.table_grid import MOST_COLUMNS, Grid, cells_of, spans
from wrappers.web_page import web_page

Record = dict[str, str]  # label -> text
_REPEATED = 4  # how often the text of a page may be read: things that lie in each other repeat it
_SPARE = 1 << 20


class HtmlReader(BaseModel):
    """Exactly one of three layouts, each an XPath (or CSS after `css:`) to where it is on the page:

    - `table`: a table with a header row; `fields` gives the header of each field. A cell that spans several columns
      or lines stands in all of them.
    - `details`: a page about one thing, as `<dl>` or `<th><td>`; `fields` gives the label of each field.
    - `rows`: whatever repeats; `fields` gives the place of each field inside it.

    A field that `fields` leaves out is labelled by its own name. `nothing` is what a page shows that has no
    rows: one that shows neither this nor the layout has changed. An empty text is NULL.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["html"] = "html"
    table: str = ""
    details: str = ""
    rows: str = ""
    nothing: str = ""
    fields: dict[str, str] = {}
    optional: tuple[str, ...] = ()

    @field_validator("table", "details", "rows")
    @classmethod
    def _is_layout(cls, place: str) -> str:
        if place:
            elements(place)
        return place

    @field_validator("nothing")
    @classmethod
    def _is_place(cls, place: str) -> str:
        xpath(place)
        return place

    @model_validator(mode="after")
    def _has_one_layout(self) -> HtmlReader:
        if sum(map(bool, (self.table, self.details, self.rows))) != 1:
            raise ValueError("give exactly one of table, details, rows")
        for path in self.fields.values() if self.rows else ():
            xpath(path)
        return self

    def parse(self, relation: str, fields: Sequence[Field], reply: Reply) -> Parsed:
        page = web_page(relation, reply)
        texts = _Texts(relation, len(reply.body))
        labels = [self.fields.get(f.name, f.name) for f in fields]
        layout = self.table or self.details or self.rows
        found = _elements(page.xpath(xpath(layout)))
        if not found and not (self.nothing and page.xpath(xpath(self.nothing))):
            raise SchemaChanged(f"{relation}: expected {layout} on the page, found nothing there")
        if self.table:
            self._check_headers(relation, fields, found, texts)
        records = self._records(found, labels, texts)
        columns = []
        for field, label in zip(fields, labels, strict=True):
            said = [record.get(label, ABSENT) for record in records]
            if ABSENT in said and field.name not in self.optional:
                raise missing(relation, field, records[said.index(ABSENT)])
            columns.append(from_text(relation, field, [None if isinstance(t, Absent) else t for t in said]))
        return Parsed(tuple(columns), len(records), lambda path: _look(page, path), _base(page))

    def look(self, reply: Reply, path: str) -> object:
        try:
            return _look(web_page("", reply), path)
        except Unreadable:
            return ABSENT

    def _check_headers(
        self, relation: str, fields: Sequence[Field], tables: list[Any], texts: _Texts
    ) -> None:
        """A table without rows still shows whether it is the declared one."""
        for table in tables:
            _, _, headers = _header(_lines(table), texts)
            for field in fields:
                label = self.fields.get(field.name, field.name)
                if label not in headers and field.name not in self.optional:
                    raise missing(relation, field, headers)
                if headers.count(label) > 1:
                    raise SchemaChanged(f"{relation}.{field.name}: two columns have the header {label!r}")

    def _records(self, found: list[Any], labels: list[str], texts: _Texts) -> list[Record]:
        if self.table:
            return [record for table in found for record in _table(table, texts)]
        if self.details:
            return [_details(part, texts) for part in found]
        paths = [etree.XPath(xpath(label)) for label in labels]
        return [
            {
                label: texts.of(hit)
                for label, path in zip(labels, paths, strict=True)
                if (hit := path(row)) != []
            }
            for row in found
        ]


class _Texts:
    """The texts of a page, and a limit to how much of it is read again and again."""

    def __init__(self, relation: str, size: int) -> None:
        self._relation = relation
        self._left = _REPEATED * size + _SPARE

    def of(self, hit: Any) -> str:
        text = _text(hit)
        self._left -= len(text)
        if self._left < 0:
            raise Unreadable(
                f"{self._relation}: the page is larger inside than outside: its rows lie in each other"
            )
        return " ".join(text.split())

    def repeat(self, text: str) -> None:
        """It stands in one more place."""
        self._left -= len(text) + 1
        if self._left < 0:
            raise Unreadable(
                f"{self._relation}: the page is larger inside than outside: its cells span too many places"
            )

    def wrong(self, said: str) -> SchemaChanged:
        return SchemaChanged(f"{self._relation}: {said}")


def _elements(found: Any) -> list[Any]:
    """What a layout found, as far as there can be something inside it."""
    return [hit for hit in found if isinstance(hit, etree._Element)] if isinstance(found, list) else []


def _lines(table: Any) -> list[Any]:
    """The lines of this table, without those of tables inside its cells."""
    lines: list[Any] = table.xpath("./tr | ./thead/tr | ./tbody/tr | ./tfoot/tr")
    return lines


def _header(lines: list[Any], texts: _Texts) -> tuple[Grid, int, list[str]]:
    """Which of a table's lines is the last with headers, and what stands above each column there."""
    grid = Grid(texts.of, texts.repeat)
    number = next((n for n, line in enumerate(lines) if line.find("th") is not None), None)
    if number is None:
        return grid, 0, []
    row = grid.row(lines[number])
    below = lines[number + 1 :]
    while below and grid.hangs_into(below[0]) and _names_columns(below[0]):
        row = grid.row(below.pop(0))
    if grid.width in row:
        raise texts.wrong(f"more than {MOST_COLUMNS:,} columns")
    labels = [row.get(column, "") for column in range(max(row) + 1)]
    return grid, len(lines) - len(below) - 1, labels


def _names_columns(line: Any) -> bool:
    return line.find("th") is not None and line.find("td") is None


def _table(table: Any, texts: _Texts) -> list[Record]:
    """The lines below the headers, under their labels. One that is too short lacks the fields at its end."""
    lines = _lines(table)
    grid, number, labels = _header(lines, texts)
    grid.width = len(labels)
    records = []
    for line in lines[number + 1 :]:
        hung = grid.hangs_into(line)
        row = grid.row(line)
        if not (cells := cells_of(line)):
            continue
        more = row.pop(len(labels), None)
        # Buttons behind the columns, say. But where cells span others nobody can tell which of them is too many.
        if more is not None and (hung or any(spans(cell) for cell in cells)):
            raise texts.wrong(f"a line has more cells than there are headers: {more[:60]!r}")
        if not hung and len(cells) == 1 < len(row) == len(labels):
            raise texts.wrong(f"a line is one cell across all columns, and no row: {row[0][:60]!r}")
        records.append({labels[column]: text for column, text in row.items()})
    return records


def _details(part: Any, texts: _Texts) -> Record:
    """Label and text, of each `<dt>` with the `<dd>` after it, or each `<th>` with the `<td>` beside it."""
    values: dict[Any, Any] = {}  # of every child of a parent that has labels, the value that follows it
    record: Record = {}
    for label in part.iter("dt", "th"):
        if label not in values:
            values |= _following(label.getparent())
        if (value := values[label]) is not None:
            record[texts.of(label).rstrip(":")] = texts.of(value)
    return record


def _following(parent: Any) -> dict[Any, Any]:
    following: dict[Any, Any] = {}
    value = None
    for child in reversed(parent):
        following[child] = value
        if child.tag in ("dd", "td"):
            value = child
    return following


def _base(page: Any) -> str:
    """The first of them counts."""
    said = page.xpath("string((//base/@href)[1])")
    return str(said).strip()


def _look(page: Any, place: str) -> object:
    hit = page.xpath(xpath(place))
    return ABSENT if hit == [] else " ".join(_text(hit).split())


def _text(hit: Any) -> str:
    """The text of what an XPath found, with all its white space."""
    if isinstance(hit, list):
        hit = hit[0]
    if isinstance(hit, bool):
        return "true" if hit else "false"
    if isinstance(hit, float):  # XPath's only number
        return str(int(hit) if hit.is_integer() else hit)
    text: str = hit if isinstance(hit, str) else hit.text_content()
    return text
