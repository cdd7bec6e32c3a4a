"""Post-hoc attribution (Bohnet et al. 2022): search for sources of an existing answer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autoais import formats
from autoais.base import answers as own
from autoais.base.answers import CitedAnswer, as_cited_answer
from autoais.base.errors import FormatError
from autoais.base.io.files import records
from autoais.base.io.schema import faults
from autoais.base.markers.grammar import parse
from autoais.base.text.claims import is_applicable
from autoais.base.types import Judge
from rag.answer.attribution.attributor import Attributor
from rag.answer.attribution.check import NO_CLAIM, SentenceCheck, SentenceVerdict, check_uncited
from rag.answer.instructions import warn_of_instructions
from rag.answer.system import System
from rag.base.errors import QuestionError, UsageError
from rag.base.types import Answer, Citation, CitedSentence, Hit, Passage, Question
from rag.retrieval import Retriever
from rag.retrieval.fusion import reciprocal_ranks, sum_scores

DEFAULT_K = 10  # hits per search; more gain little (eval/results/open-nq-pool/post-hoc-constants.json)


class PostHoc:
    """Searches with question and answer, judges the hits, and attaches the best passage and span to each sentence.

    There is one query for each sentence and for the short answer, preceded by the question. All hits of an answer are
    candidates for each of its sentences.
    """

    def __init__(self, retriever: Retriever, judge: Judge, k: int = DEFAULT_K) -> None:
        self._retriever, self._k = retriever, k
        self.attributor = Attributor(judge)
        self.name = f"post-hoc.v2({retriever.name}@{k},{self.attributor.name})"

    def attribute(self, answer: Answer) -> Answer:
        """The answer with new citations: each sentence cites one supporting passage, or none.

        Earlier citations and hits are discarded. `hits` are the first k of all hits, and those that are cited or say
        most about a sentence. `trace["attribution"]` counts sentences: `attached`, `uncited` (listed in
        `uncited_sentences`) and `not_applicable`, which claim nothing, such as questions (Rashkin et al. 2023), and are
        not searched for. `trace["checked"]` has the check of each sentence (`SentenceCheck.record`): of one that no
        passage supports, what the passage says that says most about it.
        """
        question = answer.question.text
        claims = [sentence.text for sentence in answer.sentences]
        is_claim = [is_applicable(claim, answer.short_answer) for claim in claims]
        statements = [claim for claim, flag in zip(claims, is_claim, strict=True) if flag]
        hits = self._search_statements(
            question, [*statements, *filter(None, [answer.short_answer])] if statements else []
        )
        pool = [hit.passage for hit in hits]
        sentences, checks = [], []
        for sentence, claims_fact in zip(answer.sentences, is_claim, strict=True):
            citation, check = self._attribute_claim(sentence.text, pool, question) if claims_fact else (None, NO_CLAIM)
            sentences.append(replace(sentence, citations=(citation,) if citation else ()))
            checks.append(check)
        shown_ids = {citation.passage for sentence in sentences for citation in sentence.citations}
        shown_ids |= {check.nearest.passage for check in checks if check.nearest}
        answer_hits = [hit for rank, hit in enumerate(hits) if rank < self._k or hit.passage.id in shown_ids]
        uncited = [number for number, sentence in enumerate(sentences) if is_claim[number] and not sentence.citations]
        counts = {
            "attached": sum(bool(sentence.citations) for sentence in sentences),
            "uncited": len(uncited),
            "not_applicable": is_claim.count(False),
            "uncited_sentences": uncited,
        }
        trace = {**answer.trace, "attribution": counts, "checked": [check.record() for check in checks]}
        system = f"{answer.system}>{self.name}"
        return warn_of_instructions(
            replace(answer, sentences=tuple(sentences), hits=tuple(answer_hits), system=system, trace=trace)
        )

    def _attribute_claim(
        self, claim: str, pool: Sequence[Passage], question: str
    ) -> tuple[Citation | None, SentenceCheck]:
        """The citation of the passage that supports the claim, or None, and the check of the claim."""
        candidates = self.attributor.judge_nearest(claim, pool, question)
        support = self.attributor.choose_support(claim, candidates, pool, question)
        if support is None:
            return None, check_uncited(claim, candidates, self.attributor)
        return support.citation("attached"), SentenceCheck(SentenceVerdict.SUPPORTED, support.probability)

    def _search_statements(self, question: str, statements: Sequence[str]) -> list[Hit]:
        """The hits of all queries, fused by reciprocal rank; a query that cannot be searched is skipped."""
        lists = []
        for query in dict.fromkeys(f"{question} {text}".strip() for text in statements):
            try:
                lists += self._retriever.search([query], self._k)
            except QuestionError:
                continue
        if len(lists) < 2:
            return lists[0] if lists else []
        return sum_scores([(hits, reciprocal_ranks(len(hits))) for hits in lists])


@dataclass(frozen=True, slots=True)
class AnswerThenAttribute(System):
    """Post-hoc attribution as a system: another system answers, usually closed book, then sources are searched."""

    system: System
    post_hoc: PostHoc

    @property
    def name(self) -> str:
        """The answering system, then the attribution."""
        return f"{self.system.name}>{self.post_hoc.name}"

    def respond(self, question: Question) -> Answer:
        """Answer, then attribute."""
        return self.post_hoc.attribute(self.system.respond(question))


# --- answers of other systems ----------------------------------------------------------------------------------


def read_uncited_answers(path: Path, name: str | None = None) -> Iterator[Answer]:
    """Read the answers of a file in any answer format (`autoais.formats`), without their citations.

    A row of `answers.jsonl` may have `answer` without `sentences`: it is split into sentences, and its markers are
    removed. Without any sentence, the short answer is the sentence; without either, the answer is an abstention.
    Raises `FormatError` at a broken row or a repeated id.
    """
    name = name or formats.detect(path)
    answers = _read_own(path) if name == formats.ANSWERS.name else formats.read(path, name)
    return map(_remove_citations, answers)


def answer_of_pair(pair: Sequence[str], number: int) -> Answer:
    """An answer from a (question, answer) pair; markers are removed. Raises `UsageError` unless both are strings."""
    if isinstance(pair, str) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
        raise UsageError(f"answer {number}: should be a pair of strings (question, answer), found {pair!r:.80}")
    return answer_without_citations({"id": f"q{number}", "question": pair[0], "answer": pair[1]}, number)


def answer_without_citations(answer: object, number: int = 1) -> Answer:
    """Convert an answer of another system (`autoais.base.answers.as_cited_answer`) to an `Answer` without hits.

    A row of `answers.jsonl` may have `answer` without `sentences`: it is split. `number` identifies it in errors.
    """
    if isinstance(answer, Mapping):
        for fault in faults(dict(answer), own.SCHEMA):
            raise FormatError(f"answer {number}: {fault}")
        answer = _split_sentences(answer)
    return _remove_citations(as_cited_answer(answer, number))


def _remove_citations(answer: CitedAnswer) -> Answer:
    question = Question(answer.id, answer.question, answer.answers, answer.gold, answer.nuggets)
    texts = [text for sentence in answer.sentences if (text := sentence.text.strip())]
    short = (answer.short_answer or "").strip()
    text, spans = _find_sentences(answer.plain, texts or [short] * bool(short))
    sentences = tuple(CitedSentence(text[start:end], (), start, end) for start, end in spans)
    system_name = answer.extra.get("system")
    system = system_name if isinstance(system_name, str) and system_name else "given"
    reason = None if sentences else "nothing was said"
    is_abstention = not sentences
    return Answer(
        question, text, sentences, (), system, short_answer=short or None, abstained=is_abstention, reason=reason
    )


def _find_sentences(text: str, sentences: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """The text and the spans of its sentences; if one does not occur in it, the text is the joined sentences."""
    spans, position = [], 0
    for sentence in sentences:
        start = text.find(sentence, position)
        if start < 0:
            return _find_sentences(" ".join(sentences), sentences)
        position = start + len(sentence)
        spans.append((start, position))
    return text if spans else "", spans


def _read_own(path: Path) -> Iterator[CitedAnswer]:
    ids: set[str] = set()
    for location, row in records(path):
        if isinstance(row, FormatError):
            raise row
        for fault in faults(row, own.SCHEMA):
            raise FormatError(f"{location}: {fault}")
        answer = own.from_row(_split_sentences(row), location)
        if answer.id in ids:
            raise FormatError(f"{location}: id {answer.id!r} occurs twice")
        ids.add(answer.id)
        yield answer


def _split_sentences(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The row, with `sentences` split from its `answer` if it has only that."""
    text = row.get("answer")
    if not isinstance(text, str) or not text or row.get("sentences") or row.get("abstained"):
        return row
    parsed = parse(text, len(row.get("passages", [])))
    sentences = [{"text": parsed.text[sentence.start : sentence.end]} for sentence in parsed.sentences]
    return {**row, "answer": parsed.text, "sentences": sentences}
