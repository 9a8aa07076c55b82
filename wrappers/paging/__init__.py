"""Where a site's further pages are: one kind of paging per file, each with its own stop rule.

What the kinds have in common is in `turning.py`. That a page leads back to an earlier one is noticed by whoever
sends the requests (`mediator.access.pages`), as they are equal then; the kinds notice what no request shows.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Discriminator, Tag

from wrappers.paging.cursor import CursorPages
from wrappers.paging.linked import HeaderPages, LinkedPages, followed
from wrappers.paging.numbered import NumberedPages
from wrappers.paging.offset import OffsetPages
from wrappers.paging.turning import Leaf, SameRows

Paging = NumberedPages | OffsetPages | CursorPages | LinkedPages | HeaderPages

_TOLD_BY = {
    "cursor": "CursorPages",
    "offset": "OffsetPages",
    "next": "LinkedPages",
    "rel": "HeaderPages",
    "param": "NumberedPages",
}


def _kind(said: Any) -> str | None:
    """Which kind a declaration means, by the one field that only this kind must have."""
    if not isinstance(said, dict | BaseModel):
        return None
    names = type(said).model_fields if isinstance(said, BaseModel) else said
    return next((kind for name, kind in _TOLD_BY.items() if name in names), None)


PagingSpec = Annotated[
    Annotated[NumberedPages, Tag("NumberedPages")]
    | Annotated[OffsetPages, Tag("OffsetPages")]
    | Annotated[CursorPages, Tag("CursorPages")]
    | Annotated[LinkedPages, Tag("LinkedPages")]
    | Annotated[HeaderPages, Tag("HeaderPages")],
    Discriminator(
        _kind,
        custom_error_type="no_kind_of_pages",
        custom_error_message="give one of param (page numbers), offset, cursor, next (a link), rel (Link header)",
    ),
]

__all__ = [
    "CursorPages",
    "HeaderPages",
    "Leaf",
    "LinkedPages",
    "NumberedPages",
    "OffsetPages",
    "Paging",
    "PagingSpec",
    "SameRows",
    "followed",
]
