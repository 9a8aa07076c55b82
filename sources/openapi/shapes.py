"""What a schema allows, in one plain form: references followed, `allOf` merged, alternatives brought together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from sources.openapi.reading import Document, Unclear

_DEEPEST = 40
_NUMBERS = frozenset({"integer", "number"})
_SCALARS = frozenset({"string", "boolean", *_NUMBERS})


@dataclass(frozen=True)
class Shape:
    """`kind` is a type of JSON Schema; empty where nothing is said, `mixed` where several are allowed."""

    kind: str = ""
    format: str = ""
    properties: dict[str, Any] = field(default_factory=dict)  # schemas, not looked at yet
    required: frozenset[str] = frozenset()
    items: Any = None
    nullable: bool = False
    values: tuple[Any, ...] = ()  # of an enum or a const
    default: Any = None
    example: Any = None
    most: int | None = None  # items of a list, or the largest number
    name: str = ""  # of the reference that led here

    @property
    def is_scalar(self) -> bool:
        return self.kind in _SCALARS


class Shapes:
    """The shapes of a document's schemas. Each reference is followed once, however often it stands there."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._known: dict[str, Shape] = {}
        self._under_way: set[str] = set()

    def shape(self, schema: Any, depth: int = 0) -> Shape:
        """Raises `Unclear` for what leads out of the document, or nowhere."""
        if depth > _DEEPEST:
            raise Unclear("a schema that is too deep")
        if not isinstance(schema, dict):
            return Shape()  # `true`: anything
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return self._inline(schema, depth)
        found = self._followed(reference, depth)
        beside = {name: value for name, value in schema.items() if name != "$ref"}
        return replace(_both(found, self._inline(beside, depth)), name=found.name) if beside else found

    def _followed(self, reference: str, depth: int) -> Shape:
        if reference not in self._known:
            if reference in self._under_way:
                return Shape()  # made of itself: that adds nothing
            self._under_way.add(reference)
            try:
                found = self.shape(self._document.at(reference), depth + 1)
            finally:
                self._under_way.discard(reference)
            self._known[reference] = replace(found, name=reference.rsplit("/", 1)[-1])
        return self._known[reference]

    def _inline(self, schema: dict[str, Any], depth: int) -> Shape:
        found = _own(schema)
        for part in _list(schema.get("allOf")):
            found = _both(found, self.shape(part, depth + 1))
        for word in ("oneOf", "anyOf"):
            if choices := _list(schema.get(word)):
                found = _both(found, _either([self.shape(choice, depth + 1) for choice in choices]))
        return found


def _own(schema: dict[str, Any]) -> Shape:
    """What a schema says itself, without what it is composed of."""
    type_, values = schema.get("type"), tuple(_list(schema.get("enum")))
    if "const" in schema:
        values = (schema["const"],)
    kinds = [k for k in (type_ if isinstance(type_, list) else [type_]) if isinstance(k, str)]
    nullable = "null" in kinds or schema.get("nullable") is True or (None in values)
    kinds = [k for k in kinds if k != "null"]
    properties, required = schema.get("properties"), schema.get("required")
    most: Any = schema.get("maxItems", schema.get("maximum"))
    return Shape(
        kind=_one_of(kinds) or _told_by(schema, values) or ("null" if type_ == "null" else ""),
        format=str(schema.get("format") or ""),
        properties=properties if isinstance(properties, dict) else {},
        required=frozenset(n for n in _list(required) if isinstance(n, str)),
        items=schema.get("items"),
        nullable=nullable,
        values=values,
        default=schema.get("default"),
        example=example(schema),
        most=int(most) if _is_count(most) else None,
    )


def _told_by(schema: dict[str, Any], values: tuple[Any, ...]) -> str:
    """The type of a schema that does not name it."""
    if isinstance(schema.get("properties"), dict):
        return "object"
    if "items" in schema:
        return "array"
    named = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return _one_of(list(dict.fromkeys(named.get(type(v), "") for v in values if v is not None)))


def _one_of(kinds: list[str]) -> str:
    if len(kinds) <= 1:
        return kinds[0] if kinds else ""
    return "number" if set(kinds) == _NUMBERS else "mixed"


def _both(one: Shape, other: Shape) -> Shape:
    """What is allowed where both are asked for."""
    return Shape(
        kind=_narrower(one.kind, other.kind),
        format=one.format or other.format,
        properties={**one.properties, **other.properties},
        required=one.required | other.required,
        items=one.items if one.items is not None else other.items,
        nullable=one.nullable or other.nullable,
        values=one.values or other.values,
        default=one.default if one.default is not None else other.default,
        example=one.example if one.example is not None else other.example,
        most=one.most if one.most is not None else other.most,
        name=one.name or other.name,
    )


def _narrower(one: str, other: str) -> str:
    if not one or not other or one == other:
        return one or other
    return "integer" if {one, other} == _NUMBERS else "mixed"


def _either(shapes: list[Shape]) -> Shape:
    """What is allowed where any of them is. Of objects only what all of them promise is promised."""
    nullable = any(s.nullable or s.kind == "null" for s in shapes)
    rest = [s for s in shapes if s.kind != "null"]
    if not rest:
        return Shape(nullable=nullable)
    found = rest[0]
    for other in rest[1:]:
        same = found.format == other.format
        found = Shape(
            kind=_one_of(sorted({found.kind, other.kind})),
            format=found.format if same else "",
            properties={**other.properties, **found.properties},
            required=found.required & other.required,
            items=found.items if found.items == other.items else None,
            values=(*found.values, *other.values) if found.values and other.values else (),
            default=found.default if found.default is not None else other.default,
        )
    return replace(found, nullable=nullable)


def example(schema: dict[str, Any]) -> Any:
    """A value that the document gives as an example."""
    found = schema.get("example")
    if found is None and isinstance(several := schema.get("examples"), list | dict) and several:
        found = next(iter(several.values())) if isinstance(several, dict) else several[0]
        found = found.get("value") if isinstance(found, dict) else found
    return found if isinstance(found, str | int | float) else None


def _is_count(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e9


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
