"""Functions that callers bring along: how one is declared and called, and how statements are checked against them."""

from __future__ import annotations

import gc
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from mediator.catalog.delay import DELAY
from mediator.catalog.functions import Function, function
from mediator.catalog.model import AccessMethod, Catalog, Field, Relation, Source
from mediator.clock import monotonic
from mediator.errors import CatalogError, FunctionFailed, TypeMismatch, Unsupported
from mediator.query import duck, understand
from mediator.query.functions import check_names
from mediator.query.model import Block, BlockStage, Predicate

_SCAN = AccessMethod("scan", "scan", (), None)
_FIELDS = (Field("a", pa.int64()), Field("b", pa.int64()), Field("s", pa.string()))
_RELATIONS = {name: Relation(name, _FIELDS, (_SCAN,)) for name in ("u", "v")}


def catalog(*functions: Function) -> Catalog:
    return Catalog(_RELATIONS, {"memory": Source("memory")}, functions=functions)


def block(sql: str, *functions: Function) -> Block:
    """The first block of a statement."""
    stage = understand(sql, catalog(*functions)).stages[0]
    assert isinstance(stage, BlockStage)
    return stage.block


def passing(predicate: Predicate, *columns: pa.Array) -> list[bool]:
    """Where it is TRUE, over columns in the order of their names."""
    tested: list[bool] = predicate.test(dict(zip(sorted(predicate.reads), columns, strict=True))).tolist()
    return tested


@function([int], int)
def twice(values: pa.Array) -> pa.Array:
    return pc.multiply(values, 2)


@function([int, str], str, by_row=True, seconds=0)
def labelled(number: int, text: str) -> str:
    return f"{text}{number}"


# Declared and called


def test_one_over_arrays_is_called_with_arrays() -> None:
    assert twice.over([pa.array([1, 2, 3])]).to_pylist() == [2, 4, 6]


def test_one_by_row_is_called_with_plain_values() -> None:
    assert labelled.over([pa.array([1, 2]), pa.array(["x", "y"])]).to_pylist() == ["x1", "y2"]


def test_a_null_argument_gives_null_and_is_not_seen() -> None:
    seen: list[object] = []

    @function([int, int], int, by_row=True)
    def added(left: int, right: int) -> int:
        seen.append((left, right))
        return left + right

    assert added.over([pa.array([1, None, 3]), pa.array([None, 2, 4])]).to_pylist() == [None, None, 7]
    assert seen == [(3, 4)]
    assert added.over([pa.nulls(2, pa.int64()), pa.array([1, 2])]).to_pylist() == [None, None]


def test_one_that_takes_nulls_sees_them() -> None:
    known = function([int], bool, name="is_known", by_row=True, nulls=True)(lambda value: value is not None)
    assert known.over([pa.array([1, None])]).to_pylist() == [True, False]


def test_values_are_of_the_declared_types() -> None:
    given: list[pa.DataType] = []

    @function([pa.int32()], pa.float64())
    def half(values: pa.Array) -> pa.Array:
        given.append(values.type)
        return pc.divide(values, 2)  # whole numbers, of 32 bits

    assert half.over([pa.array([3, 4], pa.int64())]).equals(pa.array([1.0, 2.0]))
    assert given == [pa.int32()]


@pytest.mark.parametrize(
    ("gives", "said"),
    [
        (lambda values: values.slice(1), "it gave 1 values for 2 rows"),
        (lambda values: pa.array(["1", "2"]), "it gave string values, not int64"),
        (lambda values: pa.array([1.5, 2.0]), "it gave double values, not int64"),
        (lambda values: ["x", "y"], "it did not give int64 values"),
        (lambda values: None, "it did not give int64 values"),
        (lambda values: 1 / 0, "ZeroDivisionError: division by zero"),
    ],
)
def test_what_is_wrong_is_told_with_its_name(gives: object, said: str) -> None:
    wrong = Function("wrong", (pa.int64(),), pa.int64(), gives)  # type: ignore[arg-type]
    with pytest.raises(FunctionFailed, match=f"the function wrong failed: {said}") as raised:
        wrong.over([pa.array([1, 2])])
    assert raised.value.name == "wrong"


def test_the_error_that_it_raised_is_behind_the_message() -> None:
    cause = OSError("no such model")

    @function([int], int)
    def broken(values: pa.Array) -> pa.Array:
        raise cause

    with pytest.raises(FunctionFailed) as raised:
        broken.over([pa.array([1])])
    assert raised.value.__cause__ is cause


