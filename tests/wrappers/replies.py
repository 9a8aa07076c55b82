"""Small replies and fields for the readers' tests."""

import pyarrow as pa

from mediator.catalog.model import Field
from mediator.catalog.wrapper import Reply

ISBN = Field("isbn", pa.string())
YEAR = Field("year", pa.int32())
PRICE = Field("price", pa.float64())
SOLD = Field("sold", pa.bool_())
DAY = Field("day", pa.date32())


def reply(body: str | bytes, type_: str = "text/html; charset=utf-8", status: int = 200) -> Reply:
    return Reply(status, {"Content-Type": type_}, body if isinstance(body, bytes) else body.encode())
