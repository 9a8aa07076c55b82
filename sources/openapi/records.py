"""The rows in a reply: where they are, and which columns a relation of them has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sources.openapi.reading import Unclear
from sources.openapi.shapes import Shape, Shapes
from sources.openapi.words import free, listed, singular, snake

_DEEPEST_FIELD = 3  # names on the way to a column
_DEEPEST_ROWS = 3
MOST_COLUMNS = 200
_LISTS = listed(
    "data items results result records rows hits content contents value values list entries elements objects"
)
_WRAPPERS = listed("data result results response payload item record embedded content body page")
_BESIDE = listed(
    "meta metadata links link pagination paging page pages page_info paging_info cursor cursors status "
    "message messages success error errors code ok took timestamp version request_id kind etag self count total "
    "limit offset skip size per_page page_size page_number number number_of_elements next previous prev first last "
    "more has_more empty sort sorted context object"
)
_STARTS = ("total_", "next_", "prev_", "previous_", "has_", "page_", "current_", "first_", "last_", "odata_")


@dataclass(frozen=True)
class Column:
    name: str
    type: str
    path: tuple[str, ...]
    optional: bool

    @property
    def place(self) -> str:
        return pointer(self.path)


@dataclass(frozen=True)
class Rows:
    """`path` leads to the records; `above` are the objects on the way, the outermost first."""

    path: tuple[str, ...]
    record: Shape
    many: bool
    above: tuple[tuple[tuple[str, ...], Shape], ...]
    guessed: bool = False


@dataclass
class Columns:
    found: list[Column] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.found]


def pointer(path: tuple[str, ...]) -> str:
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in path)


def rows_of(shapes: Shapes, shape: Shape, collection: str, one: bool) -> Rows:
    """Where the rows are. `collection` is what the path calls them; `one` says that it leads to one of them.

    Raises `Unclear` where that cannot be told.
    """
    return _Search(shapes, collection, one).rows(shape, (), ())


class _Search:
    def __init__(self, shapes: Shapes, collection: str, one: bool) -> None:
        self._shapes = shapes
        self._collection = singular(collection)
        self._one = one

    def rows(
        self, shape: Shape, path: tuple[str, ...], above: tuple[tuple[tuple[str, ...], Shape], ...]
    ) -> Rows:
        if shape.kind == "array":
            items = self._shapes.shape(shape.items)
            if items.kind != "object" or not items.properties:
                raise Unclear("its rows are no objects with properties")
            return Rows(path, items, True, above)
        if shape.kind != "object" or not shape.properties:
            raise Unclear("its reply is no object with properties, and no list of them")
        above = (*above, (path, shape))
        parts = {name: self._part(schema) for name, schema in shape.properties.items()}
        lists = [n for n, p in parts.items() if p.kind == "array" and self._is_record(p.items)]
        own = [n for n, p in parts.items() if p.is_scalar and not is_beside(n)]
        if lists and not (self._one and own):
            name, guessed = self._list_among(lists, own)
            if name:
                return Rows((*path, name), self._shapes.shape(parts[name].items), True, above, guessed)
        objects = [n for n, p in parts.items() if p.kind == "object" and p.properties and not is_beside(n)]
        wrapped = objects if len(objects) == 1 else [name for name in objects if self._wraps(name)]
        if not own and len(wrapped) == 1 and len(path) < _DEEPEST_ROWS:
            return self.rows(parts[wrapped[0]], (*path, wrapped[0]), above)
        return Rows(path, shape, False, above[:-1])

    def _list_among(self, lists: list[str], own: list[str]) -> tuple[str, bool]:
        """The list that has the rows, and whether that is a guess."""
        named = [n for n in lists if singular(snake(n)) == self._collection]
        named = named or [n for n in lists if snake(n) in _LISTS]
        if len(named) == 1:
            return named[0], bool(own)
        if len(lists) == 1:
            return ("", False) if "id" in own else (lists[0], bool(own))
        if own:
            return "", False
        raise Unclear(f"it has {len(lists)} lists, and nothing says which has the rows")

    def _part(self, schema: object) -> Shape:
        """What is in a property; nothing that is known, where it leads out of the document."""
        try:
            return self._shapes.shape(schema)
        except Unclear:
            return Shape()

    def _is_record(self, items: object) -> bool:
        found = self._part(items)
        return found.kind == "object" and bool(found.properties)

    def _wraps(self, name: str) -> bool:
        return snake(name) in _WRAPPERS or singular(snake(name)) == self._collection


def is_beside(name: str) -> bool:
    """Whether a name is one of those that stand beside rows: counts, pages, links."""
    plain = snake(name)
    return plain in _BESIDE or plain.startswith(_STARTS)


def columns_of(shapes: Shapes, record: Shape) -> Columns:
    """The columns of a record. Objects inside it become columns of their own, lists are left out."""
    columns = Columns()
    for path, shape, optional in _Leaves(shapes, columns).of(record, (), False, (record.name,)):
        if len(columns.found) >= MOST_COLUMNS:
            columns.left_out.append(f"all after {columns.found[-1].name}")
            break
        named = path[1:] if path[0] == "attributes" and len(path) > 1 else path  # as JSON:API calls them
        name = free(snake("_".join(named)) or "field", columns.names)
        columns.found.append(Column(name, type_of(shape), path, optional))
    if not columns.found:
        raise Unclear("its rows have no fields of a simple type")
    return columns


@dataclass(frozen=True)
class _Leaves:
    """The simple values of a record and of the objects inside it."""

    shapes: Shapes
    columns: Columns

    def of(
        self, shape: Shape, path: tuple[str, ...], optional: bool, within: tuple[str, ...]
    ) -> Iterator[tuple[tuple[str, ...], Shape, bool]]:
        """`within` are the names of the schemas on the way: of one inside its own kind, only ids are read."""
        again = shape.name in within[:-1] and shape.name != ""
        for name, schema in shape.properties.items():
            here = (*path, name)
            if again and not (snake(name) in ("id", "uuid", "key") or snake(name).endswith("_id")):
                continue
            try:
                part = self.shapes.shape(schema)
            except Unclear as unclear:
                self.columns.left_out.append(f"{'.'.join(here)} ({unclear})")
                continue
            maybe = optional or name not in shape.required
            if part.kind == "object" and part.properties and len(here) < _DEEPEST_FIELD and not again:
                yield from self.of(part, here, maybe or part.nullable, (*within, part.name))
            elif part.is_scalar and not any("${" in step or not step for step in here):
                yield here, part, maybe
            else:
                self.columns.left_out.append(f"{'.'.join(here)} ({_WHY.get(part.kind, 'of any type')})")


_WHY = {"array": "a list", "object": "an object", "mixed": "of several types"}


def type_of(shape: Shape) -> str:
    """The declared type that holds every value of a scalar."""
    if shape.kind == "integer":
        return "int32" if shape.format == "int32" else "int64"
    if shape.kind == "string":
        return {"date": "date", "date-time": "timestamp"}.get(shape.format, "string")
    return {"number": "float64", "boolean": "bool"}[shape.kind]
