"""Whether answers are right: DuckDB finds as many, and the same sum over their hashes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb

from bench.spark.trade import Laid

Sum = tuple[int, str]


def truth(laid: Laid) -> Sum:
    """What DuckDB finds in the same files."""
    with duckdb.connect() as connection:
        for name, file in laid.files.items():
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{file}')")
        return _summed(connection, laid.sql)


def found(files: Sequence[str | Path]) -> Sum:
    """What lies in files of answers."""
    if not files:
        return 0, "None"
    names = ", ".join(f"'{file}'" for file in files)
    with duckdb.connect() as connection:
        return _summed(connection, f"SELECT * FROM read_parquet([{names}])")


def check(who: str, said: Sum, true: Sum) -> None:
    """Raises `RuntimeError` where somebody's answers are not the right ones."""
    if said != true:
        raise RuntimeError(
            f"the answers of {who} are wrong: {said[0]} rows where there are {true[0]}, or others"
        )


def _summed(connection: duckdb.DuckDBPyConnection, sql: str) -> Sum:
    columns = [f"c{n}" for n in range(len(connection.execute(f"SELECT * FROM ({sql}) LIMIT 0").description))]
    named = f"answers({', '.join(columns)})"
    count, total = connection.execute(
        f"SELECT count(*), sum(hash({', '.join(columns)})::HUGEINT) FROM ({sql}) AS {named}"
    ).fetchall()[0]
    return count, str(total)
