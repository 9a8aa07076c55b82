"""How a query would run on Spark, in words and as data: its cells, what goes to them, what is made of their answers.

Nothing of it needs Spark, and nothing is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod

from mediator.binding.advice import called
from mediator.binding.counting import Counting
from mediator.binding.rates import Ground
from mediator.engines import Explained, Understood
from mediator.query.model import Block, SqlStage
from pipeline.cells.hypercube import ROW, Dimension, Hypercube
from pipeline.cells.shares import fullness
from pipeline.cells.wings import Winged
from pipeline.errors import NoSpark
from pipeline.java import find_java
from pipeline.spread.above import in_one_process, objection
from pipeline.spread.plan import Plan
from pipeline.spread.skew import Sample, heavy, named

_INDENT = "  "
_WHOLE = ", and no relation stands here once, whose rows could be dealt out"
_HEAD = "Here or on Spark"


@dataclass(frozen=True, slots=True)
class Along:
    """A dimension: columns that are equal in every answer, or a relation whose rows are dealt out one by one."""

    columns: tuple[str, ...]
    dealt: str | None
    share: int

    @property
    def line(self) -> str:
        if self.dealt is not None:
            return f"the rows of {self.dealt} are dealt out to {self.share:,}"
        equal = " = ".join(self.columns)
        return f"cut by {equal} into {self.share:,}" if self.share > 1 else f"not cut by {equal}"


@dataclass(frozen=True, slots=True)
class Cube:
    """Cells that are cut alike. `rows` are those of a cell, as expected; `copies` says of each alias to how many of
    these cells a row goes."""

    cells: int
    rows: float
    along: tuple[Along, ...]
    copies: Mapping[str, int]

    @property
    def by_values(self) -> bool:
        """Whether one of them may get more than its share, as all rows of a value go to it."""
        return any(along.share > 1 and along.dealt is None for along in self.along)

    @property
    def line(self) -> str:
        each = " in each" if self.cells > 1 else ""
        return f"{_many(self.cells, 'cell')}, {_rows(self.rows)}{each}"


@dataclass(frozen=True, slots=True)
class Wing:
    """The cells of a value, and what part of the rows it stands in."""

    column: str
    value: str
    part: float
    cube: Cube


@dataclass(frozen=True, slots=True)
class Reads:
    """What a block's alias brings, and what that number rests on."""

    alias: str
    relation: str
    rows: float
    ground: str


@dataclass(frozen=True, slots=True)
class Cells:
    """Of one block."""

    stage: str
    main: Cube
    wings: tuple[Wing, ...]
    reads: tuple[Reads, ...]


@dataclass(frozen=True, slots=True)
class Made:
    """A stage above the cells: who makes it, and why not Spark."""

    stage: str
    by: str  # cells, caller, spark or duckdb
    why: str
    line: str


def explained(query: Understood, plan: Plan, sample: Sample) -> Explained:
    """`sample` is what heavy values were looked for in, besides the profile."""
    blocks = [_cells(plan, name, _grounds(query, plan, name), sample) for name in plan.cubes]
    above = [_made(plan, stage) for stage in plan.query.stages if isinstance(stage, SqlStage)]
    data = {
        "engine": "spark",
        "slots": plan.slots,
        "askers": plan.askers,
        "anew": not plan.fixed,
        "blocks": [asdict(block) for block in blocks],
        "above": [asdict(made) for made in above],
    }
    return Explained(tuple(_lines(plan, blocks, above)), data, tuple(_lacking()))


def may_move(size: float, room: int, found_again: bool, there: Explained) -> Explained:
    """`auto`: `size` are the bytes that its relations take at least, `room` those that it may take here."""
    begins = "here" if size <= room else "spark"
    known = f"its relations take {_mega(size)} at least, by what is known, and it may take {_mega(room)} here (memory)"
    if begins == "spark":
        lines = [f"on Spark from the beginning: {known}"]
    else:
        unless = "" if found_again else ", unless a row was given by then: it might not be found again"
        lines = [
            f"here at first: {known}",
            f"moves to Spark when what it holds takes more than that{unless}",
            "is laid out then by what it holds, and by what is known now as follows",
        ]
    data = {
        **there.data,
        "auto": {"begins": begins, "expected": size, "memory": room, "moves": begins == "here"},
    }
    return Explained((_HEAD, *(_INDENT + line for line in lines), *there.lines), data, there.warnings)


def stays(size: float, room: int, why: str) -> Explained:
    """`auto`, where Spark cannot be used."""
    data = {"engine": "local", "auto": {"begins": "here", "expected": size, "memory": room, "moves": False}}
    return Explained((_HEAD, f"{_INDENT}here, however large it grows: Spark cannot be used"), data, (why,))


# What there is.


def _grounds(query: Understood, plan: Plan, name: str) -> Mapping[int, Ground]:
    counting = Counting(plan.cubes[name].block, plan.verdicts[name], query.known)
    counting.count()
    return counting.grounds


