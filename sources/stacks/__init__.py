"""The example of a plugin in Python: on which shelf a library keeps a book, as its old terminal tells it.

The terminal wants to be greeted first: its page has the number of a session. A question has to be signed with the
key of the library card, the session in it; the answer is lines of fixed width, and the last of them may say that
there is more. None of this is data, so it is code; where the terminal is and what it bears is data all the same.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from datetime import datetime

from sources import Int32, Relation, Source, index
from wrappers import Request, SchemaChanged, Secret, SiteReply, get, post

__all__ = ["Shelfmarks", "signature", "terminal"]

KEY = "STACKS_KEY"  # the environment variable
CARD = Secret(env=KEY, what="library card")  # read for each question, and in no message
_MORE = "+"

terminal = Source(
    name="terminal", base="${stacks:-https://stacks.example}", concurrency=2, allow_private=True
)


class Shelfmarks(Relation, key=["isbn", "shelf"]):
    """Ten books in one question; every line of an answer is 40 characters wide."""

    isbn: str
    shelf: str
    copies: Int32
    acquired: datetime | None = None

    @index(
        mirrors=terminal,
        batch_size=10,
        examples=[{"isbn": "9781415926536"}, {"isbn": "9789164336316"}, {"isbn": "9783038541202"}],
    )
    def by_isbn(self, isbn: list[str]) -> Request:
        return get("/terminal", rows=self.greeted, kept=isbn)

    def greeted(self, reply: SiteReply) -> Iterator[Request]:
        sessions = reply.html().xpath("//input[@name='session']/@value")
        if not sessions:
            raise SchemaChanged("shelfmarks: the terminal's page has no session")
        yield self._question(str(sessions[0]), reply.kept, start=0)

    @by_isbn.rows
    def answered(self, reply: SiteReply) -> Iterator[Shelfmarks | Request]:
        session, isbns = reply.kept
        for line in reply.text().splitlines():
            if line.startswith(_MORE):
                yield self._question(session, isbns, start=int(line.removeprefix(_MORE)))
                continue
            yield Shelfmarks(
                isbn=line[0:13],
                shelf=line[13:25].strip(),
                copies=int(line[25:29]),
                acquired=datetime.strptime(line[29:39], "%d.%m.%Y") if line[29:39].strip() else None,
            )

    def _question(self, session: str, isbns: list[str], start: int) -> Request:
        key = CARD.read()
        asked = ",".join(isbns)
        form = {"session": session, "isbns": asked, "start": start}
        return post(
            "/terminal/question",
            form={**form, "signature": signature(key, session, asked, start)},
            kept=(session, isbns),
        )


def signature(key: str, session: str, isbns: str, start: int) -> str:
    """What proves that a question was put by somebody with a card."""
    return hmac.new(key.encode(), f"{session}|{isbns}|{start}".encode(), hashlib.sha256).hexdigest()
