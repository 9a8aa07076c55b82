"""How much is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Scale:
    """Rows are those of all relations of a query together. Without rounds there is one, in which all are cold."""

    rows: int = 20_000_000
    rounds: int = 2
    streamed: int = 2_000_000  # where two of Spark's own streams join
    streamed_five: int = 500_000  # and five: with 800,000 they run out of this memory
    small: int = 1_000_000  # beside the local engine
    large: int = 20_000_000
    books: int = 300  # of the site that is looked up at
    epochs: int = 24
    cores: int = 2
    memory: str = "3g"  # of Java

    @classmethod
    def quick(cls) -> Self:
        return cls(
            rows=20_000,
            rounds=0,
            streamed=5_000,
            streamed_five=5_000,
            small=3_000,
            large=6_000,
            books=40,
            epochs=4,
            memory="1g",
        )
