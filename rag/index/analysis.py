"""English analysis of passages and queries, the same for every lexical retriever."""

import re
from collections.abc import Collection, Sequence
from functools import cache
from numbers import Integral

from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from rag.base.errors import QuestionError, RagError, check_list, check_type

ANALYZER = "english.v1: simple tokens of at most 40 bytes, lower case, Snowball English stems; queries drop stop words"
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


@cache
def passage_analyzer() -> TextAnalyzer:
    """The analyzer of passages, which keeps stop words."""
    return _english()


@cache
def _query_analyzer() -> TextAnalyzer:
    return _english(Filter.custom_stopword(QUERY_STOP_WORDS))


def _english(*filters: Filter) -> TextAnalyzer:
    builder = TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.remove_long(40)).filter(Filter.lowercase())
    for filter_ in filters:
        builder = builder.filter(filter_)
    return builder.filter(Filter.stemmer("english")).build()


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
    """The distinct terms (stems) of a query, in order; raises `QuestionError` if there are none."""
    check_query(query)
    terms = list(dict.fromkeys(_query_analyzer().analyze(query)))
    if not terms:
        excerpt = query.strip()[:60]
        raise QuestionError(f"nothing to search for in {excerpt!r}: only stop words or punctuation; add a content word")
    return terms


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
