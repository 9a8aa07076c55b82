"""Cases with bounds from a seed: methods that take operators, that bring more than was asked for, or not all of it."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pyarrow as pa

from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from tests.any_route.drawing import TYPES, Case

_MIRROR = Mirror("site", "")
_OPERATORS = ("<", "<=", ">", ">=")
_TEXTS = ("a", "ab", "abc", "b", "ba", "Ab", "é", "")


def draw_ranges(seed: int) -> Case:
    """Several statements over few relations, so that what one query was sent serves another, or must not."""
    random = Random(seed)
    relations, tables = {}, {}
    for number in range(random.choice((1, 1, 2, 2, 3))):
        name = f"t{number}"
        relations[name], tables[name] = _relation(random, name, free=number > 0)
    statements = tuple(_statement(random, relations) for _ in range(random.choice((1, 2, 2, 3, 4))))
    failing = random.choice((0.0, 0.0, 0.0, 0.0, 0.2))
    methods = [(r.name, m.name) for r in relations.values() for m in r.methods]
    down = random.sample(methods, 1) if random.random() < 0.1 else []
    catalog = Catalog(relations, {"site": Source("site")})
    return Case(seed, catalog, tables, statements, failing, frozenset(down), 0.0, kind="range seed")


def _relation(random: Random, name: str, free: bool) -> tuple[Relation, pa.Table]:
    kinds = random.choice(("ii", "iii", "iis", "ijf", "iid", "is"))
    fields = tuple(Field(f"{kind}{n}", TYPES[kind]) for n, kind in enumerate(kinds))
    methods = _methods(random, fields, free)
    rows = list({tuple(_value(random, k) for k in kinds) for _ in range(random.choice((3, 8, 20)))})
    rows.sort(key=repr)
    columns = [[row[n] for row in rows] for n in range(len(fields))]
    relation = Relation(name, fields, methods)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, fields, strict=True)]
    return relation, pa.Table.from_arrays(arrays, schema=relation.schema)


def _methods(random: Random, fields: tuple[Field, ...], free: bool) -> tuple[AccessMethod, ...]:
    names = [f.name for f in fields]
    bounded = [f"{n}{o}" for n in names for o in _OPERATORS] + [f"{n}^=" for n in names if n[0] == "s"]
    found = []
    for number in range(random.choice((1, 1, 2))):
        required = random.sample(names, random.choice((0, 0, 1)))
        if random.random() < 0.3:
            required.append(random.choice(bounded))
        any_of = random.sample([*names, *bounded], 2) if random.random() < 0.15 else []
        optional = [
            n for n in random.sample([*names, *bounded], random.choice((0, 1, 2, 3))) if n not in required
        ]
        found.append(
            AccessMethod(
                f"way {number}",
                "index" if required or any_of else "scan",
                (_MIRROR,),
                None,
                required=tuple(required),
                any_of=tuple(n for n in any_of if n not in required) or (),
                optional=tuple(n for n in optional if n not in any_of),
                exact=random.choice((None, True, False)),
                proves="some" if free and random.random() < 0.2 else "all",
                at_most=random.choice((2, 5)) if free and random.random() < 0.2 else None,
            )
        )
    return tuple(found)


def _value(random: Random, kind: str) -> object:
    if random.random() < 0.1:
        return None
    number = random.randrange(6)
    match kind:
        case "s":
            return random.choice(_TEXTS)
        case "f":
            return number / 2
        case "d":
            return pa.scalar(18_262 + number, pa.date32()).as_py()
        case _:
            return number


def _statement(random: Random, relations: dict[str, Relation]) -> str:
    chosen = [random.choice(list(relations.values())) for _ in range(random.choice((1, 1, 2, 2, 3)))]
    aliases = [(f"a{n}", relation) for n, relation in enumerate(chosen)]
    conditions = []
    for (left, mine), (right, theirs) in pairwise(aliases):
        pairs = [(a.name, b.name) for a in mine.fields for b in theirs.fields if _alike(a.name, b.name)]
        if pairs:
            a, b = random.choice(pairs)
            conditions.append(f"{left}.{a} {random.choice(('=', '=', '=', '=', '<='))} {right}.{b}")
    for alias, relation in aliases:
        some = [f.name for f in relation.fields if random.random() < 0.5]
        conditions += [_selection(random, f"{alias}.{name}", name[0]) for name in some]
    columns = [f"{alias}.{f.name}" for alias, relation in aliases for f in relation.fields]
    listed = ", ".join(f"{c} AS {c.replace('.', '_')}" for c in columns)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {listed} FROM {', '.join(f'{r.name} AS {a}' for a, r in aliases)}{where}"


def _alike(left: str, right: str) -> bool:
    return left[0] == right[0] or {left[0], right[0]} <= set("ij")


def _selection(random: Random, name: str, kind: str) -> str:
    """Mostly bounds, plain or in disguise; some that look like one and are none."""

    def literal() -> str:
        number = random.randrange(6)
        match kind:
            case "s":
                return f"'{random.choice(_TEXTS)}'"
            case "f":
                return str(number / 2)
            case "d":
                return f"DATE '2020-01-0{number + 1}'"
            case _:
                return random.choice((str(number), str(number), f"{number}.5"))

    operator = random.choice(_OPERATORS)
    forms = [
        f"{name} {operator} {literal()}",
        f"{name} {operator} {literal()}",
        f"{literal()} {operator} {name}",
        f"{name} = {literal()}",
        f"{name} BETWEEN {literal()} AND {literal()}",
        f"{name} {operator} {literal()} AND {name} {random.choice(_OPERATORS)} {literal()}",
        f"{name} IN ({literal()}, {literal()})",
        f"({name} {operator} {literal()} OR {name} IS NULL)",
        f"NOT ({name} {operator} {literal()})",
        f"({name} {operator} {literal()}) IS NOT TRUE",
    ]
    if kind == "s":
        start = random.choice(_TEXTS)
        forms += [
            f"{name} LIKE '{start}%'",
            f"{name} LIKE '{start}_b%'",
            f"starts_with({name}, '{start}')",
        ] * 2
    return random.choice(forms)
