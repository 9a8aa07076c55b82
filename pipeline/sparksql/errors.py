"""Why Spark is not to do it."""

from __future__ import annotations


class NotAgreed(Exception):
    """Says what it is of which Spark is not known to do what DuckDB does."""
