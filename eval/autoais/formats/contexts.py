"""Answers with retrieved contexts, as RAG evaluators keep them (RAGAS, RAGChecker, DeepEval, TruLens, FlashRAG).

Their measures judge an answer against all its contexts. So where no answer of a file has a marker, each sentence is
judged against them all (`WHOLE_CONTEXT`), which is no citation of the system: citation metrics leave it out. Where one
has a marker (`[1]` is the first context), every answer cites what its own markers say; without any it cites nothing.
"""

import ast
import io
import json
import tokenize
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from autoais.base.answers import WHOLE_CONTEXT, CitedAnswer
from autoais.base.errors import FormatError
from autoais.base.markers.sentences import MarkedSentence, parse_sentences
from autoais.base.types import Citation, CitedSentence, Passage, Unresolved
from autoais.formats.base import Notes, passage_ids
from autoais.formats.markers import restore_answer

ALL_CITED = "whole_context", "answers without citations, judged against all their contexts"
NONE_CITED = "without_markers", "answers without markers in a file with markers, counted as citing nothing"
_UNCITED = "answers without citations; judged against all their contexts if no answer of the file has markers"
CONTEXT_FEATURES = frozenset(
    {"sentences", "citations beyond the first", "texts of passages", "passages not cited", "markers as written"}
) | {"no citations of its own", "unresolved markers in the text"}
_MAX_LIST, _MAX_PYTHON_LIST = 1 << 24, 1 << 20  # characters of a list in a CSV cell; Python's parser takes far more


def passages_of(contexts: Iterable[tuple[str | None, str, str]]) -> dict[str, Passage]:
    """Return passages of (id, title, text) by id, in order; `doc N` if the id is missing, empty or taken."""
    rows = list(contexts)
    keys = passage_ids([key for key, _, _ in rows], "doc {}".format)
    return {key: Passage(key, title, text) for key, (_, title, text) in zip(keys, rows, strict=True)}


def context_answer(
    key: str,
    question: str,
    output: str | None,
    passages: Mapping[str, Passage],
    *,
    references: Sequence[str] = (),
    scores: Mapping[str, float] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> CitedAnswer:
    """Return the answer whose text is `output`; an output of None or white space is an answer without sentences.

    Without a marker it is judged against all its contexts; `formats.read` knows if others in the file have markers.
    """
    order = tuple(passages)
    parsed, all_cited = _parse_answer(output or "", len(order))
    origin = WHOLE_CONTEXT if all_cited else None
    citations = tuple(Citation(key, origin=origin) for key in order)  # shared by sentences: there may be many of both
    return CitedAnswer(
        id=key,
        question=question,
        sentences=tuple(
            CitedSentence(m.text, citations if all_cited else tuple(citations[n - 1] for n in m.cites)) for m in parsed
        ),
        passages=dict(passages),
        ranking=order,
        scores=scores or {},
        unresolved_markers=tuple(Unresolved(*bad, n) for n, m in enumerate(parsed) for bad in m.unresolved),
        answers=tuple(references),
        output=output,
        extra=extra or {},
    )


def has_markers(answer: CitedAnswer) -> bool:
    """Whether the answer has markers of its own, whether they resolve or not."""
    return bool(answer.unresolved) or (
        not answer.whole_context and any(sentence.cites for sentence in answer.sentences)
    )


def remove_citations(answer: CitedAnswer) -> CitedAnswer:
    """Return the answer without its citations."""
    return replace(answer, sentences=tuple(replace(sentence, citations=()) for sentence in answer.sentences))


def _parse_answer(output: str, n: int) -> tuple[list[MarkedSentence], bool]:
    """Return the sentences, and whether they are judged against all contexts, because there is no marker."""
    parsed = parse_sentences(output, n)
    return parsed, n > 0 and bool(parsed) and not any(sentence.cites or sentence.unresolved for sentence in parsed)


def context_output(answer: CitedAnswer, notes: Notes) -> str:
    """Return the text to write: the system's own if it is read back with the same citations, else with markers."""
    order = tuple(answer.passages)
    cites = [sentence.cites for sentence in answer.sentences]
    if answer.output is not None:
        parsed, all_cited = _parse_answer(answer.output, len(order))
        if [order if all_cited else tuple(order[n - 1] for n in sentence.cites) for sentence in parsed] == cites:
            return answer.output
    if order and answer.sentences and not any(cites):
        notes[_UNCITED] += 1
    return restore_answer(answer, notes)


def passage_texts(answer: CitedAnswer) -> list[str]:
    """Return the texts of the passages, in order; titles stand before their texts."""
    return [passage.evidence for passage in answer.passages.values()]


def first_reference(answer: CitedAnswer, notes: Notes) -> str | None:
    """Return the first reference answer, for formats that have one; the others are counted."""
    if len(answer.answers) > 1:
        notes["reference answers beyond the first, left out"] += len(answer.answers) - 1
    return answer.answers[0] if answer.answers else None


def select_extra(answer: CitedAnswer, names: Iterable[str]) -> dict[str, Any]:
    """Return the fields of the format that the record has no attribute for."""
    return {name: answer.extra[name] for name in names if name in answer.extra}


def strings_in(row: Mapping[str, Any], name: str, location: str) -> list[str]:
    """Return a list of strings, which a CSV cell holds as JSON or as Python writes it; empty if missing or null.

    Raises `FormatError` for any other content.
    """
    value = row.get(name)
    if value is None or (isinstance(value, str) and not value.strip()):
        return []
    if isinstance(value, str):
        cell, value = value, _parse_list(value)
        if value is None and len(cell) > _MAX_PYTHON_LIST:
            raise FormatError(
                f"{location}: field {name!r} has {len(cell):,} characters; a list of more than "
                f"{_MAX_PYTHON_LIST >> 20} MiB should be JSON, of at most {_MAX_LIST >> 20} MiB"
            )
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise FormatError(f"{location}: field {name!r} should be a list of strings")
    return value


def _parse_list(cell: str) -> object:
    """Return the list of a CSV cell; None if it is no list."""
    if len(cell) > _MAX_LIST or not cell.lstrip().startswith("["):
        return None
    for parse in (_parse_json, _parse_python)[: 1 if len(cell) > _MAX_PYTHON_LIST else 2]:
        try:
            with warnings.catch_warnings(action="ignore"):  # Python warns of `\d`
                value: object = parse(cell)
        except (ValueError, SyntaxError, MemoryError, RecursionError, tokenize.TokenError):
            continue
        return value
    return None


def _parse_json(cell: str) -> object:
    """The value of JSON; a string may have line breaks, as a spreadsheet shows them."""
    return json.loads(cell, strict=False)


def _parse_python(cell: str) -> object:
    """The value that Python writes; the items of a list of strings may stand without commas, as numpy writes them.

    Python would join these.
    """
    value = ast.literal_eval(cell.strip())
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        tokens = tokenize.generate_tokens(io.StringIO(cell.strip()).readline)
        strings: list[object] = [ast.literal_eval(token.string) for token in tokens if token.type == tokenize.STRING]
        return strings
    return value
