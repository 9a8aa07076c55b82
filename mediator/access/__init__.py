"""Access modules: scans and lookups over HTTP, for all queries of a process.

The way of an ask: `visit` (a query's door) → `line` (joined while waiting or under way, packed) → `desk`
(whose turn it is) → `race` (which mirror) → `trip` and `walk` (the pages of one request, and who waits for
them) → `fetch` (one page, with its retries) → `gate`, `limiter`, `breaker` (may it go now) → `transport`.
Landings and ends come back through `trip` and `ticket`.
"""

from mediator.access.access import Access
from mediator.access.statistics import MethodStatistics, MirrorStatistics, SourceStatistics, Statistics
from mediator.access.transport import HttpTransport, Transport
from mediator.access.visit import Visit

__all__ = [
    "Access",
    "HttpTransport",
    "MethodStatistics",
    "MirrorStatistics",
    "SourceStatistics",
    "Statistics",
    "Transport",
    "Visit",
]
