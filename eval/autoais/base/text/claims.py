"""Detection of sentences that claim nothing: AIS excludes questions and imperatives (Rashkin et al. 2023, sec. 3)."""

import re

# Both lists are short on purpose: a sentence excluded by mistake hides an error, one kept by mistake costs little.
_ASKS = re.compile(
    r"(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did|has|have|had|can|could|will|would"
    r"|shall|should|may|might|must)\b.*\?[\s)\]]*",
    re.IGNORECASE | re.DOTALL,
)
_TELLS = re.compile(
    r"(?:see also|let me know|feel free to"
    r"|(?:for [\w ]{1,40}, )?(?:please )?(?:see|refer to|consult) (?:the|this|that|these|our|section|page)"
    r"|please (?:see|refer|consult|check|contact|visit|ask|provide|clarify|specify|let|try))\b"
    r"(?!.*\b(?:is|are|was|were|has|have|had)\b)",  # "See the Sea is a film" claims something
    re.IGNORECASE | re.DOTALL,
)


def is_applicable(sentence: str, short_answer: str | None = None) -> bool:
    """Return whether a sentence claims something: False for questions and for instructions to the reader.

    A question begins with a question word or an auxiliary verb and ends in "?". An instruction begins with one of a
    few set phrases ("see also", "refer to the", "please contact", "let me know") and has no "is", "was" or the like.
    "Note that ..." makes a claim. A sentence that equals the short answer ("Who Framed Roger Rabbit?") is an answer,
    not a question.
    """
    text = sentence.strip()
    if short_answer is not None and text == short_answer.strip():
        return True
    return not (_ASKS.fullmatch(text) or _TELLS.match(text))
