"""From classes to what a YAML file would say of them, so that one model checks both."""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime
from functools import partial
from inspect import isfunction
from types import UnionType
from typing import Any, ClassVar, Union

from pydantic import BaseModel

from mediator.catalog.bindfields import EQUAL, OPERATORS, parted
from sources.complaint import Complaint, Where
from sources.modules import module_name
from sources.python.classes import Int32, Relation, Source
from sources.python.ways import Way
from wrappers import Code
from wrappers.code import Taken

_TYPES: dict[object, str] = {
    str: "string",
    bool: "bool",
    int: "int64",
    Int32: "int32",
    float: "float64",
    date: "date",
    datetime: "timestamp",
}
_SPELT = {"<=": "at_most", "<": "below", ">=": "at_least", ">": "above", "^=": "starts"}
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_LISTS = ("required", "any_of", "optional", "given", "empty", "errors", "order", "examples")


def name_of(relation: type[Relation]) -> str:
    """`BookOffers` is the table book_offers."""
    return relation._declared.name or _WORD.sub("_", relation.__name__).lower()


def ways_of(relation: type[Relation]) -> dict[str, Way]:
    """Also those of the classes that it is derived from, with the functions that it writes anew.

    One that has two names, as what a decorator returned, goes by the first.
    """
    body: dict[str, object] = {}
    for cls in reversed(relation.__mro__):
        for name, value in vars(cls).items():
            before = body.get(name)
            body[name] = before.anew(value) if isinstance(before, Way) and isfunction(value) else value
    found: dict[int, tuple[str, Way]] = {}
    for name, value in body.items():
        if isinstance(value, Way):
            found.setdefault(id(value), (name, value))
    return dict(found.values())


def content_of(relations: Iterable[type[Relation]], sites: Iterable[Source] = ()) -> dict[str, Any]:
    """The sources that these classes name, with those of `sites`, and the relations that they are."""
    relations = list(relations)
    found: dict[str, Source] = {}
    for site in (*sites, *(s for r in relations for w in ways_of(r).values() for s in _sites(w))):
        if found.setdefault(site.name, site) != site:
            raise Complaint(
                ("sources", site.name), f"source {site.name!r} is declared twice: rename one of them"
            )
    return {
        "sources": {name: _source(site) for name, site in found.items()},
        "relations": {name_of(r): _relation(r) for r in relations},
    }


def parameter_of(bound: str) -> str:
    """The parameter for a bind-field: `year` for year, `year_at_least` for `year>=`."""
    field, operator = parted(bound)
    return field if operator == EQUAL else f"{field}_{_SPELT[operator]}"


def _source(site: Source) -> dict[str, Any]:
    return {name: value for name, value in _plain(site).items() if name != "name"}


def _relation(relation: type[Relation]) -> dict[str, Any]:
    where: Where = ("relations", name_of(relation))
    fields = dict(_fields(relation, where))
    body = {name: value for cls in reversed(relation.__mro__[:-1]) for name, value in vars(cls).items()}
    defaults = tuple((name, body[name]) for name in fields if name in body)
    for name, value in defaults:
        if isinstance(value, Way):
            raise Complaint((*where, "methods", name), f"{name!r} is a field as well: rename one of them")
    methods = {
        name: _method(relation, way, tuple(fields), defaults, (*where, "methods", name))
        for name, way in ways_of(relation).items()
    }
    said = {name: _plain(value) for name, value in relation._declared.more.items() if value is not None}
    return {"fields": fields, "key": _listed(relation._declared.key), "methods": methods, **said}


def _fields(relation: type[Relation], where: Where) -> Iterator[tuple[str, object]]:
    try:
        hints = typing.get_type_hints(relation, include_extras=True)
    except Exception as error:
        raise Complaint(
            where, f"an annotation means nothing here: {error}: import what it names at the top of the module"
        ) from None
    for name, hint in hints.items():
        if name[:1] != "_" and typing.get_origin(hint) is not ClassVar:
            yield name, _type(hint, (*where, "fields", name))
    yield from relation._declared.fields.items()


