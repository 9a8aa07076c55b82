"""Places on a web page: XPath, or CSS after `css:`."""

from __future__ import annotations

import re
from functools import lru_cache

from cssselect import HTMLTranslator, SelectorError
from lxml import etree

CSS = "css:"
_ATTRIBUTE = re.compile(r"^(.*?)::attr\(([\w-]+)\)$", re.DOTALL)


@lru_cache(maxsize=1024)
def xpath(place: str) -> str:
    """The XPath of a place. `css:a.next::attr(href)` is an attribute of what `a.next` finds.

    Raises `ValueError` for what is neither.
    """
    path = _translated(place.removeprefix(CSS).strip()) if place.startswith(CSS) else place
    try:
        etree.XPath(path or ".")(etree.Element("html"))
    except etree.XPathError:
        raise ValueError(f"{place!r} is not an XPath{_hint(place)}") from None
    return path


def elements(place: str) -> None:
    """Raises `ValueError` for a place that cannot be elements, such as a number or a comparison."""
    if not isinstance(etree.XPath(xpath(place))(etree.Element("html")), list):
        raise ValueError(f"{place!r} finds no elements{_hint(place)}")


def _translated(selector: str) -> str:
    attribute = _ATTRIBUTE.match(selector)
    try:
        path = HTMLTranslator().css_to_xpath(attribute[1] if attribute else selector)
    except SelectorError as error:
        raise ValueError(f"{selector!r} is not a CSS selector: {error}") from None
    return f"{path}/@{attribute[2]}" if attribute else path


def _hint(place: str) -> str:
    try:
        HTMLTranslator().css_to_xpath(place)
    except SelectorError:
        return ": correct it"
    return f": write {CSS}{place} if it is CSS"
