"""What a condition says of a column: enough to ask a site by, and never more than DuckDB means by it."""

from __future__ import annotations

import datetime
from functools import cache

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from mediator.errors import QueryError
from mediator.query.bounded import bound_for
from mediator.query.model import Block, BlockStage
from mediator.query.understand import understand

KINDS = {
    "n": pa.int64(),
    "m": pa.int32(),
    "f": pa.float64(),
    "s": pa.string(),
    "d": pa.date32(),
    "t": pa.timestamp("us"),
    "c": pa.decimal128(6, 2),
}
OPERATORS = ("<", "<=", ">", ">=")
NAMES = [*(f"{k}{o}" for k in KINDS for o in OPERATORS), "s^="]
_METHOD = AccessMethod("way", "scan", (Mirror("site", ""),), None, optional=tuple(NAMES))
CATALOG = Catalog(
    {n: Relation(n, tuple(Field(k, t) for k, t in KINDS.items()), (_METHOD,)) for n in ("r", "q")},
    {"site": Source("site")},
)


def block(sql: str) -> Block:
    return next(s.block for s in understand(sql, CATALOG).stages if isinstance(s, BlockStage))


def said(condition: str, alias: int = 0, frm: str = "r") -> dict[str, object]:
    """Every bound that follows from a condition."""
    found = block(f"SELECT r.n FROM {frm} WHERE {condition}")
    return {name: v for name in NAMES if (v := bound_for(found, alias, name)) is not None}


@pytest.mark.parametrize(
    ("condition", "bounds"),
    [
        ("n < 5", {"n<": 5, "n<=": 5}),
        ("n <= 5", {"n<": 6, "n<=": 5}),
        ("5 < n", {"n>": 5, "n>=": 5}),
        ("n = 5", {"n<": 6, "n<=": 5, "n>": 4, "n>=": 5}),
        ("n < 5.5 AND n > 4.5", {"n<": 6, "n<=": 5, "n>": 4, "n>=": 5}),
        ("n > -5", {"n>": -5, "n>=": -5}),
        ("n < 5 AND n < 3 AND n <= 4", {"n<": 3, "n<=": 3}),
        ("n BETWEEN 2 AND 4", {"n<": 5, "n<=": 4, "n>": 1, "n>=": 2}),
        ("n IN (7, 3, 5)", {"n<": 8, "n<=": 7, "n>": 2, "n>=": 3}),
        ("f < 5", {"f<": 5.0, "f<=": 5.0}),
        ("f <= 0.1", {"f<=": 0.1}),
        ("s >= 'b'", {"s>=": "b"}),
        ("s LIKE 'ab%c'", {"s^=": "ab"}),
        ("s LIKE 'ab'", {"s^=": "ab"}),
        ("s LIKE 'a_b'", {"s^=": "a"}),
        ("s LIKE 'ab%' AND s LIKE 'abc%'", {"s^=": "abc"}),
        ("starts_with(s, 'ab')", {"s^=": "ab"}),
        ("s ^@ 'ab'", {"s^=": "ab"}),
        ("s = 'ab'", {"s^=": "ab", "s<=": "ab", "s>=": "ab"}),
        ("d < '2024-02-01'", {"d<": datetime.date(2024, 2, 1), "d<=": datetime.date(2024, 2, 1)}),
        ("d <= DATE '2024-02-01'", {"d<": datetime.date(2024, 2, 2), "d<=": datetime.date(2024, 2, 1)}),
        ("t >= DATE '2024-02-01'", {"t>=": datetime.datetime(2024, 2, 1)}),
        ("n < 5 + 1", {"n<": 6, "n<=": 6}),
        # What says nothing, or not enough.
        ("n < 5 OR n > 7", {}),
        ("NOT (n < 5)", {}),
        ("n < NULL", {}),
        ("n <> 5", {}),
        ("n IS NOT NULL", {}),
        ("n + 1 < 5", {}),
        ("n < 5e0", {}),  # compared as floats, in which large numbers are equal that are not
        ("n < 1e30", {}),
        ("f < 'nan'::DOUBLE", {}),
        ("s LIKE '%ab'", {}),
        ("s LIKE ''", {}),
        ("s NOT LIKE 'ab%'", {}),
        ("s ILIKE 'ab%'", {}),
        ("s LIKE 'ab!%' ESCAPE '!'", {}),
        ("d < TIMESTAMP '2024-02-01 12:00:00'", {}),
        ("t < TIMESTAMPTZ '2024-02-01 12:00:00+02'", {}),
        ("random() < 0.5", {}),
    ],
)  # fmt: skip
def test_what_follows_from_a_condition(condition: str, bounds: dict[str, object]) -> None:
    assert said(condition) == bounds


def test_bounds_pass_along_equalities() -> None:
    assert said("r.n = q.n AND q.n > 5", frm="r, q") == {"n>": 5, "n>=": 5}
    assert said("r.n = q.n AND q.n > 5", alias=1, frm="r, q") == {"n>": 5, "n>=": 5}
    assert said("r.n < q.n AND q.n < 5", frm="r, q") == {}


