"""`mediator wrapper new`: a declaration to begin with, of a kind or from an OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.exits import AT_FAULT, Mistake, told

if TYPE_CHECKING:
    from sources.openapi import Draft

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_DATABASES = ("postgresql://", "sqlite:///")
_WEB = ("http://", "https://")


class Kind(StrEnum):
    json = "json"
    html = "html"
    form = "form"
    csv = "csv"
    graphql = "graphql"
    sql = "sql"
    python = "python"


def add_to(app: typer.Typer) -> None:
    """Makes `new` a command of this group."""
    app.command()(new)


def new(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="What the source is called.", show_default=False)
    ],
    kind: Annotated[Kind, typer.Option(help="What the site is like.")] = Kind.json,
    openapi: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="An OpenAPI document (3.x, or Swagger 2.0): its relations are drafted."
        ),
    ] = None,
    path: Annotated[
        list[str] | None,
        typer.Option(metavar="PREFIX", help="Of the document, only paths that begin so; may be repeated."),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Where the site is; for sql, postgresql://... or sqlite:///..."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Default: NAME.yaml here, or NAME.py for python."
        ),
    ] = None,
) -> None:
    """Write a declaration to begin with: one of a kind, to be edited, or a draft from an OpenAPI document.

    Nothing is asked, and no file is written over.
    """
    with told():
        if not _NAME.fullmatch(name):
            raise Mistake(f"{name[:60]!r} cannot be a source's name: write letters a to z, digits and _")
        _check_base(base, kind)
        if path and openapi is None:
            raise Mistake("--path chooses among the paths of an OpenAPI document: name it with --openapi")
        target = output or Path(f"{name}.{'py' if kind is Kind.python else 'yaml'}")
        if openapi is not None:
            if kind is not Kind.json:
                raise Mistake(
                    f"an OpenAPI document is about JSON: leave out either --openapi or --kind {kind}"
                )
            text, lines, usable = _drafted(openapi, name, base or "", path or [])
            if not usable:
                _tell(lines)
                raise typer.Exit(AT_FAULT)
        else:
            text, lines = _begun(kind, name, base), []
        _write(target, text)
        _tell([f"{target} is written.", *lines, *_next(target)])


def _check_base(base: str | None, kind: Kind) -> None:
    from sources.openapi.servers import usable

    if base is None:
        return
    if kind is Kind.sql:
        if not base.startswith(_DATABASES) or not base.isprintable():
            raise Mistake(f"--base {base[:100]}: expected postgresql://host/database or sqlite:///file.db")
    elif not usable(base):
        raise Mistake(
            f"--base {base[:100]}: expected the address of a site, such as https://shop.example/api"
        )


def _begun(kind: Kind, name: str, base: str | None) -> str:
    from sources.openapi.servers import is_private
    from sources.templates import begun

    usual = f"sqlite:///{name}.db" if kind is Kind.sql else f"https://{name.replace('_', '-')}.example"
    place = base or usual
    return begun(kind.value, name, place, place.startswith(_WEB) and is_private(place))


def _drafted(file: str, name: str, base: str, paths: list[str]) -> tuple[str, list[str], bool]:
    """The declaration, what there is to say of it, and whether there is anything in it."""
    from sources.openapi import drafted, read, skipped, written

    if file.startswith(_WEB):
        raise Mistake(f"--openapi takes a file: fetch it first (curl -o openapi.json {file[:200]})")
    try:
        document = read(file, Path(file).read_bytes())
    except OSError as error:
        raise Mistake(f"{file}: cannot be read: {error.strerror}") from None
    draft = drafted(document, name, base, paths)
    left = [f"  {line}" for line in skipped(draft.skipped)]
    found = draft.content["relations"]
    if not found:
        return "", [f"error: nothing of {file} could be drafted.", *left], False
    return written(draft), list(_summary(draft, left)), True


def _summary(draft: Draft, left: list[str]) -> Iterator[str]:
    relations, checks = draft.content["relations"], sum(map(len, draft.notes.values()))
    yield f"Drafted from {draft.title}: {_count(len(relations), 'relation')}, {_count(draft.methods, 'access method')}."
    for name, relation in relations.items():
        yield f"  {name}: {', '.join(relation['methods'])}"
    if left:
        yield "Not drafted:"
        yield from left
    if checks:
        yield f'{_count(checks, "place is", "places are")} marked "check:" in the file.'


def _next(target: Path) -> Iterator[str]:
    yield f"Next: edit {target}, then"
    yield f"  look at it:                      mediator sources --catalog {target}"
    yield f"  make one lookup:                 mediator wrapper try RELATION FIELD=VALUE --catalog {target}"
    yield f"  check all of it with the site:   mediator wrapper check --catalog {target}"


def _count(n: int, one: str, many: str = "") -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def _write(target: Path, text: str) -> None:
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise Mistake(f"{target} is there already: name another file with --output, or remove it") from None
    except OSError as error:
        raise Mistake(f"{target}: cannot be written: {error.strerror}") from None


def _tell(lines: list[str]) -> None:
    from api.cells import harmless
    from api.terminal import stderr

    for line in lines:
        stderr().print(harmless(line), soft_wrap=True)
