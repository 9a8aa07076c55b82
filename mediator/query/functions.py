"""Functions that callers bring along: which of a statement's calls are theirs, and under what names DuckDB has them.

Every function gets a name of its own in the whole process. So queries with different functions of one name never see
one another's, and the text of an expression tells its functions apart, as it does its columns.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from itertools import count
from weakref import WeakKeyDictionary, WeakValueDictionary, finalize, ref

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError

from mediator.catalog.functions import Function
from mediator.errors import CatalogError, Unsupported
from mediator.query import duck, vocabulary

_lock = threading.Lock()
_numbers = count(1)
_inner: WeakKeyDictionary[Function, str] = WeakKeyDictionary()
_functions: WeakValueDictionary[str, Function] = WeakValueDictionary()
_MARK = "__user"
_INNER = re.compile(rf"\b([a-z_][a-z0-9_]*?){_MARK}\d+\b", re.IGNORECASE)


def bind(statement: exp.Expr, functions: Iterable[Function], sql: str) -> tuple[Function, ...]:
    """Puts the functions' own names in place of those that the statement calls them by; which it calls."""
    known = {f.name: f for f in functions}
    called: dict[Function, None] = {}
    for node in list(statement.find_all(exp.Anonymous)) if known else ():
        function = known.get(str(node.name).lower())
        if function is None:
            continue
        if isinstance(node.parent, exp.Dot):
            how = f"{function.name}({', '.join('x' for _ in function.arguments)})"
            raise Unsupported(f"the function {function.name} is called as {how}, without a dot", sql=sql)
        called[function] = None
        node.set("this", _name_of(function))
    return tuple(called)


def function_of(node: exp.Expr) -> Function | None:
    """The caller's function that a bound node calls."""
    return _functions.get(str(node.this)) if isinstance(node, exp.Anonymous) else None


def functions_in(node: exp.Expr) -> tuple[Function, ...]:
    """The callers' functions that a bound tree calls."""
    found = (function_of(n) for n in node.find_all(exp.Anonymous))
    return tuple(dict.fromkeys(f for f in found if f is not None))


def is_inner(name: str) -> bool:
    """Whether a name is one that only the engine itself may call a function by."""
    return _INNER.fullmatch(name.lower()) is not None


def shown(text: str) -> str:
    """SQL as people know it: functions under their own names. What only looks like one of ours stays as it is."""

    def own(found: re.Match[str]) -> str:
        function = _functions.get(found[0].lower())
        return found[0] if function is None else function.name

    return _INNER.sub(own, text)


def check_names(functions: Iterable[Function]) -> None:
    """Raises `CatalogError` for a name that means something else already."""
    for function in functions:
        why = _taken(function.name)
        if why:
            raise CatalogError(f"the function {function.name!r} cannot be called so: {why}; rename it")


def stubs(functions: Iterable[Function]) -> tuple[duck.Stub, ...]:
    """What DuckDB has to know to check a call."""
    return tuple(
        duck.Stub(f.name, tuple(duck.type_name(t) for t in f.arguments), duck.type_name(f.result), f.steady)
        for f in functions
    )


@lru_cache(maxsize=512)
def _taken(name: str) -> str:
    if name in vocabulary.function_names():
        return "DuckDB has a function of that name"
    if is_inner(name):
        return f"names with {_MARK} are the engine's own"
    try:
        call = sqlglot.parse_one(f"{name}(1)", dialect="duckdb")
    except ParseError:
        return "it is a word of SQL"
    return "" if isinstance(call, exp.Anonymous) else "it is a word of SQL"


def _over(held: ref[Function], columns: Sequence[pa.Array]) -> pa.Array:
    """The function's value. DuckDB does not keep it alive: whoever has compiled a call of it does."""
    function = held()
    assert function is not None
    return function.over(columns)


def _name_of(function: Function) -> str:
    with _lock:
        name = _inner.get(function)
        if name is None:
            name = f"{function.name}{_MARK}{next(_numbers)}"
            (stub,) = stubs([function])
            duck.install(stub._replace(name=name), partial(_over, ref(function)))
            finalize(function, duck.uninstall, name).atexit = False
            _inner[function] = name
            _functions[name] = function
        return name
