"""Answers that a language model writes from passages, with each citation checked."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from autoais.base.markers.grammar import parse
from autoais.base.models.thoughts import is_thinking, only_ends_thoughts, without_thoughts
from autoais.base.text.sentences import sentence_spans
from autoais.base.text.words import words
from rag.answer.generator import abstain
from rag.answer.llms import (
    Completion,
    LanguageModel,
    Message,
    ModelError,
    printable_reply,
    trace_of,
)
from rag.answer.llms.prompts import STOP, Prompt
from rag.answer.word_overlap import nearest_sentence
from rag.base.errors import RagError
from rag.base.types import Answer, Citation, CitedSentence, Hit, Question, Unresolved

MAX_TOKENS = 512  # of a reply, or an eighth of the context if that is more; at most a quarter of the context
_MAX_TOKEN_LENGTH = 16  # characters per token; a longer reply comes from a server that ignores max_tokens
# A sentence may have ended, and another has begun: markers may stand between them.
_SENTENCE_BREAK = re.compile(r"[.!?…。！？\n][^\w\[]{0,20}(?:\[[^\]\n]{0,60}\][^\w\[]{0,20}){0,8}[^\W\d]")
_MAX_LOOP_SENTENCES = 8  # sentences that are repeated together
_MIN_REPEATS = 3  # of a text behind its first occurrence, which make it a loop
_LOOP = re.compile(rf"(.{{10,400}}?)\1{{{_MIN_REPEATS}}}", re.DOTALL)
_SOURCES = r"(?:contexts?|passages?|sources?|documents?|quotes?|texts?|information)"
_NOT = r"(?:do not|does not|did not|don't|doesn't|didn't|cannot|can't)"
_REFUSAL = re.compile(
    r"\bi (?:do not|don't) (?:know|have (?:enough|any|the|sufficient))\b"
    r"|\b(?:i am|i'm) (?:not able|unable) to (?:answer|determine|find|provide)\b"
    r"|\bi (?:cannot|can't|could not) (?:answer|determine|find|provide)\b"
    rf"|\b{_SOURCES}(?: (?:provided|given|above|texts?|passages?))* {_NOT}\b"
    rf"|\bnone of the (?:\w+ ){{0,2}}{_SOURCES}\b"
    r"|\b(?:no|not enough|insufficient) (?:relevant )?information\b"
    r"|\b(?:is|are|was|were) not (?:mentioned|stated|specified|provided|given|answered|found) (?:in|by) the\b"
    r"|\b(?:cannot|can't|can not|could not) be (?:answered|determined|found)\b"
)
_MARKER = re.compile(r"\[\d")
_MARKS = r"\[\d[\d, -]{0,20}\](?:(?:, ?| and |, and )?\[\d[\d, -]{0,20}\]){0,8}"
_PASSAGE = r"(?:the )?(?:(?:given|provided) )?(?:contexts?|passages?|sources?|documents?|texts?|references?) "
_STATED_VERBS = r"(?:stated|mentioned|noted|described|explained|shown|given|provided|found|seen|listed|specified)"
# "It was in 1889. The reference for this answer is [1].": a sentence that only cites.
_POINTER = re.compile(
    r"(?<=[.!?])\s+(?:The|This|My) (?:reference|source|citation)s?(?: [a-z]+){0,8} (?:is|are|comes? from):? ?"
    r"(?:the )?(?:context |passage |quote )?((?:\[\d{1,3}\](?:, ?| and )?)+)(?:\.(?=\s|$)|(?=\s*\n|\s*$))"
)
# A marker may be a word of its sentence, which lacks it once markers are taken out. "According to [1], it is old." is
# read as "It [1] is old.", and "It is old, as stated in context [1]." as "It is old [1]."
_LEADING_MARKER = re.compile(
    r"(?:^|(?<=[.!?]\s))"
    rf"(?:(?:According to|As {_STATED_VERBS} (?:in|by)|As per|Per|Based on|In|From) (?:{_PASSAGE})?({_MARKS}),"
    rf"|(?:The )?(?:Context|Passage|Source|Document|Text) ({_MARKS}) (?:states|says|mentions|notes|explains) that)"
    r" +([^\s\[]+)",
    re.IGNORECASE | re.MULTILINE,
)
_SOURCE_PHRASE = re.compile(
    rf",? (?:as {_STATED_VERBS} in (?:{_PASSAGE})?|according to (?:{_PASSAGE})?|(?:in|from|by) {_PASSAGE})(?={_MARKS})"
    rf"|(?<=[a-z]) in (?={_MARKS}[.,;]?(?:\s|$))",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Request:
    """A prompt: its messages, and the passages shown, in the order of their numbers, with the characters shown."""

    messages: tuple[Message, ...]
    excerpts: tuple[tuple[Hit, int], ...]
    trace: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        return [hit.passage.text[:end] for hit, end in self.excerpts]


class CitedGenerator:
    """Asks a language model with a prompt and checks the numbers it cites against the passages shown.

    Passages that do not fit the context window are cut at the end of a sentence, or dropped, from the last. A number of
    a shown passage becomes a citation of its sentence nearest to the claim (`nearest_sentence`), or of all the text
    shown if they share no word; any other number stays `unresolved`. The citation of a sentence that does nothing else
    ("The reference is [1].") is one of the sentence before it, if that has none. The answer is an abstention if the
    model refuses and cites nothing, and `failed` if the model returns nothing usable.

    `trace` of an answer: `raw` (the model's output), `prompt`, `shown` (passage ids in the order of their numbers),
    `tokens` (`read`, `written`), and if they apply: `stopped` (at the token limit), `repeated` (a loop was cut) and
    `cut` (`shortened`: characters shown, by id; `dropped`: ids).
    """

    def __init__(self, model: LanguageModel, prompt: Prompt, *, max_tokens: int | None = None) -> None:
        if not prompt.shows_passages:
            raise RagError(f"{prompt.name}: no placeholder for passages; it needs {{contexts}} or {{titled_contexts}}")
        self._model = model
        self._prompt = prompt
        token_limit = max(MAX_TOKENS, model.context // 8) if max_tokens is None else max_tokens
        self._max_tokens = max(1, min(token_limit, model.context // 4))
        self._room = model.context - self._max_tokens
        self._thinks = False  # whether the model was seen to write thoughts without their beginning
        self.name = f"cited.v5({model.name},{prompt.id},{self._max_tokens})"

    def generate(self, question: Question, hits: Sequence[Hit]) -> Answer:
        """The model's answer; without passages, it is not called. Raises `UserError` only if the user must act."""
        request = self._request(question, hits)
        if isinstance(request, Answer):
            return request
        try:
            completion = self._model.complete(request.messages, self._max_tokens, STOP)
        except ModelError as error:
            return abstain(question, hits, self.name, str(error), request.trace, failed=True)
        return self._parse_reply(question, hits, request, completion)

    def stream(self, question: Question, hits: Sequence[Hit]) -> Iterator[Answer]:
        """Yield the answer so far at each piece of the model's text; last, the answer of `generate`.

        It has all sentences but the last, which may go on. Sentences without a citation wait for the next one, since
        without one the answer may become a refusal; one that was there before waits too, as it may begin a loop.
        """
        request = self._request(question, hits)
        if isinstance(request, Answer):
            yield request
            return
        raw, parsed_length = "", 0
        so_far = Answer(question, "", (), tuple(hits), self.name)
        try:
            for piece in self._model.stream(request.messages, self._max_tokens, STOP):
                if isinstance(piece, Completion):
                    yield self._parse_reply(question, hits, request, piece)
                    return
                raw += piece
                if _SENTENCE_BREAK.search(raw, parsed_length) and raw.count("```") % 2 == 0:  # markers in code are code
                    parsed_length = len(raw)
                    if not is_thinking(raw, thinks=self._thinks):
                        longer = _drop_unsettled(
                            self._parse_reply(question, hits, request, Completion(raw, False, 0, 0))
                        )
                        if longer.sentences[: len(so_far.sentences)] == so_far.sentences:
                            so_far = longer
                yield so_far
        except ModelError as error:
            yield abstain(question, hits, self.name, str(error), request.trace | {"raw": raw}, failed=True)

    def _request(self, question: Question, hits: Sequence[Hit]) -> _Request | Answer:
        """The request to the model, or an abstention if there is nothing to show it."""
        with_text = [hit for hit in hits if hit.passage.text.strip()]
        trace: dict[str, Any] = {"prompt": self._prompt.id}
        if not with_text:
            return abstain(question, hits, self.name, "no passages were found", trace)
        excerpts = self._fit_passages(question, with_text)
        if not excerpts:
            reason = f"question and prompt leave no room for a passage in {self._room} tokens"
            return abstain(question, hits, self.name, reason, trace, failed=True)
        trace["shown"] = [hit.passage.id for hit, _ in excerpts]
        cut_ends = {hit.passage.id: end for hit, end in excerpts if end < len(hit.passage.text)}
        ids_left_out = [hit.passage.id for hit in with_text[len(excerpts) :]]
        if cut_ends or ids_left_out:
            trace["cut"] = {"shortened": cut_ends, "dropped": ids_left_out}
        return _Request(self._messages(question, excerpts), excerpts, trace)

    def _messages(self, question: Question, excerpts: Sequence[tuple[Hit, int]]) -> tuple[Message, ...]:
        passages = [replace(hit.passage, text=hit.passage.text[:end]) for hit, end in excerpts]
        return (Message("user", self._prompt.fill(question.text, passages), self._prompt.prefix),)

    def _fit_passages(self, question: Question, hits: Sequence[Hit]) -> tuple[tuple[Hit, int], ...]:
        """The first passages that fit the context window; the last one is cut at the end of a sentence if needed."""
        full_excerpts = tuple((hit, len(hit.passage.text)) for hit in hits)
        if self._fits(question, full_excerpts):
            return full_excerpts
        excerpts: tuple[tuple[Hit, int], ...] = ()
        for hit, length in full_excerpts:
            if not self._fits(question, (*excerpts, (hit, length))):
                end = self._fitting_end(question, excerpts, hit)
                return (*excerpts, (hit, end)) if end else excerpts
            excerpts = (*excerpts, (hit, length))
        return excerpts

    def _fitting_end(self, question: Question, before: tuple[tuple[Hit, int], ...], hit: Hit) -> int:
        """The end of the last sentence up to which a passage fits after the others, or 0."""
        ends = [end for _, end in sentence_spans(hit.passage.text)]
        fitting = bisect_left(ends, True, key=lambda end: not self._fits(question, (*before, (hit, end))))
        return ends[fitting - 1] if fitting else 0

    def _fits(self, question: Question, excerpts: Sequence[tuple[Hit, int]]) -> bool:
        return self._model.count(self._messages(question, excerpts)) <= self._room

    def _parse_reply(
        self, question: Question, hits: Sequence[Hit], request: _Request, completion: Completion
    ) -> Answer:
        raw = completion.text[: self._max_tokens * _MAX_TOKEN_LENGTH]
        completion = replace(completion, text=raw, cut=completion.cut or len(raw) < len(completion.text))
        trace = request.trace | trace_of(completion)
        self._thinks |= only_ends_thoughts(raw)
        text = printable_reply(without_thoughts(raw))
        # A model in a loop writes up to the token limit, so only a reply that was cut can be one.
        if completion.cut and (loop := _LOOP.search(text)):
            trace["repeated"] = True
            first_end = len(text[: loop.end(1)].rstrip())
            text = text[: next((end for _, end in sentence_spans(text[: loop.end()]) if end >= first_end), first_end)]
        if "```" not in text:
            text = _normalize_markers(text)
        parsed = parse(text, len(request.excerpts), passages=request.texts)
        parsed_sentences = parsed.sentences
        if completion.cut and (
            count := _count_before_loop([parsed.text[span.start : span.end] for span in parsed_sentences])
        ) < len(parsed_sentences):
            trace["repeated"] = True
            parsed_sentences = parsed_sentences[:count]
            parsed = replace(parsed, text=parsed.text[: parsed_sentences[-1].end], sentences=parsed_sentences)
        unresolved = tuple(Unresolved(marker.marker, marker.reason) for marker in parsed.unresolved)
        has_citations = any(span.cites for span in parsed.sentences)
        if not has_citations and is_refusal(parsed.text):
            reason = "the model says that the passages do not answer"
            return abstain(question, hits, self.name, reason, trace, unresolved)
        if not parsed.sentences:
            return abstain(
                question, hits, self.name, self._explain_empty_reply(completion), trace, unresolved, failed=True
            )
        if words(parsed.text) == words(question.text):
            reason = "the model only repeated the question"
            return abstain(question, hits, self.name, reason, trace, unresolved, failed=True)
        sentences = []
        for span in parsed.sentences:
            sentence = parsed.text[span.start : span.end]
            citations = tuple(_citation(sentence, *request.excerpts[number - 1]) for number in span.cites)
            sentences.append(CitedSentence(sentence, citations, span.start, span.end))
        return Answer(
            question, parsed.text, tuple(sentences), tuple(hits), self.name, unresolved=unresolved, trace=trace
        )

    def _explain_empty_reply(self, completion: Completion) -> str:
        if completion.cut and not without_thoughts(completion.text).strip():
            return (
                f"the model wrote no answer within {self._max_tokens} tokens, perhaps only thoughts; an eighth of "
                f"--context, now {self._model.context}, is for the reply"
            )
        return "the model wrote no sentence" if completion.text.strip() else "the model wrote nothing"


def is_refusal(text: str) -> bool:
    """Whether a text without citations says that the passages do not answer."""
    return _REFUSAL.search(" ".join(text.casefold().replace("’", "'").split())) is not None


def _normalize_markers(text: str) -> str:
    """A reply with its citations as markers that are no words of their sentences, and no sentences of their own."""
    return _SOURCE_PHRASE.sub(" ", _LEADING_MARKER.sub(_mark_first_word, _POINTER.sub(_move_markers, text)))


def _move_markers(pointer: re.Match[str]) -> str:
    """The markers of a sentence that only cites, for the one before it, unless that one cites by itself."""
    before = re.split(r"(?<=[.!?])\s", pointer.string[max(0, pointer.start() - 600) : pointer.start()])[-1]
    return pointer[0] if _MARKER.search(before) else f" {pointer[1]}"


def _mark_first_word(match: re.Match[str]) -> str:
    return f"{match[3][0].upper()}{match[3][1:]} {match[1] or match[2]}"


def _count_before_loop(sentences: Sequence[str]) -> int:
    """How many sentences there are up to the end of the first run of which there are four in a row, or all.

    The numbers of list items are no part of sentences, and may differ.
    """
    for start in range(len(sentences)):
        for length in range(1, _MAX_LOOP_SENTENCES + 1):
            end = start + length * (_MIN_REPEATS + 1)
            if end <= len(sentences) and sentences[start : end - length] == sentences[start + length : end]:
                return start + length
    return len(sentences)


def _drop_unsettled(answer: Answer) -> Answer:
    """An answer to the beginning of a reply, up to the last sentence that the rest of the reply does not change."""
    sentences = answer.sentences[:-1]
    while sentences and (
        not sentences[-1].citations or sentences[-1].text in {sentence.text for sentence in sentences[:-1]}
    ):
        sentences = sentences[:-1]
    end = (sentences[-1].end or 0) if sentences else 0
    return replace(answer, text=answer.text[:end], sentences=sentences, abstained=False, reason=None, failed=False)


def _citation(sentence: str, hit: Hit, end: int) -> Citation:
    text = hit.passage.text[:end]
    first, last = nearest_sentence(text, sentence) or (len(text) - len(text.lstrip()), len(text.rstrip()))
    return Citation(hit.passage.id, first, last, text[first:last], "cited")
