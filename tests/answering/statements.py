"""What one may ask of the book trade: at least one statement for every way into every relation, "
"and for every stage above."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Statement:
    """`ordered`: the answers come in one order. `grows`: more rows of the sites never take an "
    "answer back."""

    name: str
    sql: str
    ordered: bool = False
    grows: bool = True


STATEMENTS = (
    # One relation, every way in.
    Statement("scan", "SELECT isbn, title, year FROM books"),
    Statement("scan a file", "SELECT * FROM prizes"),
    Statement("select", "SELECT title FROM books WHERE year >= 1990 AND publisher IS NOT NULL"),
    Statement("constant", "SELECT name, born FROM authors WHERE id = 1003"),
    Statement("constants", "SELECT id, name FROM authors WHERE id IN (1001, 1002, 1005, 999999)"),
    Statement(
        "by city",
        "SELECT library_id, zip FROM libraries WHERE city IN ('Dunnock', 'Gorseby', 'Longhythe', 'Atlantis')",
    ),
    Statement("by zip", "SELECT library_id, city FROM libraries WHERE zip = '10011'"),
    Statement(
        "by city and zip",
        "SELECT library_id FROM libraries WHERE city = 'Aldermoor' AND zip IN ('10000', '10011', '10022')",
    ),
    Statement("nobody", "SELECT name FROM authors WHERE id = 5"),
    Statement("never", "SELECT title FROM books WHERE 1 = 0"),
    # Joins over every access method.
    Statement("index", "SELECT b.title, a.name FROM books b JOIN authors a ON a.id = b.author_id"),
    Statement(
        "packed mirrors",
        "SELECT b.title, o.shop, o.price FROM books b JOIN offers o USING (isbn) WHERE o.price < 20",
    ),
    Statement(
        "pages",
        "SELECT b.isbn, r.reviewer, r.stars FROM books b, reviews r WHERE r.isbn = b.isbn AND b.year > 1980",
    ),
    Statement(
        "file and index", "SELECT p.prize, p.year, o.shop FROM prizes p JOIN offers o ON o.isbn = p.isbn"
    ),
    Statement(
        "two inputs",
        "SELECT p.prize, l.name, h.copies FROM prizes p, libraries l, holdings h "
        "WHERE l.city IN ('Aldermoor', 'Gorseby') AND h.isbn = p.isbn AND h.library_id = l.library_id AND "
        "p.year > 2015",
    ),
    Statement(
        "two inputs, one constant",
        "SELECT p.prize, h.copies, h.available FROM prizes p JOIN holdings h ON h.isbn = p.isbn "
        "WHERE h.library_id = 'L007'",
    ),
    Statement(
        "five relations",
        "SELECT b.title, a.name, o.price, r.stars, p.prize FROM prizes p JOIN books b USING (isbn) "
        "JOIN authors a ON a.id = b.author_id JOIN offers o ON o.isbn = b.isbn JOIN reviews r ON "
        "r.isbn = b.isbn "
        "WHERE o.price < 30 AND r.stars >= 3",
    ),
    Statement(
        "cycle",
        "SELECT o.shop, r.reviewer FROM books b, offers o, reviews r WHERE o.isbn = b.isbn AND "
        "r.isbn = o.isbn AND b.isbn = r.isbn",
    ),
    Statement(
        "band", "SELECT a.isbn, b.isbn FROM books a, books b WHERE a.year < b.year AND b.year < a.year + 3"
    ),
    Statement("cross", "SELECT p.prize, l.city FROM prizes p, libraries l WHERE l.zip = '10000'"),
    Statement(
        "like across",
        "SELECT b.title, p.prize FROM books b JOIN prizes p ON b.year = p.year AND b.title LIKE '%The%'",
    ),
    # Self-joins.
    Statement(
        "same author",
        "SELECT x.isbn, y.isbn FROM books x JOIN books y ON x.author_id = y.author_id AND x.isbn < y.isbn",
    ),
    Statement(
        "same index twice",
        "SELECT x.shop, y.shop, x.isbn FROM prizes p JOIN offers x ON x.isbn = p.isbn JOIN offers y "
        "ON y.isbn = p.isbn "
        "WHERE x.price < y.price",
    ),
    Statement("file with itself", "SELECT a.prize, b.prize FROM prizes a, prizes b WHERE a.isbn = b.isbn"),
    # Outer joins.
    Statement(
        "left", "SELECT b.isbn, p.prize FROM books b LEFT JOIN prizes p ON p.isbn = b.isbn", grows=False
    ),
    Statement(
        "left over an index",
        "SELECT p.prize, r.reviewer FROM prizes p LEFT JOIN reviews r ON r.isbn = p.isbn AND r.stars = 5",
        grows=False,
    ),
    Statement(
        "full",
        "SELECT b.isbn, p.isbn, p.prize FROM books b FULL JOIN prizes p ON p.isbn = b.isbn",
        grows=False,
    ),
    Statement(
        "anti",
        "SELECT b.title FROM books b LEFT JOIN prizes p ON p.isbn = b.isbn WHERE p.prize IS NULL",
        grows=False,
    ),
    # Sub-queries, some of which bind fields.
    Statement(
        "in binds", "SELECT name FROM authors WHERE id IN (SELECT author_id FROM books WHERE year > 2010)"
    ),
    Statement(
        "a value binds",
        "SELECT name FROM authors WHERE id = (SELECT min(author_id) FROM books WHERE year > 2010)",
        grows=False,
    ),
    Statement(
        "any binds", "SELECT name FROM authors WHERE id = ANY (SELECT author_id FROM books WHERE year > 2010)"
    ),
    Statement(
        "derived binds",
        "SELECT t.author_id, a.name, t.n FROM (SELECT author_id, count(*) AS n FROM books GROUP BY "
        "author_id) t "
        "JOIN authors a ON a.id = t.author_id WHERE t.n > 2",
        grows=False,
    ),
    Statement(
        "exists", "SELECT title FROM books b WHERE EXISTS (SELECT 1 FROM prizes p WHERE p.isbn = b.isbn)"
    ),
    Statement(
        "not exists",
        "SELECT isbn FROM books b WHERE NOT EXISTS (SELECT 1 FROM prizes p WHERE p.isbn = b.isbn)",
        grows=False,
    ),
    Statement(
        "scalar", "SELECT title, year FROM books WHERE year = (SELECT max(year) FROM books)", grows=False
    ),
    Statement(
        "correlated",
        "SELECT p.prize, (SELECT min(o.price) FROM offers o WHERE o.isbn = p.isbn) AS cheapest FROM prizes p",
        grows=False,
    ),
    # What is above the eddies.
    Statement("count", "SELECT count(*), count(author_id), min(year), max(year) FROM books", grows=False),
    Statement(
        "groups",
        "SELECT a.country, count(*) AS n FROM books b JOIN authors a ON a.id = b.author_id GROUP BY "
        "a.country HAVING count(*) > 1",
        grows=False,
    ),
    Statement(
        "distinct", "SELECT DISTINCT b.publisher, o.currency FROM books b JOIN offers o ON o.isbn = b.isbn"
    ),
    Statement(
        "top",
        "SELECT isbn, price, shop FROM prizes JOIN offers USING (isbn) ORDER BY price, isbn, shop LIMIT 7",
        True,
        False,
    ),
    Statement("sorted", "SELECT title, isbn FROM books WHERE year < 1970 ORDER BY title DESC, isbn", True),
    Statement("union", "SELECT isbn FROM books WHERE year > 2015 UNION SELECT isbn FROM prizes"),
    Statement("union all", "SELECT isbn FROM books UNION ALL SELECT isbn FROM prizes WHERE year > 2000"),
    Statement(
        "except", "SELECT isbn FROM prizes EXCEPT SELECT isbn FROM books WHERE year > 1990", grows=False
    ),
    Statement(
        "with",
        "WITH cheap AS (SELECT isbn, min(price) AS price FROM prizes JOIN offers USING (isbn) GROUP "
        "BY isbn) "
        "SELECT b.title, c.price, a.name FROM cheap c JOIN books b USING (isbn) JOIN authors a ON "
        "a.id = b.author_id",
        grows=False,
    ),
    Statement(
        "with, read twice",
        "WITH t AS (SELECT author_id, count(*) AS n FROM books GROUP BY author_id) "
        "SELECT t.n, a.name FROM t JOIN authors a ON a.id = t.author_id UNION ALL "
        "SELECT t.n, b.title FROM t JOIN books b ON b.author_id = t.author_id WHERE t.n > 1",
        grows=False,
    ),
    Statement(
        "window",
        "SELECT isbn, shop, rank() OVER (PARTITION BY isbn ORDER BY price, shop) AS place FROM "
        "prizes JOIN offers USING (isbn)",
        grows=False,
    ),
    Statement(
        "expressions",
        "SELECT upper(title) AS t, CASE WHEN year < 2000 THEN 'old' ELSE 'new' END AS age, year % "
        "10 FROM books",
    ),
    Statement(
        "computed key",
        "SELECT b.isbn, p.prize FROM books b JOIN prizes p ON b.year + 1 = p.year",
    ),
)

BY_NAME = {s.name: s for s in STATEMENTS}
