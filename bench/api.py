"""Answers over HTTP, as a client has them: the whole way from a scripted source over the server to a socket.

The server runs in a process of its own, as `mediator serve` starts it, with its default limits; so do the source and
the clients, which are bare sockets. All is real HTTP on loopback. Answers are verified: every lookup's row, the end of
every response, and large answers row by row, once.

    figure                    of                                                                            bar
    ttfr_overhead_ms          one client's time to the first row, less the source's latency; the median     10
    rows_per_s_ndjson         a million rows that are held already, from the request to the last byte
    rows_per_s_arrow          the same                                                                      >= 1e6
    ndjson_vs_bare            the same ÷ what a bare application under the same uvicorn sends of these bytes
    arrow_vs_bare             the same
    concurrent_queries        p99 of the time to the first row of 200 clients at once ÷ that of one client    3
    rss_per_query_kb          memory of the server for each of 200 queries that run
    cancel_ms_p99             from a client's leaving to the source's seeing its request abandoned
    event_loop_stall_ms_p99   how late ticks are on the server's loop, in the crowd or while it sends a large answer

The bare application computes nothing: its bytes lie ready, in the same pieces. Between it and us is all that answering
is, from the parsing of the statement on. No query of the crowd asks for what another one has asked for, and the source
bears more requests at once than there are; what limits it is the server's processor time for each query, in the detail.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench import api_bulk, api_latency
from bench.api_stage import Scale, Stage
from bench.result import Result

SUMMARY = "answers over HTTP: first rows, large answers, many clients, memory, and clients that leave"


def options(parser: argparse.ArgumentParser) -> None:
    scale = Scale()
    parser.add_argument("--rows", type=int, default=scale.rows, help="of the large answer")
    parser.add_argument("--clients", type=int, default=scale.clients, help="at once")
    parser.add_argument("--samples", type=int, default=scale.samples, help="queries of one client, by format")
    parser.add_argument(
        "--rounds", type=int, default=scale.rounds, help="contestants in turns, so many times"
    )
    parser.add_argument("--stalled", type=int, default=scale.stalled, help="readers that read no more")


def measure(options: argparse.Namespace) -> Result:
    scale = Scale(
        rows=options.rows,
        clients=options.clients,
        samples=options.samples,
        rounds=options.rounds,
        stalled=options.stalled,
    )
    return measured(scale)


def measured(scale: Scale) -> Result:
    """Memory first: what is measured of it is of a server that has done nothing yet."""
    result = Result("api")
    with Stage(scale) as stage:
        for part in (api_latency.held, api_latency.first_rows, api_latency.crowded):
            part(stage, scale, result)
    with Stage(scale) as stage:
        for part in (api_bulk.throughput, api_bulk.stalls, api_bulk.stalled):
            part(stage, scale, result)
    return result


def draw(result: Result, file: Path) -> None:
    """The time to the first row, by format and in the crowd; and how long large answers take."""
    from bench.drawing import bars, saved, steps

    def shares(named: dict[str, list[float]]) -> dict[str, list[tuple[float, float]]]:
        return {
            name: [(s, (n + 1) / len(values)) for n, s in enumerate(sorted(values))]
            for name, values in named.items()
        }

    with saved(file, 3) as axes:
        steps(axes[0], shares(result.curves["first_row"]), "First row, beyond the source's latency", "share")
        steps(axes[1], shares(result.curves["crowd"]), "First row, alone and in the crowd", "share")
        bars(axes[2], result.curves["seconds"], "A large answer, in seconds")
