"""Declared sources: how they are loaded, what Python classes of them are made with, and the built-in ones."""

from collections.abc import Mapping
from pathlib import Path

from mediator.catalog.functions import Function, function
from mediator.catalog.model import Catalog
from sources.auth import BasicAuth, BearerAuth, KeyAuth, Oauth2Auth
from sources.loading import load
from sources.offers import parts_offered
from sources.parts import catalog_of
from sources.python import Int32, Relation, Source, Way, index, scan

__all__ = [
    "BasicAuth",
    "BearerAuth",
    "Function",
    "Int32",
    "KeyAuth",
    "Oauth2Auth",
    "Relation",
    "Source",
    "Way",
    "declared",
    "function",
    "index",
    "load",
    "load_book_trade",
    "load_papers",
    "scan",
]

_HERE = Path(__file__).parent


def declared(given: object, variables: Mapping[str, str] | None = None) -> Catalog:
    """The catalog of what is in memory already: a class derived from `Relation`, a module, or several of them."""
    return catalog_of(parts_offered(given, "", variables or {}))


def load_book_trade(address: str) -> Catalog:
    """The seven relations of the book trade, as served at this address."""
    return load(_HERE / "book_trade", {"book_trade": address})


def load_papers(address: str) -> Catalog:
    """The papers' r, s and t, as served at this address."""
    return load(_HERE / "papers", {"papers": address})
