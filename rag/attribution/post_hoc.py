"""Post-hoc attribution (Bohnet et al. 2022; spec A1): the answer is there first, its sources are searched for."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autoais import answers as own
from autoais import formats
from autoais.answers import CitedAnswer
from autoais.errors import FormatError
from autoais.io.files import records
from autoais.io.schema import faults
from autoais.markers.grammar import parse
from autoais.text.claims import applicable
from autoais.types import Judge
from rag.attribution.attributor import Attributor
from rag.errors import QuestionError
from rag.retrievers import Retriever
from rag.retrievers.fusion import reciprocal_ranks, summed
from rag.systems import System
from rag.types import Answer, Hit, Question, Sentence

DEFAULT_K = 10  # hits of each search; more bring little (scripts/bench/posthoc.py)


class PostHoc:
    """Searches with the question and what was said, judges what is found, and attaches the best passage and span.

    Each sentence is searched for with the question before it, and so is the short answer; all that was found for an
    answer may support each of its sentences.
    """

    def __init__(self, retriever: Retriever, judge: Judge, k: int = DEFAULT_K) -> None:
        self._retriever, self._k = retriever, k
        self.attributor = Attributor(judge)
        self.name = f"post-hoc.v1({retriever.name}@{k},{self.attributor.name})"

    def attribute(self, answer: Answer) -> Answer:
        """The same answer with sources: each sentence cites one passage, or none where none supports it.

        What it cited before, and was shown, is set aside. `hits` are the first k of all that was found, and what is
        cited. `trace["attribution"]` counts sentences: `attached`, `uncited` (`uncited_sentences` says which) and
        `not_applicable`, which claim nothing (spec E1) and are not searched for.
        """
        question = answer.question.text
        claims = [answer.text[sentence.start : sentence.end] for sentence in answer.sentences]
        wanted = [applicable(claim, answer.short_answer) for claim in claims]
        said = [claim for claim, claims_something in zip(claims, wanted, strict=True) if claims_something]
        found = self._found(question, [*said, *filter(None, [answer.short_answer])] if said else [])
        pool = [hit.passage for hit in found]
        sentences = []
        for sentence, claim, claims_something in zip(answer.sentences, claims, wanted, strict=True):
            support = self.attributor.support(claim, pool, question) if claims_something else None
            citations = (support.citation("attached"),) if support else ()
            sentences.append(replace(sentence, citations=citations))
        cited = {one.passage for sentence in sentences for one in sentence.citations}
        shown = [hit for rank, hit in enumerate(found) if rank < self._k or hit.passage.id in cited]
        uncited = [number for number, one in enumerate(sentences) if wanted[number] and not one.citations]
        counts = {
            "attached": sum(bool(one.citations) for one in sentences),
            "uncited": len(uncited),
            "not_applicable": wanted.count(False),
            "uncited_sentences": uncited,
        }
        trace = {**answer.trace, "attribution": counts}
        system = f"{answer.system}>{self.name}"
        return replace(answer, sentences=tuple(sentences), hits=tuple(shown), system=system, trace=trace)

    def _found(self, question: str, said: Sequence[str]) -> list[Hit]:
        """What the searches found, fused by reciprocal rank; one that cannot be asked is passed over."""
        lists = []
        for query in dict.fromkeys(f"{question} {text}".strip() for text in said):
            try:
                lists += self._retriever.search([query], self._k)
            except QuestionError:
                continue
        if len(lists) < 2:
            return lists[0] if lists else []
        return summed([(hits, reciprocal_ranks(len(hits))) for hits in lists])


@dataclass(frozen=True, slots=True)
class AnswerThenAttribute:
    """The architecture as a system: another system answers, closed book as a rule, then sources are searched for."""

    system: System
    post_hoc: PostHoc

    @property
    def name(self) -> str:
        """What answers, then what attributes."""
        return f"{self.system.name}>{self.post_hoc.name}"

    def answer(self, questions: Iterable[Question]) -> Iterator[Answer]:
        """One answer a question, in order."""
        for answer in self.system.answer(questions):
            yield self.post_hoc.attribute(answer)


# --- answers of other systems ----------------------------------------------------------------------------------


def read_given(path: Path, name: str | None = None) -> Iterator[Answer]:
    """The answers of a file in any format that holds some (`autoais.formats`), without what they cite.

    Our own format may also give `answer` alone, markers and all: it is cut into sentences. A short answer stands for
    the sentence where there is none. What says nothing is an abstention. `FormatError` at a broken row or a second
    answer of an id.
    """
    name = name or formats.detect(path)
    answers = _read_own(path) if name == formats.ANSWERS.name else formats.read(path, name)
    return map(given, answers)


def given(answer: CitedAnswer) -> Answer:
    """An answer of another system as one of ours that cites nothing and was shown nothing."""
    question = Question(answer.id, answer.question, answer.answers, answer.gold)
    texts = [text for sentence in answer.sentences if (text := sentence.text.strip())]
    short = (answer.short_answer or "").strip()
    text, spans = _placed(answer.plain, texts or [short] * bool(short))
    sentences = tuple(Sentence(start, end) for start, end in spans)
    named = answer.extra.get("system")
    system = named if isinstance(named, str) and named else "given"
    reason = None if sentences else "nothing was said"
    abstained = not sentences
    return Answer(question, text, sentences, (), system, short_answer=short or None, abstained=abstained, reason=reason)


def _placed(text: str, sentences: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """The text and where its sentences stand in it; of sentences that are not in it the text is made."""
    spans, at = [], 0
    for sentence in sentences:
        start = text.find(sentence, at)
        if start < 0:
            return _placed(" ".join(sentences), sentences)
        at = start + len(sentence)
        spans.append((start, at))
    return text if spans else "", spans


def _read_own(path: Path) -> Iterator[CitedAnswer]:
    seen: set[str] = set()
    for where, row in records(path):
        if isinstance(row, FormatError):
            raise row
        for fault in faults(row, own.SCHEMA):
            raise FormatError(f"{where}: {fault}")
        answer = own.from_row(_with_sentences(row), where)
        if answer.id in seen:
            raise FormatError(f"{where}: id {answer.id!r} occurs twice")
        seen.add(answer.id)
        yield answer


def _with_sentences(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The row with the sentences of its `answer`, where it has the one without the others."""
    text = row.get("answer")
    if not text or row.get("sentences") or row.get("abstained"):
        return row
    parsed = parse(text, len(row.get("passages", [])))
    sentences = [{"text": parsed.text[one.start : one.end]} for one in parsed.sentences]
    return {**row, "answer": parsed.text, "sentences": sentences}
