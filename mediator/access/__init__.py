"""Access modules: scans and lookups of sites and databases, for all queries of a process.

The way of an ask: `visit` (a query's door) → `line` (joined while waiting or under way, packed) → `desk`
(whose turn it is) → `race` (which mirror) → `trip` and `walk` (the pages of one request, and who waits for
them) → `fetch` (one page, with its retries) → `gate`, `limiter`, `breaker` (may it go now) → `transport`,
or `database` where a statement is sent. Landings and ends come back through `trip` and `ticket`.

The layers around one request, from the outside in:

1. single-flight and packing (`line`): a binding is asked for once, whoever wants it
2. breaker (`breaker`): a mirror that is down is left alone, but for one request on probation at a time
3. limiter (`gate`): the source's rate, its own word (`Retry-After`), and as many at once as it bears (`width`)
4. hedge (`walk`, `race`, `contest`): a late request is sent once more, to another mirror or, where the source allows
   it, to the same one; at most 4 % more requests, the first reply wins, the others are called back
5. deadline (`fetch`): one for all attempts at a page
6. retry (`fetch`, `backoff`): what may pass is asked again, paid for by the source's `budget` (10 % and a trickle);
   each attempt goes through breaker and limiter anew
7. ceilings (`purse`): each attempt is charged to the queries that wait for it, just before it is sent
8. transport
"""

from mediator.access.access import Access
from mediator.access.purse import Ceilings
from mediator.access.statistics import MethodStatistics, MirrorStatistics, SourceStatistics, Statistics
from mediator.access.transport import HttpTransport, Transport
from mediator.access.visit import Visit

__all__ = [
    "Access",
    "Ceilings",
    "HttpTransport",
    "MethodStatistics",
    "MirrorStatistics",
    "SourceStatistics",
    "Statistics",
    "Transport",
    "Visit",
]
