"""Bindings become requests."""

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
