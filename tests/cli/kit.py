"""Commands, run in this process or in one of their own, over the book trade on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
from typer.testing import CliRunner, Result

import sources
from api.cli import app
from fixtures import Web

BOOK_TRADE = Path(sources.__file__).parent / "book_trade"
PATIENCE = 180.0
SPARKS = 300.0  # patience with commands that start Spark
_SCRIPT = "from api.cli import main; main()"


def at(web: Web) -> list[str]:
    """Options that name the book trade, as served there."""
    return ["--catalog", str(BOOK_TRADE), "--set", f"book_trade={web.url}"]


def called(*arguments: str, input: str | None = None, env: dict[str, str] | None = None) -> Result:
    """A command in this process. What it raises, other than its exit, is raised here."""
    result = CliRunner().invoke(app, arguments, input=input, env=env, catch_exceptions=False)
    assert "Traceback" not in result.output
    return result


def started(*arguments: str, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    """A command in a process of its own, with pipes for what it says."""
    return subprocess.Popen(
        [sys.executable, "-c", _SCRIPT, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env={**os.environ, **(env or {})},
    )


def finished(process: subprocess.Popen[bytes], patience: float = PATIENCE) -> tuple[int, bytes, str]:
    """Its exit code, and what else it said."""
    try:
        out, said = process.communicate(timeout=patience)
    finally:
        process.kill()
    assert b"Traceback" not in said, said.decode()
    return process.returncode, out, said.decode()


def truth(web: Web, sql: str) -> pa.Table:
    """The answer over the rows that the sites really hold."""
    with duckdb.connect() as connection:
        for name, table in web.tables.items():
            connection.register(name, table)
        return connection.sql(sql).to_arrow_table()


def bag(rows: Sequence[object]) -> list[str]:
    """Rows in an order that says nothing."""
    return sorted(map(repr, rows))
