"""`mediator wrapper check`, `record`, `replay` and `try`: what they say, and how they end."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from fixtures import Behaviour, Fault, Web
from tests.cli.kit import at, called, finished
from tests.cli.test_interruptions import eventually, hang_after, running
from tests.sources.kit import serving

_SQL = "SELECT b.title, r.reviewer FROM prizes p JOIN books b ON b.isbn = p.isbn JOIN reviews r ON r.isbn = b.isbn"
_NOWHERE = "book_trade=http://nowhere.example"


@pytest.fixture(scope="module")
def cassette(calm: Web, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the suite asks of the book trade."""
    file = tmp_path_factory.mktemp("cassettes") / "trade.cassette"
    result = called("wrapper", "record", *at(calm), "-o", str(file))
    assert result.exit_code == 0, result.output
    return file


def _elsewhere(web: Web) -> list[str]:
    """Options that name the book trade where there is none."""
    return [*at(web)[:2], "--set", _NOWHERE]


def test_every_built_in_passes() -> None:
    result = called("wrapper", "check", "--demo", "--json")
    assert result.exit_code == 0
    said = json.loads(result.stdout)
    assert said["counts"]["fail"] == 0
    # The library never has more than one page of answers to what is known about it.
    skipped = [(f["relation"], f["check"]) for f in said["findings"] if f["outcome"] == "skip"]
    assert skipped == [("shelfmarks", "pages-disjoint")]
    assert said["counts"]["pass"] > 300
    methods = {(f["relation"], f["method"]) for f in said["findings"]}
    assert {relation for relation, _ in methods} == {
        *("authors", "books", "holdings", "libraries", "offers", "prizes", "reviews"),
        *("r", "s", "t"),
        "shelfmarks",
    }
    assert len(methods) == 13
    assert max(said["requests"].values()) <= 40


def test_what_it_will_ask_is_told_up_front(calm: Web) -> None:
    result = called("wrapper", "check", *at(calm), "-r", "offers", "--most-requests", "12")
    assert "asking prices_north, prices_south: at most 12 requests each, one at a time" in result.stderr
    assert "offers.by_isbn" in result.stdout
    assert "books.all" not in result.stdout


def test_a_failure_is_told_with_what_to_do(trade: Web) -> None:
    trade.behave("books", Behaviour(faults=(Fault("schema", probability=1.0),)))
    result = called("wrapper", "check", *at(trade), "-r", "books")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    (start,) = [n for n, line in enumerate(lines) if line.lstrip().startswith("FAIL")]
    assert "fields-present: books.title: expected a field of type string" in lines[start]
    assert "promised: every row has the declared fields" in lines[start + 1]
    assert "shown by: GET /books?page=1" in lines[start + 2]
    assert "to do:    give the field's place in reply.fields" in lines[start + 3]
    assert "1 failed" in lines[-1]


def test_every_check_has_its_line_where_that_is_wanted(calm: Web) -> None:
    result = called("wrapper", "check", *at(calm), "-r", "prizes", "--all")
    assert result.exit_code == 0
    assert "pass  types-hold: every value is of the declared type" in result.stdout
    assert "--  mirrors-agree: there is one mirror" in result.stdout


