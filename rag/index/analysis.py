"""English analysis of passages and queries, the same for every lexical retriever.

Text in other scripts is found too: those without blanks between words, and Korean, by pairs of letters.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from numbers import Integral

from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from autoais.base.text.scripts import UNSPACED
from rag.base.errors import IndexingError, QuestionError, RagError, check_list, check_type

_MAX_QUERY_LENGTH = 10_000
# max_depth, -c, --all, os.path, std::map, /etc/hosts, sha256, maxDepth
_IDENTIFIER = re.compile(r"^--?\w|_|\w[:/.]+\w|[a-z]\d|\d[a-z]|[a-z][A-Z]|\w\(\)$")
_AROUND_WORDS = "?!.,;:\"'`[]“”‘’"
# "2nd", "1990s", "U.S.", "e.g.", "10:30", "24/7", "10am", "2.5kg" look like identifiers and are none.
_NO_IDENTIFIER = re.compile(
    r"\d+(?:st|nd|rd|th|s)|(?:[a-z]\.)+[a-z]?|\d+(?:[:/]\d+)+"
    r"|\d+(?:[.:,]\d+)?(?:[ap]m|h|hrs?|mins?|[cmk]?m|k?g|lbs?|m?l|[kmgt]b|k|x)",
    re.IGNORECASE,
)
_LETTER_OPTION = re.compile(r"-\w")  # -c is not -C
# Words of a question that say nothing of what it is about, besides stop words.
_QUESTION_WORDS = frozenset(
    "can could do does did has have i is may me must my one should there we would you your".split()
)

# Lucene's English stop words, and question words.
QUERY_STOP_WORDS = """
    a an and are as at be but by for if in into is it no not of on or such that the their then there these they
    this to was will with did do does how which what when where who whom whose why
    """.split()


_RUN = re.compile(rf"[{UNSPACED}\uac00-\ud7a3]+")
# Tones and marks that Tantivy takes for the end of a word.
_SILENT = re.compile("[\u0e47-\u0e4e\u0ec8-\u0ece\u1037\u1039\u103a\u17c9-\u17d3\u17dd\u3099\u309a]")
# NFKC would join these to what is before them: signs of trademarks, as letters, and fractions, as digits.
_SIGNS = re.compile(r"[\u2120\u2122]|(?<=\d)(?=[\u00bc-\u00be\u2150-\u215e])")


@dataclass(frozen=True, slots=True)
class Analysis:
    """How texts become terms: simple tokens, lower case, Snowball English stems; queries drop stop words.

    `name` stands in the manifest of an index. Tokens of more than `max_length` bytes are left out. One that `folds`
    applies NFKC and case folding, and finds text in scripts without blanks.
    """

    name: str
    max_length: int
    folds: bool

    @property
    def description(self) -> str:
        """What the manifest of an index says."""
        folded = "NFKC, case folding, pairs of letters in scripts without blanks, " if self.folds else ""
        return (
            f"{self.name}: {folded}simple tokens of at most {self.max_length} bytes, lower case, Snowball English "
            "stems; queries drop stop words"
        )

    @property
    def analyzer(self) -> TextAnalyzer:
        """Tantivy's analyzer of what `prepare` makes of a passage; it keeps stop words."""
        return _english(self.max_length)

    def prepare(self, text: str) -> str:
        """The text of a passage as Tantivy indexes it."""
        return _fold(text, _letters_and_pairs) if self.folds else text

    def passage_terms(self, text: str) -> list[str]:
        """The terms of a passage, in order."""
        return self.analyzer.analyze(self.prepare(text))

    def query_terms(self, query: str) -> list[str]:
        """The distinct terms (stems) of a query, in order; raises `QuestionError` if there are none."""
        check_query(query)
        text = _fold(query, _pairs) if self.folds else query
        terms = list(dict.fromkeys(_english(self.max_length, drop_stop_words=True).analyze(text)))
        if not terms:
            is_long = any(len(word.encode()) > self.max_length for word in query.split())
            reason = f"only words of more than {self.max_length} bytes" if is_long else "only stop words or punctuation"
            raise QuestionError(f"nothing to search for in {query.strip()[:60]!r}: {reason}; add a content word")
        return terms


_ANALYSES = {
    analysis.name: analysis for analysis in (Analysis("english.v1", 39, False), Analysis("english.v2", 255, True))
}
ANALYSIS = _ANALYSES["english.v2"]
"""The analysis of new indexes."""


