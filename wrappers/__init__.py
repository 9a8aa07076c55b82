"""The kit that wrappers are made with, and the built-in kinds. Nothing here does I/O."""

from wrappers.csv_reader import CsvReader
from wrappers.declared import DeclaredWrapper
from wrappers.html_reader import HtmlReader
from wrappers.json_reader import JsonReader
from wrappers.ndjson_reader import NdjsonReader
from wrappers.paging import (
    CursorPages,
    HeaderPages,
    LinkedPages,
    NumberedPages,
    OffsetPages,
    Paging,
    PagingSpec,
)
from wrappers.parquet_reader import ParquetReader
from wrappers.parsed import Parsed, Reader
from wrappers.rules import Rule
from wrappers.template import Template

__all__ = [
    "CsvReader",
    "CursorPages",
    "DeclaredWrapper",
    "HeaderPages",
    "HtmlReader",
    "JsonReader",
    "LinkedPages",
    "NdjsonReader",
    "NumberedPages",
    "OffsetPages",
    "Paging",
    "PagingSpec",
    "ParquetReader",
    "Parsed",
    "Reader",
    "Rule",
    "Template",
]
