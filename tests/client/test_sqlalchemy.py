"""SQLAlchemy: its own compliance suite, what is reflected, and pandas over an engine."""

from __future__ import annotations

import datetime
import decimal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import registry
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from api.client import IncompleteWarning
from api.client.dialect import MediatorDialect, SecureMediatorDialect, type_of
from tests.client.conftest import PAGE, House
from tests.client.kit import FAILS, HANGS, eventually, hangs_after

_SUITE = Path(__file__).parent / "suite"
# As the entry points say, also where the package was installed before it had them.
registry.register("mediator", "api.client.dialect", "MediatorDialect")
registry.register("mediator.https", "api.client.dialect", "SecureMediatorDialect")


@pytest.fixture
def engine(calm: House) -> Iterator[sa.Engine]:
    made = sa.create_engine(calm.url.replace("http", "mediator"))
    yield made
    made.dispose()


@pytest.mark.timeout(600)
def test_compliance() -> None:
    """In a process of its own, because the suite's plugin takes over a whole session."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", _SUITE / "pytest.ini", "--rootdir", _SUITE, "--tb=short", _SUITE],
        capture_output=True, text=True, cwd=_SUITE.parents[2],
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr


def test_relations_are_reflected(calm: House, engine: sa.Engine) -> None:
    inspector = sa.inspect(engine)
    assert set(inspector.get_table_names()) == set(calm.web.catalog.relations)
    assert inspector.get_schema_names() == ["main"]
    assert inspector.get_table_names(schema="main") == inspector.get_table_names()
    assert inspector.get_table_names(schema="elsewhere") == inspector.get_view_names() == []
    assert inspector.has_table("books")
    assert not inspector.has_table("bucks")
    columns = {c["name"]: c for c in inspector.get_columns("books")}
    assert list(columns) == ["isbn", "title", "author_id", "year", "publisher"]
    assert isinstance(columns["author_id"]["type"], sa.BIGINT)
    assert isinstance(columns["title"]["type"], sa.VARCHAR)
    assert not columns["isbn"]["nullable"]
    assert inspector.get_pk_constraint("holdings")["constrained_columns"] == ["isbn", "library_id"]
    assert (
        inspector.get_table_comment("holdings")["text"]
        == "by_book_and_library (index) needs isbn, library_id"
    )
    for ask in (inspector.get_foreign_keys, inspector.get_indexes, inspector.get_unique_constraints):
        assert ask("books") == []
        with pytest.raises(sa.exc.NoSuchTableError):
            ask("bucks")


def test_a_reflected_table_is_asked(engine: sa.Engine) -> None:
    books = sa.Table("books", sa.MetaData(), autoload_with=engine)
    named = sa.Table("books", sa.MetaData(schema="main"), autoload_with=engine)
    with engine.connect() as connection:
        for table in (books, named):
            late = sa.select(sa.func.count()).where(table.c.year > 1990)
            early = sa.select(sa.func.count()).where(sa.or_(table.c.year <= 1990, table.c.year.is_(None)))
            assert sum(connection.execute(part).scalar_one() for part in (late, early)) == 300


def test_values_are_bound_with_their_types(engine: sa.Engine) -> None:
    values = [
        1, 2.5, "x'y%", True, None, decimal.Decimal("1.25"), datetime.date(2026, 1, 31), datetime.time(8, 30),
        datetime.datetime(2026, 1, 31, 8, 30), datetime.timedelta(hours=36), b"\x00\xff",
    ]  # fmt: skip
    with engine.connect() as connection:
        row = connection.execute(sa.select(*(sa.literal(value) for value in values))).one()
    assert list(row) == values


def test_objects(engine: sa.Engine) -> None:
    class Base(DeclarativeBase):
        pass

    class Book(Base):
        __tablename__ = "books"
        isbn: Mapped[str] = mapped_column(primary_key=True)
        title: Mapped[str]
        year: Mapped[int | None]

    with Session(engine) as session:
        found = session.scalars(sa.select(Book).where(Book.year > 1990).order_by(Book.year).limit(3)).all()
        assert [type(book) for book in found] == [Book] * 3
        assert session.get(Book, found[0].isbn) is found[0]
        session.add(Book(isbn="1", title="new", year=1))
        with pytest.raises(sa.exc.NotSupportedError, match="only SELECT"):
            session.flush()


def test_rows_come_as_they_are_found(house: House) -> None:
    house.web.behave("books", hangs_after(1))
    made = sa.create_engine(house.url.replace("http", "mediator"))
    with made.connect() as connection:
        result = connection.execute(sa.text("SELECT isbn FROM books"))
        assert len(result.fetchmany(PAGE)) == PAGE
        result.close()
        eventually(lambda: house.web.counters["books"].open == 0)
    made.dispose()


def test_what_is_missing_is_told(house: House) -> None:
    house.web.behave("prizes", FAILS)
    address = house.url.replace("http", "mediator")
    made, whole = sa.create_engine(address), sa.create_engine(f"{address}/?whole=true")
    with made.connect() as connection, pytest.warns(IncompleteWarning):
        assert connection.execute(sa.text("SELECT * FROM prizes")).all() == []
    with whole.connect() as connection:
        result = connection.execute(sa.text("SELECT * FROM prizes"))
        with pytest.raises(sa.exc.OperationalError, match="prizes"):
            result.all()
    made.dispose()
    whole.dispose()


def test_a_server_that_is_gone(house: House) -> None:
    house.web.behave("books", HANGS)
    made = sa.create_engine(house.url.replace("http", "mediator"), pool_pre_ping=True)
    with made.connect() as connection:
        assert connection.scalar(sa.text("SELECT 1")) == 1
    house.served.stop()
    with pytest.raises(sa.exc.OperationalError, match="reached"):
        made.connect()
    made.dispose()


def test_pandas(calm: House, engine: sa.Engine) -> None:
    frame = pd.read_sql(
        sa.text("SELECT isbn, year FROM books WHERE year > :year"), engine, params={"year": 1990}
    )
    assert list(frame.columns) == ["isbn", "year"]
    assert (frame["year"] > 1990).all()
    assert len(pd.read_sql_table("books", engine)) == 300
    chunks = list(pd.read_sql("SELECT isbn FROM books", engine, chunksize=128))
    assert [len(chunk) for chunk in chunks] == [128, 128, 44]


def test_addresses() -> None:
    def told(address: str, of: MediatorDialect) -> tuple[str, dict[str, object]]:
        (url,), more = of.create_connect_args(sa.make_url(address))
        return url, more

    plain, secure = MediatorDialect(), SecureMediatorDialect()
    assert told("mediator://", plain) == ("http://127.0.0.1:8080", {"key": None})
    assert told(
        "mediator+https://:mk_x@host/at?goal=first_rows&whole=1&budget.calls=3&pause=a&pause=b", secure
    ) == (
        "https://host/at",
        {"key": "mk_x", "goal": "first_rows", "whole": True, "budget": {"calls": 3}, "pause": ["a", "b"]},
    )
    assert told("mediator://[::1]:9/?max_age=60&boost.fast=2&budget.seconds=1.5", plain) == (
        "http://[::1]:9",
        {"key": None, "max_age": 60.0, "boost": {"fast": 2.0}, "budget": {"seconds": 1.5}},
    )
    for wrong in ("mediator://user:key@host", "mediator://host/?gaol=x", "mediator://host/?goal=a&goal=b"):
        with pytest.raises(sa.exc.ArgumentError):
            told(wrong, plain)


def test_types() -> None:
    assert isinstance(type_of("DECIMAL(9,2)"), sa.DECIMAL)
    listed = type_of("INTEGER[]")
    assert isinstance(listed, sa.ARRAY)
    assert isinstance(listed.item_type, sa.INTEGER)
    assert isinstance(type_of("STRUCT"), sa.types.NullType)
