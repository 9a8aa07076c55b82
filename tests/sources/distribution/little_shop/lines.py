"""How the shop writes its price list."""

from collections.abc import Iterator

from wrappers import SiteReply


class Prices:
    def rows(self, reply: SiteReply) -> Iterator[tuple[str, float]]:
        for line in reply.text().splitlines():
            isbn, price = line.split(": ")
            yield isbn, float(price)
