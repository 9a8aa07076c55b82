"""`docs/scaling.md`: its tables are computed from the figures that are kept beside it; the rest is the author's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.result import Result
from bench.scaling.costs import Costs
from bench.scaling.layouts import LAYOUTS
from bench.scaling.model import Forecast, forecast
from bench.scaling.simulation import EXECUTORS, Dealt
from bench.scaling.simulation import read as dealt_of
from pipeline.spread.stream import pace_of

_DOCS = Path(__file__).parents[2] / "docs"
PAGE = _DOCS / "scaling.md"
KEPT = _DOCS / "figures" / "scaling.json"
ROWS = (1e9, 1e11)
_UNITS = {"row_bytes": (1.0, "bytes"), "memory_row": (1.0, "bytes"), "carry_byte": (1e9, "ns")}
_SAYS = {
    "cut_row": "a row is read, its cell found, and packed",
    "row_bytes": "a row, packed",
    "carry_byte": "a byte goes to Java, through the shuffle, into the state, and to its cell",
    "eddy_row": "a row that a cell is told: unpacked, stored, indexed, probed",
    "answer_row": "an answer is written",
    "memory_row": "a cell's memory for a row that it was told",
    "epoch": "a micro-batch that brings nothing to speak of",
    "cell": "a cell in it, in its slot",
    "task": "a task of a stage, on the driver",
    "told_cell": "what a cell says in a micro-batch, on the driver",
}
_END = "<!-- end of figures -->"
_BLOCK = re.compile(r"<!-- figures: (\S+) -->\n.*?" + re.escape(_END), re.DOTALL)


@dataclass(frozen=True)
class Kept:
    """What the page is computed from."""

    costs: Costs
    dealt: Sequence[Dealt]
    sample: int  # rows of a relation that were simulated


def read(file: Path = KEPT) -> Kept:
    said = json.loads(file.read_text(encoding="utf-8"))
    return Kept(Costs(**said["costs"]), list(dealt_of(said["dealt"])), said["sample"])


def write(kept: Kept, page: Path = PAGE, file: Path = KEPT) -> None:
    said = {"costs": kept.costs.as_dict(), "sample": kept.sample, "dealt": [d.as_dict() for d in kept.dealt]}
    file.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    page.write_text(written(page.read_text(encoding="utf-8"), kept), encoding="utf-8")


def written(page: str, kept: Kept) -> str:
    """The page with what these figures come to."""
    blocks = {"costs": _costs(kept), "forecast": list(_forecasts(kept)), "simulation": list(_simulated(kept))}
    return _BLOCK.sub(lambda m: "\n".join([f"<!-- figures: {m[1]} -->", *blocks[m[1]], _END]), page)


def result(kept: Kept) -> Result:
    found = Result("scaling")
    for name, forecasts in _all(kept.costs).items():
        for rows, some in forecasts.items():
            found.detail[f"{name}, {rows:.0e} rows"] = {
                f"{one.executors} executors": {
                    "seconds": round(one.seconds, 1),
                    "bound": one.bound,
                    "gb_of_a_slot": round(one.memory / 1e9, 2),
                    "fits": one.fits,
                }
                for one in some
            }
            found.curves[f"{name}, {rows:.0e} rows"] = {str(one.executors): one.terms for one in some}
    found.figures["model_off"] = max(one.off for one in kept.dealt)
    return found


def _all(costs: Costs) -> dict[str, dict[float, list[Forecast]]]:
    return {
        f"{layout.name}, {'skewed' if skewed else 'even'}": {
            rows: [forecast(costs, layout, rows, executors, skewed, pace_of) for executors in EXECUTORS]
            for rows in ROWS
        }
        for layout in LAYOUTS.values()
        for skewed in (False, True)
    }


def _costs(kept: Kept) -> list[str]:
    lines = ["| | | |", "|---|---|---|"]
    for name, value in kept.costs.as_dict().items():
        scale, unit = _UNITS.get(name, (1e3, "ms") if value > 1e-4 else (1e9, "ns"))
        lines.append(f"| `{name}` | {_shown(value * scale)} {unit} | {_SAYS[name]} |")
    return lines


def _forecasts(kept: Kept) -> Iterator[str]:
    yield "| join, keys | rows | executors | time | bound | copies | fullest ÷ mean | memory of a slot | batches |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, by_rows in _all(kept.costs).items():
        for rows, some in by_rows.items():
            for one in some:
                share = one.terms[one.bound] / one.seconds
                cells = [
                    name,
                    f"10^{len(f'{rows:.0f}') - 1}",
                    f"{one.executors:,}",
                    _time(one.seconds),
                    f"{one.bound} ({share:.0%})",
                    f"{one.load.copies:.1f}",
                    f"{one.load.skew:.2f}",
                    f"{one.memory / 1e9:.1f} GB" + ("" if one.fits else ", **does not fit**"),
                    f"{one.batches:,}",
                ]
                yield f"| {' | '.join(cells)} |"


def _simulated(kept: Kept) -> Iterator[str]:
    yield "| join, keys | executors | shares | copies | model | fullest ÷ mean | model |"
    yield "|---|---|---|---|---|---|---|"
    for one in kept.dealt:
        shares = " x ".join(map(str, one.shares))
        yield (
            f"| {one.layout}, {one.keys} | {one.executors:,} | {shares} | {one.copies:.2f} | {one.model_copies:.2f} "
            f"| {one.skew:.2f} | {one.model_skew:.2f} |"
        )
    worst = max(kept.dealt, key=lambda one: one.off)
    yield ""
    yield (
        f"{kept.sample:,} rows of each relation were dealt out. The model is off by {worst.off:.0%} at most"
        f" ({worst.layout}, {worst.keys}, {worst.executors:,} executors)."
    )


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _time(seconds: float) -> str:
    for unit, size in (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
