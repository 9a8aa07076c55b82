"""From declarations to a catalog, and every check that needs more than one field of them.

A complaint says where, what is wrong and how to put it right; who read the file adds its name and the line.
"""

from __future__ import annotations

import pyarrow as pa

from mediator.catalog.model import AccessMethod, Field, Mirror, Relation, Source
from sources import logins, tables
from sources.auth import login
from sources.beside_rows import check_looks, check_paging
from sources.bind_fields import check_bind_fields, check_promises
from sources.coding import with_code, wrapper_of, writes
from sources.complaint import Complaint, Where, known
from sources.declaration import Declaration, MethodSpec, RelationSpec, SourceSpec
from sources.examples import examples
from sources.fresh import bounds
from sources.graphql import expanded
from sources.limits import ceilings
from wrappers import HtmlReader

TYPES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "bool": pa.bool_(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}


def source(name: str, spec: SourceSpec, has_pages: bool) -> Source:
    """`has_pages` says that web pages are read there: then its robots.txt is obeyed if nothing else is declared."""
    return Source(
        name=name,
        rate=spec.rate,
        concurrency=spec.concurrency,
        deadline=spec.deadline,
        attempts=spec.attempts,
        twice=spec.twice,
        daily=spec.daily,
        per_query=ceilings(spec.per_query),
        largest_reply=spec.largest_reply,
        allow_private=spec.allow_private,
        robots=spec.robots or ("obey" if has_pages else "ignore"),
        password=tables.password(spec),
        login=login(spec.auth, spec.base),
    )


def with_pages(declaration: Declaration) -> set[str]:
    """The sources that have web pages, made for people, among what one file reads."""
    methods = (m for relation in declaration.relations.values() for m in relation.methods.values())
    return {mirror for m in methods if isinstance(m.reply, HtmlReader) for mirror in m.mirrors}


def relations(declaration: Declaration, sites: dict[str, SourceSpec]) -> dict[str, Relation]:
    """The relations of one file. `sites` are the sources of every file that was loaded with it."""
    for name, site in declaration.sources.items():
        tables.check_source(site, ("sources", name))
        logins.check_source(site, ("sources", name))
    return {name: _relation(name, spec, sites) for name, spec in declaration.relations.items()}


def _relation(name: str, spec: RelationSpec, sites: dict[str, SourceSpec]) -> Relation:
    where: Where = ("relations", name)
    if not name.islower():
        raise Complaint(where, f"write {name!r} in lower case: SQL names are looked up that way")
    for field, type_ in spec.fields.items():
        known(type_, TYPES, (*where, "fields", field), "type")
    fields = tuple(Field(f, TYPES[t]) for f, t in spec.fields.items())
    for field in spec.key:
        known(field, spec.fields, (*where, "key"), "field")
    if not spec.methods and not spec.database:
        raise Complaint(where, "there is no way in: add 'methods' or 'database'")
    methods: list[AccessMethod] = []
    if spec.database:
        methods += tables.methods(name, spec.database, fields, sites, (*where, "database"))
    for method_name, method in spec.methods.items():
        if any(m.name == method_name for m in methods):
            raise Complaint((*where, "methods", method_name), "'database' makes one of this name: rename it")
        method = with_code(method, (*where, "methods", method_name))
        method = expanded(method, spec.fields, (*where, "methods", method_name))
        _check(spec, method, sites, (*where, "methods", method_name))
        methods.append(_method(name, method_name, method, fields, sites))
    return Relation(name=name, fields=fields, methods=tuple(methods), key=_key(spec), rows=spec.rows)


def _key(spec: RelationSpec) -> tuple[str, ...]:
    return spec.key or (spec.database.key if spec.database else ())


def _method(
    relation: str, name: str, spec: MethodSpec, fields: tuple[Field, ...], sites: dict[str, SourceSpec]
) -> AccessMethod:
    most, unsaid = bounds(spec.fresh_for)
    return AccessMethod(
        name=name,
        kind="index" if spec.required or spec.any_of else "scan",
        mirrors=tuple(Mirror(m, sites[m].base) for m in spec.mirrors),
        wrapper=wrapper_of(relation, fields, spec, ("relations", relation, "methods", name)),
        required=spec.required,
        any_of=spec.any_of,
        optional=spec.optional,
        batch_size=spec.batch_size,
        fresh_for=most,
        unsaid=unsaid,
        max_pages=spec.max_pages,
        exact=spec.exact,
        proves=spec.proves,
        at_most=spec.at_most,
        order=spec.order,
        rows_per_lookup=spec.rows_per_lookup,
        examples=examples(spec, {f.name: f.type for f in fields}, ("relations", relation, "methods", name)),
    )


def _check(relation: RelationSpec, method: MethodSpec, sites: dict[str, SourceSpec], where: Where) -> None:
    for mirror in method.mirrors:
        known(mirror, sites, (*where, "mirrors"), "source")
        if tables.is_database(sites[mirror]):
            raise Complaint(
                (*where, "mirrors"),
                f"{mirror!r} is a database: declare its table in 'database', not in 'methods'",
            )
    types = {name: TYPES[type_] for name, type_ in relation.fields.items()}
    check_bind_fields(method, types, where)
    for field in method.given:
        known(field, relation.fields, (*where, "given"), "field")
    for field in (*method.reply.fields, *method.reply.optional):
        known(field, relation.fields, (*where, "reply"), "field")
    logins.check_method(method, sites, where)
    _check_places(method, where)
    check_promises(method, types, where)
    _check_batching(method, where)
    check_paging(method, where)
    check_looks(method, where)


def _check_places(method: MethodSpec, where: Where) -> None:
    """Every bind-field has a place in the request, and nothing else has."""
    if not writes(method):
        _check_template(method, where)
    for field in method.given:
        if field not in method.required:
            raise Complaint(
                (*where, "given"),
                f"{field!r} is not always bound: move it to 'required', or read it from the rows",
            )


def _check_template(method: MethodSpec, where: Where) -> None:
    places = method.request.placeholders()
    for field in sorted(places):
        known(field, method.bound, (*where, "request"), "bind-field")
    for field in method.bound:
        if field not in places:
            raise Complaint(
                (*where, "request"), f"bind-field {field!r} is never sent: write {{{field}}} where it goes"
            )
    for field in sorted(method.request.path_placeholders() - set(method.required)):
        raise Complaint(
            (*where, "request", "path"), f"{{{field}}} is not always bound: move {field!r} to 'required'"
        )


def _check_batching(method: MethodSpec, where: Where) -> None:
    if method.batch_size == 1:
        return
    if method.given:
        raise Complaint(
            (*where, "given"),
            f"{method.given[0]!r} may be any of the batch: read it from the rows, or leave out batch_size",
        )
    if len(method.required) + bool(method.any_of) != 1 or method.optional:
        raise Complaint(
            (*where, "batch_size"),
            "only a method with one bind-field takes several bindings: leave out batch_size",
        )
