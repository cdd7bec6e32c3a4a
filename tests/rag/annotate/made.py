"""Small items, and people who answer them."""

import uuid

from rag.annotate.items import Item, Source
from rag.annotate.study import Study
from rag.annotate.types import Entry, Work


class Clock:
    """A clock that people set."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def make_items(n: int, prefix: str = "q", answers: int = 1) -> list[Item]:
    """n items: answers to questions, so many to each."""
    return [
        Item(
            id=f"{prefix}{number // answers}/{number % answers}",
            text=f"The {prefix} {number} is blue.",
            answer=f"{prefix}{number // answers}/{number % answers}",
            query=f"What colour is {prefix} {number // answers}?",
            sources=(Source(f"p{number}", f"It is known that {prefix} {number} is blue.", "Colours"),),
            system="reader",
            group=f"{prefix}{number // answers}",
        )
        for number in range(n)
    ]


def press() -> str:
    return uuid.uuid4().hex


def given(study: Study, person: str) -> Work:
    """What the person is asked now; there has to be something."""
    work = study.next(person)
    assert work is not None
    return work


def answer(study: Study, person: str, work: Work, value: str) -> None:
    """Answer the question asked now."""
    study.verdict(person, work.item.id, Entry(work.question.name, value, press=work.press))


def finish(study: Study, person: str, *values: str) -> str | None:
    """Answer all questions about the person's item; return its text, or None if there is none."""
    work = study.next(person)
    if work is None:
        return None
    text, item = work.item.text, work.item.id
    for value in values or ("yes", "yes"):
        assert work is not None
        assert work.item.id == item
        answer(study, person, work, value)
        work = study.next(person)
        if work is None or work.item.id != item:
            break
    return text
