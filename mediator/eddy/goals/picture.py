"""What is known of a block's answers when nothing moves: which aliases have all that matters, what has survived their
joins, and what the others would have to be asked.

An alias is *settled* when no more rows of it can matter: its scan has ended, or every combination of what the settled
aliases have, joined, is covered. By induction over the order in which aliases settle, each answer's rows are there when
all are settled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mediator.binding.model import Provider
from mediator.eddy.asking import Asking
from mediator.eddy.feeding import constants, fed
from mediator.eddy.goals.tables import Codes, Joiner, Mask, Table, together
from mediator.eddy.run import Run
from mediator.flow.batch import Batch
from mediator.state.coverage import Known

NONE = np.zeros(0, np.int64)
_CROSSED = 1 << 18  # combinations of inputs that nothing joins: so many are looked at in one go


@dataclass(frozen=True, slots=True)
class Way:
    """One provider of an alias that is not settled, and what it would have to be asked now.

    `codes` number the bindings of the table's rows, those that are answered by -1; `count` is how many there are.
    """

    provider: Provider
    table: int  # whose rows feed it; -1 where it is constants, or where several do
    batch: Batch | None  # the rows that feed it; none for constants
    codes: NDArray[np.int64]
    count: int
    parts: tuple[
        tuple[int, Codes], ...
    ] = ()  # where several tables feed it: each, and its rows' share of a binding


@dataclass(frozen=True, slots=True)
class Seen:
    """How many different values of a table's rows found nothing in an alias, how many found something, and which."""

    missed: int
    found: int
    known: NDArray[np.int64]


