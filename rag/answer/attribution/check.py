"""Checks of an answer: the verdict of each sentence, the words that lack support, and the span that contradicts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from autoais.base.text.excerpt import find_words_outside
from autoais.base.text.quotes import is_quoted
from autoais.base.text.sentences import sentence_spans
from autoais.base.text.words import content_stems, stem, words
from autoais.base.types import Judge, Judgement, Verdict
from autoais.judges.alignment import align, contradicts
from autoais.judges.numbers import find_clash
from autoais.metrics.claims import judge_claims
from autoais.metrics.judged import claims_to_judge
from autoais.metrics.quotes import QuoteCheck, check_quotes
from rag.answer.attribution.attributor import Attributor, cites_whole, match_amounts
from rag.answer.generator import Generator, map_answers, stream_answer
from rag.answer.word_overlap import overlap, word_weights
from rag.base.types import Answer, Citation, CitedSentence, Hit, Passage, Question

QUOTED_REASON = "quoted word for word"
"""The reason of a sentence that consists of whole sentences of a passage that it cites."""

# Of the words of a sentence, by idf, that a source with another number has. Of claims that are not supported in sets of
# minimal pairs and NLI for training, 57 of 62 that this finds beside `contradicts` are labelled as contradicted.
_MIN_SHARED = 0.7


class SentenceVerdict(StrEnum):
    """The verdict of a sentence as pages show it: do its citations support it?"""

    SUPPORTED = "supported"
    NOT_ENOUGH = "not_enough"
    CONTRADICTED = "contradicted"
    UNDECIDED = "undecided"
    NO_CLAIM = "no_claim"


LABELS = {
    SentenceVerdict.SUPPORTED: "supported",
    SentenceVerdict.NOT_ENOUGH: "not supported",
    SentenceVerdict.CONTRADICTED: "contradicted",
    SentenceVerdict.UNDECIDED: "unclear",
    SentenceVerdict.NO_CLAIM: "nothing to check",
}
"""The words for each verdict, the same on pages and in exported files."""

REJECTED = (SentenceVerdict.NOT_ENOUGH, SentenceVerdict.CONTRADICTED)
"""The verdicts of a sentence that the judge does not find supported; it is not one that it cannot decide."""


@dataclass(frozen=True, slots=True)
class SentenceCheck:
    """The check of one sentence against all that it cites (the rule of AutoAIS, Bohnet et al. 2022).

    `probability` is the judge's that the sentence is supported, or None. `unsupported` are the words, as character
    offsets in the sentence (end exclusive), that occur nowhere in the evidence or clash with it. `nearest` is the span
    that says most about the sentence in the passages that it does not cite, if it was asked for and the sentence is not
    supported; `nearest_supports` says whether the judge accepts it. `contradiction` is the span that says otherwise, of
    a cited passage or, for a sentence that cites nothing, of the nearest one; `differences` are its words that clash
    with the sentence, as offsets in its quote, and `numbers` the number there and that of the sentence, as written, if
    they differ. `quotes` are the quotations that begin in the sentence.
    """

    verdict: SentenceVerdict
    probability: float | None = None
    reason: str | None = None
    unsupported: tuple[tuple[int, int], ...] = ()
    nearest: Citation | None = None
    nearest_supports: bool = False
    contradiction: Citation | None = None
    differences: tuple[tuple[int, int], ...] = ()
    numbers: tuple[str, str] | None = None
    quotes: tuple[QuoteCheck, ...] = ()

    def record(self) -> dict[str, Any]:
        """The check as JSON, without its quotations: `verdict`, and each other field that says something."""
        row: dict[str, Any] = {"verdict": self.verdict.value}
        if self.probability is not None:
            row["probability"] = self.probability
        if self.reason is not None:
            row["reason"] = self.reason
        if self.unsupported:
            row["unsupported"] = [[*span] for span in self.unsupported]
        if self.nearest is not None:
            row["nearest"] = _place(self.nearest) | {"supports": self.nearest_supports}
        if self.contradiction is not None:
            differences = [[*span] for span in self.differences]
            row["contradiction"] = _place(self.contradiction) | ({"differences": differences} if differences else {})
        if self.numbers is not None:
            row["numbers"] = [*self.numbers]
        return row


NO_CLAIM = SentenceCheck(SentenceVerdict.NO_CLAIM, None, "a question or an instruction")
"""The check of a sentence that claims nothing."""


def _place(citation: Citation) -> dict[str, Any]:
    start, end = citation.span
    return {"passage": citation.passage, "start": start, "end": end, "quote": citation.quote}


def check_answer(answer: Answer, judge: Judge, *, nearest: bool = False) -> list[SentenceCheck]:
    """Judge each sentence of an answer (`judge_sentences`), and compare its quotations with the passages.

    Quotations are compared whatever the verdict (`autoais.check_quotes`).
    """
    quotes = check_quotes(answer.to_cited())
    return [
        replace(check, quotes=tuple(quote for quote in quotes if quote.sentence == number))
        for number, check in enumerate(judge_sentences(answer, judge, nearest=nearest))
    ]


def judge_sentences(answer: Answer, judge: Judge, *, nearest: bool = False) -> list[SentenceCheck]:
    """Judge each sentence of an answer against the passages that it cites together; one check a sentence, in order.

    A sentence that cites nothing is not supported, and one that claims nothing (a question, an instruction) is not
    judged. Neither is one that consists of whole sentences or lines of a passage that it cites: it is supported, as
    nearly all such pairs are to people (`eval/results/minilm/rules.json`). `autoais score` asks the judge nevertheless.
    A sentence is contradicted if the judge says so; with a judge of two verdicts, if it does not find the sentence
    supported and a number, name or negation clashes (`autoais.judges.alignment.contradicts`, the rule of `three_way`),
    or the sentence shares most of its words with what it cites, which has another number.
    With `nearest`, the other passages of the answer are searched for what a sentence lacks. A sentence that cites
    nothing is then contradicted if the passage that says most about it contradicts it (`check_uncited`).
    """
    passages = {hit.passage.id: hit.passage for hit in answer.hits}
    copies = [
        any(is_quoted(sentence.text, passages[key].text) for key in sentence.cites) for sentence in answer.sentences
    ]
    claims = claims_to_judge(answer.to_cited())
    open_claims = [
        replace(claim, text=match_amounts(claim.text, " ".join(claim.evidence)))
        for claim, is_copy in zip(claims, copies, strict=True)
        if claim is not None and not is_copy
    ]
    judgements = iter(judge_claims(judge, open_claims, per_citation=False))
    checks = []
    for sentence, claim, is_copy in zip(answer.sentences, claims, copies, strict=True):
        if claim is None:
            checks.append(NO_CLAIM)
            continue
        if is_copy:
            checks.append(SentenceCheck(SentenceVerdict.SUPPORTED, None, QUOTED_REASON))
            continue
        check = _check_sentence(sentence.text, claim.evidence, next(judgements).union)
        check = _with_contradiction(check, sentence, passages)
        if nearest and check.verdict is not SentenceVerdict.SUPPORTED:
            check = _with_nearest(check, sentence, answer, Attributor(judge))
        checks.append(check)
    return checks


def _check_sentence(sentence: str, evidence: Sequence[str], judgement: Judgement) -> SentenceCheck:
    alignment = align(sentence, evidence)
    verdict = {
        Verdict.ATTRIBUTABLE: SentenceVerdict.SUPPORTED,
        Verdict.CONTRADICTORY: SentenceVerdict.CONTRADICTED,
        Verdict.UNDECIDED: SentenceVerdict.UNDECIDED,
    }.get(judgement.verdict, SentenceVerdict.NOT_ENOUGH)
    # A judge that only says yes or no does not tell a contradiction from too little evidence.
    if judgement.verdict is Verdict.NOT_ATTRIBUTABLE and contradicts(sentence, alignment):
        verdict = SentenceVerdict.CONTRADICTED
    missing = _missing(sentence, evidence, alignment.clashes if verdict is SentenceVerdict.CONTRADICTED else ())
    if verdict is SentenceVerdict.SUPPORTED:  # words may be paraphrased, numbers may not
        missing = [span for span in missing if sentence[span[0]].isdigit()]
    return SentenceCheck(verdict, judgement.probability, judgement.reason, _join_spans(sentence, missing))


def _with_contradiction(
    check: SentenceCheck, sentence: CitedSentence, passages: Mapping[str, Passage]
) -> SentenceCheck:
    """The check with the span that contradicts; a sentence with another number than what it cites is contradicted."""
    if check.verdict not in REJECTED:
        return check
    if check.verdict is SentenceVerdict.NOT_ENOUGH:
        citation = next(
            (cited for cited in sentence.citations if _has_other_number(sentence.text, cited.quote or "")), None
        )
    else:
        citation = _contradicting_span(sentence.text, [passages[key] for key in sentence.cites])
    return check if citation is None else _contradict(check, sentence.text, citation)


def _contradict(check: SentenceCheck, claim: str, citation: Citation) -> SentenceCheck:
    """The check of a claim that a span contradicts, with the words of both that clash."""
    quote = citation.quote or ""
    own_spans, differences, numbers = _compare(claim, quote)
    return replace(
        check,
        verdict=SentenceVerdict.CONTRADICTED,
        unsupported=_join_spans(claim, sorted({*check.unsupported, *own_spans})),
        contradiction=citation,
        differences=_join_spans(quote, sorted(differences)),
        numbers=numbers,
    )


_Spans = set[tuple[int, int]]


def _compare(claim: str, source: str) -> tuple[_Spans, _Spans, tuple[str, str] | None]:
    """The words of a claim and of a source that clash; the number of the source and of the claim, if just one does."""
    alignment, clash = align(claim, [source]), find_clash(claim, source)
    own_spans, source_spans = {*alignment.clashes}, {*alignment.evidence_clashes}
    if clash is not None:
        own_spans.add(clash[0])
        source_spans.add(clash[1])
    elif len(own_spans) == len(source_spans) == 1:  # of several numbers of the source, the one in the claim's place
        ((own_span,), (source_span,)) = own_spans, source_spans
        if find_clash(claim[slice(*own_span)], source[slice(*source_span)]) is not None:  # not two names
            clash = own_span, source_span
    numbers = None if clash is None else (source[slice(*clash[1])], claim[slice(*clash[0])])
    return own_spans, source_spans, numbers


def _contradicting_span(claim: str, passages: Iterable[Passage]) -> Citation | None:
    """The sentence of the passages that is closest to a claim and contradicts it; None if no single one does."""
    best, best_share = None, 0.0
    for passage in passages:
        for start, end in sentence_spans(passage.text):
            quote = passage.text[start:end]
            alignment = align(claim, [quote])
            if alignment.share > best_share and contradicts(claim, alignment):
                best, best_share = Citation(passage.id, start, end, quote, "contradicts"), alignment.share
    return best


def _has_other_number(claim: str, source: str) -> bool:
    """Whether a claim and a source differ in one number, and share most other words."""
    clash = find_clash(claim, source)
    return clash is not None and _share_without(claim, [clash[0]], source) >= _MIN_SHARED


def _share_without(claim: str, spans: Iterable[tuple[int, int]], source: str) -> float:
    """The share of the words of a claim outside of the spans that a source has, by idf."""
    return overlap(word_weights(_without(claim, spans)), source)


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + text[end:]
    return text


def describe_clash(numbers: Sequence[str]) -> str:
    """Say which number the source has (the first) in place of that of the sentence (the second)."""
    source, claim = numbers
    return f"the source says {source}, not {claim}"


def describe_rejection(verdict: str, *, cites: bool, numbers: Sequence[str] | None = None) -> str:
    """Say in a phrase why a sentence is rejected: what its sources say otherwise, or that they do not say it."""
    if numbers is not None and len(numbers) == 2:
        return describe_clash(numbers)
    if verdict == SentenceVerdict.CONTRADICTED:
        return "what is cited says something else" if cites else "the nearest passage says something else"
    return "what is cited does not say all of it" if cites else "nothing is cited"


def _missing(sentence: str, evidence: Sequence[str], clashes: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The words that occur nowhere in the evidence, and those that clash; none if there is no evidence at all."""
    if not any(text.strip() for text in evidence):
        return []
    stems = _stems(evidence)
    return sorted({*find_words_outside(sentence, stems), *clashes})


