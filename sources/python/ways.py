"""The ways into a relation, as attributes of its class: data, or functions, or one of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import Any, Literal, TypeVar

from sources.fresh import SiteFreshness
from sources.python.classes import Source
from wrappers import GraphqlQuery, Paging, Reader, Rule, Template

F = TypeVar("F", bound=Callable[..., object])
Names = str | Iterable[str]
Sites = Source | str | Iterable[Source | str]


class Way:
    """An access method. As a decorator it takes the function that writes requests; `rows` takes the one that reads."""

    def __init__(self, kind: Literal["index", "scan"], said: Mapping[str, Any]) -> None:
        self.kind = kind
        self.said = {name: value for name, value in said.items() if value is not None}
        self.request: Callable[..., object] | None = None
        self.reads: Callable[..., object] | None = None
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.name or name  # it may get a second one, as what a decorator returned

    def __call__(self, function: F) -> Way:
        self.request = function
        return self

    def anew(self, function: Callable[..., object]) -> Way:
        """The same way, for which another function writes the requests."""
        other = copy(self)
        other.request = function
        return other

    def rows(self, function: F) -> F:
        """The function that reads replies. It stays a method like any other, so that several ways may share it."""
        self.reads = function
        return function


def index(
    *,
    mirrors: Sites,
    required: Names | None = None,
    any_of: Names | None = None,
    optional: Names | None = None,
    batch_size: int | None = None,
    request: Template | None = None,
    reply: Reader | Callable[..., object] | None = None,
    graphql: GraphqlQuery | None = None,
    pages: Paging | None = None,
    given: Names | None = None,
    empty: int | Iterable[int] | None = None,
    errors: Rule | Iterable[Rule] | None = None,
    fresh_for: float | Literal["site"] | SiteFreshness | None = None,
    max_pages: int | None = None,
    exact: bool | None = None,
    proves: Literal["all", "some"] | None = None,
    at_most: int | None = None,
    order: Names | None = None,
    rows_per_lookup: float | None = None,
    examples: Iterable[Mapping[str, object]] | None = None,
) -> Way:
    """A way in that must be given something. Where a function writes the request, its parameters say what.

    What each of these says is told in docs/declaring-a-site.md.
    """
    return Way("index", locals())


def scan(
    *,
    mirrors: Sites,
    optional: Names | None = None,
    request: Template | None = None,
    reply: Reader | Callable[..., object] | None = None,
    graphql: GraphqlQuery | None = None,
    pages: Paging | None = None,
    empty: int | Iterable[int] | None = None,
    errors: Rule | Iterable[Rule] | None = None,
    fresh_for: float | Literal["site"] | SiteFreshness | None = None,
    max_pages: int | None = None,
    exact: bool | None = None,
    proves: Literal["all", "some"] | None = None,
    at_most: int | None = None,
    order: Names | None = None,
    rows_per_lookup: float | None = None,
    examples: Iterable[Mapping[str, object]] | None = None,
) -> Way:
    """A way in that brings every row."""
    return Way("scan", locals())
