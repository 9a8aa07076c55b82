"""One provider per alias, such that none waits for itself: the least fixpoint, best first."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mediator.binding.model import Provider


def choose(
    providers: Sequence[Sequence[Provider]], without: Collection[tuple[int, str]] = ()
) -> tuple[tuple[Provider, ...], tuple[int, ...]] | None:
    """One provider per alias and an order to fill them in; none if there is no such choice.

    `without` names (alias, access method) pairs that are not to be used: one that failed in mid-run, say.
    """
    barred = set(without)
    open_ = {a: [p for p in ps if (a, p.method.name) not in barred] for a, ps in enumerate(providers)}
    chosen: dict[int, Provider] = {}
    done = 0
    while open_:
        best = _best(open_, done)
        if best is None:
            return None
        chosen[best.alias] = best
        done |= 1 << best.alias
        del open_[best.alias]
    return tuple(chosen[a] for a in sorted(chosen)), tuple(chosen)


def reachable(providers: Sequence[Sequence[Provider]], barred: int = 0, given: int = 0) -> int:
    """A bit mask of the aliases that can be provided for, if some are given, and without those that are
    barred."""
    done = given
    while True:
        more = done
        for alias, ways in enumerate(providers):
            if not barred >> alias & 1 and any(not p.depends & ~more for p in ways):
                more |= 1 << alias
        if more == done:
            return done
        done = more


def usable(providers: Sequence[Sequence[Provider]]) -> tuple[tuple[Provider, ...], ...]:
    """Only those whose inputs can be complete before the alias itself is."""
    kept = []
    for alias, ways in enumerate(providers):
        others = reachable(providers, 1 << alias)
        kept.append(tuple(p for p in ways if not p.depends & ~others))
    return tuple(kept)


def _best(open_: dict[int, list[Provider]], done: int) -> Provider | None:
    """Of all that could be taken now, the one that its own alias likes best.

    What does not bring all rows comes after everything that does: it is taken for aliases that nothing else reaches.
    """
    best: tuple[tuple[bool, int], Provider] | None = None
    for ways in open_.values():
        for rank, provider in enumerate(ways):
            if not provider.depends & ~done:
                likes = (provider.method.proves != "all", rank)
                if best is None or likes < best[0]:
                    best = (likes, provider)
                break
    return best[1] if best else None
