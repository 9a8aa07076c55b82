"""The asynchronous client, and the real server."""

from __future__ import annotations

import asyncio

import pytest

from api.client import (
    AsyncClient,
    Cancelled,
    ClientError,
    Closed,
    End,
    Incomplete,
    IncompleteWarning,
    Note,
    Partial,
    Progress,
    Rows,
    Start,
    Withdrawn,
    connect_async,
    errors,
)
from fixtures import Behaviour
from tests.client.conftest import PAGE, House
from tests.client.kit import FAILS, HANGS, bag, hangs_after, in_time, truth

BOOKS = "SELECT isbn, title, year FROM books"
PRIZES = "SELECT b.isbn, p.prize FROM books b JOIN prizes p ON p.isbn = b.isbn"


async def test_records_in_their_order(client: AsyncClient) -> None:
    query = await client.query(BOOKS)
    records = [record async for record in query.records() if not isinstance(record, Progress)]
    first, *between, last = records
    assert isinstance(first, Start)
    assert first.query == query.id
    assert [column["name"] for column in first.columns] == ["isbn", "title", "year"]
    assert all(isinstance(record, Rows) for record in between)
    assert isinstance(last, End)
    assert sum(len(record.rows) for record in between if isinstance(record, Rows)) == 300
    assert query.complete
    assert query.end == last


async def test_records_go_on_behind_one_that_was_read(client: AsyncClient) -> None:
    query = await client.query(BOOKS)
    all_ = [record async for record in query.records() if isinstance(record, Rows)]
    rest = [record async for record in query.records(after=all_[0].id)]
    assert [record for record in rest if isinstance(record, Rows)] == all_[1:]


async def test_rows_of_records_as_arrays(client: AsyncClient) -> None:
    sql = "SELECT 1 AS a, 2 AS a"
    found = [r async for r in client.query(sql).records(shape="arrays") if isinstance(r, Rows)]
    assert list(found[0].rows) == [[1, 2]]


async def test_the_same_table_in_every_shape(calm: House, client: AsyncClient) -> None:
    async with client.query(BOOKS) as query:
        table = await query.arrow()
        assert bag(table) == bag(truth(calm.web, BOOKS))
        assert (await query.polars()).to_dicts() == await query.rows() == table.to_pylist()
        assert (await query.pandas()).equals(table.to_pandas())
        status = await query.status()
        assert (status["status"], status["rows"]) == ("complete", 300)
        assert (await query.report())["complete"]
    # It has ended: it is not forgotten.
    assert (await client.attach(query.id).arrow()).equals(table)


async def test_the_first_batch_is_there_before_the_last_exists(house: House) -> None:
    house.web.behave("books", hangs_after(1))
    async with connect_async(house.url) as client, client.query(BOOKS) as query:
        batches = query.batches()
        assert (await batches.schema()).names == ["isbn", "title", "year"]
        async for batch in batches:
            assert batch.num_rows == PAGE
            break
        assert (await query.status())["status"] == "running"
        assert query.complete is None
    await in_time(lambda: house.web.counters["books"].open == 0)


async def test_the_schema_is_there_before_the_first_row(house: House) -> None:
    house.web.behave("books", HANGS)
    async with connect_async(house.url) as client, client.query(BOOKS) as query:
        assert (await query.batches().schema()).names == ["isbn", "title", "year"]


async def test_an_answer_without_rows(client: AsyncClient) -> None:
    query = client.query(f"{BOOKS} WHERE year > ?", [3000])
    table = await query.arrow()
    assert table.num_rows == 0
    assert table.schema.names == ["isbn", "title", "year"]
    assert query.complete


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("SELECT isbn FROM books WHERE year = ?", [1999]),
        ("SELECT isbn FROM books WHERE year = $year", {"year": 1999}),
    ],
)
async def test_parameters(
    calm: House, client: AsyncClient, sql: str, parameters: list[int] | dict[str, int]
) -> None:
    found = await client.query(sql, parameters).arrow()
    assert bag(found) == bag(truth(calm.web, "SELECT isbn FROM books WHERE year = 1999"))


