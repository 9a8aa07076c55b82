"""A wrapper whose requests or replies are the author's code; what is declared beside it is data as ever."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from mediator.catalog.model import Field
from mediator.catalog.wrapper import Binding, Cutter, Reply, Request
from mediator.errors import Refused, SchemaChanged, Unreadable
from wrappers.code import Code, blamed, ours
from wrappers.columns import ABSENT, described
from wrappers.declared import DeclaredWrapper
from wrappers.parsed import Parsed
from wrappers.requesting import Step
from wrappers.row_columns import Gathered, from_table, gathered
from wrappers.site_reply import SiteReply


class CodeReader(BaseModel):
    """Stands where a reader is declared, when code reads the rows: there is nothing to look for beside them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["code"] = "code"
    fields: dict[str, str] = {}
    optional: tuple[str, ...] = ()

    def parse(self, relation: str, fields: Sequence[Field], reply: Reply) -> Parsed:
        raise Unreadable(f"{relation}: no code reads its replies: name it in 'wrapper'")

    def look(self, reply: Reply, path: str) -> object:
        return ABSENT


@dataclass(frozen=True)
class CodedWrapper(DeclaredWrapper):
    """Calls the author's functions, and turns whatever goes wrong in them into a failure that names their line.

    One of them may take its time, so that whoever calls `request` and `read` does so where nothing waits.
    """

    code: Code = field(kw_only=True)
    me: object = field(kw_only=True, compare=False)  # the instance of the code's class
    parameters: Mapping[str, str] = field(kw_only=True, default_factory=dict)  # by bind-field
    may_be_slow: bool = field(kw_only=True, default=True)

    def request(self, bind_set: tuple[str, ...], bindings: Sequence[Binding]) -> Request:
        return self._begun(self.written(bind_set, bindings))

    def written(self, bind_set: tuple[str, ...], bindings: Sequence[Binding]) -> Request:
        function = self.code.request
        if function is None:
            return super().written(bind_set, bindings)
        columns: Iterable[object] = (
            ([b[i] for b in bindings] for i in range(len(bind_set))) if self.several else bindings[0]
        )
        names = (self.parameters.get(bound, bound) for bound in bind_set)
        try:
            request = function(self.me, **dict(zip(names, columns, strict=True)))
        except BaseException as error:
            if ours(error):
                raise
            raise Refused(f"the request cannot be written: {blamed(error, function)}") from error
        if not isinstance(request, Request):
            raise Refused(
                f"{self.code} returned {described(request)}, where a request is expected: return get(...) or post(...)"
            )
        return request

    def parsed(
        self,
        told: Sequence[Field],
        request: Request,
        bind_set: tuple[str, ...],
        bindings: Sequence[Binding],
        reply: Reply,
    ) -> tuple[Parsed, tuple[Request, ...] | None]:
        own = request.rows if isinstance(request, Step) else None
        if own is None and self.code.rows is None:
            return super().parsed(told, request, bind_set, bindings, reply)
        heard = SiteReply(
            reply.status,
            reply.headers,
            reply.body,
            address=reply.address,
            relation=self.relation,
            request=request,
            bind_set=bind_set,
            bindings=bindings,
        )
        found = self._gathered(told, own, heard)
        then: tuple[Request, ...] | None = found.then
        if own is not None:
            then = tuple(map(self._begun, found.then))
        elif self.paging is not None:
            if found.then:
                raise Unreadable(
                    f"{self.relation}: {self.code} yields requests, and its pages are declared: leave out one of these"
                )
            then = None
        return Parsed(found.columns, found.count, lambda path: ABSENT), then

    def cutter(self, headers: Mapping[str, str]) -> Cutter | None:
        """What code reads it reads as a whole."""
        return None

    def _begun(self, request: Request) -> Request:
        """The first of the declared pages; what another function reads is none of them."""
        if self.paging is None or (isinstance(request, Step) and request.rows is not None):
            return request
        if isinstance(request, Step) and request.kept is not None:
            raise Refused(f"{self.code} gives a request something to keep, but declared pages keep nothing")
        return self.paging.begin(request)

    def _gathered(
        self, told: Sequence[Field], own: Callable[[Any], object] | None, reply: SiteReply
    ) -> Gathered:
        """`own` is what the request named to read its reply; it is bound to its instance already."""
        function: Callable[..., object] | None = own or self.code.rows
        assert function is not None
        try:
            found = own(reply) if own is not None else function(self.me, reply)
            if isinstance(found, pa.Table | pa.RecordBatch):
                return from_table(self.relation, told, found)
            if found is None or not isinstance(found, Iterable) or isinstance(found, str | bytes | Mapping):
                raise SchemaChanged(
                    f"{self.relation}: {_name(function)} returned {described(found)}, where rows are expected: "
                    "yield them, or return a list"
                )
            return gathered(self.relation, told, dict(self.code.defaults), found)
        except BaseException as error:
            if ours(error):
                raise
            raise Unreadable(
                f"{self.relation}: the reply cannot be read: {blamed(error, function)}"
            ) from error


def _name(function: Callable[..., object]) -> str:
    return str(getattr(function, "__qualname__", function))
