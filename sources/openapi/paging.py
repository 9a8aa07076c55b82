"""How an operation turns its pages, as far as the names of its parameters and of its reply tell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sources.openapi.operations import Operation, Parameter
from sources.openapi.reading import Unclear
from sources.openapi.records import Rows, is_beside, pointer
from sources.openapi.shapes import Shape, Shapes
from sources.openapi.words import listed, snake

_PAGE = frozenset({"page", "page_number", "page_no", "page_num", "page_index", "current_page"})
_OFFSET = frozenset({"offset", "skip", "start", "start_index", "start_at", "page_offset"})
_SIZE = listed(
    "per_page page_size limit size top take max_results results_per_page page_limit items_per_page "
    "max_page_size"
)
_CURSOR = listed(
    "cursor after page_token page_cursor starting_after next_token next_cursor continuation_token "
    "continuation marker pagination_token scroll_id start_cursor"
)
_MARK = listed(
    "next_cursor next_page_token next_token cursor after end_cursor continuation_token continuation "
    "next_marker marker next_page_cursor pagination_token scroll_id"
)
_MORE = frozenset({"has_more", "has_next", "has_next_page", "more", "more_results"})
_LINK = frozenset(
    {"next", "next_url", "next_page_url", "next_link", "next_page", "next_href", "odata_next_link"}
)
_TOTAL = listed("total total_count total_items total_results total_elements total_records total_rows")
_PAGES = listed("total_pages pages page_count last_page num_pages number_of_pages")
_COUNTS = ("integer", "number", "")
_DEEPEST = 3


@dataclass
class Pages:
    """`said` is the declaration of the pages; `sent` are parameters with a fixed value, such as the size of a page."""

    said: dict[str, Any] = field(default_factory=dict)
    sent: dict[str, str] = field(default_factory=dict)
    json_sent: dict[str, int] = field(default_factory=dict)  # the same, in a JSON body
    used: set[str] = field(default_factory=set)  # parameters
    notes: list[str] = field(default_factory=list)


def pages_of(operation: Operation, rows: Rows, shapes: Shapes) -> Pages:
    found = Pages()
    if not rows.many:
        return found
    beside = dict(_beside(rows, shapes))
    page, offset, size = (_named(operation, names, _COUNTS) for names in (_PAGE, _OFFSET, _SIZE))
    cursor = _named(operation, _CURSOR, ("string", *_COUNTS))
    mark, link = _place(beside, _MARK, ("string", "integer")), _place(beside, _LINK, ("string",))
    if cursor and mark:
        found.said = {"cursor": mark, **_param(cursor)}
        if more := _place(beside, _MORE, ("boolean",)):
            found.said["more"] = more
    elif page and (total := _place(beside, _PAGES, ("integer",))):
        found.said = {**_param(page), **_first(page, 1), "total": total}
    elif link and operation.verb == "get":
        found.said = {"next": link}
        found.notes.append("is this the address of the next page?")
    elif "link" in operation.headers and operation.verb == "get":
        found.said = {"rel": "next"}
        found.notes.append("does the Link header name the next page?")
    elif page:
        found.said = {**_param(page), **_first(page, 1)}
    elif offset:
        found.said = _by_offset(offset, size, _place(beside, _TOTAL, ("integer",)))
    if not found.said and (size or link or mark):
        found.notes.append("there may be further pages, and how they are asked for is not clear")
    found.used |= {p.name for p in (page, offset, size, cursor) if p}
    if size and size.place == "json":
        found.json_sent[size.name] = _size(size)
    elif size and "limit" not in found.said:
        found.sent[size.name] = str(_size(size))
    if "offset" in found.said and "total" in found.said:
        found.notes.append("does total count everything, not only this page?")
    return found


def _by_offset(offset: Parameter, size: Parameter | None, total: str) -> dict[str, Any]:
    said = _param(offset, "offset")
    if size and size.place == offset.place:
        said |= {**_param(size, "limit"), "size": _size(size)}
    said |= _first(offset, 0)
    return {**said, "total": total} if total else said


def _named(operation: Operation, names: frozenset[str], kinds: tuple[str, ...]) -> Parameter | None:
    """The parameter of such a name that is no list, and no date as `after` and `start` may be."""
    fitting = [p for p in operation.parameters if p.place in ("query", "json") and p.shape.kind in kinds]
    return next((p for p in fitting if p.plain in names and not p.shape.format.startswith("date")), None)


def _param(parameter: Parameter, name: str = "param") -> dict[str, Any]:
    if parameter.place == "json":
        return {name: pointer((parameter.name,)), "place": "json"}
    return {name: parameter.name}


def _first(parameter: Parameter, usual: int) -> dict[str, int]:
    """The number of the first page, or the offset of the first row, where it is not the usual one."""
    first = parameter.shape.default
    return {"first": first} if first in (0, 1) and not isinstance(first, bool) and first != usual else {}


def _size(parameter: Parameter) -> int:
    """As many as the site sends at once, up to a thousand."""
    default = parameter.shape.default
    usual = default if isinstance(default, int) and not isinstance(default, bool) else 100
    return max(1, min(parameter.shape.most or max(usual, 1), 1_000))


def _place(beside: dict[str, Shape], names: frozenset[str], kinds: tuple[str, ...]) -> str:
    """The place of a value of such a name and type; of several, the first."""
    for place, shape in beside.items():
        *above, last = place.rsplit("/", 2)[1:]
        name = snake(last)
        if above and snake(above[-1]) == "next" and name in ("href", "url"):
            name = "next"
        if name in names and shape.kind in kinds:
            return place
    return ""


def _beside(rows: Rows, shapes: Shapes) -> Iterator[tuple[str, Shape]]:
    """What stands beside the rows, by its place."""
    for path, envelope in rows.above:
        yield from _leaves(envelope, path, shapes, 0)


def _leaves(shape: Shape, path: tuple[str, ...], shapes: Shapes, depth: int) -> Iterator[tuple[str, Shape]]:
    for name, schema in shape.properties.items():
        if not (is_beside(name) or snake(name) in _LINK | _MARK | _MORE | _TOTAL | _PAGES | {"href", "url"}):
            continue
        try:
            part = shapes.shape(schema)
        except Unclear:
            continue
        if part.is_scalar:
            yield pointer((*path, name)), part
        elif part.kind == "object" and depth < _DEEPEST:
            yield from _leaves(part, (*path, name), shapes, depth + 1)
