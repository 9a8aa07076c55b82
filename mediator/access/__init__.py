"""Access modules: scans and lookups of sites and databases, for all queries of a process.

The way of an ask: `visit` (a query's door) → `line` (joined while waiting or under way; the most urgent of a `lane`
first, packed) → `desk` (whose turn it is) → `mirrors/race` (which mirror) → `trip` and `walk` (the pages of one
request, and who waits for them) → `fetch` (one page, with its retries) → `limits/gate`, `limiter`, `breaker` (may it
go now) → `web/transport`, or `databases/database` where a statement is sent. Landings and ends come back through `trip`
and `ticket`.
`fresh/` is what sites say of how long their pages hold.

The layers around one request, from the outside in:

1. cache (`eddy/asking`, `state/coverage`): what a SteM covers, and is fresh enough, never comes here
2. budget (`visit`, `purse`): a query that may spend nothing more asks for nothing more
3. single-flight and packing (`line`): a binding is asked for once, whoever wants it
4. breaker (`breaker`): a mirror that is down is left alone, but for one request on probation at a time
5. limiter (`gate`): the source's rate, its own word (`Retry-After`), and as many at once as it bears (`width`); one
   that wants to be left alone for longer than anybody waits is asked nothing until then
6. hedge (`walk`, `race`, `contest`): a late request is sent once more, to another mirror or, where the source allows
   it, to the same one; at most 4 % more requests, 16 % where first rows are wanted; the first reply wins, the others
   are called back
7. robots (`robots`): where the source obeys it, what its robots.txt forbids goes no further
8. deadline (`fetch`): one for all attempts at a page
9. retry (`fetch`, `backoff`): what may pass is asked again, paid for by the source's `budget` (10 % and a trickle);
   each attempt goes through breaker and limiter anew
10. ceilings (`purse`, `daily`): each attempt is charged to the queries that wait for it, just before it is sent
11. validators (`recall`): what was read before is asked for on condition that it has changed; they stand so far inside
    because a tag is one address's word about one request
12. transport, where the source's login (`login`, `oauth`) adds to each hop what shows who asks
"""

from mediator.access.access import Access
from mediator.access.statistics import MethodStatistics, MirrorStatistics, SourceStatistics, Statistics
from mediator.access.visit import Visit
from mediator.access.web.transport import HttpTransport, Transport
from mediator.catalog.ceilings import Ceilings

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
