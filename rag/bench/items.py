"""The record of one question of a benchmark run: the answer, its verdicts and scores (`items.jsonl`)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from autoais.answers import CitedAnswer
from autoais.errors import FormatError
from autoais.io.jsonl import read_objects, round_floats
from autoais.judged import NOT_APPLICABLE
from autoais.metrics.claims import all_yes
from autoais.metrics.nuggets import first_words, nuggets_found
from autoais.metrics.short_answers import exact_match, f1, has_answer
from autoais.types import Question, Verdict
from rag.bench.questions import BenchQuestion

WAYS = (
    "right_attributed", "right_unattributed", "wrong_attributed", "wrong_unattributed", "refused_right",
    "refused_wrong", "undecided",
)  # fmt: skip
_SHOWN = 3  # hits whose texts are kept, besides the cited ones


@dataclass(frozen=True, slots=True)
class Item:
    """One question of a run, as a row of `items.jsonl`; None where a value is unknown.

    `sentences` have `text`, `start`, `end` (offsets into `answer`), `verdict` (all citations together, or
    `not_applicable`), `probability`, `citations` (`passage`, `start`, `end`, and the `verdict` on that passage alone)
    and `unsupported` (spans of the sentence). `passages` (id to title, section, text, url) holds the cited ones and the
    first three of `ranking`. `missing` means that a file of predictions had no answer, `failed` that a model returned
    nothing usable. `right` follows the benchmark's rule (`is_right`), `attributed` is AutoAIS of the whole answer, and
    `way` (one of `WAYS`) combines them. `first_gold` and `answer_hit` are ranks from 1: of the first gold passage, and
    of the first with a reference answer. `seconds` includes the search.
    """

    id: str
    question: str
    kind: str | None
    collection: str | None
    answerable: bool
    references: tuple[str, ...]
    gold: tuple[str, ...]
    nuggets: tuple[tuple[str, ...], ...]
    answer: str
    short_answer: str | None
    abstained: bool
    failed: bool
    missing: bool
    reason: str | None
    confidence: float | None
    sentences: tuple[Mapping[str, Any], ...]
    passages: Mapping[str, Mapping[str, Any]]
    ranking: tuple[str, ...]
    right: bool | None
    attributed: bool | None
    way: str
    em: float | None
    f1: float | None
    answer_recall: bool | None
    nugget_recall: float | None
    first_gold: int | None
    answer_hit: int | None
    seconds: float | None
    tokens_read: int | None
    tokens_written: int | None
    words: int

    @property
    def refused(self) -> bool:
        """Whether the system said that the passages do not answer the question; a failed model refuses nothing."""
        return self.abstained and not self.failed

    def row(self) -> dict[str, Any]:
        """Return the item as JSON."""
        row: dict[str, Any] = round_floats(asdict(self))
        return row

    @classmethod
    def of(cls, row: Mapping[str, Any], where: str) -> "Item":
        """Return the item of a row; raises `FormatError` if a field is missing or of another type."""
        values: dict[str, Any] = {}
        for one in fields(cls):
            if one.name not in row:
                raise FormatError(f"{where}: field {one.name!r} is missing; is it a row of items.jsonl?")
            value = row[one.name]
            kinds = _KINDS[one.name]
            if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
                raise FormatError(f"{where}: field {one.name!r} is of another type: {type(value).__name__}")
            values[one.name] = tuple(value) if isinstance(value, list) else value
        if values["way"] not in WAYS:
            raise FormatError(f"{where}: field 'way' should be one of {', '.join(WAYS)}")
        values["nuggets"] = tuple(map(tuple, values["nuggets"]))
        return cls(**values)


_NONE = type(None)
_NUMBER: tuple[type, ...] = (int, float, _NONE)
_KINDS: dict[str, tuple[type, ...]] = (
    dict.fromkeys(("id", "question", "answer", "way"), (str,))
    | dict.fromkeys(("kind", "collection", "short_answer", "reason"), (str, _NONE))
    | dict.fromkeys(("answerable", "abstained", "failed", "missing"), (bool,))
    | dict.fromkeys(("right", "attributed", "answer_recall"), (bool, _NONE))
    | dict.fromkeys(("references", "gold", "nuggets", "sentences", "ranking"), (list,))
    | dict.fromkeys(("confidence", "em", "f1", "nugget_recall", "seconds"), _NUMBER)
    | dict.fromkeys(("first_gold", "answer_hit", "tokens_read", "tokens_written"), (int, _NONE))
    | {"passages": (dict,), "words": (int,)}
)


def read_items(path: Path) -> Iterator[Item]:
    """Stream `items.jsonl`; raises `FormatError` for a broken row."""
    for where, row in read_objects(path):
        yield Item.of(row, where)


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
    attributed = all_yes(Verdict(verdict).ais for verdict in verdicts)
    failed = extra.get("failed") is True
    correct = is_right(asked, said, right)
    trace = extra.get("trace")
    tokens = trace.get("tokens", {}) if isinstance(trace, Mapping) else {}
    references = question.answers
    cited_text = " ".join(sentence.text for sentence in said.sentences if sentence.cites)
    found = nuggets_found(said.plain, question.nuggets)
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
        confidence=_number(extra.get("confidence")),
        sentences=tuple(_sentences(said, judgements)),
        passages=_passages(said),
        ranking=tuple(said.ranking),
        right=correct,
        attributed=attributed,
        way=_way(asked, said, correct, attributed, lost=failed or answer is None),
        em=exact_match(said.short_answer or "", references) if references and short_answers else None,
        f1=f1(said.short_answer or "", references) if references and short_answers else None,
        answer_recall=has_answer(cited_text, references) if references else None,
        nugget_recall=sum(found) / len(found) if found else None,
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

    An answer to an unanswerable question is wrong. A refusal is not right, unless nothing could be.
    """
    question = asked.question
    if not asked.answerable:
        return None if answer.abstained else False
    if answer.abstained:
        return False
    if rule is None:
        return None
    name, _, words = rule.partition("@")
    if name == "nuggets":
        return holds_nuggets(answer.plain, question, int(words))
    if name == "gold_cited":
        cited = {key for sentence in answer.sentences for key in sentence.cites}
        return bool(cited & set(question.gold)) if question.gold else None
    if not question.answers:
        return None
    if name == "em":
        return exact_match(answer.short_answer or "", question.answers) == 1
    told = [sentence.text for sentence in answer.sentences if sentence.cites] if name == "answer_recall" else None
    text = f"{answer.plain} {answer.short_answer or ''}" if told is None else " ".join(told)
    return has_answer(text, question.answers)


