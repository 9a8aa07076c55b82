"""Small answers: the time to their first row, alone and in a crowd; what a query that runs takes of memory; how soon a
source is left alone when a client has gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, islice
from statistics import median
from time import monotonic, sleep

from bench.api_client import Answered, Asked, lookup
from bench.api_reading import ACCEPT
from bench.api_stage import Scale, Stage, quantile, quantiles
from bench.result import Result
from bench.ticking import Elsewhere, ticks_during

_WARM = 5  # queries before anything counts
_PACE = 0.01  # seconds between two clients that leave


def held(stage: Stage, scale: Scale, result: Result) -> None:
    """So many queries run, and then their clients leave. Of a server that has run only a few before."""
    keys = count(1)
    stage.client.ask("crowd", stage.port, [[Asked("quick", next(keys))] * _WARM])
    none = stage.server.settled()
    running = _held(stage, scale.clients, keys)
    some = stage.server.settled()
    one_by_one = _left(stage, running, at_once=False)
    again = _held(stage, scale.clients, keys)
    at_once = _left(stage, again, at_once=True)
    result.figures["rss_per_query_kb"] = (some - none) / len(running) / 1024
    result.figures["cancel_ms_p99"] = 1_000 * quantile(one_by_one, 0.99)
    result.detail["rss_per_query"] = {
        "queries": len(running),
        "server_mb": round(none / 2**20, 1),
        "left_afterwards_kb": round((stage.server.settled() - none) / len(running) / 1024, 1),
    }
    result.detail["cancel"] = {
        "one_by_one_ms": quantiles(one_by_one),
        "all_at_once_ms": quantiles(at_once),
        "clients": f"{len(one_by_one)}; every other one breaks the connection off, the others close it",
    }


def first_rows(stage: Stage, scale: Scale, result: Result) -> None:
    """One client: each format in turns."""
    stage.site.ask("anew")
    keys = count(1_000)
    asked = [Asked("quick", next(keys), f) for _ in range(scale.samples) for f in ACCEPT]
    answers = _answers(stage.client.ask("crowd", stage.port, [asked]))
    book = stage.site.ask("anew")
    _check(len(asked), len(book.came))
    direct = stage.client.ask("direct", stage.site_port, f"/after/{scale.quick}/at?k=1", scale.samples)
    over = {
        f: [a.first_row - scale.quick for a, q in zip(answers, asked, strict=True) if q.format == f]
        for f in ACCEPT
    }
    result.curves["first_row"] = over
    result.figures["ttfr_overhead_ms"] = 1_000 * median(over["ndjson"])
    result.detail["ttfr_overhead"] = {
        "source_ms": 1_000 * scale.quick,
        "over_ms": {f: quantiles(seconds) for f, seconds in over.items()},
        "source_alone_over_ms": quantiles([seconds - scale.quick for seconds in direct]),
        "lookups": len(book.came),
    }


def crowded(stage: Stage, scale: Scale, result: Result) -> None:
    """One client alone, and all at once; then all once more, while the event loop's delay is measured."""
    keys = count(1_000_000)
    alone = _answers(stage.client.ask("crowd", stage.port, [_asked(keys, scale.alone)]))
    stage.site.ask("anew")
    memory = stage.server.settled()
    before, began = stage.server.cpu, monotonic()
    together = stage.client.ask("crowd", stage.port, _crowd(keys, scale))
    took, cpu = monotonic() - began, stage.server.cpu - before
    answers = _answers(together)
    _check(len(answers), len(stage.site.ask("anew").came))
    ended = (stage.server.settled() - memory) / len(answers)
    with Elsewhere(ticks_during, stage.tick) as elsewhere, stage.ticking() as late:
        stage.client.ask("crowd", stage.port, _crowd(keys, scale))
    one, firsts = median(a.first_row for a in alone), [a.first_row for a in answers]
    result.curves["crowd"] = {"one client": [a.first_row for a in alone], f"{scale.clients} clients": firsts}
    result.figures["concurrent_queries"] = quantile(firsts, 0.99) / one
    result.figures["event_loop_stall_ms_p99"] = 1_000 * quantile(late, 0.99)
    result.detail["concurrent_queries"] = {
        "clients": scale.clients,
        "queries": len(answers),
        "source_ms": 1_000 * scale.slow,
        "one_client_ms": quantiles([a.first_row for a in alone]),
        "all_clients_ms": quantiles(firsts),
        "their_first_queries_ms": quantiles([walked[0].first_row for walked in together]),
        "queries_per_s": round(len(answers) / took, 1),
        "server_cpu_ms_per_query": round(1_000 * cpu / len(answers), 3),
        "limit_is": "the server's processor time for each query, of which one core has so much",
        "kept_of_an_ended_query_kb": round(ended / 1024, 1),
    }
    result.detail["event_loop_stall"] = {
        "in_the_crowd_ms": quantiles(late),
        "elsewhere_ms": quantiles(elsewhere.found),
    }


def _asked(keys: Iterator[int], number: int) -> list[Asked]:
    """No two queries ask for the same: what is held is not asked again."""
    return [Asked("slow", key) for key in islice(keys, number)]


def _crowd(keys: Iterator[int], scale: Scale) -> list[list[Asked]]:
    return [_asked(keys, scale.each) for _ in range(scale.clients)]


def _held(stage: Stage, number: int, keys: Iterator[int]) -> list[int]:
    """The keys of so many queries that run: the source has been asked for all of them."""
    stage.site.ask("anew")
    found = list(islice(keys, number))
    stage.client.ask("hold", stage.port, [lookup(Asked("held", key)) for key in found])
    stage.until(lambda: len(stage.site.ask("look").came) == number, "the source has been asked")
    stage.until(lambda: stage.gauge("mediator_readers") == number, "all clients are being answered")
    return found


def _left(stage: Stage, keys: Sequence[int], *, at_once: bool) -> list[float]:
    """Seconds from each client's end to its source's knowing."""
    left: list[float] = []
    if at_once:
        left += stage.client.ask("leave", len(keys), False)
    while len(left) < len(keys):
        left += stage.client.ask("leave", 1, bool(len(left) % 2))
        sleep(_PACE)
    stage.until(lambda: len(stage.site.ask("look").left) == len(keys), "the source has been left alone")
    known: dict[int, float] = stage.site.ask("look").left
    return [known[key] - at for key, at in zip(keys, left, strict=True)]


def _answers(walked: list[list[Answered]]) -> list[Answered]:
    return [answer for answers in walked for answer in answers]


def _check(wanted: int, came: int) -> None:
    if came != wanted:
        raise RuntimeError(f"{wanted} lookups were to be done, and the source has seen {came}")
