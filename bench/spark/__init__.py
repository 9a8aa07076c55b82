"""A query spread over Spark beside Spark's own joins, and beside the local engine: same session, same rows, one run.

Relations lie in Parquet, and all contestants write Parquet, so that what is compared is from file to file. Answers are
verified: as many rows as DuckDB finds, and the same sum over their hashes. Sessions are warm; contestants take turns.

    figure                            of                                                                         bar
    vs_spark_sql                      our time ÷ that of plain batch Spark SQL, five relations                   2.0
    vs_spark_sql_skewed               the same, some orders having many lines and some books in many             2.0
    vs_spark_sql_correlated           the same, where it is told by an order which join drops its lines          2.0
    first_result_vs_spark_sql         our time to the first answers ÷ the end of plain batch Spark SQL           0.3
    first_result_vs_spark_sql_skewed, first_result_vs_spark_sql_correlated                    the same of those
    vs_spark_stream_join              our time ÷ that of Spark's own stream-stream join, two relations           0.4
    vs_spark_stream_join_five         the same of five, with fewer rows: more run out of this memory
    vs_local_small, vs_local_large    our time ÷ that of the local engine, over rows that lie in its memory
    cores_1_to_2                      the time on one core with one slot ÷ that on two with two               >= 1.7
    cores_1_to_2_small                the same with fewer rows: a second of the time is Spark's to begin
    lookups_vs_distinct               lookups that a site was sent ÷ different bindings, several cells asking    1.0
    skew_balance                      rows that the fullest slot is told ÷ the mean, on skewed data
    epoch_overhead_s                  a micro-batch that brings next to nothing
    primed_vs_cold                    requests of a query that has a profile ÷ those of one that knows nothing     < 1

Plain Spark SQL has the settings, of some that are tried beforehand, with which it is fastest; adaptive execution is
one. Spark's own streams keep their state in the HDFS-backed store, which is in memory and the faster one for them, and
are given all that there is in one micro-batch; ours keep it in RocksDB, and give first answers long before the end.
The session has as many cores for all, and as much memory for Java. Our cells, and Spark's when it runs Python, live
beside that.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.result import Result
from bench.spark.scale import Scale

SUMMARY = "queries spread over Spark beside Spark's own joins and the local engine (needs Java)"


def options(parser: argparse.ArgumentParser) -> None:
    scale = Scale()
    parser.add_argument(
        "--rows", type=int, default=scale.rows, help="of all relations (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=scale.rounds, help="of every race")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: whether it runs, not how fast")
    parser.add_argument(
        "--only",
        default="",
        metavar="PART,...",
        help="parts: sql, streams, local, cores, lookups, skew, epochs, primed",
    )


def measure(options: argparse.Namespace) -> Result:
    scale = Scale.quick() if options.quick else Scale(rows=options.rows, rounds=options.rounds)
    return measured(scale, tuple(filter(None, options.only.split(","))))


def measured(scale: Scale, only: tuple[str, ...] = ()) -> Result:
    """Every part that is asked for. Needs pyspark, which is imported only now."""
    import sys

    from bench.spark.parts import PARTS
    from bench.spark.stage import Stage

    if unknown := set(only) - set(PARTS):
        raise SystemExit(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    result = Result("spark")
    with Stage(scale) as stage:
        result.detail |= stage.setting()
        for name, part in PARTS.items():
            if not only or name in only:
                print(f"{name} ...", file=sys.stderr, flush=True)
                part(stage, result)
    return result


def draw(result: Result, file: Path) -> None:
    """Seconds of all contestants, and when our answers came."""
    from bench.drawing import saved, steps

    races = {name: race for name, race in result.curves.items() if name != "answers"}
    with saved(file, 2) as axes:
        names = [f"{race}: {who}" for race, seconds in races.items() for who in seconds]
        axes[0].barh(names, [s for seconds in races.values() for s in seconds.values()])
        axes[0].invert_yaxis()
        axes[0].set(title="seconds, best of all rounds")
        if curves := result.curves.get("answers"):
            steps(axes[1], curves, "Answers, as they come", "rows")