def _cells(plan: Plan, name: str, grounds: Mapping[int, Ground], sample: Sample) -> Cells:
    cube, sizes = plan.cubes[name], plan.sizes[name]
    reads = [
        Reads(called(alias), alias.relation.name, rows, grounds.get(alias.number, Ground.KNOWN).name.lower())
        for alias, rows in zip(cube.block.aliases, sizes, strict=True)
    ]
    if not isinstance(cube, Winged):
        return Cells(name, _cube(cube, sizes), (), tuple(reads))
    there = cube.main.dimensions[cube.dimension].fields
    parts = heavy(cube.main, sizes, sample, plan.profile)[cube.dimension]
    wings = tuple(
        Wing(
            _column(cube.block, *next(iter(there.items()))),
            named(cube.main, cube.dimension, value, sample, plan.profile),
            parts[value],
            _cube(wing, _within(sizes, there, parts[value])),
        )
        for value, wing in zip(cube.values, cube.wings, strict=True)
    )
    rest = max(0.0, 1.0 - sum(parts.values()))
    return Cells(name, _cube(cube.main, _within(sizes, there, rest)), wings, tuple(reads))


def _within(sizes: Sequence[float], there: Mapping[int, str], part: float) -> list[float]:
    """Rows of each alias, where only a part of those that have a dimension counts."""
    return [size * part if alias in there else size for alias, size in enumerate(sizes)]


def _cube(cube: Hypercube, sizes: Sequence[float]) -> Cube:
    dimensions = cube.dimensions
    shares = tuple(dimension.share for dimension in dimensions)
    copies = {
        alias.name: prod(d.share for d in dimensions if alias.number not in d.fields)
        for alias in cube.block.aliases
    }
    rows = fullness([d.fields for d in dimensions], shares, sizes)
    return Cube(cube.cells, rows, tuple(_along(cube.block, d) for d in dimensions), copies)


def _along(block: Block, dimension: Dimension) -> Along:
    for alias, field in dimension.fields.items():
        if field == ROW:
            return Along((), called(block.aliases[alias]), dimension.share)
    columns = tuple(_column(block, alias, field) for alias, field in dimension.fields.items())
    return Along(columns, None, dimension.share)


def _column(block: Block, alias: int, field: str) -> str:
    return f"{block.aliases[alias].name}.{field}"


def _made(plan: Plan, stage: SqlStage) -> Made:
    reads = " and ".join(stage.reads)
    if any(stage in plan.outlet(name) for name in plan.cubes):
        return Made(
            stage.name, "cells", "", f"{stage.name} is made in the cells of {reads}, as they find answers"
        )
    if stage is plan.tail:
        return Made(
            stage.name,
            "caller",
            "",
            f"{stage.name} is made of {reads} on the way to the caller, as rows come",
        )
    if not stage.reads:
        return Made(stage.name, "duckdb", "", f"{stage.name} is made in one process: it reads nothing")
    if why := objection(plan, stage):
        return Made(stage.name, "duckdb", why, in_one_process(stage, why))
    return Made(stage.name, "spark", "", f"{stage.name} is made by Spark, of all rows of {reads}")


def _lacking() -> Iterator[str]:
    """What it would need here, where no session is."""
    try:
        find_java()
    except NoSpark as error:
        yield str(error)


# In words.


def _lines(plan: Plan, blocks: Sequence[Cells], above: Sequence[Made]) -> Iterator[str]:
    yield "On Spark"
    slots, askers = _many(plan.slots, "cell"), _many(plan.askers, "task")
    yield f"{_INDENT}{slots} worked on at once (slots), {askers} to ask the sites as long as it lasts (askers)"
    if not blocks:
        yield f"{_INDENT}no relation is read: there are no cells"
    for block in blocks:
        yield from (_INDENT + line for line in _told(block))
    if any(block.main.by_values for block in blocks):
        yield _INDENT + (
            "stays as it is laid out: rows that were given might not be found again"
            if plan.fixed
            else "laid out anew in the middle should other values turn out to stand in very many rows"
        )
    yield from (_INDENT + made.line for made in above)


def _told(block: Cells) -> Iterator[str]:
    yield f"{block.stage}: {block.main.line}"
    if len(block.reads) > 1 and not any(along.columns for along in block.main.along):
        yield f"{_INDENT}no column has to be equal to another's" + ("" if block.main.along else _WHOLE)
    yield from (_INDENT + along.line for along in block.main.along)
    for alias, reads in zip(block.main.copies, block.reads, strict=True):
        copied = f", each in {block.main.copies[alias]:,} cells" if block.main.copies[alias] > 1 else ""
        yield f"{_INDENT}{reads.alias}: {_rows(reads.rows)} ({reads.ground}){copied}"
    for wing in block.wings:
        yield f"{_INDENT}a wing for {wing.column} = {wing.value}, {wing.part:.0%} of the rows: {wing.cube.line}"
        yield from (2 * _INDENT + along.line for along in wing.cube.along)
        copied = ", ".join(f"{alias} in {many:,}" for alias, many in wing.cube.copies.items() if many > 1)
        if copied:
            yield f"{2 * _INDENT}each row of {copied} cells"
    if block.main.by_values and not block.wings:
        yield f"{_INDENT}no value is known to need cells of its own"


def _rows(expected: float) -> str:
    return f"about {_many(round(float(f'{expected:.2g}')), 'row')}"


def _mega(size: float) -> str:
    return f"{size / 1e6:,.1f} MB"


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
