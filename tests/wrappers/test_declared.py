"""A declared wrapper: what its parts do together."""

import pytest

from tests.wrappers.replies import ISBN, YEAR, reply
from wrappers import DeclaredWrapper, JsonReader, NumberedPages, Template

WRAPPER = DeclaredWrapper(
    relation="books",
    fields=(ISBN, YEAR),
    template=Template(path="/years", query={"isbn": "{isbn}"}),
    reader=JsonReader(kind="json", rows="/years"),
    paging=NumberedPages(param="page", total="/pages"),
    given=("isbn",),
    empty_statuses=frozenset({404}),
)
ASKED = WRAPPER.request(("isbn",), [("1",)])


def test_what_the_site_does_not_repeat_is_filled_in() -> None:
    page = WRAPPER.read(
        ASKED, ("isbn",), [("1",)], reply('{"years": [{"year": 3}, {"year": 4}], "pages": 2}')
    )
    assert page.rows.to_pylist() == [{"isbn": "1", "year": 3}, {"isbn": "1", "year": 4}]
    assert [dict(r.query) for r in page.then] == [{"isbn": "1", "page": "2"}]


@pytest.mark.parametrize("status", [204, 404])
def test_a_status_can_mean_no_rows(status: int) -> None:
    page = WRAPPER.read(ASKED, ("isbn",), [("1",)], reply("not here", status=status))
    assert (page.rows.num_rows, page.rows.schema.names, page.then) == (0, ["isbn", "year"], ())
