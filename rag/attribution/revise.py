"""Sentences that no passage supports: dropped, or rewritten from the evidence (RARR: Gao et al. 2023)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from autoais.markers.grammar import parse
from autoais.text.claims import applicable
from autoais.text.words import words
from rag.attribution.attributor import Attributor, premise
from rag.attribution.sentences import sentence_spans
from rag.generators.labelled import ask, fields
from rag.llms import LanguageModel, ModelError, open_model
from rag.llms.prompts import Prompt, plain
from rag.types import Answer, Citation, Passage, Sentence

DROP = "drop"
_PROMPT = "revise.v1"
_PRESERVED = 0.5  # RARR takes no edit that changes more than half of a text
_LONGEST = 300  # words of a sentence that is rewritten
_PASSAGE = 4000  # characters of the passage that a model is shown


class Rewriter(Protocol):
    """Makes a sentence say what a passage says."""

    @property
    def name(self) -> str:
        """Says all that changes a sentence."""
        ...

    def rewrite(self, question: str, sentence: str, passage: Passage) -> str | None:
        """The sentence corrected; None where the passage says nothing about it, or there is no reply."""
        ...


class ModelRewriter:
    """Asks a language model for the smallest correction."""

    def __init__(self, model: LanguageModel) -> None:
        self._model, self._prompt = model, Prompt.read(_PROMPT)
        self.name = f"{model.name},{self._prompt.id}"

    def rewrite(self, question: str, sentence: str, passage: Passage) -> str | None:
        """What the model makes of the sentence."""
        texts = (question, premise(passage)[:_PASSAGE], sentence)
        values = dict(zip(("question", "passage", "sentence"), map(plain, texts), strict=True))
        try:
            reply = ask(self._model, self._prompt, 40 + 2 * len(sentence.split()), **values).text
        except ModelError:
            return None
        said = fields(reply, ("sentence",)).get("sentence", "")
        said = parse(said, 0).text  # a marker would point nowhere
        return None if not said or said.strip("\"'. ").upper() == "NONE" else said


class Reviser:
    """Leaves only what passages support, and says what it changed.

    A sentence that cites something is not touched: the judge agreed with it (RARR's agreement gate). Of the others,
    those that claim something are rewritten from the nearest passage shown; the new sentence is kept if the judge finds
    it supported by that passage and at least half of the old one is preserved. Else, and without a rewriter, the
    sentence is dropped.
    """

    def __init__(self, attributor: Attributor, rewriter: Rewriter | None = None) -> None:
        self._attributor, self._rewriter = attributor, rewriter
        self.name = f"revise.v1({DROP if rewriter is None else rewriter.name})"

    def revise(self, answer: Answer) -> Answer:
        """The answer with its unsupported sentences rewritten or dropped; an abstention where none is left.

        `trace["revised"]` lists each change: `before`, `after` (None: dropped) and `why`. The short answer goes where
        the text does not hold it any longer.
        """
        kept: list[tuple[int, str, tuple[Citation, ...]]] = []
        changes: list[dict[str, Any]] = []
        for number, sentence in enumerate(answer.sentences):
            before = answer.text[sentence.start : sentence.end]
            if sentence.citations or not applicable(before, answer.short_answer):
                kept.append((number, before, sentence.citations))
                continue
            after, citations, why = self._corrected(answer, before)
            changes.append({"before": before, "after": after, "why": why})
            if after is not None:
                kept.append((number, after, citations))
        trace = {**answer.trace, "revised": changes}
        system = f"{answer.system}>{self.name}"
        if not changes:
            return replace(answer, system=system, trace=trace)
        if not any(citations for _, _, citations in kept):
            reason = "no sentence of the answer is supported by a passage found"
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

    def _corrected(self, answer: Answer, before: str) -> tuple[str | None, tuple[Citation, ...], str]:
        """The new sentence (None: dropped) with what it cites, and why."""
        unsupported = "no passage shown supports it"
        near = self._attributor.nearest(before, [hit.passage for hit in answer.hits])[:1]
        if self._rewriter is None or not near or len(before.split()) > _LONGEST:
            return None, (), unsupported
        after = self._rewriter.rewrite(answer.question.text, before, near[0])
        if after is None:
            return None, (), f"{unsupported}, and the rewriter made nothing of it"
        if len(sentence_spans(after)) != 1 or preserved(before, after) < _PRESERVED:
            return None, (), f"{unsupported}, and the rewriter changed too much of it"
        support = self._attributor.support(after, near, answer.question.text)
        if support is None:
            return None, (), f"{unsupported}, nor what the rewriter made of it"
        return after, (support.citation("attached"),), f"{unsupported}; {near[0].id} supports the new sentence"


def open_reviser(name: str, attributor: Attributor) -> Reviser:
    """`drop`, or a language model that rewrites (`rag.llms.open_model`)."""
    if name == DROP:
        return Reviser(attributor)
    return Reviser(attributor, ModelRewriter(open_model(name)))


def preserved(before: str, after: str) -> float:
    """How much of a sentence an edit preserves, 0 to 1: RARR's Pres_Lev, 1 - distance / length, taken over words."""
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


def _joined(answer: Answer, kept: Sequence[tuple[int, str, tuple[Citation, ...]]]) -> tuple[str, tuple[Sentence, ...]]:
    """The text with the sentences that are kept, and what stood between them (line ends, signs of lists)."""
    text = ""
    sentences: list[Sentence] = []
    for number, words_of, citations in kept:
        gap = answer.text[answer.sentences[number - 1].end if number else 0 : answer.sentences[number].start]
        text += gap if sentences else gap.lstrip()
        sentences.append(Sentence(len(text), len(text) + len(words_of), citations))
        text += words_of
    return text, tuple(sentences)
