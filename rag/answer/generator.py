"""What a generator is: it writes a cited answer from a question and its hits, whole or sentence by sentence."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from rag.base.types import Answer, Hit, Question, Unresolved


class Generator(Protocol):
    """Writes a cited answer from hits, or abstains."""

    @property
    def name(self) -> str:
        """Identifies everything that can change an answer: model, prompt, version."""
        ...

    def generate(self, question: Question, hits: Sequence[Hit]) -> Answer:
        """An answer that cites only these hits."""
        ...


@runtime_checkable
class Streaming(Protocol):
    """A generator that can also show its answer while it is written."""

    def stream(self, question: Question, hits: Sequence[Hit]) -> Iterator[Answer]:
        """Yield the answer so far, with its complete sentences; last, that of `generate`.

        Sentences that were yielded stay as they are. An answer that has not grown may be yielded again, the same
        object, so that who reads can end the work.
        """
        ...


def abstain(
    question: Question,
    hits: Sequence[Hit],
    system: str,
    reason: str,
    trace: Mapping[str, Any],
    unresolved: tuple[Unresolved, ...] = (),
    *,
    failed: bool = False,
    confidence: float | None = None,
) -> Answer:
    """An answer without text; `failed` if the model returned nothing usable."""
    return Answer(
        question,
        "",
        (),
        tuple(hits),
        system,
        unresolved=unresolved,
        abstained=True,
        reason=reason,
        failed=failed,
        confidence=confidence,
        trace=trace,
    )


def stream_answer(generator: Generator, question: Question, hits: Sequence[Hit]) -> Iterator[Answer]:
    """Yield the generator's answer so far, if it can show one; last, the answer."""
    if isinstance(generator, Streaming):
        yield from generator.stream(question, hits)
    else:
        yield generator.generate(question, hits)


def map_answers(change: Callable[[Answer], Answer], answers: Iterable[Answer]) -> Iterator[Answer]:
    """Yield each answer so far as `change` returns it; one that has not grown (the same object) is changed once."""
    before: Answer | None = None
    for answer in answers:
        if answer is not before:
            before, latest = answer, change(answer)
        yield latest
