"""What became of a question: the item of a run, from the answer, its judgements and the rules of the benchmark."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.io.jsonl import round_floats
from autoais.base.types import NOT_APPLICABLE, Citation, Question, Verdict
from autoais.metrics.claims import all_yes
from autoais.metrics.nuggets import find_nuggets, first_words
from autoais.metrics.short_answers import exact_match, f1, has_answer
from rag.bench.items import Item, ItemCitation, ItemPassage, ItemSentence
from rag.bench.question_files import BenchQuestion

_MAX_HITS = 3  # hits whose texts are kept, besides the cited ones


def make_item(
    bench_question: BenchQuestion,
    answer: CitedAnswer | None,
    judgements: Sequence[Mapping[str, Any]],
    right: str | None,
    *,
    short_answers: bool,
) -> Item:
    """Return the item of a question, its answer (None if missing) and its rows of `judgements.jsonl`.

    `right` is the benchmark's rule; `short_answers` says whether the system gives any, without which there is no EM.
    """
    question = bench_question.question
    answer_or_empty = answer or CitedAnswer(question.id, question.text)
    extra = answer_or_empty.extra
    verdicts = [row["verdict"] for row in judgements if row["verdict"] != NOT_APPLICABLE]
    answer_verdict = next(
        (row["answer"] for row in judgements if "answer" in row), None
    )  # people's, of an answer as one
    is_attributed = (
        all_yes(Verdict(verdict).ais for verdict in verdicts) if answer_verdict is None else Verdict(answer_verdict).ais
    )
    has_failed = extra.get("failed") is True
    correct = is_right(bench_question, answer_or_empty, right)
    trace = extra.get("trace")
    tokens = trace.get("tokens") if isinstance(trace, Mapping) else None
    tokens = tokens if isinstance(tokens, Mapping) else {}
    references = question.answers
    cited_text = " ".join(sentence.text for sentence in answer_or_empty.sentences if sentence.cites)
    nuggets_found = find_nuggets(answer_or_empty.plain, question.nuggets)
    texts = {key: passage.text for key, passage in answer_or_empty.passages.items()}
    return Item(
        id=question.id,
        question=question.text,
        kind=bench_question.kind,
        collection=bench_question.collection,
        answerable=bench_question.answerable,
        references=references,
        gold=question.gold,
        nuggets=question.nuggets,
        answer=answer_or_empty.plain,
        short_answer=answer_or_empty.short_answer,
        abstained=answer_or_empty.abstained,
        failed=has_failed,
        missing=answer is None,
        reason=_text(extra.get("reason")),
        confidence=_number(extra.get("confidence"), max_value=1),
        sentences=tuple(_sentences(answer_or_empty, judgements)),
        passages=_passages(answer_or_empty),
        ranking=tuple(answer_or_empty.ranking),
        right=correct,
        attributed=is_attributed,
        way=_way(bench_question, answer_or_empty, correct, is_attributed, is_lost=has_failed or answer is None),
        em=exact_match(answer_or_empty.short_answer or "", references) if references and short_answers else None,
        f1=round_floats(f1(answer_or_empty.short_answer or "", references)) if references and short_answers else None,
        answer_recall=has_answer(cited_text, references) if references else None,
        nugget_recall=round_floats(sum(nuggets_found) / len(nuggets_found)) if nuggets_found else None,
        first_gold=next((rank for rank, key in enumerate(answer_or_empty.ranking, 1) if key in question.gold), None),
        answer_hit=next(
            (rank for rank, key in enumerate(answer_or_empty.ranking, 1) if has_answer(texts[key], references)), None
        ),
        seconds=_number(extra.get("seconds")),
        tokens_read=_count(tokens.get("read")),
        tokens_written=_count(tokens.get("written")),
        words=len(answer_or_empty.plain.split()),
    )


def is_right(bench_question: BenchQuestion, answer: CitedAnswer, rule: str | None) -> bool | None:
    """Whether an answer is right by the rule of a benchmark; None if that cannot be said.

    - `em`: the short answer equals a reference (SQuAD). `answer_recall`: a reference occurs in the cited sentences.
    - `answer_in_text`: a reference occurs in the answer, cited or not, so that systems without short answers or
      citations compare with others.
    - `gold_cited`: the answer cites a gold passage, a stand-in where there are no reference answers.
    - `nuggets@N`: the first N words hold all nuggets.

    An answer to an unanswerable question is wrong. A refusal is not right where the rule can say so.
    """
    question = bench_question.question
    if not bench_question.answerable:
        return None if answer.abstained else False
    name, _, words = (rule or "").partition("@")
    expectations = {"": (), "nuggets": question.nuggets, "gold_cited": question.gold}.get(name, question.answers)
    if not expectations:
        return None
    if answer.abstained:
        return False
    if name == "nuggets":
        return holds_nuggets(answer.plain, question, int(words))
    if name == "gold_cited":
        return any(key in question.gold for sentence in answer.sentences for key in sentence.cites)
    if name == "em":
        return exact_match(answer.short_answer or "", question.answers) == 1
    cited_sentences = (
        [sentence.text for sentence in answer.sentences if sentence.cites] if name == "answer_recall" else None
    )
    text = f"{answer.plain} {answer.short_answer or ''}" if cited_sentences is None else " ".join(cited_sentences)
    return has_answer(text, question.answers)


def holds_nuggets(text: str, question: Question, words: int) -> bool | None:
    """Whether the first words of a text hold all nuggets of a question; None if it has none."""
    matches = find_nuggets(first_words(text, words), question.nuggets)
    return all(matches) if matches else None


def _way(
    question: BenchQuestion, answer: CitedAnswer, right: bool | None, is_attributed: bool | None, *, is_lost: bool
) -> str:
    if is_lost:
        return "wrong_unattributed"
    if answer.abstained:
        return "refused_wrong" if question.answerable else "refused_right"
    if right is None or is_attributed is None:
        return "undecided"
    return f"{'right' if right else 'wrong'}_{'attributed' if is_attributed else 'unattributed'}"


def _sentences(answer: CitedAnswer, judgements: Sequence[Mapping[str, Any]]) -> Iterator[ItemSentence]:
    by_number = {row["sentence"]: row for row in judgements if row["sentence"] is not None}
    plain, position = answer.plain, 0
    for number, sentence in enumerate(answer.sentences):
        row = by_number[number]
        start = plain.find(sentence.text, position)
        end = start + len(sentence.text) if start >= 0 else None
        position = position if end is None else end
        single_verdicts = dict(zip(row["cites"], row["alone"], strict=False)) if row["alone"] else {}
        yield ItemSentence(
            sentence.text,
            None if end is None else start,
            end,
            row["verdict"],
            row["probability"],
            tuple(
                _citation(citation, answer, single_verdicts.get(citation.passage)) for citation in sentence.citations
            ),
            tuple((first, last) for first, last in row.get("unsupported", ())),
        )


def _passages(answer: CitedAnswer) -> dict[str, ItemPassage]:
    cited_ids = [key for sentence in answer.sentences for key in sentence.cites]
    ids = dict.fromkeys([*cited_ids, *answer.ranking[:_MAX_HITS]])
    return {
        key: ItemPassage(passage.title, passage.section, passage.text, _url(key))
        for key in ids
        if (passage := answer.passages.get(key)) is not None
    }


def _url(passage: str) -> str | None:
    return passage if passage.startswith(("http://", "https://")) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


# Answers may come from a file of others: a value outside its range is unknown.


def _number(value: object, *, max_value: float = math.inf) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= max_value:
        return None
    return float(value)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _citation(citation: Citation, answer: CitedAnswer, verdict: str | None) -> ItemCitation:
    passage = answer.passages.get(citation.passage)
    length = len(passage.text) if passage is not None and passage.text else math.inf
    if citation.start is None or citation.end is None or not 0 <= citation.start <= citation.end <= length:
        return ItemCitation(citation.passage, None, None, verdict)
    return ItemCitation(citation.passage, citation.start, citation.end, verdict)
