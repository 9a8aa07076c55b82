"""`mediator wrapper try`: one lookup, its rows as a table, and the requests that brought them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated

import typer

from api.exits import INTERRUPTED, PARTIAL, Mistake, told
from api.options import CatalogPaths, Format, Variables, WithDemo, pairs

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from rich.console import Console

    from mediator.access import Transport
    from mediator.access.web.redaction import Redaction
    from mediator.catalog.model import AccessMethod, Catalog, Mirror, Relation
    from mediator.catalog.wrapper import Reply, Request
    from mediator.errors import Cause
    from mediator.flow.events import Event

    Take = Callable[[pa.RecordBatch], None]

_BOUND = re.compile(r"(\w+)\s*(<=|>=|\^=|<|>|=)(.*)", re.DOTALL)


def add_to(app: typer.Typer) -> None:
    """Makes `try` a command of this group."""
    app.command("try")(attempt)


def attempt(
    target: Annotated[str, typer.Argument(metavar="RELATION[.METHOD]", show_default=False)],
    bound: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FIELD=VALUE]...", help="What is bound.", show_default=False),
    ] = None,
    catalog: CatalogPaths = None,
    variable: Variables = None,
    demo: WithDemo = False,
    at: Annotated[
        str | None, typer.Option(metavar="SOURCE", help="Ask this mirror. Default: whichever is best.")
    ] = None,
    rows: Annotated[
        int, typer.Option(min=1, metavar="N", help="Stop asking once so many rows have come.")
    ] = 100,
    format_: Annotated[Format, typer.Option("--format")] = Format.table,
) -> None:
    """Make one lookup, and show its rows with the requests that brought them.

    Without FIELD=VALUE the method's first example is tried.
    """
    with told():
        from api.checking import under_test
        from api.receiving import format_for, receiver_for
        from api.terminal import stderr

        with under_test(catalog or [], pairs("--set", variable), demo) as known:
            lookup = _lookup(known, target, bound or [], at)
            console = stderr()
            receiver = receiver_for(format_for(format_, None), None)
            receiver.open(lookup.relation.schema)
            try:
                came = asyncio.run(_tried(lookup, receiver.take, rows, console))
            finally:
                receiver.close()
        _tell(console, lookup, came, rows)
        if came.cause is not None:
            raise typer.Exit(PARTIAL)
        if came.interrupted:
            raise typer.Exit(INTERRUPTED)


@dataclass(frozen=True)
class _Lookup:
    catalog: Catalog
    relation: Relation
    method: AccessMethod
    bind_set: tuple[str, ...]
    binding: tuple[object, ...]


@dataclass
class _Came:
    """What has come of a lookup so far."""

    rows: int = 0
    whole: bool = False
    cause: Cause | None = None
    interrupted: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class _Shown:
    """A transport that tells of each request as soon as it was answered."""

    transport: Transport
    console: Console
    count: int = 0

    async def send(self, mirror: Mirror, request: Request) -> Reply:
        from mediator.errors import SourceError

        loop = asyncio.get_running_loop()
        began = loop.time()
        self.count += 1
        number = self.count
        try:
            reply = await self.transport.send(mirror, request)
        except SourceError as error:
            self._tell(number, mirror, request, f"{error.kind}: {error.message}", loop.time() - began)
            raise
        kind = next((v for k, v in reply.headers.items() if k.lower() == "content-type"), "no type")
        came = f"{reply.status}, {len(reply.body):,} bytes, {kind}"
        self._tell(number, mirror, request, came, loop.time() - began, self._complaint(request, reply))
        return reply

    def _tell(
        self, number: int, mirror: Mirror, request: Request, came: str, seconds: float, said: str = ""
    ) -> None:
        from api.cells import harmless
        from wrappers.cassettes.cassette import Asked, without_login
        from wrappers.cassettes.scrubbing import scrubbed_request

        asked = scrubbed_request(Asked.of(mirror, request), self.redaction)
        query = "&".join(f"{name}={value}" for name, value in asked.query)
        lines = [
            f"{number}. {asked.method} {without_login(request.url(mirror.base))}{'?' if query else ''}{query}"
        ]
        lines += [f"   {name}: {value}" for name, value in asked.headers]
        lines += [f"   {asked.body[:500].decode('utf-8', 'replace')}"] if asked.body else []
        lines += [f"   -> {came}, {seconds * 1000:.0f} ms, {mirror.source}"]
        lines += [f"   {said}"] if said else []
        for line in lines:
            self.console.print(harmless(self.redaction.clean(line)), style="dim", soft_wrap=True)

    def _complaint(self, request: Request, reply: Reply) -> str:
        """The beginning of what a site says along with a status that is an error: often the reason for it."""
        if reply.status < 400 or request.path == "/robots.txt":
            return ""
        body = self.redaction.clean_bytes(reply.body)  # whole: half a secret would not be known for one
        return " ".join(body[:200].decode("utf-8", "replace").split())

    @property
    def redaction(self) -> Redaction:
        from mediator.access.web.redaction import Redaction, Redacts

        return self.transport.redaction if isinstance(self.transport, Redacts) else Redaction()


def _lookup(catalog: Catalog, target: str, bound: Sequence[str], at: str | None) -> _Lookup:
    name, _, method_name = target.partition(".")
    from api.checking import chosen_relations

    (relation,) = chosen_relations(catalog, [name])
    given = dict(_parsed(relation, text) for text in bound)
    method = _method(relation, method_name, given)
    if not given and method.examples:
        given = dict(method.examples[0])
    missing = [f for f in method.required if f not in given]
    if method.any_of and not set(method.any_of) & given.keys():
        missing.append(" or ".join(method.any_of))
    if missing:
        example = " ".join(f"{f}=..." for f in (*method.required, *method.any_of[:1]))
        raise Mistake(
            f"{relation.name}.{method.name} has to be told {', '.join(missing)}: "
            f"mediator wrapper try {relation.name}.{method.name} {example}"
        )
    if at is not None:
        mirrors = tuple(m for m in method.mirrors if m.source == at)
        if not mirrors:
            raise Mistake(f"--at {at}: its mirrors are {', '.join(m.source for m in method.mirrors)}")
        method = replace(method, mirrors=mirrors)
    relation = replace(relation, methods=(method,))
    catalog = replace(catalog, relations={relation.name: relation})
    bind_set = tuple(sorted(given))
    return _Lookup(catalog, relation, method, bind_set, tuple(given[f] for f in bind_set))


def _parsed(relation: Relation, text: str) -> tuple[str, object]:
    """`price<=10` as a bind-field and a value of its type."""
    import pyarrow as pa

    parts = _BOUND.fullmatch(text)
    if parts is None:
        raise Mistake(f"{text}: expected FIELD=VALUE")
    name, operator, value = parts.groups()
    if name not in relation.schema.names:
        raise Mistake(
            f"{text}: {relation.name} has no field {name!r}: it has {', '.join(relation.schema.names)}"
        )
    type_ = relation.schema.field(name).type
    try:
        typed = pa.scalar(value, pa.string()).cast(type_).as_py()
    except pa.ArrowException:
        raise Mistake(f"{text}: {value!r} is not {_a(type_)}") from None
    return name + ("" if operator == "=" else operator), typed


def _method(relation: Relation, name: str, given: dict[str, object]) -> AccessMethod:
    """The one that is named; else the one that takes exactly what is given, and needs the most of it."""
    from mediator.catalog.bindfields import parted

    ways = [m for m in relation.methods if m.wrapper is not None]
    if name:
        ways = [m for m in ways if m.name == name]
        if not ways:
            raise Mistake(
                f"{relation.name} has no method {name!r}: {', '.join(m.name for m in relation.methods)}"
            )
    fitting = [m for m in ways if {parted(f) for f in given} <= {parted(f) for f in m.bound}]
    if not fitting:
        takes = "; ".join(f"{m.name} takes {', '.join(m.bound) or 'nothing'}" for m in ways)
        raise Mistake(f"{relation.name} cannot be asked by {', '.join(given)}: {takes}")
    ready = [
        m
        for m in fitting
        if set(m.required) <= given.keys() and (not m.any_of or set(m.any_of) & given.keys())
    ]
    return max(ready or fitting, key=lambda m: len(m.required))


async def _tried(lookup: _Lookup, take: Take, most: int, console: Console) -> _Came:
    """Through the access layer, as a query would: with its pace, its retries and its mirrors."""
    from api.interrupting import interrupting
    from mediator.access import Access, HttpTransport
    from mediator.flow.events import Arrived, Ask, Failed

    came = _Came()

    def deliver(event: Event) -> None:
        if came.over.is_set():
            return
        match event:
            case Arrived(_, landing):
                take(landing.rows.slice(0, most - came.rows))
                came.rows += landing.rows.num_rows
                if came.rows >= most:
                    came.over.set()
            case Failed(_, _, cause):
                came.cause = cause
                came.over.set()
            case _:
                came.whole = True
                came.over.set()

    def interrupt() -> None:
        came.interrupted = True
        came.over.set()

    async with HttpTransport(lookup.catalog.sources) as web:
        shown = _Shown(web, console)
        async with Access(lookup.catalog, transport=shown) as access:
            visit = access.visit(deliver)
            with interrupting(interrupt):
                visit.ask(
                    Ask(1, lookup.relation.name, lookup.method.name, lookup.bind_set, (lookup.binding,))
                )
                await came.over.wait()
            visit.close()
    return came


def _tell(console: Console, lookup: _Lookup, came: _Came, most: int) -> None:
    from rich.text import Text

    from api.cells import harmless

    name = f"{lookup.relation.name}.{lookup.method.name}"
    rows = f"{came.rows:,} row{'' if came.rows == 1 else 's'}"
    if came.cause is not None:
        said = f"{name}: {rows}, then {came.cause.kind}: {came.cause.message}"
        console.print(Text(harmless(said), "bold red"), soft_wrap=True)
    elif came.whole:
        console.print(
            Text(f"{name}: {rows}, and the site says that this is all", "bold green"), soft_wrap=True
        )
    else:
        shown = f" ({most} of them are shown)" if came.rows > most else ""
        why = "interrupted" if came.interrupted else f"stopped, as --rows {most} says{shown}"
        console.print(Text(f"{name}: {rows}; {why}, so there may be more", "bold yellow"), soft_wrap=True)


def _a(type_: pa.DataType) -> str:
    return f"{'an' if str(type_)[0] in 'aeiou' else 'a'} {type_}"
