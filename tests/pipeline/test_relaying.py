"""A query on Spark whose cells turn out uneven is laid out anew, and its answers are those that it has anyway."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from fixtures import Web, book_trade
from fixtures.behaviour import Behaviour
from mediator.answering import Mediator, verdicts_of
from mediator.assembly import Settings
from mediator.binding.counting import Known
from mediator.engines import Job
from mediator.output.report import Report
from mediator.query.understand import understand
from pipeline.cells.wings import Winged
from pipeline.spread import engine, hosting, relaying, running
from pipeline.spread.engine import laid_out
from pipeline.spread.folder import Folder
from pipeline.spread.plan import Plan
from pipeline.spread.relaying import Balance, fullest, go_on, laid_anew, may_move
from pipeline.spread.running import SpreadAnswers
from pipeline.spread.seeding import Landed, seed
from pipeline.spread.skew import Sample
from pipeline.spread.strands import DRIVE, SEEDS, Entry, Strand, entries, total
from tests.pipeline.kit import SHARED
from tests.pipeline.test_spread import truth

# Most books are said to be of one author.
OF = "CASE WHEN b.year > 1950 THEN 1001 ELSE b.author_id END"
SQL = f"SELECT b.isbn, a.name FROM books b JOIN authors a ON a.id = {OF}"
DISTINCT = f"SELECT DISTINCT a.name, b.year FROM books b JOIN authors a ON a.id = {OF}"
TWO = f"SELECT title FROM books WHERE year < 2000 UNION ALL SELECT name FROM authors a JOIN books b ON a.id = {OF}"
on_spark = [SHARED, pytest.mark.timeout(300), pytest.mark.usefixtures("spark")]
Row = tuple[object, ...]


class Pages:
    """So many come at once, and the others long after it, or when it was laid out anew: so there is more to come."""

    def __init__(self, first: int, folder: Path) -> None:
        self._left, self._next = first, Folder(folder).next.path

    def __call__(self, random: Random) -> float:
        self._left -= 1
        return 0.0 if self._left >= 0 or self._next.exists() else 20.0


@pytest.fixture
def uneven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    """A web that a query in the folder `c` is laid out anew in the middle of."""
    monkeypatch.setattr(relaying, "FEW", 300)
    with book_trade(1_500, behaviours={"books": Behaviour(latency=Pages(12, tmp_path / "c"))}) as web:
        yield web


async def asked(web: Web, sql: str, folder: Path) -> tuple[Counter[Row], Report]:
    rows: Counter[Row] = Counter()
    async with (
        Mediator(web.catalog) as mediator,
        mediator.answering(sql, engine="spark", slots=2, checkpoint=str(folder)) as answers,
    ):
        async for batch in answers:
            rows.update(zip(*(c.to_pylist() for c in batch.columns), strict=True))
    return rows, answers.report


@pytest.mark.parametrize("apart", [False, True], ids=["here", "in a session of its own"])
class TestTheAnswers:
    pytestmark = on_spark

    async def test_are_the_same_and_are_so_when_it_goes_on_once_more(
        self, apart: bool, uneven: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if apart:
            monkeypatch.setattr(engine, "_session", lambda: None)
        rows, report = await asked(uneven, SQL, tmp_path / "c")
        true = Counter(truth(uneven, SQL))
        assert rows == true
        assert report.complete
        assert [r for r in report.remarks if r.startswith("laid out anew after 1,")]
        (first,), (last,) = (
            f.plan().cubes.values() for f in (Folder(tmp_path / "c"), Folder(tmp_path / "c").last)
        )
        assert isinstance(last, Winged)
        assert not isinstance(first, Winged)
        before = uneven.requests
        assert (await asked(uneven, SQL, tmp_path / "c"))[0] == true
        assert uneven.requests == before


class TestWhatWasGiven:
    pytestmark = on_spark

    async def test_counts_for_a_limit(self, uneven: Web, tmp_path: Path) -> None:
        true = Counter(truth(uneven, SQL))
        rows, report = await asked(uneven, f"{SQL} LIMIT 1400 OFFSET 3", tmp_path / "c")
        assert Folder(tmp_path / "c").next.begun
        assert rows.total() == 1_400
        assert not rows - true
        assert report.enough

    async def test_is_not_put_into_a_folder_again(self, uneven: Web, tmp_path: Path) -> None:
        async with (
            Mediator(uneven.catalog) as mediator,
            mediator.answering(SQL, engine="spark", slots=2, checkpoint=str(tmp_path / "c")) as answers,
        ):
            assert isinstance(answers, SpreadAnswers)
            count = await answers.into(tmp_path / "out")
        table = pq.read_table(tmp_path / "out")
        true = Counter(truth(uneven, SQL))
        assert Folder(tmp_path / "c").next.begun
        assert count == true.total()
        assert Counter(zip(*(c.to_pylist() for c in table.columns), strict=True)) == true

    @pytest.mark.parametrize("sql", [SQL, DISTINCT, TWO])
    async def test_is_not_given_again_however_often_it_is_laid_out(
        self, sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Any layout will do: other cells at every turn."""
        left = [3, 1, 4]

        def other(plan: Plan, folder: Folder, lay: relaying.Lay) -> Plan:
            found = laid_out(replace(job, settings=replace(job.settings, slots=left.pop())), lambda _: None)
            return replace(plan, cubes=found.cubes)

        def tips(self: Balance, plan: Plan, cells: Any) -> bool:
            return bool(left) and any(status["rows"] for status in cells.values())

        monkeypatch.setattr(Balance, "tips", tips)
        monkeypatch.setattr(running, "laid_anew", other)
        slow = {"books": Behaviour(latency=lambda _: 0.3)}
        with book_trade(600, behaviours=slow, book_page=40) as web:
            job = job_of(web, sql)
            rows, report = await asked(web, sql, tmp_path / "c")
            assert rows == Counter(truth(web, sql))
        assert report.complete
        assert len(left) < 3
        assert len([r for r in report.remarks if r.startswith("laid out anew")]) == 3 - len(left)


