"""What a client makes of the bytes of a response, however few of them there are yet."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa

from bench.api_site import SCHEMA

ACCEPT = {
    "ndjson": "application/x-ndjson",
    "sse": "text/event-stream",
    "arrow": "application/vnd.apache.arrow.stream",
}
_LAST = b"\r\n0\r\n\r\n"


def pieces_of(raw: bytes) -> list[bytes]:
    """The body, in the pieces in which it was sent; one that is not whole yet is left out."""
    head, _, _ = raw.partition(b"\r\n\r\n")
    at, found = len(head) + 4, []
    while (end := raw.find(b"\r\n", at)) >= 0:
        size = int(raw[at:end], 16)
        at = end + 2 + size + 2
        if not size or at > len(raw):
            break
        found.append(raw[end + 2 : at - 2])
    return found


def rows_of(format_: str, body: bytes) -> list[tuple[object, ...]]:
    """The rows of which all has come."""
    if format_ == "arrow":
        return [row for batch in batches_of(body) for row in zip(*batch.to_pydict().values(), strict=True)]
    return [tuple(row.values()) for record in records_of(format_, body) for row in record.get("rows", ())]


def records_of(format_: str, body: bytes) -> Iterator[dict[str, list[dict[str, object]]]]:
    """Those that tell answers."""
    mark = b"\n" if format_ == "ndjson" else b"\n\n"
    for text in body.split(mark)[:-1]:  # what stands behind the last one is not whole
        record = json.loads(text.partition(b"data: ")[2] if format_ == "sse" else text)
        if record["type"] == "rows":
            yield record


def batches_of(body: bytes) -> Iterator[pa.RecordBatch]:
    try:
        yield from pa.ipc.open_stream(body)
    except (pa.ArrowInvalid, OSError):
        return  # the rest has not come yet


def table_of(format_: str, body: bytes) -> pa.Table:
    """A large answer."""
    if format_ == "arrow":
        return pa.Table.from_batches(batches_of(body), SCHEMA)
    records = records_of(format_, body)
    return pa.Table.from_batches((pa.RecordBatch.from_pylist(r["rows"], SCHEMA) for r in records), SCHEMA)


def check_end(tail: bytes, rows: int | None = None) -> None:
    """Raises where a response does not end as that of a query that was answered completely, with so many rows."""
    wanted = [b'"status":"complete"', *([] if rows is None else [b'"rows":%d' % rows])]
    if not tail.endswith(_LAST) or not all(one in tail for one in wanted):
        raise RuntimeError(f"not a whole answer, which ends in {tail[-400:]!r}")
