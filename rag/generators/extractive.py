"""The answer without any model: one to three sentences of the passages, quoted and cited. Deterministic."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from autoais.words import content_stems, idf
from rag.sentences import sentence_spans
from rag.types import Answer, Citation, Hit, Passage, Question, Sentence

_MOST = 3  # sentences in an answer
_WORTH = 0.8  # of the best sentence's score: less is not quoted beside it
_SAME = 0.6  # shared part of the words above which two sentences say the same


@dataclass(frozen=True, slots=True)
class _Candidate:
    passage: Passage
    start: int
    end: int
    stems: frozenset[str]
    score: float
    order: tuple[int, int]  # rank of the passage, sentence in it: the tie-break

    @property
    def quote(self) -> str:
        return self.passage.text[self.start : self.end]


class Extractive:
    """Chooses the sentences whose words answer the question's words best; the floor for every other generator."""

    name = "extractive.v1"

    def __init__(self, passages: int = 10) -> None:
        self._passages = passages

    def generate(self, question: Question, hits: Sequence[Hit]) -> Answer:
        """Quote up to three sentences; abstain where no sentence shares a content word with the question."""
        chosen = _choose(sorted(self._candidates(question.text, hits), key=lambda c: (-c.score, c.order)))
        text, sentences = "", []
        for candidate in chosen:
            text += " " if text else ""
            start = len(text)
            text += " ".join(candidate.quote.split())
            citation = Citation(candidate.passage.id, candidate.start, candidate.end, candidate.quote)
            sentences.append(Sentence(start, len(text), (citation,)))
        reason = None if chosen else "no sentence found shares a content word with the question"
        return Answer(question, text, tuple(sentences), tuple(hits), self.name, abstained=not chosen, reason=reason)

    def _candidates(self, question: str, hits: Sequence[Hit]) -> Iterator[_Candidate]:
        asked = {stem: idf(stem) for stem in content_stems(question)}
        wanted = _answer_type(question)
        whole = sum(asked.values())
        top = max((hit.score for hit in hits), default=0.0)
        if not whole or top <= 0:
            return
        for rank, hit in enumerate(hits[: self._passages]):
            headings = set(content_stems(hit.passage.headings))
            for number, (start, end) in enumerate(sentence_spans(hit.passage.text)):
                sentence = hit.passage.text[start:end]
                stems = content_stems(sentence)
                # What the headings say need not be said again: half a point for it.
                shared = sum(
                    weight * (1.0 if stem in stems else 0.5 if stem in headings else 0.0)
                    for stem, weight in asked.items()
                )
                if len(stems) < 3 or not shared or not any(stem in stems for stem in asked):
                    continue
                score = shared / whole
                score += 0.5 * hit.score / top
                score += 0.2 * bool(wanted and wanted.search(sentence))
                score += 0.2 * _opens_with(stems, asked)
                score -= 0.2 * (len(stems) > 45)
                yield _Candidate(hit.passage, start, end, frozenset(stems), score, (rank, number))


def _choose(ranked: Sequence[_Candidate]) -> list[_Candidate]:
    chosen: list[_Candidate] = []
    for candidate in ranked:
        if len(chosen) == _MOST or (chosen and candidate.score < _WORTH * chosen[0].score):
            break
        if all(_overlap(candidate.stems, other.stems) < _SAME for other in chosen):
            chosen.append(candidate)
    return chosen


def _overlap(a: frozenset[str], b: frozenset[str]) -> float:
    return len(a & b) / min(len(a), len(b))


def _opens_with(stems: Sequence[str], asked: dict[str, float]) -> bool:
    """A sentence that opens with what was asked about is likely to define it ("Citation precision is ...")."""
    return len(asked) <= len(stems) and set(stems[: len(asked)]) <= asked.keys()


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


def _answer_type(question: str) -> re.Pattern[str] | None:
    """What an answer to the question should contain: a name, a date, a number; None where the words do not tell."""
    folded = question.casefold()
    return next((looked_for for asks, looked_for in _patterns() if asks.search(folded)), None)
