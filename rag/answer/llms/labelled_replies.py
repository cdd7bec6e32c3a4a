"""Prompts whose reply is a few labelled lines, and a parser that tolerates the variants of small models."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from autoais.base.markers.grammar import parse
from autoais.base.models.thoughts import without_thoughts
from rag.answer.llms import Completion, LanguageModel, Message, ModelError, printable_reply, trace_of
from rag.answer.llms.prompts import Prompt, plain
from rag.base.types import Answer, CitedSentence, Question, Unresolved

_QUESTION = re.compile(r"[\W_]*question[*_\s]*[:：]", re.IGNORECASE)
_UNKNOWN = re.compile(r"\W*unknown\b\W*", re.IGNORECASE)


def ask(model: LanguageModel, prompt: Prompt, max_tokens: int, **values: str) -> Completion:
    """The reply to a prompt with its placeholders filled; raises `ModelError` if there is no reply."""
    return model.complete([Message("user", prompt.put(values), prompt.prefix)], max_tokens)


def ask_about(
    model: LanguageModel, prompt: Prompt, max_tokens: int, labels: Sequence[str], question: Question, system: str
) -> tuple[Answer, dict[str, str]]:
    """The model's answer to a question (`answer_from_reply`) and the fields of its reply.

    If the model fails, the answer is a failed one with the reason, without fields.
    """
    try:
        completion = ask(model, prompt, max_tokens, question=plain(question.text))
    except ModelError as error:
        return failed_answer(question, system, str(error)), {}
    reply = fields(completion.text, labels)
    return answer_from_reply(question, prompt, completion, reply, system), reply


def fields(reply: str, labels: Sequence[str]) -> dict[str, str]:
    """Parse lines `Label: text` into a dict by label, in lower case; the first of each counts, white space is squeezed.

    List and bold markup around labels and the model's thoughts are skipped. A line without a label continues the field
    before, up to an empty line; text before any label has the key "". Parsing stops at a next question that the model
    makes up.
    """
    label = re.compile(rf"[\W_]*({'|'.join(labels)})[*_\s]*[:：][*_\s]*(.*)", re.IGNORECASE)
    values: dict[str, str] = {}
    open_field: str | None = ""
    for line in printable_reply(without_thoughts(reply)).splitlines():
        match = label.fullmatch(line)
        if not match and _QUESTION.match(line):
            if any(words.strip() for words in values.values()):
                break
            continue
        if match:
            open_field = None if match[1].lower() in values else match[1].lower()
            line = match[2]
        elif open_field and not line.strip():
            open_field = None
        if open_field is not None:
            values[open_field] = f"{values.get(open_field, '')} {line}"
    return {name: text for name, words in values.items() if (text := " ".join(words.split()))}


def answer_from_reply(
    question: Question, prompt: Prompt, completion: Completion, reply: Mapping[str, str], system: str
) -> Answer:
    """A model's answer without sources, from the fields `answer` and `short` or, if both are missing, the whole reply.

    Markers are removed and kept as unresolved, because the model was shown no passages. "UNKNOWN" is an abstention; an
    empty reply is a failed answer.
    """
    trace = {"prompt": prompt.id, **trace_of(completion)}
    short = reply.get("short", "")
    text = reply.get("answer") or short or reply.get("", "")
    if _UNKNOWN.fullmatch(text):
        reason = "the model says that it does not know"
        return Answer(question, "", (), (), system, abstained=True, reason=reason, trace=trace)
    parsed = parse(text, 0)
    sentences = tuple(
        CitedSentence(parsed.text[sentence.start : sentence.end], (), sentence.start, sentence.end)
        for sentence in parsed.sentences
    )
    if not sentences:
        return failed_answer(question, system, "the model wrote no answer that can be read", trace)
    unresolved = tuple(Unresolved(marker.marker, marker.reason) for marker in parsed.unresolved)
    return Answer(
        question,
        parsed.text,
        sentences,
        (),
        system,
        short_answer=None if _UNKNOWN.fullmatch(short) else parse(short, 0).text or None,
        unresolved=unresolved,
        trace=trace,
    )


def failed_answer(question: Question, system: str, reason: str, trace: Mapping[str, Any] | None = None) -> Answer:
    """A failed answer: the model returned nothing usable."""
    return Answer(question, "", (), (), system, abstained=True, reason=reason, failed=True, trace=trace or {})
