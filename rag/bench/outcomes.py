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

_SHOWN = 3  # hits whose texts are kept, besides the cited ones


def make_item(
    asked: BenchQuestion,
    answer: CitedAnswer | None,
    judgements: Sequence[Mapping[str, Any]],
    right: str | None,
    *,
    short_answers: bool,
) -> Item:
    """Return the item of a question, its answer (None if missing) and its rows of `judgements.jsonl`.

    `right` is the benchmark's rule; `short_answers` says whether the system gives any, without which there is no EM.
    """
    question = asked.question
    said = answer or CitedAnswer(question.id, question.text)
    extra = said.extra
    verdicts = [row["verdict"] for row in judgements if row["verdict"] != NOT_APPLICABLE]
    whole = next((row["answer"] for row in judgements if "answer" in row), None)  # people's, of an answer as one
    attributed = all_yes(Verdict(verdict).ais for verdict in verdicts) if whole is None else Verdict(whole).ais
    failed = extra.get("failed") is True
    correct = is_right(asked, said, right)
    trace = extra.get("trace")
    tokens = trace.get("tokens") if isinstance(trace, Mapping) else None
    tokens = tokens if isinstance(tokens, Mapping) else {}
    references = question.answers
    cited_text = " ".join(sentence.text for sentence in said.sentences if sentence.cites)
    found = find_nuggets(said.plain, question.nuggets)
    texts = {key: passage.text for key, passage in said.passages.items()}
    return Item(
        id=question.id,
        question=question.text,
        kind=asked.kind,
        collection=asked.collection,
        answerable=asked.answerable,
        references=references,
        gold=question.gold,
        nuggets=question.nuggets,
        answer=said.plain,
        short_answer=said.short_answer,
        abstained=said.abstained,
        failed=failed,
        missing=answer is None,
        reason=_text(extra.get("reason")),
        confidence=_number(extra.get("confidence"), most=1),
        sentences=tuple(_sentences(said, judgements)),
        passages=_passages(said),
        ranking=tuple(said.ranking),
        right=correct,
        attributed=attributed,
        way=_way(asked, said, correct, attributed, lost=failed or answer is None),
        em=exact_match(said.short_answer or "", references) if references and short_answers else None,
        f1=round_floats(f1(said.short_answer or "", references)) if references and short_answers else None,
        answer_recall=has_answer(cited_text, references) if references else None,
        nugget_recall=round_floats(sum(found) / len(found)) if found else None,
        first_gold=next((rank for rank, key in enumerate(said.ranking, 1) if key in question.gold), None),
        answer_hit=next((rank for rank, key in enumerate(said.ranking, 1) if has_answer(texts[key], references)), None),
        seconds=_number(extra.get("seconds")),
        tokens_read=_count(tokens.get("read")),
        tokens_written=_count(tokens.get("written")),
        words=len(said.plain.split()),
    )


def is_right(asked: BenchQuestion, answer: CitedAnswer, rule: str | None) -> bool | None:
    """Whether an answer is right by the rule of a benchmark; None if that cannot be said.

    - `em`: the short answer equals a reference (SQuAD). `answer_recall`: a reference occurs in the cited sentences.
    - `answer_in_text`: a reference occurs in the answer, cited or not, so that systems without short answers or
      citations compare with others.
    - `gold_cited`: the answer cites a gold passage, a stand-in where there are no reference answers.
    - `nuggets@N`: the first N words hold all nuggets.

    An answer to an unanswerable question is wrong. A refusal is not right where the rule can say so.
    """
    question = asked.question
    if not asked.answerable:
        return None if answer.abstained else False
    name, _, words = (rule or "").partition("@")
    needed = {"": (), "nuggets": question.nuggets, "gold_cited": question.gold}.get(name, question.answers)
    if not needed:
        return None
    if answer.abstained:
        return False
    if name == "nuggets":
        return holds_nuggets(answer.plain, question, int(words))
    if name == "gold_cited":
        return any(key in question.gold for sentence in answer.sentences for key in sentence.cites)
    if name == "em":
        return exact_match(answer.short_answer or "", question.answers) == 1
    told = [sentence.text for sentence in answer.sentences if sentence.cites] if name == "answer_recall" else None
    text = f"{answer.plain} {answer.short_answer or ''}" if told is None else " ".join(told)
    return has_answer(text, question.answers)


def holds_nuggets(text: str, question: Question, words: int) -> bool | None:
    """Whether the first words of a text hold all nuggets of a question; None if it has none."""
    found = find_nuggets(first_words(text, words), question.nuggets)
    return all(found) if found else None


def _way(asked: BenchQuestion, answer: CitedAnswer, right: bool | None, attributed: bool | None, *, lost: bool) -> str:
    if lost:
        return "wrong_unattributed"
    if answer.abstained:
        return "refused_wrong" if asked.answerable else "refused_right"
    if right is None or attributed is None:
        return "undecided"
    return f"{'right' if right else 'wrong'}_{'attributed' if attributed else 'unattributed'}"


def _sentences(answer: CitedAnswer, judgements: Sequence[Mapping[str, Any]]) -> Iterator[ItemSentence]:
    by_number = {row["sentence"]: row for row in judgements if row["sentence"] is not None}
    plain, at = answer.plain, 0
    for number, sentence in enumerate(answer.sentences):
        row = by_number[number]
        start = plain.find(sentence.text, at)
        end = start + len(sentence.text) if start >= 0 else None
        at = at if end is None else end
        alone = dict(zip(row["cites"], row["alone"], strict=False)) if row["alone"] else {}
        yield ItemSentence(
            sentence.text,
            None if end is None else start,
            end,
            row["verdict"],
            row["probability"],
            tuple(_citation(one, answer, alone.get(one.passage)) for one in sentence.citations),
            tuple((first, last) for first, last in row.get("unsupported", ())),
        )


def _passages(answer: CitedAnswer) -> dict[str, ItemPassage]:
    cited = [key for sentence in answer.sentences for key in sentence.cites]
    chosen = dict.fromkeys([*cited, *answer.ranking[:_SHOWN]])
    return {
        key: ItemPassage(one.title, one.section, one.text, _url(key))
        for key in chosen
        if (one := answer.passages.get(key)) is not None
    }


def _url(passage: str) -> str | None:
    return passage if passage.startswith(("http://", "https://")) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


# Answers may come from a file of others: a value outside its range is unknown.


def _number(value: object, *, most: float = math.inf) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        return None
    return float(value)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _citation(one: Citation, answer: CitedAnswer, verdict: str | None) -> ItemCitation:
    passage = answer.passages.get(one.passage)
    length = len(passage.text) if passage is not None and passage.text else math.inf
    if one.start is None or one.end is None or not 0 <= one.start <= one.end <= length:
        return ItemCitation(one.passage, None, None, verdict)
    return ItemCitation(one.passage, one.start, one.end, verdict)
