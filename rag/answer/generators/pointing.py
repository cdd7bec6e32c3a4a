"""Answers of a language model that names the numbers of its sources before it writes: what it cites is always there.

The passages are split into units (`units.py`), numbered from 1. The reply is JSON that names units; the program
extracts their text. So a citation cannot be misquoted, whatever the model writes. Evidence comes before the sentence,
as in ReClaim (Xia et al. 2024) and FRONT (Huang et al. 2024).
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from autoais.base.markers.grammar import parse
from autoais.base.models.thoughts import is_thinking, only_ends_thoughts, without_thoughts
from autoais.base.text.sentences import sentence_spans
from rag.answer.generator import abstain
from rag.answer.generators.passage_reader import PassageReader, ReadQuestion
from rag.answer.generators.stretches import find_stretch
from rag.answer.generators.units import Unit, quote_units
from rag.answer.llms import (
    Completion,
    LanguageModel,
    Message,
    ModelError,
    Schema,
    SchemaError,
    printable_reply,
    trace_of,
)
from rag.answer.llms.prompts import Prompt, plain
from rag.base.errors import RagError
from rag.base.types import Answer, Citation, CitedSentence, Hit, Question

LOCAL_WORDS, SERVER_WORDS = 150, 400
"""Words of sources shown by default: fewer to a local model, which is mostly a small one.

