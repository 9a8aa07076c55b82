"""How the figures of the paper on eddies are drawn: a colour for each contestant, static plans dashed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bench.papers.eddies import DEFAULT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Curve = Sequence[tuple[float, float]]


def over(axis: Axes, points: Mapping[str, Mapping[str, float]], title: str, x: str, y: str) -> None:
    """A line for each contestant, over what the points differ in."""
    names = next(iter(points.values()))
    curves = {name: [(float(at), p[name]) for at, p in points.items()] for name in names}
    lines(axis, curves, title, x, y)


def lines(axis: Axes, curves: Mapping[str, Curve], title: str, x: str, y: str, stepped: bool = False) -> None:
    """A line each. Those that are `stepped` stay where they are until something happens."""
    for place, (name, points) in enumerate(curves.items()):
        axis.plot(
            [at for at, _ in points],
            [value for _, value in points],
            "--" if " first" in name else "-",
            drawstyle="steps-post" if stepped else "default",
            linewidth=2.5 if name == DEFAULT else 1.2,
            color=f"C{place}" if place < 10 else "black",
            label=name,
        )
    axis.set(title=title, xlabel=x, ylabel=y, ylim=0)
    axis.legend(fontsize="small")


def beside(axis: Axes, groups: Mapping[str, Mapping[str, float]], title: str) -> None:
    """A group of bars for each key, lying, so that there is room for their names."""
    names = list(next(iter(groups.values())))
    height = 0.8 / len(names)
    for place, name in enumerate(names):
        axis.barh(
            [i + place * height for i in range(len(groups))],
            [group[name] for group in groups.values()],
            height,
            color=f"C{place}" if place < 10 else "black",
            label=name,
        )
    axis.set(title=title, yticks=[i + 0.4 for i in range(len(groups))])
    axis.set_yticklabels([name.replace(" ", "\n") for name in groups])
    axis.invert_yaxis()
    axis.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
