"""Replies that are put by: what is read from the shelf is what was put there."""

from __future__ import annotations

from pathlib import Path

from mediator.catalog.model import Mirror
from mediator.catalog.wrapper import Reply, Request
from mediator.store.shelf import Shelf, Shelved, Walked

SITE = Mirror("site", "http://site.test")
WALKED = Walked("r", "scan", (), ((),))


def test_where_a_reply_came_from_is_kept_as_its_links_begin_there(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    reply = Reply(200, {"link": "<page2>; rel=next"}, b"one", address="/v2/list/?q=M%FCller")
    shelf.put(WALKED, SITE, Request("/list"), Shelved(reply, shelf.now(), float("inf")))
    found = shelf.get(WALKED, SITE, Request("/list"), float("inf"))
    assert found is not None
    assert found.reply == reply
