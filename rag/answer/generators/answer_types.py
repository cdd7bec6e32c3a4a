"""The type of answer that a question asks for: a name, a date or a number."""

import re
from functools import cache


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