# Whether, and how.


def job_of(web: Web, sql: str = SQL, **settings: Any) -> Job:
    query = understand(sql, web.catalog)
    verdicts = verdicts_of(query, web.catalog)
    return Job(web.catalog, query, verdicts, Settings(slots=2, **settings), Known(), None, None)  # type: ignore[arg-type]


def begun(web: Web, path: Path) -> tuple[Plan, Folder, relaying.Lay]:
    """A query that knows all books, of which nobody knew how uneven they are."""
    job = job_of(web)
    plan = laid_out(job, lambda _: None)
    folder = Folder(path / "c")
    folder.begin(plan)
    pq.write_table(web.tables["books"], path / "books.parquet", row_group_size=500)
    seed(plan, folder, [Landed("books", "scan", (), (), (str(path / "books.parquet"),))])

    def lay(sample: Sample, told: Any) -> Plan:
        return laid_out(job, sample, None, told)

    return plan, folder, lay


def test_heavy_values_are_found_in_the_log(tmp_path: Path) -> None:
    with book_trade(1_500) as web:
        plan, folder, lay = begun(web, tmp_path)
        found = laid_anew(plan, folder, lay)
        assert found is not None
        assert found.id == plan.id
        (cube,) = found.cubes.values()
        assert isinstance(cube, Winged)
        assert len(cube.values) == 1
        assert laid_anew(found, folder, lay) is None, "they have their cells already"


def test_where_none_are_it_stays(tmp_path: Path) -> None:
    with book_trade(1_500) as web:
        plan, folder, _ = begun(web, tmp_path)
        even = job_of(web, SQL.replace(OF, "b.author_id"))
        assert laid_anew(plan, folder, lambda sample, told: laid_out(even, sample, None, told)) is None


def test_what_sites_answered_goes_along_and_what_the_drive_wrote_does_not(tmp_path: Path) -> None:
    with book_trade(1_500) as web:
        plan, folder, lay = begun(web, tmp_path)
        found = laid_anew(plan, folder, lay)
    assert found is not None
    drive, asker = Strand(folder.strand(DRIVE)), Strand(folder.strand("asker-0000"), {"books": {"asked": 7}})
    for strand in (drive, asker):
        strand.write([Entry(b"", (0, 1))])
        strand.close()
    (folder.path / ".next" / "log" / SEEDS).mkdir(parents=True)  # of somebody who was killed
    assert folder.last.path == folder.path
    there = go_on(folder, found)
    assert Folder(folder.path).last.path == there.path
    assert there.plan().cubes.keys() == found.cubes.keys()
    assert [*entries(there.strand(SEEDS))] == [*entries(folder.strand(SEEDS))]
    assert not there.strand(DRIVE).exists()
    assert total([there.strand("asker-0000")]) == {"books": {"asked": 7}}


def test_cells_of_a_layout_that_was_left_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, here = tmp_path / "left", tmp_path / "left" / "next"
    here.mkdir(parents=True)
    live: dict[tuple[Path, int], Any] = {(left, 0): None, (here, 0): None, (tmp_path / "gone", 0): None}
    monkeypatch.setattr(hosting, "_LIVE", live)
    hosting._forget(here)
    assert list(live) == [(here, 0)]


def test_it_is_looked_at_when_there_is_enough_and_again_when_there_is_much_more() -> None:
    plan: Any = SimpleNamespace(slots=2, cells=(("block", 0), ("block", 1), ("block", 2)))

    def told(*rows: int, finished: bool = False) -> dict[int, dict[str, Any]]:
        return {number: {"rows": n, "finished": finished} for number, n in enumerate(rows)}

    balance = Balance(1_000)
    assert fullest(plan, told(600, 100, 200)) == pytest.approx(16 / 9)
    assert not balance.tips(plan, told(600, 100, 200))
    assert not balance.tips(plan, told(500, 500, 100))
    assert not balance.tips(plan, told(900, 100, 200, finished=True))
    assert balance.tips(plan, told(900, 100)), "one of them was told nothing"
    assert not balance.tips(plan, told(3_000, 100, 200))
    assert balance.tips(plan, told(4_000, 100, 200))


@pytest.mark.parametrize(
    ("sql", "settings", "may"),
    [
        (SQL, {}, True),
        (f"{SQL} LIMIT 7", {}, True),
        (f"SELECT x.isbn FROM ({SQL} LIMIT 7) x", {}, False),
        (SQL.replace("a.name", "random()"), {}, False),
        (SQL, {"max_calls": 100}, False),
        (SQL, {"per_source": {"catalogue": {"max_calls": 3}}}, False),
        (
            "WITH t AS (SELECT author_id, max(year) AS y FROM books GROUP BY 1) "
            "SELECT a.name, t.y FROM t JOIN authors a ON a.id = t.author_id",
            {},
            False,
        ),
    ],
)
def test_only_where_the_same_answers_are_found_again_for_nothing(
    calm: Web, sql: str, settings: dict[str, Any], may: bool
) -> None:
    assert may_move(job_of(calm, sql, **settings)) is may
