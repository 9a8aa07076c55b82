"""What is told in one strand of what lies in another: no cell hears of a lookup's end before it has its rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.streaming.datasource import ReadAllAvailable

import sources
from mediator.answering import verdicts_of
from mediator.assembly import Settings
from mediator.query.understand import understand
from pipeline.cells.cell import Cell
from pipeline.cells.envelopes import Came, Lookup, Over
from pipeline.spread.folder import Folder
from pipeline.spread.pieces import ahead_of, numbered
from pipeline.spread.plan import Plan, planned
from pipeline.spread.portion import News, Portion
from pipeline.spread.seeding import Landed, seed
from pipeline.spread.strands import SEEDS, Entry, Strand, strand_of
from pipeline.spread.stream import Pace, PieceReader

SCAN = Lookup("books", "all", (), ())
_ROWS = 6


def _plan() -> Plan:
    catalog = sources.load_book_trade("http://site.test")
    query = understand("SELECT title FROM books", catalog)
    return planned(
        catalog, query, verdicts_of(query, catalog), Settings(), lambda *_: 10.0, slots=1, askers=1
    )


def _books(plan: Plan) -> pa.Table:
    schema = plan.relations["books"].schema
    rows = [{**dict.fromkeys(schema.names), "isbn": str(n), "title": f"Book {n}"} for n in range(_ROWS)]
    return pa.Table.from_pylist(rows, schema)


def _taken(log: Path, pace: Pace) -> list[dict[str, int]]:
    """What each micro-batch has taken of each strand, until there is no more."""
    reader, found = PieceReader(log, 1, pace), [{"#epoch": 0}]
    while (offset := reader.latestOffset(found[-1], ReadAllAvailable())) != found[-1]:
        found.append(offset)
    return found


def _write(log: Path, strand: str, *entries: Entry) -> None:
    there = Strand(log / strand)
    for entry in entries:
        there.write([entry])
    there.close()


def test_a_piece_waits_for_those_that_go_before_it(tmp_path: Path) -> None:
    rows = [Entry(bytes(1_000), (0,)) for _ in range(5)]
    _write(tmp_path, "b", *rows)
    _write(tmp_path, "a", Entry(b"x", (0,)), Entry(b"x", (0,), after={"b": 4}), Entry(b"x", (0,)))
    for pace in (Pace(1, 1, 1), Pace(1_500, 1, 1_500), Pace(1 << 20, 1, 1 << 20)):
        taken = _taken(tmp_path, pace)
        assert all(offset.get("b", 0) >= 4 for offset in taken if offset.get("a", 0) > 1)
        assert {name: taken[-1][name] for name in "ab"} == {"a": 3, "b": 5}
    assert len(_taken(tmp_path, Pace(1 << 20, 1, 1 << 20))) == 2, (
        "in the same micro-batch, where there is room"
    )


def test_a_piece_that_waits_for_what_is_not_there_yet_is_not_taken(tmp_path: Path) -> None:
    _write(tmp_path, "a", Entry(b"x", (0,), after={"b": 1}))
    (tmp_path / "b").mkdir()
    assert _taken(tmp_path, Pace(1 << 20, 1, 1 << 20)) == [{"#epoch": 0}]


def test_what_was_known_is_over_when_it_has_been_read(tmp_path: Path) -> None:
    """A cell asks for it before it has read so far: what the asker says of it waits for the rows."""
    plan, folder = _plan(), Folder(tmp_path / "c")
    folder.begin(plan)
    file = tmp_path / "books.parquet"
    pq.write_table(_books(plan), file, row_group_size=1)
    seed(plan, folder, [Landed("books", "all", (), (), (str(file),))])
    portion = Portion(plan, folder, 0, lambda ask: None)
    portion.take(News([(0, SCAN)], [], []))
    portion.write(portion.due())
    portion.close()
    _, first = ahead_of(numbered(folder.strand(strand_of(0)), 0, "arrow"))
    assert first == {SEEDS: _ROWS + 1}
    for offset in _taken(folder.path / "log", Pace(1, 1, 1)):
        assert not offset.get(strand_of(0)) or offset[SEEDS] == _ROWS + 1


def test_a_cell_takes_rows_before_their_end() -> None:
    """They may have been read from another strand, after it."""
    plan = _plan()
    rows = _books(plan).to_batches()[0]
    (name,) = plan.cubes
    cell = Cell(plan.cubes[name], 0, plan.verdicts[name], plan.settings)
    assert cell.epoch([]).asks == [SCAN]
    said = cell.epoch([Over(SCAN, 0.0, float("inf"), (7,)), Came((SCAN,), 7, rows)])
    assert sum(batch.num_rows for batch in said.answers) == _ROWS
    assert cell.finished
