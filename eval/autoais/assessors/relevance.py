"""Grades of relevance by a language model, from 0 to 3, as umbrela's.

UMBRELA (Upadhyay et al. 2024, "UMBRELA: UMbrela is the (Open-Source Reproduction of the) Bing RELevance Assessor",
arXiv:2406.06519; castorini/umbrela) asks for each passage on its own, zero-shot, on the scale of TREC's Deep Learning
tracks. The wording of the prompt is ours. A reply that cannot be read is grade 0 in umbrela; here it is a failure, and
its passage is not in the qrels.
"""

import re
from typing import Any

from autoais.assessors.assessor import Ask, Assessor, Failure, Prompt, ReplyError, Work, object_schema, read_field
from autoais.base.types import Passage

PROMPTS = ("relevance.v1",)
_MAX_GRADE = 3
# "2", "Grade: 2", "##final score: 2"; possessive (*+), as a long run of blanks would take minutes otherwise
_BARE = re.compile(
    r"[\s#*_`\"']*+(?:(?:final\s++)?(?:grade|score|label)[\s*_`\"']*+(?:[:=]|is)?[\s*_`\"']*+)?([0-3])[\s*_`\"'.]*"
)
_SCHEMA = object_schema("grade", {"type": "integer", "enum": list(range(_MAX_GRADE + 1))})


def grade(assessor: Assessor, topic: str, query: str, passage: Passage) -> Work[dict[str, Any]]:
    """Grade a passage for a question.

    Returns a row with umbrela's fields `model`, `query`, `passage`, `prediction` (the reply), `judgment` and
    `result_status` (1, or 0 for a failure, which has no `judgment` and says why in `failures`), and `qid` and `docid`.
    """
    message = Prompt.read(*PROMPTS).fill(question=query, passage=passage.evidence)
    (result,) = yield [Ask(message, _SCHEMA, _read)]
    row = {"qid": topic, "docid": passage.id, "model": assessor.model, "query": query, "passage": passage.evidence}
    if isinstance(result, Failure):
        return {**row, "prediction": None, "judgment": None, "result_status": 0, "failures": [result.reason]}
    value, prediction = result
    return {**row, "prediction": prediction, "judgment": value, "result_status": 1}


def _read(reply: str) -> tuple[int, str]:
    """Return the grade of a reply, and the reply; raises `ReplyError`."""
    if bare := _BARE.fullmatch(reply.lower()):
        return int(bare[1]), reply
    value = read_field(reply, "grade")
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_GRADE:
        raise ReplyError(f"the grade is not a whole number from 0 to {_MAX_GRADE}: {str(value)[:40]!r}")
    return value, reply
