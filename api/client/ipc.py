"""An Arrow IPC stream, read as it arrives: bytes in, batches out as soon as the last byte of each is there. No I/O.

PyArrow's own reader waits for its file, which an event loop must not. So this finds where each message ends, which is
written in front of it, and has PyArrow read whole messages.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pyarrow as pa

_CONTINUES = b"\xff\xff\xff\xff"
_RECORD_BATCH = 3  # of a message's header, in Arrow's `Message.fbs`; 1 is a schema, 2 a dictionary
_HEADER_TYPE, _BODY_LENGTH = 1, 3  # numbers of a message's fields


class NotArrow(ValueError):
    """These bytes are no Arrow stream."""


class Told(NamedTuple):
    """A batch, and what is said with it."""

    batch: pa.RecordBatch
    metadata: Mapping[str, str]


class Decoder:
    """Give it the bytes in any pieces; `schema` is there as soon as it has come, `ended` at the end of the stream."""

    def __init__(self) -> None:
        self.schema: pa.Schema | None = None
        self.ended = False
        self._waiting = bytearray()
        self._before = b""  # the schema and the dictionaries, which every batch is read with

    def feed(self, data: bytes) -> Iterator[Told]:
        """The batches that are whole now."""
        self._waiting += data
        while not self.ended and (message := self._whole_message()) is not None:
            kind, raw = message
            if kind is None:
                self.ended = True
            elif kind == _RECORD_BATCH:
                yield self._batch(raw)
            else:
                self._before += raw
                if self.schema is None:
                    self.schema = pa.ipc.open_stream(self._before).schema

    def _batch(self, raw: bytes) -> Told:
        if self.schema is None:
            raise NotArrow("a batch before its schema")
        reader = pa.ipc.open_stream(self._before + raw)
        batch, metadata = reader.read_next_batch_with_custom_metadata()
        said = {} if metadata is None else {k.decode(): v.decode() for k, v in dict(metadata).items()}
        return Told(batch, said)

    def _whole_message(self) -> tuple[int | None, bytes] | None:
        """The next message and its kind, which is None for the end; None where more has to come."""
        if len(self._waiting) < 8:
            return None
        if self._waiting[:4] != _CONTINUES:
            raise NotArrow("the server's answer is no Arrow stream")
        (length,) = struct.unpack_from("<i", self._waiting, 4)
        if length == 0:
            return None, b""
        if len(self._waiting) < 8 + length:
            return None
        kind, body = _described(bytes(self._waiting[8 : 8 + length]))
        end = 8 + length + body
        if len(self._waiting) < end:
            return None
        raw = bytes(self._waiting[:end])
        del self._waiting[:end]
        return kind, raw


def _described(metadata: bytes) -> tuple[int, int]:
    """What kind of message it is, and how long its body is: two fields of a flatbuffer's table."""
    try:
        (table,) = struct.unpack_from("<I", metadata)
        fields = table - struct.unpack_from("<i", metadata, table)[0]
        (size,) = struct.unpack_from("<H", metadata, fields)

        def read(number: int, form: str) -> int:
            at = 4 + 2 * number
            offset = struct.unpack_from("<H", metadata, fields + at)[0] if at < size else 0
            return int(struct.unpack_from(form, metadata, table + offset)[0]) if offset else 0

        return read(_HEADER_TYPE, "<B"), read(_BODY_LENGTH, "<q")
    except struct.error as error:
        raise NotArrow("the server's answer is no Arrow stream") from error