Set by hand, after trials of a 1.5B model on 30 questions of Open-NQ; no model behind a server was tried.
"""
MAX_PASSAGE_WORDS = 120
"""Words shown of a passage; set by hand, not by measurement."""

# Set by hand, not by measurement:
_MAX_SENTENCES = 6  # of a reply
_MAX_SOURCES = 4  # of a sentence
_MAX_QUOTES = 6  # units of a quoted answer
_MAX_SENTENCE_LENGTH = 400  # characters
_MAX_TOKENS = 400  # of a reply
_MIN_UNITS = 4  # that a server's limit on schemas may leave; below that, it gets no schema
_MAX_TOKEN_LENGTH = 16  # characters per token; a longer reply comes from a server that ignores max_tokens

_ANSWERABLE = re.compile(r'"answerable"\s*:\s*(true|false)')
_SENTENCES = re.compile(r'"sentences"\s*:\s*\[')
_NUMBER = re.compile(r"\d{1,4}")
_decoder = json.JSONDecoder(strict=False)

QuotableUnit = tuple[Hit, Unit]
"""A unit that a model may point at, and its hit."""


@dataclass(frozen=True, slots=True)
class _Statement:
    """A sentence of a reply, and the units that it names, as they were written."""

    text: str
    sources: object


@dataclass(frozen=True, slots=True)
class _Request:
    messages: tuple[Message, ...]
    units: tuple[QuotableUnit, ...]
    schema: Schema | None
    reading: ReadQuestion
    trace: dict[str, Any]


class PointingGenerator(ABC):
    """Shows a language model numbered units of the passages that the reader finds best; its reply names some of them.

    The reader (`PassageReader`) chooses what is shown, up to so many `words`, and abstains in the model's place if the
    passages do not seem to answer. The model may abstain too. A number that no unit has is left out and counted. A
    server that finds the schema of the reply too large is shown half of the units, and at last gets no schema.

    `trace` of an answer: `raw` (the model's output), `prompt`, `shown` (passage ids), `units` (how many were shown),
    `tokens`, `pointers` (`invalid`: numbers that no unit has; `uncited`: sentences without a source), `structured`
    (what the engine took to hold the reply to its form: `json_schema`, `json_object` or `none`), `units_left_out` if
    the schema was too large, and `stopped` if the reply ended at the token limit. `confidence` is the model's
    probability of "answerable" if the engine gives it, else the reader's confidence.
    """

    mode = ""

    def __init__(
        self, model: LanguageModel, prompt: Prompt, reader: PassageReader, *, words: int = LOCAL_WORDS
    ) -> None:
        if not prompt.shows_units:
            raise RagError(f"{prompt.name}: no placeholder for numbered sources; it needs {{sources}}")
        self._model, self._prompt, self._reader, self._words = model, prompt, reader, words
        self._max_tokens = max(1, min(_MAX_TOKENS, model.context // 3))
        self._thinks = False  # whether the model was seen to write thoughts without their beginning
        self.name = f"{self.mode}.v1({model.name},{prompt.id},{self._max_tokens},{words} words,{reader.name})"

    def generate(self, question: Question, hits: Sequence[Hit]) -> Answer:
        """The model's answer; it is not called if the reader abstains. Raises `UserError` only if the user must act."""
        request = self._request(question, hits)
        if isinstance(request, Answer):
            return request
        first = request
        while True:
            try:
                completion = self._model.complete(request.messages, self._max_tokens, schema=request.schema)
            except ModelError as error:
                if isinstance(error, SchemaError) and request.schema is not None:
                    request = self._shrink(question, request, first)
                    continue
                return abstain(question, request.reading.hits, self.name, str(error), request.trace, failed=True)
            return self._parse_reply(question, request, completion)

    def stream(self, question: Question, hits: Sequence[Hit]) -> Iterator[Answer]:
        """Yield the answer so far, which grows with each complete sentence; last, the answer of `generate`."""
        request = self._request(question, hits)
        if isinstance(request, Answer):
            yield request
            return
        first = request
        raw, so_far = "", Answer(question, "", (), request.reading.hits, self.name)
        while True:
            try:
                for piece in self._model.stream(request.messages, self._max_tokens, schema=request.schema):
                    if isinstance(piece, Completion):
                        yield self._parse_reply(question, request, piece)
                        return
                    raw += piece
                    if "}" in piece and not is_thinking(raw, thinks=self._thinks):
                        longer = self._answer_so_far(question, request, raw)
                        if longer is not None and longer.sentences[: len(so_far.sentences)] == so_far.sentences:
                            so_far = longer
                    yield so_far
            except ModelError as error:
                if isinstance(error, SchemaError) and request.schema is not None:
                    request = self._shrink(question, request, first)
                    continue
                trace = request.trace | ({"raw": raw} if raw else {})
                yield abstain(question, request.reading.hits, self.name, str(error), trace, failed=True)
                return

    @abstractmethod
    def schema(self, count: int) -> Schema:
        """The JSON Schema of a reply about so many units."""

    @abstractmethod
    def _parse_reply(self, question: Question, request: _Request, completion: Completion) -> Answer: ...

    def _answer_so_far(self, question: Question, request: _Request, raw: str) -> Answer | None:
        """The answer to the beginning of a reply; None if it has none yet."""
        return None

    # --- the request --------------------------------------------------------------------------------------------------

    def _request(self, question: Question, hits: Sequence[Hit]) -> _Request | Answer:
        """The request to the model, or the reader's abstention."""
        reading = self._reader.read(question, hits)
        trace: dict[str, Any] = {"prompt": self._prompt.id, "signals": reading.signals}
        if reading.reason is not None:
            return abstain(question, reading.hits, self.name, reading.reason, trace, confidence=reading.confidence)
        units = self._fit_units(question, select_units(reading, self._words, MAX_PASSAGE_WORDS))
        if not units:
            reason = f"question and prompt leave no room for a source in {self._model.context} tokens of context"
            return abstain(question, reading.hits, self.name, reason, trace, failed=True)
        return self._show(question, units, reading, trace)

    def _show(
        self, question: Question, units: Sequence[QuotableUnit], reading: ReadQuestion, trace: dict[str, Any]
    ) -> _Request:
        shown_ids = list(dict.fromkeys(hit.passage.id for hit, _ in units))
        trace = trace | {"shown": shown_ids, "units": len(units)}
        return _Request(self._messages(question, units), tuple(units), self.schema(len(units)), reading, trace)

    def _shrink(self, question: Question, request: _Request, first: _Request) -> _Request:
        """The request with half of its units; if these are few, the first request, without a schema."""
        count = len(request.units) // 2
        if count < _MIN_UNITS:
            return replace(first, schema=None)
        trace = request.trace | {"units_left_out": len(first.units) - count}
        return self._show(question, request.units[:count], request.reading, trace)

    def _fit_units(self, question: Question, units: Sequence[QuotableUnit]) -> Sequence[QuotableUnit]:
        """The first units that fit the context window."""
        room = self._model.context - self._max_tokens
        while units and self._model.count(self._messages(question, units)) > room:
            units = units[: len(units) * 3 // 4]
        return units

    def _messages(self, question: Question, units: Sequence[QuotableUnit]) -> tuple[Message, ...]:
        values = {"question": plain(question.text), "sources": number_units(units)}
        return (Message("user", self._prompt.put(values), self._prompt.prefix),)

    # --- the reply ----------------------------------------------------------------------------------------------------

    def _text(self, completion: Completion) -> tuple[str, dict[str, Any]]:
        """The text of a reply without thoughts, and the trace."""
        raw = completion.text[: self._max_tokens * _MAX_TOKEN_LENGTH]
        completion = replace(completion, text=raw, cut=completion.cut or len(raw) < len(completion.text))
        self._thinks |= only_ends_thoughts(raw)
        return printable_reply(without_thoughts(raw)), trace_of(completion) | {"structured": completion.structure}

    def _confidence(self, request: _Request, completion: Completion) -> float | None:
        probability = answerable_probability(completion)
        return request.reading.confidence if probability is None else probability

    def _empty(
        self, question: Question, request: _Request, completion: Completion, text: str, trace: dict[str, Any]
    ) -> Answer:
        """The answer to a reply without a sentence: an abstention, or a failure if the reply is no refusal."""
        match = _ANSWERABLE.search(text)
        confidence = self._confidence(request, completion)
        if match is not None and match[1] == "false":
            reason, failed = "the model says that the passages do not answer", False
        elif completion.cut:
            reason, failed = f"the model wrote no answer within {self._max_tokens} tokens", True
        else:
            reason, failed = "the model pointed at nothing" if text.strip() else "the model wrote nothing", True
        return abstain(
            question,
            request.reading.hits,
            self.name,
            reason,
            request.trace | trace,
            failed=failed,
            confidence=None if failed else confidence,
        )


class Point(PointingGenerator):
    """Sentences in the model's own words, each with the units that say it, named before the sentence."""

    mode = "point"

    def schema(self, count: int) -> Schema:
        """`answerable`, and `sentences` with `sources` (numbers of units) and `sentence`."""
        statement = _object(
            sources=_numbers(count, _MAX_SOURCES),
            sentence={"type": "string", "minLength": 1, "maxLength": _MAX_SENTENCE_LENGTH},
        )
        sentences = {"type": "array", "items": statement, "maxItems": _MAX_SENTENCES}
        return _object(answerable={"type": "boolean"}, sentences=sentences)

    def _parse_reply(self, question: Question, request: _Request, completion: Completion) -> Answer:
        text, trace = self._text(completion)
        statements = _read_statements(text, is_complete=True)
        if statements is None:  # a server that ignores schemas: sentences with markers, perhaps
            statements = _read_markers(text, len(request.units))
        answer = self._answer(question, request, statements)
        if not answer.sentences:
            return self._empty(question, request, completion, text, trace)
        trace = {**request.trace, **trace, **answer.trace}
        return replace(answer, confidence=self._confidence(request, completion), trace=trace)

    def _answer_so_far(self, question: Question, request: _Request, raw: str) -> Answer | None:
        statements = _read_statements(printable_reply(without_thoughts(raw)), is_complete=False)
        return self._answer(question, request, statements) if statements else None

    def _answer(self, question: Question, request: _Request, statements: Sequence[_Statement]) -> Answer:
        text, sentences, invalid_count = "", list[CitedSentence](), 0
        for statement in statements:
            words = parse(statement.text, 0).text.strip()  # without markers
            numbers, invalid = _valid_numbers(statement.sources, len(request.units))
            invalid_count += invalid
            citations = tuple(_citation(*request.units[number - 1]) for number in numbers)
            if not words or any(sentence.text == words for sentence in sentences):
                continue
            text += " " if text else ""
            for start, end in sentence_spans(words):
                sentences.append(CitedSentence(words[start:end], citations, len(text) + start, len(text) + end))
            text += words
        uncited = sum(not sentence.citations for sentence in sentences)
        trace = {"pointers": {"invalid": invalid_count, "uncited": uncited}}
        return Answer(question, text, tuple(sentences), request.reading.hits, self.name, trace=trace)


class Quote(PointingGenerator):
    """Units of the passages, word for word, in the model's order, and a short answer that stands in one of them."""

    mode = "quote"

    def schema(self, count: int) -> Schema:
        """`answerable`, `sources` (numbers of units) and `short_answer`."""
        return _object(
            answerable={"type": "boolean"},
            sources=_numbers(count, _MAX_QUOTES),
            short_answer={"type": "string", "maxLength": 80},
        )

    def _parse_reply(self, question: Question, request: _Request, completion: Completion) -> Answer:
        text, trace = self._text(completion)
        reply = read_object(text, "sources", "answerable")
        sources = reply.get("sources") if reply is not None else _NUMBER.findall(text)
        numbers, invalid = _valid_numbers(sources, len(request.units))
        if (reply or {}).get("answerable") is False or not numbers:
            return self._empty(question, request, completion, text, trace)
        units = [request.units[number - 1] for number in numbers[:_MAX_QUOTES]]
        quoted_text, sentences = quote_units((hit.passage, unit) for hit, unit in units)
        short = (reply or {}).get("short_answer")
        short_answer = _find_substring(short, [sentence.text for sentence in sentences])
        if short_answer == quoted_text:  # it would be shown twice
            short_answer = None
        return Answer(
            question,
            quoted_text,
            sentences,
            request.reading.hits,
            self.name,
            short_answer=short_answer,
            confidence=self._confidence(request, completion),
            trace=request.trace | trace | {"pointers": {"invalid": invalid, "uncited": 0}},
        )


def number_units(units: Sequence[QuotableUnit]) -> str:
    """The units, one per line with its number, below the headings of their passages."""
    lines: list[str] = []
    before: Hit | None = None
    for number, (hit, unit) in enumerate(units, 1):
        if hit is not before:
            lines.append(f"({plain(hit.passage.headings)})" if hit.passage.headings else "(untitled)")
            before = hit
        lines.append(f"[{number}] {plain(hit.passage.text[unit.start : unit.end])}")
    return "\n".join(lines)


def answerable_probability(completion: Completion) -> float | None:
    """The probability of "true" against "false" at the place of the first of them; None if the engine gives none."""
    for alternatives in completion.alternatives:
        yes = sum(value for token, value in alternatives.items() if token.strip().lower() == "true")
        no = sum(value for token, value in alternatives.items() if token.strip().lower() == "false")
        if yes + no > 0.5 or max(alternatives, key=alternatives.__getitem__).strip().lower() in ("true", "false"):
            return yes / (yes + no)
    return None


def select_units(reading: ReadQuestion, max_words: int, max_passage_words: int) -> list[QuotableUnit]:
    """The units around the best one of the best passages, in the order of the passages, up to so many words."""
    units: list[QuotableUnit] = []
    word_count = 0
    for passage in reading.ranking:
        stretch = find_stretch(passage, max_passage_words)
        words = sum(unit.words for unit in stretch)
        if units and word_count + words > max_words:
            break
        units += [(passage.hit, unit) for unit in stretch]
        word_count += words
    return units


def _object(**properties: Any) -> dict[str, Any]:  # noqa: ANN401  (JSON)
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def _numbers(count: int, limit: int) -> dict[str, Any]:
    return {
        "type": "array",
        "items": {"type": "integer", "enum": [*range(1, count + 1)]},
        "minItems": 1,
        "maxItems": limit,
    }


def _read_statements(text: str, *, is_complete: bool) -> list[_Statement] | None:
    """The statements of a reply, also of one that is broken off; None if it has no object, [] if it refuses.

    A complete reply that is not valid JSON is searched for objects with a sentence.
    """
    begin = _SENTENCES.search(text)
    answerable = _ANSWERABLE.search(text, 0, begin.start() if begin else len(text))
    if answerable is not None and answerable[1] == "false":
        return []
    if begin is None and "{" not in text:
        return None
    statements: list[_Statement] = []
    position = begin.end() if begin else 0
    while (start := text.find("{", position)) >= 0:
        try:
            row, end = _decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            if not is_complete:
                break
            position = start + 1
            continue
        if isinstance(row, dict) and isinstance(row.get("sentence"), str):
            statements.append(_Statement(row["sentence"], row.get("sources")))
            position = end
        else:
            position = start + 1
    return statements


def _read_markers(text: str, count: int) -> list[_Statement]:
    """The sentences of a text with markers such as `[2]`."""
    parsed = parse(text, count)
    return [_Statement(parsed.text[span.start : span.end], list(span.cites)) for span in parsed.sentences]


def read_object(text: str, *fields: str) -> dict[str, Any] | None:
    """The first JSON object in a text that has one of the fields; None if there is none."""
    position = -1
    while (position := text.find("{", position + 1)) >= 0:
        try:
            row, _ = _decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and any(name in row for name in fields):
            return row
    return None


def _valid_numbers(sources: object, count: int) -> tuple[list[int], int]:
    """The numbers of units that sources name, each once, and how many of the sources name none."""
    items = sources if isinstance(sources, list) else [] if sources is None else [sources]
    numbers: dict[int, None] = {}
    invalid = 0
    for item in items:
        number = int(item) if isinstance(item, int | str) and _NUMBER.fullmatch(str(item)) else 0
        if 1 <= number <= count and not isinstance(item, bool):
            numbers[number] = None
        else:
            invalid += 1
    return list(numbers), invalid


def _citation(hit: Hit, unit: Unit) -> Citation:
    return Citation(hit.passage.id, unit.start, unit.end, hit.passage.text[unit.start : unit.end], "cited")


def _find_substring(short: object, texts: Sequence[str]) -> str | None:
    """The short answer as it stands in the first of the texts that has it; None if none has."""
    if not isinstance(short, str) or not short.strip():
        return None
    pattern = re.compile(r"(?<!\w)" + r"\s+".join(map(re.escape, short.split())) + r"(?!\w)", re.IGNORECASE)
    return next((match[0] for text in texts if (match := pattern.search(text))), None)
