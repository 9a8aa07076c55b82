"""Bindings become requests."""

import json
from datetime import date

import pytest
from pydantic import ValidationError

from mediator.catalog.wrapper import Request
from mediator.errors import Refused
from wrappers import Template


def test_a_value_in_the_path_is_encoded() -> None:
    request = Template(path="/a/{id}/b").request(("id",), [("x/y ü",)])
    assert request == Request("/a/x%2Fy%20%C3%BC/b")


def test_several_bindings_are_joined_in_one_parameter() -> None:
    template = Template(path="/o", query={"isbn": "{isbn}", "format": "json"}, join="|")
    request = template.request(("isbn",), [("1",), ("2",)])
    assert request.query == (("isbn", "1|2"), ("format", "json"))


def test_several_bindings_can_repeat_the_parameter() -> None:
    template = Template(path="/o", query={"q": "isbn:{isbn}"}, join="repeat")
    assert template.request(("isbn",), [("1",), ("2",)]).query == (("q", "isbn:1"), ("q", "isbn:2"))


def test_a_value_that_holds_the_separator_cannot_be_joined() -> None:
    template = Template(path="/o", query={"name": "{name}"})
    assert template.request(("name",), [("Spine, Sons",)]).query == (("name", "Spine, Sons"),)
    with pytest.raises(Refused, match="name = 'Spine, Sons' cannot be sent in a list joined by ','"):
        template.request(("name",), [("Spine, Sons",), ("Quarto",)])


@pytest.mark.parametrize(
    "place",
    [
        {"path": "/o", "query": {"k": "{k}"}},
        {"path": "/o/{k}"},
        {"path": "/o", "form": {"k": "{k}"}},
        {"path": "/o", "json": {"k": "{k}"}},
        {"path": "/o", "headers": {"k": "{k}"}},
    ],
)
def test_a_value_with_the_separator_is_not_sent_alone_to_a_site_that_takes_several(
    place: dict[str, object],
) -> None:
    """It would be read as two values, and answered with no rows."""
    template = Template.model_validate(place)
    assert template.request(("k",), [("a",)], several=True) == template.request(("k",), [("a",)])
    with pytest.raises(Refused, match=r"k = 'a,b' cannot be sent in a list joined by ',': .* 'join: repeat'"):
        template.request(("k",), [("a,b",)], several=True)


@pytest.mark.parametrize("join", ["repeat", "list", "|"])
def test_a_value_with_a_comma_is_sent_where_nothing_is_joined_by_it(join: str) -> None:
    place = {"json": {"k": "{k}"}} if join == "list" else {"query": {"k": "{k}"}}
    template = Template.model_validate({"path": "/o", "join": join, **place})
    request = template.request(("k",), [("a,b",)], several=True)
    assert request.query == (("k", "a,b"),) or request.body == b'{"k":["a,b"]}'


def test_parameters_of_fields_that_are_not_bound_are_left_out() -> None:
    template = Template(path="/search", form={"city": "{city}", "zip": "{zip}", "go": "1"})
    request = template.request(("zip",), [("10 000",)])
    assert (request.method, request.body) == ("POST", b"zip=10+000&go=1")
    assert ("Content-Type", "application/x-www-form-urlencoded") in request.headers


def test_values_are_written_as_sites_write_them() -> None:
    template = Template(
        path="/o", query={"a": "{a}", "b": "{b}", "c": "{c}"}, headers={"Accept": "text/html"}
    )
    request = template.request(("a", "b", "c"), [(True, date(2026, 1, 2), 1.5)])
    assert request.query == (("a", "true"), ("b", "2026-01-02"), ("c", "1.5"))
    assert request.headers == (("Accept", "text/html"),)


def test_values_that_look_like_placeholders_are_not_filled_in() -> None:
    template = Template(path="/o", query={"a": "{a}-{b}"})
    assert template.request(("a", "b"), [("{b}", "2")]).query == (("a", "{b}-2"),)


