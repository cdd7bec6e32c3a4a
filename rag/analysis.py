"""English analysis: the tokens of passages and the terms of queries, the same for every lexical retriever."""

import re
from functools import cache

from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from rag.errors import QuestionError, RagError

ANALYZER = "english.v1: simple tokens of at most 40 bytes, lower case, Snowball English stems; queries drop stop words"
_LONGEST_QUERY = 10_000

# Lucene's English stop words, and the words that only make a sentence a question.
QUERY_STOP_WORDS = """
    a an and are as at be but by for if in into is it no not of on or such that the their then there these they
    this to was will with did do does how which what when where who whom whose why
    """.split()


@cache
def passage_analyzer() -> TextAnalyzer:
    """Tokens of a passage, stop words kept."""
    return _english()


@cache
def _query_analyzer() -> TextAnalyzer:
    return _english(Filter.custom_stopword(QUERY_STOP_WORDS))


def _english(*filters: Filter) -> TextAnalyzer:
    builder = TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.remove_long(40)).filter(Filter.lowercase())
    for each in filters:
        builder = builder.filter(each)
    return builder.filter(Filter.stemmer("english")).build()


def check_query(query: str) -> None:
    """`QuestionError` for a query that is empty, too long, or holds what is no character."""
    if not query.strip():
        raise QuestionError("the question is empty")
    if len(query) > _LONGEST_QUERY:
        raise QuestionError(f"the question has {len(query):,} characters; at most {_LONGEST_QUERY:,} are searched")
    try:
        query.encode("utf-8")
    except UnicodeEncodeError:
        raise QuestionError("the question holds bytes or half a surrogate pair that are no characters") from None


def query_terms(query: str) -> list[str]:
    """The different stems of a query that are searched for, in order; `QuestionError` if there are none."""
    check_query(query)
    terms = list(dict.fromkeys(_query_analyzer().analyze(query)))
    if not terms:
        shown = query.strip()[:60]
        raise QuestionError(f"nothing to search for in {shown!r}: only stop words or punctuation; add a content word")
    return terms


def check_depth(k: int) -> None:
    """`RagError` unless k is at least 1."""
    if k < 1:
        raise RagError(f"k must be at least 1, not {k}")


@cache
def _asked_for() -> tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]:
    name = re.compile(r"(?<!^)(?<![.!?] )\b[A-Z][a-z]+")
    number = re.compile(r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|hundred|thousand|million)\b")
    date = re.compile(
        r"\b[12]\d{3}\b|\b(?:January|February|March|April|May|June|July|August|September|October|November|December)\b"
    )
    return (
        (re.compile(r"\bwho\b|\bwhose\b|\bwhom\b|\bwhere\b|\bname\b"), name),
        (re.compile(r"\bwhen\b|\bwhat year\b|\bwhat date\b|\bwhat day\b|\bwhat month\b"), date),
        (re.compile(r"\bhow (?:many|much|long|old|far|tall|big|high|deep|fast|often)\b|\bpopulation\b"), number),
    )


def answer_type(question: str) -> re.Pattern[str] | None:
    """What an answer to the question should contain: a name, a date, a number; None where the words do not tell."""
    folded = question.casefold()
    return next((looked_for for asks, looked_for in _asked_for() if asks.search(folded)), None)