@pytest.mark.parametrize("name", ["Twice", "2x", "my function", "", "x-y"])
def test_a_name_that_sql_could_not_write_is_refused(name: str) -> None:
    with pytest.raises(CatalogError, match="cannot be a function's name"):
        Function(name, (pa.int64(),), pa.int64(), abs)


@pytest.mark.parametrize("name", ["upper", "sum", "even", "regexp_matches", "soundex", "select", "f__user3"])
def test_a_name_that_means_something_already_is_refused(name: str) -> None:
    with pytest.raises(CatalogError, match=f"{name}.*cannot be called so.*rename it"):
        check_names([Function(name, (pa.int64(),), pa.int64(), abs)])


def test_other_declarations_that_cannot_be_meant_are_refused() -> None:
    with pytest.raises(CatalogError, match="takes no argument"):
        function([], int, name="f")(abs)
    with pytest.raises(CatalogError, match=r"cannot cost -1 seconds"):
        function([int], int, name="f", seconds=-1)(abs)
    with pytest.raises(CatalogError, match=r"'int' is no type; there are Arrow's, and bool, int"):
        function(["int"], int, name="f")(abs)  # type: ignore[list-item]
    with pytest.raises(CatalogError, match="nothing to call"):
        Function("f", (pa.int64(),), pa.int64(), None)  # type: ignore[arg-type]
    with pytest.raises(CatalogError, match="two functions 'twice'"):
        catalog(twice, function([int], int, name="twice")(abs))


def test_a_catalog_can_be_given_more() -> None:
    known = catalog(twice).knowing([twice, labelled])
    assert known.functions == (twice, labelled)
    assert known.knowing([twice]) is known


# In statements


def test_it_is_tested_without_duckdb_where_that_is_simple(monkeypatch: pytest.MonkeyPatch) -> None:
    condition, between, nested = block(
        "SELECT a FROM u WHERE twice(a) < 5 AND twice(b) BETWEEN 2 AND 6 AND twice(twice(a)) = b", twice
    ).predicates
    monkeypatch.setattr(duck, "run", None)
    assert passing(condition, pa.array([1, 2, 3, None])) == [True, True, False, False]
    assert passing(between, pa.array([0, 1, 3, 4])) == [False, True, True, False]
    assert passing(nested, pa.array([1, 1]), pa.array([4, 5])) == [True, False]


def test_it_is_tested_in_duckdb_where_that_is_not() -> None:
    (predicate,) = block(
        "SELECT a FROM u WHERE twice(a) + 1 < b OR labelled(a, 'x') IN ('x1')", twice, labelled
    ).predicates
    assert passing(predicate, pa.array([1, 2, 3]), pa.array([0, 6, 7])) == [True, True, False]


def test_answers_of_yes_and_no_are_conditions() -> None:
    likes = function([str], bool, name="likes", by_row=True)(lambda text: text == "x")
    yes, no = block("SELECT a FROM u WHERE likes(s) AND NOT likes(s)", likes).predicates
    assert passing(yes, pa.array(["x", "y", None])) == [True, False, False]
    assert passing(no, pa.array(["x", "y", None])) == [False, True, False]


def test_constant_arguments_are_values_before_the_query_runs() -> None:
    found = block("SELECT a FROM u WHERE a = twice(21)", twice)
    assert [k.constant for k in found.classes] == [42]


