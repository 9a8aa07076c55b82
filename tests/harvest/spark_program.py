"""A harvest in Spark, in a process that a test may kill: FOLDER and the web's address are its arguments."""

from __future__ import annotations

import sys
from pathlib import Path

from pipeline.harvest.tasks import Named, OnSpark
from pipeline.harvest.wanted import Harvest
from pipeline.session import local_session
from tests.harvest.kit import BOOK_TRADE, ISBNS


def main() -> None:
    named = Named([str(BOOK_TRADE)], {"book_trade": sys.argv[2]})
    wanted = Harvest("reviews", Path(sys.argv[1]), ISBNS)
    OnSpark(named, wanted, 2).go(lambda tasks: local_session(tasks))


if __name__ == "__main__":
    main()
