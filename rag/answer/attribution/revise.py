"""Revision of unsupported sentences: drop them, or rewrite them from the evidence (RARR, Gao et al. 2023)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

from autoais.base.markers.grammar import parse
from autoais.base.text.claims import is_applicable
from autoais.base.text.sentences import sentence_spans
from autoais.base.text.words import words
from rag.answer.attribution.attributor import Attributor
from rag.answer.attribution.check import REJECTED, SentenceVerdict
from rag.answer.generator import Generator, map_answers, stream_answer
from rag.answer.llms import LanguageModel, ModelError, open_model
from rag.answer.llms.labelled_replies import ask, fields
from rag.answer.llms.prompts import Prompt, plain
from rag.base.types import Answer, Citation, CitedSentence, Hit, Passage, Question

DROP = "drop"
_PROMPT = "revise.v1"
_MIN_PRESERVED = 0.5  # RARR rejects edits that change more than half of a text
_MAX_WORDS = 300  # words of a sentence that is rewritten
_MAX_PASSAGE_LENGTH = 4000  # characters of the passage in the prompt
_NO_PASSAGE = "no passage shown supports it"
_NOT_CITED = "what it cites does not support it"


_Correction = tuple[str | None, tuple[Citation, ...], str]
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
        texts = (question, passage.evidence[:_MAX_PASSAGE_LENGTH], sentence)
        values = dict(zip(("question", "passage", "sentence"), map(plain, texts), strict=True))
        try:
            reply = ask(self._model, self._prompt, 40 + 2 * len(sentence.split()), **values).text
        except ModelError:
            return None
        sentence_after = fields(reply, ("sentence",)).get("sentence", "")
        sentence_after = parse(sentence_after, 0).text  # removes markers: the prompt numbers no passages
        return None if not sentence_after or sentence_after.strip("\"'. ").upper() == "NONE" else sentence_after


class Reviser:
    """Keeps only supported sentences, and records its changes.

    A supported sentence is unchanged (RARR's agreement gate). In an answer with `trace["checked"]` that is one that the
    judge did not reject there (`rag.answer.attribution.check`); in any other, one with a citation, since a judge chose
    it. Any other sentence that makes a claim is rewritten from the nearest passage shown; the new sentence is kept if
    the judge finds it supported by that passage and it preserves at least half of the old one. Otherwise, and without a
    rewriter, the sentence is dropped. A sentence that the judge cannot decide stays.
    """

    def __init__(self, attributor: Attributor, rewriter: Rewriter | None = None) -> None:
        self._attributor, self._rewriter = attributor, rewriter
        self.name = f"revise.v1({DROP if rewriter is None else rewriter.name})"

    def revise(self, answer: Answer, memo: dict[str, _Correction] | None = None) -> Answer:
        """The answer with unsupported sentences rewritten or dropped; an abstention if no cited sentence remains.

        `memo` holds sentences that were corrected before, and gets the others. `trace["revised"]` lists the changes:
        `before`, `after` (None: dropped) and `why`. The short answer is dropped if the text no longer contains it.
        `trace["checked"]` keeps the rows of the sentences that remain.
        """
        checked = answer.trace.get("checked")
        is_searched = checked is None or "attribution" in answer.trace  # a judge chose the citations
        memo = {} if memo is None else memo
        remaining: list[tuple[int, str, tuple[Citation, ...]]] = []
        changes: list[dict[str, Any]] = []
        rows: list[dict[str, Any]] = []
        for number, sentence in enumerate(answer.sentences):
            before = sentence.text
            if checked is None:
                is_rejected = not sentence.citations and is_applicable(before, answer.short_answer)
            else:
                is_rejected = checked[number]["verdict"] in REJECTED
            if not is_rejected:
                remaining.append((number, before, sentence.citations))
                rows += [] if checked is None else [checked[number]]
                continue
            if before not in memo:
                memo[before] = self._correct(answer, before, _NO_PASSAGE if is_searched else _NOT_CITED)
            after, citations, explanation = memo[before]
            changes.append({"before": before, "after": after, "why": explanation})
            if after is not None:
                remaining.append((number, after, citations))
                rows.append({"verdict": SentenceVerdict.SUPPORTED.value})
        trace = {**answer.trace, "revised": changes} | ({} if checked is None else {"checked": rows})
        system = f"{answer.system}>{self.name}"
        if not changes:
            return replace(answer, system=system, trace=trace)
        if not any(citations for _, _, citations in remaining):
            source = "a retrieved passage" if is_searched else "what it cites"
            reason = f"no sentence of the answer is supported by {source}"
            return replace(
                answer,
                text="",
                sentences=(),
                short_answer=None,
                abstained=True,
                reason=reason,
                system=system,
                trace=trace if checked is None else trace | {"checked": []},
            )
        text, sentences = _join_sentences(answer, remaining)
        short = answer.short_answer
        if short is not None and _holds(answer.text, short) and not _holds(text, short):
            short = None
        return replace(answer, text=text, sentences=sentences, short_answer=short, system=system, trace=trace)

    def _correct(self, answer: Answer, before: str, unsupported: str) -> _Correction:
        nearest = self._attributor.nearest(before, [hit.passage for hit in answer.hits])[:1]
        if self._rewriter is None or not nearest or len(before.split()) > _MAX_WORDS:
            return None, (), unsupported
        after = self._rewriter.rewrite(answer.question.text, before, nearest[0])
        if after is None:
            return None, (), f"{unsupported}, and the rewriter returned nothing"
        if len(sentence_spans(after)) != 1 or preserved_share(before, after) < _MIN_PRESERVED:
            return None, (), f"{unsupported}, and the rewriter changed too much of it"
        support = self._attributor.support(after, nearest, answer.question.text)
        if support is None:
            return None, (), f"{unsupported}, nor the rewritten sentence"
        return after, (support.citation("attached"),), f"{unsupported}; {nearest[0].id} supports the new sentence"


class RevisedGenerator:
    """Revises the answers of another generator."""

    def __init__(self, generator: Generator, reviser: Reviser) -> None:
        self.generator, self.reviser = generator, reviser
        self.name = f"{generator.name}>{reviser.name}"

    def generate(self, question: Question, hits: Sequence[Hit]) -> Answer:
        """The generator's answer, revised; an abstention is unchanged."""
        return self._revise(self.generator.generate(question, hits), {})

    def stream(self, question: Question, hits: Sequence[Hit]) -> Iterator[Answer]:
        """Yield the generator's answer so far, if it can show one; last, the answer. A sentence is corrected once."""
        memo: dict[str, _Correction] = {}
        return map_answers(lambda answer: self._revise(answer, memo), stream_answer(self.generator, question, hits))

    def _revise(self, answer: Answer, memo: dict[str, _Correction]) -> Answer:
        return self.reviser.revise(answer, memo) if answer.sentences else replace(answer, system=self.name)


def open_reviser(name: str, attributor: Attributor) -> Reviser:
    """The reviser of that name: `drop`, or a language model that rewrites (`rag.answer.llms.open_model`)."""
    if name == DROP:
        return Reviser(attributor)
    return Reviser(attributor, ModelRewriter(open_model(name)))


def preserved_share(before: str, after: str) -> float:
    """How much of a sentence an edit preserves, 0 to 1: RARR's Pres_Lev, 1 - distance / length, computed on words."""
    a, b = words(before), words(after)
    if not a:
        return float(not b)
    row = list(range(len(b) + 1))
    for i, word in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (word != other))
    return max(0.0, 1 - row[-1] / len(a))


def _holds(text: str, short: str) -> bool:
    return " ".join(words(short)) in " ".join(words(text))


def _join_sentences(
    answer: Answer, remaining: Sequence[tuple[int, str, tuple[Citation, ...]]]
) -> tuple[str, tuple[CitedSentence, ...]]:
    """The text of the kept sentences, with the separators between them (line ends, list markers)."""
    text = ""
    sentences: list[CitedSentence] = []
    for number, words_of, citations in remaining:
        gap = answer.text[answer.sentences[number - 1].end if number else 0 : answer.sentences[number].start]
        text += gap if sentences else gap.lstrip()
        sentences.append(CitedSentence(words_of, citations, len(text), len(text) + len(words_of)))
        text += words_of
    return text, tuple(sentences)
