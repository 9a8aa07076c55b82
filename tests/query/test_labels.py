"""What DuckDB calls columns that have no names of their own: asked for together, the same as one by one."""

from __future__ import annotations

import pytest

from mediator.query import vocabulary
from mediator.query.names import Names
from mediator.query.vocabulary import labels
from tests.query.test_functions import catalog

EXPRESSIONS = [
    "year + 1", "upper(title)", "'a''b'", "a.b.c", "CASE WHEN a THEN 2 END", "((1))", "sum(x) FILTER (WHERE y > 1)",
    "nonsense (", "year + 1", "[1, 2][1]", ")", "{'a': 1}", "CAST(a AS INTEGER)",
]  # fmt: skip


def test_together_they_are_what_they_are_one_by_one() -> None:
    single = [labels([expression])[0] for expression in EXPRESSIONS]
    assert labels(EXPRESSIONS) == single
    assert single[:4] == ['("year" + 1)', "upper(title)", "'a''b'", "a.b.c"]
    assert single[7] == "nonsense ("  # what has none keeps its text
    assert labels([]) == []


def test_they_are_asked_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()
    run = vocabulary.run
    monkeypatch.setattr(vocabulary, "run", lambda sql, *a, **k: [asked.append(sql), run(sql, *a, **k)][1])
    found = labels([f"year + {n}" for n in range(3_000)])
    assert found[-1] == '("year" + 2999)'
    assert len(asked) == 1


def test_fresh_names_are_those_that_nothing_has() -> None:
    names = Names(catalog(), "")
    assert [names.fresh("t") for _ in range(3)] == ["t", "t_2", "t_3"]
    assert [names.fresh(wish) for wish in ("T", "t_2", "a.b")] == ["T_4", "t_2_2", "a_b"]
    names.release({"t_2"})
    assert [names.fresh("t") for _ in range(2)] == ["t_2", "t_5"]