class Picture:
    def __init__(self, run: Run, asking: Asking) -> None:
        self._run = run
        self._asking = asking
        self._size = len(run.aliases)
        self._joiner = Joiner(run)
        self.settled = 0
        self.tables: list[Table] = []
        self._missed: dict[
            tuple[int, int], int
        ] = {}  # values without a match, by alias and what was merged by then
        self._look()

    @property
    def open(self) -> list[int]:
        """The aliases that are not settled."""
        return [a for a in range(self._size) if not self.settled >> a & 1]

    @property
    def empty(self) -> bool:
        """Whether there can be no answer any more."""
        return any(not len(table) for table in self.tables)

    def ways(self) -> list[Way]:
        """All providers that could be asked now, of all aliases that are not settled."""
        found = []
        for alias in self.open:
            for provider in self._asking.providers[alias]:
                if not provider.depends & ~self.settled:
                    way = self._way(provider)
                    if way is not None:
                        found.append(way)
        return found

    def ties(self, alias: int, table: int) -> Codes | None:
        """What of the table's rows an alias would have to match, as numbers from 0; none if nothing ties them."""
        classes = self._joiner.shared((alias,), self.tables[table].rows)
        if not classes:
            return None
        numbered: Codes = np.unique(self._joiner.keys(self.tables[table], classes), return_inverse=True)[1]
        return numbered

    def seen(self, alias: int, table: int) -> Seen:
        """What an alias that is not settled has answered so far to values of the table's rows."""
        of = self.tables[table]
        missed = sum(n for (a, merged), n in self._missed.items() if a == alias and not merged & ~of.merged)
        ties, doubtful = self.ties(alias, table), self._doubtful(alias, of)
        if ties is None or doubtful is None:
            return Seen(missed, 0, NONE)
        found = np.unique(ties[~doubtful])
        return Seen(missed, len(found), found)

    def _look(self) -> None:
        """Join what is settled; whoever is settled by that joins too, until nobody is."""
        tables = []
        for alias in range(self._size):
            if self._complete(alias):
                self.settled |= 1 << alias
                tables.append(self._rows_of(alias))
        self.tables = together(self._joiner, tables, self._needed)
        while not self.empty and self._settle_more():
            pass

    def _settle_more(self) -> bool:
        """Take in the next alias that everything is known of, or rows fewer where lookups found nothing; whether there
        was anything to do."""
        for alias in self.open:
            for number, table in enumerate(self.tables):
                doubtful = self._doubtful(alias, table)
                if doubtful is None or not doubtful.any():
                    if doubtful is None and not self._answered(alias):
                        continue
                    self._settle(alias)
                    return True
                kept = self._matching(alias, number, ~doubtful)
                if not kept.all():
                    self.tables[number] = table.take(kept)
                    self.tables = together(self._joiner, self.tables, self._needed)
                    return True
            if self._crossed_and_answered(alias):
                self._settle(alias)
                return True
        return False

    def _settle(self, alias: int) -> None:
        self.settled |= 1 << alias
        self.tables = together(self._joiner, [*self.tables, self._rows_of(alias)], self._needed)

    def _rows_of(self, alias: int) -> Table:
        view = self._run.aliases[alias]
        return self._joiner.single(alias, view.ids(view.view.count))

    def _complete(self, alias: int) -> bool:
        """Whether the alias has all its rows without anybody's help."""
        chosen = self._asking.chosen[alias]
        if self._run.view(alias).coverage.whole:
            return True
        return not chosen.depends and (chosen.method.kind == "scan" or self._answered(alias))

    def _answered(self, alias: int) -> bool:
        """Whether the constants that could be asked for were, and nothing else is needed."""
        chosen, coverage = self._asking.chosen[alias], self._run.view(alias).coverage
        ended = (Known.COMPLETE, Known.FAILED)
        return any(
            coverage.known(p.bind_set, constants(p)) in (ended if p == chosen else ended[:1])
            for p in self._asking.providers[alias]
            if not p.depends
        )

    def _doubtful(self, alias: int, table: Table) -> Mask | None:
        """Which of the table's rows may have matches that were not asked for; none where rows cannot tell."""
        if not any(p.depends and not p.depends & ~table.kept for p in self._asking.providers[alias]):
            return None
        found = self._asking.uncovered(table.batch(self._size), alias)
        return np.zeros(len(table), np.bool_) if found is None else found

    def _matching(self, alias: int, number: int, known: Mask) -> Mask:
        """The table's rows less those that are known to have no match in the alias."""
        table, keep = self.tables[number], np.ones(len(self.tables[number]), np.bool_)
        ties = self.ties(alias, number)
        if not known.any() or ties is None:
            return keep
        rows = self._rows_of(alias)
        for other in self.tables:
            if other is not table and self._joiner.shared(other.rows, rows.rows):
                rows = rows.take(self._joiner.met(rows, other))
        met = self._joiner.met(table, rows)
        keep[known & ~met] = False
        missed = len(np.unique(ties[known & ~met]))
        if missed:
            self._missed[alias, table.merged] = self._missed.get((alias, table.merged), 0) + missed
        return keep

    def _way(self, provider: Provider) -> Way | None:
        """What this provider would be asked; none where it is no help, as it has failed for some of it."""
        alias, coverage = provider.alias, self._run.view(provider.alias).coverage
        if not provider.depends:
            unknown = coverage.known(provider.bind_set, constants(provider)) == Known.NOTHING
            index = provider.method.kind == "index"
            return Way(provider, -1, None, NONE, 1) if unknown and index else None
        feeding = [n for n, t in enumerate(self.tables) if t.kept & provider.depends]
        batch = self._crossed(provider) if len(feeding) > 1 else self.tables[feeding[0]].batch(self._size)
        if provider.depends & ~batch.signature.spanned:
            return None
        doubtful = self._asking.uncovered(batch, alias)
        if doubtful is None:
            return None
        keys = fed(self._run, batch, provider)
        states = coverage.states(provider.bind_set, keys)
        if (doubtful & (states != Known.NOTHING)).any():
            return None
        numbered = np.full(len(batch), -1, np.int64)
        distinct, numbers = np.unique(keys.codes()[doubtful], return_inverse=True)
        numbered[doubtful] = numbers
        if len(feeding) == 1:
            return Way(provider, feeding[0], batch, numbered, len(distinct))
        parts = tuple((n, self._share(provider, n)) for n in feeding)
        return Way(provider, -1, batch, numbered, len(distinct), parts)

    def _share(self, provider: Provider, number: int) -> Codes:
        """Of each of the table's rows, which of the values it feeds the provider with, as numbers."""
        table = self.tables[number]
        classes = [
            equal
            for equal in self._joiner.classes
            if any(
                i.column in equal.columns and i.column.alias in table.rows
                for i in provider.inputs
                if i.column
            )
        ]
        numbered: Codes = np.unique(self._joiner.keys(table, classes), return_inverse=True)[1]
        return numbered

    def _crossed_and_answered(self, alias: int) -> bool:
        """Whether every combination of what several tables feed a provider is covered."""
        for provider in self._asking.providers[alias]:
            feeding = [t for t in self.tables if t.kept & provider.depends]
            if len(feeding) > 1 and not provider.depends & ~self.settled:
                batch = self._crossed(provider)
                if not provider.depends & ~batch.signature.spanned:
                    doubtful = self._asking.uncovered(batch, alias)
                    if doubtful is None and self._all_crossed(provider):
                        return True
        return False

    def _all_crossed(self, provider: Provider) -> bool:
        return int(np.prod([float(len(t)) for t in self._inputs(provider)])) <= _CROSSED

    def _inputs(self, provider: Provider) -> list[Table]:
        """Per table that feeds it, the rows of the aliases whose columns do."""
        depends = [a for a in range(self._size) if provider.depends >> a & 1]
        return [self._joiner.projected(t, depends) for t in self.tables if t.kept & provider.depends]

    def _crossed(self, provider: Provider) -> Batch:
        """Combinations of rows that nothing joins, as many as are looked at in one go."""
        both: Table | None = None
        for table in self._inputs(provider):
            if both is None:
                both = table
                continue
            n, m = len(both), len(table)
            pairs = np.arange(min(n * m, _CROSSED))
            rows = {a: ids[pairs // m] for a, ids in both.rows.items()}
            rows |= {a: ids[pairs % m] for a, ids in table.rows.items()}
            both = Table(rows, both.merged | table.merged)
        assert both is not None
        return both.batch(self._size)

    def _needed(self, table: Table) -> set[int]:
        """The aliases of a table whose rows somebody outside it still needs."""
        outside = [a for a in range(self._size) if not table.merged >> a & 1]
        needed = set(self._fed_from(outside))
        for predicate in self._run.block.predicates:
            if predicate.aliases & table.merged and predicate.aliases & ~table.merged:
                needed |= {a for a in table.rows if predicate.aliases >> a & 1}
        for equal in self._joiner.shared(table.rows, outside):
            own = [c.alias for c in equal.columns if c.alias in table.rows]
            if not needed.intersection(own):
                needed.add(own[0])
        return needed

    def _fed_from(self, aliases: list[int]) -> Iterator[int]:
        for alias in aliases:
            if not self.settled >> alias & 1:
                for provider in self._asking.providers[alias]:
                    yield from (a for a in range(self._size) if provider.depends >> a & 1)