def analysis_of(description: str) -> Analysis:
    """The analysis that the manifest of an index describes; raises `IndexingError` for one of another version."""
    name = str(description).partition(":")[0]
    if name not in _ANALYSES:
        raise IndexingError(
            f"the index has terms of the analyzer {name[:40]!r}: upgrade attributed-rag or build it again"
        )
    return _ANALYSES[name]


@cache
def _english(max_length: int, *, drop_stop_words: bool = False) -> TextAnalyzer:
    long = Filter.remove_long(max_length + 1)  # keeps what is shorter
    builder = TextAnalyzerBuilder(Tokenizer.simple()).filter(long).filter(Filter.lowercase())
    if drop_stop_words:
        builder = builder.filter(Filter.custom_stopword(QUERY_STOP_WORDS))
    return builder.filter(Filter.stemmer("english")).build()


def _fold(text: str, split: Callable[[str], Iterable[str]]) -> str:
    """Text in which equal words have equal letters, and what `split` makes of runs of letters without blanks."""
    if text.isascii():
        return text
    folded = unicodedata.normalize("NFKC", _SIGNS.sub(" ", text)).casefold().replace("i\u0307", "i")
    folded = unicodedata.normalize("NFC", folded)  # case folding parts some Greek letters from their accents
    return _RUN.sub(lambda run: f" {' '.join(split(_SILENT.sub('', run[0])))} ", folded)


def _pairs(letters: str) -> list[str]:
    return [*map("".join, pairwise(letters))] or [letters]


def _letters_and_pairs(letters: str) -> list[str]:
    """The terms of a passage: single letters too, as a query may be a word of one letter."""
    return [*letters, *map("".join, pairwise(letters))]


def check_query(query: str) -> None:
    """Raise `QuestionError` for a query that is empty, too long, or contains invalid characters."""
    if not query.strip():
        raise QuestionError("the question is empty")
    if len(query) > _MAX_QUERY_LENGTH:
        raise QuestionError(f"the question has {len(query):,} characters; at most {_MAX_QUERY_LENGTH:,} are searched")
    try:
        query.encode("utf-8")
    except UnicodeEncodeError:
        raise QuestionError("the question contains bytes or a lone surrogate that are not characters") from None


def query_terms(query: str) -> list[str]:
    """The distinct terms of a query in new indexes, in order; raises `QuestionError` if there are none."""
    return ANALYSIS.query_terms(query)


def is_lookup(query: str) -> bool:
    """Whether a query asks for something by its exact name: it has an identifier, or one word besides stop words."""
    words = _content_words(query)
    return len(words) == 1 or any(map(_is_identifier, words))


def name_pattern(query: str) -> re.Pattern[str] | None:
    """Return what finds the name that a query asks about: its only identifier, or its only word; None if it asks more.

    "What is the default of max_depth?" is about `max_depth`; with three or more other words, a query is about those.
    The pattern finds the whole name: `--exclude` is not in `--exclude-from`, nor `os.path` in `os.path.join`.
    """
    words = [word for word in _content_words(query) if word.lower() not in _QUESTION_WORDS]
    name = next(filter(_is_identifier, words), words[0] if len(words) == 1 else None)
    other_words = [word for word in words if word != name]
    if name is None or len(other_words) > 2 or any(map(_is_identifier, other_words)):
        return None
    before = r"(?<![\w-])" if name.startswith("-") else r"(?<!\w)"
    case = re.NOFLAG if _LETTER_OPTION.fullmatch(name) else re.IGNORECASE
    return re.compile(rf"{before}{re.escape(name.removesuffix('()'))}(?![\w-]|[./]\w|::)", case)


def _is_identifier(word: str) -> bool:
    return bool(_IDENTIFIER.search(word)) and not _NO_IDENTIFIER.fullmatch(word)


def _content_words(query: str) -> list[str]:
    words = [word for word in map(_bare, query.split()) if word]
    return [word for word in words if word.lower() not in QUERY_STOP_WORDS]


def _bare(word: str) -> str:
    """A word without the punctuation around it, and without a possessive's ending."""
    word = re.sub(r"['’]s$", "", word.strip(_AROUND_WORDS))
    return word if word.endswith("()") else word.strip("()")


def check_search(queries: Sequence[str], k: int) -> None:
    """Raise `UsageError` unless the queries are a list of strings and k is an int, `RagError` for a k below 1."""
    check_list("queries", queries, "a list of strings")
    check_type("queries", queries, "a list of strings", Collection)
    for query in queries:
        check_type("query", query, "a string", str)
    check_type("k", k, "an int", Integral)
    if k < 1:
        raise RagError(f"k must be at least 1, not {k}")
