"""From a declared table of a database to its access methods: a scan, and an index for each list in `indexed`."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pyarrow as pa

from mediator.catalog.bindfields import EQUAL, OPERATORS, RANGES, parted
from mediator.catalog.model import AccessMethod, BindSet, Field, Mirror
from mediator.catalog.secret import Secret
from sources.complaint import Complaint, Where, known
from sources.declaration import DatabaseSpec, SourceSpec
from wrappers.sql import DIALECTS, SqlWrapper, Table

_ENDLESS = 2**62  # pages: each begins after the last row of the one before, so they end when the table does


def scheme(site: SourceSpec) -> str:
    return site.base.partition("://")[0]


def is_database(site: SourceSpec) -> bool:
    return scheme(site) in DIALECTS


def password(spec: SourceSpec) -> Secret | None:
    return Secret(spec.password_env, spec.password_file) if spec.password_env or spec.password_file else None


def check_source(spec: SourceSpec, where: Where) -> None:
    """A password belongs to a database, and is not written down."""
    if spec.password_env and spec.password_file:
        raise Complaint((*where, "password_file"), "there are two passwords: leave out password_env or this")
    if password(spec) and scheme(spec) != "postgresql":
        raise Complaint(
            (*where, "password_env" if spec.password_env else "password_file"),
            "only a postgresql source takes a password: remove it; a web site's goes in 'auth'",
        )
    if spec.robots and is_database(spec):
        raise Complaint((*where, "robots"), "a database has no robots.txt: remove it")
    if scheme(spec) != "postgresql":
        return
    try:
        address = urlsplit(spec.base)
        written = address.password is not None or "password" in parse_qs(
            address.query, keep_blank_values=True
        )
    except ValueError:
        raise Complaint(
            (*where, "base"), "not an address: write postgresql://user@host:5432/database"
        ) from None
    if written:
        raise Complaint(
            (*where, "base"),
            "a password is written here: take it out, and name an environment variable in password_env",
        )


def methods(
    relation: str, spec: DatabaseSpec, fields: tuple[Field, ...], sites: dict[str, SourceSpec], where: Where
) -> tuple[AccessMethod, ...]:
    _check(spec, fields, sites, where)
    site = sites[spec.source]
    columns = {field.name: spec.columns.get(field.name, field.name) for field in fields}
    read, key = tuple(columns.values()), tuple(columns[name] for name in spec.key)
    table = Table(DIALECTS[scheme(site)], _path(spec), (*read, *key), key)
    wrapper = SqlWrapper(relation, fields, table, columns)

    ranges = _ranges(spec, fields)

    def method(name: str, required: BindSet) -> AccessMethod:
        return AccessMethod(
            name=name,
            kind="index" if required else "scan",
            mirrors=(Mirror(spec.source, site.base),),
            wrapper=wrapper,
            required=required,
            optional=_optional(ranges, required),
            batch_size=spec.batch_size if required else 1,
            fresh_for=spec.fresh_for,
            max_pages=_ENDLESS,
        )

    scans = (method("scan", ()),) if spec.scan else ()
    return (*scans, *(method("by_" + "_and_".join(bound), bound) for bound in spec.indexed))


def _ranges(spec: DatabaseSpec, fields: tuple[Field, ...]) -> list[Field]:
    """Those that were named, or all that have an order.

    Without a key, rows that come twice could not be told from rows that are there twice. A table that is only scanned
    keeps the latter, so that nothing is left out unless it is said.
    """
    if spec.ranges is not None:
        return [field for field in fields if field.name in spec.ranges]
    if not spec.key and not spec.indexed:
        return []
    return [field for field in fields if not pa.types.is_boolean(field.type)]


def _optional(ranges: list[Field], required: BindSet) -> BindSet:
    return tuple(
        field.name + operator
        for field in ranges
        if field.name not in required
        for operator in (OPERATORS if pa.types.is_string(field.type) else RANGES)
    )


def _path(spec: DatabaseSpec) -> tuple[str, ...]:
    return tuple(spec.table.split(".")) if isinstance(spec.table, str) else spec.table


def _check(spec: DatabaseSpec, fields: tuple[Field, ...], sites: dict[str, SourceSpec], where: Where) -> None:
    known(spec.source, sites, (*where, "source"), "source")
    if not is_database(sites[spec.source]):
        raise Complaint(
            (*where, "source"),
            f"{spec.source!r} is no database: give it a base with postgresql:// or sqlite:///",
        )
    types = {field.name: field.type for field in fields}
    for part, names in (("key", spec.key), ("columns", spec.columns)):
        for name in names:
            known(name, types, (*where, part), "field")
    for number, name in enumerate(spec.ranges or ()):
        _check_range(name, types, spec.ranges[:number] if spec.ranges else (), (*where, "ranges", number))
    for number, bound in enumerate(spec.indexed):
        place = (*where, "indexed", number)
        if not bound or len(set(bound)) < len(bound) or bound in spec.indexed[:number]:
            raise Complaint(place, "each list names different fields, and stands here once: correct it")
        for name in bound:
            known(name, types, place, "field")
            if scheme(sites[spec.source]) == "sqlite" and pa.types.is_timestamp(types[name]):
                raise Complaint(
                    place, f"SQLite writes the time {name!r} in several ways: take it out of 'indexed'"
                )
    if not spec.scan and not spec.indexed:
        raise Complaint((*where, "scan"), "there is no way in: name fields in 'indexed', or allow the scan")
    path = _path(spec)
    if not all(path) or any("\0" in name for name in (*path, *spec.columns.values())):
        raise Complaint((*where, "table"), "a name is empty or has a NUL in it: write schema.table")


def _check_range(name: str, types: dict[str, pa.DataType], before: tuple[str, ...], where: Where) -> None:
    field, operator = parted(name)
    if operator != EQUAL:
        raise Complaint(where, f"all comparisons go with a field: write {field!r}, without {operator!r}")
    known(name, types, where, "field")
    if pa.types.is_boolean(types[name]):
        raise Complaint(where, f"truth values have no order: remove {name!r}")
    if name in before:
        raise Complaint(where, f"{name!r} stands twice: remove one of them")
