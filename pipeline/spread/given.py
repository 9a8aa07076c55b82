"""What a spread has given so far, in its order: answers, and what cells had to report. A layout gives all of it anew.

A micro-batch that is done again gives nothing the second time: what it came to is known by its number. Its answers are
the same, since it was told the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pipeline.files import put_text
from pipeline.spread.folder import read_json
from pipeline.spread.pieces import count, numbered

Status = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class File:
    stage: str
    path: str
    rows: int


@dataclass(frozen=True, slots=True)
class Given:
    """`batch` is the micro-batch that it came of; none where a stage above gave it."""

    batch: int | None
    files: tuple[File, ...]
    cells: Mapping[int, Status] = field(default_factory=dict)
    ended: tuple[str, ...] = ()  # stages of which no more rows come
    layout: int = 0
    early: bool = False  # made of a part alone, as the query was stopped

    def as_dict(self) -> dict[str, Any]:
        return {
            "batch": self.batch,
            "files": [[f.stage, f.path, f.rows] for f in self.files],
            "cells": {str(number): status for number, status in self.cells.items()},
            "ended": list(self.ended),
            "layout": self.layout,
            "early": self.early,
        }

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Given:
        return cls(
            said["batch"],
            tuple(File(*f) for f in said["files"]),
            {int(number): status for number, status in said["cells"].items()},
            tuple(said["ended"]),
            said["layout"],
            said["early"],
        )


class Giving:
    """The side that gives. There is one at a time. What other layouts have given counts for `all` only."""

    def __init__(self, folder: Path, layout: int = 0) -> None:
        self._folder, self._layout = folder, layout
        self.all: list[Given] = []
        self.cells: dict[int, Status] = {}  # the last that each had to say
        self.ended: set[str] = set()
        self._batches: set[int] = set()
        for one in given(folder):
            self._note(one)

    def give(self, one: Given) -> bool:
        """Whether this is the first time."""
        if one.batch is not None and one.batch in self._batches:
            return False
        one = replace(one, layout=self._layout)
        put_text(numbered(self._folder, len(self.all), "json"), json.dumps(one.as_dict()))
        self._note(one)
        return True

    def _note(self, one: Given) -> None:
        self.all.append(one)
        if one.layout != self._layout:
            return
        self.cells |= one.cells
        self.ended |= set(one.ended)
        if one.batch is not None:
            self._batches.add(one.batch)

    def files(self, stages: Sequence[str]) -> list[File]:
        return self._files(stages, self._layout)

    def most(self, stages: Sequence[str]) -> list[File]:
        """Those of the layout that has found most: where it ends early, the last may have had no time to."""
        layouts = [self._files(stages, layout) for layout in range(self._layout + 1)]
        return max(layouts, key=lambda files: sum(file.rows for file in files))

    def _files(self, stages: Sequence[str], layout: int) -> list[File]:
        return [
            file for one in self.all if one.layout == layout for file in one.files if file.stage in stages
        ]


def given(folder: Path, first: int = 0) -> Iterator[Given]:
    """What was given from a number on."""
    for number in range(first, count(folder)):
        yield Given.of(read_json(numbered(folder, number, "json")))
