"""Asks as little as will do: waits until nothing else can move, then makes the access that is likely to leave the least
to be asked in all, and waits again.

Batches that need a lookup are held, which costs nothing: their rows stay in the SteMs. When everything rests, `Picture`
says what has survived all joins so far and what each provider would be asked for that; `Forecast` says which access
should come first. As long as that is in doubt only a few bindings are asked, those first that will have to be asked
whatever comes of the others; what they bring tells more. Which provider an alias has is settled in the same way: the
cheapest, by what is known then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mediator.binding.model import Provider
from mediator.eddy.asking import Asking
from mediator.eddy.goals.allowance import Allowance
from mediator.eddy.goals.forecast import Chance, Forecast, Later, Prospect
from mediator.eddy.goals.picture import Picture, Way
from mediator.eddy.run import Run
from mediator.state.keys import Part

_SURE = 0.02  # of all requests: what a decision may lose in any world and still be taken for good
_PIECE = 0.03  # of all requests: what is asked before the decision is looked at again
_AHEAD = 0.5  # of the requests that are left: what is spent in one go where they will not do

Expects = Callable[[Provider], Chance]


@dataclass(frozen=True, slots=True)
class Release:
    """What is asked next, and why: requests in all that were expected of each access, if it came first."""

    provider: Provider
    bindings: int
    of: int  # that it could have been asked
    expected: tuple[tuple[Provider, float], ...]


class Thrift:
    """`always` says that every lookup waits, else only what was held because a ceiling is near."""

    def __init__(
        self,
        always: bool,
        allowance: Allowance,
        expects: Expects,
        random: np.random.Generator,
    ) -> None:
        self.certain = False  # nothing is owed, whatever anybody fears
        self.released: list[Release] = []
        self._always = always
        self._allowance = allowance
        self._expects = expects
        self._random = random

    def puts_off(self, provider: Provider) -> bool:
        """Whether what needs no row's help is not asked at the start: a lookup by constants may turn out needless."""
        return self._always and bool(provider.bind_set) and provider.method.kind == "index"

    def release(self, run: Run, asking: Asking) -> bool:
        """Everything rests: ask what should come next; whether there is anything."""
        self.certain = False
        if not self._always and not asking.owed:
            return False
        picture = Picture(run, asking)
        if picture.empty or not picture.open:
            self.certain = True
            return False
        ways = picture.ways()
        served = [asking.serve(way.batch, way.provider) for way in ways if way.batch is not None]
        if any(served):
            return True
        before = len(asking.commands) + len(asking.delivered)
        if ways:
            self._ask(asking, *self._chosen(run, asking, picture, ways))
        else:  # what is left has failed in one way or another
            for alias in picture.open:
                asking.begin(alias)
        return len(asking.commands) + len(asking.delivered) > before

    def _ask(self, asking: Asking, way: Way, bindings: NDArray[np.bool_]) -> None:
        provider = way.provider
        if asking.chosen[provider.alias] != provider:
            asking.rely(provider)
        if way.batch is None:
            asking.begin(provider.alias, provider)
            return
        wanted = np.flatnonzero((way.codes >= 0) & bindings[np.maximum(way.codes, 0)])
        asking.look_up(way.batch.take(wanted), provider)

    def _chosen(
        self, run: Run, asking: Asking, picture: Picture, ways: Sequence[Way]
    ) -> tuple[Way, NDArray[np.bool_]]:
        """Whom to ask, and for which bindings."""
        later = list(_later(run, asking, picture))
        chances = [self._expects(asking.chosen[a]) for a in range(len(run.aliases))]
        forecast = Forecast(picture, ways, later, chances, self._random)
        prospects = forecast.prospects()
        best = min(prospects, key=lambda p: p.mean)
        way, bindings = self._decided(forecast, prospects, best, asking)
        expected = tuple((p.way.provider, round(p.mean, 1)) for p in prospects)
        self.released.append(Release(way.provider, int(bindings.sum()), way.count, expected))
        return way, bindings

    def _decided(
        self, forecast: Forecast, prospects: Sequence[Prospect], best: Prospect, asking: Asking
    ) -> tuple[Way, NDArray[np.bool_]]:
        left = self._allowance.left(best.way.provider, asking.tallies)
        if left is not None and 0 < left < best.mean:
            return best.way, _most_rows(best.way, max(1, int(left * _AHEAD)))
        lost = best.costs - np.min([p.costs for p in prospects], axis=0)
        if lost.max() <= _SURE * best.mean:
            return best.way, np.ones(best.way.count, np.bool_)
        for prospect in prospects:
            sure = self._sure(forecast, prospect.way, prospects)
            if sure is not None:
                return prospect.way, sure
        likely = forecast.likely(best.way)
        count = max(1, int(_PIECE * best.mean)) * best.way.provider.method.batch_size
        return best.way, _first(likely, count)

    @staticmethod
    def _sure(forecast: Forecast, way: Way, prospects: Sequence[Prospect]) -> NDArray[np.bool_] | None:
        """The bindings that must be asked in any case, where that does not hang on who provides the alias."""
        if sum(p.way.provider.alias == way.provider.alias for p in prospects) > 1:
            return None
        size = way.provider.method.batch_size
        sure = forecast.certain(way)
        return sure if sure.sum() >= size else None


def _first(likely: NDArray[np.float64], count: int) -> NDArray[np.bool_]:
    """So many of those that are the most likely to be needed."""
    chosen = np.zeros(len(likely), np.bool_)
    chosen[np.argsort(-likely, kind="stable")[:count]] = True
    return chosen


def _most_rows(way: Way, count: int) -> NDArray[np.bool_]:
    """So many of those that stand in the most rows: each of their answers may complete as many."""
    rows = np.bincount(way.codes[way.codes >= 0], minlength=way.count).astype(np.float64)
    return _first(rows, count)


def _later(run: Run, asking: Asking, picture: Picture) -> list[Later]:
    """The accesses that wait for rows of aliases that are not settled themselves."""
    found = []
    for alias in picture.open:
        for provider in asking.providers[alias]:
            needs = [a for a in picture.open if provider.depends >> a & 1]
            if needs and alias not in needs:
                tied = [
                    a
                    for a in needs
                    if any(picture.ties(a, n) is not None for n in range(len(picture.tables)))
                ]
                parent = (tied or needs)[0]
                mask = sum(1 << a for a in needs)
                found.append(Later(provider, parent, mask, _each(run, picture, provider, parent)))
    return found


def _each(run: Run, picture: Picture, provider: Provider, parent: int) -> float:
    """Different bindings that one value of the parent's brings, by what it has brought so far."""
    found = max((picture.seen(parent, n).found for n in range(len(picture.tables))), default=0)
    inputs = [i.column for i in provider.inputs if i.column is not None and i.column.alias == parent]
    view = run.aliases[parent]
    ids = view.ids(view.view.count)
    if not found or not inputs or not len(ids):
        return 1.0
    store = run.view(parent).stem.store
    distinct = [len(np.unique(Part(store.column(c.field).keyed(), ids).codes())) for c in inputs]
    return max(distinct) / found
