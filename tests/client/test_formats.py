"""Programs that know nothing of the mediator read its answers: DuckDB, pandas and Polars, over plain HTTP."""

from __future__ import annotations

import io
import urllib.request
from pathlib import Path

import aiohttp
import duckdb
import orjson
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from api.client import connect_async, dbapi, errors
from api.http.keys import Keyring, add
from fixtures import book_trade
from tests.client.conftest import House
from tests.client.kit import bag, truth
from tests.http.serving import serving

BOOKS = "SELECT isbn, title, year FROM books"
ARROW = "application/vnd.apache.arrow.stream"


def asked(url: str, accept: str) -> urllib.request.Request:
    headers = {"Accept": accept, "Content-Type": "application/sql"}
    return urllib.request.Request(f"{url}/v1/queries", BOOKS.encode(), headers)


def test_duckdb_reads_the_arrow_stream(calm: House) -> None:
    with (
        urllib.request.urlopen(asked(calm.url, ARROW)) as response,
        pa.ipc.open_stream(response) as stream,
        duckdb.connect() as connection,
    ):
        reader = pa.RecordBatchReader.from_batches(stream.schema, stream)
        counted = connection.sql("SELECT count(*), count(DISTINCT isbn) FROM reader").fetchall()
        assert reader.schema.names == ["isbn", "title", "year"]
    assert counted == [(300, 300)]


def test_the_last_batch_says_how_it_ended(calm: House) -> None:
    with urllib.request.urlopen(asked(calm.url, ARROW)) as response, pa.ipc.open_stream(response) as stream:
        batches = []
        while True:
            try:
                batches.append(stream.read_next_batch_with_custom_metadata())
            except StopIteration:
                break
    last, metadata = batches[-1]
    assert last.num_rows == 0
    assert orjson.loads(dict(metadata)[b"mediator.end"])["status"] == "complete"
    table = pa.Table.from_batches([batch for batch, _ in batches])
    assert bag(table) == bag(truth(calm.web, BOOKS))


def test_csv_is_read_by_all(calm: House, tmp_path: Path) -> None:
    with urllib.request.urlopen(asked(calm.url, "text/csv")) as response:
        text = response.read()
    file = tmp_path / "books.csv"
    file.write_bytes(text)
    expected = bag(truth(calm.web, BOOKS))
    with duckdb.connect() as connection:
        columns = "{'isbn': 'VARCHAR', 'title': 'VARCHAR', 'year': 'INTEGER'}"
        found = connection.sql(
            f"FROM read_csv('{file}', columns = {columns}, header = true)"
        ).to_arrow_table()
    assert bag(found) == expected
    assert len(pd.read_csv(io.BytesIO(text))) == pl.read_csv(text).height == 300


async def test_polars_reads_parquet(calm: House) -> None:
    async with connect_async(calm.url) as client, aiohttp.ClientSession() as session:
        query = client.query(BOOKS)
        await query.arrow()
        async with session.get(f"{calm.url}/v1/queries/{query.id}/results?format=parquet") as response:
            assert pl.read_parquet(await response.read()).height == 300


async def test_a_key_that_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    asks = add(path, "asks", frozenset({"query"}))
    with book_trade(20) as web, serving(web.catalog, keyring=Keyring.load(path)) as served:
        async with connect_async(served.url) as client:
            with pytest.raises(errors.Unauthorized) as caught:
                await client.query(BOOKS)
            assert caught.value.hint
        async with connect_async(served.url, "mk_wrong") as client:
            with pytest.raises(errors.Unauthorized):
                await client.relations()
        async with connect_async(served.url, asks) as client:
            assert (await client.query(BOOKS).arrow()).num_rows == 20
            with pytest.raises(errors.Forbidden):
                await client.relations()
        with dbapi.connect(served.url, "mk_wrong") as connection, pytest.raises(dbapi.OperationalError):
            connection.cursor().execute(BOOKS)
