"""Which parameters of an operation are bind-fields, and how each gets into the request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from sources.openapi.operations import Operation, Parameter
from sources.openapi.reading import Unclear
from sources.openapi.records import Column, type_of
from sources.openapi.words import one_line, singular, snake

MOST_OPTIONAL = 4  # each doubles the ways of asking
_BATCH = 20
_GENERIC = frozenset({"id", "code", "name", "slug", "key", "uuid", "number", "title", "handle", "identifier"})
_FILTERS = ("filter_", "where_", "query_", "by_", "q_", "f_")
_WAYS = re.compile(r"^(search|find|lookup|query|filter|list|all|by[-_].*)$")
_ONE_OF = re.compile(r"at least one|(exactly|either) one|one of the following", re.I)
_RANGES = (
    (re.compile("min_(.+)|(.+)_(?:min|gte|ge)"), ">="),
    (re.compile("max_(.+)|(.+)_(?:max|lte|le)"), "<="),
)
# Headers that a request has anyway.
_ITSELF = frozenset({"authorization", "accept", "content-type", "user-agent"})


@dataclass
class Bound:
    """The bind-fields, and the request as a declaration has it.

    `extra` are the fields that the rows do not have, with their types.
    """

    required: list[str] = field(default_factory=list)
    any_of: list[str] = field(default_factory=list)
    optional: list[str] = field(default_factory=list)
    extra: dict[str, str] = field(default_factory=dict)
    parts: dict[str, dict[str, Any]] = field(default_factory=dict)  # query, json, headers
    path: str = ""
    join: str = ""
    batch: int = 1
    notes: list[str] = field(default_factory=list)
    example: dict[str, Any] = field(default_factory=dict)  # by field

    @property
    def looked_up(self) -> list[str]:
        return [*self.required, *self.any_of]


def collection_of(segments: Sequence[str]) -> str:
    """What the path calls the rows: its last step that is neither a value nor a way of asking."""
    place = _collection(segments)
    return "rows" if place is None else snake(segments[place])


def context_of(segments: Sequence[str]) -> tuple[str, ...]:
    """What of the path stands before that and says no value: `/archive/books` are other rows than `/books`."""
    before = segments[: _collection(segments) or 0]
    followed = [*before[1:], ""][: len(before)]
    return tuple(
        step
        for step, after in zip(before, followed, strict=True)
        if "{" not in step + after and not _asks(step)
    )


def _collection(segments: Sequence[str]) -> int | None:
    for number in range(len(segments) - 1, -1, -1):
        step = segments[number]
        following = segments[number + 1] if number + 1 < len(segments) else ""
        names_value = "{" in following and singular(snake(following)) == singular(snake(step))
        if "{" not in step and not _asks(step) and not (names_value and number):
            return number
    return None


def _asks(step: str) -> bool:
    return bool(_WAYS.match(step.lower()))


def bound_by(operation: Operation, columns: Sequence[Column], record: str, used: set[str]) -> Iterator[Bound]:
    """The ways of asking by this operation. `used` are the parameters that turn pages.

    Raises `Unclear` for one that must be given, and of which nobody can tell what.
    """
    binding = _Binding(operation, {c.name: c for c in columns}, snake(record), used)
    plain = binding.bound(None)
    lists = [p for p in binding.given if p.join and not p.required and p.place in ("query", "json")]
    for parameter in lists if not plain.required else ():
        if name := binding.column(parameter):
            yield binding.bound((parameter, name))
    yield plain


class _Binding:
    def __init__(self, operation: Operation, columns: dict[str, Column], record: str, used: set[str]) -> None:
        self._operation = operation
        self._columns = columns
        self._collection = collection_of(operation.segments)
        self._own = {singular(self._collection), singular(record)}
        self.given = [p for p in operation.parameters if p.name not in used or p.place == "path"]

    def bound(self, several: tuple[Parameter, str] | None) -> Bound:
        """With `several`, the way of asking by a list of these; else the one by everything but lists."""
        found = Bound(path=_quoted(self._operation.path))
        for parameter in self.given:
            if parameter.place == "path":
                self._path(found, parameter)
        ignored: list[str] = []
        for parameter in self.given:
            if parameter.place in ("query", "json"):
                if several is None or parameter.required:
                    self._filter(found, parameter, ignored)
            elif parameter.place in ("header", "cookie"):
                self._header(found, parameter)
        if several:
            self._several(found, *several)
        if found.batch > 1 and (len(found.required) != 1 or found.optional):
            self._one_by_one(found)
        elif found.optional and not found.required and _ONE_OF.search(self._operation.text):
            found.any_of, found.optional = found.optional, []
            found.notes.append("it says that one of several has to be given: are these all?")
        if found.optional or found.any_of:
            found.notes.append("do these parameters ask for rows that are equal to them?")
        if ignored:
            shown = ", ".join(one_line(name, 30) for name in ignored[:12])
            found.notes.append(f"takes also {shown}{', ...' if len(ignored) > 12 else ''}")
        return found

    def column(self, parameter: Parameter) -> str:
        """The column that a filter asks by; empty where it is none."""
        name = parameter.plain
        for start in ("", *_FILTERS):
            plain = name.removeprefix(start) if start else name
            if start and plain == name:
                continue
            for tried in (plain, singular(plain)) if parameter.join else (plain,):
                if tried in self._columns:
                    return tried
                if tried.endswith("_id") and tried[:-3] in self._own and "id" in self._columns:
                    return "id"
        return ""

    def _ranged(self, parameter: Parameter) -> str:
        """The column and the operator of a filter such as `min_price`; empty where it is none."""
        for pattern, operator in _RANGES:
            match = pattern.fullmatch(parameter.plain)
            column = self._columns.get(match[1] or match[2]) if match else None
            if column and column.type not in ("string", "bool") and not parameter.required:
                return column.name + operator
        return ""

    def _path(self, found: Bound, parameter: Parameter) -> None:
        if parameter.join or parameter.shape.kind == "object":
            raise Unclear(f"its path takes more than one value at {one_line(parameter.name, 40)!r}")
        name = self._of_path(parameter)
        if name in found.required:
            raise Unclear(f"its path takes {name!r} twice")
        if name not in self._columns:
            self._add(found, name, parameter)
        self._check_type(found, name, parameter)
        self._try(found, name, parameter)
        found.required.append(name)
        found.path = found.path.replace(f"{{{parameter.name}}}", f"{{{name}}}")

    def _of_path(self, parameter: Parameter) -> str:
        """The field that a step of the path gives: of the rows themselves, or of what they belong to."""
        segments, name = self._operation.segments, parameter.plain or "value"
        place = next(n for n, step in enumerate(segments) if f"{{{parameter.name}}}" in step)
        before = next((snake(s) for s in reversed(segments[:place]) if "{" not in s), "")
        owner = singular(before)
        own = owner == singular(self._collection) or owner == singular(name)
        if own:
            short = self._means_id(parameter)
            tried = (name, "id" if short else "", f"{owner}_{name}")
            return next((t for t in tried if t in self._columns), name)
        return f"{owner}_{name}" if name in _GENERIC and owner else name

    def _means_id(self, parameter: Parameter) -> bool:
        """Whether what is named after the rows themselves is their `id`: `{book_id}`, or `{book}` of the same type."""
        if "id" not in self._columns or parameter.plain.removesuffix("_id") not in self._own:
            return False
        same = parameter.shape.is_scalar and type_of(parameter.shape) == self._columns["id"].type
        return parameter.plain.endswith("_id") or same

    def _check_type(self, found: Bound, name: str, parameter: Parameter) -> None:
        column, shape = self._columns.get(name), parameter.shape
        if column and shape.is_scalar and type_of(shape) not in (column.type, "string"):
            asked = one_line(parameter.name, 40)
            found.notes.append(f"{asked} is {type_of(shape)}, and {name} is {column.type} in the rows")

    def _filter(self, found: Bound, parameter: Parameter, ignored: list[str]) -> None:
        name = self.column(parameter) or self._ranged(parameter)
        if parameter.required:
            if not name and (value := _fixed(parameter)) is not None:
                self._send(found, parameter, value)
                found.notes.append(f"{one_line(parameter.name, 40)} is always {one_line(value, 40)}")
                return
            if not name:
                if parameter.shape.kind not in ("string", "integer", "number", "boolean", "array"):
                    raise Unclear(f"{one_line(parameter.name, 40)!r} has to be given, and is no simple value")
                name = parameter.plain or "value"
                self._add(found, name, parameter)
            if name in found.required:
                raise Unclear(f"{one_line(parameter.name, 40)!r} has to be given beside another for {name!r}")
            if parameter.join and name in self._columns and not found.required:
                self._several(found, parameter, name)
                return
            self._try(found, name, parameter)
            found.required.append(name)
            self._send(found, parameter, [f"{{{name}}}"] if parameter.join == "list" else f"{{{name}}}")
        elif not name or name in (*found.required, *found.optional) or len(found.optional) >= MOST_OPTIONAL:
            ignored.append(parameter.name)
        elif not parameter.join and parameter.shape.is_scalar:
            self._check_type(found, name, parameter)
            found.optional.append(name)
            self._send(found, parameter, f"{{{name}}}")

    def _several(self, found: Bound, parameter: Parameter, name: str) -> None:
        """A list of values: one for each of several bindings."""
        found.required.append(name)
        found.batch, found.join = min(parameter.shape.most or _BATCH, 100), parameter.join
        if not parameter.shape.most:
            found.notes.append(f"how many values does {one_line(parameter.name, 40)} take at once?")
        self._send(found, parameter, f"{{{name}}}")

    def _one_by_one(self, found: Bound) -> None:
        """Several bindings in one request are for methods with one bind-field."""
        found.batch, found.join = 1, ""
        for part in ("query", "json"):
            for parameter in self.given:
                values = found.parts.get(part, {})
                if parameter.join == "list" and isinstance(values.get(parameter.name), str):
                    values[parameter.name] = [values[parameter.name]]

    def _header(self, found: Bound, parameter: Parameter) -> None:
        if not parameter.required or parameter.name.lower() in _ITSELF:
            return
        value = _fixed(parameter)
        if parameter.place == "cookie" or value is None:
            raise Unclear(f"its {parameter.place} {one_line(parameter.name, 40)!r} has to be given")
        self._send(found, parameter, value)

    def _try(self, found: Bound, name: str, parameter: Parameter) -> None:
        if parameter.shape.example is not None and not parameter.join:
            found.example[name] = parameter.shape.example

    def _add(self, found: Bound, name: str, parameter: Parameter) -> None:
        """A field that the rows do not have: it is filled in from what was asked for."""
        found.extra[name] = type_of(parameter.shape) if parameter.shape.is_scalar else "string"

    def _send(self, found: Bound, parameter: Parameter, value: Any) -> None:
        part = {"header": "headers"}.get(parameter.place, parameter.place)
        if any("${" in str(text) for text in (parameter.name, value)):
            raise Unclear(f"{one_line(parameter.name, 40)!r} has a ${{...}} in it")
        found.parts.setdefault(part, {})[parameter.name] = value


def _quoted(path: str) -> str:
    """The path as it is sent, but for what is in braces."""
    parts = re.split(r"(\{[^{}]*\})", path)
    return "".join(p if n % 2 else quote(p, safe="/%!$&'()*+,;=:@~") for n, p in enumerate(parts))


def _fixed(parameter: Parameter) -> Any:
    """The value that a parameter has wherever nothing else is said; None if there is none."""
    shape = parameter.shape
    value = shape.default
    if value is None and len(shape.values) == 1:
        value = shape.values[0]
    if value is None or isinstance(value, dict | list) or "{" in str(value):
        return None
    if parameter.place == "json":
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)
