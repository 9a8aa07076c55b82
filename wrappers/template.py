"""Request templates: from bindings to one HTTP request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import Any, Literal
from urllib.parse import quote, urlencode

import orjson
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from mediator.catalog.wrapper import Binding, Request
from mediator.errors import Refused

PLACEHOLDER = re.compile(r"\{(\w+(?:\^=|[<>]=?)?)\}")
_FORM = ("Content-Type", "application/x-www-form-urlencoded")
_JSON = ("Content-Type", "application/json")
_TOKEN = re.compile(r"[!#$%&'*+.^`|~\w-]+", re.ASCII)  # the name of a header, or the method
_NO_SEPARATORS = ("repeat", "list")
_LEFT_OUT = object()  # what becomes of a JSON value whose fields are not bound


class Template(BaseModel):
    """How a request is written. `{field}` stands for the value of a bind-field, `{field>=}` for that of one with an
    operator.

    A parameter, header or JSON value whose fields are not bound is left out. A JSON text that is nothing but
    `{field}` becomes the value as it is: a number stays one. Where a request carries several bindings, the
    place that names the bind-field carries all their values: joined by `join`; repeated when that is
    `repeat`; or as a JSON list when it is `list`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    path: str = Field(pattern="^/")
    query: dict[str, str] = {}
    form: dict[str, str] = {}
    json_body: dict[str, Any] = Field(default={}, alias="json")
    headers: dict[str, str] = {}
    method: Literal["GET", "POST"] | None = None  # POST where there is a form or JSON, else GET
    join: str = Field(default=",", min_length=1)

    @field_validator("headers")
    @classmethod
    def _are_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not _TOKEN.fullmatch(name) or not _one_line(value):
                raise ValueError(
                    f"{name!r} is not a header: write a name of letters and dashes, and one line"
                )
        return headers

    @model_validator(mode="after")
    def _has_one_body(self) -> Template:
        if self.form and self.json_body:
            raise ValueError("a request has one body: give form or json")
        if self.join == "list" and not self.json_body:
            raise ValueError("join: list is for json: write a separator, or repeat")
        return self

    def placeholders(self) -> set[str]:
        """Every bind-field that this template has a place for."""
        texts = (self.path, *self.query.values(), *self.form.values(), *self.headers.values())
        return {name for text in (*texts, *_texts(self.json_body)) for name in PLACEHOLDER.findall(text)}

    def path_placeholders(self) -> set[str]:
        return set(PLACEHOLDER.findall(self.path))

    def request(
        self, bind_set: tuple[str, ...], bindings: Sequence[Binding], *, several: bool = False
    ) -> Request:
        """One request for all of the bindings. `several`: others may carry more than this one does."""
        bound = {field: [b[i] for b in bindings] for i, field in enumerate(bind_set)}
        values = {field: [as_text(v) for v in found] for field, found in bound.items()}
        if several and self.join not in _NO_SEPARATORS:
            for field in self.placeholders() & values.keys():
                self._check_one(field, values[field])
        body, type_ = self._body(bound, values)
        return Request(
            path=PLACEHOLDER.sub(lambda m: _step(m[1], self._one(m[1], values)), self.path),
            query=tuple(self._parameters(self.query, values)),
            method=self.method or ("GET" if body is None else "POST"),
            headers=(*self._headers(values), *type_),
            body=body,
        )

    def _body(
        self, bound: dict[str, list[object]], values: dict[str, list[str]]
    ) -> tuple[bytes | None, tuple[tuple[str, str], ...]]:
        if self.json_body:
            return orjson.dumps(self._filled(self.json_body, bound, values)), (_JSON,)
        if self.form:
            return urlencode(tuple(self._parameters(self.form, values))).encode(), (_FORM,)
        return None, ()

    def _headers(self, values: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
        for name, value in self._parameters(self.headers, values):
            if not _one_line(value):
                raise Refused(f"{value[:60]!r} cannot be sent in the header {name!r}")
            yield name, value

    def _filled(self, part: Any, bound: dict[str, list[object]], values: dict[str, list[str]]) -> Any:
        """JSON with the values in their places, without what is not bound."""
        if isinstance(part, dict):
            filled = {name: self._filled(value, bound, values) for name, value in part.items()}
            return {name: value for name, value in filled.items() if value is not _LEFT_OUT}
        if isinstance(part, list):
            return [v for item in part if (v := self._filled(item, bound, values)) is not _LEFT_OUT]
        if not isinstance(part, str):
            return part
        fields = PLACEHOLDER.findall(part)
        if not all(field in values for field in fields):
            return _LEFT_OUT
        if (
            len(fields) == 1
            and part == f"{{{fields[0]}}}"
            and (self.join == "list" or len(bound[fields[0]]) == 1)
        ):
            plain = [_plain(value) for value in bound[fields[0]]]
            return plain if self.join == "list" else plain[0]
        return PLACEHOLDER.sub(lambda m: self._one(m[1], values), part)

    def _parameters(self, texts: dict[str, str], values: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
        for name, text in texts.items():
            fields = PLACEHOLDER.findall(text)
            if not all(field in values for field in fields):
                continue
            if self.join == "repeat" and len(set(fields)) == 1:
                yield from ((name, text.replace(f"{{{fields[0]}}}", v)) for v in values[fields[0]])
            else:
                yield name, PLACEHOLDER.sub(lambda m: self._one(m[1], values), text)

    def _one(self, field: str, values: dict[str, list[str]]) -> str:
        """The one text that stands for a field's values."""
        if len(values[field]) == 1:
            return values[field][0]
        self._check_one(field, values[field])
        return self.join.join(values[field])

    def _check_one(self, field: str, values: list[str]) -> None:
        """Whether a site that takes apart what is joined finds these values. It takes apart also what comes alone."""
        for value in values:
            if self.join in value:
                raise Refused(
                    f"{field} = {value!r} cannot be sent in a list joined by {self.join!r}: the site would read it as "
                    "several values; declare 'join: repeat', or 'join: list' for JSON, where the site takes that, "
                    "another separator, or no batch_size"
                )


def as_text(value: object) -> str:
    """A bound value as a site would write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, date | datetime):
        return value.isoformat()
    return str(value)


def _plain(value: object) -> object:
    """A bound value as JSON has it."""
    return value if isinstance(value, bool | int | float | str) else as_text(value)


def _step(field: str, value: str) -> str:
    """A value as part of a path. An empty one, or dots, would lead to another page than the one declared."""
    if value in ("", ".", ".."):
        raise Refused(f"{field} = {value!r} cannot be sent in a path")
    return quote(value, safe="")


def _one_line(text: str) -> bool:
    return all(c == "\t" or (c >= " " and c != "\x7f") for c in text)


def _texts(part: Any) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict | list):
        for value in part.values() if isinstance(part, dict) else part:
            yield from _texts(value)