def _type(hint: Any, where: Where) -> str:
    """A type that may be None is the type: any field may be NULL."""
    if typing.get_origin(hint) in (Union, UnionType):
        others = [part for part in typing.get_args(hint) if part is not type(None)]
        hint = others[0] if len(others) == 1 else hint
    try:
        return _TYPES[hint]
    except (KeyError, TypeError):
        said = getattr(hint, "__name__", None) or str(hint)
        raise Complaint(
            where,
            f"a field cannot be of type {said!r}: use one of: str, bool, int, Int32, float, date, datetime",
        ) from None


def _method(
    relation: type[Relation],
    way: Way,
    fields: tuple[str, ...],
    defaults: tuple[tuple[str, object], ...],
    where: Where,
) -> dict[str, Any]:
    said = {name: _plain(value) for name, value in way.said.items() if name != "mirrors"}
    said["mirrors"] = [m.name if isinstance(m, Source) else m for m in _mirrors(way)]
    for name in _LISTS:
        if name in said:
            said[name] = _listed(said[name])
    reads = _nearest(relation, way.reads)
    if callable(said.get("reply")) and not isinstance(way.said["reply"], BaseModel):
        if reads is not None:
            raise Complaint((*where, "reply"), f"{way.name}.rows reads the replies already: leave out reply")
        reads = said.pop("reply")
    if way.request is not None:
        said |= _bound(way, way.request, said, fields, where)
    if way.request is not None or reads is not None:
        name = f"{module_name(relation.__module__)}:{relation.__qualname__}.{way.name}"
        said["wrapper"] = Code(
            name, relation, way.request, reads, defaults, partial(relation.__new__, relation)
        )
    if way.kind == "index" and not (said.get("required") or said.get("any_of")):
        raise Complaint(
            where, "an index needs a bind-field: give it a parameter or 'required', or write scan"
        )
    if way.kind == "scan" and (said.get("required") or said.get("any_of")):
        raise Complaint(where, f"a scan is given nothing: leave out {said['required']}, or write index")
    return said


def _nearest(
    relation: type[Relation], function: Callable[..., object] | None
) -> Callable[..., object] | None:
    """The function of this name that the class has by now: one that is derived may have its own."""
    found = getattr(relation, function.__name__, None) if function is not None else None
    return found if isfunction(found) else function


def _bound(
    way: Way, function: Callable[..., object], said: Mapping[str, Any], fields: tuple[str, ...], where: Where
) -> dict[str, list[str]]:
    """The bind-fields that a function's parameters are, where nothing else says so."""
    try:
        taken = Taken.by(function)
    except (ValueError, TypeError) as error:
        raise Complaint(where, str(error)) from None
    names = {parameter_of(f + o): f + o for f in fields for o in OPERATORS} | {f: f for f in fields}
    told = {name for part in ("required", "any_of", "optional") for name in said.get(part, ())}
    for name in (*taken.needed, *taken.optional):
        if name not in names:
            raise Complaint(
                where,
                f"{function.__name__} takes {name!r}, which is no field: use one of: {', '.join(fields)}",
            )
    found: dict[str, list[str]] = {}
    for part, parameters in (("required", taken.needed), ("optional", taken.optional)):
        if part not in said:
            bound = [names[name] for name in parameters if names[name] not in told]
            if bound:
                found[part] = bound
    return found


def _sites(way: Way) -> Iterator[Source]:
    return (mirror for mirror in _mirrors(way) if isinstance(mirror, Source))


def _mirrors(way: Way) -> list[Source | str]:
    said = way.said.get("mirrors", ())
    return [said] if isinstance(said, Source | str) else list(said)


def _listed(value: Any) -> Any:
    """A list of what may be said as one thing, or in any collection."""
    if isinstance(value, str | int | Mapping):
        return [value]
    return list(value) if isinstance(value, Iterable) else value


def _plain(value: Any) -> Any:
    """As YAML would say it: parts of the kit become what was said of them."""
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        names = [name for name in fields if name in value.model_fields_set or name == "kind"]
        return {fields[name].alias or name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(part) for part in value]
    return value