def test_a_path_starts_at_the_base() -> None:
    with pytest.raises(ValidationError):
        Template(path="offers")


@pytest.mark.parametrize(
    ("request_", "url"),
    [
        (Request("/offers"), "https://shop.example/api/offers"),
        (Request("/v2/offers", rooted=True), "https://shop.example/v2/offers"),
        (Request("x:@other.example/"), "https://shop.example/api/x:@other.example/"),
        (Request("/to/http://other.example"), "https://shop.example/api/to/http://other.example"),
        (Request("https://other.example/offers"), "https://other.example/offers"),
    ],
)
def test_where_a_request_goes(request_: Request, url: str) -> None:
    assert request_.url("https://shop.example/api/") == url


def test_a_json_body_keeps_the_types_of_values() -> None:
    body = {"q": {"ean": "{a}", "day": "{day}", "title": "like {a}%"}, "limit": 10, "or": ["{a}", "{gone}"]}
    template = Template.model_validate({"path": "/o", "json": body})
    assert template.placeholders() == {"a", "day", "gone"}
    request = template.request(("a", "day"), [(7, date(2026, 1, 2))])
    assert (request.method, request.headers) == ("POST", (("Content-Type", "application/json"),))
    assert json.loads(request.body or b"") == {
        "q": {"ean": 7, "day": "2026-01-02", "title": "like 7%"},
        "limit": 10,
        "or": [7],
    }


def test_json_values_of_fields_that_are_not_bound_are_left_out() -> None:
    body = {"city": "{city}", "zip": {"is": "{zip}"}}
    template = Template.model_validate({"path": "/o", "json": body})
    assert json.loads(template.request(("city",), [("Ulm",)]).body or b"") == {"city": "Ulm", "zip": {}}


@pytest.mark.parametrize(
    ("join", "bindings", "sent"),
    [
        ("list", [(1,), (2,)], [1, 2]),
        ("list", [(1,)], [1]),
        (",", [(1,), (2,)], "1,2"),
        (",", [(1,)], 1),
    ],
)
def test_several_bindings_in_json(join: str, bindings: list[tuple[object]], sent: object) -> None:
    template = Template.model_validate({"path": "/o", "json": {"ids": "{id}"}, "join": join})
    assert json.loads(template.request(("id",), bindings).body or b"") == {"ids": sent}


def test_a_header_can_carry_a_value() -> None:
    template = Template(path="/o", headers={"X-Lang": "{lang}", "X-Shop": "{shop}", "Accept": "text/html"})
    assert template.placeholders() == {"lang", "shop"}
    request = template.request(("lang",), [("de",)])
    assert request.headers == (("X-Lang", "de"), ("Accept", "text/html"))


@pytest.mark.parametrize("value", ["a\r\nHost: else.example", "a\nb", "a\0", "\x7f"])
def test_a_value_cannot_add_a_header(value: str) -> None:
    with pytest.raises(Refused, match="cannot be sent in the header 'X-Lang'"):
        Template(path="/o", headers={"X-Lang": "{lang}"}).request(("lang",), [(value,)])


@pytest.mark.parametrize("value", ["", ".", ".."])
def test_a_value_cannot_lead_to_another_path(value: str) -> None:
    with pytest.raises(Refused, match="cannot be sent in a path"):
        Template(path="/a/{id}").request(("id",), [(value,)])


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"form": {"a": "1"}, "json": {"a": 1}}, "a request has one body: give form or json"),
        ({"join": "list"}, "join: list is for json"),
        ({"headers": {"X Lang": "de"}}, "'X Lang' is not a header"),
        ({"headers": {"X-Lang": "de\r\n"}}, "'X-Lang' is not a header"),
    ],
)
def test_a_request_that_cannot_be_meant_is_told(declared: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Template.model_validate({"path": "/o", **declared})
