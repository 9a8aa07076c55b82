"""Dates as they stand in headers."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def http_date(text: str | None) -> datetime | None:
    """The moment that a header names; none where it names none. A date without a zone is taken to be UTC."""
    try:
        found = parsedate_to_datetime(text or "")
    except (ValueError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
