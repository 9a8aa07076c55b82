"""Figures on paper: matplotlib without a screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@contextmanager
def saved(file: Path, count: int) -> Iterator[list[Axes]]:
    """So many axes side by side; what was drawn on them is in the file afterwards."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, count, figsize=(6 * count, 4.5), squeeze=False, layout="constrained")
    try:
        yield list(axes[0])
        figure.savefig(file, dpi=120)
    finally:
        pyplot.close(figure)


def bars(axis: Axes, groups: Mapping[str, Mapping[str, float]], title: str) -> None:
    """One group of bars per key, one bar in it per contestant."""
    names = list(next(iter(groups.values()), {}))
    width = 0.8 / max(1, len(names))
    for place, name in enumerate(names):
        axis.bar(
            [i + place * width for i in range(len(groups))],
            [g[name] for g in groups.values()],
            width,
            label=name,
        )
    axis.set(title=title, xticks=[i + 0.4 for i in range(len(groups))])
    axis.set_xticklabels(list(groups))
    axis.legend()


def steps(axis: Axes, curves: Mapping[str, Sequence[tuple[float, float]]], title: str, unit: str) -> None:
    """Something that only grows, over seconds, a curve each."""
    for name, points in curves.items():
        axis.step([at for at, _ in points], [value for _, value in points], where="post", label=name)
    axis.set(title=title, xlabel="seconds", ylabel=unit, xlim=0, ylim=0)
    axis.legend()
