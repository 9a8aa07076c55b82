"""Operations become relations: those with the same rows become ways into one."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any

from sources.openapi.binding import Bound, collection_of, context_of
from sources.openapi.operations import Operation
from sources.openapi.paging import Pages
from sources.openapi.reading import Unclear
from sources.openapi.records import Column, Columns, Rows
from sources.openapi.words import free, one_line, singular, snake

MOST = 5_000  # relations of one draft
_PREFIX = re.compile(r"^(api|rest|public|v[0-9.]+)$")


@dataclass
class Way:
    """A way of asking, read from one operation."""

    operation: Operation
    rows: Rows
    columns: Columns
    bound: Bound
    pages: Pages
    source: str


@dataclass
class DraftRelation:
    name: str
    columns: Columns
    extra: dict[str, str]
    key: tuple[str, ...] = ()
    key_is_sure: bool = False
    methods: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)  # by method
    asked: dict[frozenset[str], str] = field(default_factory=dict)  # the method that is given just these

    def add(self, way: Way) -> None:
        """Raises `Unclear` where another operation asks in the same way, and for as many at once."""
        self._find_key(way)
        asked = frozenset(way.bound.looked_up)
        method = _method(way, [c for c in self.columns.found if c.name not in way.bound.extra])
        if asked in self.asked:
            other = self.asked[asked]
            if self.methods[other].get("batch_size", 1) >= way.bound.batch:
                raise Unclear(f"it asks for {self.name} as another operation does")
            del self.methods[other]
        name = free(_method_name(way.bound), self.methods)
        self.methods[name] = method
        self.asked[asked] = name
        guess = ["are the rows in this list?"] if way.rows.guessed else []
        self.notes[name] = [*guess, *way.bound.notes, *way.pages.notes]

    def _find_key(self, way: Way) -> None:
        """What one row is looked up by tells rows apart."""
        if not way.rows.many and way.bound.required and not self.key_is_sure:
            self.key, self.key_is_sure = tuple(way.bound.required), True
        elif not self.key and "id" in self.columns.names:
            self.key = (*self.extra, "id")

    def content(self) -> dict[str, Any]:
        """As a declaration has it."""
        fields = {**self.extra, **{column.name: column.type for column in self.columns.found}}
        for method in self.methods.values():
            sure = {*self.key, *method.get("required", ()), *method.get("any_of", ())}
            optional = [c.name for c in self.columns.found if c.optional and c.name not in sure]
            if optional:
                method["reply"]["optional"] = optional
        said: dict[str, Any] = {"key": list(self.key)} if self.key else {}
        return {**said, "fields": fields, "methods": self.methods}


class Relations:
    """The relations that have been found, by what they hold."""

    def __init__(self) -> None:
        self.found: dict[str, DraftRelation] = {}
        self._known: dict[object, DraftRelation] = {}

    def add(self, way: Way) -> None:
        collection = collection_of(way.operation.segments)
        held = (
            tuple((c.name, c.type, c.path) for c in way.columns.found),
            tuple(sorted(way.bound.extra)),
            singular(collection),
            context_of(way.operation.segments),
            way.source,
        )
        relation = self._known.get(held)
        if relation is None:
            if len(self.found) >= MOST:
                raise Unclear(f"more than {MOST:,} relations: draft some of the paths at a time, with --path")
            name = self._name(way, collection)
            relation = DraftRelation(name, way.columns, way.bound.extra)
            relation.add(way)
            self._known[held] = self.found[name] = relation
        else:
            relation.add(way)

    def _name(self, way: Way, collection: str) -> str:
        return _first_free(_names(way, collection), self.found)


def _names(way: Way, collection: str) -> list[str]:
    """Names for a relation, the best first."""
    steps = [snake(s) for s in way.operation.segments if "{" not in s and not _PREFIX.match(s.lower())]
    whole = "_".join(step for step in steps if step)
    record = snake(way.rows.record.name)
    if way.bound.extra:
        by = "_and_".join(way.bound.extra)
        return [n for n in (whole if len(steps) > 1 else "", f"{collection}_by_{by}") if n]
    return [n for n in (collection, record, whole) if n]


def _first_free(names: list[str], taken: Container[str]) -> str:
    shortened = [name[:60].strip("_") or "rows" for name in names]
    return next((name for name in shortened if name not in taken), free(shortened[0], taken))


def _method_name(bound: Bound) -> str:
    if bound.required:
        return "by_" + "_and_".join(bound.required)[:80]
    return "by_" + "_or_".join(bound.any_of)[:80] if bound.any_of else "all"


def _method(way: Way, columns: list[Column]) -> dict[str, Any]:
    """One access method, as a declaration has it. Whether fields may be missing is said when the key is known."""
    bound, operation = way.bound, way.operation
    said: dict[str, Any] = {"mirrors": [way.source]}
    for part in ("required", "any_of", "optional"):
        if names := getattr(bound, part):
            said[part] = names
    if bound.batch > 1:
        said["batch_size"] = bound.batch
    if bound.extra:
        said["given"] = list(bound.extra)
    if bound.required and bound.example.keys() == {*bound.required}:
        said["examples"] = [bound.example]
    said["request"] = _request(way)
    if way.pages.said:
        said["pages"] = way.pages.said
    if bound.required and (not way.rows.many or "404" in operation.statuses):
        said["empty"] = [404]
    reply: dict[str, Any] = {"kind": "json"}
    if way.rows.path:
        reply["rows"] = "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in way.rows.path)
    if renamed := {c.name: c.place for c in columns if c.path != (c.name,)}:
        reply["fields"] = renamed
    return {**said, "reply": reply}


def _request(way: Way) -> dict[str, Any]:
    bound = way.bound
    request: dict[str, Any] = {"path": bound.path}
    query = {**bound.parts.get("query", {}), **way.pages.sent}
    parts = {"query": query, "json": bound.parts.get("json"), "headers": bound.parts.get("headers")}
    request |= {part: values for part, values in parts.items() if values}
    if way.operation.verb == "post" and "json" not in request:
        raise Unclear("nothing of its body can be filled in")
    if bound.join and bound.join != ",":
        request["join"] = bound.join
    return request


def left_out(columns: Columns) -> str:
    """The sentence about what a relation has no column for."""
    shown = ", ".join(one_line(name, 60) for name in columns.left_out[:10])
    return f"left out: {shown}{', ...' if len(columns.left_out) > 10 else ''}"