async def test_a_statement_that_is_wrong(client: AsyncClient) -> None:
    with pytest.raises(errors.UnknownColumn) as caught:
        await client.query("SELECT title,\n  titel FROM books")
    assert (caught.value.position, caught.value.line, caught.value.column) == (16, 2, 3)
    assert "title" in caught.value.hint
    with pytest.raises(errors.Unanswerable) as unanswerable:
        await client.query("SELECT * FROM holdings").arrow()
    assert unanswerable.value.hint
    with pytest.raises(errors.Unsupported, match="only SELECT"):
        await client.query("DELETE FROM books")
    with pytest.raises(errors.InvalidRequest) as invalid:
        await client.query("SELECT 1", budget={"calls": -1})
    assert "calls" in str(invalid.value.errors)


async def test_a_part_is_never_handed_over_as_the_whole(house: House) -> None:
    house.web.behave("prizes", FAILS)
    async with connect_async(house.url) as client:
        query = client.query(PRIZES)
        with pytest.warns(IncompleteWarning, match="prizes"):
            table = await query.arrow()
        assert table.num_rows == 0
        assert query.complete is False
        report = await query.report()
        assert not report["complete"]
        assert query.end is not None
        assert query.end.status == "partial"
        whole = client.query(PRIZES, whole=True)
        with pytest.raises(Incomplete) as caught:
            await whole.arrow()
        assert caught.value.report["relations"]
        told = [r async for r in client.attach(query.id).records() if isinstance(r, Note)]
        assert any(note.relation == "prizes" for note in told)


async def test_only_what_failed_is_asked_again(house: House) -> None:
    house.web.behave("prizes", FAILS)
    async with connect_async(house.url) as client:
        query = await client.query(PRIZES, max_age=0)
        with pytest.warns(IncompleteWarning):
            await query.arrow()
        house.web.behave("prizes", Behaviour())
        again = await query.retry(whole=True)
        assert again.id != query.id
        assert bag(await again.arrow()) == bag(truth(house.web, PRIZES))


async def test_partial_answers_and_what_becomes_of_them(house: House) -> None:
    house.web.behave("prizes", HANGS)
    async with connect_async(house.url) as client:
        query = await client.query(PRIZES, partials=True, stalled_after=0, budget={"seconds": 2})
        partial = [r async for r in query.records() if isinstance(r, Partial | Withdrawn)]
    first = partial[0]
    assert isinstance(first, Partial)
    assert len(first.ids) == len(first.rows)
    assert "prize" in first.unknown
    assert first.relations == ["prizes"]


async def test_a_query_is_steered_and_stopped(house: House) -> None:
    house.web.behave("books", hangs_after(1))
    async with connect_async(house.url) as client:
        query = await client.query(BOOKS)
        source = (await client.relation("books"))["methods"][0]["mirrors"][0]["source"]
        batches = query.batches()
        first = await anext(batches)
        steered = await query.steer(prefer={"year > 1990": 5}, pause=[source], boost={source: 3})
        assert steered["steering"] == {"prefer": {"year > 1990": 5}, "pause": [source], "boost": {source: 3}}
        assert (await query.steer(resume=[source]))["steering"]["pause"] == []
        with pytest.raises(errors.Problem):
            await query.steer(pause=["nobody"])
        await query.stop()
        with pytest.warns(IncompleteWarning, match="enough"):
            rest = [batch async for batch in batches]
        assert first.num_rows == PAGE
        assert rest == []
        assert query.complete is False
        # It has ended: neither has an effect.
        assert (await query.stop())["status"] == "partial"
        assert (await query.steer(pause=[source]))["steering"]["pause"] == []


async def test_cancelled_in_the_middle(house: House) -> None:
    house.web.behave("books", hangs_after(1))
    async with connect_async(house.url) as client:
        query = await client.query(BOOKS)
        batches = query.batches()
        await anext(batches)
        await query.cancel()
        with pytest.raises(Cancelled) as caught:
            await anext(batches)
        assert caught.value.report is not None
        assert (await query.status())["status"] == "cancelled"
        await query.cancel()  # once more has no effect
    await in_time(lambda: house.web.counters["books"].open == 0)


