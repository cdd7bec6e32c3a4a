"""Systems: named recipes of retriever and generator that turn questions into cited answers."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from rag.errors import QuestionError, RagError
from rag.generators import Generator
from rag.generators.extractive import Extractive
from rag.index import Index
from rag.retrievers import Retriever
from rag.types import Answer, Question


class System(Protocol):
    """Anything that answers questions."""

    @property
    def name(self) -> str:
        """Says all that changes an answer."""
        ...

    def answer(self, questions: Iterable[Question]) -> Iterator[Answer]:
        """One answer a question, in order, streaming; `QuestionError` for one that cannot be asked."""
        ...


@dataclass(frozen=True, slots=True)
class RetrieveThenRead:
    """Search with the question, read what was found (RTR of Bohnet et al. 2022)."""

    retriever: Retriever
    generator: Generator
    k: int

    @property
    def name(self) -> str:
        """Retriever, depth and generator."""
        return f"{self.retriever.name}@{self.k}+{self.generator.name}"

    def answer(self, questions: Iterable[Question]) -> Iterator[Answer]:
        """Search and read one question at a time."""
        for question in questions:
            (hits,) = self.retriever.search([question.text], self.k)
            yield replace(self.generator.generate(question, hits), system=self.name)


def answer_or_abstain(system: System, question: Question) -> Answer:
    """The system's answer, or, so that a run goes on, an abstention with the reason it cannot be searched for."""
    try:
        return next(iter(system.answer([question])))
    except QuestionError as error:
        return Answer(question, "", (), (), system.name, abstained=True, reason=str(error))


SYSTEMS: dict[str, Callable[[Index, int], System]] = {
    "extractive": lambda index, k: RetrieveThenRead(index.bm25, Extractive(), k),
}


def open_system(name: str, index: Index, k: int) -> System:
    """The system of that name over an index; `RagError` lists the names there are."""
    try:
        return SYSTEMS[name](index, k)
    except KeyError:
        raise RagError(f"no system called {name!r}; there are: {', '.join(sorted(SYSTEMS))}") from None
