"""Plugins: found by entry point and by folder, run only for who asks, and kept from harming one another."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import sources
from mediator.errors import CatalogError
from sources.joining import joined, prefixed
from sources.plugins import Plugin, all_of, installed, named

MODULE = """\
from sources import Relation, Source, scan
from wrappers import JsonReader, Template

ran = True
site = Source(name="{name}_site", base="${{base:-https://{name}.example}}")


class {relation}(Relation):
    n: int
    all = scan(mirrors=site, request=Template(path="/n"), reply=JsonReader())
"""


@pytest.fixture(autouse=True)
def no_folders(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("MEDIATOR_PLUGINS", raising=False)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("plug_"):
            del sys.modules[name]


@pytest.fixture
def site_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def distribute(folder: Path, distribution: str, **entries: str) -> None:
    """As if a distribution with these entry points were installed there."""
    info = folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    points = "".join(f"{name} = {value}\n" for name, value in entries.items())
    (info / "entry_points.txt").write_text(f"[mediator.wrappers]\n{points}")


def plugin(name: str) -> Plugin:
    return named(name, installed())


def test_what_comes_along_is_a_plugin_like_any_other() -> None:
    found = {p.name: p for p in installed()}
    assert {"book_trade", "papers", "stacks"} <= found.keys()
    assert found["book_trade"].brought_by.startswith("mediator ")
    loaded = found["book_trade"].load({"book_trade": "https://x.example"})
    assert loaded == sources.load_book_trade("https://x.example")
    assert found["papers"].load({"papers": "https://x.example"}) == sources.load_papers("https://x.example")
    assert list(found["stacks"].load({}).relations) == ["shelfmarks"]


def test_nothing_is_imported_before_it_is_asked_for(site_packages: Path) -> None:
    (site_packages / "plug_one.py").write_text(MODULE.format(name="one", relation="Ones"))
    (site_packages / "plug_two.py").write_text(MODULE.format(name="two", relation="Twos"))
    distribute(site_packages, "both", one="plug_one", two="plug_two")
    one = plugin("one")
    assert "plug_one" not in sys.modules
    assert list(one.load({}).relations) == ["ones"]
    assert "plug_one" in sys.modules
    assert "plug_two" not in sys.modules


@pytest.mark.parametrize(
    "value",
    [
        "plug_forms",
        "plug_forms:Ones",
        "plug_forms:function",
        "plug_forms:classes",
        "plug_forms:path",
        "plug_forms:text",
    ],
)
def test_an_entry_point_may_give_many_things(site_packages: Path, value: str) -> None:
    module = MODULE.format(name="one", relation="Ones")
    (site_packages / "elsewhere").mkdir()
    (site_packages / "elsewhere" / "ones.py").write_text(module)
    (site_packages / "plug_forms.py").write_text(
        f"{module}\n\nfrom pathlib import Path\n\n\ndef function():\n    return [Ones]\n\n\n"
        "classes = (Ones,)\npath = Path(__file__).parent / 'elsewhere'\ntext = str(path)\n"
    )
    distribute(site_packages, "forms", form=value)
    catalog = plugin("form").load({})
    assert list(catalog.relations) == ["ones"]
    assert catalog.relations["ones"].origin == "plugin form (forms 1.0)"
    assert list(catalog.sources) == ["one_site"]


@pytest.mark.parametrize(
    ("text", "value", "said"),
    [
        ("", "plug_bad", "the module plug_bad declares nothing: derive a class from sources.Relation in it"),
        (
            "thing = 5",
            "plug_bad:thing",
            "it offers 5, which declares nothing: offer a module, a class derived",
        ),
        (
            "",
            "plug_bad:nothing",
            "cannot be imported: AttributeError: module 'plug_bad' has no attribute 'nothing'",
        ),
        ("", "plug_absent", "cannot be imported: ModuleNotFoundError: No module named 'plug_absent'"),
        (
            "import plug_missing",
            "plug_bad",
            "plug_bad.py:1: cannot be imported: ModuleNotFoundError: No module named",
        ),
        ("def f(): 1 / 0", "plug_bad:f", "plug_bad.py:1: cannot be imported: ZeroDivisionError"),
        ("def f(x): pass", "plug_bad:f", "TypeError: f() missing 1 required positional argument"),
        ("raise SystemExit", "plug_bad", "plug_bad.py:1: cannot be imported: SystemExit"),
        ("deep = [[[[[[[[]]]]]]]]", "plug_bad:deep", "lists in lists in lists: return one list"),
        ("path = '/no/such/folder'", "plug_bad:path", "/no/such/folder: no such file or folder"),
        ("x = (", "plug_bad", "plug_bad.py:1: not Python: '(' was never closed: correct it"),
        (
            MODULE.format(name="one", relation="Ones").replace("n: int", "n: list"),
            "plug_bad",
            "plug_bad.py:9: Ones.n: a field cannot be of type 'list'",
        ),
    ],
)
def test_a_bad_plugin_is_named_and_leaves_the_others_alone(
    site_packages: Path, text: str, value: str, said: str
) -> None:
    (site_packages / "plug_bad.py").write_text(text)
    (site_packages / "plug_good.py").write_text(MODULE.format(name="good", relation="Goods"))
    distribute(site_packages, "bad-one", bad=value)
    distribute(site_packages, "good-one", good="plug_good")
    with pytest.raises(CatalogError) as error:
        plugin("bad").load({})
    assert str(error.value).startswith("plugin 'bad' of bad-one 1.0: ")
    assert said in str(error.value)
    catalog, troubles = all_of([plugin("bad"), plugin("good")], {})
    assert list(catalog.relations) == ["goods"]
    assert [(t.plugin.name, t.is_fault, str(t.error)) for t in troubles] == [("bad", True, str(error.value))]
    assert catalog.unavailable == (str(error.value),)


def test_one_without_its_variables_is_no_fault_but_is_told(site_packages: Path) -> None:
    text = MODULE.format(name="one", relation="Ones").replace(":-https://one.example", "")
    (site_packages / "plug_unset.py").write_text(text)
    distribute(site_packages, "unset", unset="plug_unset")
    catalog, (trouble,) = all_of([plugin("unset")], {})
    assert not trouble.is_fault
    assert "variable 'base' has no value: give it one, with --set" in catalog.unavailable[0]


def test_variables_may_be_one_plugins_own(site_packages: Path) -> None:
    for name in ("one", "two"):
        (site_packages / f"plug_{name}.py").write_text(MODULE.format(name=name, relation=f"{name.title()}s"))
    distribute(site_packages, "both", one="plug_one", two="plug_two")
    given = {"base": "https://all.example", "one.base": "https://first.example"}
    bases = [
        method.mirrors[0].base
        for name in ("one", "two")
        for relation in plugin(name).load(given).relations.values()
        for method in relation.methods
    ]
    assert bases == ["https://first.example", "https://all.example"]


def test_two_plugins_of_one_name_are_told_apart_by_their_distributions(site_packages: Path) -> None:
    (site_packages / "plug_one.py").write_text(MODULE.format(name="one", relation="Ones"))
    (site_packages / "plug_two.py").write_text(MODULE.format(name="two", relation="Twos"))
    distribute(site_packages, "first", shop="plug_one")
    distribute(site_packages, "second", shop="plug_two")
    with pytest.raises(CatalogError) as error:
        plugin("shop")
    assert str(error.value) == (
        "several plugins are called 'shop', of first 1.0 and second 1.0: write plugin:shop@first or plugin:shop@second"
    )
    assert list(plugin("shop@second").load({}).relations) == ["twos"]
    with pytest.raises(CatalogError, match="unknown plugin 'shop@third'"):
        plugin("shop@third")


def test_two_plugins_with_one_relation_name_both_and_a_prefix_parts_them(site_packages: Path) -> None:
    for name in ("one", "two"):
        (site_packages / f"plug_{name}.py").write_text(MODULE.format(name=name, relation="Things"))
        distribute(site_packages, name, **{name: f"plug_{name}"})
    one, two = plugin("one").load({}), plugin("two").load({})
    with pytest.raises(CatalogError) as error:
        joined([one, two])
    assert str(error.value) == (
        "relation 'things' is declared in two of the catalogs, in plugin one (one 1.0) and in plugin two (two 1.0): "
        "name only one of them, or give the relations of a plugin a prefix, plugin:NAME/PREFIX"
    )
    both = joined([one, prefixed(two, "eu")])
    assert list(both.relations) == ["things", "eu_things"]
    assert list(both.sources) == ["one_site", "eu_two_site"]
    (method,) = both.relations["eu_things"].methods
    assert method.mirrors[0].source == "eu_two_site"
    assert both.sources["eu_two_site"].name == "eu_two_site"
    catalog, (trouble,) = all_of([plugin("one"), plugin("two")], {})
    assert list(catalog.relations) == ["things"]
    assert "plugin:two/PREFIX" in str(trouble.error)
    with pytest.raises(CatalogError, match="'E-U' cannot begin a name: write a word in lower case"):
        prefixed(two, "E-U")


def test_folders_hold_plugins_in_files_and_in_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ones.py").write_text(MODULE.format(name="one", relation="Ones"))
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "twos.py").write_text(MODULE.format(name="two", relation="Twos"))
    (tmp_path / "deeper" / "threes.yaml").write_text(
        "relations:\n  threes:\n    fields: {n: int64}\n    methods:\n"
        "      all: {mirrors: [two_site], request: {path: /n}, reply: {kind: json}}\n"
    )
    (tmp_path / "empty").mkdir()
    (tmp_path / "stray.py").write_text("raise AssertionError\n")
    monkeypatch.setenv("MEDIATOR_PLUGINS", str(tmp_path))
    found = [p.name for p in installed() if isinstance(p.entry, Path)]
    assert found == ["deeper", "ones"]
    assert list(plugin("ones").load({}).relations) == ["ones"]
    assert sorted(plugin("deeper").load({}).relations) == ["threes", "twos"]
    monkeypatch.setenv("MEDIATOR_PLUGINS", str(tmp_path / "nowhere"))
    with pytest.raises(CatalogError, match="nowhere: MEDIATOR_PLUGINS names it, but there is no such folder"):
        installed()
