"""The folder of a query that nobody is to go on with: it is gone when the query has ended, or its process."""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path
from typing import IO

from pipeline.leftovers import own
from pipeline.spread.folder import Folder
from pipeline.spread.plan import Plan


class Passing(Folder):
    def __init__(self) -> None:
        super().__init__(Path(tempfile.gettempdir()) / f"mediator-spread-{uuid.uuid4().hex}")
        self._owned: IO[str] | None = None

    def begin(self, plan: Plan) -> None:
        super().begin(plan)
        self._owned = own(self.path)

    def clear(self) -> None:
        super().clear()
        if self._owned is not None:
            self._owned.close()
