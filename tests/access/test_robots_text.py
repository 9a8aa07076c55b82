"""What a robots.txt says: the examples of RFC 9309, the corners it leaves, and whatever rubbish it may be."""

from __future__ import annotations

import re
import time
from urllib.robotparser import RobotFileParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mediator.access.web.robots_text import READ, SLOWEST, Robots, parse


def allowed(text: str, path: str) -> bool:
    return parse(text.encode()).forbidding(path) is None


def rules(*lines: str) -> str:
    return "\n".join(("User-agent: *", *lines))


@pytest.mark.parametrize(
    ("text", "path", "may"),
    [
        ("", "/a", True),
        (rules("Disallow:"), "/a", True),
        (rules("Disallow: /"), "/a", False),
        (rules("Disallow: /"), "/", False),
        (rules("Disallow: /a"), "/a", False),
        (rules("Disallow: /a"), "/a/b", False),
        (rules("Disallow: /a"), "/abc?x=1", False),
        (rules("Disallow: /a"), "/b", True),
        (rules("Disallow: /a"), "/A", True),
        (rules("disallow : /a"), "/a", False),
        (rules("DISALLOW:/a# no"), "/a", False),
        (rules("Disallow: a"), "/a", True),  # no path: it begins with nothing that a path could
        # The longest decides, and where two are as long, the one that allows.
        (rules("Disallow: /a", "Allow: /a/b"), "/a/b/c", True),
        (rules("Allow: /a/b", "Disallow: /a"), "/a/b/c", True),
        (rules("Allow: /a", "Disallow: /a/b"), "/a/b", False),
        (rules("Disallow: /a", "Allow: /a"), "/a", True),
        (rules("Allow: /$", "Disallow: /"), "/", True),
        (rules("Allow: /$", "Disallow: /"), "/a", False),
        (rules("Allow: /p", "Disallow: /"), "/page", True),
        (rules("Disallow: /*.gif$", "Allow: /"), "/a/b.gif", False),
        (rules("Disallow: /*.gif$"), "/a.gif?x", True),
        (rules("Disallow: /*.gif"), "/a.gif?x", False),
        (rules("Disallow: *.gif"), "/a.gif", False),
        (rules("Disallow: /a*c*e"), "/abcde", False),
        (rules("Disallow: /a*c*e"), "/aec", True),
        (rules("Disallow: /a***e"), "/abcde", False),
        (rules("Disallow: /a*a$"), "/a", True),  # the two may not be one letter
        (rules("Disallow: /a*a$"), "/aa", False),
        (rules("Disallow: /a$"), "/a", False),
        (rules("Disallow: /a$"), "/ab", True),
        (rules("Disallow: /a$b"), "/a$b", False),  # only at the end it is the end
        (rules("Disallow: /a%24"), "/a$", False),
        (rules("Disallow: /a%2Ab"), "/a*b", False),
        (rules("Disallow: /a%2Ab"), "/axb", True),
        # Escapes are compared by what they mean.
        (rules("Disallow: /foo/bar/%62%61%7A"), "/foo/bar/baz", False),
        (rules("Disallow: /foo/bar/baz"), "/foo/bar/%62%61%7a", False),
        (rules("Disallow: /ツ"), "/%E3%83%84", False),
        (rules("Disallow: /%e3%83%84"), "/ツ", False),
        (rules("Disallow: /a%2fb"), "/a/b", True),
        (rules("Disallow: /a%2fb"), "/a%2Fb", False),
        (rules("Disallow: /a%zz"), "/a%zz", False),
        (rules("Disallow: /s?q=*&page="), "/s?q=x&page=2", False),
        (rules("Disallow: /robots.txt", "Disallow: /"), "/robots.txt", True),
    ],
)
def test_which_paths_may_be_asked(text: str, path: str, may: bool) -> None:
    assert allowed(text, path) is may


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("User-agent: mediator\nDisallow: /\nUser-agent: *\nAllow: /", False),
        ("User-agent: *\nDisallow: /\n\nUser-agent: mediator\nAllow: /", True),
        ("User-agent: *\nDisallow: /\n\nUser-agent: mediator\n", True),  # named, and nothing is forbidden
        ("User-agent: MEDIATOR\nDisallow: /", False),
        ("User-agent: Mediator/2.1 (a crawler)\nDisallow: /", False),
        ("User-agent: mediator-news\nDisallow: /", True),
        ("User-agent: media\nDisallow: /", True),
        ("User-agent: other\nDisallow: /", True),
        ("User-agent: other\nUser-agent: mediator\nDisallow: /", False),
        ("User-agent: mediator\nUser-agent: other\nDisallow: /", False),
        ("User-agent: mediator\nDisallow: /b\nUser-agent: other\nDisallow: /", True),
        ("User-agent: mediator\nDisallow: /b\nUser-agent: mediator\nDisallow: /a", False),  # are one
        ("User-agent: mediator\n\n\nDisallow: /", False),  # an empty line ends nothing
        ("User-agent: mediator\nSitemap: https://x/s.xml\nDisallow: /", False),
        ("User-agent: mediator\nCrawl-delay: 5\nUser-agent: other\nDisallow: /", False),
        ("Disallow: /", True),  # for nobody
        ("User-agent: *  # all\nDisallow: /", False),
        ("User-agent: * of them\nDisallow: /", False),
        ("User-agent: *bot\nDisallow: /", True),
        ("\ufeffUser-agent: *\r\nDisallow: /", False),
        ("User-agent: *\rDisallow: /", False),
        ("<html><body>User-agent: *<br>Disallow: /</body></html>", True),
        ("User-agent *\nDisallow /", True),
    ],
)
def test_which_group_is_ours(text: str, may: bool) -> None:
    assert allowed(text, "/a") is may


