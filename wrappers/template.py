"""Request templates: from bindings to one HTTP request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import Literal
from urllib.parse import quote, urlencode

from pydantic import BaseModel, ConfigDict, Field

from mediator.catalog.wrapper import Binding, Request
from mediator.errors import Refused

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_FORM = ("Content-Type", "application/x-www-form-urlencoded")


class Template(BaseModel):
    """How a request is written. `{field}` stands for the value of a bind-field.

    A parameter whose fields are not bound is left out. Where a request carries several bindings, the
    parameter that names the bind-field carries all their values: joined by `join`, or repeated when that is
    `repeat`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str = Field(pattern="^/")
    query: dict[str, str] = {}
    form: dict[str, str] = {}
    headers: dict[str, str] = {}
    method: Literal["GET", "POST"] | None = None  # POST where there is a form, else GET
    join: str = Field(default=",", min_length=1)

    def placeholders(self) -> set[str]:
        """Every bind-field that this template has a place for."""
        texts = (self.path, *self.query.values(), *self.form.values())
        return {name for text in texts for name in _PLACEHOLDER.findall(text)}

    def path_placeholders(self) -> set[str]:
        return set(_PLACEHOLDER.findall(self.path))

    def request(self, bind_set: tuple[str, ...], bindings: Sequence[Binding]) -> Request:
        """One request for all of the bindings."""
        values = {field: [as_text(b[i]) for b in bindings] for i, field in enumerate(bind_set)}
        form = tuple(self._parameters(self.form, values))
        return Request(
            path=_PLACEHOLDER.sub(lambda m: quote(self._one(m[1], values), safe=""), self.path),
            query=tuple(self._parameters(self.query, values)),
            method=self.method or ("POST" if self.form else "GET"),
            headers=(*self.headers.items(), _FORM) if self.form else tuple(self.headers.items()),
            body=urlencode(form).encode() if self.form else None,
        )

    def _parameters(self, texts: dict[str, str], values: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
        for name, text in texts.items():
            fields = _PLACEHOLDER.findall(text)
            if not all(field in values for field in fields):
                continue
            if self.join == "repeat" and fields:
                yield from ((name, text.replace(f"{{{fields[0]}}}", v)) for v in values[fields[0]])
            else:
                yield name, _PLACEHOLDER.sub(lambda m: self._one(m[1], values), text)

    def _one(self, field: str, values: dict[str, list[str]]) -> str:
        """The one text that stands for a field's values."""
        if len(values[field]) == 1:
            return values[field][0]
        for value in values[field]:
            # Joined, it would read as two values and the lookup would be answered for neither.
            if self.join in value:
                raise Refused(f"{field} = {value!r} cannot be sent in a list joined by {self.join!r}")
        return self.join.join(values[field])


def as_text(value: object) -> str:
    """A bound value as a site would write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, date | datetime):
        return value.isoformat()
    return str(value)
