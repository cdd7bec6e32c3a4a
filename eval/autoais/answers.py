"""Reads answers with citations (our own `answers.jsonl`) from any system that writes the format."""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autoais.errors import FormatError
from autoais.jsonl import field, identifier, read_objects, strings


@dataclass(frozen=True, slots=True)
class SentenceCited:
    """One sentence of an answer and the ids of the passages it cites."""

    text: str
    cites: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A passage the system showed or read: its headings ("Title, Section" or empty) and its text."""

    headings: str
    text: str

    @property
    def evidence(self) -> str:
        """What a judge reads: headings, then text, as the Attributed-QA premise has them (they resolve "he", "it")."""
        return f"{self.headings}. {self.text}" if self.headings else self.text


@dataclass(frozen=True, slots=True)
class CitedAnswer:
    """One row: what was asked, what was said, what was cited, and the passages in rank order.

    `answers` (reference strings) and `gold` (passage ids) are the benchmark's; empty where it has none.
    `short_answer` is the string exact match is taken on; None where the system gives none.
    """

    id: str
    question: str
    sentences: tuple[SentenceCited, ...]
    passages: dict[str, ShownPassage]
    ranking: tuple[str, ...]
    short_answer: str | None
    abstained: bool
    unresolved: int
    answers: tuple[str, ...]
    gold: tuple[str, ...]


def read_answers(path: Path) -> Iterator[CitedAnswer]:
    """Stream `answers.jsonl`; `FormatError` at the first broken line or repeated id.

    A row must have `id` and `question`. `sentences` (`text`, `citations` of `passage`), `passages` (`id`, `text`,
    `rank`), `short_answer`, `abstained`, `unresolved`, `answers` and `gold` may be left out: nothing was said, shown,
    or known.
    """
    seen: set[str] = set()
    for where, row in read_objects(path):
        answer = _answer(row, where)
        if answer.id in seen:
            raise FormatError(f"{where}: id {answer.id!r} occurs twice")
        seen.add(answer.id)
        yield answer


def _answer(row: dict[str, Any], where: str) -> CitedAnswer:
    listed = _objects(row, "passages", where)
    abstained = field(row, "abstained", bool, where) if "abstained" in row else False
    passages = {field(p, "id", str, where): _shown(p, where) for p in listed}
    if len(passages) < len(listed):
        raise FormatError(f"{where}: a passage id occurs twice among the row's passages")
    ranked = sorted(listed, key=lambda p: field(p, "rank", int, where)) if all("rank" in p for p in listed) else listed
    sentences = tuple(_sentence(item, passages, where) for item in _objects(row, "sentences", where))
    _check_covered(row, sentences, where)
    if abstained and sentences:
        raise FormatError(f"{where}: 'abstained' is true, yet there are sentences; leave one of them out")
    short = row.get("short_answer")
    if short is not None and not isinstance(short, str):
        raise FormatError(f"{where}: field 'short_answer' should be a string or null")
    unresolved = row.get("unresolved") or []
    if not isinstance(unresolved, list):
        raise FormatError(f"{where}: field 'unresolved' should be a list")
    return CitedAnswer(
        id=identifier(row, "id", where),
        question=field(row, "question", str, where),
        sentences=sentences,
        passages=passages,
        ranking=tuple(p["id"] for p in ranked),
        short_answer=short,
        abstained=abstained,
        unresolved=len(unresolved),
        answers=strings(row, "answers", where),
        gold=strings(row, "gold", where),
    )


def _check_covered(row: dict[str, Any], sentences: Iterable[SentenceCited], where: str) -> None:
    """What stands outside the sentences would be shown and never judged."""
    rest = row.get("answer") or ""
    if not isinstance(rest, str):
        raise FormatError(f"{where}: field 'answer' should be a string")
    for sentence in sentences:
        before, found, rest = rest.partition(sentence.text)
        if before.strip() or not found:
            break
    else:
        if not rest.strip():
            return
    if "answer" in row:
        raise FormatError(f"{where}: field 'answer' is not its sentences one after the other")


def _objects(row: dict[str, Any], name: str, where: str) -> list[dict[str, Any]]:
    items = field(row, name, list, where) if name in row else []
    if not all(isinstance(item, dict) for item in items):
        raise FormatError(f"{where}: field {name!r} should be a list of objects")
    return items


def _sentence(item: dict[str, Any], passages: Container[str], where: str) -> SentenceCited:
    cites = tuple(dict.fromkeys(field(c, "passage", str, where) for c in _objects(item, "citations", where)))
    for cited in cites:
        if cited not in passages:
            raise FormatError(f"{where}: cites passage {cited!r}, which is not among the row's passages")
    return SentenceCited(field(item, "text", str, where), cites)


def _shown(passage: dict[str, Any], where: str) -> ShownPassage:
    headings = ", ".join(str(passage[name]) for name in ("title", "section") if passage.get(name))
    return ShownPassage(headings, field(passage, "text", str, where))
