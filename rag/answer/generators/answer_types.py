"""The type of answer that a question asks for: a name, a date or a number, an amount of money."""

import re
from functools import cache

MONEY, PHONE = "amount of money", "telephone number"

_MONEY_WORD = r"\b(?:prices?|costs?|rent|fees?|salary|dollar amount)\b"
_MONEY_ASKED = re.compile(  # not "What is a late fee?" or "What does the cost depend on?"
    rf"\bhow much\b.*{_MONEY_WORD}|\bwhat (?:do|does|did|will|would)\b.*(?<!\bthe )(?<!\ba )\bcost\b"
    rf"|^(?!.*\bwhat (?:do|does|did)\b).*{_MONEY_WORD} (?:of|for|per|to|in|at|on|if|from)\b"
    rf"|^(?!.*\bwhat\b).*{_MONEY_WORD}\W*$",
    re.IGNORECASE,
)
_PHONE_ASKED = re.compile(
    r"\b(?:phone|telephone|fax)\b.*\bnumber|\bnumber\b.*\b(?:phone|telephone|fax)\b", re.IGNORECASE
)
_OTHER_ASKED = re.compile(  # "When is the rent due?", "What lowers the price of it?", "We rent it. Is that cheap?"
    r"\b(?:who|whom|whose|when|where|why|which|how (?!much\b)|what (?!(?:is|are|was|were|do|does|did|will|would)\b))"
    r"|(?:^|[.,;:!?]\s*)(?:(?:and|or|so)\s)?"
    r"(?:can|could|do|does|did|is|are|was|were|will|would|may|might|should|must|has|have|i|we|if|under)\b",
    re.IGNORECASE,
)
_CURRENCY = re.compile(r"[$€£¥]|\b(?:euros?|dollars?|pounds?|cents?|free|nothing|waived)\b", re.IGNORECASE)
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_TIME = re.compile(
    rf"\d{{1,2}}(?:st|nd|rd|th)?\s(?:of\s)?{_MONTH}|{_MONTH}\s\d{{1,2}}\b|\d{{1,2}}:\d\d|\b\d{{1,2}}\s?[ap]\.?m\b"
)
_MIN_PHONE_DIGITS = 3


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]:
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
    """A pattern that the answer should match (a name, date or number), or None if the type is not clear."""
    folded_question = question.casefold()
    return next((pattern for asks, pattern in _patterns() if asks.search(folded_question)), None)


def numeric_type(question: str) -> str | None:
    """`MONEY` or `PHONE` if a question asks for that and nothing else, or None."""
    if _OTHER_ASKED.search(question):
        return None
    if _PHONE_ASKED.search(question):
        return PHONE
    return MONEY if _MONEY_ASKED.search(question) else None


def has_numeric(numeric: str, text: str) -> bool:
    """Whether a text may have an amount of money or a telephone number: "five nights until 30 April" has none.

    A currency is not needed, so any number counts that is no date or time.
    """
    if numeric == PHONE:
        return sum(map(str.isdigit, text)) >= _MIN_PHONE_DIGITS
    return _CURRENCY.search(text) is not None or any(map(str.isdigit, _TIME.sub("", text)))
