"""The generator without a model: quotes and cites one to three sentences of the passages. Deterministic."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from autoais.base.text.sentences import sentence_spans
from autoais.base.text.words import content_stems, idf
from rag.answer.generators.answer_types import answer_type
from rag.base.types import Answer, Citation, CitedSentence, Hit, Passage, Question

# The effect of each constant on answer recall and wrong answers: eval/results/open-nq-pool/extractive-constants.json.
_MIN_COVERAGE = 0.4  # minimum share of the question's weighted words in sentence and headings
_MAX_SENTENCES = 3  # sentences in an answer
_MIN_SCORE_SHARE = 0.8  # minimum score of a further sentence, as a share of the best one's
_MAX_OVERLAP = 0.6  # overlap of stems above which two sentences are duplicates
# A question for a definition; the verb between the subject of a definition and the rest.
_DEFINING = re.compile(r"\s*(?:what|who)(?:'s|’s| is| are| was| were| does)\b", re.IGNORECASE)
_COPULA = re.compile(r"\s(?:is|are|was|were|means|denotes|refers to|stands for)\s")
_ALIAS = re.compile(r"\(([^()]+)\)")

# Weights of the other features, chosen on half of nq_pool_dev by answer recall:
_RANK_WEIGHT = 1.2  # the passage's score, as a share of the best passage's
_SUBJECT_WEIGHT = 0.4  # the sentence opens with, or defines, the subject of the question
_TYPE_WEIGHT = 0.3  # it contains the name, date or number that the question asks for
_LENGTH_PENALTY = 0.2  # subtracted for more than 45 content words


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
    """Quotes the sentences that best match the words of the question; the baseline for every other generator."""

    name = "extractive.v1"

    def __init__(self, passages: int = 10) -> None:
        self._passages = passages

    def generate(self, question: Question, hits: Sequence[Hit]) -> Answer:
        """Quote up to three sentences; abstain if no sentence matches enough of the question."""
        candidates = _choose(sorted(self._candidates(question.text, hits), key=lambda c: (-c.score, c.order)))
        text, sentences = "", []
        for candidate in candidates:
            text += " " if text else ""
            start = len(text)
            text += " ".join(candidate.quote.split())
            citation = Citation(candidate.passage.id, candidate.start, candidate.end, candidate.quote, "copied")
            sentences.append(CitedSentence(text[start:], (citation,), start, len(text)))
        reason = None if candidates else "no retrieved sentence covers enough of the question"
        return Answer(question, text, tuple(sentences), tuple(hits), self.name, abstained=not candidates, reason=reason)

    def _candidates(self, question: str, hits: Sequence[Hit]) -> Iterator[_Candidate]:
        question_weights = {stem: idf(stem) for stem in content_stems(question)}
        type_pattern = answer_type(question)
        defining = _DEFINING.match(question) is not None
        total = sum(question_weights.values())
        top = max((hit.score for hit in hits), default=0.0)
        if not total or top <= 0:
            return
        for rank, hit in enumerate(hits[: self._passages]):
            headings = set(content_stems(hit.passage.headings))
            for number, (start, end) in enumerate(sentence_spans(hit.passage.text)):
                sentence = hit.passage.text[start:end]
                stems = content_stems(sentence)
                if len(stems) < 3 or not any(stem in question_weights for stem in stems):
                    continue
                # A sentence need not repeat the words of the headings.
                sentence_stems = headings.union(stems)
                score = sum(weight for stem, weight in question_weights.items() if stem in sentence_stems) / total
                if score < _MIN_COVERAGE:
                    continue
                score += _RANK_WEIGHT * hit.score / top
                score += _TYPE_WEIGHT * bool(type_pattern and type_pattern.search(sentence))
                score += _SUBJECT_WEIGHT * (
                    _defines(sentence, question_weights) if defining else _opens_with(stems, question_weights)
                )
                score -= _LENGTH_PENALTY * (len(stems) > 45)
                yield _Candidate(hit.passage, start, end, frozenset(stems), score, (rank, number))


def _choose(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    selection: list[_Candidate] = []
    for candidate in candidates:
        if len(selection) == _MAX_SENTENCES or (selection and candidate.score < _MIN_SCORE_SHARE * selection[0].score):
            break
        if all(_overlap(candidate.stems, other.stems) < _MAX_OVERLAP for other in selection):
            selection.append(candidate)
    # Reading order: the passage of the best sentence first, and the sentences of a passage in text order.
    passages = list(dict.fromkeys(candidate.passage.id for candidate in selection))
    return sorted(selection, key=lambda candidate: (passages.index(candidate.passage.id), candidate.start))


def _overlap(a: frozenset[str], b: frozenset[str]) -> float:
    return len(a & b) / min(len(a), len(b))


def _opens_with(stems: Sequence[str], question_weights: dict[str, float]) -> bool:
    """Whether a sentence opens with the question's words: it is likely to define them ("Citation precision is ...")."""
    return len(question_weights) <= len(stems) and set(stems[: len(question_weights)]) <= question_weights.keys()


def _defines(sentence: str, question_weights: dict[str, float]) -> float:
    """How well the subject of "X is ..." matches the subject of the question, 0 to 1; 1 for an exact match."""
    subject, copula, _ = _COPULA.sub("\0", sentence, count=1).partition("\0")
    if any(set(content_stems(alias)) == question_weights.keys() for alias in _ALIAS.findall(subject)):
        return 1.0  # "Attributable to Identified Sources (AIS) is ..." defines AIS
    stems = set(content_stems(subject))
    return len(stems & question_weights.keys()) / len(stems | question_weights.keys()) if copula and stems else 0.0
