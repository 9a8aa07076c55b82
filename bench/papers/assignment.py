"""The cheapest way to give every job a place of its own, exactly: the Hungarian method, by shortest paths."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def assigned(costs: Floats) -> Ints:
    """For each job, a row of the square matrix, the place that it has when the sum of all costs is least."""
    size = len(costs)
    job_price, place_price = np.zeros(size), np.zeros(size)
    job_of = np.full(size, -1)  # of a place; none yet
    for job in range(size):
        _augment(costs, job, job_price, place_price, job_of)
    places = np.empty(size, np.int64)
    places[job_of] = np.arange(size)
    return places


def _augment(costs: Floats, job: int, job_price: Floats, place_price: Floats, job_of: Ints) -> None:
    """Give one job more a place, and move others where that is cheaper. Prices stay such that no cost is less than
    those of its job and place, and equal where a job has its place."""
    size = len(costs)
    least, before = np.full(size, np.inf), np.full(size, -1)
    done = np.zeros(size, np.bool_)
    way, place = [job], -1
    while True:
        here = job if place < 0 else int(job_of[place])
        if here < 0:
            break
        left = costs[here] - job_price[here] - place_price
        closer = ~done & (left < least)
        least[closer], before[closer] = left[closer], place
        nearest = int(np.where(done, np.inf, least).argmin())
        step = float(least[nearest])
        job_price[way] += step
        place_price[done] -= step
        least[~done] -= step
        place = nearest
        done[place] = True
        if job_of[place] >= 0:
            way.append(int(job_of[place]))
    while place >= 0:
        earlier = int(before[place])
        job_of[place] = job if earlier < 0 else job_of[earlier]
        place = earlier
