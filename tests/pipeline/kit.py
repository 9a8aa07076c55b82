"""Reading with `format("mediator")`, as a user of Spark would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import sources
from fixtures import Web

BOOK_TRADE = Path(sources.__file__).parent / "book_trade"
# All tests that share the session run in one process; those that start sessions of their own in another, one by one.
SHARED = pytest.mark.xdist_group("spark")
APART = pytest.mark.xdist_group("spark apart")


def said(web: Web, **options: object) -> dict[str, str]:
    """Options that name the book trade as it is served, and more."""
    return {
        "catalog": str(BOOK_TRADE),
        "variables": json.dumps({"book_trade": web.url}),
        **{name: str(value) for name, value in options.items()},
    }


def read(spark: SparkSession, web: Web, **options: object) -> DataFrame:
    return spark.read.format("mediator").options(**said(web, **options)).load()


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    return sorted((row.asDict() for row in frame.collect()), key=repr)


def truth(web: Web, relation: str, **fields: object) -> list[dict[str, Any]]:
    """What the site really holds; of a field that is given a list, those rows whose value is in it."""
    found: list[dict[str, Any]] = web.tables[relation].to_pylist()
    for field, values in fields.items():
        assert isinstance(values, list)
        found = [row for row in found if row[field] in values]
    return sorted(found, key=repr)


def refused(frame: DataFrame) -> str:
    """What the user sees when it cannot be read."""
    with pytest.raises(PySparkException) as caught:
        frame.collect()
    return str(caught.value)


def isbns(web: Web, count: int) -> list[str]:
    found: list[str] = web.tables["books"]["isbn"].to_pylist()[:count]
    return found
