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
from pipeline.cells.envelopes import Lookup, Over
from pipeline.cells.packing import packed
from pipeline.cells.wings import Winged
from pipeline.spread import drive, driving, engine, hosting, relaying
from pipeline.spread.cutting import bundled
from pipeline.spread.engine import laid_out
from pipeline.spread.folder import Folder
from pipeline.spread.given import File, Given, Giving, given
from pipeline.spread.plan import Plan
from pipeline.spread.relaying import Balance, fullest, laid_anew, rows_of
from pipeline.spread.running import SpreadAnswers
from pipeline.spread.seeding import Landed, seed
from pipeline.spread.strands import DRIVE, Entry, Strand, entries
from tests.pipeline import uneven_child
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
    """They take their time until it is laid out anew, so that there is more to come then."""

    def __init__(self, folder: Path) -> None:
        self._again = folder / "plan-1.pickle"

    def __call__(self, random: Random) -> float:
        return 0.0 if self._again.exists() else 0.2


@pytest.fixture
def uneven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    """A web that a query in the folder `c` is laid out anew in the middle of."""
    monkeypatch.setattr(relaying, "FEW", uneven_child.FEW)
    pages = Behaviour(latency=Pages(tmp_path / "c"), concurrency=1)
    with book_trade(1_500, behaviours={"books": pages}, book_page=25) as web:
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
            monkeypatch.setattr(driving, "CHILD", uneven_child.__name__)
        rows, report = await asked(uneven, SQL, tmp_path / "c")
        true = Counter(truth(uneven, SQL))
        assert rows == true
        assert report.complete
        assert [r for r in report.remarks if r.startswith("laid out anew after ")]
        (first,), (last,) = (Folder(tmp_path / "c").plan(layout=n).cubes.values() for n in (0, 1))
        assert isinstance(last, Winged)
        assert not isinstance(first, Winged)
        before = uneven.requests
        authors = {author for (author,) in truth(uneven, f"SELECT {OF} FROM books b")} - {None}
        assert before == 60 + len(authors), "each thing was asked once"
        assert await asked(uneven, SQL, tmp_path / "c") == (true, report)
        assert uneven.requests == before


