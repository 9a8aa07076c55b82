"""From an OpenAPI document to a declaration: what it says clearly, and notes on what it does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from sources.advice import advice
from sources.auth import looks_secret
from sources.compiling import relations
from sources.complaint import Complaint, Where
from sources.declaration import Declaration
from sources.openapi.binding import bound_by, collection_of
from sources.openapi.operations import Operation, Skipped, operations
from sources.openapi.paging import pages_of
from sources.openapi.reading import Document, Unclear
from sources.openapi.records import columns_of, rows_of
from sources.openapi.relations import DraftRelation, Relations, Way, left_out
from sources.openapi.security import auth_of
from sources.openapi.servers import is_private, server_of
from sources.openapi.shapes import Shapes
from sources.openapi.words import free, one_line

MOST_PARTS = 40_000  # of a declaration: a file with more is not read


@dataclass
class Draft:
    """`content` is what a declaration file says, `notes` what its author is to look at, by the place in it."""

    title: str
    content: dict[str, Any]
    notes: dict[Where, list[str]] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)

    @property
    def methods(self) -> int:
        return sum(len(relation["methods"]) for relation in self.content["relations"].values())


def drafted(document: Document, name: str, base: str = "", paths: Sequence[str] = ()) -> Draft:
    """The declaration of a source of this name, at `base` if given; of `paths`, if any, only what begins so.

    It loads: what does not is left out, and told in `skipped`.
    """
    return _Drafting(document, name, base, paths).draft()


class _Drafting:
    def __init__(self, document: Document, name: str, base: str, paths: Sequence[str]) -> None:
        self._document = document
        self._name = name
        self._base = base
        self._paths = tuple(paths)
        self._shapes = Shapes(document)
        self._sources: dict[str, dict[str, Any]] = {}
        self._at: dict[str, str] = {}  # sources by base
        self._relations = Relations()
        info = document.part("info")
        title = one_line(f"{info.get('title') or 'a document without a title'} {info.get('version') or ''}")
        kind = "swagger" if document.old else "openapi"
        self._draft = Draft(f"{title.strip()} ({kind} {one_line(document.version, 10)})", {})
        self._auth = auth_of(document, name)

    def draft(self) -> Draft:
        for found in operations(self._document, self._shapes):
            if self._paths and not found.label.split(" ", 1)[-1].startswith(self._paths):
                continue
            if isinstance(found, Skipped):
                self._draft.skipped.append(found)
                continue
            try:
                self._add(found)
            except (Unclear, RecursionError) as error:
                why = str(error) if isinstance(error, Unclear) else "its schemas are too deep"
                self._draft.skipped.append(Skipped(found.label, why))
        self._draft.content = {"sources": self._checked_sources(), "relations": {}}
        self._checked_relations()
        self._forget_unused()
        return self._draft

    def _forget_unused(self) -> None:
        """Sources that nothing was drafted of."""
        content, notes = self._draft.content, self._draft.notes
        methods = [m for relation in content["relations"].values() for m in relation["methods"].values()]
        used = {mirror for method in methods for mirror in method["mirrors"]}
        content["sources"] = {name: source for name, source in content["sources"].items() if name in used}
        self._draft.notes = {w: n for w, n in notes.items() if w[0] != "sources" or w[1] in used}

    def _add(self, operation: Operation) -> None:
        operation = self._without_secrets(operation)
        segments = operation.segments
        one = bool(segments) and segments[-1].startswith("{")
        rows = rows_of(self._shapes, operation.reply, collection_of(segments), one)
        columns = columns_of(self._shapes, rows.record)
        pages = pages_of(operation, rows, self._shapes)
        source = self._source(operation)
        problem: Unclear | None = None
        added = False
        for bound in bound_by(operation, columns.found, rows.record.name, pages.used):
            if pages.json_sent:
                bound.parts["json"] = {**bound.parts.get("json", {}), **pages.json_sent}
            try:
                self._relations.add(Way(operation, rows, columns, bound, pages, source))
                added = True
            except Unclear as unclear:
                problem = unclear
        if problem is not None and not added:
            raise problem

    def _without_secrets(self, operation: Operation) -> Operation:
        """Keys are no bind-fields. One that only the parameters tell of becomes the source's login."""
        said = self._auth.said
        mine = {str(said.get("header") or said.get("query") or "").lower()} - {""}
        secret = [p for p in operation.parameters if p.name.lower() in mine or looks_secret(p.name)]
        for parameter in secret:
            if (
                not said
                and parameter.place in ("header", "query")
                and parameter.name.lower() != "authorization"
            ):
                key = f"{self._name.upper()}_API_KEY"
                said |= {"kind": "key", parameter.place: parameter.name, "key_env": key}
        kept = tuple(p for p in operation.parameters if p not in secret or p.place == "path")
        return replace(operation, parameters=kept)

    def _source(self, operation: Operation) -> str:
        """The source that answers an operation: most documents have one for all."""
        server = server_of(self._document, operation.servers, self._base)
        if server.base in self._at:
            return self._at[server.base]
        name = free(self._name, self._sources)
        self._at[server.base] = name
        self._sources[name] = {"base": server.base}
        if self._base and is_private(self._base):
            self._sources[name]["allow_private"] = True  # whoever named the address knows it
        if server.notes:
            self._draft.notes["sources", name, "base"] = server.notes
        return name

    def _checked_sources(self) -> dict[str, Any]:
        """The sources, each with the login if that can be declared for its address."""
        if not self._sources:
            self._sources[self._name] = {"base": server_of(self._document, None, self._base).base}
        for name, source in self._sources.items():
            if self._auth.said:
                why = _wrong({"sources": {name: {**source, "auth": self._auth.said}}})
                if why is None:
                    source["auth"] = self._auth.said
                else:
                    self._note(("sources", name), f"the login is not declared: {why[1]}")
            place = ("sources", name, "auth") if "auth" in source else ("sources", name)
            for note in self._auth.notes:
                self._note(place, note)
        return self._sources

    def _checked_relations(self) -> None:
        parts = 0
        for relation in self._relations.found.values():
            content = relation.content()
            content = self._loadable(relation.name, content)
            parts += _parts(content)
            if not content["methods"]:
                continue
            if parts > MOST_PARTS:
                why = "the file would be too large: draft some of the paths at a time, with --path"
                self._draft.skipped.append(Skipped(f"relation {relation.name}", why))
                continue
            self._draft.content["relations"][relation.name] = content
            self._tell(relation, content)

    def _loadable(self, name: str, content: dict[str, Any]) -> dict[str, Any]:
        """The relation without the methods that could not be loaded."""
        methods: dict[str, Any] = {}
        for method, said in content["methods"].items():
            sites = {mirror: self._draft.content["sources"][mirror] for mirror in said["mirrors"]}
            alone = {**content, "methods": {method: said}}
            why = _wrong({"sources": sites, "relations": {name: alone}})
            if why is not None and said.pop("examples", None):  # an example of another type is no example
                why = _wrong({"sources": sites, "relations": {name: alone}})
            if why is None:
                methods[method] = said
            else:
                self._draft.skipped.append(Skipped(f"{name}.{method}", one_line(why[1], 200)))
        return {**content, "methods": methods}

    def _tell(self, relation: DraftRelation, content: dict[str, Any]) -> None:
        here: Where = ("relations", relation.name)
        if relation.columns.left_out:
            self._note((*here, "fields"), left_out(relation.columns))
        if relation.key and not relation.key_is_sure:
            self._note((*here, "key"), "is it unique?")
        for method, notes in relation.notes.items():
            if method in content["methods"]:
                for note in notes:
                    self._note((*here, "methods", method), note)

    def _note(self, where: Where, note: str) -> None:
        self._draft.notes.setdefault(where, []).append(note)


def _wrong(content: dict[str, Any]) -> tuple[Where, str] | None:
    """What loading this would complain of, if anything."""
    if any("${" in text for text in _texts(content)):
        return (), "it has ${...} in it, which stands for a variable in a declaration"
    try:
        declaration = Declaration.model_validate(content)
        relations(declaration, declaration.sources)
    except Complaint as complaint:
        return complaint.where, complaint.message
    except ValidationError as error:
        first = error.errors()[0]
        return first["loc"], advice(dict(first))
    return None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from (str(key), *_texts(part))
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


def _parts(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + sum(1 + _parts(part) for part in value.values())
    return 1 + sum(map(_parts, value)) if isinstance(value, list) else 1
