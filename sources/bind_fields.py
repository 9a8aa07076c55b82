"""Checks of what a method is bound by, and of what it promises of the rows that come."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pyarrow as pa

from mediator.catalog.bindfields import EQUAL, OPERATORS, check_operator, operator_of
from mediator.errors import CatalogError
from sources.complaint import Complaint, Where, known
from sources.declaration import MethodSpec

_SPELT = re.compile(r"(.*?)\s*([<>=!^~]*)", re.DOTALL)


def check_bind_fields(method: MethodSpec, types: Mapping[str, pa.DataType], where: Where) -> None:
    """Each is a field, or a field and an operator that its values have."""
    for place, name in _bind_fields(method, where):
        spelt = _SPELT.fullmatch(name)
        assert spelt is not None
        field, operator = spelt[1], spelt[2]
        if operator and operator not in OPERATORS:
            others = f"use one of {', '.join(OPERATORS)}, or write {field!r} for a value that it equals"
            raise Complaint(place, f"unknown operator {operator!r}: {others}")
        known(field, types, place, "field")
        if name != field + operator:
            raise Complaint(place, f"{name!r} has a space in it: write {field + operator!r}")
        try:
            check_operator(name, types[field])
        except CatalogError as error:
            raise Complaint(place, f"{error}: write {field!r}, or remove it") from None


def check_promises(method: MethodSpec, types: Mapping[str, pa.DataType], where: Where) -> None:
    """What is said of one lookup, and of fields that the rows have.

    A request carries several values of a field, but one bound.
    """
    if method.exact is False and method.given:
        raise Complaint(
            (*where, "exact"),
            f"rows of another {method.given[0]!r} would not be noticed: read it from the rows, "
            "or leave out exact: false",
        )
    bounds = [name for name in method.bound if operator_of(name) != EQUAL]
    if method.batch_size > 1:
        if bounds:
            message = f"{bounds[0]!r} is bound to one value at a time: leave out batch_size"
            raise Complaint((*where, "batch_size"), message)
        for part in ("at_most", "order"):
            if getattr(method, part):
                raise Complaint((*where, part), "it is said of one lookup: leave it out, or batch_size")
    for number, name in enumerate(method.order):
        place = (*where, "order", number)
        known(name.removeprefix("-"), types, place, "field")
        if name.removeprefix("-") in [n.removeprefix("-") for n in method.order[:number]]:
            raise Complaint(place, f"{name.removeprefix('-')!r} stands twice: remove one of them")


def _bind_fields(method: MethodSpec, where: Where) -> Iterator[tuple[Where, str]]:
    for part in ("required", "any_of", "optional"):
        for name in getattr(method, part):
            yield (*where, part), name
