"""Content words and their IDF weights, for the lexical judge and the extractive generator."""

import gzip
import math
import re
import unicodedata
from functools import cache
from importlib.resources import files

import Stemmer

from autoais.base.text.scripts import HAN

# A number keeps its inner points and commas ("2.5", "1,148"), a word its inner apostrophe, a letter its accents. Han
# characters and kana, written without spaces, are single-character words.
_LETTERS = rf"(?:(?![{HAN}])[^\W\d_][\u0300-\u036f]*)+"
_WORD = re.compile(rf"\d+(?:[.,]\d+)*|{_LETTERS}(?:['’]{_LETTERS})*|[{HAN}]")

STOP_WORDS = frozenset(
    """
    a about above after again against all also am an and any are as at be because been before being below
    between both but by can could did do does doing down during each few for from further had has have having he
    her here hers him his how i if in into is it its itself just me more most my no nor not of off on once only
    or other our out over own same she should so some such than that the their them then there these they this
    those through to too under until up very was we were what when where which while who whom whose why will
    with would you your
    """.split()
)  # fmt: skip

_stemmer = Stemmer.Stemmer("english")


def word_spans(text: str) -> list[tuple[int, int, str]]:
    """Return the words of a text, folded as in `words`, with their character offsets (end exclusive)."""
    return [
        (match.start(), match.end(), tokens[0]) for match in _WORD.finditer(text) if (tokens := words(match.group()))
    ]


def stem(word: str) -> str:
    """Return the Snowball English stem of a folded word."""
    root: str = _stemmer.stemWord(word)
    return root


def words(text: str) -> list[str]:
    """Return the words of a text, case-folded and NFKC-normalised, in order."""
    normalized = unicodedata.normalize("NFKC", text).casefold().replace("i\u0307", "i").replace("’", "'")
    return [word.removesuffix("'s") for word in _WORD.findall(normalized)]


def content_stems(text: str) -> list[str]:
    """Return the Snowball English stems of the words that are not stop words, in order, with repeats."""
    stems: list[str] = _stemmer.stemWords([word for word in words(text) if word not in STOP_WORDS])
    return stems


@cache
def _document_frequencies() -> tuple[int, dict[str, str]]:
    """Return the number of documents and the document frequency of each stem, which `idf` makes a number."""
    with files("autoais").joinpath("data/document-frequencies.tsv.gz").open("rb") as file:
        header, _, rows = gzip.decompress(file.read()).decode("utf-8").partition("\n")
    fields = rows.split()
    return int(header.split("\t")[1]), dict(zip(fields[::2], fields[1::2], strict=True))


def idf(stem: str) -> float:
    """Return the inverse document frequency, ln(1 + (N - n + 0.5) / (n + 0.5)); n = 0 for a stem not in the table."""
    total, frequencies = _document_frequencies()
    n = int(frequencies.get(stem, 0))
    return math.log(1 + (total - n + 0.5) / (n + 0.5))