@pytest.mark.parametrize(
    ("sql", "error", "said"),
    [
        ("SELECT twice(s) FROM u", TypeMismatch, r"twice\(VARCHAR\)"),
        ("SELECT a FROM u WHERE twice(a, b) = 1", TypeMismatch, r"twice\(BIGINT, BIGINT\)"),
        ("SELECT twiec(a) FROM u", Unsupported, "twiec does not exist"),
        ("SELECT u.a.twice() FROM u", Unsupported, r"write twice\(\.\.\.\) around"),
        ("SELECT main.twice(a) FROM u", Unsupported, r"called as twice\(x\)"),
        ("SELECT twice(a) OVER () FROM u", Unsupported, "twice is not an aggregate"),
        ("SELECT twice__user1(a) FROM u", Unsupported, "twice__user1 is not allowed"),
    ],
)
def test_what_is_wrong_with_a_call_is_found_before_anything_is_asked(
    sql: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        understand(sql, catalog(twice))


def test_columns_are_called_as_they_were_written() -> None:
    query = understand("SELECT twice(a) + 1, x FROM (SELECT twice(b) FROM v) AS q(x), u", catalog(twice))
    assert query.schema.names == ["(twice(a) + 1)", "x"]
    assert query.functions == (twice,)
    inner = understand('SELECT "twice(b)" FROM (SELECT twice(b) FROM v) AS q', catalog(twice))
    assert inner.schema.names == ["twice(b)"]


def test_a_row_costs_what_was_declared_or_else_measured() -> None:
    dear = function([int], int, name="dear", seconds=2e-6)(abs)
    slight = function([int], int, name="slight", seconds=5e-7)(abs)
    apart = function([int], int, name="apart", seconds=0, apart=True)(abs)
    new = function([int], int, name="fresh")(lambda values: values)
    sql = "SELECT a FROM u WHERE dear(a) > 1 AND slight(a) > 1 AND apart(a) > 1 AND fresh(a) > 1"
    assert [p.costly for p in block(sql, dear, slight, apart, new).predicates] == [True, False, True, True]
    for _ in range(100):
        new.over([pa.array(np.arange(100_000))])
    assert new.cost() is not None
    assert [p.costly for p in block(sql, dear, slight, apart, new).predicates] == [True, False, True, False]


def test_why_a_condition_is_a_module_of_its_own_is_said() -> None:
    dear = function([int], int, name="dear", seconds=2e-6)(abs)
    new = function([int], int, name="fresh")(abs)
    where = "dear(a) > 1 AND fresh(a) > 1 AND delay(a, 1) > 1 AND regexp_matches(s, 'x') AND random() < a"
    found = block(f"SELECT a FROM u WHERE {where}", dear, new, DELAY)
    assert [(p.text, p.why_costly) for p in found.predicates] == [
        ("dear(u.a) > 1", "dear is said to cost 2 µs a row"),
        ("fresh(u.a) > 1", "what fresh costs is not known yet"),
        ("delay(u.a, 1) > 1", "delay is always to be one"),
        ("REGEXP_MATCHES(u.s, 'x')", "a regular expression costs far more than a comparison"),
        ("RANDOM() < u.a", "its value may change from call to call"),
    ]


def test_one_that_spans_aliases_is_one_module() -> None:
    same = function([str, str], bool, name="same", by_row=True)(lambda left, right: left == right)
    (predicate,) = block("SELECT u.a FROM u, v WHERE same(u.s, v.s)", same).predicates
    assert (predicate.aliases, predicate.costly, predicate.calls) == (3, True, True)


def test_what_is_dear_is_called_once_though_it_is_read_twice() -> None:
    calls: list[int] = []

    @function([int], int, seconds=1e-3)
    def dear(values: pa.Array) -> pa.Array:
        calls.append(len(values))
        return values

    (predicate,) = block("SELECT a FROM u WHERE dear(a) BETWEEN 1 AND 2", dear).predicates
    assert passing(predicate, pa.array([0, 1, 2, 3])) == [False, True, True, False]
    assert calls == [4]
    query = understand("SELECT x FROM (SELECT dear(a) AS x FROM u) AS q WHERE x > 1 AND x < 9", catalog(dear))
    calling = [s for s in query.stages if not isinstance(s, BlockStage) and "dear" in s.sql.lower()]
    assert len(calling) == 1
    assert calling[0].sql.lower().count("dear") == 1


def test_one_that_is_not_steady_is_called_anew_each_time() -> None:
    numbers = iter(range(1_000))
    drawn = function([int], int, name="drawn", by_row=True, steady=False)(lambda _: next(numbers))
    found = block("SELECT a FROM u WHERE a = drawn(1)", drawn)
    assert found.classes == ()
    (predicate,) = found.predicates
    assert (
        passing(predicate, pa.array([0, 0, 0])) != passing(predicate, pa.array([0, 0, 0]))
        or next(numbers) >= 6
    )


def test_two_catalogs_have_functions_of_one_name() -> None:
    plus = function([int], int, name="f")(lambda values: pc.add(values, 1))
    minus = function([int], int, name="f")(lambda values: pc.subtract(values, 1))
    text = function([str], str, name="f", by_row=True)(str.upper)
    sql = "SELECT a FROM u WHERE f(a) + 0 = 3"
    up, down = block(sql, plus).predicates[0], block(sql, minus).predicates[0]
    assert passing(up, pa.array([2, 4])) == [True, False]
    assert passing(down, pa.array([2, 4])) == [False, True]
    assert passing(up, pa.array([2, 4])) == [True, False]
    with pytest.raises(TypeMismatch):
        understand(sql, catalog(text))
    (shout,) = block("SELECT a FROM u WHERE f(s) || '' = 'X'", text).predicates
    assert passing(shout, pa.array(["x", "y"])) == [True, False]
    with pytest.raises(Unsupported, match="f does not exist"):
        understand(sql, catalog())


def test_join_keys_of_different_functions_are_different_columns() -> None:
    plus = function([int], int, name="f")(lambda values: pc.add(values, 1))
    minus = function([int], int, name="f")(lambda values: pc.subtract(values, 1))
    names = [
        block("SELECT u.a FROM u, v WHERE f(u.a) = v.a", f).aliases[0].computed[0].name for f in (plus, minus)
    ]
    assert names[0] != names[1]


def test_conditions_are_tested_in_many_threads_at_once() -> None:
    direct, through = block("SELECT a FROM u WHERE twice(a) < 100 AND twice(a) + 0 < 100", twice).predicates
    columns = [pa.array(range(n, n + 5_000)) for n in range(40)]
    with ThreadPoolExecutor(8) as threads:
        for predicate in (direct, through):
            found = list(threads.map(lambda c, p=predicate: sum(passing(p, c)), columns))  # type: ignore[misc]
            assert found == [max(0, 50 - n) for n in range(40)]


def test_a_failure_in_duckdb_is_the_functions_own() -> None:
    broken = function([int], int, name="broken", by_row=True)(lambda value: 1 // (value - 3))
    (predicate,) = block("SELECT a FROM u WHERE broken(a) + 0 < 9", broken).predicates
    with pytest.raises(FunctionFailed, match="the function broken failed: ZeroDivisionError") as raised:
        passing(predicate, pa.array([1, 2, 3]))
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    assert passing(predicate, pa.array([1, 2])) == [True, True]  # nothing is left of it


def test_duckdb_forgets_what_nobody_holds_any_more() -> None:
    def called() -> str:
        passing_by = function([int], int, name="passing_by")(lambda values: values)
        found = block("SELECT a FROM u WHERE passing_by(a) + 0 = 1", passing_by)
        assert passing(found.predicates[0], pa.array([1])) == [True]
        return next(name for name in duck.installed() if name.startswith("passing_by"))

    name = called()
    gc.collect()
    understand("SELECT twice(a) + 0 FROM u", catalog(twice))
    understand("SELECT other(a) FROM u", catalog(function([int], int, name="other")(abs)))
    assert name not in duck.installed()


def test_a_compiled_condition_keeps_its_function() -> None:
    def compiled() -> Predicate:
        passing_by = function([int], int, name="passing_by")(lambda values: values)
        return block("SELECT a FROM u WHERE passing_by(a) + 0 = 1", passing_by).predicates[0]

    predicate = compiled()
    gc.collect()
    understand("SELECT other(a) FROM u", catalog(function([int], int, name="other")(abs)))
    assert passing(predicate, pa.array([1, 2])) == [True, False]


def test_a_process_ends_without_a_word() -> None:
    program = (
        "import pyarrow as pa\n"
        "from tests.query.test_functions import block, passing, twice\n"
        "(p,) = block('SELECT a FROM u WHERE twice(a) + 0 = 2', twice).predicates\n"
        "print(passing(p, pa.array([1, 2])))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[True, False]\n"
    assert done.stderr == ""


# delay


def test_delay_waits_and_gives_its_value_back() -> None:
    (predicate,) = block("SELECT a FROM u WHERE delay(a, 500) < 5", DELAY).predicates
    began = monotonic()
    assert passing(predicate, pa.array([1, 9, None, 4])) == [True, False, False, True]
    assert monotonic() - began >= 3 * 500e-6


def test_each_delay_is_a_module_of_its_own() -> None:
    found = block("SELECT * FROM u WHERE delay(u.a, 20) < 50 AND delay(u.b, 0) < 10", DELAY)
    assert [p.costly for p in found.predicates] == [True, True]


@pytest.mark.parametrize("microseconds", ["-1", "1000001", "1e300"])
def test_delay_has_its_limits(microseconds: str) -> None:
    (predicate,) = block(f"SELECT a FROM u WHERE delay(a, {microseconds}) < 5", DELAY).predicates
    with pytest.raises(FunctionFailed, match="a row may take 0 to 1,000,000 microseconds"):
        passing(predicate, pa.array([1]))


def test_a_catalog_has_no_delay_unless_it_is_given_one() -> None:
    with pytest.raises(
        Unsupported, match=r"(?s)delay does not exist.*a catalog has it where its owner says so"
    ):
        understand("SELECT delay(a, 20) FROM u", catalog())
