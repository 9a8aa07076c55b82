"""Rows from CSV."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal

import pyarrow as pa
import pyarrow.csv as csv
from pydantic import BaseModel, ConfigDict
from pydantic import Field as Declared

from mediator.catalog.model import Field
from mediator.catalog.wrapper import Cutter, Reply
from mediator.errors import SchemaChanged, Unreadable
from wrappers.columns import ABSENT, from_text, missing
from wrappers.cutting import Table, in_bytes
from wrappers.parsed import Parsed, charset, decoded

_MOST_COLUMNS = 2_000
_BLOCK = 1 << 20


class CsvReader(BaseModel):
    """A header line, then one line per row. `fields` gives the header of a field where it has another name.

    CSV cannot tell an empty text from none: both are NULL.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["csv"] = "csv"
    fields: dict[str, str] = {}
    optional: tuple[str, ...] = ()
    delimiter: str = Declared(default=",", min_length=1, max_length=1)

    def parse(self, relation: str, fields: Sequence[Field], reply: Reply) -> Parsed:
        headers = {f.name: self.fields.get(f.name, f.name) for f in fields}
        table = self._table(relation, reply, list(headers.values()))
        columns = []
        for field in fields:
            header = headers[field.name]
            if (times := table.column_names.count(header)) > 1:
                raise SchemaChanged(f"{relation}.{field.name}: {times} columns have the header {header!r}")
            if times:
                columns.append(from_text(relation, field, table.column(header).combine_chunks()))
            elif field.name in self.optional:
                columns.append(pa.nulls(table.num_rows, field.type))
            else:
                raise missing(relation, field, table.column_names)
        return Parsed(tuple(columns), table.num_rows, lambda path: ABSENT)

    def look(self, reply: Reply, path: str) -> object:
        return ABSENT

    def cutter(self, headers: Mapping[str, str]) -> Cutter | None:
        return Table(self.delimiter) if in_bytes(headers) and self.delimiter.isascii() else None

    def _table(self, relation: str, reply: Reply, headers: list[str]) -> pa.Table:
        what = f"{relation}: not CSV"
        text = decoded(what, reply.body, charset(reply) or "utf-8")
        self._check(what, text)
        # Arrow takes a line without an end for no header.
        data = (text if text.endswith(("\n", "\r")) or not text else f"{text}\n").encode("utf-8", "replace")
        try:
            return csv.read_csv(
                pa.BufferReader(data),
                read_options=csv.ReadOptions(use_threads=False, block_size=max(_BLOCK, len(data) + 1)),
                parse_options=csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
                convert_options=csv.ConvertOptions(
                    column_types=dict.fromkeys(headers, pa.string()),
                    null_values=[""],
                    strings_can_be_null=True,
                ),
            )
        except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
            raise Unreadable(f"{what}: {str(error)[:200]}") from None

    def _check(self, what: str, text: str) -> None:
        """What Arrow would take for data, or choke on."""
        if "\0" in text:
            raise Unreadable(f"{what}: there are NULs in it")
        if re.split("[\r\n]", text, maxsplit=1)[0].count(self.delimiter) >= _MOST_COLUMNS:
            raise Unreadable(f"{what}: more than {_MOST_COLUMNS:,} columns")
        sound = _quotations(self.delimiter).match(text) if '"' in text else None
        if sound is not None and (end := sound.end()) < len(text):
            line = text.count("\n", 0, end) + 1
            raise Unreadable(f"{what}: the quotation that begins in line {line} does not end as it should")


@lru_cache
def _quotations(delimiter: str) -> re.Pattern[str]:
    """As much of a text as has only quotations that begin and end with a value. It always matches."""
    after = re.escape(delimiter) + r"\r\n"
    quoted = rf'"[^"]*+(?:""[^"]*+)*+"(?=[{after}]|\Z)'
    return re.compile(rf'\ufeff?(?:{quoted}|[^"{after}][^{after}]*+|[{after}]++)*+')
