"""What a user can say of the order of things in a query that runs: what is preferred, which sources wait, which are
favoured. It never changes the answer."""

from __future__ import annotations

import difflib
import math
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from mediator.errors import MediatorError
from mediator.query.preferences import Preferences


class CannotSteer(MediatorError):
    """What was said of a running query cannot be done: it names no source of the catalog, or makes no sense."""


@dataclass(frozen=True, slots=True)
class Steering:
    """How a query is steered."""

    prefer: Mapping[str, float] = field(default_factory=dict)  # conditions, each with its weight
    paused: tuple[str, ...] = ()  # sources
    boost: Mapping[str, float] = field(default_factory=dict)  # sources, each with its factor

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return {"prefer": dict(self.prefer), "paused": list(self.paused), "boost": dict(self.boost)}


class Wheel:
    """One query's. May be turned from any thread."""

    def __init__(
        self,
        judge: Callable[[Mapping[str, float]], Preferences],
        sources: Collection[str],
        prefer: Mapping[str, float],
        pause: Collection[str],
        boost: Mapping[str, float],
    ) -> None:
        """`judge` makes the query's preferences of conditions, or raises a `QueryError`."""
        self._judge = judge
        self._sources = sources
        self._lock = threading.Lock()
        self._news: Preferences | None = None
        self.steering = Steering()
        self.turn(prefer=prefer, pause=pause, resume=(), boost=boost)
        self._news = None  # those that it begins with are known to its stages

    def turn(
        self,
        *,
        prefer: Mapping[str, float] | None,
        pause: Collection[str],
        resume: Collection[str],
        boost: Mapping[str, float],
    ) -> Steering:
        """Takes in what is said, all of it or, where it raises an error, nothing."""
        for names in (pause, resume):
            if isinstance(names, str):
                raise CannotSteer(
                    f"sources are named in a collection, such as {{{names!r}}}, not by {names!r} alone"
                )
        for name in (*pause, *resume, *boost):
            self._known(name)
        both = sorted(set(pause) & set(resume))
        if both:
            raise CannotSteer(f"{', '.join(both)}: to be paused and to be resumed at once: leave one out")
        for name, factor in boost.items():
            _check(name, factor)
        news = self._judge(prefer) if prefer is not None else None
        with self._lock:
            paused = dict.fromkeys([*self.steering.paused, *pause])
            left = tuple(name for name in paused if name not in set(resume))
            boosts = {n: float(f) for n, f in {**self.steering.boost, **boost}.items() if f != 1.0}
            wanted = self.steering.prefer if prefer is None else dict(prefer)
            self.steering = Steering(wanted, left, boosts)
            self._news = self._news if news is None else news
            return self.steering

    def preferences(self) -> Preferences | None:
        """Those that count from now on, if they are not those that counted when this was last asked."""
        with self._lock:
            news, self._news = self._news, None
            return news

    def _known(self, name: str) -> None:
        if name not in self._sources:
            near = difflib.get_close_matches(str(name), self._sources, n=1)
            fix = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(self._sources)}"
            raise CannotSteer(f"there is no source {name!r}: {fix}")


def _check(name: str, factor: object) -> None:
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor < math.inf:
        message = f"the boost of {name!r} is {factor!r}: it must be a number above 0; 1 is no boost"
        raise CannotSteer(message)
