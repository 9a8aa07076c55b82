"""A user's streaming program: `python -m tests.pipeline.stream_program FOLDER OPTIONS`. Tests kill what it runs on.

Each micro-batch goes to a file that is named by its id, so that one that is done again says the same once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from pipeline.session import local_session


def main(folder: Path, options: dict[str, str]) -> None:
    out = folder / "out"
    out.mkdir(exist_ok=True)

    def keep(frame: DataFrame, batch: int) -> None:
        found = sorted(json.dumps(row.asDict()) for row in frame.collect())
        target = out / f"{batch:06d}.json"
        if target.exists() and json.loads(target.read_text(encoding="utf-8")) != found:
            print(f"batch {batch} is not what it was", flush=True)
        new = out / f".{batch:06d}.new"
        new.write_text(json.dumps(found), encoding="utf-8")
        new.replace(target)

    with local_session(cores=1) as spark:
        frame = spark.readStream.format("mediator").options(**options).load()
        query = (
            frame.writeStream.foreachBatch(keep)
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        print("started", flush=True)
        try:
            query.awaitTermination()
        except PySparkException as error:
            print(error, file=sys.stderr, flush=True)  # while there is a Java that can tell it
            raise
    print("ended", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