def _stems(evidence: Sequence[str]) -> frozenset[str]:
    evidence_words = {word for text in evidence for word in words(text)}
    return frozenset(stem(word) for word in evidence_words) | {
        word.replace(",", "") for word in evidence_words if word[0].isdigit()
    }


def _join_spans(text: str, spans: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The spans in order; those that overlap, or have only blanks and commas between them, are one."""
    merged_spans: list[tuple[int, int]] = []
    for start, end in spans:
        if merged_spans and not text[merged_spans[-1][1] : start].strip(" ,-–'’\""):
            merged_spans[-1] = (merged_spans[-1][0], max(merged_spans[-1][1], end))
        else:
            merged_spans.append((start, end))
    return tuple(merged_spans)


def _with_nearest(
    check: SentenceCheck, sentence: CitedSentence, answer: Answer, attributor: Attributor
) -> SentenceCheck:
    """The check with the uncited passage that supports the sentence; if it cites nothing, with what says most of it."""
    others = [hit.passage for hit in answer.hits if hit.passage.id not in sentence.cites]
    claim, question = sentence.text, answer.question.text
    candidates = attributor.judge_nearest(claim, others, question)
    support = attributor.choose_support(claim, candidates, others, question)
    if support is not None:
        return replace(check, nearest=support.citation("nearest"), nearest_supports=True)
    if sentence.citations:  # what it cites is shown already
        return check
    return check_uncited(claim, candidates, attributor)


def check_uncited(claim: str, candidates: Sequence[tuple[Passage, Judgement]], attributor: Attributor) -> SentenceCheck:
    """The check of a claim that cites nothing, against passages of which the judge finds that none supports it.

    `candidates` are the passages with their judgements, nearest first (`Attributor.judge_nearest`). The check is that
    of the first one that contradicts the claim, or else of the nearest; without candidates, nothing is said.
    """
    contradictions = (_find_contradiction(claim, passage, judgement) for passage, judgement in candidates)
    if (contradiction := next(filter(None, contradictions), None)) is not None:
        return contradiction
    if not candidates:
        return SentenceCheck(SentenceVerdict.NOT_ENOUGH, None, "nothing was cited")
    passage, judgement = candidates[0]
    check = replace(_check_sentence(claim, (passage.evidence,), judgement), verdict=SentenceVerdict.NOT_ENOUGH)
    return replace(check, nearest=attributor.find_span(claim, passage, judgement).citation("nearest"))


def _find_contradiction(claim: str, passage: Passage, judgement: Judgement) -> SentenceCheck | None:
    """The check of a claim that a sentence of a passage contradicts; None if none does."""
    quotes = [(start, end, passage.text[start:end]) for start, end in sentence_spans(passage.text)]
    weights = word_weights(claim)
    start, end, quote = max(
        (place for place in quotes if _says_otherwise(claim, place[2], passage)),
        key=lambda place: overlap(weights, place[2]),
        default=(0, 0, ""),
    )
    if not quote:
        return None
    check = _check_sentence(claim, (passage.evidence,), judgement)
    citation = Citation(passage.id, start, end, quote, "contradicts")
    return replace(_contradict(check, claim, citation), nearest=replace(citation, origin="nearest"))


def _says_otherwise(claim: str, quote: str, passage: Passage) -> bool:
    """Whether a sentence of a passage contradicts a claim that does not cite it.

    Nothing but its words connects it with the claim. So the sentence has most of the claim's words besides those that
    clash and those of the headings, or it contradicts by the rule for cited ones and the passage has most words.
    """
    alignment = align(claim, [quote])
    own_spans, _, numbers = _compare(claim, quote)
    if contradicts(claim, alignment):
        return _share_without(claim, own_spans, passage.contents) >= _MIN_SHARED
    if numbers is None:
        return False
    heading_stems = set(content_stems(passage.headings))
    weights = word_weights(_without(claim, own_spans))
    return overlap({key: weights[key] for key in weights if key not in heading_stems}, quote) >= _MIN_SHARED


# --- answers of language models ---------------------------------------------------------------------------------------

_CheckMemo = dict[CitedSentence, tuple[CitedSentence, SentenceCheck]]
"""Sentences, as they were narrowed, and their checks."""


class CheckedGenerator:
    """Checks each sentence of another generator's answers (`judge_sentences`); what the generator cites stays.

    A citation of a whole passage is narrowed to the span that supports its sentence, if the passage does.
    `trace["checked"]` has the check of each sentence (`SentenceCheck.record`), in order; a sentence that is not
    supported is compared with the other passages too.
    """

    def __init__(self, generator: Generator, judge: Judge) -> None:
        self.generator = generator
        self._judge, self._attributor = judge, Attributor(judge)
        self.name = f"{generator.name}>check.v1({judge.name})"

    def generate(self, question: Question, hits: Sequence[Hit]) -> Answer:
        """The generator's answer with a check of each sentence; an abstention is unchanged."""
        return self.check(self.generator.generate(question, hits))

    def stream(self, question: Question, hits: Sequence[Hit]) -> Iterator[Answer]:
        """Yield the generator's answer so far, if it can show one; last, the answer. Each sentence is judged once."""
        memo: _CheckMemo = {}
        return map_answers(lambda answer: self.check(answer, memo), stream_answer(self.generator, question, hits))

    def check(self, answer: Answer, memo: _CheckMemo | None = None) -> Answer:
        """The answer with a check of each sentence. `memo` holds sentences that were checked, and gets the others."""
        if not answer.sentences:
            return replace(answer, system=self.name)
        memo = {} if memo is None else memo
        new_sentences = tuple(sentence for sentence in answer.sentences if sentence not in memo)
        passages = {hit.passage.id: hit.passage for hit in answer.hits}
        narrow_sentences = tuple(self._narrow(answer, sentence, passages) for sentence in new_sentences)
        checks = judge_sentences(replace(answer, sentences=narrow_sentences), self._judge, nearest=True)
        memo.update(zip(new_sentences, zip(narrow_sentences, checks, strict=True), strict=True))
        rows = [memo[sentence] for sentence in answer.sentences]
        trace = {**answer.trace, "checked": [check.record() for _, check in rows]}
        return replace(answer, sentences=tuple(sentence for sentence, _ in rows), system=self.name, trace=trace)

    def _narrow(self, answer: Answer, sentence: CitedSentence, passages: Mapping[str, Passage]) -> CitedSentence:
        citations = [
            self._narrow_citation(answer, sentence.text, citation, passages) for citation in sentence.citations
        ]
        return replace(sentence, citations=tuple(citations))

    def _narrow_citation(
        self, answer: Answer, claim: str, citation: Citation, passages: Mapping[str, Passage]
    ) -> Citation:
        passage, question = passages[citation.passage], answer.question.text
        if citation.origin == "copied" or not cites_whole(citation, passage):
            return citation
        (judgement,) = self._attributor.verdicts(claim, [passage], question)
        if judgement.verdict.ais is not True:
            return citation
        return self._attributor.find_span(claim, passage, judgement, question).citation("cited")