@pytest.mark.parametrize(
    ("text", "delay"),
    [
        (rules("Crawl-delay: 5"), 5.0),
        (rules("crawl-delay:0.5"), 0.5),
        (rules("Crawl-delay: 86400"), SLOWEST),
        (rules("Crawl-delay: 2", "Crawl-delay: 9"), 2.0),
        (rules("Crawl-delay: -1"), 0.0),
        (rules("Crawl-delay: inf"), 0.0),
        (rules("Crawl-delay: nan"), 0.0),
        (rules("Crawl-delay: 1e9"), 0.0),
        (rules("Crawl-delay: ٣"), 0.0),
        (rules("Crawl-delay:"), 0.0),
        ("Crawl-delay: 5", 0.0),
        ("User-agent: *\nCrawl-delay: 5\nUser-agent: mediator\nDisallow: /a", 0.0),
        ("User-agent: mediator\nCrawl-delay: 5\nUser-agent: *\nCrawl-delay: 9", 5.0),
        ("User-agent: other\nCrawl-delay: 5\nUser-agent: mediator\nDisallow: /a", 0.0),
    ],
)
def test_how_far_apart_requests_shall_be(text: str, delay: float) -> None:
    assert parse(text.encode()).delay == delay


def test_what_stands_after_half_a_mebibyte_is_not_read() -> None:
    filler = b"User-agent: *\nDisallow: /first\n" + b"# filler\n" * 60_000
    assert len(filler) > READ
    found = parse(filler + b"Disallow: /last\n")
    assert found.forbidding("/first") is not None
    assert found.forbidding("/last") is None
    # A line that is cut in two would forbid more than it says.
    cut = b"User-agent: *\n" + b"#" * (READ - 14 - 14) + b"\nDisallow: /private\n"
    assert parse(cut).rules == ()


def test_the_rule_that_decides_can_be_shown() -> None:
    found = parse(rules("Disallow: /a", "Disallow: /a/*/b$").encode()).forbidding("/a/x/b")
    assert str(found) == "Disallow: /a/*/b$"


def test_a_hostile_file_costs_no_more_than_reading_it() -> None:
    patterns = b"".join(b"Disallow: /%d*%s*$\n" % (n, b"a*" * 50) for n in range(4_000))
    found = parse(b"User-agent: *\n" + patterns)
    started = time.process_time()
    for n in range(20):
        found.forbidding(f"/{n}" + "a" * 200 + "b")
    assert time.process_time() - started < 5.0


@given(st.binary(max_size=2_000))
def test_rubbish_forbids_nothing_that_it_does_not_say(body: bytes) -> None:
    found = parse(body)
    assert isinstance(found, Robots)
    assert 0 <= found.delay <= SLOWEST
    if not re.search(rb"disallow", body, re.IGNORECASE):
        assert found.forbidding("/any?x=1") is None
    assert found.forbidding("/robots.txt") is None


KEYS = st.sampled_from(["User-agent", "Disallow", "Allow", "Crawl-delay", "Sitemap", "#", "junk"])
VALUES = st.sampled_from(
    ["*", "mediator", "other", "/", "/a", "/a/b", "/*b$", "", "5", "/%41", "/ツ", "$", "**"]
)
LINES = st.lists(st.tuples(KEYS, VALUES).map(lambda kv: f"{kv[0]}: {kv[1]}"), max_size=15)
PATHS = st.lists(st.sampled_from(["/", "a", "b", "c", "/a", "?x=1", "%41", "$", "*", "ツ"]), max_size=6).map(
    lambda parts: "/" + "".join(parts)
)


@given(LINES, PATHS)
def test_any_file_of_known_words_gives_an_answer(lines: list[str], path: str) -> None:
    found = parse("\n".join(lines).encode())
    assert allowed("\n".join(lines), path) is (found.forbidding(path) is None)
    # Line ends, comments and other records change nothing.
    noisy = "\r\n".join(part for line in lines for part in (line + "  # so", "Sitemap: https://x/", ""))
    assert parse(noisy.encode()) == found


@given(st.lists(st.sampled_from(["", "a", "b", "*", "ab"]), max_size=6).map("".join), st.booleans(), PATHS)
def test_a_pattern_is_what_a_regular_expression_makes_of_it(body: str, bound: bool, path: str) -> None:
    pattern = "/" + body + ("$" if bound else "")
    plain = path.replace("*", "").replace("$", "").replace("%41", "A").replace("ツ", "%E3%83%84")
    expression = "/" + ".*".join(re.escape(piece) for piece in body.split("*")) + ("$" if bound else "")
    expected = re.match(expression.replace("$", r"\Z"), plain) is not None
    assert allowed(rules(f"Disallow: {pattern}"), plain) is not expected


SIMPLE = st.lists(st.sampled_from(["a", "b", "/"]), max_size=4).map(lambda parts: "/" + "".join(parts))


@given(st.lists(SIMPLE, max_size=5), SIMPLE, st.sampled_from(["mediator", "*", "other"]))
def test_python_s_own_parser_agrees_where_the_two_standards_do(
    forbidden: list[str], path: str, agent: str
) -> None:
    """One group, no wildcards, nothing but prohibitions: there the order, in which Python's goes, does not matter."""
    lines = [f"User-agent: {agent}", *(f"Disallow: {p}" for p in forbidden)]
    other = RobotFileParser()
    other.parse(lines)
    # What begins with two slashes Python's takes for the name of a host.
    if not path.startswith("//") and not any(p.startswith("//") for p in forbidden):
        assert allowed("\n".join(lines), path) is other.can_fetch("mediator", f"http://site.test{path}")
