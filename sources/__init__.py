"""Declared sources: the built-in ones, and how to load any others."""

from pathlib import Path

from mediator.catalog.model import Catalog
from sources.loading import load

__all__ = ["load", "load_book_trade", "load_papers"]

_HERE = Path(__file__).parent


def load_book_trade(address: str) -> Catalog:
    """The seven relations of the book trade, as served at this address."""
    return load(_HERE / "book_trade", {"book_trade": address})


def load_papers(address: str) -> Catalog:
    """The papers' r, s and t, as served at this address."""
    return load(_HERE / "papers", {"papers": address})
