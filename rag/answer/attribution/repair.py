"""Repairs citations with a judge: small models often write a correct sentence with a wrong number."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from autoais.base.text.claims import is_applicable
from autoais.base.types import Judge
from rag.answer.attribution.attributor import Attributor, cites_whole
from rag.answer.generator import Generator, map_answers, stream_answer
from rag.base.types import Answer, Citation, CitedSentence, Hit, Passage, Question

_RepairMemo = dict[CitedSentence, tuple[CitedSentence, Counter[str]]]
"""Sentences, as they were repaired, and what was done."""


class RepairedGenerator:
    """Checks each citation of another generator's answers, in this order.

    A citation is kept (`cited`) if the judge finds that it supports its sentence, alone or together with the sentence's
    other citations, or cannot decide; a citation of a whole passage is narrowed to the supporting sentences. The others
    are removed; if none remains, they are replaced by a shown passage that supports the sentence (`moved`). A sentence
    without citations gets a shown passage that supports it (`attached`), or stays uncited. Quotes are not judged.

    `Citation.origin` records the result. `trace["repair"]` counts citations (`cited`, `undecided`, `moved`,
    `attached`, and `removed` without replacement) and lists the `uncited` sentences (from 0).
    """

    def __init__(self, generator: Generator, judge: Judge) -> None:
        self.generator = generator
        self._attributor = Attributor(judge)
        self.name = f"{generator.name}>repair.v2({self._attributor.name})"

    def generate(self, question: Question, hits: Sequence[Hit]) -> Answer:
        """The generator's answer with its citations repaired; an abstention is unchanged."""
        answer = self.generator.generate(question, hits)
        return self.repair(answer) if answer.sentences else replace(answer, system=self.name)

    def stream(self, question: Question, hits: Sequence[Hit]) -> Iterator[Answer]:
        """Yield the generator's answer so far, if it can show one; last, the answer. Each sentence is judged once."""
        memo: _RepairMemo = {}

        def repair_partial(answer: Answer) -> Answer:
            return self.repair(answer, memo) if answer.sentences else replace(answer, system=self.name)

        return map_answers(repair_partial, stream_answer(self.generator, question, hits))

    def repair(self, answer: Answer, memo: _RepairMemo | None = None) -> Answer:
        """The answer with its citations kept, moved, attached or removed.

        `memo` holds sentences that were repaired before, and gets the others.
        """
        memo = {} if memo is None else memo
        passages = {hit.passage.id: hit.passage for hit in answer.hits}
        totals: Counter[str] = Counter(cited=0, undecided=0, moved=0, attached=0, removed=0)
        sentences = []
        for sentence in answer.sentences:
            if sentence not in memo:
                counts: Counter[str] = Counter()
                memo[sentence] = self._sentence(answer, sentence, passages, counts), counts
            repaired_sentence, counts = memo[sentence]
            sentences.append(repaired_sentence)
            totals.update(counts)
        uncited = [number for number, sentence in enumerate(sentences) if not sentence.citations]
        trace = {**answer.trace, "repair": {**totals, "uncited": uncited}}
        return replace(answer, sentences=tuple(sentences), system=self.name, trace=trace)

    def _sentence(
        self, answer: Answer, sentence: CitedSentence, passages: dict[str, Passage], counts: Counter[str]
    ) -> CitedSentence:
        claim, question = sentence.text, answer.question.text
        if any(citation.origin == "copied" for citation in sentence.citations):
            return sentence
        if not sentence.citations and not is_applicable(claim, answer.short_answer):
            return sentence
        supporting = self._supporting_citations(claim, question, sentence.citations, passages, counts)
        if supporting:
            counts["removed"] += len(sentence.citations) - len(supporting)
            return replace(sentence, citations=supporting)
        cited_ids = {citation.passage for citation in sentence.citations}
        candidates = [passage for key, passage in passages.items() if key not in cited_ids]
        support = self._attributor.support(claim, candidates, question)
        if support is None:
            counts["removed"] += len(sentence.citations)
            return replace(sentence, citations=())
        origin = "moved" if sentence.citations else "attached"
        counts[origin] += 1
        counts["removed"] += max(0, len(sentence.citations) - 1)
        return replace(sentence, citations=(support.citation(origin),))

    def _supporting_citations(
        self,
        claim: str,
        question: str,
        citations: Sequence[Citation],
        passages: dict[str, Passage],
        counts: Counter[str],
    ) -> tuple[Citation, ...]:
        """The citations to keep, narrowed to the supporting spans."""
        cited_passages = [passages[key] for key in dict.fromkeys(citation.passage for citation in citations)]
        judgements = dict(
            zip((p.id for p in cited_passages), self._attributor.verdicts(claim, cited_passages, question), strict=True)
        )
        if len(cited_passages) > 1 and not any(judgement.verdict.ais for judgement in judgements.values()):
            joint_judgement = self._attributor.together(claim, cited_passages, question)
            if joint_judgement.verdict.ais is True:
                counts["cited"] += len(citations)
                return tuple(citations)
        supporting = []
        for citation in citations:
            judgement, passage = judgements[citation.passage], passages[citation.passage]
            if judgement.verdict.ais is False:
                continue
            counts["undecided" if judgement.verdict.ais is None else "cited"] += 1
            if judgement.verdict.ais is True and cites_whole(citation, passage):
                citation = self._attributor.find_span(claim, passage, judgement, question).citation("cited")
            supporting.append(citation)
        return tuple(supporting)
