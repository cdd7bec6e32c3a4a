"""Revision of unsupported sentences: drop them, or rewrite them from the evidence (RARR, Gao et al. 2023)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

from autoais.base.markers.grammar import parse
from autoais.base.text.claims import applicable
from autoais.base.text.sentences import sentence_spans
from autoais.base.text.words import words
from rag.answer.attribution.attributor import Attributor
from rag.answer.generator import Generator, Growing, changed_partials
from rag.answer.llms import LanguageModel, ModelError, open_model
from rag.answer.llms.labelled_replies import ask, fields
from rag.answer.llms.prompts import Prompt, plain
from rag.base.types import Answer, Citation, CitedSentence, Hit, Passage, Question

DROP = "drop"
_PROMPT = "revise.v1"
_PRESERVED = 0.5  # RARR rejects edits that change more than half of a text
_LONGEST = 300  # words of a sentence that is rewritten
_PASSAGE = 4000  # characters of the passage in the prompt


_Corrected = tuple[str | None, tuple[Citation, ...], str]
"""The new sentence (None: dropped), its citations, and the reason."""


class Rewriter(Protocol):
    """Corrects a sentence so that a passage supports it."""

    @property
    def name(self) -> str:
        """Identifies everything that can change a rewritten sentence."""
        ...

    def rewrite(self, question: str, sentence: str, passage: Passage) -> str | None:
        """The corrected sentence; None if the passage does not cover it, or the model did not reply."""
        ...


class ModelRewriter:
    """Asks a language model for the smallest correction."""

    def __init__(self, model: LanguageModel) -> None:
        self._model, self._prompt = model, Prompt.read(_PROMPT)
        self.name = f"{model.name},{self._prompt.id}"

    def rewrite(self, question: str, sentence: str, passage: Passage) -> str | None:
        """The sentence as rewritten by the model, or None."""
        texts = (question, passage.evidence[:_PASSAGE], sentence)
        values = dict(zip(("question", "passage", "sentence"), map(plain, texts), strict=True))
        try:
            reply = ask(self._model, self._prompt, 40 + 2 * len(sentence.split()), **values).text
        except ModelError:
            return None
        rewritten = fields(reply, ("sentence",)).get("sentence", "")
        rewritten = parse(rewritten, 0).text  # removes markers: the prompt numbers no passages
        return None if not rewritten or rewritten.strip("\"'. ").upper() == "NONE" else rewritten


class Reviser:
    """Keeps only supported sentences, and records its changes.

    A sentence with a citation is unchanged: the judge agreed with it (RARR's agreement gate). Any other sentence that
    makes a claim is rewritten from the nearest passage shown; the new sentence is kept if the judge finds it supported
    by that passage and it preserves at least half of the old one. Otherwise, and without a rewriter, the sentence is
    dropped.
    """

    def __init__(self, attributor: Attributor, rewriter: Rewriter | None = None) -> None:
        self._attributor, self._rewriter = attributor, rewriter
        self.name = f"revise.v1({DROP if rewriter is None else rewriter.name})"

    def revise(self, answer: Answer, known: dict[str, _Corrected] | None = None) -> Answer:
        """The answer with unsupported sentences rewritten or dropped; an abstention if no cited sentence remains.

        `known` holds sentences that were corrected before, and gets the others. `trace["revised"]` lists the changes:
        `before`, `after` (None: dropped) and `why`. The short answer is dropped if the text no longer contains it.
        """
        known = {} if known is None else known
        kept: list[tuple[int, str, tuple[Citation, ...]]] = []
        changes: list[dict[str, Any]] = []
        for number, sentence in enumerate(answer.sentences):
            before = sentence.text
            if sentence.citations or not applicable(before, answer.short_answer):
                kept.append((number, before, sentence.citations))
                continue
            if before not in known:
                known[before] = self._corrected(answer, before)
            after, citations, why = known[before]
            changes.append({"before": before, "after": after, "why": why})
            if after is not None:
                kept.append((number, after, citations))
        trace = {**answer.trace, "revised": changes}
        system = f"{answer.system}>{self.name}"
        if not changes:
            return replace(answer, system=system, trace=trace)
        if not any(citations for _, _, citations in kept):
            reason = "no sentence of the answer is supported by a retrieved passage"
            return replace(
                answer,
                text="",
                sentences=(),
                short_answer=None,
                abstained=True,
                reason=reason,
                system=system,
                trace=trace,
            )
        text, sentences = _joined(answer, kept)
        short = answer.short_answer
        if short is not None and _holds(answer.text, short) and not _holds(text, short):
            short = None
        return replace(answer, text=text, sentences=sentences, short_answer=short, system=system, trace=trace)

    def _corrected(self, answer: Answer, before: str) -> _Corrected:
        unsupported = "no passage shown supports it"
        near = self._attributor.nearest(before, [hit.passage for hit in answer.hits])[:1]
        if self._rewriter is None or not near or len(before.split()) > _LONGEST:
            return None, (), unsupported
        after = self._rewriter.rewrite(answer.question.text, before, near[0])
        if after is None:
            return None, (), f"{unsupported}, and the rewriter returned nothing"
        if len(sentence_spans(after)) != 1 or preserved(before, after) < _PRESERVED:
            return None, (), f"{unsupported}, and the rewriter changed too much of it"
        support = self._attributor.support(after, near, answer.question.text)
        if support is None:
            return None, (), f"{unsupported}, nor the rewritten sentence"
        return after, (support.citation("attached"),), f"{unsupported}; {near[0].id} supports the new sentence"


class Revised:
    """Revises the answers of another generator. It does not stream, as words may be dropped; it shows sentences."""

    def __init__(self, generator: Generator, reviser: Reviser) -> None:
        self.generator, self.reviser = generator, reviser
        self.name = f"{generator.name}>{reviser.name}"

    def generate(self, question: Question, hits: Sequence[Hit]) -> Answer:
        """The generator's answer, revised; an abstention is unchanged."""
        return self._revised(self.generator.generate(question, hits), {})

    def partials(self, question: Question, hits: Sequence[Hit]) -> Iterator[Answer]:
        """Yield the generator's answer so far, revised, or only the answer if the generator cannot; then the answer.

        Each sentence is corrected once.
        """
        if not isinstance(self.generator, Growing):
            yield self.generate(question, hits)
            return
        known: dict[str, _Corrected] = {}
        partials = self.generator.partials(question, hits)
        yield from changed_partials(partials, lambda answer: self._revised(answer, known))

    def _revised(self, answer: Answer, known: dict[str, _Corrected]) -> Answer:
        return self.reviser.revise(answer, known) if answer.sentences else replace(answer, system=self.name)


def open_reviser(name: str, attributor: Attributor) -> Reviser:
    """The reviser of that name: `drop`, or a language model that rewrites (`rag.answer.llms.open_model`)."""
    if name == DROP:
        return Reviser(attributor)
    return Reviser(attributor, ModelRewriter(open_model(name)))


def preserved(before: str, after: str) -> float:
    """How much of a sentence an edit preserves, 0 to 1: RARR's Pres_Lev, 1 - distance / length, computed on words."""
    a, b = words(before), words(after)
    if not a:
        return float(not b)
    row = list(range(len(b) + 1))
    for i, word in enumerate(a, 1):
        above, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (word != other))
    return max(0.0, 1 - row[-1] / len(a))


def _holds(text: str, short: str) -> bool:
    return " ".join(words(short)) in " ".join(words(text))


def _joined(
    answer: Answer, kept: Sequence[tuple[int, str, tuple[Citation, ...]]]
) -> tuple[str, tuple[CitedSentence, ...]]:
    """The text of the kept sentences, with the separators between them (line ends, list markers)."""
    text = ""
    sentences: list[CitedSentence] = []
    for number, words_of, citations in kept:
        gap = answer.text[answer.sentences[number - 1].end if number else 0 : answer.sentences[number].start]
        text += gap if sentences else gap.lstrip()
        sentences.append(CitedSentence(words_of, citations, len(text), len(text) + len(words_of)))
        text += words_of
    return text, tuple(sentences)
