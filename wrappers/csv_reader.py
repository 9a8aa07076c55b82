"""Rows from CSV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pyarrow as pa
import pyarrow.csv as csv
from pydantic import BaseModel, ConfigDict
from pydantic import Field as Declared

from mediator.catalog.model import Field
from mediator.catalog.wrapper import Reply
from mediator.errors import Unreadable
from wrappers.columns import ABSENT, from_text, missing
from wrappers.parsed import Parsed, charset


class CsvReader(BaseModel):
    """A header line, then one line per row. `fields` gives the header of a field where it has another name.

    CSV cannot tell an empty text from none: both are NULL.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["csv"]
    fields: dict[str, str] = {}
    optional: tuple[str, ...] = ()
    delimiter: str = Declared(default=",", min_length=1, max_length=1)

    def parse(self, relation: str, fields: Sequence[Field], reply: Reply) -> Parsed:
        headers = {f.name: self.fields.get(f.name, f.name) for f in fields}
        table = self._table(relation, reply, list(headers.values()))
        columns = []
        for field in fields:
            header = headers[field.name]
            if header in table.column_names:
                columns.append(from_text(relation, field, table.column(header).combine_chunks()))
            elif field.name in self.optional:
                columns.append(pa.nulls(table.num_rows, field.type))
            else:
                raise missing(relation, field, table.column_names)
        return Parsed(tuple(columns), table.num_rows, lambda path: ABSENT)

    def _table(self, relation: str, reply: Reply, headers: list[str]) -> pa.Table:
        try:
            return csv.read_csv(
                pa.BufferReader(reply.body.decode(charset(reply)).encode()),
                read_options=csv.ReadOptions(use_threads=False),
                parse_options=csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
                convert_options=csv.ConvertOptions(
                    column_types=dict.fromkeys(headers, pa.string()),
                    null_values=[""],
                    strings_can_be_null=True,
                ),
            )
        except (pa.ArrowInvalid, UnicodeDecodeError, LookupError) as error:
            raise Unreadable(f"{relation}: not CSV: {error}") from None
