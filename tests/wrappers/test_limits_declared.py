"""What a declaration says of limits and of what to expect."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mediator.catalog.ceilings import NO_CEILINGS, Ceilings
from mediator.catalog.model import Catalog
from mediator.errors import CatalogError
from sources import load
from sources.limits import size_of

TEXT = """\
sources:
  shop:
    base: https://shop.example
    {source}
relations:
  offers:
    {relation}
    fields: {{isbn: string, price: float64}}
    methods:
      by_isbn:
        mirrors: [shop]
        required: [isbn]
        {method}
        request: {{path: /offers, query: {{isbn: "{{isbn}}"}}}}
        reply: {{kind: json}}
"""


def loaded(folder: Path, source: str = "", relation: str = "", method: str = "") -> Catalog:
    path = folder / "shop.yaml"
    path.write_text(TEXT.format(source=source, relation=relation, method=method))
    return load(path)


def test_ceilings_and_a_daily_budget(tmp_path: Path) -> None:
    shop = loaded(tmp_path, "per_query: {calls: 100, bytes: 10MB, seconds: 20}\n    daily: 1000").sources[
        "shop"
    ]
    assert shop.per_query == Ceilings(100, 10_000_000, 20.0)
    assert shop.daily == 1_000


def test_left_out_there_are_none(tmp_path: Path) -> None:
    catalog = loaded(tmp_path)
    assert catalog.sources["shop"].per_query == NO_CEILINGS
    assert catalog.sources["shop"].daily is None
    assert catalog.relations["offers"].rows is None
    assert catalog.relations["offers"].method("by_isbn").rows_per_lookup is None


def test_what_to_expect(tmp_path: Path) -> None:
    offers = loaded(tmp_path, relation="rows: 40000", method="rows_per_lookup: 2.5").relations["offers"]
    assert offers.rows == 40_000
    assert offers.method("by_isbn").rows_per_lookup == 2.5


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("daily: 0", "greater than 0"),
        ("daily: often", "valid integer"),
        ("per_query: {calls: 0}", "greater than 0"),
        ("per_query: {call: 5}", "did you mean 'calls'?"),
        ("per_query: {bytes: 10 pounds}", "expected a number of bytes: 500000, 500kB, 10MB or 1GiB"),
        ("per_query: {bytes: 0}", "greater than 0"),
        ("per_query: {seconds: -1}", "greater than 0"),
        ("per_query: 5", "per_query"),
    ],
)
def test_what_cannot_be_meant_is_told_with_line_and_field(tmp_path: Path, source: str, said: str) -> None:
    with pytest.raises(CatalogError, match=r"shop\.yaml:4") as told:
        loaded(tmp_path, source)
    assert said in str(told.value)


@pytest.mark.parametrize(
    ("text", "size"),
    [("500", 500), ("64 kB", 64_000), ("10MB", 10**7), ("1.5 GiB", 3 << 29), ("2k", 2_000), ("1KiB", 1_024)],
)
def test_sizes(text: str, size: int) -> None:
    assert size_of(text) == size


@given(st.text(max_size=8))
def test_a_size_is_a_number_or_an_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert size_of(text) >= 0
