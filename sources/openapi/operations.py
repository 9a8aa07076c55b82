"""The operations of a document that read: each with its parameters and the reply that it promises."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from sources.openapi.reading import Document, Unclear
from sources.openapi.shapes import Shape, Shapes, example
from sources.openapi.words import one_line, snake

MOST = 20_000  # operations that are looked at
_LONGEST = 1_000  # of a path
_VERBS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
_SEARCH = re.compile(r"search|query|find|lookup|filter")
_JSON = re.compile(r"^(application|text)/(?:[\w.+-]+\+)?json$|^\*/\*$|^application/\*$")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Parameter:
    name: str
    place: str  # path, query, header, cookie, or json: a property of the body
    required: bool
    shape: Shape
    join: str = ""  # of a list: its separator, `repeat` or `list`

    @property
    def plain(self) -> str:
        return snake(self.name)


@dataclass(frozen=True)
class Operation:
    verb: str
    path: str
    parameters: tuple[Parameter, ...]
    reply: Shape
    headers: frozenset[str]  # of the reply, in lower case
    statuses: frozenset[str]
    text: str  # what is said of it in words
    servers: Any
    security: Any

    @property
    def label(self) -> str:
        return f"{self.verb.upper()} {one_line(self.path, 80)}"

    @property
    def segments(self) -> list[str]:
        """The steps of the path. That of `/books({id})` are those of `/books/{id}`."""
        return [part for part in self.path.replace("({", "/{").replace("})", "}").split("/") if part]


@dataclass(frozen=True)
class Skipped:
    label: str
    why: str


def operations(document: Document, shapes: Shapes) -> Iterator[Operation | Skipped]:
    """All of them; those that cannot be used with the reason. Writes are not told: they are no ways to read."""
    count = 0
    for path, raw in document.part("paths").items():
        try:
            item = document.meant(raw)
        except Unclear as unclear:
            yield Skipped(one_line(path, 80), str(unclear))
            continue
        for verb in _VERBS:
            if verb not in item:
                continue
            count += 1
            if count > MOST:
                yield Skipped("further operations", f"more than {MOST:,} in one document")
                return
            said = item[verb]
            if verb != "get" and not (verb == "post" and _searches(path, said)):
                yield Skipped(f"{verb.upper()} {one_line(path, 80)}", "")
                continue
            try:
                yield _Reading(document, shapes, path, verb).operation(item, document.meant(said))
            except Unclear as unclear:
                yield Skipped(f"{verb.upper()} {one_line(path, 80)}", str(unclear))


def _searches(path: str, said: Any) -> bool:
    """Whether a POST only reads: by its name, as nothing else tells."""
    name = said.get("operationId") if isinstance(said, dict) else ""
    return bool(_SEARCH.search(path.rsplit("/", 1)[-1].lower()) or _SEARCH.match(snake(str(name or ""))))


@dataclass(frozen=True)
class _Reading:
    document: Document
    shapes: Shapes
    path: str
    verb: str

    def operation(self, item: dict[str, Any], said: dict[str, Any]) -> Operation:
        if not self.path.startswith("/") or set("?#") & set(self.path) or "${" in self.path:
            raise Unclear("its path is more than a path")
        if len(self.path) > _LONGEST:
            raise Unclear(f"its path has more than {_LONGEST:,} characters")
        responses = said.get("responses")
        responses = responses if isinstance(responses, dict) else {}
        response = self._response(responses)
        found = self._parameters(item, said)
        headers = response.get("headers")
        return Operation(
            verb=self.verb,
            path=self.path,
            parameters=(*found, *self._body(said, found)),
            reply=self.shapes.shape(self._schema(response)),
            headers=frozenset(str(h).lower() for h in headers) if isinstance(headers, dict) else frozenset(),
            statuses=frozenset(map(str, responses)),
            text=" ".join(str(said.get(part) or "") for part in ("summary", "description"))[:2_000],
            servers=said.get("servers") or item.get("servers"),
            security=said.get("security"),
        )

    def _response(self, responses: dict[str, Any]) -> dict[str, Any]:
        good = [s for s in responses if re.fullmatch("2([0-9]{2}|XX)", str(s))]
        for status in sorted(good, key=lambda s: (s != "200", s)) or ["default"]:
            if status in responses and status != "204":
                return self.document.meant(responses[status])
        raise Unclear("it has no reply with rows")

    def _schema(self, response: dict[str, Any]) -> Any:
        if self.document.old:
            if "schema" not in response:
                raise Unclear("its reply has no schema")
            return response["schema"]
        return self._json(response.get("content"), "its reply")

    def _json(self, content: Any, what: str) -> Any:
        """The schema of the JSON among these kinds of content."""
        if not isinstance(content, dict) or not content:
            raise Unclear(f"{what} has no content")
        for kind, media in sorted(content.items(), key=lambda said: said[0] != "application/json"):
            if _JSON.match(str(kind).split(";")[0].strip().lower()):
                if isinstance(media, dict) and isinstance(media.get("schema"), dict):
                    return media["schema"]
                raise Unclear(f"{what} has no schema")
        raise Unclear(f"{what} is {one_line(next(iter(content)), 40)}, not JSON")

    def _parameters(self, item: dict[str, Any], said: dict[str, Any]) -> tuple[Parameter, ...]:
        found: dict[tuple[str, str], Parameter] = {}
        for part in (item.get("parameters"), said.get("parameters")):
            for raw in part if isinstance(part, list) else ():
                parameter = self._parameter(self.document.meant(raw))
                if parameter is not None:
                    found[parameter.place, parameter.name] = parameter
        named = _PLACEHOLDER.findall(self.path)
        if len(set(named)) < len(named) or set("{}") & set(_PLACEHOLDER.sub("", self.path)):
            raise Unclear("the braces in its path cannot be meant")
        paths = {
            name: found.pop(("path", name), Parameter(name, "path", True, Shape("string"))) for name in named
        }
        return (*paths.values(), *(p for p in found.values() if p.place != "path"))

    def _parameter(self, said: dict[str, Any]) -> Parameter | None:
        name, place = said.get("name"), said.get("in")
        if not isinstance(name, str) or place not in ("path", "query", "header", "cookie"):
            return None  # a body of Swagger's, or nothing at all
        if "content" in said:
            raise Unclear(f"its parameter {name[:40]!r} is written in a format of its own")
        shape = self.shapes.shape(said if self.document.old else said.get("schema"))
        if (given := example(said)) is not None:
            shape = replace(shape, example=given)
        join = _join(said, place) if shape.kind == "array" else ""
        return Parameter(name, place, said.get("required") is True, shape, join)

    def _body(self, said: dict[str, Any], parameters: tuple[Parameter, ...]) -> Iterator[Parameter]:
        """The properties of the body, as parameters."""
        if self.verb != "post":
            return
        if self.document.old:
            raw = [self.document.meant(p) for p in said.get("parameters") or () if isinstance(p, dict)]
            schema = next((p.get("schema") for p in raw if p.get("in") == "body"), None)
        else:
            body = self.document.meant(said.get("requestBody") or {})
            schema = self._json(body.get("content"), "its body")
        shape = self.shapes.shape(schema)
        if shape.kind != "object" or not shape.properties:
            raise Unclear("its body is no object with properties")
        for name, part in shape.properties.items():
            inner = self.shapes.shape(part)
            join = "list" if inner.kind == "array" else ""
            yield Parameter(name, "json", name in shape.required, inner, join)


def _join(said: dict[str, Any], place: str) -> str:
    """How a list is written in one parameter."""
    style = said.get("collectionFormat") or said.get("style") or ("form" if place == "query" else "simple")
    if "collectionFormat" in said or style not in ("form", "simple"):
        known = {"multi": "repeat", "pipes": "|", "ssv": " ", "pipeDelimited": "|", "spaceDelimited": " "}
        return known.get(str(style), ",")
    explode = said.get("explode", place == "query")
    return "repeat" if explode and place == "query" else ","
