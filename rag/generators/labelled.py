"""Questions to a model whose reply is a few labelled lines, and what small models make of such lines."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from autoais.markers.grammar import parse
from rag.llms import Completion, LanguageModel, Message, ModelError, traced, without_thoughts
from rag.llms.prompts import Prompt, plain
from rag.types import Answer, Question, Sentence, Unresolved

_QUESTION = re.compile(r"[\W_]*question[*_\s]*[:：]", re.IGNORECASE)
_UNKNOWN = re.compile(r"\W*unknown\b\W*", re.IGNORECASE)


def ask(model: LanguageModel, prompt: Prompt, max_tokens: int, **values: str) -> Completion:
    """The reply to a prompt with its placeholders filled; `ModelError` if there is none."""
    return model.complete([Message("user", prompt.put(values))], max_tokens)


def ask_each(
    model: LanguageModel,
    prompt: Prompt,
    max_tokens: int,
    labels: Sequence[str],
    questions: Iterable[Question],
    system: str,
) -> Iterator[tuple[Answer, dict[str, str]]]:
    """For each question, in order, what the model says to it (`spoken`) and the fields of its reply.

    One that the model gives nothing to has failed and says why.
    """
    for question in questions:
        try:
            completion = ask(model, prompt, max_tokens, question=plain(question.text))
        except ModelError as error:
            yield failed(question, system, str(error)), {}
            continue
        reply = fields(completion.text, labels)
        yield spoken(question, prompt, completion, reply, system), reply


def fields(reply: str, labels: Sequence[str]) -> dict[str, str]:
    """`Label: text` lines by label, in small letters; the first of each counts, white space is squeezed.

    Marks of lists and of bold type around a label are passed over, and so are a model's thoughts. A line without a
    label goes on with the one before, up to an empty line; what stands before any label has the label "". A model that
    goes on to write the next question is not listened to.
    """
    label = re.compile(rf"[\W_]*({'|'.join(labels)})[*_\s]*[:：][*_\s]*(.*)", re.IGNORECASE)
    found: dict[str, str] = {}
    open_field: str | None = ""
    for line in without_thoughts(reply).splitlines():
        match = label.fullmatch(line)
        if not match and _QUESTION.match(line):
            if any(words.strip() for words in found.values()):
                break
            continue
        if match:
            open_field = None if match[1].lower() in found else match[1].lower()
            line = match[2]
        elif open_field and not line.strip():
            open_field = None
        if open_field is not None:
            found[open_field] = f"{found.get(open_field, '')} {line}"
    return {name: text for name, words in found.items() if (text := " ".join(words.split()))}


def spoken(question: Question, prompt: Prompt, completion: Completion, reply: Mapping[str, str], system: str) -> Answer:
    """What a model said without sources, from the fields `answer` and `short` or, without those, from all it wrote.

    Markers that it wrote point nowhere, as it was shown nothing: they are taken out and kept as unresolved. "UNKNOWN"
    is an abstention; a reply without a word has failed.
    """
    trace = {"prompt": prompt.id, **traced(completion)}
    short = reply.get("short", "")
    said = reply.get("answer") or short or reply.get("", "")
    if _UNKNOWN.fullmatch(said):
        reason = "the model says that it does not know"
        return Answer(question, "", (), (), system, abstained=True, reason=reason, trace=trace)
    parsed = parse(said, 0)
    sentences = tuple(Sentence(one.start, one.end) for one in parsed.sentences)
    if not sentences:
        return failed(question, system, "the model wrote no answer that can be read", trace)
    unresolved = tuple(Unresolved(one.marker, one.reason) for one in parsed.unresolved)
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


def failed(question: Question, system: str, reason: str, trace: Mapping[str, Any] | None = None) -> Answer:
    """No answer, as the model gave nothing that can be used."""
    return Answer(question, "", (), (), system, abstained=True, reason=reason, failed=True, trace=trace or {})
