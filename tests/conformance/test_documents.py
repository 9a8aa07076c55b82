"""What the documents say of the suite is so."""

from __future__ import annotations

import re
from pathlib import Path

import sources
from wrappers.conformance import CHECKS, DECLARATION

_PAGE = Path(__file__).parents[2] / "docs" / "checking-a-wrapper.md"


def test_every_check_is_described_once_and_in_order_of_the_page() -> None:
    told = re.findall(r"^\| `([a-z-]+)` \|", _PAGE.read_text(), re.MULTILINE)
    assert sorted(told) == sorted([DECLARATION.name, *(check.name for check in CHECKS)])


def test_a_check_says_what_it_promises_and_what_to_do() -> None:
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names)
    for check in CHECKS:
        assert check.promise
        assert check.remedy
        assert check.promise[0].islower() or check.promise.startswith("EOT")
        assert set(check.after) <= set(names)
        assert check.name not in check.after


def test_the_example_can_be_loaded(tmp_path: Path) -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", _PAGE.read_text(), re.DOTALL)
    (tmp_path / "shop.yaml").write_text(block)
    method = sources.load(tmp_path / "shop.yaml").relations["offers"].method("by_isbn")
    assert [e["isbn"] for e in method.examples] == ["9780141439518", "9780141439587"]
