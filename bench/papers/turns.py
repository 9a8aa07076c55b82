"""Contestants in turns: nobody is always first, nor always after the same one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")


def turned(names: Sequence[str], turn: int, rounds: int = 0) -> list[str]:
    """The names in the order of one round. They are turned by one from a round to the next; where there are fewer
    `rounds` than names by so many more that the rounds begin far apart."""
    step = max(1, len(names) // rounds) if rounds else 1
    at = turn * step % len(names)
    return [*names[at:], *names[:at]]


def in_turns(contestants: Mapping[str, Callable[[], T]], rounds: int) -> dict[str, list[T]]:
    """What each of them came to, round by round."""
    found: dict[str, list[T]] = {name: [] for name in contestants}
    for turn in range(rounds):
        for name in turned(list(contestants), turn, rounds):
            found[name].append(contestants[name]())
    return found
