"""The question that a quoted "Yes" or "No" answers where it stands, which the answer leaves unsaid."""

import re

from rag.base.types import Answer

_YES_NO = re.compile(r"(?:Yes|No)(?=[.,;:!]|\s[–—-]|$)")
_ENDS = (". ", "! ", "? ")


def find_quoted_question(answer: Answer) -> str:
    """Return what an answer that begins with a quoted "Yes" or "No" is about; empty for other answers.

    That is the question before it in the passage, or the headings of the passage that it opens.
    """
    if not answer.sentences or not _YES_NO.match(answer.text):
        return ""
    passages = {hit.passage.id: hit.passage for hit in answer.hits}
    for citation in answer.sentences[0].citations:
        if citation.origin != "copied":
            continue
        passage = passages[citation.passage]
        before = passage.text[: citation.start].rstrip()
        if not before:
            return passage.section or passage.title or passage.headings
        line = before.rpartition("\n")[2].strip()
        if line.endswith("?"):
            return line[max(line.rfind(end, 0, -1) for end in _ENDS) + 1 :].strip()
    return ""
