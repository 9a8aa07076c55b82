"""PEP 249: its own compliance suite, and what a stream of answers adds to it."""

from __future__ import annotations

import datetime
import decimal
import unittest
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, ClassVar

import dbapi20  # type: ignore[import-untyped]
import pandas as pd
import polars as pl
import pytest

from api.client import IncompleteWarning, dbapi, errors, reading
from tests.client.conftest import PAGE, House
from tests.client.kit import FAILS, HANGS, eventually, hangs_after, truth
from tests.client.proxy import proxied
from tests.client.writable import driver

BOOKS = "SELECT isbn, title, year FROM books"
PRIZES = "SELECT b.isbn, p.prize FROM books b JOIN prizes p ON p.isbn = b.isbn"


class _Suite:
    """Keeps the suite's own `TestCase` from being collected."""

    Compliance = dbapi20.DatabaseAPI20Test


@pytest.mark.usefixtures("_with_driver")
class TestCompliance(_Suite.Compliance):  # type: ignore[misc]
    """Over tables that can be written: what is fetched of them comes from the server (`writable.py`)."""

    driver: ClassVar[SimpleNamespace]
    connect_args: ClassVar[tuple[Any, ...]]

    @pytest.fixture
    def _with_driver(self, calm: House) -> None:
        type(self).driver = driver()
        type(self).connect_args = (calm.url,)

    @unittest.skip("a statement has one result: there is no nextset, which is optional")
    def test_nextset(self) -> None: ...

    @unittest.skip("values come as long as they are: there is nothing to be seen of it")
    def test_setoutputsize(self) -> None: ...

    @unittest.skip("to close what is closed does no harm: the suite itself says that persons differ")
    def test_non_idempotent_close(self) -> None: ...


@pytest.fixture
def connection(calm: House) -> Iterator[dbapi.Connection]:
    with dbapi.connect(calm.url) as found:
        yield found


def test_rows(calm: House, connection: dbapi.Connection) -> None:
    with connection.cursor() as cursor:
        assert cursor.description is None
        assert cursor.rownumber is None
        rows = cursor.execute(f"{BOOKS} WHERE year > ?", (1990,)).fetchall()
        expected = truth(calm.web, f"{BOOKS} WHERE year > 1990").to_pylist()
        assert sorted(rows) == sorted(tuple(row.values()) for row in expected)
        assert cursor.rowcount == cursor.rownumber == len(rows)
        assert cursor.complete
        assert cursor.report is not None
        assert cursor.messages == []
        assert cursor.fetchone() is None
        assert cursor.fetchmany() == cursor.fetchall() == []


def test_names_for_parameters(connection: dbapi.Connection) -> None:
    rows = connection.cursor().execute("SELECT $a + $b", {"a": 1, "b": 2}).fetchall()
    assert rows == [(3,)]


def test_values_have_their_types(connection: dbapi.Connection) -> None:
    sql = """SELECT 1 AS i, 1.5::DOUBLE AS d, 1.10::DECIMAL(9,2) AS n, 'x' AS s, true AS b, NULL AS z,
             '\\x00a'::BLOB AS o, DATE '2026-01-31' AS day,
             TIME '08:30' AS t, TIMESTAMP '2026-01-31 08:30' AS ts, [1, 2] AS l,
             INTERVAL 36 HOUR AS h"""
    cursor = connection.cursor().execute(sql)
    assert cursor.fetchall() == [
        (
            1, 1.5, decimal.Decimal("1.10"), "x", True, None, b"\x00a", datetime.date(2026, 1, 31),
            datetime.time(8, 30), datetime.datetime(2026, 1, 31, 8, 30), [1, 2],
            datetime.timedelta(hours=36),
        )
    ]  # fmt: skip
    assert cursor.description is not None
    kinds = {name: kind for name, kind, *_ in cursor.description}
    assert all(kinds[name] == dbapi.NUMBER for name in "idnb")
    assert kinds["s"] == dbapi.STRING
    assert kinds["o"] == dbapi.BINARY
    assert all(kinds[name] == dbapi.DATETIME for name in ("day", "t", "ts"))
    assert not any(kind == dbapi.ROWID for kind in kinds.values())
    assert dbapi.STRING != dbapi.NUMBER


def test_a_column_name_may_come_twice(connection: dbapi.Connection) -> None:
    assert connection.cursor().execute("SELECT 1 AS a, 2 AS a").fetchall() == [(1, 2)]


