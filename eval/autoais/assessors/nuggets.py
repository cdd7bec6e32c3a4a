"""Nuggets by a language model: their creation from passages, and their assignment to answers.

The procedure is AutoNuggetizer's (Pradeep et al. 2024, "Initial Nugget Evaluation Results for the TREC 2024 RAG Track
with the AutoNuggetizer Framework", arXiv:2411.09607; Pradeep et al. 2025, "The Great Nugget Recall", SIGIR;
castorini/nuggetizer). Creation: a list of at most 30 nuggets is brought up to date with ten passages at a time; then
each nugget is called vital or okay, ten at a time. Assignment: each nugget is supported, partially supported or not
supported by an answer, ten at a time. The wording of the prompts is ours. Where AutoNuggetizer goes on without the part
of the work that failed, and calls nuggets okay whose importance it could not read, ours are `failed`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from autoais.assessors.assessor import (
    Ask,
    Assessor,
    Failure,
    Prompt,
    ReplyError,
    Work,
    numbered,
    object_schema,
    read_field,
    read_labels,
)
from autoais.assessors.candidates import Candidates
from autoais.base.answers import CitedAnswer
from autoais.base.types import Passage
from autoais.formats.nuggetizer import ASSIGNMENTS, FAILED, IMPORTANCES, Nugget, NuggetBank, assignment_row

MAX_NUGGETS = 30
WINDOW = 10  # passages of an update, and nuggets that are labelled at once
_MAX_CHARACTERS = 400  # of a nugget; a longer one is no single fact

CREATE_PROMPTS = ("nuggets-create.v1", "nuggets-weigh.v1")
ASSIGN_PROMPTS = ("nuggets-assign.v1",)


def create(
    assessor: Assessor, candidates: Candidates, max_nuggets: int = MAX_NUGGETS, start: Sequence[str] = ()
) -> Work[dict[str, Any]]:
    """Create the nuggets of a question from its passages; `start` are nuggets to begin with.

    Returns the row of a nugget file; its `failures` say which passages were not read, and why. Nuggets whose importance
    the model did not give have the importance `failed`.
    """
    create_prompt, weigh_prompt = map(Prompt.read, CREATE_PROMPTS)
    texts, failures, position = _each_once(start), list[str](), 0
    while position < len(candidates.passages):

        def message(passages: Sequence[Passage], texts: Sequence[str] = texts) -> str:
            return create_prompt.fill(
                question=candidates.query,
                nuggets=numbered(texts),
                passages=numbered(passage.evidence for passage in passages),
                limit=max_nuggets,
            )

        window = _window(candidates.passages[position:], lambda passages: assessor.fits(message(passages)))
        (result,) = yield [_create_ask(message(window), len(texts), max_nuggets)]
        if isinstance(result, Failure):
            failures.append(f"{_range('passage', position, len(window))}: {result.reason}")
        else:
            texts = result
        position += len(window)
    parts = list(_parts(texts))
    results = yield [
        _label_ask(weigh_prompt, IMPORTANCES, part, question=candidates.query) for part in parts
    ]  # no request without nuggets
    importances, faults = _labels_of(parts, results)
    nuggets = tuple(Nugget(text, importance) for text, importance in zip(texts, importances, strict=True))
    return _with_failures(NuggetBank(candidates.topic, candidates.query, nuggets).row(), [*failures, *faults])


def assign(assessor: Assessor, answer: CitedAnswer, bank: NuggetBank) -> Work[dict[str, Any]]:
    """Assign the nuggets of a question to an answer to it.

    Returns the row of a file of assignments. An answer without words supports nothing, and nobody is asked; nuggets for
    which the model gave no label have the assignment `failed`, and `failures` say why.
    """
    prompt = Prompt.read(*ASSIGN_PROMPTS)
    if not answer.plain.strip():
        return assignment_row(answer, bank, ["not_support"] * len(bank.nuggets))
    parts = list(_parts([nugget.text for nugget in bank.nuggets]))
    results = yield [_label_ask(prompt, ASSIGNMENTS, part, question=bank.query, answer=answer.plain) for part in parts]
    assignments, faults = _labels_of(parts, results)
    return _with_failures(assignment_row(answer, bank, assignments), faults)


def _window(passages: Sequence[Passage], fits: Callable[[Sequence[Passage]], bool]) -> Sequence[Passage]:
    """Return the first passages, at most ten, that fit together; at least one."""
    size = 1
    while size < min(WINDOW, len(passages)) and fits(passages[: size + 1]):
        size += 1
    return passages[:size]


def _parts(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    return (texts[start : start + WINDOW] for start in range(0, len(texts), WINDOW))


def _create_ask(message: str, n_before: int, max_nuggets: int) -> Ask[list[str]]:
    def read(reply: str) -> list[str]:
        return _read_nuggets(reply, n_before, max_nuggets)

    value = {"type": "array", "items": {"type": "string"}, "maxItems": max_nuggets}
    return Ask(message, object_schema("nuggets", value), read)


def _read_nuggets(reply: str, n_before: int, max_nuggets: int) -> list[str]:
    """Return the nuggets of a reply, each once, the first `max_nuggets`; raises `ReplyError`."""
    value = read_field(reply, "nuggets")
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ReplyError("'nuggets' is not a list of strings")
    texts = _each_once(value)
    for text in texts:
        if len(text) > _MAX_CHARACTERS:
            raise ReplyError(f"a nugget has {len(text):,} characters; a nugget is a single short fact")
        if not text.isprintable():
            raise ReplyError("a nugget has characters that are not text")
        if not any(map(str.isalnum, text)):  # such as the "..." of the prompt's example
            raise ReplyError(f"{text[:40]!r} is no nugget")
    if n_before and not texts:
        raise ReplyError(f"it has no nuggets, and the list had {n_before}")
    return texts[:max_nuggets]


def _each_once(texts: Iterable[str]) -> list[str]:
    """Return the texts on one line each, without those that are empty or repeat another in other case."""
    lines: dict[str, str] = {}
    for text in texts:
        line = " ".join(text.split())
        lines.setdefault(line.casefold(), line)
    lines.pop("", None)
    return list(lines.values())


def _range(noun: str, before: int, count: int) -> str:
    return f"{noun} {before + 1}" if count == 1 else f"{noun}s {before + 1} to {before + count}"


def _label_ask(prompt: Prompt, labels: Sequence[str], nuggets: Sequence[str], **values: str) -> Ask[list[str]]:
    def read(reply: str) -> list[str]:
        return read_labels(reply, labels, len(nuggets))

    label = {"type": "string", "enum": list(labels)}
    value = {"type": "array", "items": label, "minItems": len(nuggets), "maxItems": len(nuggets)}
    message = prompt.fill(count=len(nuggets), nuggets=numbered(nuggets), **values)
    return Ask(message, object_schema("labels", value), read)


def _labels_of(parts: Sequence[Sequence[str]], results: Sequence[list[str] | Failure]) -> tuple[list[str], list[str]]:
    """Return a label for each nugget, and a line for each part that failed."""
    labels, failures = list[str](), list[str]()
    for part, result in zip(parts, results, strict=True):
        if isinstance(result, Failure):
            failures.append(f"{_range('nugget', len(labels), len(part))}: {result.reason}")
            labels += [FAILED] * len(part)
        else:
            labels += result
    return labels, failures


def _with_failures(row: Mapping[str, Any], failures: Sequence[str]) -> dict[str, Any]:
    return {**row, "failures": list(failures)} if failures else dict(row)
