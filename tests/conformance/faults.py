"""What can be wrong with a wrapper or its site, each with the checks by which it has to be found."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

import sources
from mediator.catalog.model import Catalog
from mediator.catalog.wrapper import Binding, Meaning, Page, Reply, Request
from mediator.errors import RateLimited
from wrappers import DeclaredWrapper

DECLARATION = Path(__file__).parent / "shop.yaml"
Change = Callable[[DeclaredWrapper], DeclaredWrapper]


@dataclass(frozen=True)
class Fault:
    """`found_by` is the check that names it; `follows` are others that fail because of it, and rightly."""

    name: str
    found_by: str
    follows: tuple[str, ...] = ()
    declared: tuple[tuple[str, str], ...] = ()  # replaced in the declaration
    wrapper: tuple[str, str, Change] | None = None  # relation, method, and what its wrapper is replaced by


class Counting(DeclaredWrapper):
    """Writes another request each time."""

    numbers = count()

    def request(self, bind_set: tuple[str, ...], bindings: Sequence[Binding]) -> Request:
        request = super().request(bind_set, bindings)
        return replace(request, query=(*request.query, ("nonce", str(next(self.numbers)))))


class Careless(DeclaredWrapper):
    """Knows a secret by heart."""

    def request(self, bind_set: tuple[str, ...], bindings: Sequence[Binding]) -> Request:
        request = super().request(bind_set, bindings)
        return replace(request, headers=(("X-Api-Key", "k-8317"),))


class Remembering(DeclaredWrapper):
    """Gives every row once, whoever asks."""

    seen: ClassVar[set[str]] = set()

    def read(
        self, request: Request, bind_set: tuple[str, ...], bindings: Sequence[Binding], reply: Reply
    ) -> Page:
        page = super().read(request, bind_set, bindings, reply)
        fresh = [n for n, row in enumerate(page.rows.to_pylist()) if str((bindings, row)) not in self.seen]
        self.seen.update(str((bindings, row)) for row in page.rows.to_pylist())
        return Page(page.rows.take(pa.array(fresh, pa.int64())), page.then)


class Dividing(DeclaredWrapper):
    """Makes numbers that are none."""

    def read(
        self, request: Request, bind_set: tuple[str, ...], bindings: Sequence[Binding], reply: Reply
    ) -> Page:
        page = super().read(request, bind_set, bindings, reply)
        column = page.rows.schema.get_field_index("price")
        none = pa.array([math.nan] * page.rows.num_rows, page.rows.schema.field(column).type)
        return Page(page.rows.set_column(column, "price", none), page.then)


class Curious(DeclaredWrapper):
    """Looks into a file."""

    def read(
        self, request: Request, bind_set: tuple[str, ...], bindings: Sequence[Binding], reply: Reply
    ) -> Page:
        DECLARATION.read_text()
        return super().read(request, bind_set, bindings, reply)


class Forgetful(DeclaredWrapper):
    """Sends nothing of what is bound."""

    def request(self, bind_set: tuple[str, ...], bindings: Sequence[Binding]) -> Request:
        return replace(super().request(bind_set, bindings), query=(("sku", "Ab-00"),))


class Mute(DeclaredWrapper):
    """Writes no request at all."""

    def request(self, bind_set: tuple[str, ...], bindings: Sequence[Binding]) -> Request:
        raise ValueError(f"what is {bindings[0][0]}?")


class Trusting(DeclaredWrapper):
    """Falls over what it does not expect."""

    def read(
        self, request: Request, bind_set: tuple[str, ...], bindings: Sequence[Binding], reply: Reply
    ) -> Page:
        if b"items" not in reply.body:
            raise KeyError("items")
        return super().read(request, bind_set, bindings, reply)


class Impatient(DeclaredWrapper):
    """Does not hear when it may come back."""

    def meaning(self, reply: Reply) -> Meaning | None:
        if reply.status == 429:
            raise RateLimited("too many", again=True, after=1.0)
        return super().meaning(reply)


def _made(kind: type[DeclaredWrapper]) -> Change:
    return lambda wrapper: kind(**{name: getattr(wrapper, name) for name in wrapper.__dataclass_fields__})


def _code(name: str, found_by: str, kind: type[DeclaredWrapper], *follows: str) -> Fault:
    return Fault(name, found_by, follows, wrapper=("items", "by_sku", _made(kind)))


_BY_SKU = 'request: {path: /find, query: {sku: "{sku}"}}\n        reply: {kind: json, rows: /items}'

FAULTS = (
    # The site.
    Fault("the binding is ignored", "bindings-echo"),
    Fault("the binding is ignored, and rows do not say so", "unknown-binding"),
    Fault("case is ignored", "case-matters"),
    Fault("case is ignored, and rows do not say so", "case-matters"),
    Fault("one of a batch is dropped", "batch-is-union"),
    Fault("a full batch is cut short", "batch-size"),
    Fault("an optional field loses rows", "optional-loses-nothing"),
    Fault("the last page repeats for ever", "paging-ends"),
    Fault("the last page leads back", "paging-ends"),
    Fault("pages overlap", "pages-disjoint"),
    Fault("a page is smaller than asked for", "page-size"),
    Fault("the size of a page is ignored", "page-size"),
    Fault("the total is too high", "total-agrees"),
    Fault("the last page is lost", "nothing-left-out"),
    Fault("a listing is capped", "listing-whole"),
    Fault("an index has fewer rows", "ways-agree"),
    Fault("a later page has another type", "types-hold"),
    Fault("a field is renamed", "fields-present"),
    Fault("a field is always null", "sometimes-there"),
    Fault("a key is null", "never-null"),
    Fault("two rows with one key", "key-unique"),
    Fault("NaN in JSON", "replies-read"),
    Fault("NaN in CSV", "types-hold"),
    Fault("the charset is wrong", "text-sound"),
    Fault("an error with status 200", "error-in-disguise"),
    Fault("no rows is a 404", "unknown-binding"),
    Fault("no rows is an error page", "unknown-binding"),
    Fault("too many requests are a 403", "throttling-declared"),
    Fault("the declared pace is too fast", "pace-borne"),
    Fault("the site is down", "site-answers"),
    Fault("a mirror is stale", "mirrors-agree"),
    Fault("mirrors differ in a row", "mirrors-agree"),
    # The declaration.
    Fault(
        "a bind-field is never sent",
        "declaration-valid",
        declared=(('query: {sku: "{sku}"}', 'query: {sku: "all"}'),),
    ),
    Fault(
        "rows are looked for in an empty list",
        "rows-found",
        declared=((_BY_SKU, _BY_SKU.replace("/items", "/related")),),
    ),
    Fault(
        "rows are looked for where nothing is",
        "replies-read",
        declared=((_BY_SKU, _BY_SKU.replace("/items", "/things")),),
    ),
    Fault(
        "the first page is lost",
        "nothing-left-out",
        declared=(("{param: page, first: 1}", "{param: page, first: 2}"),),
    ),
    Fault(
        "further pages are not declared",
        "listing-whole",
        declared=(("        pages: {next: /next}\n", ""),),
    ),
    Fault(
        "an overloaded site has no rows",
        "failures-told",
        declared=((_BY_SKU, f"{_BY_SKU}\n        empty: [503]"),),
    ),
    Fault("any page means no rows", "garbage-told", declared=(('//p[@id="none"]', "//body"),)),
    Fault(
        "a key is written into the declaration",
        "declaration-valid",
        declared=(("request: {path: /find,", "request: {path: /find, headers: {X-Api-Key: k-8317},"),),
    ),
    Fault(
        "rows come in another order",
        "order-kept",
        declared=(("required: [kind]\n", "required: [kind]\n        order: [-stock]\n"),),
    ),
    Fault(
        "more rows come than are declared",
        "at-most-holds",
        declared=(("required: [kind]\n", "required: [kind]\n        at_most: 3\n"),),
    ),
    Fault(
        "a row repeats the key of the visitor",
        "no-secret-told",
        declared=(
            (
                'north: {base: "${shop}/north", ',
                'north: {base: "${shop}/north", auth: {kind: key, header: X-Api-Key, key_env: SHOP_KEY}, ',
            ),
        ),
    ),
    # The code.
    _code("the request is another one each time", "request-repeats", Counting),
    _code("the binding is not in the request", "bindings-sent", Forgetful, "bindings-echo"),
    _code("a key is written into the code", "no-secret-written", Careless),
    _code("no request can be written", "request-written", Mute),
    _code("rows are given once", "reading-repeats", Remembering),
    _code("numbers are divided by nothing", "numbers-finite", Dividing),
    _code("reading opens a file", "does-no-io", Curious),
    _code("reading trips over an error page", "no-crash", Trusting),
    _code("the site's word is not heard", "retry-after", Impatient),
)


def catalog(fault: Fault, folder: Path, address: str) -> Catalog:
    """The shop's declaration, with this fault in it."""
    text = DECLARATION.read_text()
    for old, new in fault.declared:
        assert old in text, old
        text = text.replace(old, new)
    file = folder / "shop.yaml"
    file.write_text(text)
    found = sources.load(file, {"shop": address})
    return found if fault.wrapper is None else _changed(found, *fault.wrapper)


def _changed(found: Catalog, relation: str, method: str, change: Change) -> Catalog:
    table = found.relations[relation]
    methods: list[Any] = []
    for declared in table.methods:
        if declared.name == method:
            assert isinstance(declared.wrapper, DeclaredWrapper)
            declared = replace(declared, wrapper=change(declared.wrapper))
        methods.append(declared)
    changed = replace(table, methods=tuple(methods))
    return replace(found, relations={**found.relations, relation: changed})
