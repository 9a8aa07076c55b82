"""A run on record, in memory: its policies made anew must say the same once more."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from mediator.assembly import Settings
from mediator.binding.model import Verdict
from mediator.eddy.decisions import Decision, Watch
from mediator.query.model import Block
from mediator.tracing.ground import of_block, of_settings
from mediator.tracing.reading import Header
from mediator.tracing.recording import recorded
from mediator.tracing.replaying import Replay, replay
from mediator.tracing.terms import Json

_BLOCK = "answer"


class OnRecord:
    """One block's run: looks on at it, and replays it."""

    path = Path("memory")

    def __init__(self, block: Block, verdict: Verdict, settings: Settings) -> None:
        said = _through({"settings": of_settings(settings), "block": of_block(block, verdict)})
        self.header = Header("", settings.policy, settings.seed, said["settings"], {_BLOCK: said["block"]})
        self.decisions: list[Decision] = []
        self.watch = Watch(_BLOCK, self.decisions.append, partial(recorded, note=self._note))
        self._lines: list[str] = []

    def lines(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        for number, text in enumerate(self._lines, 2):
            yield number, json.loads(text)

    def replayed(self, policy: str | None = None) -> Replay:
        return replay(self, policy)

    def _note(self, verb: str, told: Json, said: Json, lost: str) -> None:
        line: dict[str, Json] = {"at": 0.0, "block": _BLOCK, "verb": verb}
        line |= {"lost": lost} if lost else {"told": told, "said": said}
        self._lines.append(json.dumps(line, allow_nan=False))


def _through(said: Json) -> Json:
    """As it comes out of a file."""
    return json.loads(json.dumps(said, allow_nan=False))
