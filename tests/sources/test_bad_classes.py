"""Classes that cannot be meant are told with file, line, class, attribute and fix, before anything is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

import sources
from mediator.errors import CatalogError

GOOD = """\
from sources import Int32, Relation, Source, index, scan
from wrappers import JsonReader, NumberedPages, Rule, Template, get

shop = Source(name="shop", base="${shop}/api", rate=5)


class Offers(Relation, key=["isbn", "seller"]):
    isbn: str
    seller: str
    price: float
    year: Int32 | None = None

    by_isbn = index(
        mirrors=[shop],
        required=["isbn"],
        request=Template(path="/offers", query={"isbn": "{isbn}"}),
        pages=NumberedPages(param="page"),
        reply=JsonReader(rows="/offers"),
    )

    @index(mirrors=shop, batch_size=5)
    def by_seller(self, seller: list[str]) -> object:
        return get("/sellers", query={"s": seller})

    @by_seller.rows
    def read(self, reply):
        yield from reply.json()
"""


def _load(folder: Path, text: str) -> object:
    (folder / "shop.py").write_text(text)
    return sources.load(folder / "shop.py", {"shop": "https://shop.example"})


def test_the_good_one_is_good(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(GOOD)
    catalog = sources.load(tmp_path, {"shop": "https://shop.example"})
    offers = catalog.relations["offers"]
    assert [(m.name, m.required, m.batch_size) for m in offers.methods] == [
        ("by_isbn", ("isbn",), 1),
        ("by_seller", ("seller",), 5),
    ]
    assert offers.schema.names == ["isbn", "seller", "price", "year"]
    assert offers.origin == str(tmp_path / "shop.py")
    assert catalog.sources["shop"].rate == 5


BY_SELLER = "    @index(mirrors=shop, batch_size=5)\n    def by_seller(self, seller: list[str]) -> object:"


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("price: float", "price: list[str]", ":10: Offers.price: a field cannot be of type 'list'"),
        ("price: float", "price: bytes | str", ":10: Offers.price: a field cannot be of type"),
        ("price: float", 'price: "Money"', ":7: Offers: an annotation means nothing here: name 'Money'"),
        (
            'key=["isbn", "seller"]',
            'key="isbm"',
            ":7: Offers.key: unknown field 'isbm': did you mean 'isbn'?",
        ),
        ("mirrors=[shop],", 'mirrors=["shops"],', ":14: Offers.by_isbn.mirrors: unknown source 'shops'"),
        ("mirrors=[shop],", "mirrors=[],", ":14: Offers.by_isbn.mirrors: Tuple should have at least 1 item"),
        (
            'required=["isbn"],',
            "required=[],",
            "Offers.by_isbn: an index needs a bind-field: give it a parameter",
        ),
        ('required=["isbn"],', "", ":13: Offers.by_isbn: an index needs a bind-field"),
        ('required=["isbn"],', 'required=["ean"],', ":15: Offers.by_isbn.required"),
        (
            '"{isbn}"',
            '"{ibsn}"',
            ":16: Offers.by_isbn.request: unknown bind-field 'ibsn': did you mean 'isbn'?",
        ),
        ('"{isbn}"', '"1"', ":16: Offers.by_isbn.request: bind-field 'isbn' is never sent"),
        ('path="/offers"', 'path="offers"', ":16: Template.path: String should match pattern"),
        ("path=", "pth=", ":16: Template.path: 'path' is missing: add it"),
        ('rows="/offers"', 'row="/offers"', ":18: JsonReader.row: unknown field 'row': did you mean 'rows'?"),
        ("rate=5", "rate=-5", ":4: Source.rate: Input should be greater than 0 (found -5)"),
        ("rate=5", "rat=5", ":4: Source.rat: unknown field 'rat': did you mean 'rate'?"),
        (
            "${shop}",
            "${shoop}",
            ":4: Source(shop).base: variable 'shoop' has no value: give it one, with --set",
        ),
        ("${shop}/api", "shop", ":4: Source(shop).base: String should match pattern"),
        ("batch_size=5", "batch_size=0", ":21: Offers.by_seller.batch_size: Input should be greater than 0"),
        (
            "index(mirrors=shop, batch_size=5)",
            "scan(mirrors=shop)",
            "by_seller: a scan is given nothing: leave out",
        ),
        (
            "self, seller: list[str]",
            "self, sellr: str",
            ":22: Offers.by_seller: by_seller takes 'sellr', which is no",
        ),
        (
            "self, seller: list[str]",
            "self, *sellers: str",
            "cannot be given by name: write one parameter per",
        ),
        (
            "self, seller: list[str]",
            "self, seller, price=None",
            "only a method with one bind-field takes several",
        ),
        (
            BY_SELLER,
            BY_SELLER.replace("batch_size=5", "any_of=['seller', 'isbn']").replace(
                "list[str]", "str, isbn: str"
            ),
            "Offers.by_seller: 'seller' is not always bound: give it a default in by_seller, seller=None",
        ),
        (
            BY_SELLER,
            BY_SELLER.replace("batch_size=5", "required=['seller', 'isbn']"),
            "bind-field 'isbn' is never sent: give by_seller a parameter 'isbn'",
        ),
        ("    def by_seller", "    async def by_seller", "by_seller is asynchronous: write plain def"),
        (
            "def read(self, reply):\n        yield from reply.json()",
            "async def read(self, reply):\n        yield 1",
            "read is asynchronous: write plain def",
        ),
        ("def read(self, reply)", "def read(self)", "read is given one thing: write it with (self, reply)"),
        (
            "    @by_seller.rows\n",
            "",
            ":22: Offers.by_seller: 'reply' is missing: add it, or a function for it to shop:Offers.by_seller",
        ),
        ("batch_size=5)", "batch_size=5, reply=JsonReader())", "does this already: leave out 'reply'"),
        (
            "batch_size=5)",
            "request=Template(path='/'))",
            "Offers.by_seller.request: shop:Offers.by_seller does this already: leave out 'request'",
        ),
        (
            "batch_size=5)",
            "errors=Rule(at='/error', means='fail'))",
            "Offers.by_seller.errors.at: code reads these replies: look there yourself, and yield requests or raise",
        ),
        ("class Offers(Relation", "class Offers(Relation, name='Of'", ":7: Offers: write 'Of' in lower case"),
        (
            "    seller: str\n",
            "    seller: str\n    by_isbn: str\n",
            "by_isbn: 'by_isbn' is a field as well: rename one",
        ),
        (
            "from sources import Int32",
            "from sources import Int31",
            ":1: cannot be imported: ImportError: cannot import",
        ),
        ("yield from", "yield form", "shop.py:27: not Python: invalid syntax: correct it"),
        (
            "shop = Source",
            "1 / 0\nshop = Source",
            ":4: cannot be imported: ZeroDivisionError: division by zero",
        ),
        ("shop = Source", "raise SystemExit(3)\nshop = Source", ":4: cannot be imported: SystemExit: 3"),
        ("mirrors=[shop],", "", "index() missing 1 required keyword-only argument: 'mirrors'"),
        ("mirrors=[shop],", "mirror=[shop],", "index() got an unexpected keyword argument 'mirror'"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, right: str, wrong: str, said: str) -> None:
    assert GOOD.count(right) >= 1
    with pytest.raises(CatalogError) as error:
        _load(tmp_path, GOOD.replace(right, wrong, 1))
    assert str(tmp_path / "shop.py") in str(error.value)
    assert said in str(error.value)


def test_a_class_without_fields_or_without_a_way_in(tmp_path: Path) -> None:
    head = GOOD.split("class Offers")[0]
    with pytest.raises(CatalogError, match=r"shop.py:7: Empty.*Dictionary should have at least 1 item"):
        _load(
            tmp_path,
            head + "class Empty(Relation):\n    all = scan(mirrors=shop, request=Template(path='/'))\n",
        )
    with pytest.raises(CatalogError, match=r"shop.py:7: Walled: there is no way in: add 'methods'"):
        _load(tmp_path, head + "class Walled(Relation):\n    n: int\n")


def test_two_classes_of_one_name_and_two_sources_of_one_name(tmp_path: Path) -> None:
    again = GOOD[GOOD.index("class Offers") :].replace(
        "class Offers(Relation,", "class Others(Relation, name='offers',"
    )
    with pytest.raises(CatalogError, match=r"relation 'offers' is declared twice, by Others and Offers"):
        _load(tmp_path, f"{GOOD}\n\n{again}")
    with pytest.raises(CatalogError, match=r"shop.py:4: Source\(shop\): source 'shop' is declared twice"):
        _load(tmp_path, f"{GOOD}\nother = Source(name='shop', base='https://other.example')\n")


def test_what_is_inherited_is_there_and_what_is_abstract_is_not(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        GOOD.replace("class Offers(Relation, ", "class Priced(Relation, abstract=True, ")
        + "\n\nclass OldOffers(Priced, key='isbn'):\n    note: str\n"
    )
    catalog = sources.load(tmp_path, {"shop": "https://shop.example"})
    assert list(catalog.relations) == ["old_offers"]
    assert catalog.relations["old_offers"].schema.names == ["isbn", "seller", "price", "year", "note"]
    assert [m.name for m in catalog.relations["old_offers"].methods] == ["by_isbn", "by_seller"]


def test_programs_that_declare_nothing_are_not_run_with_a_folder(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(GOOD)
    for name in ("setup.py", "_private.py", "conftest.py"):
        (tmp_path / name).write_text("raise AssertionError('this was run')\n")
    assert list(sources.load(tmp_path, {"shop": "https://x.example"}).relations) == ["offers"]
    with pytest.raises(CatalogError, match=r"setup\.py:1: cannot be imported: AssertionError: this was run"):
        sources.load(tmp_path / "setup.py")
    (tmp_path / "plain.py").write_text("x = 1\n")
    with pytest.raises(CatalogError, match="no relation is declared here: derive a class from sources"):
        sources.load(tmp_path / "plain.py")


def test_files_of_a_folder_share_code_and_sources(tmp_path: Path) -> None:
    (tmp_path / "_shared.py").write_text("PATH = '/sellers'\n")
    (tmp_path / "site.yaml").write_text("sources: {shop: {base: 'https://shop.example'}}\n")
    (tmp_path / "shop.py").write_text(
        GOOD.replace('shop = Source(name="shop", base="${shop}/api", rate=5)', 'shop = "shop"')
        .replace("from wrappers", "from . import _shared\nfrom wrappers")
        .replace('get("/sellers"', "get(_shared.PATH")
    )
    catalog = sources.load(tmp_path)
    wrapper = catalog.relations["offers"].method("by_seller").wrapper
    assert wrapper is not None
    assert wrapper.request(("seller",), [("a",), ("b",)]).query == (("s", "a"), ("s", "b"))
    assert not (tmp_path / "__pycache__" / "shop.cpython-311.pyc").exists()


def test_a_file_that_was_changed_is_read_anew(tmp_path: Path) -> None:
    _load(tmp_path, GOOD)
    changed = GOOD.replace("year:", "date:")
    assert len(changed) == len(GOOD)  # a compiled copy would be taken for fresh
    catalog = _load(tmp_path, changed)
    assert "date" in catalog.relations["offers"].schema.names  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("os:path", "there is no class 'path' in it: use one of:"),
        ("json:JSONDecoder", "JSONDecoder has neither 'request' nor 'rows': define one of them, or both"),
        ("no_such_module:Class", "no_such_module cannot be imported: ModuleNotFoundError"),
        ("missing.py:Class", "there is no missing.py beside this file: correct the name"),
        ("broken.py:Class", "broken.py cannot be imported: ZeroDivisionError: division by zero"),
        ("leaving.py:Class", "leaving.py cannot be imported: SystemExit"),
        ("good.py:Clas", "there is no class 'Clas' in it: use one of: Class, Needy, Static"),
        ("good.py", "not the name of a class: write my_package.module:Class, or file.py:Class"),
        ("good.py:Needy", "Needy() failed: TypeError"),
        ("good.py:Static", "Static.rows is no method: write def rows(self, ...)"),
        (5, "write the name of a class"),
    ],
)
def test_names_of_code_in_yaml(tmp_path: Path, name: object, said: str) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "leaving.py").write_text("import sys; sys.exit()\n")
    (tmp_path / "good.py").write_text(
        "class Class:\n    def rows(self, reply): return []\n"
        "class Needy(Class):\n    def __init__(self, key): pass\n"
        "class Static:\n    rows = 5\n"
    )
    (tmp_path / "numbers.yaml").write_text(
        "sources: {site: {base: 'https://x.example'}}\n"
        "relations:\n  numbers:\n    fields: {n: int64}\n    methods:\n"
        f"      all:\n        mirrors: [site]\n        request: {{path: /n}}\n        wrapper: {name!r}\n"
    )
    with pytest.raises(CatalogError) as error:
        sources.load(tmp_path / "numbers.yaml")
    assert "numbers.yaml:9: relations.numbers.methods.all.wrapper: " in str(error.value)
    assert said in str(error.value)
