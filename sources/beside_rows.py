"""Checks of what a method reads and writes beside its rows: pages, and rules for what replies mean."""

from __future__ import annotations

from collections.abc import Iterator

from sources.coding import reads, writes
from sources.complaint import Complaint, Where
from sources.declaration import MethodSpec
from wrappers import CursorPages, HtmlReader, LinkedPages, NumberedPages, OffsetPages
from wrappers.record_reader import RecordReader
from wrappers.selecting import xpath


def check_paging(method: MethodSpec, where: Where) -> None:
    """The parameter that turns the pages goes where the request has a place for it, and is no other."""
    pages, request = method.pages, method.request
    if not isinstance(pages, NumberedPages | OffsetPages | CursorPages) or writes(method):
        return
    if pages.place != "query" and not (request.form if pages.place == "form" else request.json_body):
        raise Complaint(
            (*where, "pages", "place"),
            f"the request has no {pages.place}: add it to 'request', or leave out place",
        )
    if pages.place == "json":
        return
    taken = request.query if pages.place == "query" else request.form
    for part in ("param", "offset", "limit"):
        if (name := getattr(pages, part, "")) and name in taken:
            raise Complaint(
                (*where, "pages", part), f"{name!r} is in the request already: take it out of there"
            )


def check_looks(method: MethodSpec, where: Where) -> None:
    """What is looked for beside the rows can be found in a reply of this kind."""
    for place, path in _looks(method):
        if isinstance(method.reply, HtmlReader):
            try:
                xpath(path)
            except ValueError as error:
                raise Complaint((*where, *place), str(error)) from None
        elif reads(method):
            raise Complaint(
                (*where, *place), "code reads these replies: look there yourself, and yield requests or raise"
            )
        elif not isinstance(method.reply, RecordReader):
            raise Complaint(
                (*where, *place),
                f"a reply of kind {method.reply.kind} has only rows: remove it, or look at a header",
            )


def _looks(method: MethodSpec) -> Iterator[tuple[Where, str]]:
    """Where a declaration names a place of the body, and that place."""
    pages = method.pages
    parts: tuple[str, ...] = ()
    if isinstance(pages, NumberedPages | OffsetPages):
        parts = ("total",)
    elif isinstance(pages, CursorPages):
        parts = ("cursor", "more")
    elif isinstance(pages, LinkedPages):
        parts = ("next",)
    for part in parts:
        if path := getattr(pages, part):
            yield ("pages", part), path
    for number, rule in enumerate(method.errors):
        if rule.at:
            yield ("errors", number, "at"), rule.at
