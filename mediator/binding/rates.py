"""What one lookup, or one scan, comes to, by what was measured, declared or must be guessed."""

from __future__ import annotations

import math
from enum import IntEnum

from mediator.binding.model import Provider
from mediator.binding.ranges import PART, Range
from mediator.catalog.bindfields import EQUAL, field_of, operator_of
from mediator.catalog.measured import Measured
from mediator.catalog.model import AccessMethod, Relation
from mediator.catalog.profile import NO_PROFILE, Profile

SCANNED = Range(1.0, 10_000.0)  # rows of a relation of which nothing is known
FEW = 1.5  # lookups below which nothing is taken to be measured; of a scan, once is enough
ONCE = 0.5
_SIGMAS = 3.0  # that a mean of several may be off by
_DECLARED = Range(0.5, 2.0)  # of a number that a declaration names
_FANNED = (
    1.5  # times as many rows as values had on average: those that are asked for may be the commoner ones
)
_FOUND = Range(0.0, 10.0)  # rows of one lookup
_AGAIN = Range(1.0, 1.1)  # requests for one page
_LATE = Range(0.0, 3.0)  # requests that are sent twice at the beginning
_FILLED = 4.0  # packed requests may be filled to this part only


class Ground(IntEnum):
    """What a number rests on, the best first."""

    KNOWN = 0
    MEASURED = 1
    HARVESTED = 2
    DECLARED = 3
    GUESS = 4


def rows_of_scan(
    relation: Relation, measured: Measured, profile: Profile = NO_PROFILE
) -> tuple[Range, Ground]:
    if measured.rows.groups >= ONCE:
        return mean(measured.rows.mean, measured.rows.spread, 1.0), Ground.MEASURED
    harvested = profile.relations.get(relation.name)
    if harvested is not None and harvested.whole:
        return mean(harvested.rows, 0.0, 1.0), Ground.HARVESTED
    if relation.rows is not None:
        return Range.of(relation.rows) * _DECLARED, Ground.DECLARED
    return SCANNED, Ground.GUESS


def rows_of_lookup(
    provider: Provider, relation: Relation, measured: Measured, profile: Profile = NO_PROFILE
) -> tuple[Range, Ground]:
    equal = {field_of(f) for f in provider.bind_set if operator_of(f) == EQUAL}
    if relation.key and equal >= set(relation.key):
        return PART, Ground.MEASURED if measured.lookups >= FEW else Ground.KNOWN
    if measured.lookups >= FEW:
        return Range.of(measured.rows.mean), Ground.MEASURED
    column = profile.column((relation.name, equal.copy().pop())) if len(equal) == 1 else None
    if column is not None and column.distinct:
        return Range(0.0, column.fan_out * _FANNED), Ground.HARVESTED
    if provider.method.rows_per_lookup is not None:
        return Range.of(provider.method.rows_per_lookup) * _DECLARED, Ground.DECLARED
    return _FOUND, Ground.GUESS


def total(lookups: Range, each: Range, measured: Measured | None) -> Range:
    """Rows of so many lookups. The more there are, the nearer is their mean to what was measured."""
    if measured is None or each == PART:
        return (lookups * each).whole()
    off = _SIGMAS * measured.rows.spread
    unsure = off / math.sqrt(max(1.0, measured.rows.groups))

    def around(n: float, sign: float) -> float:
        return max(0.0, n * each.low + sign * (math.sqrt(n) * off + n * unsure))

    return Range(around(lookups.low, -1.0), around(lookups.high, 1.0)).whole()


def mean(usual: float, spread: float, least: float) -> Range:
    """One more of what was measured so often before."""
    off = max(_SIGMAS * spread, 0.1 * usual)
    return Range(max(least, usual - off), max(least, usual + off)).whole()


def pages(measured: Measured, trips: float, sign: float) -> float:
    """Pages in all of so many first pages: fewer, or more, than on average."""
    seen = max(1.0, measured.pages.groups)
    off = _SIGMAS * measured.pages.spread * (math.sqrt(trips) + trips / math.sqrt(seen))
    return max(trips, trips * measured.pages.mean + sign * off)


def packed(method: AccessMethod, measured: Measured, lookups: Range) -> Range:
    """Requests for so many lookups."""
    size = method.batch_size
    if size == 1:
        return lookups
    filled = size / _FILLED
    if measured.rows.groups >= FEW:
        filled = max(1.0, min(filled, measured.rows.weight / measured.rows.groups / 2))
    return Range(math.ceil(lookups.low / size), min(lookups.high, math.ceil(lookups.high / filled)))


def attempts(method: AccessMethod, measured: Measured, requests: Range) -> Range:
    """Requests for one page, with those sent again, and those sent twice where there are mirrors."""
    again = _AGAIN
    if measured.pages.groups >= FEW:
        again = Range(1.0, 1.0 + 2.0 * (measured.attempts - 1.0) + 0.1)
    if len(method.mirrors) > 1 and requests.high >= 1.0:
        again = Range(again.low, again.high + _LATE.high / requests.high + 0.04)
    return again