class TestWhatWasGiven:
    pytestmark = on_spark

    async def test_counts_for_a_limit(self, uneven: Web, tmp_path: Path) -> None:
        true = Counter(truth(uneven, SQL))
        rows, report = await asked(uneven, f"{SQL} LIMIT 1400 OFFSET 3", tmp_path / "c")
        assert Folder(tmp_path / "c").plan().layout == 1
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
        assert Folder(tmp_path / "c").plan().layout == 1
        assert count == true.total()
        assert Counter(zip(*(c.to_pylist() for c in table.columns), strict=True)) == true

    @pytest.mark.parametrize("sql", [SQL, DISTINCT, TWO])
    async def test_is_not_given_again_however_often_it_is_laid_out(
        self, sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Any layout will do: other cells at every turn."""
        left = [3, 1, 4]

        def other(plan: Plan, folder: Folder, cells: Any) -> Plan:
            found = laid_out(job_of(web, sql, slots=left.pop()), {})
            numbers = {"layout": plan.layout + 1, "start": plan.start + len(plan.cells)}
            return replace(plan, cubes=found.cubes, why="laid out anew", **numbers)

        def tips(self: Balance, plan: Plan, cells: Any) -> bool:
            return bool(left) and bool(rows_of(cells))

        monkeypatch.setattr(Balance, "tips", tips)
        monkeypatch.setattr(drive, "laid_anew", other)
        slow = {"books": Behaviour(latency=lambda _: 0.3)}
        with book_trade(600, behaviours=slow, book_page=40) as web:
            rows, report = await asked(web, sql, tmp_path / "c")
            assert rows == Counter(truth(web, sql))
        assert report.complete
        assert len(left) < 3
        assert len([r for r in report.remarks if r.startswith("laid out anew")]) == 3 - len(left)


# Whether, and how.


def job_of(web: Web, sql: str = SQL, **settings: Any) -> Job:
    query = understand(sql, web.catalog)
    verdicts = verdicts_of(query, web.catalog)
    return Job(web.catalog, query, verdicts, Settings(**{"slots": 2} | settings), Known(), None, None)  # type: ignore[arg-type]


def begun(web: Web, path: Path, sql: str = SQL) -> tuple[Plan, Folder]:
    """A query that knows all books, of which nobody knew how uneven they are."""
    plan = laid_out(job_of(web, sql), {})
    folder = Folder(path / "c")
    folder.begin(plan)
    pq.write_table(web.tables["books"], path / "books.parquet", row_group_size=500)
    seed(plan, folder, [Landed("books", "scan", (), (), (str(path / "books.parquet"),))])
    return plan, folder


def test_heavy_values_are_found_in_the_log(tmp_path: Path) -> None:
    with book_trade(1_500) as web:
        plan, folder = begun(web, tmp_path)
        found = laid_anew(plan, folder, {0: {"rows": 1_234}})
        assert found is not None
        (cube,) = found.cubes.values()
        assert isinstance(cube, Winged)
        assert len(cube.values) == 1
        assert found.why == "laid out anew after 1,234 rows: a value stands in very many of them"
        assert (found.id, found.layout, found.sizes["block"][0]) == (plan.id, 1, 1_500)
        assert not found.cells.keys() & plan.cells.keys()
        assert found.first["block"] == min(found.cells) == len(plan.cells)
        assert laid_anew(found, folder, {}) is None, "they have their cells already"
        folder.lay(found)
        assert Folder(folder.path).plan().cells == found.cells
        assert folder.plan(layout=0).cells == plan.cells


def test_where_none_are_it_stays(tmp_path: Path) -> None:
    with book_trade(1_500) as web:
        assert laid_anew(*begun(web, tmp_path, SQL.replace(OF, "b.author_id")), {}) is None


def test_one_that_was_killed_before_the_new_cells_began_begins_them(tmp_path: Path) -> None:
    with book_trade(1_500) as web:
        plan, folder = begun(web, tmp_path)
        found = laid_anew(plan, folder, {})
    assert found is not None
    for one in (plan, found, found):
        made = drive.Drive(SimpleNamespace(sparkContext=None), folder, one)  # type: ignore[arg-type]
        made._strand = Strand(folder.strand(DRIVE))
        made._begin()
        made._strand.close()
    begins = [tuple(entry.cells or ()) for entry in entries(folder.strand(DRIVE))]
    assert begins == [tuple(plan.cells), tuple(found.cells)]


def test_a_micro_batch_that_was_under_way_gives_nothing_more(tmp_path: Path) -> None:
    with book_trade(1_500) as web:
        plan, folder = begun(web, tmp_path)
        found = laid_anew(plan, folder, {})
    assert found is not None
    made = drive.Drive(SimpleNamespace(sparkContext=None), folder, plan)  # type: ignore[arg-type]
    made._strand = Strand(folder.strand(DRIVE))
    row = SimpleNamespace(stage="block", file="f", rows=3, cell=0, asks=b"", status='{"finished": true}')
    came: Any = SimpleNamespace(collect=lambda: [row])
    made._batch(0, came, 0)
    made._go_on_by(found)
    made._batch(0, came, 1)
    made._batch(1, came, 0)
    made._strand.close()
    assert [(one.layout, one.batch) for one in given(folder.given)] == [(0, 0), (1, 0)]


def test_envelopes_for_cells_of_another_layout_are_for_nobody(tmp_path: Path) -> None:
    with book_trade(1_500) as web:
        plan, folder = begun(web, tmp_path)
        found = laid_anew(plan, folder, {})
    assert found is not None
    over = packed(Over(Lookup("books", "scan", (), ()), 0.0, 1.0, ()), plan.relations)
    both = (min(plan.cells), min(found.cells))
    for one, (here, _) in ((plan, both), (found, both[::-1])):
        for envelope in (b"", over):
            assert list(bundled(one, [Entry(envelope, both)])) == [here]


def test_what_one_layout_gave_counts_for_another_only_where_it_ends_early(tmp_path: Path) -> None:
    first = Giving(tmp_path)
    files = (File("block", "a", 10), File("other", "b", 1))
    assert first.give(Given(0, files, {0: {"finished": True}}, ("block",)))
    second = Giving(tmp_path, 1)
    assert (second.ended, second.cells, second.files(["block"])) == (set(), {}, [])
    assert second.most(["block"]) == [files[0]]
    assert second.give(Given(0, (File("block", "c", 7),))), "its micro-batches have numbers of their own"
    assert not second.give(Given(0, ()))
    assert second.most(["block"]) == [files[0]]
    assert second.give(Given(1, (File("block", "d", 7),)))
    assert [file.path for file in second.most(["block"])] == ["c", "d"]
    assert [one.layout for one in given(tmp_path)] == [0, 1, 1]


def test_cells_of_another_layout_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there, gone = tmp_path / "here", tmp_path / "there", tmp_path / "gone"
    here.mkdir()
    there.mkdir()
    live: dict[tuple[Path, int], Any] = {(here, 0): None, (here, 2): None, (there, 0): None, (gone, 2): None}
    monkeypatch.setattr(hosting, "_LIVE", live)
    hosting._forget(here, SimpleNamespace(cells={2: ("block", 0)}))  # type: ignore[arg-type]
    assert list(live) == [(here, 2), (there, 0)]


def test_it_is_looked_at_when_there_is_enough_and_again_when_there_is_much_more() -> None:
    plan: Any = SimpleNamespace(slots=2, cells=dict.fromkeys(range(3)), fixed=False)

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
    plan.fixed = True
    assert not balance.tips(plan, told(400_000, 100, 200))


@pytest.mark.parametrize(
    ("sql", "fixed"),
    [
        (SQL, False),
        (f"{SQL} LIMIT 7", False),
        (f"SELECT x.isbn FROM ({SQL} LIMIT 7) x", True),
        (SQL.replace("a.name", "random()"), True),
        (
            "WITH t AS (SELECT author_id, max(year) AS y FROM books GROUP BY 1) "
            "SELECT a.name, t.y FROM t JOIN authors a ON a.id = t.author_id",
            True,
        ),
    ],
)
def test_only_where_the_same_answers_are_found_again(calm: Web, sql: str, fixed: bool) -> None:
    assert laid_out(job_of(calm, sql), {}).fixed is fixed
    assert laid_out(job_of(calm, sql), {}, fixed=True).fixed
