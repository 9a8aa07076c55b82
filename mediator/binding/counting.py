"""How many lookups, rows and requests each alias of a block will come to, before anything is asked.

What is measured goes before what is declared, and that before guesses. Selections and the order in which rows meet are
not known beforehand, so the low end of a range is what is left when they take away as much as they may, the high end
what it comes to when they take away nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import product

import pyarrow as pa

from mediator.binding.holding import Holding
from mediator.binding.model import Provider, Verdict
from mediator.binding.ranges import NONE, ONE, PART, Range
from mediator.binding.rates import (
    FEW,
    ONCE,
    SCANNED,
    Ground,
    attempts,
    mean,
    packed,
    pages,
    rows_of_lookup,
    rows_of_scan,
    total,
)
from mediator.binding.selecting import selected, selections
from mediator.catalog.bindfields import field_of
from mediator.catalog.measured import Measured
from mediator.catalog.model import Relation
from mediator.catalog.profile import NO_PROFILE, Profile
from mediator.query.model import Block, Column

_PAGES = Range(1.0, 3.0)
_PER_PAGE = 10.0  # rows of one, at least
_LEFT = 0.3  # of rows that a lookup elsewhere finds nothing for, at least
_SAMPLED = 50  # rows of a sample, below which it says nothing
_DRAWN_LOW, _DRAWN_HIGH = 0.7, 1.3  # rows that pass a selection are not drawn by lot
_COMBINED = 50_000  # bindings that are looked at one by one


@dataclass(frozen=True)
class Known:
    """All that estimates of one catalog rest on."""

    measured: Callable[[str, str], Measured] = lambda _relation, _method: Measured()
    held: Mapping[str, Holding] = field(default_factory=dict)
    given: Mapping[str, Range] = field(default_factory=dict)  # rows of earlier stages
    profile: Profile = NO_PROFILE


@dataclass(frozen=True, slots=True)
class Count:
    """What one alias comes to."""

    provider: Provider
    lookups: Range  # that are sent
    rows: Range  # that its relation gives, those included that are stored
    requests: Range
    ground: Ground
    measured: Measured
    selected: bool = False  # what feeds it is selected, and nobody knows how much of it is left


class Counting:
    """Alias by alias, each after those that feed it."""

    def __init__(self, block: Block, verdict: Verdict, known: Known) -> None:
        self._block = block
        self._verdict = verdict
        self._known = known
        self._left: dict[int, Range] = {}  # rows of each alias that pass its selections
        self._tables: dict[int, pa.Table] = {}  # the same, where they are stored
        self._grounds: dict[int, Ground] = {}
        self._selected_from: set[int] = set()  # aliases of whose rows an unknown part is selected
        self.counts: dict[int, Count] = {}

    def count(self) -> list[Count]:
        """Of every alias, in the order of the verdict."""
        for number in self._verdict.order:
            self.counts[number] = self._alias(self._verdict.chosen[number])
        return [self.counts[number] for number in self._verdict.order]

    @property
    def grounds(self) -> Mapping[int, Ground]:
        """What the number of each alias's rows rests on; that of its requests may rest on less."""
        return self._grounds

    def _alias(self, provider: Provider) -> Count:
        relation = self._block.aliases[provider.alias].relation
        holding = self._known.held.get(relation.name)
        measured = self._known.measured(relation.name, provider.method.name)
        if relation.literal is not None:
            return self._stored(
                provider, pa.Table.from_batches([relation.literal]), relation.literal.num_rows
            )
        if not provider.method.mirrors:
            rows = self._known.given.get(relation.name, SCANNED)
            self._note(provider, rows, Ground.GUESS)
            return Count(provider, NONE, rows, NONE, Ground.GUESS, measured)
        if holding is not None and holding.whole:
            return self._stored(provider, holding.rows, holding.count)
        if provider.method.kind == "scan":
            return self._scan(provider, relation, measured)
        return self._index(provider, relation, measured, holding)

    def _stored(self, provider: Provider, rows: pa.Table | None, count: int) -> Count:
        left = None if rows is None else selected(self._block, provider.alias, rows)
        if left is None:
            self._note(provider, Range.of(count), Ground.KNOWN)
        else:
            self._tables[provider.alias] = left
            self._left[provider.alias] = Range.of(left.num_rows)
            self._grounds[provider.alias] = Ground.KNOWN
        return Count(provider, NONE, Range.of(count), NONE, Ground.KNOWN, Measured())

    def _scan(self, provider: Provider, relation: Relation, measured: Measured) -> Count:
        rows, ground = rows_of_scan(relation, measured, self._known.profile)
        self._note(provider, rows, ground)
        if measured.pages.groups >= ONCE:
            first = mean(measured.pages.mean, measured.pages.spread, 1.0)
        else:
            first, ground = Range(1.0, max(1.0, rows.high / _PER_PAGE)), max(ground, Ground.DECLARED)
        requests = first * attempts(provider.method, measured, first)
        return Count(provider, ONE, rows, requests.whole(), ground, measured)

    def _index(
        self, provider: Provider, relation: Relation, measured: Measured, holding: Holding | None
    ) -> Count:
        lookups, asked_for, ground = self._lookups(provider, holding)
        each, each_ground = rows_of_lookup(provider, relation, measured, self._known.profile)
        rows = total(asked_for, each, measured if each_ground is Ground.MEASURED else None)
        ground = max(ground, each_ground)
        self._note(provider, rows, ground)
        first = packed(provider.method, measured, lookups)
        if measured.pages.groups < FEW:
            requests, ground = first * _PAGES, max(ground, Ground.DECLARED)
        else:
            requests = Range(pages(measured, first.low, -1.0), pages(measured, first.high, 1.0))
        requests = requests * attempts(provider.method, measured, requests)
        unsure = bool(self._selected_from.intersection(self._feeding(provider)))
        if unsure:
            self._selected_from.add(provider.alias)
        return Count(provider, lookups.whole(), rows, requests.whole(), ground, measured, unsure)

    def _lookups(self, provider: Provider, holding: Holding | None) -> tuple[Range, Range, Ground]:
        """Those that are sent; those and the ones that are answered already; and what that rests on."""
        share = self._survival(provider)
        ways = self._alternatives(provider)
        exact = [found for way in ways if (found := self._bindings(way)) is not None]
        if len(exact) == len(ways):
            new = [{b for b in s if not (holding and holding.covers(provider.bind_set, b))} for s in exact]
            return _any_of(new, share), _any_of(exact, share), Ground.KNOWN
        values = [self._values(way) for way in ways]
        asked_for = Range(min(v.low for v in values) * share, max(v.high for v in values))
        ground = max(self._grounds[a] for way in ways for a in self._feeding(way))
        held = len(holding.covered.get(provider.bind_set, ())) if holding else 0
        return Range(max(0.0, asked_for.low - held), asked_for.high), asked_for, ground

    def _bindings(self, provider: Provider) -> set[tuple[object, ...]] | None:
        """Exactly which they are, where all that they come from is stored."""
        columns: list[set[object]] = []
        for given in provider.inputs:
            if given.column is None:
                columns.append({given.constant})
                continue
            table = self._tables.get(given.column.alias)
            if table is None or given.column.field not in table.column_names:
                return None
            values = set(table.column(given.column.field).to_pylist())
            columns.append(values - {None})
        if math.prod(map(len, columns)) > _COMBINED:
            return None
        alike = {i.column.alias for i in provider.inputs if i.column is not None}
        if len(alike) == 1 and sum(i.column is not None for i in provider.inputs) > 1:
            return self._rows_as_bindings(provider, self._tables[alike.pop()])
        return set(product(*columns))

    def _rows_as_bindings(self, provider: Provider, table: pa.Table) -> set[tuple[object, ...]]:
        """Of one alias that gives several fields: values that stand in one row go together."""
        columns = [
            [i.constant] * table.num_rows if i.column is None else table.column(i.column.field).to_pylist()
            for i in provider.inputs
        ]
        return {row for row in zip(*columns, strict=True) if None not in row}

    def _values(self, provider: Provider) -> Range:
        """How many different bindings its inputs come to."""
        found = ONE
        for alias in self._feeding(provider):
            columns = [i.column for i in provider.inputs if i.column is not None and i.column.alias == alias]
            found = found * self._together(columns).at_most(self._left[alias])
        return found

    def _together(self, columns: Sequence[Column]) -> Range:
        """Different values that columns of one alias have together: as many as there can be, where nothing is known."""
        together = ONE
        for column in columns:
            together = together * self._distinct(column)
        known = self._known.profile.relations.get(self._block.aliases[columns[0].alias].relation.name)
        values = (
            known.distinct(*(c.field for c in columns)) if known is not None and len(columns) == 2 else None
        )
        if known is None or values is None:
            return together
        return together.at_most(_values_among(values, known.rows, self._left[columns[0].alias]))

    def _distinct(self, column: Column) -> Range:
        """Different values of a column among the rows that pass."""
        table = self._tables.get(column.alias)
        if table is not None and column.field in table.column_names:
            return Range.of(len(set(table.column(column.field).to_pylist()) - {None}))
        left = self._left[column.alias]
        known = self._known.profile.relations.get(self._block.aliases[column.alias].relation.name)
        if known is not None and (values := known.distinct(column.field)) is not None:
            return _values_among(values, known.rows, left)
        if self._block.aliases[column.alias].relation.key == (column.field,):
            return left
        return Range(min(left.low, math.sqrt(left.low)), left.high)

    def _alternatives(self, provider: Provider) -> list[Provider]:
        """The same way of asking, fed by whatever has been counted."""
        done = self._left.keys()
        return [
            p
            for p in self._verdict.providers[provider.alias]
            if p.method.name == provider.method.name
            and p.bind_set == provider.bind_set
            and all(a in done for a in self._feeding(p))
        ] or [provider]

    @staticmethod
    def _feeding(provider: Provider) -> list[int]:
        return sorted({i.column.alias for i in provider.inputs if i.column is not None})

    def _survival(self, provider: Provider) -> float:
        """The share of the rows that feed it which are left when all the other aliases were met first, at least."""
        if not provider.depends:
            return 1.0
        share = 1.0
        fed_by = self._feeding(provider)
        for number, count in self.counts.items():
            if number in fed_by:
                continue
            if not self._block.aliases[number].relation.methods[0].mirrors:
                share = 0.0 if count.ground is Ground.GUESS else share
            most = max((self._left[a].high for a in fed_by), default=0.0)
            share *= min(_LEFT, self._left[number].low / most if most else 1.0)
        waits = [n for n in self._verdict.order if n not in self.counts and n != provider.alias]
        for number in waits:
            if not self._waits_for(number, provider.alias):
                share *= 0.0 if selections(self._block, number) else _LEFT
        return share

    def _waits_for(self, alias: int, other: int) -> bool:
        return all(p.depends >> other & 1 for p in self._verdict.providers[alias])

    def _note(self, provider: Provider, rows: Range, ground: Ground) -> None:
        """How many of its rows pass its selections."""
        alias = provider.alias
        bound = {field_of(i.field) for i in provider.inputs if i.column is None}
        self._left[alias] = rows
        if selections(self._block, alias) - bound:
            share = PART if bound else self._share(alias)
            self._left[alias] = rows * share
            if share == PART:
                self._selected_from.add(alias)
        self._grounds[alias] = ground

    def _share(self, alias: int) -> Range:
        """Of the rows, those that pass the selections, all together: by a sample of what was harvested."""
        known = self._known.profile.relations.get(self._block.aliases[alias].relation.name)
        if known is None or known.sample is None or known.sample.num_rows < _SAMPLED:
            return PART
        passed = selected(self._block, alias, known.sample)
        if passed is None:
            return PART
        size, found = known.sample.num_rows, passed.num_rows
        # Wilson's interval, at three sigmas: it is not empty where nothing passed.
        z = 0.0 if known.rows <= size else 3.0
        middle = (found + z * z / 2.0) / (size + z * z)
        off = z * math.sqrt(found * (size - found) / size + z * z / 4.0) / (size + z * z)
        return Range(max(0.0, middle - off), min(1.0, middle + off))


def _values_among(values: float, rows: float, left: Range) -> Range:
    """Of so many different values in so many rows, those in so many that are left of them: as if drawn."""
    each = rows / values if values else 1.0

    def among(n: float) -> float:
        kept = min(1.0, n / rows) if rows else 1.0
        return values * (1.0 - math.pow(1.0 - kept, each))

    return Range(_DRAWN_LOW * among(left.low), min(values, left.high, _DRAWN_HIGH * among(left.high)))


def _any_of(ways: Sequence[Set[object]], share: float) -> Range:
    """Lookups, whichever of these ways is taken, or several of them."""
    return Range(min(map(len, ways)) * share, len(set().union(*ways)))
