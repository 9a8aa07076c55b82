"""What can be chosen on the command line, apart from the engine, so that `--help` need not load it."""

from __future__ import annotations

from enum import StrEnum


class Format(StrEnum):
    table = "table"
    csv = "csv"
    ndjson = "ndjson"
    json = "json"
    parquet = "parquet"
    arrow = "arrow"


class PolicyName(StrEnum):
    """The engine's policies; a test holds the two lists together."""

    rank = "rank"
    lottery = "lottery"
    naive = "naive"
    random = "random"
    fixed = "fixed"


SUFFIXES = {
    ".txt": Format.table,
    ".csv": Format.csv,
    ".ndjson": Format.ndjson,
    ".jsonl": Format.ndjson,
    ".json": Format.json,
    ".parquet": Format.parquet,
    ".arrow": Format.arrow,
    ".arrows": Format.arrow,
}
