"""Mirrors of one method race: which is asked now, when another is sent after it. Pure: nothing here waits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from mediator.access.mirrors.latency import FEW
from mediator.access.mirrors.runner import LEAST, Runner
from mediator.access.wishes import Hedging
from mediator.errors import SourceError

_MULTIPLE = 3.0  # of the median, in its place
_LEAST = 0.01  # seconds: a reply that is late by less is not worth a second request
_BLIND = 1.0  # seconds, where nothing has been measured at all
_CLEARLY = 1.2  # times the median: a mirror whose latency hardly varies is not hedged for trifles
_PROBES = 2  # requests that may be out to a mirror before its first reply
_LOOK_AGAIN = 64  # every so many choices, the mirror that was asked least gets another chance
_EARNED = 0.04  # hedges that one choice pays for
_SAVED = 10.0  # hedges that can be saved up
_AT_FIRST = 3.0
_PRICES: Mapping[Hedging, float] = {"none": float("inf"), "some": 1.0, "more": 0.25}
_TRIAL = (
    4.0  # usual replies of the fastest between two requests that see whether a mirror is well again, at least
)
_LASTED = 0.125  # of the time for which it has stalled, at least
_SILENT = 1.5  # times the patience with one request, after which a mirror that answers nobody has stalled
_NOTHING: Mapping[str, float] = {}


class Race:
    """The mirrors of one method: explores all, prefers the faster, leaves out those with an open breaker."""

    def __init__(self, runners: Sequence[Runner]) -> None:
        self.runners = tuple(runners)
        self._choices = 0
        self._hedges = _AT_FIRST

    @property
    def shut(self) -> SourceError | None:
        """Why no mirror may be asked any more for now."""
        shut = None
        for runner in self.runners:
            if (shut := runner.gate.shut) is None:
                break
        return shut

    @property
    def seconds(self) -> float:
        """That a request is expected to take at the fastest mirror that is known."""
        return min((r.seconds for r in self.runners if r.latency.known), default=LEAST)

    def choose(
        self, pending: int, barred: Collection[str] = (), boosts: Mapping[str, float] = _NOTHING
    ) -> Runner | None:
        """Which mirror the next of `pending` requests goes to now; none when waiting is the better choice.

        Sources that are `barred` are not thought of; those with a boost count as so many times as fast.
        """
        if len(self.runners) == 1:
            return self._chosen(self.runners[0]) if self.runners[0].room else None
        runners = [runner for runner in self.runners if runner.mirror.source not in barred]
        free = [runner for runner in runners if runner.room and (not self.stalled(runner) or _due(runner))]
        if not free:
            return None
        if unknown := [r for r in free if not r.latency.known and r.inside < _PROBES]:
            return self._chosen(min(unknown, key=lambda r: r.inside))
        if (self._choices + 1) % _LOOK_AGAIN == 0:
            return self._chosen(min(free, key=lambda r: r.counts.requests))
        if trials := [runner for runner in free if runner.silence.suspected]:
            self._try(trials[0])
            return self._chosen(trials[0])
        best = min(free, key=lambda r: self._expected(r) / boosts.get(r.mirror.source, 1.0))
        if any(self._sooner_full(runner, pending, best, boosts) for runner in runners):
            return None
        return self._chosen(best)

    def ready_at(self) -> float:
        """When time alone may change the choice: another mirror can be entered again."""
        now = self.runners[0].now
        times = (max(r.free_at(), r.silence.trial_at) for r in self.runners)
        return min((at for at in times if at > now), default=float("inf"))

    def patience(self, runner: Runner) -> float:
        """Seconds after which a request to this mirror is unusually late."""
        if runner.latency.weight >= FEW:
            return max(runner.latency.quantile(0.95), _CLEARLY * runner.latency.quantile(0.5), _LEAST)
        known = [r.latency for r in (runner, *self.runners) if r.latency.known]
        return max(_MULTIPLE * known[0].quantile(0.5), _LEAST) if known else _BLIND

    def stalled(self, runner: Runner) -> bool:
        """Whether a mirror answers nobody: since when it did not, and until it does again."""
        silence = runner.silence
        if silence.seconds(runner.now) > _SILENT * self.patience(runner):
            silence.suspect(runner.now)
        return silence.suspected

    def hedge(self, tried: Sequence[Runner], hedging: Hedging = "some") -> Runner | None:
        """Whom to send after a late request, if one has room and the budget allows. Pays for it, the less the more
        eager the queries are that wait.

        What was sent to a mirror that has stalled is as good as lost: to ask for it elsewhere costs nothing on top, and
        is worth waiting for a place.
        """
        price = _PRICES[hedging]
        if self.stalled(tried[0]) and price < float("inf"):
            well = [r for r in self._second(tried) if r.fit and not self.stalled(r)]
            if (runner := self.another(well)) is not None:
                runner.counts.hedges += 1
                return runner
        if self._hedges < price:
            return None
        runner = self.another(r for r in self._second(tried) if r.room)
        if runner is not None:
            self._hedges -= price
            runner.counts.hedges += 1
        return runner

    def preferred(self, runners: Sequence[Runner]) -> list[Runner]:
        """Which of these, that show the same, is asked: the first that has not stalled; with it, now and then, one that
        has, to see whether it is well again."""
        well = [runner for runner in runners if not self.stalled(runner)] or runners[:1]
        trials = [runner for runner in runners if runner not in well and runner.room and _due(runner)]
        for runner in trials[:1]:
            self._try(runner)
        return [well[0], *trials[:1]]

    def hedgeable(self, tried: Sequence[Runner]) -> bool:
        """Whether there is anybody who could be sent, now or later."""
        return bool(self._second(tried))

    def another(self, runners: Iterable[Runner]) -> Runner | None:
        """The most promising of these: a healthy one before a sick one, then the fastest."""
        return min(runners, key=lambda r: (not r.fit, r.silence.suspected, self._expected(r)), default=None)

    @property
    def down(self) -> bool:
        """Whether every mirror's breaker is open, and has been for long enough to give up those who wait."""
        return all(
            runner.gate.shut is not None or (runner.breaker.proven and not runner.fit)
            for runner in self.runners
        )

    def _try(self, runner: Runner) -> None:
        """Let one request go to a mirror that has stalled; the next may some time later, the longer it has lasted."""
        usual = min((r.latency.quantile(0.5) for r in self.runners if r.latency.known), default=_BLIND)
        lasted = runner.now - runner.silence.since
        runner.silence.trial_at = runner.now + max(_TRIAL * usual, _LASTED * lasted)

    def _second(self, tried: Sequence[Runner]) -> list[Runner]:
        """Mirrors that were not tried; where there are none, those that may be asked twice, and were not."""
        others = [r for r in self.runners if r not in tried]
        return others or [r for r in self.runners if r.gate.source.twice and tried.count(r) == 1]

    def _chosen(self, runner: Runner) -> Runner:
        self._choices += 1
        self._hedges = min(_SAVED, self._hedges + _EARNED)
        return runner

    def _expected(self, runner: Runner) -> float:
        """A mirror that has not answered yet is taken to be no faster than the slowest known one."""
        if runner.latency.known:
            return runner.expected
        return max(r.expected for r in self.runners)

    def _sooner_full(self, runner: Runner, pending: int, best: Runner, boosts: Mapping[str, float]) -> bool:
        """Whether waiting for this mirror, which has no room now, is faster than asking the best that has."""
        if runner.room or not runner.fit or not runner.latency.known or self.stalled(runner):
            return False
        here = (self._expected(runner) + runner.drained(pending)) / boosts.get(runner.mirror.source, 1.0)
        return here < self._expected(best) / boosts.get(best.mirror.source, 1.0)


def _due(runner: Runner) -> bool:
    """Whether it is time to see if a mirror that has stalled is well again: one request at a time."""
    return not runner.inside and runner.silence.trial_at <= runner.now