def test_a_bound_that_a_narrower_type_cannot_hold_is_none() -> None:
    assert said("r.m = q.n AND q.n < 3000000000", frm="r, q") == {}
    assert said("r.m = q.n AND q.n < 30", frm="r, q") == {"m<": 30, "m<=": 30}


def test_each_alias_has_its_own() -> None:
    found = block("SELECT a.n FROM r a, r b WHERE a.s = b.s AND a.n < 5 AND b.n < 7")
    assert (bound_for(found, 0, "n<"), bound_for(found, 1, "n<")) == (5, 7)


_NUMBERS = ("0", "1", "-1", "2.5", "-2.5", "3.0", "9223372036854775807", "2147483648", "1e3", "0.1", "1e300")
_CONSTANTS = {
    **dict.fromkeys("nmfc", (*_NUMBERS, "'1'", "'2.5'", "true", "1::UTINYINT", "1.5::FLOAT", "'inf'::DOUBLE")),
    "s": ("''", "'a'", "'Ab'", "'ab'", "'a%b'", "'é'", "'😀'", "'zz'"),
    "d": ("'2024-02-01'", "DATE '2024-01-31' + 1", "TIMESTAMP '2024-02-01'", "TIMESTAMP '2024-02-01 05:00:00'"),
    "t": ("'2024-02-01'", "DATE '2024-02-01'", "TIMESTAMP '2024-02-01 05:00:00'", "'2024-02-01 05:00:00.000001'"),
}  # fmt: skip

# Each with what it is read as: DuckDB would compare all that stands in a list as one type, the engine one by one.
FORMS = (
    ("{k} {o} {a}", "{k} {o} {a}"),
    ("{a} {o} {k}", "{a} {o} {k}"),
    ("{k} BETWEEN {a} AND {b}", "{k} >= {a} AND {k} <= {b}"),
    ("{k} IN ({a}, {b})", "{k} = {a} OR {k} = {b}"),
    ("{k} = {a}", "{k} = {a}"),
    ("{k} LIKE {a}", "{k} LIKE {a}"),
)


@settings(max_examples=300)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    form=st.sampled_from(FORMS),
    operator=st.sampled_from(OPERATORS),
    data=st.data(),
)
def test_no_row_that_meets_a_condition_is_outside_of_what_is_said_of_it(
    kind: str, form: tuple[str, str], operator: str, data: st.DataObject
) -> None:
    first, second = (data.draw(st.sampled_from(_CONSTANTS[kind])) for _ in range(2))
    condition, meaning = (f.format(k=kind, o=operator, a=first, b=second) for f in form)
    try:
        bounds = said(condition)
    except QueryError:
        return
    for name, value in bounds.items():
        how = name.removeprefix(kind)
        met = f"starts_with({kind}, ?)" if how == "^=" else f"{kind} {how} ?"
        lost = _oracle().execute(f"SELECT {kind} FROM v WHERE ({meaning}) AND ({met}) IS NOT TRUE", [value])
        assert lost.fetchall() == [], f"{condition} does not mean {name} {value!r}"


@cache
def _oracle() -> duckdb.DuckDBPyConnection:
    """Every kind of value that a bound might lose."""
    numbers = "(0), (1), (-1), (2), (3), (1000), (2147483647), (-2147483648), (NULL)"
    connection = duckdb.connect(config={"threads": 1})
    connection.execute(f"CREATE TABLE numbers AS SELECT * FROM (VALUES {numbers}) AS v(n)")
    connection.execute(
        "CREATE TABLE v AS"
        " SELECT n::BIGINT AS n, n::INTEGER AS m, n::DOUBLE + 0.1 AS f, NULL::VARCHAR AS s, NULL::DATE AS d,"
        " NULL::TIMESTAMP AS t, try_cast(n::DOUBLE / 8 AS DECIMAL(6, 2)) AS c FROM numbers"
        " UNION ALL SELECT unnest([9223372036854775807, 9223372036854775806, -9223372036854775807, 9007199254740993]),"
        " NULL, NULL, NULL, NULL, NULL, NULL"
        " UNION ALL SELECT NULL, NULL, unnest([0.1, 1e300, 'nan', 'inf', '-inf', 2.5, -0.0]::DOUBLE[]),"
        " NULL, NULL, NULL, NULL"
        " UNION ALL SELECT NULL, NULL, NULL, unnest(['', 'a', 'ab', 'Ab', 'abc', 'a%b', 'a%bc', 'é', '😀', 'zzz']),"
        " NULL, NULL, NULL"
        " UNION ALL SELECT NULL, NULL, NULL, NULL, t::DATE, t, NULL FROM (SELECT unnest(["
        "'2024-01-31 23:59:59.999999', '2024-02-01', '2024-02-01 04:00:00', '2024-02-01 05:00:00', "
        "'2024-02-01 05:00:00.000001', '2024-02-02']::TIMESTAMP[]) AS t)"
    )
    return connection
