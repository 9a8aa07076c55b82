"""SQL text to the query model: the one door for sqlglot. What DuckDB is asked, it is asked through
`duck.py`."""

from mediator.query.understand import understand

__all__ = ["understand"]
