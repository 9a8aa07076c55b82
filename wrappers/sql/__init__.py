"""Tables of databases as relations: the declaration, the statements, the reading of their rows."""

from wrappers.sql.dialect import DIALECTS, Dialect
from wrappers.sql.table import Table
from wrappers.sql.wrapper import SqlWrapper

__all__ = ["DIALECTS", "Dialect", "SqlWrapper", "Table"]
