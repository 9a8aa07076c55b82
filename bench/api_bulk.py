"""A large answer: how fast it comes, beside a bare application that sends the same bytes; how long the event loop is
held up meanwhile; what readers cost that read no more."""

from __future__ import annotations

import json
from collections.abc import Callable
from statistics import median

from bench import api_server
from bench.api_child import Child
from bench.api_client import question
from bench.api_reading import ACCEPT
from bench.api_stage import Scale, Stage, quantile, quantiles
from bench.result import Result
from bench.ticking import Elsewhere, ticks_during

SQL = "SELECT k, price, title FROM large"
FORMATS = ("ndjson", "arrow")
_AS_LARGE = 0.99  # as the answer that was verified: times and progress differ by some bytes


def throughput(stage: Stage, scale: Scale, result: Result) -> None:
    """The first answer comes from the source, and is verified; those after it out of what is stored."""
    prepared = {f: stage.client.ask("verify", stage.port, SQL, f, scale.rows) for f in FORMATS}
    came = stage.site.ask("look").requests
    with Child(api_server.serve_bare, {ACCEPT[f]: pieces for f, pieces in prepared.items()}) as bare:
        port = bare.hear()
        for format_ in FORMATS:
            size = sum(map(len, prepared[format_]))
            _raced(stage, bare, port, format_, int(_AS_LARGE * size), scale, result)
            result.detail[format_] |= {"pieces": len(prepared[format_]), "mb": round(size / 2**20, 1)}
    if stage.site.ask("look").requests != came:
        raise RuntimeError("the source was asked again: what it has was not held")


def stalls(stage: Stage, scale: Scale, result: Result) -> None:
    """The event loop's delay while large answers are sent; the worse of this and of the crowd is the figure."""
    with Elsewhere(ticks_during, stage.tick) as elsewhere:
        late = {}
        for format_ in FORMATS:
            with stage.ticking() as ticks:
                for _ in range(scale.rounds):
                    stage.client.ask("drain", stage.port, SQL, format_, scale.rows)
            late[format_] = ticks
    worst = max(1_000 * quantile(ticks, 0.99) for ticks in late.values())
    result.figures["event_loop_stall_ms_p99"] = max(worst, result.figures.get("event_loop_stall_ms_p99", 0.0))
    told = {f"{f}_ms": quantiles(ticks) for f, ticks in late.items()}
    result.detail.setdefault("event_loop_stall", {})["large_answers"] = {
        **told,
        "elsewhere_ms": quantiles(elsewhere.found),
    }


def stalled(stage: Stage, scale: Scale, result: Result) -> None:
    """Readers of one answer that is kept, and readers of a query of their own each, that take nothing any more."""
    begun = json.loads(stage.got("/v1/queries", json.dumps({"sql": SQL}).encode()))
    stage.until(lambda: _status(stage, begun["id"]) == "complete", "the answer is kept")
    kept = (
        f"GET {begun['links']['results']} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: {ACCEPT['ndjson']}\r\n\r\n"
    )
    told = {}
    for name, request in (("of_one_kept_answer", kept.encode()), ("of_their_own", question(SQL, "ndjson"))):
        before = stage.server.settled()
        stage.client.ask("hold", stage.port, [request] * scale.stalled)
        after = stage.server.settled()
        if stage.gauge("mediator_readers") != scale.stalled:
            raise RuntimeError("readers are gone that should still be stalled")
        told[f"{name}_kb"] = round((after - before) / scale.stalled / 1024, 1)
        stage.client.ask("leave", scale.stalled, True)
        stage.until(lambda: stage.gauge("mediator_readers") == 0, "readers have left")
        left = (stage.server.settled() - before) / scale.stalled / 1024
        told[f"{name}_left_afterwards_kb"] = round(left, 1)
    result.detail["stalled_readers"] = {"readers": scale.stalled, **told}


def _raced(
    stage: Stage, bare: Child, port: int, format_: str, size: int, scale: Scale, result: Result
) -> None:
    """Ours and the bare application in turns."""

    def ours() -> float:
        return float(stage.client.ask("drain", stage.port, SQL, format_, scale.rows, size))

    def theirs() -> float:
        return float(stage.client.ask("drain", port, SQL, format_, scale.rows, size))

    seconds: dict[Callable[[], float], list[float]] = {ours: [], theirs: []}
    cpu = {ours: 0.0, theirs: 0.0}
    processes = {ours: stage.server, theirs: bare}
    for turn in range(scale.rounds):
        for contestant in (ours, theirs) if turn % 2 == 0 else (theirs, ours):
            before = processes[contestant].cpu
            seconds[contestant].append(contestant())
            cpu[contestant] += processes[contestant].cpu - before
    mine, rival = seconds[ours], seconds[theirs]
    result.figures[f"rows_per_s_{format_}"] = scale.rows / median(mine)
    result.figures[f"{format_}_vs_bare"] = median(b / m for m, b in zip(mine, rival, strict=True))
    result.curves.setdefault("seconds", {})[format_] = {"ours": median(mine), "bare": median(rival)}
    result.detail[format_] = {
        "rows": scale.rows,
        "seconds": [round(s, 3) for s in mine],
        "bare_seconds": [round(s, 3) for s in rival],
        "server_cpu_s": round(cpu[ours] / scale.rounds, 3),
        "bare_cpu_s": round(cpu[theirs] / scale.rounds, 3),
        "limit_is": "the server's processor time: no source is asked, and the client only counts",
    }


def _status(stage: Stage, id_: str) -> str:
    return str(json.loads(stage.got(f"/v1/queries/{id_}"))["status"])