def holds_nuggets(text: str, question: Question, words: int) -> bool | None:
    """Whether the first words of a text hold all nuggets of a question; None if it has none."""
    found = nuggets_found(first_words(text, words), question.nuggets)
    return all(found) if found else None


def _way(asked: BenchQuestion, answer: CitedAnswer, right: bool | None, attributed: bool | None, *, lost: bool) -> str:
    if lost:
        return "wrong_unattributed"
    if answer.abstained:
        return "refused_wrong" if asked.answerable else "refused_right"
    if right is None or attributed is None:
        return "undecided"
    return f"{'right' if right else 'wrong'}_{'attributed' if attributed else 'unattributed'}"


def _sentences(answer: CitedAnswer, judgements: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    by_number = {row["sentence"]: row for row in judgements if row["sentence"] is not None}
    plain, at = answer.plain, 0
    for number, sentence in enumerate(answer.sentences):
        row = by_number[number]
        start = plain.find(sentence.text, at)
        end = start + len(sentence.text) if start >= 0 else None
        at = at if end is None else end
        alone = dict(zip(row["cites"], row["alone"], strict=False)) if row["alone"] else {}
        yield {
            "text": sentence.text,
            "start": None if end is None else start,
            "end": end,
            "verdict": row["verdict"],
            "probability": row["probability"],
            "citations": [
                {"passage": c.passage, "start": c.start, "end": c.end, "verdict": alone.get(c.passage)}
                for c in sentence.citations
            ],
            "unsupported": row.get("unsupported", []),
        }


def _passages(answer: CitedAnswer) -> dict[str, dict[str, Any]]:
    cited = [key for sentence in answer.sentences for key in sentence.cites]
    chosen = dict.fromkeys([*cited, *answer.ranking[:_SHOWN]])
    return {
        key: {"title": one.title, "section": one.section, "text": one.text, "url": _url(key)}
        for key in chosen
        if (one := answer.passages.get(key)) is not None
    }


def _url(passage: str) -> str | None:
    return passage if passage.startswith(("http://", "https://")) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
