"""A case from a seed: relations with rows and access methods, and statements over them."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from random import Random

import pyarrow as pa

from mediator.binding.verdict import verdict
from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from mediator.errors import Unanswerable
from mediator.query.model import BlockStage
from mediator.query.understand import understand

TYPES = {"i": pa.int64(), "j": pa.int32(), "s": pa.string(), "f": pa.float64(), "d": pa.date32()}
_MIRROR = Mirror("site", "")


@dataclass(frozen=True, slots=True)
class Case:
    seed: int
    catalog: Catalog
    tables: dict[str, pa.Table]  # what the sources really hold
    statements: tuple[str, ...]
    failing: float  # how often a lookup or scan fails for good
    down: frozenset[tuple[str, str]]  # (relation, method) pairs that always do
    leaving: float  # how often a query is stopped after a turn
    kind: str = "seed"

    @property
    def healthy(self) -> bool:
        methods = [m for r in self.catalog.relations.values() for m in r.methods]
        honest = all(m.proves == "all" and m.at_most is None for m in methods)
        return honest and not self.failing and not self.down


def draw(seed: int) -> Case:
    """With costly conditions in some of them, of dice of their own: the cases themselves are what they are without."""
    case, random = _drawn(seed), Random(f"costly {seed}")
    if random.random() < 0.88:  # each costs a statement of DuckDB's, batch by batch
        return case
    return replace(case, statements=tuple(_with_costly(random, case.catalog, s) for s in case.statements))


def _with_costly(random: Random, catalog: Catalog, statement: str) -> str:
    """The statement under one to three conditions that are modules of their own, each over one alias or two."""
    tables = statement.partition(" FROM ")[2].partition(" WHERE ")[0].split(", ")
    names = [name.replace(" AS ", " ").split(" ") for name in tables]
    if len(names) > 3:  # what such a condition throws away was joined before
        return statement
    fields = [f"{alias}.{f.name}" for relation, alias in names for f in catalog.relations[relation].fields]
    conditions = []
    for _ in range(random.choice((1, 2, 2, 3))):
        read = ", ".join(random.sample(fields, min(len(fields), random.choice((1, 1, 2)))))
        conditions.append(
            f"regexp_matches(concat({read}), '{random.choice(('[0-4]', '[1357]', '[^0]', '1|v'))}')"
        )
    return statement + (" AND " if " WHERE " in statement else " WHERE ") + " AND ".join(conditions)


def _drawn(seed: int) -> Case:
    random = Random(seed)
    special = random.random()
    if special < 0.15:
        return _ring(seed, random)
    if special < 0.25:
        return _hybrid(seed, random)
    if special < 0.35:
        return _scanned(seed, random)
    deep = random.random() < 0.35
    relations, tables = {}, {}
    for number in range(random.randint(2, 5) if deep else random.randint(1, 4)):
        name = f"t{number}"
        relations[name], tables[name] = (
            _deep_relation(random, name, number) if deep else _relation(random, name, first=number == 0)
        )
    catalog = Catalog(relations, {"site": Source("site")})
    if deep:
        statements = (_answerable(random, catalog),)
    else:
        statements = tuple(_statement(random, relations) for _ in range(random.choice((1, 1, 2, 3))))
    failing = random.choice((0.0, 0.0, 0.0, 0.1, 0.4))
    methods = [(r.name, m.name) for r in relations.values() for m in r.methods]
    failed = random.sample(methods, 1) if not failing and random.random() < 0.3 else []
    leaving = random.choice((0.0, 0.0, 0.0, 0.02))
    return Case(seed, catalog, tables, statements, failing, frozenset(failed), leaving)


def _ring(seed: int, random: Random) -> Case:
    """Four relations in a circle, two of which others feed: rows can come to wait for each other all around it."""
    domain = random.choice((2, 3))
    scan, fields = (
        AccessMethod("scan", "scan", (_MIRROR,), None),
        (Field("i0", pa.int64()), Field("i1", pa.int64())),
    )
    index = AccessMethod("index", "index", (_MIRROR,), None, required=("i0",))
    fed = (scan, index) if random.random() < 0.4 else (index,)
    relations, tables = {}, {}
    for name, methods in (("t0", (scan,)), ("t1", fed), ("t2", (index,)), ("t3", (scan,))):
        relations[name] = relation = Relation(name, fields, methods)
        rows = {(random.randrange(domain), random.randrange(domain)) for _ in range(random.choice((2, 4, 6)))}
        columns = [pa.array(c, pa.int64()) for c in zip(*sorted(rows), strict=True)]
        tables[name] = pa.Table.from_arrays(columns, schema=relation.schema)
    joins = "b.i0 = a.i0 AND c.i0 = a.i1 AND d.i0 = b.i1 AND d.i1 = c.i1"
    statement = f"SELECT a.i0, a.i1, b.i1 AS b, c.i1 AS c FROM t0 a, t1 b, t2 c, t3 d WHERE {joins}"
    down = (
        frozenset([("t1", "scan")])
        if len(fed) > 1 and random.random() < 0.7
        else frozenset[tuple[str, str]]()
    )
    return Case(seed, Catalog(relations, {"site": Source("site")}), tables, (statement,), 0.0, down, 0.0)


def _hybrid(seed: int, random: Random) -> Case:
    """A relation with a key, a scan, and an index on the key, so that a scan may overtake lookups; and one without."""
    fields = (Field("i0", pa.int64()), Field("i1", pa.int64()))
    scan = AccessMethod("scan", "scan", (_MIRROR,), None)
    index = AccessMethod("index", "index", (_MIRROR,), None, required=("i0",))
    other = AccessMethod("other index", "index", (_MIRROR,), None, required=("i1",))
    count, domain = random.choice((3, 8)), random.choice((4, 10))
    relations = {
        "t0": Relation("t0", fields, (scan,)),
        "t1": Relation("t1", fields, (scan, index), ("i0",)),
        "t2": Relation("t2", fields, (index, other), ("i0",)),
    }
    tables = {}
    for name, relation in relations.items():
        keys = (
            random.sample(range(domain), min(count, domain))
            if relation.key
            else random.choices(range(domain), k=8)
        )
        columns = [pa.array(keys, pa.int64()), pa.array([random.randrange(domain) for _ in keys], pa.int64())]
        tables[name] = pa.Table.from_arrays(columns, schema=relation.schema)
    statements = (
        "SELECT a.i1, b.i0 AS b, b.i1 AS c FROM t0 a, t1 b WHERE a.i0 = b.i0",
        "SELECT a.i1, b.i0 AS b, c.i0 AS c FROM t0 a, t1 b, t2 c WHERE a.i0 = b.i0 AND b.i1 = c.i1",
        "SELECT a.i1, b.i0 AS b, c.i1 AS c FROM t1 a, t1 b, t0 c WHERE a.i1 = b.i0 AND c.i0 = a.i0",
        "SELECT a.i1, b.i0 AS b, c.i0 AS c FROM t0 a, t2 b, t2 c WHERE a.i0 = b.i0 AND a.i1 = c.i1",
    )
    down = frozenset([("t1", "scan")]) if random.random() < 0.6 else frozenset[tuple[str, str]]()
    catalog = Catalog(relations, {"site": Source("site")})
    return Case(seed, catalog, tables, (random.choice(statements),), 0.0, down, 0.0)


def _scanned(seed: int, random: Random) -> Case:
    """Relations that one scan each brings: rows of one of them need not be built."""
    relations, tables = {}, {}
    for name in ("t0", "t1", "t2", "t3")[: random.choice((2, 3, 3, 4))]:
        kinds = [random.choice("iiijsf") for _ in range(random.randint(1, 3))]
        fields = tuple(Field(f"{kind}{n}", TYPES[kind]) for n, kind in enumerate(kinds))
        rows = _rows(random, kinds)
        relations[name] = relation = Relation(
            name, fields, (AccessMethod("scan", "scan", (_MIRROR,), None),), _key(random, fields, rows)
        )
        columns = [[row[n] for row in rows] for n in range(len(fields))]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, fields, strict=True)]
        tables[name] = pa.Table.from_arrays(arrays, schema=relation.schema)
    statements = []
    for _ in range(random.choice((1, 1, 2))):
        chosen = random.sample(list(relations.values()), random.randint(2, len(relations)))
        if random.random() < 0.3:
            chosen.append(random.choice(chosen))
        aliases = [(f"a{n}", relation) for n, relation in enumerate(chosen)]
        picky = random.random() < 0.4
        selections = [_selection(random, alias, random.choice(r.fields)) for alias, r in aliases if picky]
        statements.append(_listed(random, aliases, _joins(random, aliases) + selections[:2]))
    failing = random.choice((0.0, 0.0, 0.0, 0.2))
    if len(statements) == 1 and random.random() < 0.5:
        relations = {name: _of_nobody(relation) for name, relation in relations.items()}
    catalog = Catalog(relations, {"site": Source("site")})
    return Case(seed, catalog, tables, tuple(statements), failing, frozenset(), 0.0)


def _of_nobody(relation: Relation) -> Relation:
    """The relation as no site's: its rows are this query's alone, as those of an earlier stage are."""
    return replace(relation, methods=tuple(replace(m, mirrors=()) for m in relation.methods))


def _deep_relation(random: Random, name: str, number: int) -> tuple[Relation, pa.Table]:
    """Integers only, few of them, and mostly behind an index: who provides what is the question here."""
    fields = tuple(Field(f"i{n}", pa.int64()) for n in range(random.choice((2, 3, 3))))
    scan = AccessMethod("scan", "scan", (_MIRROR,), None)
    style = (
        "scan" if number == 0 else random.choice(("scan", "index", "index", "index", "both", "pair", "two"))
    )
    methods = {
        "scan": lambda: (scan,),
        "index": lambda: (_index(random, "index", fields, 1),),
        "both": lambda: (scan, _index(random, "index", fields, 1)),
        "pair": lambda: (_index(random, "index", fields, 2),),
        "two": lambda: (_index(random, "index", fields, 1), _index(random, "other index", fields, 1)),
    }[style]()
    domain = random.choice((2, 3, 4))
    rows = {tuple(random.randrange(domain) for _ in fields) for _ in range(random.choice((2, 4, 8)))}
    columns = zip(*sorted(rows), strict=True)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, fields, strict=True)]
    relation = Relation(name, fields, methods)
    return relation, pa.Table.from_arrays(arrays, schema=relation.schema)


def _answerable(random: Random, catalog: Catalog) -> str:
    """A statement with many joins that some choice of providers can answer, if a few tries find one."""
    statement = ""
    for _ in range(8):
        names = list(catalog.relations)
        chosen = random.sample(names, len(names)) + random.choices(names, k=random.randint(0, 2))
        aliases = [(f"a{n}", catalog.relations[r]) for n, r in enumerate(chosen[:5])]
        random.shuffle(aliases)
        statement = _listed(random, aliases, _tangle(random, aliases))
        try:
            for stage in understand(statement, catalog).stages:
                assert isinstance(stage, BlockStage)
                verdict(stage.block)
        except Unanswerable:
            continue
        return statement
    return statement


def _tangle(random: Random, aliases: list[tuple[str, Relation]]) -> list[str]:
    """Equalities between any aliases, more than a tree needs or fewer."""
    conditions = []
    for _ in range(len(aliases) + random.randint(-1, 2)):
        if len(aliases) > 1:
            left, right = random.sample(aliases, 2)
            a, b = random.choice(left[1].fields), random.choice(right[1].fields)
            conditions.append(f"{left[0]}.{a.name} = {right[0]}.{b.name}")
    return conditions


def _relation(random: Random, name: str, first: bool) -> tuple[Relation, pa.Table]:
    kinds = [random.choice("iiijssfd") for _ in range(random.randint(1, 4))]
    fields = tuple(Field(f"{kind}{n}", TYPES[kind]) for n, kind in enumerate(kinds))
    methods = _methods(random, fields, first)
    relation = Relation(name, fields, methods)
    rows = _rows(random, kinds)
    if relation.repeats:
        rows = list(dict.fromkeys(rows))
        key = _key(random, fields, rows)
        relation = Relation(name, fields, methods, key)
    columns = [[row[n] for row in rows] for n in range(len(fields))]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, fields, strict=True)]
    return relation, pa.Table.from_arrays(arrays, schema=relation.schema)


def _key(random: Random, fields: tuple[Field, ...], rows: list[tuple[object, ...]]) -> tuple[str, ...]:
    """A column whose values happen to be unique, if there is one."""
    for n, column in enumerate(fields):
        values = [row[n] for row in rows]
        if len(set(values)) == len(values) and None not in values and random.random() < 0.7:
            return (column.name,)
    return ()


def _rows(random: Random, kinds: list[str]) -> list[tuple[object, ...]]:
    count = random.choice((0, 1, 3, 8, 20, 20, 40))
    nulls = random.choice((0.0, 0.0, 0.15))
    domain = random.choice((2, 4, 8, 30))
    skew = random.choice((0.0, 0.0, 0.6))
    return [tuple(_value(random, k, domain, nulls, skew) for k in kinds) for _ in range(count)]


def _value(random: Random, kind: str, domain: int, nulls: float, skew: float) -> object:
    if random.random() < nulls:
        return None
    number = 0 if random.random() < skew else random.randrange(domain)
    match kind:
        case "s":
            return f"{'a long prefix that fills a heap ' if number % 2 else 'v'}{number}"
        case "f":
            return number / 2
        case "d":
            return _date(number)
        case _:
            return number


def _date(number: int) -> datetime.date:
    return datetime.date(2020, 1, 1) + datetime.timedelta(days=number)


def _methods(random: Random, fields: tuple[Field, ...], first: bool) -> tuple[AccessMethod, ...]:
    methods = []
    style = random.choice(("scan", "scan", "scans", "index", "index", "both", "indexes", "index pair"))
    if first and style.startswith("index") and random.random() < 0.7:
        style = "scan"
    if style in ("scan", "both", "scans"):
        methods.append(AccessMethod("scan", "scan", (_MIRROR,), None))
    if style == "scans":
        methods.append(AccessMethod("other scan", "scan", (_MIRROR,), None))
    if style in ("index", "both", "indexes"):
        methods.append(_index(random, "index", fields, 1))
    if style == "indexes":
        methods.append(_index(random, "other index", fields, random.choice((1, 1, 2))))
    if style == "index pair":
        methods.append(_index(random, "index", fields, 2))
    return tuple(methods)


def _index(random: Random, name: str, fields: tuple[Field, ...], width: int) -> AccessMethod:
    names = random.sample([f.name for f in fields], min(width, len(fields)))
    if len(names) > 1 and random.random() < 0.3:
        return AccessMethod(name, "index", (_MIRROR,), None, any_of=tuple(names))
    optional = tuple(f.name for f in fields if f.name not in names and random.random() < 0.15)
    return AccessMethod(name, "index", (_MIRROR,), None, required=tuple(names), optional=optional)


def _statement(random: Random, relations: dict[str, Relation]) -> str:
    count = random.choice((1, 2, 2, 3, 3, 3, 4, 5))
    chosen = [random.choice(list(relations.values())) for _ in range(count)]
    aliases = [(f"a{n}", relation) for n, relation in enumerate(chosen)]
    conditions = _joins(random, aliases)
    for alias, relation in aliases:
        if random.random() < 0.25:
            conditions.append(_selection(random, alias, random.choice(relation.fields)))
    return _listed(random, aliases, conditions)


def _listed(random: Random, aliases: list[tuple[str, Relation]], conditions: list[str]) -> str:
    columns = [f"{alias}.{f.name}" for alias, relation in aliases for f in relation.fields]
    outputs = sorted(random.sample(columns, random.randint(1, len(columns))))
    listed = ", ".join(f"{c} AS {c.replace('.', '_')}" for c in outputs)
    tables = ", ".join(f"{relation.name} AS {alias}" for alias, relation in aliases)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {listed} FROM {tables}{where}"


def _joins(random: Random, aliases: list[tuple[str, Relation]]) -> list[str]:
    """A chain, star, cycle or tangle over the aliases; now and then a part that nothing joins."""
    shape = random.choice(("chain", "chain", "star", "cycle", "tangle", "tree"))
    pairs = []
    for n in range(1, len(aliases)):
        match shape:
            case "star":
                pairs.append((0, n))
            case "tree" | "tangle":
                pairs.append((random.randrange(n), n))
            case _:
                pairs.append((n - 1, n))
    if shape == "cycle" and len(aliases) > 2:
        pairs.append((len(aliases) - 1, 0))
    if shape == "tangle":
        pairs += [
            tuple(random.sample(range(len(aliases)), 2))
            for _ in range(random.randint(0, 2))
            if len(aliases) > 1
        ]
    if len(aliases) > 1 and random.random() < 0.07:
        pairs.pop(random.randrange(len(pairs)))
    found = [_join(random, aliases[a], aliases[b]) for a, b in pairs]
    return [c for c in found if c]


def _join(random: Random, left: tuple[str, Relation], right: tuple[str, Relation]) -> str:
    matching = [
        (a, b)
        for a in left[1].fields
        for b in right[1].fields
        if a.name[0] == b.name[0] or {a.name[0], b.name[0]} <= set("ij")
    ]
    if not matching:
        return ""
    a, b = random.choice(matching)
    first, second = f"{left[0]}.{a.name}", f"{right[0]}.{b.name}"
    kind = random.random()
    if kind < 0.75:
        condition = f"{first} = {second}"
    elif kind < 0.87:
        condition = f"{first} {random.choice(('<', '<=', '>', '>=', '<>'))} {second}"
    elif a.name[0] in "ij":
        condition = random.choice(
            (f"{first} = {second} + 1", f"{first} + {second} = 4", f"abs({first} - {second}) < 2")
        )
    else:
        condition = f"{first} = {second}"
    if random.random() < 0.15:
        a, b = random.choice(matching)
        condition += f" AND {left[0]}.{a.name} = {right[0]}.{b.name}"
    return condition


def _selection(random: Random, alias: str, column: Field) -> str:
    def literal() -> str:
        number = random.randrange(5)
        match column.name[0]:
            case "s":
                return f"'{'a long prefix that fills a heap ' if number % 2 else 'v'}{number}'"
            case "f":
                return f"{number / 2}"
            case "d":
                return f"DATE '2020-01-0{number + 1}'"
            case _:
                return str(number)

    name = f"{alias}.{column.name}"
    return random.choice(
        (
            f"{name} = {literal()}",
            f"{name} = {literal()}",
            f"{name} IN ({literal()}, {literal()}, {literal()})",
            f"{name} <= {literal()}",
            f"{name} IS NOT NULL",
            f"({name} > {literal()} OR {name} IS NULL)",
            f"NOT ({name} = {literal()})",
        )
    )
