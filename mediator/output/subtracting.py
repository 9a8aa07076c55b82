"""Rows that were given before are left out, each as often as it was given: the rest of an answer."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b

import pyarrow as pa

from mediator.output.finish import row_keys


class Subtracting:
    """Remembers rows by a digest of each, so that it is small however wide they are."""

    def __init__(self) -> None:
        self._counts: Counter[bytes] = Counter()

    def given(self, batch: pa.RecordBatch) -> None:
        """These were given."""
        self._counts.update(_digests(batch))

    def rest(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Those that were not, or not so often."""
        if not self._counts:
            return batch
        keep = [not self._taken(digest) for digest in _digests(batch)]
        return batch if all(keep) else batch.filter(pa.array(keep, pa.bool_()))

    def _taken(self, digest: bytes) -> bool:
        left = self._counts.get(digest, 0)
        if left == 0:
            return False
        if left == 1:
            del self._counts[digest]
        else:
            self._counts[digest] = left - 1
        return True


def _digests(batch: pa.RecordBatch) -> list[bytes]:
    if not batch.num_rows:
        return []
    if not batch.num_columns:
        return [b""] * batch.num_rows
    return [blake2b(key, digest_size=16).digest() for key in row_keys(pa.Table.from_batches([batch]))]