def test_a_declaration_that_cannot_be_used_fails_by_name(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("sources: {a: {base: 'http://a.example', rat: 3}}\n")
    result = called("wrapper", "check", "-c", str(file))
    assert result.exit_code == 1
    assert "declaration-valid" in result.stdout
    assert "did you mean 'rate'?" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check"], "there is no catalog"),
        (["check", "--demo", "-r", "offer"], "no relation 'offer': did you mean 'offers'?"),
        (["check", "--demo", "-c", "x.yaml"], "--demo brings its own catalog"),
        (["check", "--demo", "--cassette", "x"], "leave out either --demo or --cassette"),
        (["record", "--demo", "-o", "x", "--no-lookups"], "there is nothing to record"),
        (["record", "--demo", "-o", "/no/such/folder/x"], "cannot be written"),
        (["try", "--demo", "holdings", "isbn=1"], "has to be told library_id"),
        (["try", "--demo", "libraries.by_place", "library_id=1"], "by_place takes city, zip"),
        (["try", "--demo", "authors", "id=x"], "'x' is not an int64"),
        (["try", "--demo", "authors", "id"], "expected FIELD=VALUE"),
        (["try", "--demo", "authors", "isbn=1"], "authors has no field 'isbn'"),
        (["try", "--demo", "authors.by_name"], "authors has no method 'by_name': by_id"),
        (["try", "--demo", "offers", "isbn=1", "--at", "east"], "its mirrors are prices_north, prices_south"),
    ],
)
def test_mistakes(arguments: list[str], said: str) -> None:
    result = called("wrapper", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_cassette_in_place_of_the_sites(calm: Web, cassette: Path) -> None:
    live = called("wrapper", "check", *at(calm), "--json")
    played = called("wrapper", "check", *_elsewhere(calm), "--cassette", str(cassette), "--json")
    assert (live.exit_code, played.exit_code) == (0, 0)
    first, second = (json.loads(result.stdout)["findings"] for result in (live, played))
    assert [f for f in first if f["check"] != "recorded"] == [f for f in second if f["check"] != "recorded"]
    assert "never made" not in played.stderr


def test_a_cassette_of_something_else_fails_as_that(calm: Web, cassette: Path, tmp_path: Path) -> None:
    text = cassette.read_text()
    (tmp_path / "other.cassette").write_text(text.replace("/prizes.csv", "/prices.csv"))
    result = called("wrapper", "check", *_elsewhere(calm), "--cassette", str(tmp_path / "other.cassette"))
    assert result.exit_code == 1
    assert "recorded: not on the cassette: laurels: GET /prizes.csv" in result.stdout
    assert "the path is '/prices.csv', not '/prizes.csv'" in result.stdout
    assert "1 recorded request was never made" in result.stderr
    assert "1 failed" in result.stdout


def test_a_query_is_recorded_and_replayed(calm: Web, tmp_path: Path) -> None:
    file = str(tmp_path / "query.cassette")
    live = called("query", _SQL, *at(calm))
    result = called("wrapper", "record", *at(calm), "-o", file, "--sql", _SQL)
    assert result.exit_code == 0
    assert "replies in " in result.stderr
    played = called("wrapper", "replay", *_elsewhere(calm), file, _SQL)
    assert played.exit_code == 0
    assert sorted(played.stdout.splitlines()) == sorted(live.stdout.splitlines())
    assert len(played.stdout.splitlines()) > 5
    assert "never made" not in played.stderr


def test_a_replay_tells_what_it_lacks_and_what_it_did_not_need(calm: Web, tmp_path: Path) -> None:
    file = str(tmp_path / "books.cassette")
    called("wrapper", "record", *at(calm), "-o", file, "--sql", "SELECT * FROM books")
    result = called("wrapper", "replay", *_elsewhere(calm), file, "SELECT * FROM prizes")
    assert result.exit_code == 3
    assert "not on the cassette: laurels: GET /prizes.csv; it has nothing of laurels" in result.stderr
    assert "3 recorded requests were never made" in result.stderr


def test_a_replay_without_a_query_is_a_check(calm: Web, cassette: Path) -> None:
    result = called("wrapper", "replay", *_elsewhere(calm), str(cassette))
    assert result.exit_code == 0
    assert "0 failed, 0 skipped" in result.stdout


def test_a_lookup_is_shown_with_its_requests(calm: Web) -> None:
    result = called("wrapper", "try", *at(calm), "reviews", "isbn=9786748785706")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0].split() == ["isbn", "reviewer", "stars", "text"]
    assert len(result.stdout.splitlines()) == 2 + 7
    assert f"1. GET {calm.url}/readers/reviews?isbn=9786748785706" in result.stderr
    assert f"3. GET {calm.url}/readers/reviews?isbn=9786748785706&after=6" in result.stderr
    assert "-> 200, " in result.stderr
    assert "7 rows, and the site says that this is all" in result.stderr


