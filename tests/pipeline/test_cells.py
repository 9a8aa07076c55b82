"""Cells give the same answers as one eddy, whatever arrives when, and whichever of them is made anew."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from itertools import product
from math import prod
from random import Random

import pyarrow as pa
import pytest

from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from mediator.eddy.asking import Asking
from mediator.errors import Cause
from mediator.query.model import Block, BlockStage
from mediator.query.understand import understand
from pipeline.cells.envelopes import Broken, Came, Lookup, Over
from pipeline.cells.hashing import hashed
from pipeline.cells.hypercube import Hypercube, hypercube
from pipeline.cells.packing import packed, unpacked
from pipeline.cells.shares import fullness, shares_of
from pipeline.cells.wings import Winged
from tests.any_route.drawing import Case, draw
from tests.any_route.ranges import draw_ranges
from tests.pipeline.scattered import Scattered, scattered

SEEDS = 50
# One lookup's rows, asked for by one method before a cell was made anew and by another after it, met late.
FOUND = (822,)
CELLS = (1, 2, 3, 4, 6, 8, 12)


def searched(drawn: Callable[[int], Case], seed: int) -> list[Scattered]:
    """Every statement of the case of this seed, answered by cells and compared with DuckDB."""
    case, found = drawn(seed), []
    for statement in case.statements:
        random = Random(seed)
        one = scattered(case, statement, random.choice(CELLS), random)
        if one is None:
            continue
        where = f"{drawn.__name__} {seed}, {one.cube.cells} cells: {statement}"
        assert not one.rows - one.true, f"{where}: too many"
        if not one.missing:
            assert one.rows == one.true, f"{where}: too few"
        assert not (one.missing and case.healthy), f"{where}: nothing failed"
        assert max(one.lookups.values(), default=0) <= 1, f"{where}: asked again"
        found.append(one)
    return found


@pytest.mark.parametrize("drawn", [draw, draw_ranges])
def test_cells_give_what_one_eddy_gives(drawn: Callable[[int], Case]) -> None:
    found = [one for seed in (*range(SEEDS), *FOUND) for one in searched(drawn, seed)]
    assert sum(one.rebuilt for one in found) > 10
    assert sum(one.cube.cells > 1 and len(one.answered_by) > 1 for one in found) > 10
    assert sum(one.cube.checks for one in found) > 3
    winged = [one for one in found if isinstance(one.cube, Winged)]
    assert sum(max(one.answered_by, default=0) >= one.cube.main.cells for one in winged) > 0
    assert sum(bool(one.missing) for one in found) > 1


# What each of them makes wrong, the search sees.
_MUTATIONS: dict[str, tuple[type, str, object]] = {
    "answers of other cells are given": (Hypercube, "own", lambda *a: [True] * a[-1]),
    "rows go to the first cell alone": (
        Hypercube,
        "cells_of",
        lambda s, r, rows: iter([(0, range(rows.num_rows))]),
    ),
    "what others asked for is left lying": (Asking, "take", lambda *_: None),
}


@pytest.mark.parametrize("name", _MUTATIONS)
def test_a_rule_that_is_left_out_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, what, instead = _MUTATIONS[name]
    monkeypatch.setattr(where, what, instead)
    assert any(_is_wrong(seed) for seed in range(300))


def _is_wrong(seed: int) -> bool:
    try:
        searched(draw, seed)
    except Exception:  # wrong answers, or a cell that waits for ever
        return True
    return False


def _block(sql: str, **relations: dict[str, pa.DataType]) -> Block:
    scan = AccessMethod("scan", "scan", (Mirror("site", ""),), None)
    catalog = Catalog(
        {
            name: Relation(name, tuple(Field(f, t) for f, t in fields.items()), (scan,))
            for name, fields in relations.items()
        },
        {"site": Source("site")},
    )
    (stage,) = understand(sql, catalog).stages
    assert isinstance(stage, BlockStage)
    return stage.block


INT, TEXT, SPAN = pa.int64(), pa.string(), pa.month_day_nano_interval()
WIDE = Relation(
    "wide",
    (
        Field("text", TEXT),
        Field("number", pa.float64()),
        Field("day", pa.date32()),
        Field("bytes", pa.binary()),
        Field("price", pa.decimal128(9, 2)),
    ),
    (AccessMethod("by_all", "index", (), None),),
)
CHAIN = _block(
    "SELECT r.a, t.c FROM r, s, t WHERE r.a = s.a AND s.b = t.b",
    r={"a": INT},
    s={"a": INT, "b": INT},
    t={"b": INT, "c": INT},
)


@pytest.mark.parametrize(
    ("sizes", "cells", "shares"),
    [
        ((1e6, 1e6, 1e6), 4, (2, 2)),
        ((1e6, 1e6, 10.0), 4, (4, 1)),
        ((10.0, 1e6, 1e6), 4, (1, 4)),
        ((1e6, 1e6, 1e6), 1, (1, 1)),
        ((1e9, 1e9, 1e6), 16, (16, 1)),
    ],
)
def test_shares_go_where_they_divide_most(
    sizes: tuple[float, ...], cells: int, shares: tuple[int, ...]
) -> None:
    cube = hypercube(CHAIN, sizes, cells)
    found = {tuple(sorted(d.fields)): d.share for d in cube.dimensions}
    assert (found[0, 1], found[1, 2]) == shares


def test_the_rows_of_an_answer_meet_in_one_cell() -> None:
    cube = hypercube(CHAIN, (100.0, 100.0, 100.0), 6)
    random = Random(3)
    r = pa.record_batch({"a": pa.array([random.randrange(20) for _ in range(100)])})
    s = pa.record_batch(
        {"a": pa.array([random.randrange(20) for _ in range(100)]), "b": pa.array(range(100))}
    )
    t = pa.record_batch({"b": pa.array(range(100)), "c": pa.array([None] * 100, INT)})
    placed = {
        name: {
            row: {cell for cell, places in cube.cells_of(name, rows) if row in places}
            for row in range(rows.num_rows)
        }
        for name, rows in (("r", r), ("s", s), ("t", t))
    }
    met = Counter[int]()
    for i, a in enumerate(r["a"].to_pylist()):
        for j, b in enumerate(s["a"].to_pylist()):
            if a == b:
                (cell,) = placed["r"][i] & placed["s"][j] & placed["t"][j]
                met[cell] += 1
    assert len(met) == cube.cells


def test_rows_without_a_value_go_nowhere_and_rows_that_join_with_nothing_by_value_are_dealt_out() -> None:
    cube = hypercube(CHAIN, (1.0, 1.0, 1.0), 4)
    assert list(cube.cells_of("r", pa.record_batch({"a": pa.array([None, None], INT)}))) == []
    crossed = _block("SELECT r.a, s.b FROM r, s WHERE r.a < s.b", r={"a": INT}, s={"b": INT})
    cube = hypercube(crossed, (1e6, 10.0), 4)
    rows = pa.record_batch({"a": pa.array([*range(1000), *range(1000), None])})
    placed = {cell: rows.take(pa.array(places))["a"].to_pylist() for cell, places in cube.cells_of("r", rows)}
    assert len(placed) == 4
    assert Counter(v for values in placed.values() for v in values) == Counter(rows["a"].to_pylist())
    assert all(len(values) > 300 for values in placed.values())
    assert not set(placed[0]) & set(placed[1])  # equal rows, of several replies, go to one place
    few = pa.record_batch({"b": pa.array([1, 2])})
    assert [len(places) for _, places in cube.cells_of("s", few)] == [2] * 4


def _goes(cube: Hypercube, relation: str, rows: pa.RecordBatch) -> dict[int, list[int]]:
    """By the definition, cell by cell: which rows may be in an answer there."""
    found: dict[int, list[int]] = {}
    for cell, at in enumerate(product(*(range(d.share) for d in cube.dimensions))):
        goes = set[int]()
        for alias in (a.number for a in cube.block.aliases if a.relation.name == relation):
            here = set(range(rows.num_rows))
            for wanted, dimension in zip(at, cube.dimensions, strict=True):
                along = cube._coordinates(dimension, alias, rows)
                if along is not None:
                    here &= {row for row in here if along[row] == wanted}
            goes |= here
        if goes:
            found[cell] = sorted(goes)
    return found


def test_rows_go_where_the_definition_says() -> None:
    tried = Counter[str]()
    for drawn, seed in product((draw, draw_ranges), range(SEEDS)):
        case, random = drawn(seed), Random(seed)
        for stage in understand(random.choice(case.statements), case.catalog).stages:
            if not isinstance(stage, BlockStage):
                continue
            sizes = [random.choice((1.0, 100.0, 1e6)) for _ in stage.block.aliases]
            cube = hypercube(stage.block, sizes, random.choice((1, 4, 9, 30)))
            tried["cubes"] += len(cube.dimensions) > 1 and cube.cells > 4
            names = [a.relation.name for a in stage.block.aliases]
            for name in sorted({n for n in names if n in case.tables}):
                rows = pa.RecordBatch.from_pylist(case.tables[name].to_pylist(), case.tables[name].schema)
                where = f"{drawn.__name__} {seed}: {name}, {cube.dimensions}"
                found = list(cube.cells_of(name, rows))
                assert {cell: places.tolist() for cell, places in found} == _goes(cube, name, rows), where
                assert len(found) == len({cell for cell, _ in found}), where
                tried["several aliases"] += names.count(name) > 1
                tried["copies"] += any(len(cells) > 1 for cells, _ in cube.shared(name, rows))
    assert min(tried[what] for what in ("cubes", "several aliases", "copies")) > 3, tried


def test_no_rows_go_nowhere() -> None:
    cube = hypercube(CHAIN, (1.0, 1.0, 1.0), 4)
    assert list(cube.cells_of("r", pa.record_batch({"a": pa.array([], INT)}))) == []


def test_no_cut_is_better() -> None:
    for seed in range(400):
        random = Random(seed)
        aliases, count = random.randint(2, 6), random.randint(1, 4)
        dimensions = [set(random.sample(range(aliases), random.randint(2, aliases))) for _ in range(count)]
        sizes = [random.choice((1e6, 10 ** random.uniform(0, 9))) for _ in range(aliases)]
        cells = random.choice((1, 2, 3, 5, 8, 12, 20))
        found = shares_of(dimensions, sizes, cells)
        cuts = [c for c in product(range(1, cells + 1), repeat=count) if prod(c) <= cells]
        rows, fewest = min((fullness(dimensions, cut, sizes), prod(cut)) for cut in cuts)
        where = f"{seed}: {found} of {dimensions}, {sizes}, {cells}"
        assert prod(found) <= cells, where
        assert fullness(dimensions, found, sizes) == pytest.approx(rows, rel=1e-9), where
        assert prod(found) == fewest, where


def test_what_does_not_help_is_not_cut() -> None:
    assert shares_of([{0, 1}, {2, 3}], (1e18, 1e18, 1e-9, 1e-9), 8) == (8, 1)
    assert shares_of([{0, 1}, {2, 3}], (1e18, 1e18, 1e-9, 1e-9), 7) == (7, 1)


@pytest.mark.parametrize("sizes", [[1e6] * 7, [10.0 ** (3 + n % 5) for n in range(7)]])
def test_thousands_of_cells_of_six_dimensions(sizes: list[float]) -> None:
    """The last sum of the search is the least there is: no other cut of a neighbour's is better."""
    dimensions = [{n, n + 1} for n in range(6)]
    found = shares_of(dimensions, sizes, 4_000)
    assert 2_000 < prod(found) <= 4_000
    best = fullness(dimensions, found, sizes)
    for place, other in product(range(6), repeat=2):
        for few in range(1, found[place] + 1):
            moved = list(found)
            moved[place] = few
            moved[other] = 4_000 * moved[other] // prod(moved) or 1
            if prod(moved) <= 4_000:
                assert fullness(dimensions, tuple(moved), sizes) >= best * (1 - 1e-9)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.array([1, -1, None, 2**62]), pa.array([1, -1, None, 2**62], pa.int64())),
        (pa.array([1, 7, None], pa.int8()), pa.array([1, 7, None], pa.int64())),
        (
            pa.array(["", "a", "\u00fc" * 40, None]),
            pa.array(["", "a", "\u00fc" * 40, None], pa.large_string()),
        ),
        (pa.array([0.0, float("nan"), 1.5]), pa.array([-0.0, -float("nan"), 1.5])),
        (pa.array(["x", "y", "z"]).slice(1), pa.array(["y", "z"])),
        (pa.array(["x", "y", "x"]).dictionary_encode().cast(TEXT), pa.array(["x", "y", "x"])),
        (pa.array([True, False, None]), pa.array([True, False, None])),
        (pa.array([5], pa.timestamp("us")), pa.array([5], pa.timestamp("us"))),
        (pa.array([b"a", b""], pa.binary()), pa.array([b"a", b""], pa.large_binary())),
        (
            pa.array([[9], [1, 2], None, [None]]).slice(1),
            pa.array([[1, 2], None, [None]], pa.large_list(INT)),
        ),
        (pa.array([{"a": [0.0]}, {"a": None}, None]), pa.array([{"a": [-0.0]}, {"a": None}, None])),
        (
            pa.array([[("k", 1)], None, [], [("k", None)]], pa.map_(TEXT, INT)).slice(1),
            pa.array([None, [], [("k", None)]], pa.map_(TEXT, INT)),
        ),
        (
            pa.array([[9, 9], [1, 2], None], pa.list_(INT, 2)).slice(1),
            pa.array([[1, 2], None], pa.list_(INT, 2)),
        ),
        (pa.array([(1, 2, 3), (0, 0, 1), None], SPAN).slice(1), pa.array([(0, 0, 1), None], SPAN)),
    ],
)
def test_equal_values_have_equal_numbers(left: pa.Array, right: pa.Array) -> None:
    (a, here), (b, there) = hashed(left), hashed(right)
    assert here.tolist() == there.tolist() == left.is_valid().to_pylist()
    assert a[here].tolist() == b[there].tolist()


