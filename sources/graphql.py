"""GraphQL methods: what is checked before anything is sent, and the plain method that one of them stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mediator.catalog.bindfields import field_of
from sources.complaint import Complaint, Where, known
from sources.declaration import MethodSpec
from wrappers import CursorPages, GraphqlQuery, HeaderPages, LinkedPages, NumberedPages, OffsetPages, Paging
from wrappers.graphql import Asked, Document, Variable, parse
from wrappers.graphql.declared import RULES
from wrappers.graphql.tokens import NotGraphql
from wrappers.record_reader import steps
from wrappers.template import PLACEHOLDER

# The types that fields may have, by GraphQL's scalars. Of enumerations and a site's own scalars nothing is known.
_TAKES = {
    "Int": ("int32", "int64"),
    "Float": ("int32", "int64", "float64"),
    "String": ("string", "date", "timestamp"),
    "Boolean": ("bool",),
    "ID": ("string", "int32", "int64"),
}
_PAGE_PARTS = ("param", "offset", "limit")


def expanded(method: MethodSpec, fields: Mapping[str, str], where: Where) -> MethodSpec:
    """The method with request, reply, pages and rules in the place of its GraphQL query. `fields` are types by name."""
    if method.graphql is None:
        for part in ("request", "reply"):
            if getattr(method, part) is None:
                raise Complaint(where, f"{part!r} is missing: add it, or 'graphql'")
        return method
    for part in ("request", "reply"):
        if getattr(method, part) is not None:
            raise Complaint((*where, part), f"'graphql' says this already: leave out {part!r}")
    spec, inside = method.graphql, (*where, "graphql")
    try:
        document = parse(spec.query)
    except NotGraphql as error:
        raise Complaint((*inside, "query"), str(error)) from None
    _check_braces(document, method, inside)
    rows = _rows(spec, document, inside)
    pages = _pages(method, spec, document, where)
    _check_fields(spec, rows, [f for f in fields if f not in method.given], inside)
    turned = _turned(pages)
    values = _values(spec, method, document, turned, inside)
    for field, name in _sole(values).items():
        if field_of(field) in fields:
            _check_type(method, field, fields[field_of(field)], name, document.variables[name], inside)
    _check_given(method, values, document, turned, inside)
    lists = {name for name in values if document.variables[name].is_list}
    join = "list" if method.batch_size > 1 else ","
    sent = {name: [v] if name in lists and join == "," and _is_field(v) else v for name, v in values.items()}
    return method.model_copy(
        update={
            "request": spec.template(document.text, sent, join),
            "reply": spec.reader(),
            "pages": pages,
            "errors": (*method.errors, *RULES),
        }
    )


def _check_braces(document: Document, method: MethodSpec, where: Where) -> None:
    """A bind-field in the document itself would be a way to write into the query: values go in variables."""
    for field in PLACEHOLDER.findall(document.text):
        raise Complaint(
            (*where, "query"),
            f"{{{field}}} is not filled in here: declare a variable, and use ${field}",
        )


def _pages(method: MethodSpec, spec: GraphqlQuery, document: Document, where: Where) -> Paging | None:
    """How the pages are turned: always by variables."""
    pages = method.pages
    if not spec.cursor:
        return None if pages is None else _by_variables(pages, document, (*where, "pages"))
    inside = (*where, "graphql", "cursor")
    if pages is not None:
        raise Complaint((*where, "pages"), "'cursor' turns the pages already: leave out one of them")
    known(spec.cursor, document.variables, inside, "variable")
    if not spec.connection:
        raise Complaint(
            inside, "pages of a connection: 'rows' has to end in /edges or /nodes, or use 'pages'"
        )
    info = (*steps(spec.connection)[1:], "pageInfo")
    for name in ("hasNextPage", "endCursor"):
        if not _asks_for(document.asked, (*info, name)):
            raise Complaint(
                inside, "the query has to ask for pageInfo { hasNextPage endCursor } beside the rows: add it"
            )
    return spec.paging()


def _by_variables(pages: Paging, document: Document, where: Where) -> Paging:
    if isinstance(pages, LinkedPages | HeaderPages):
        raise Complaint(where, "GraphQL turns pages by variables: use cursor, offset or param")
    if "place" in pages.model_fields_set:
        raise Complaint((*where, "place"), "pages of GraphQL are turned by variables: leave out place")
    changed: dict[str, Any] = {"place": "json"}
    for part in _PAGE_PARTS:
        if name := getattr(pages, part, ""):
            known(name, document.variables, (*where, part), "variable")
            changed[part] = f"/variables/{name}"
    for part in ("total", "cursor", "more"):
        path = steps(getattr(pages, part, ""))
        if path and (path[0] != "data" or not _asks_for(document.asked, path[1:])):
            raise Complaint(
                (*where, part), f"the query does not ask for {'/' + '/'.join(path)!r}: add it to the query"
            )
    return pages.model_copy(update=changed)


def _turned(pages: Paging | None) -> dict[str, bool]:
    """The variables that turn pages, and whether the first request has them."""
    if not isinstance(pages, NumberedPages | OffsetPages | CursorPages):
        return {}
    first = not isinstance(pages, CursorPages)
    return {steps(path)[1]: first for part in _PAGE_PARTS if (path := getattr(pages, part, ""))}


def _values(
    spec: GraphqlQuery, method: MethodSpec, document: Document, turned: Mapping[str, bool], where: Where
) -> dict[str, Any]:
    """What every variable is given. One that nothing is said of is the bind-field of its name."""
    for name in spec.variables:
        known(name, document.variables, (*where, "variables", name), "variable")
        if name in turned:
            raise Complaint((*where, "variables", name), f"${name} turns the pages: leave it out here")
    values = dict(spec.variables)
    for field in method.bound:
        sent = any(f"{{{field}}}" in text for text in _texts(list(spec.variables.values())))
        if sent:
            continue
        if field not in document.variables or field in values or field in turned:
            raise Complaint(
                (*where, "variables"),
                f"bind-field {field!r} is never sent: use it in the query as ${field}, or add a variable to "
                f"'variables' that has the value \"{{{field}}}\"",
            )
        values[field] = f"{{{field}}}"
    return values


def _check_given(
    method: MethodSpec,
    values: Mapping[str, Any],
    document: Document,
    turned: Mapping[str, bool],
    where: Where,
) -> None:
    """Every variable that the site insists on is always sent."""
    for name, variable in document.variables.items():
        given = name in values or name in turned
        if not given and not variable.has_default:
            raise Complaint(
                (*where, "variables"),
                f"${name} is used but not given: add {name}: to 'variables', or make {name!r} a bind-field",
            )
        if not variable.must_be_given:
            continue
        loose = [f for f in PLACEHOLDER.findall(str(values.get(name, ""))) if f not in method.required]
        if loose or turned.get(name) is False:
            raise Complaint(
                (*where, "query"),
                f"${name}: {variable.type} has to be given, but is not always: declare it {variable.type[:-1]}",
            )


def _check_type(
    method: MethodSpec, field: str, type_: str, name: str, variable: Variable, where: Where
) -> None:
    if method.batch_size > 1 and not variable.is_list:
        raise Complaint(
            (*where, "query"),
            f"${name}: {variable.type} takes one value, and a request carries {method.batch_size}: "
            f"declare it [{variable.type}], or leave out batch_size",
        )
    if type_ not in _TAKES.get(variable.scalar, (type_,)):
        fits = next(scalar for scalar, types in _TAKES.items() if type_ in types)
        raise Complaint(
            (*where, "query"),
            f"${name} is {variable.type}, but {field!r} is {type_}: declare the variable {fits}, or change the field",
        )


def _rows(spec: GraphqlQuery, document: Document, where: Where) -> Asked:
    """What is asked for at the place of the rows."""
    path = steps(spec.rows)
    if path[0] != "data" or len(path) < 2:
        raise Complaint((*where, "rows"), f"{spec.rows!r} has to begin with /data/: write /data/...")
    rows = document.asked
    for number, step in enumerate(path[1:]):
        known(step, rows.names(), (*where, "rows"), "field of the query")
        rows = rows.below[step]
        if not rows.below:
            raise Complaint(
                (*where, "rows"),
                f"the query asks for nothing inside {'/'.join(path[1 : number + 2])!r}: "
                "add { ... } with the fields",
            )
    return rows


def _check_fields(spec: GraphqlQuery, rows: Asked, fields: list[str], where: Where) -> None:
    """What is read from the rows was asked for."""
    reader = spec.reader()
    for field in fields:
        if not _asks_for(rows, steps(reader.place(field))):
            raise Complaint(
                (*where, "fields" if field in spec.fields else "query"),
                f"the query does not ask for {field!r} at {reader.place(field)!r} of a row: add it to the query, "
                "or say where it is in 'fields'",
            )


def _asks_for(asked: Asked, path: tuple[str, ...]) -> bool:
    """Whether the reply has something there. What is not asked into may be JSON of the site's own."""
    for step in path:
        if step.isdigit():
            continue
        if step not in asked.below:
            return False
        asked = asked.below[step]
        if not asked.below:
            return True
    return True


def _sole(values: Mapping[str, Any]) -> dict[str, str]:
    """The variables that are nothing but a bind-field, by that field."""
    found: dict[str, str] = {}
    for name, value in values.items():
        texts = value if isinstance(value, list) and len(value) == 1 else [value]
        if _is_field(texts[0]):
            found[texts[0][1:-1]] = name
    return found


def _is_field(value: object) -> bool:
    return isinstance(value, str) and PLACEHOLDER.fullmatch(value) is not None


def _texts(value: object) -> list[str]:
    if isinstance(value, dict | list):
        return [t for v in (value.values() if isinstance(value, dict) else value) for t in _texts(v)]
    return [value] if isinstance(value, str) else []
