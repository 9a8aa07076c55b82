"""What a process holds of the sites' rows: what would be answered without asking them. Plain data, of one moment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mediator.state.coverage import Known
from mediator.state.stem import SteM


@dataclass(frozen=True, slots=True)
class WayCached:
    """Lookups by one bind set; the empty one is the whole relation."""

    bind_set: tuple[str, ...]
    lookups: int  # that are complete
    fresh: int  # of them, that may still be relied on
    failed: int
    oldest: float | None  # seconds since it was asked
    newest: float | None

    def to_dict(self) -> dict[str, object]:
        return {
            "bind_fields": list(self.bind_set),
            "lookups": self.lookups,
            "fresh": self.fresh,
            "failed": self.failed,
            "oldest_seconds": self.oldest,
            "newest_seconds": self.newest,
        }


@dataclass(frozen=True, slots=True)
class Cached:
    relation: str
    rows: int
    ways: tuple[WayCached, ...]

    def to_dict(self) -> dict[str, object]:
        return {"relation": self.relation, "rows": self.rows, "ways": [way.to_dict() for way in self.ways]}


def cached(stems: Iterable[SteM], now: float) -> list[Cached]:
    """Of each SteM. Not while a query turns."""
    return [_one(stem, now) for stem in stems]


def _one(stem: SteM, now: float) -> Cached:
    stem.catch_up(now)
    ended: dict[tuple[str, ...], list[tuple[float, bool]]] = {}
    failed: dict[tuple[str, ...], int] = {}
    for bind_set, _, entry in stem.coverage.entries():
        if entry.known == Known.COMPLETE:
            ended.setdefault(bind_set, []).append((max(0.0, now - entry.at), entry.until >= now))
        elif entry.known == Known.FAILED:
            failed[bind_set] = failed.get(bind_set, 0) + 1
    ways = [
        _way(bind_set, ended.get(bind_set, []), failed.get(bind_set, 0)) for bind_set in {**ended, **failed}
    ]
    return Cached(stem.relation.name, stem.store.n, tuple(ways))


def _way(bind_set: tuple[str, ...], ended: list[tuple[float, bool]], failed: int) -> WayCached:
    ages = [age for age, _ in ended]
    return WayCached(
        bind_set,
        len(ended),
        sum(fresh for _, fresh in ended),
        failed,
        round(max(ages), 3) if ages else None,
        round(min(ages), 3) if ages else None,
    )
