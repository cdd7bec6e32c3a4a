"""Resolves page names written by models: a fuzzy match against the titles of an index, then passages of the page."""

import re
import unicodedata
from difflib import SequenceMatcher
from urllib.parse import unquote

from rag.base.errors import QuestionError
from rag.base.types import Hit
from rag.index.index import Index
from rag.index.retriever_config import RetrieverConfig

_DEPTH = 200  # hits whose titles are compared, and among which the passages of a page are found
_MIN_SIMILARITY = 0.85  # minimum similarity of a title and a name
_BRACKETS_SIMILARITY = (
    0.9  # similarity of titles that differ only in brackets, such as "Deadpool (film)" and "Deadpool"
)
_BRACKETS = re.compile(r"\s*\([^()]*\)\s*\Z")
_NUMBER = re.compile(r"\d+")
_URL = re.compile(r"\A<?https?://[^/\s]+/(?:wiki/)?", re.IGNORECASE)


class Titles:
    """Finds pages of an index by name.

    Only titles that share a word with the name are compared; the index's English analysis keeps accents.
    """

    def __init__(self, index: Index) -> None:
        self._store = index.store
        self._by_title = index.bm25.with_config(RetrieverConfig("titles.v1", "bm25", {"weights": {"title": 1.0}}))
        self._by_both = index.bm25.with_config(
            RetrieverConfig("pages.v1", "bm25", {"weights": {"contents": 1.0, "title": 1.0}})
        )

    def resolve(self, pointer: str, query: str, k: int) -> list[Hit]:
        """At most k passages of the page that a pointer names, ranked by the query; none if it names no page.

        A pointer is the id of a passage, or a title or URL of a page, with or without "#" and a heading.
        """
        passage = self._store.get(pointer) if _encodable(pointer) else None
        if passage is not None:
            return [Hit(passage, 1.0)]
        name, _, section = unquote(_URL.sub("", pointer.strip())).replace("_", " ").partition("#")
        title = self.title(name)
        if title is None:
            return []
        page_query = " ".join(f"{title} {section.replace('#', ' ')} {query}".split())
        # The passages of a page may rank low if its title has few words, which many pages share.
        for search, text in ((self._by_both, page_query), (self._by_title, title)):
            try:
                hits = search.search([text], _DEPTH)[0]
            except QuestionError:
                continue
            if page_hits := [hit for hit in hits if hit.passage.title == title]:
                return page_hits[:k]
        return []

    def title(self, name: str) -> str | None:
        """The title most similar to a name, ties to the first hit; None if no title is similar enough."""
        try:
            hits = self._by_title.search([name.strip("\"'“”‘’*. ")], _DEPTH)[0]
        except QuestionError:
            return None
        titles = dict.fromkeys(hit.passage.title for hit in hits if hit.passage.title)
        likeness, best = max(
            ((title_similarity(name, title), title) for title in titles), key=lambda pair: pair[0], default=(0, "")
        )
        return best if likeness >= _MIN_SIMILARITY else None


def title_similarity(name: str, title: str) -> float:
    """The similarity of a name and a title, 0 to 1, by matching characters in order (Ratcliff & Obershelp 1988).

    Ignores case, accents, punctuation and white space; brackets at the end of one of them count little. Different
    numbers give 0 (the cup of 2014 is not the cup of 2018).
    """
    a, b = _plain(name), _plain(title)
    bare_a, bare_b = (_plain(_BRACKETS.sub("", text)) for text in (name, title))
    if bare_a and bare_a == bare_b and (bare_a == a) != (bare_b == b):
        return _BRACKETS_SIMILARITY
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
