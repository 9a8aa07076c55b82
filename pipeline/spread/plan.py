"""What is done where: the same for every process that has a part in it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from mediator.assembly import Settings
from mediator.binding.model import Verdict
from mediator.catalog.model import Catalog, Relation
from mediator.catalog.profile import NO_PROFILE, Profile
from mediator.query.model import Alias, BlockStage, Query, SqlStage
from pipeline.cells.hypercube import Hypercube, hypercube
from pipeline.cells.wings import Winged, winged
from pipeline.spread.dealing import Dealing, dealt

Size = Callable[[str, Alias], float]
Cube = Hypercube | Winged
Heavy = Callable[[Hypercube, Sequence[float]], Mapping[int, Mapping[int, float]]]


@dataclass(frozen=True)
class Plan:
    """`slots` is how many cells are worked on at once, each by a worker process that keeps to its own.

    A query may be laid out more than once: `layout` says which time this is, `start` is the number of its first cell,
    `why` what was wrong with the one before. Cells of another layout have other numbers.
    """

    catalog: Catalog
    query: Query
    verdicts: Mapping[str, Verdict]
    cubes: Mapping[str, Cube]  # by the name of the block's stage
    settings: Settings
    slots: int
    askers: int
    workers: int = 1  # that share a machine, and its memory
    sizes: Mapping[str, tuple[float, ...]] = field(
        default_factory=dict
    )  # rows of each block's aliases, as expected
    profile: Profile = NO_PROFILE
    fixed: bool = False  # whether it is to stay as it is laid out
    layout: int = 0
    start: int = 0
    why: str = ""
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    @cached_property
    def cells(self) -> Mapping[int, tuple[str, int]]:
        """The stage and the place in its cube of each cell, by its number."""
        places = ((name, place) for name, cube in self.cubes.items() for place in range(cube.cells))
        return dict(enumerate(places, self.start))

    @cached_property
    def first(self) -> Mapping[str, int]:
        """The number of the first cell of each block."""
        found, at = {}, self.start
        for name, cube in self.cubes.items():
            found[name] = at
            at += cube.cells
        return found

    def cells_of(self, name: str) -> range:
        """Of a block."""
        return range(self.first[name], self.first[name] + self.cubes[name].cells)

    @cached_property
    def relations(self) -> Mapping[str, Relation]:
        """All that blocks read, also what earlier stages give."""
        return {a.relation.name: a.relation for cube in self.cubes.values() for a in cube.block.aliases}

    @cached_property
    def dealing(self) -> Dealing:
        """Which asker asks what."""
        return dealt(self.catalog, self.relations.values(), self.settings, self.askers)

    def readers(self, relation: str) -> list[str]:
        """The blocks that a relation stands in."""
        return [
            name
            for name, cube in self.cubes.items()
            if any(a.relation.name == relation for a in cube.block.aliases)
        ]

    @cached_property
    def stages(self) -> Mapping[str, BlockStage | SqlStage]:
        return {stage.name: stage for stage in self.query.stages}

    def outlet(self, name: str) -> tuple[SqlStage, ...]:
        """What is made of a block's answers, batch by batch, where they are found: one stage after another."""
        found: list[SqlStage] = []
        while (stage := self._goes_on(name)) is not None:
            found.append(stage)
            name = stage.name
        return tuple(found)

    def gives(self, name: str) -> str:
        """The stage whose rows a block gives, after its outlet."""
        outlet = self.outlet(name)
        return outlet[-1].name if outlet else name

    @cached_property
    def above(self) -> tuple[SqlStage, ...]:
        """Stages that need all rows of what they read, in their order."""
        within = {stage.name for name in self.cubes for stage in self.outlet(name)}
        tail = self.tail
        return tuple(
            stage
            for stage in self.query.stages
            if isinstance(stage, SqlStage) and stage.name not in within and stage is not tail
        )

    @property
    def tail(self) -> SqlStage | None:
        """The last stage, where whoever gets the answers does it on the way: LIMIT, DISTINCT, rows as they come."""
        last = self.query.stages[-1]
        if not isinstance(last, SqlStage) or not last.rowwise or not last.reads:
            return None
        within = any(last in self.outlet(name) for name in self.cubes)
        return None if within else last

    @property
    def results(self) -> tuple[str, ...]:
        """The stages whose rows are the answer, or what the tail makes it of."""
        return self.tail.reads if self.tail is not None else (self.query.stages[-1].name,)

    def _goes_on(self, name: str) -> SqlStage | None:
        """A stage that reads this one, and nobody else does, and that needs no more than a batch of it."""
        if self.readers(name):
            return None
        reading = [s for s in self.query.stages if isinstance(s, SqlStage) and name in s.reads]
        if len(reading) != 1:
            return None
        (stage,) = reading
        plain = stage.limit is None and not stage.offset and not stage.distinct
        alone = len(stage.reads) == 1 or self._joins_blocks(stage)
        return stage if stage.rowwise and plain and alone else None

    def _joins_blocks(self, stage: SqlStage) -> bool:
        """UNION ALL, of nothing that comes all at once."""
        return not stage.sql and all(isinstance(self.stages[name], BlockStage) for name in stage.reads)


def planned(
    catalog: Catalog,
    query: Query,
    verdicts: Mapping[str, Verdict],
    settings: Settings,
    size: Size,
    *,
    slots: int,
    askers: int,
    workers: int = 1,
    cells: int | None = None,
    heavy: Heavy = lambda _cube, _sizes: {},
    profile: Profile = NO_PROFILE,
    fixed: bool = False,
) -> Plan:
    """`size` is how many rows an alias of a stage may have, `heavy` finds values that need cells of their own. `cells`
    are those of each block, at most; wings come on top."""
    cubes: dict[str, Cube] = {}
    expected: dict[str, tuple[float, ...]] = {}
    for stage in query.stages:
        if isinstance(stage, BlockStage):
            sizes = expected[stage.name] = tuple(size(stage.name, alias) for alias in stage.block.aliases)
            cube = hypercube(stage.block, sizes, cells or slots)
            cubes[stage.name] = winged(cube, sizes, heavy(cube, sizes))
    # What is fresh is decided before anything is given to the cells; how they route is their own.
    settings = replace(settings, partials=False)
    catalog = replace(catalog, functions=())  # which no query here calls, and nobody can take along
    return Plan(catalog, query, verdicts, cubes, settings, slots, askers, workers, expected, profile, fixed)
