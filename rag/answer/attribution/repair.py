"""Repairs citations with a judge: small models often write a correct sentence with a wrong number."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from autoais.base.text.claims import applicable
from autoais.base.text.sentences import sentence_spans
from autoais.base.types import Judge
from rag.answer.attribution.attributor import Attributor
from rag.answer.generator import Generator, Growing, Streaming, changed_partials
from rag.base.types import Answer, Citation, CitedSentence, Hit, Passage, Question

_Judged = dict[CitedSentence, tuple[CitedSentence, Counter[str]]]
"""Sentences, as they were repaired, and what was done."""


class Repaired:
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
        return self.repaired(answer) if answer.sentences else replace(answer, system=self.name)

    def stream(self, question: Question, hits: Sequence[Hit]) -> Iterator[str | Answer]:
        """Yield the generator's text as it is written, or whole if it cannot stream; then the repaired answer."""
        if not isinstance(self.generator, Streaming):
            answer = self.generate(question, hits)
            yield from (str(answer), answer)
            return
        for piece in self.generator.stream(question, hits):
            if isinstance(piece, Answer):
                yield self.repaired(piece) if piece.sentences else replace(piece, system=self.name)
            else:
                yield piece

    def partials(self, question: Question, hits: Sequence[Hit]) -> Iterator[Answer]:
        """Yield the generator's answer so far, repaired, or only the answer if the generator cannot; then the answer.

        Each sentence is judged once.
        """
        if not isinstance(self.generator, Growing):
            yield self.generate(question, hits)
            return
        judged: _Judged = {}

        def repaired(answer: Answer) -> Answer:
            return self.repaired(answer, judged) if answer.sentences else replace(answer, system=self.name)

        yield from changed_partials(self.generator.partials(question, hits), repaired)

    def repaired(self, answer: Answer, judged: _Judged | None = None) -> Answer:
        """The answer with its citations kept, moved, attached or removed.

        `judged` holds sentences that were repaired before, and gets the others.
        """
        judged = {} if judged is None else judged
        passages = {hit.passage.id: hit.passage for hit in answer.hits}
        done: Counter[str] = Counter(cited=0, undecided=0, moved=0, attached=0, removed=0)
        sentences = []
        for sentence in answer.sentences:
            if sentence not in judged:
                counts: Counter[str] = Counter()
                judged[sentence] = self._sentence(answer, sentence, passages, counts), counts
            repaired, counts = judged[sentence]
            sentences.append(repaired)
            done.update(counts)
        uncited = [number for number, sentence in enumerate(sentences) if not sentence.citations]
        trace = {**answer.trace, "repair": {**done, "uncited": uncited}}
        return replace(answer, sentences=tuple(sentences), system=self.name, trace=trace)

    def _sentence(
        self, answer: Answer, sentence: CitedSentence, passages: dict[str, Passage], done: Counter[str]
    ) -> CitedSentence:
        claim, question = sentence.text, answer.question.text
        if any(one.origin == "copied" for one in sentence.citations):
            return sentence
        if not sentence.citations and not applicable(claim, answer.short_answer):
            return sentence
        kept = self._kept(claim, question, sentence.citations, passages, done)
        if kept:
            done["removed"] += len(sentence.citations) - len(kept)
            return replace(sentence, citations=kept)
        cited = {one.passage for one in sentence.citations}
        others = [passage for key, passage in passages.items() if key not in cited]
        support = self._attributor.support(claim, others, question)
        if support is None:
            done["removed"] += len(sentence.citations)
            return replace(sentence, citations=())
        origin = "moved" if sentence.citations else "attached"
        done[origin] += 1
        done["removed"] += max(0, len(sentence.citations) - 1)
        return replace(sentence, citations=(support.citation(origin),))

    def _kept(
        self,
        claim: str,
        question: str,
        citations: Sequence[Citation],
        passages: dict[str, Passage],
        done: Counter[str],
    ) -> tuple[Citation, ...]:
        """The citations to keep, narrowed to the supporting spans."""
        cited = [passages[key] for key in dict.fromkeys(one.passage for one in citations)]
        judged = dict(zip((p.id for p in cited), self._attributor.verdicts(claim, cited, question), strict=True))
        if len(cited) > 1 and not any(judgement.verdict.ais for judgement in judged.values()):
            together = self._attributor.together(claim, cited, question)
            if together.verdict.ais is True:
                done["cited"] += len(citations)
                return tuple(citations)
        kept = []
        for citation in citations:
            judgement, passage = judged[citation.passage], passages[citation.passage]
            if judgement.verdict.ais is False:
                continue
            done["undecided" if judgement.verdict.ais is None else "cited"] += 1
            whole = citation.span == (0, len(passage.text)) and len(sentence_spans(passage.text)) > 1
            if whole and judgement.verdict.ais is True:
                citation = self._attributor.located(claim, passage, judgement, question).citation("cited")
            kept.append(citation)
        return tuple(kept)
