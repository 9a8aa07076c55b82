"""The databases of the tests in this folder."""

from tests.sql_kit import server, shop

__all__ = ["server", "shop"]