def test_without_values_the_example_is_tried(calm: Web) -> None:
    result = called("wrapper", "try", *at(calm), "authors", "--format", "ndjson")
    assert json.loads(result.stdout)["id"] == 1001


def test_a_form_is_shown_with_what_is_sent(calm: Web) -> None:
    result = called("wrapper", "try", *at(calm), "libraries.by_place", "city=Aldermoor")
    assert f"POST {calm.url}/library-finder/search" in result.stderr
    assert "city=Aldermoor" in result.stderr


def test_a_lookup_that_fails_says_how(trade: Web) -> None:
    trade.behave("prizes", Behaviour(faults=(Fault("error", probability=1.0, status=403),)))
    result = called("wrapper", "try", *at(trade), "prizes")
    assert result.exit_code == 3
    assert "-> 403, " in result.stderr
    assert "0 rows, then refused: prizes.all at laurels: 403 Forbidden" in result.stderr


def test_what_a_site_says_along_with_an_error_is_told_without_the_key(tmp_path: Path) -> None:
    key = "xk-0123456789-abcdefghij"
    file = tmp_path / "shop.yaml"
    with serving(lambda *_: (403, f"busy,\n\tcome \x1b[31m again {'.' * 165}{key} and more")) as site:
        file.write_text(
            f"sources: {{shop: {{base: '{site.url}', allow_private: true, "
            "auth: {kind: key, header: X-Key, key_env: SHOP_KEY_IN_TEST}}}\n"
            "relations: {offers: {fields: {isbn: string}, methods: {all: {mirrors: [shop], "
            "request: {path: /offers}, reply: {kind: json}}}}}\n"
        )
        result = called("wrapper", "try", "-c", str(file), "offers", env={"SHOP_KEY_IN_TEST": key})
    assert result.exit_code == 3
    assert "-> 403, " in result.stderr
    assert "   busy, come " in result.stderr
    assert "\x1b[31m" not in result.stderr
    assert "***" in result.stderr
    assert "xk-0" not in result.stderr
    assert "and more" not in result.stderr


def test_enough_rows_are_enough(calm: Web) -> None:
    result = called("wrapper", "try", *at(calm), "books", "--rows", "3", "--format", "csv")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 1 + 3
    assert "stopped, as --rows 3 says" in result.stderr


def test_one_mirror_of_several(calm: Web) -> None:
    before = calm.counters["offers_north"].requests
    result = called("wrapper", "try", *at(calm), "offers", "isbn=9781415926536", "--at", "prices_south")
    assert result.exit_code == 0
    assert "prices-south" in result.stderr
    assert calm.counters["offers_north"].requests == before


def test_a_check_that_is_interrupted_tells_what_it_found(trade: Web) -> None:
    hang_after(trade, "reviews", 1)
    with running("wrapper", "check", *at(trade), "-r", "prizes", "-r", "reviews") as process:
        eventually(lambda: trade.counters["reviews"].requests == 2)
        process.send_signal(signal.SIGINT)
        code, out, _ = finished(process)
    text = out.decode()
    assert code == 130
    assert "interrupted" in text
    assert "prizes.all\n  pass " in text
    assert "FAIL" not in text


def test_a_lookup_that_is_interrupted_ends(trade: Web) -> None:
    hang_after(trade, "reviews", 1)
    with running("wrapper", "try", *at(trade), "reviews", "isbn=9786748785706", "--format", "csv") as process:
        eventually(lambda: trade.counters["reviews"].requests == 2)
        process.send_signal(signal.SIGINT)
        code, out, said = finished(process)
    assert code == 130
    assert len(out.splitlines()) == 1 + 3
    assert "interrupted, so there may be more" in said
