"""The kit that wrappers are made with, and the built-in kinds. Nothing here does I/O."""

from wrappers.csv_reader import CsvReader
from wrappers.declared import DeclaredWrapper
from wrappers.html_reader import HtmlReader
from wrappers.json_reader import JsonReader
from wrappers.paging import LinkedPages, NumberedPages, Paging
from wrappers.parsed import Parsed, Reader
from wrappers.template import Template

__all__ = [
    "CsvReader",
    "DeclaredWrapper",
    "HtmlReader",
    "JsonReader",
    "LinkedPages",
    "NumberedPages",
    "Paging",
    "Parsed",
    "Reader",
    "Template",
]
