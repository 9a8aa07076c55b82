"""How the askers stand, for whoever watches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from mediator.access import Statistics
from mediator.access.statistics import SourceStatistics
from pipeline.spread.folder import Folder

_NOTHING: Mapping[str, int] = {}


def standing(statistics: Statistics, helped: Mapping[str, Mapping[str, int]]) -> str:
    """Of one asker. What it helped others with counts as asked and answered by them."""
    return json.dumps(
        [_own(source, helped.get(source.source, _NOTHING)) for source in statistics.sources], default=str
    )


def _own(source: SourceStatistics, helped: Mapping[str, int]) -> dict[str, Any]:
    said = asdict(source)
    return said | {what: max(0, said[what] - number) for what, number in helped.items()}


def watched(folder: Folder) -> tuple[SourceStatistics, ...]:
    """All askers together, by source."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.asking.glob("*.json")):
        for source in json.loads(path.read_text(encoding="utf-8")):
            _add(found.setdefault(source["source"], {}), source)
    names = {f.name for f in fields(SourceStatistics)}
    return tuple(SourceStatistics(**{n: v for n, v in one.items() if n in names}) for one in found.values())


def _add(sum_: dict[str, Any], source: Mapping[str, Any]) -> None:
    for name, value in source.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            sum_[name] = sum_.get(name, 0) + value
        else:
            sum_[name] = value
