"""A Spark session in which what was agreed on holds, whatever its user has set in his own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS: Mapping[str, str] = {
    "spark.sql.ansi.enabled": "true",  # what overflows is an error, and not NULL
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",  # columns of files may differ in nothing else
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.variable.substitute": "false",  # ${...} in a text is text
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.crossJoin.enabled": "true",
}


def apart(session: SparkSession) -> SparkSession:
    """With settings and views of its own, and the same cluster."""
    found = session.newSession()
    for name, value in SETTINGS.items():
        found.conf.set(name, value)
    return found
