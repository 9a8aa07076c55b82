"""The kit that wrappers are made with, and the built-in kinds. Nothing here does I/O."""

from mediator.catalog.secret import Secret
from mediator.catalog.wrapper import Page, Reply, Request
from mediator.errors import (
    Endless,
    Overloaded,
    RateLimited,
    Refused,
    SchemaChanged,
    SourceError,
    TimedOut,
    Unreachable,
    Unreadable,
)
from wrappers.code import Code
from wrappers.code import said as code_failure
from wrappers.coded import CodedWrapper, CodeReader
from wrappers.csv_reader import CsvReader
from wrappers.declared import DeclaredWrapper
from wrappers.graphql import GraphqlQuery, GraphqlReader
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
from wrappers.requesting import Step, get, post
from wrappers.rules import Rule
from wrappers.site_reply import SiteReply
from wrappers.template import Template

__all__ = [
    "Code",
    "CodeReader",
    "CodedWrapper",
    "CsvReader",
    "CursorPages",
    "DeclaredWrapper",
    "Endless",
    "GraphqlQuery",
    "GraphqlReader",
    "HeaderPages",
    "HtmlReader",
    "JsonReader",
    "LinkedPages",
    "NdjsonReader",
    "NumberedPages",
    "OffsetPages",
    "Overloaded",
    "Page",
    "Paging",
    "PagingSpec",
    "ParquetReader",
    "Parsed",
    "RateLimited",
    "Reader",
    "Refused",
    "Reply",
    "Request",
    "Rule",
    "SchemaChanged",
    "Secret",
    "SiteReply",
    "SourceError",
    "Step",
    "Template",
    "TimedOut",
    "Unreachable",
    "Unreadable",
    "code_failure",
    "get",
    "post",
]
