"""The figures in `docs/experiments.md`: between markers they are the command's, all around them is the author's.

<!-- figures: regret -->
...
<!-- end of figures -->
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.papers.bars import BARS, Bar

OVERVIEW = "all"
_END = "<!-- end of figures -->"
_BLOCK = re.compile(r"<!-- figures: (\S+) -->\n.*?" + re.escape(_END), re.DOTALL)

Said = Mapping[str, Any]


def written(page: str, results: Mapping[str, Said], figures: Path) -> str:
    """The page with these results in it. `figures` is where the plots lie, as seen from the page."""

    def block(found: re.Match[str]) -> str:
        name = found[1]
        lines = overview(results) if name == OVERVIEW else section(name, results.get(name), figures)
        return "\n".join([f"<!-- figures: {name} -->", *lines, _END])

    return _BLOCK.sub(block, page)


def sections(page: str) -> list[str]:
    """The experiments that have a place for their figures."""
    return [name for name in re.findall(r"<!-- figures: (\S+) -->", page) if name != OVERVIEW]


def rows(page: str, name: str) -> dict[str, str]:
    """What the page says of an experiment's figures."""
    found = re.search(rf"<!-- figures: {re.escape(name)} -->\n(.*?){re.escape(_END)}", page, re.DOTALL)
    return dict(re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", found[1], re.MULTILINE)) if found else {}


def overview(results: Mapping[str, Said]) -> list[str]:
    """Every bar, met or not."""
    lines = ["| experiment | figure | ours | bar | |", "|---|---|---|---|---|"]
    for name, bars in BARS.items():
        link = f"[{name}](#{name})"
        for bar in bars:
            said = _value(results.get(name), bar)
            lines.append(
                f"| {link} | `{bar.figure}` | {shown(said)} | ≤ {bar.most:g} | {_verdict(said, bar)} |"
            )
    machines = [r["detail"]["machine"] for r in results.values() if "machine" in r["detail"]]
    return [*lines, "", *_on(machines)] if machines else lines


def section(name: str, said: Said | None, figures: Path) -> list[str]:
    """An experiment's plot, its figures, and at which scale they were taken."""
    if said is None or not said["figures"]:
        why = f"failed: {said['failed']}" if said and "failed" in said else "was not run"
        return [f"This experiment {why}.", "", *_table(name, {})]
    lines = [f"![{name}]({(figures / f'{name}.png').as_posix()})", "", *_table(name, said["figures"])]
    if "failed" in said:
        lines = [f"Its last run failed: {said['failed']}. What follows is of the run before.", "", *lines]
    for head, told in said["detail"].get("tables", {}).items():
        lines += ["", *_told(head, told)]
    for word in ("setting", "taken"):
        if word in said["detail"]:
            lines += ["", f"{word.capitalize()}: {_said(said['detail'][word])}."]
    return lines


def shown(value: float | None) -> str:
    """A figure as the page has it."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1_000 or value == int(value) else f"{value:.3f}"


def _table(name: str, figures: Mapping[str, float]) -> list[str]:
    bars = {bar.figure: bar for bar in BARS[name]}
    lines = ["| figure | ours | bar | |", "|---|---|---|---|"]
    for figure in [*bars, *(f for f in figures if f not in bars)]:
        value, bar = figures.get(figure), bars.get(figure)
        most = "" if bar is None else f"≤ {bar.most:g}"
        says = "" if bar is None else f"{_verdict(value, bar)}: {bar.says}"
        lines.append(f"| `{figure}` | {shown(value)} | {most} | {says} |")
    return lines


def _told(head: str, of: Mapping[str, Mapping[str, object]]) -> list[str]:
    """A table of an experiment's own: what it says of each case."""
    columns = list(next(iter(of.values()), {}))
    lines = [f"| {' | '.join([head, *columns])} |", "|---" * (len(columns) + 1) + "|"]
    for name, row in of.items():
        lines.append(f"| {' | '.join([name, *(_cell(row[column]) for column in columns)])} |")
    return lines


def _cell(value: object) -> str:
    return shown(float(value)) if isinstance(value, (int, float)) else str(value)


def _value(said: Said | None, bar: Bar) -> float | None:
    value: float | None = None if said is None else said["figures"].get(bar.figure)
    return value


def _verdict(value: float | None, bar: Bar) -> str:
    if value is None:
        return "not measured"
    return "met" if bar.met(value) else "**not met**"


def _said(value: object) -> str:
    """A setting, whether it was said in words or as numbers with names."""
    if isinstance(value, Mapping):
        return "; ".join(f"{name.replace('_', ' ')} {_said(inner)}" for name, inner in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_said, value))
    return str(value).rstrip(".")


def _on(machines: Sequence[Mapping[str, Any]]) -> list[str]:
    loads = [machine["load"][0] for machine in machines]
    return [
        f"Measured on {_any(machines, 'usable_cores')} cores (Python {_any(machines, 'python')}); load when an"
        f" experiment began: {min(loads):g} to {max(loads):g}."
    ]


def _any(machines: Sequence[Mapping[str, Any]], what: str) -> str:
    return " or ".join(sorted({str(machine[what]) for machine in machines}))
