"""Attribution of a claim: the passage that supports it according to a judge, and the supporting span."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from autoais.base.text.sentences import sentence_spans
from autoais.base.types import Attribution, Judge, Judgement, Span
from autoais.metrics.short_answers import has_answer
from rag.answer.word_overlap import nearest_sentence, overlap, word_weights
from rag.base.types import Citation, Passage

# Chosen on every eighth question of nq_pool_dev (open-nq-pool/post-hoc-constants.json): more pairs gain little.
_CANDIDATES = 5  # passages judged per claim
_AMOUNT = re.compile(r"[$€£¥]?\b((?:\d{1,3}(?:,\d{3})+|\d{1,15})(?:\.\d{1,6})?)(?!\d|[.,]\d)")
_LARGE = 100  # from which on two equal numbers are hardly equal by chance
_SENTENCES = 3  # sentences of the chosen passage that are judged individually


@dataclass(frozen=True, slots=True)
class SupportingSpan:
    """A passage that supports a claim, and the span `start:end` of its text that suffices.

    `probability` is the judge's for the whole passage, or None.
    """

    passage: Passage
    start: int
    end: int
    probability: float | None

    def citation(self, origin: str) -> Citation:
        """The citation of this span."""
        return Citation(self.passage.id, self.start, self.end, self.passage.text[self.start : self.end], origin)


class Attributor:
    """Finds support for claims among passages, with few calls to the judge.

    Passages are judged as in AutoAIS, with their headings before the text (Bohnet et al. 2022). The judge's template
    makes the hypothesis: a short answer is combined with its question, a sentence stays unchanged
    (`autoais.judges.templates.auto`). `candidates` passages are judged per claim.
    """

    def __init__(self, judge: Judge, candidates: int = _CANDIDATES) -> None:
        self.judge = judge
        self._candidates = candidates

    @property
    def name(self) -> str:
        """The judge, and the number of passages it judges per claim."""
        return f"{self.judge.name}@{self._candidates}"

    def verdicts(self, claim: str, passages: Sequence[Passage], question: str = "") -> list[Judgement]:
        """Judge the claim against each whole passage."""
        evidence = [passage.evidence for passage in passages]
        return self.judge.judge([Attribution(match_amounts(claim, text), (text,), question) for text in evidence])

    def together(self, claim: str, passages: Sequence[Passage], question: str = "") -> Judgement:
        """Judge the claim against all passages together."""
        evidence = tuple(passage.evidence for passage in passages)
        return self.judge.support(match_amounts(claim, " ".join(evidence)), evidence, question)

    def nearest(self, claim: str, passages: Sequence[Passage]) -> list[Passage]:
        """The candidates for the judge: the passages that share most of the claim's words, ties in the given order."""
        by_id = {passage.id: passage for passage in passages if passage.text.strip()}
        weights = word_weights(claim)
        shares = {key: overlap(weights, passage.contents) for key, passage in by_id.items()}
        return [by_id[key] for key in sorted(by_id, key=lambda key: -shares[key])[: self._candidates]]

    def support(self, claim: str, passages: Sequence[Passage], question: str = "") -> SupportingSpan | None:
        """The passage that most probably supports the claim, ties in the given order; None if no passage does."""
        return self.choose_support(claim, self.judge_nearest(claim, passages, question), passages, question)

    def judge_nearest(
        self, claim: str, passages: Sequence[Passage], question: str = ""
    ) -> list[tuple[Passage, Judgement]]:
        """The candidates (`nearest`), nearest first, with their judgements."""
        candidates = self.nearest(claim, passages)
        return list(zip(candidates, self.verdicts(claim, candidates, question), strict=True))

    def choose_support(
        self,
        claim: str,
        candidates: Sequence[tuple[Passage, Judgement]],
        passages: Sequence[Passage],
        question: str = "",
    ) -> SupportingSpan | None:
        """The candidate that most probably supports the claim, ties in the order of `passages`; None if none does."""
        supporting = [pair for pair in candidates if pair[1].verdict.ais is True]
        if not supporting:
            return None
        positions = {passage.id: number for number, passage in enumerate(passages)}
        passage, judgement = min(supporting, key=lambda pair: (-_probability(pair[1]), positions[pair[0].id]))
        return self.find_span(claim, passage, judgement, question)

    def find_span(self, claim: str, passage: Passage, judgement: Judgement, question: str = "") -> SupportingSpan:
        """The span of a passage that supports the claim, or says most about it, given the judgement of the passage.

        In a passage that supports the claim this is the shortest span of one to three sentences that the judge still
        accepts, or else the sentence with the highest probability. In another passage it is the sentence that shares
        most words with the claim: of one that says otherwise, the probability is low.
        """
        if judgement.verdict.ais is True:
            start, end = self._span(claim, passage, judgement, question)
        else:
            spans = sentence_spans(passage.text)
            first = spans[0] if spans else (0, len(passage.text))
            start, end = nearest_sentence(passage.text, claim) or first
        return SupportingSpan(passage, start, end, judgement.probability)

    def _span(self, claim: str, passage: Passage, judgement: Judgement, question: str) -> tuple[int, int]:
        spans = sentence_spans(passage.text)
        if len(spans) < 2:
            return spans[0] if spans else (0, len(passage.text))
        claim_weights, question_weights = word_weights(claim), word_weights(question)
        texts = [passage.text[start:end] for start, end in spans]
        verbatim = [has_answer(text, [claim]) for text in texts]

        def promise(number: int) -> tuple[bool, bool, float, float]:
            was_read = _was_read(spans[number], passage, judgement.evidence)
            return (
                verbatim[number],
                was_read,
                overlap(claim_weights, texts[number]),
                overlap(question_weights, texts[number]),
            )

        order = sorted(range(len(spans)), key=promise, reverse=True)[:_SENTENCES]  # stable: ties stay in order
        single_judgements = zip(
            order, self._judge_spans(claim, passage, [spans[number] for number in order], question), strict=True
        )
        best, judgement_of_best = min(single_judgements, key=lambda pair: _preference(pair[1], verbatim[pair[0]]))
        if judgement_of_best.verdict.ais is True:
            return spans[best]
        last = len(spans) - 1
        pairs = [(low, low + 1) for low in (best - 1, best) if 0 <= low < last]
        wider = [(low, high) for low, high in [*pairs, (best - 1, best + 1)] if low >= 0 and high <= last]
        wider = [(spans[low][0], spans[high][1]) for low, high in dict.fromkeys(wider)]
        enough = [
            span
            for span, verdict in zip(wider, self._judge_spans(claim, passage, wider, question), strict=True)
            if verdict.verdict.ais is True
        ]
        return min(enough, key=lambda span: span[1] - span[0], default=spans[best])

    def _judge_spans(
        self, claim: str, passage: Passage, spans: Sequence[tuple[int, int]], question: str
    ) -> list[Judgement]:
        texts = [replace(passage, text=passage.text[start:end]).evidence for start, end in spans]
        return self.judge.judge([Attribution(match_amounts(claim, text), (text,), question) for text in texts])


