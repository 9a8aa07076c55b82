"""What a bench found out, and where."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

_MATTERS = ("duckdb", "polars", "pyarrow", "numpy", "numba", "aiohttp")


@dataclass(slots=True)
class Result:
    """`figures` are what is promised; `detail` is how they came about."""

    bench: str
    figures: dict[str, float] = field(default_factory=dict)
    detail: dict[str, Any] = field(default_factory=dict)
    curves: dict[str, Any] = field(default_factory=dict)  # for `draw`; not printed

    def json(self) -> str:
        """The one line that programs read."""
        figures = {name: round(value, 4) for name, value in self.figures.items()}
        return json.dumps({"bench": self.bench, "figures": figures, "detail": self.detail})


def machine() -> dict[str, object]:
    """Where it ran, and on what."""
    return {
        "cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)),
        "load": [round(load, 2) for load in os.getloadavg()],
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        **{name: version(name) for name in _MATTERS},
    }


def table(result: Result) -> str:
    """The figures and the detail, for people."""
    lines = [f"{name:32} {value:10.3f}" for name, value in result.figures.items()]
    return "\n".join([*lines, "", *_indented(result.detail, 0)])


def _indented(value: dict[str, Any], depth: int) -> list[str]:
    lines: list[str] = []
    for name, inner in value.items():
        if isinstance(inner, dict):
            lines += [f"{'  ' * depth}{name}:", *_indented(inner, depth + 1)]
        else:
            lines.append(f"{'  ' * depth}{name}: {inner}")
    return lines