def test_values_with_parts_are_spread() -> None:
    lists = [[], [0], [1], [0, 0], [None], [0, 1], [1, 0], None]
    numbers, _ = hashed(pa.array(lists, pa.list_(INT)))
    assert len(set(numbers[:-1].tolist())) == len(lists) - 1
    numbers, _ = hashed(pa.array([{"a": 1, "b": 2}, {"a": 2, "b": 1}, {"a": None, "b": None}]))
    assert len(set(numbers.tolist())) == 3


def test_numbers_are_the_same_in_every_process_and_spread() -> None:
    numbers, _ = hashed(pa.array([0, 1, 2, -1]))
    assert numbers.tolist() == PINNED_INTS
    numbers, _ = hashed(pa.array(["", "a", "dune"]))
    assert numbers.tolist() == PINNED_TEXTS
    many, _ = hashed(pa.array(range(100_000)))
    counts = Counter(((many >> 32) % 7).tolist())
    assert max(counts.values()) < 1.05 * min(counts.values())


PINNED_INTS = [16294208416658607535, 10451216379200822465, 10905525725756348110, 16490336266968443936]
PINNED_TEXTS = [17665956581633026203, 198367012849983736, 14738012619111729925]


def test_envelopes_are_the_same_on_the_other_side() -> None:
    relations = {"r": CHAIN.aliases[0].relation, "wide": WIDE}
    binding = ("it's [\u00fc]", 1.5, datetime.date(2020, 2, 29), b"\x00\xff", Decimal("1.50"))
    lookup, other = (
        Lookup("wide", "by_all", tuple(WIDE.schema.names), b) for b in (binding, ("", 0.0, *binding[2:]))
    )
    rows = pa.RecordBatch.from_pylist([dict(zip(WIDE.schema.names, binding, strict=True))], WIDE.schema)
    scan = Lookup("r", "scan", (), ())
    for envelope in (
        Came((lookup, other), 7, rows),
        Came((scan,), 0, pa.record_batch({"a": pa.array([1, None])})),
        Over(lookup, 1.5, float("inf"), (7, 9)),
        Over(scan, 0.0, 12.25, ()),
        Broken(other, Cause("refused", 'it says "no"')),
    ):
        assert unpacked(packed(envelope, relations), relations) == envelope


def test_large_envelopes_take_fewer_bytes_and_are_the_same_on_the_other_side() -> None:
    relations = {"r": CHAIN.aliases[0].relation}
    values = [Random(1).randrange(1000) if n % 7 else None for n in range(20_000)]
    came = Came((Lookup("r", "scan", (), ()),), 3, pa.record_batch({"a": pa.array(values, INT)}))
    content = packed(came, relations)
    assert len(content) < came.rows.nbytes / 2
    assert unpacked(content, relations) == came