def test_the_first_row_is_there_before_the_last_exists(house: House) -> None:
    house.web.behave("books", hangs_after(1))
    with dbapi.connect(house.url) as connection:
        cursor = connection.cursor().execute(BOOKS)
        assert cursor.fetchone() is not None
        assert len(cursor.fetchmany(PAGE - 1)) == PAGE - 1
        assert cursor.rowcount == -1
        assert cursor.complete is None
        # Closing it ends the query: the site is not waited for any more.
        cursor.close()
        eventually(lambda: house.web.counters["books"].open == 0)
        with pytest.raises(dbapi.InterfaceError):
            cursor.fetchone()


def test_a_new_query_ends_the_one_before(house: House) -> None:
    house.web.behave("books", HANGS)
    with dbapi.connect(house.url) as connection:
        cursor = connection.cursor().execute(BOOKS)
        eventually(lambda: house.web.counters["books"].open > 0)
        assert cursor.execute("SELECT 1").fetchall() == [(1,)]
        eventually(lambda: house.web.counters["books"].open == 0)


def test_the_rest_as_an_arrow_table(calm: House, connection: dbapi.Connection) -> None:
    cursor = connection.cursor().execute(BOOKS)
    head = cursor.fetchmany(7)
    rest = cursor.fetch_arrow_table()
    assert len(head) + rest.num_rows == cursor.rowcount == 300
    assert not {row[0] for row in head} & set(rest["isbn"].to_pylist())
    assert cursor.fetchone() is None


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO books VALUES (1)",
        "DELETE FROM books",
        "UPDATE books SET year = 1",
        "CREATE TABLE x (i INTEGER)",
    ],
)
def test_nothing_is_written(connection: dbapi.Connection, sql: str) -> None:
    with pytest.raises(dbapi.NotSupportedError, match="only SELECT is run here"):
        connection.cursor().execute(sql)
    with pytest.raises(dbapi.NotSupportedError):
        connection.cursor().executemany(sql, [()])
    connection.commit()
    connection.rollback()


def test_errors_are_those_of_the_standard(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    with pytest.raises(dbapi.ProgrammingError, match=r"line 1, column 8") as caught:
        cursor.execute("SELECT nix FROM books")
    assert isinstance(caught.value.problem, errors.UnknownColumn)
    for sql in ("SELEC", "SELECT * FROM holdings", "SELECT ?"):
        with pytest.raises(dbapi.ProgrammingError):
            cursor.execute(sql)
    with pytest.raises(dbapi.ProgrammingError, match="object"):
        cursor.execute("SELECT ?", (object(),))
    with pytest.raises(dbapi.ProgrammingError, match="execute"):
        cursor.fetchall()
    with pytest.raises(dbapi.OperationalError, match="reached"):
        dbapi.connect("http://127.0.0.1:1")
    connection.close()
    connection.close()
    with pytest.raises(dbapi.InterfaceError):
        connection.cursor()


def test_a_query_that_fails_in_its_run(connection: dbapi.Connection) -> None:
    cursor = connection.cursor().execute("SELECT CAST(title AS INTEGER) FROM books")
    with pytest.raises(dbapi.DatabaseError, match="INT"):
        cursor.fetchall()


def test_what_is_missing_is_told(house: House) -> None:
    house.web.behave("prizes", FAILS)
    with dbapi.connect(house.url) as connection:
        cursor = connection.cursor().execute(PRIZES)
        with pytest.warns(IncompleteWarning, match="prizes"):
            assert cursor.fetchall() == []
        assert cursor.complete is False
        assert cursor.report is not None
        assert not cursor.report["complete"]
        assert [kind for kind, _ in cursor.messages] == [dbapi.Warning]
    with dbapi.connect(house.url, whole=True, goal="fewest_calls") as connection:
        cursor = connection.cursor().execute(PRIZES)
        with pytest.raises(dbapi.OperationalError, match="prizes"):
            cursor.fetchall()


def test_a_connection_that_breaks_off(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_PAUSE", 0.0)
    house.web.behave("books", hangs_after(1))
    with proxied(house.served.port) as proxy, dbapi.connect(proxy.url) as connection:
        cursor = connection.cursor().execute(BOOKS)
        assert cursor.fetchone() is not None
        proxy.refuses = True
        proxy.cut_now()
        with pytest.raises(dbapi.OperationalError):
            cursor.fetchall()


def test_pandas(calm: House, connection: dbapi.Connection) -> None:
    # pandas warns of whatever is no SQLAlchemy engine.
    with pytest.warns(UserWarning, match="SQLAlchemy"):
        frame = pd.read_sql("SELECT year, count(*) AS n FROM books GROUP BY year", connection)
    assert frame["n"].sum() == 300


def test_polars(calm: House, connection: dbapi.Connection) -> None:
    frame = pl.read_database("SELECT year, count(*) AS n FROM books GROUP BY year", connection)
    assert frame["n"].sum() == 300