def cites_whole(citation: Citation, passage: Passage) -> bool:
    """Whether a citation names a whole passage of several sentences, so that it can be narrowed."""
    return citation.span == (0, len(passage.text)) and len(sentence_spans(passage.text)) > 1


def match_amounts(claim: str, text: str) -> str:
    """The claim with its amounts as the text writes them, which a judge compares by their signs: 39800 for $39,800.

    Numbers below 100 are changed only with decimals or the sign of a currency: others are too often equal by chance.
    """
    amounts: dict[Decimal, str] = {}
    for match in _AMOUNT.finditer(text):
        amounts.setdefault(_value(match), match[0])

    def replacement(match: re.Match[str]) -> str:
        by_chance = _value(match) < _LARGE and match[0].isdigit()
        amount = match[0] if by_chance or match[0] in text else amounts.get(_value(match), match[0])
        other_currency = amount[0] != match[0][0] and not (amount[0].isdigit() or match[0][0].isdigit())
        return match[0] if other_currency else amount

    return _AMOUNT.sub(replacement, claim)


def _value(amount: re.Match[str]) -> Decimal:
    return Decimal(amount[1].replace(",", ""))


def _was_read(span: tuple[int, int], passage: Passage, read_spans: Sequence[Span]) -> bool:
    """Whether the judge read any part of the span; a judge that reports no spans has read everything."""
    before = len(passage.evidence) - len(passage.text)
    return not read_spans or any(part.start - before < span[1] and span[0] < part.end - before for part in read_spans)


def _probability(judgement: Judgement) -> float:
    return 0.5 if judgement.probability is None else judgement.probability


def _preference(judgement: Judgement, verbatim: bool) -> tuple[bool, bool, float]:
    """Sort key: attributable first, then spans that contain the claim verbatim, then the more probable ones."""
    return judgement.verdict.ais is not True, not verbatim, -_probability(judgement)
