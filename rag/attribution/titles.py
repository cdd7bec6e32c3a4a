"""Pages by the names that models give them: a fuzzy match against the titles of an index, then passages of the page."""

import re
import unicodedata
from difflib import SequenceMatcher
from urllib.parse import unquote

from rag.errors import QuestionError
from rag.index.index import Index
from rag.index.recipes import Recipe
from rag.types import Hit

_DEPTH = 200  # passages whose titles are compared, and among which those of a page are looked for
_ALIKE = 0.85  # the least likeness of a title to the name
_ASIDE = 0.9  # likeness of titles that differ by what stands in brackets, "Deadpool (film)" and "Deadpool"
_BRACKETS = re.compile(r"\s*\([^()]*\)\s*\Z")
_NUMBER = re.compile(r"\d+")
_URL = re.compile(r"\A<?https?://[^/\s]+/(?:wiki/)?", re.IGNORECASE)


class Titles:
    """The pages of an index by name.

    Titles that share a word with the name (as the index's English analysis has words: with their accents) are compared.
    """

    def __init__(self, index: Index) -> None:
        self._store = index.store
        self._by_title = index.bm25.weighted(Recipe("titles.v1", "bm25", {"weights": {"title": 1.0}}))
        self._by_both = index.bm25.weighted(Recipe("pages.v1", "bm25", {"weights": {"contents": 1.0, "title": 1.0}}))

    def resolve(self, pointer: str, query: str, k: int) -> list[Hit]:
        """At most k passages that a pointer may mean, those that suit the query first; none where it names no page.

        A pointer is the id of a passage, or a title with or without "#" and a heading, also as the address of a page.
        """
        passage = self._store.get(pointer) if _encodable(pointer) else None
        if passage is not None:
            return [Hit(passage, 1.0)]
        name, _, section = unquote(_URL.sub("", pointer.strip())).replace("_", " ").partition("#")
        title = self.title(name)
        if title is None:
            return []
        wanted = " ".join(f"{title} {section.replace('#', ' ')} {query}".split())
        # A title of few words that many pages have may not bring the page's own passages to the front.
        for search, text in ((self._by_both, wanted), (self._by_title, title)):
            try:
                hits = search.search([text], _DEPTH)[0]
            except QuestionError:
                continue
            if found := [hit for hit in hits if hit.passage.title == title]:
                return found[:k]
        return []

    def title(self, name: str) -> str | None:
        """The title most like a name, the first found of equals; None where none is alike enough."""
        try:
            hits = self._by_title.search([name.strip("\"'“”‘’*. ")], _DEPTH)[0]
        except QuestionError:
            return None
        titles = dict.fromkeys(hit.passage.title for hit in hits if hit.passage.title)
        likeness, best = max(((alike(name, title), title) for title in titles), key=lambda one: one[0], default=(0, ""))
        return best if likeness >= _ALIKE else None


def alike(name: str, title: str) -> float:
    """How like a name is to a title, 0 to 1: share of characters in common, in order (Ratcliff & Obershelp 1988).

    Case, accents, punctuation and white space do not count; what one of them has in brackets at the end counts little;
    other numbers make another page (the cup of 2014 is not the cup of 2018).
    """
    a, b = _plain(name), _plain(title)
    bare_a, bare_b = (_plain(_BRACKETS.sub("", text)) for text in (name, title))
    if bare_a and bare_a == bare_b and (bare_a == a) != (bare_b == b):
        return _ASIDE
    if not a or not b or sorted(_NUMBER.findall(a)) != sorted(_NUMBER.findall(b)):
        return 0.0
    return SequenceMatcher(None, a, b, autojunk=False).ratio()


def _plain(text: str) -> str:
    letters = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return " ".join(re.findall(r"\w+", letters.replace("_", " ")))


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