async def test_leaving_the_block_cancels(house: House) -> None:
    house.web.behave("books", HANGS)
    async with connect_async(house.url) as client:
        async with client.query(BOOKS) as query:
            await in_time(lambda: house.web.counters["books"].open > 0)
        assert (await query.status())["status"] == "cancelled"
    await in_time(lambda: house.web.counters["books"].open == 0)


async def test_closing_the_client_cancels_what_it_started(house: House) -> None:
    house.web.behave("books", HANGS)
    async with connect_async(house.url) as client:
        query = await client.query(BOOKS)
        kept = await client.query("SELECT title FROM books", on_disconnect="keep")
    async with connect_async(house.url) as other:
        assert (await other.attach(query.id).status())["status"] == "cancelled"
        attached = other.attach(kept.id)
        assert (await attached.status())["status"] == "running"
        await attached.cancel()
    with pytest.raises(Closed):
        await query.status()


async def test_somebody_who_is_cancelled_while_asking_leaves_nothing_behind(house: House) -> None:
    house.web.behave("books", HANGS)
    async with connect_async(house.url) as client:
        asking = client.query(BOOKS)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await asking
    async with connect_async(house.url) as other:
        statuses = [q["status"] async for q in other.queries()]
    assert set(statuses) <= {"cancelled"}


async def test_what_a_block_raises_is_raised_as_it_is(calm: House) -> None:
    async def fails() -> None:
        async with connect_async(calm.url) as client:
            await client.query(BOOKS)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fails()


async def test_what_can_be_asked(calm: House, client: AsyncClient) -> None:
    relations = await client.relations()
    assert {r["name"] for r in relations} == set(calm.web.catalog.relations)
    assert await client.relation("books") in relations
    with pytest.raises(errors.NotFound):
        await client.relation("bucks")
    sources = await client.sources()
    assert (await client.source(sources[0]["name"]))["name"] == sources[0]["name"]
    await client.query(BOOKS).arrow()
    assert any(held["relation"] == "books" for held in (await client.cache())["relations"])
    assert (await client.explain(BOOKS))["answerable"]
    assert "live" in await (await client.query(BOOKS)).explain()
    await client.ready()


async def test_saved_queries(client: AsyncClient) -> None:
    await client.save(
        "after-1990", "SELECT isbn FROM books WHERE year > $year", {"year": 1990}, goal="first_rows"
    )
    assert [q["name"] for q in await client.saved()] == ["after-1990"]
    assert (await client.saved_query("after-1990"))["request"]["goal"] == "first_rows"
    some = await client.run("after-1990").arrow()
    more = await client.run("after-1990", {"year": 1900}).arrow()
    assert some.num_rows < more.num_rows
    await client.forget("after-1990")
    assert await client.saved() == []


async def test_the_history_page_by_page(house: House) -> None:
    async with connect_async(house.url) as client:
        ids = [(await client.query(f"SELECT {n} AS n")).id for n in range(5)]
        for id_ in ids:
            await client.attach(id_).arrow()
        assert [q["id"] async for q in client.queries()] == ids[::-1]
        assert [q["id"] async for q in client.queries(limit=2)] == ids[:-3:-1]
        assert [q async for q in client.queries(status="failed")] == []
        await client.attach(ids[0]).forget()
        assert ids[0] not in [q["id"] async for q in client.queries()]
        with pytest.raises(errors.NotFound):
            await client.attach(ids[0]).status()


async def test_a_query_that_was_not_started_has_no_id(client: AsyncClient) -> None:
    with pytest.raises(ClientError, match="await"):
        _ = client.query(BOOKS).id
    with pytest.raises(TypeError, match="gaol"):
        client.query(BOOKS, gaol="first_rows")  # type: ignore[call-arg]
