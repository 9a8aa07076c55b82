"""The checks, in the order in which they are told."""

from __future__ import annotations

from wrappers.conformance.checks import bindings, company, craft, failures, order, pages, rows
from wrappers.conformance.finding import Check

_ROOMS = (failures, rows, bindings, company, pages, order, craft)

CHECKS: tuple[Check, ...] = tuple(check for room in _ROOMS for check in room.checks())
"""Each promise that is looked at. Where one of a check's `after` fails, that explains its own failure."""

__all__ = ["CHECKS"]
