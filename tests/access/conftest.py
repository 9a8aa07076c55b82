"""Fixtures of several files of this room."""

from __future__ import annotations

import pytest
from long_replies_kit import STRETCH

from mediator.access.web import stretches


@pytest.fixture
def short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "STRETCH", STRETCH)
