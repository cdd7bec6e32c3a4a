"""Systems: named recipes of retriever and generator that turn questions into cited answers."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Protocol

from rag.errors import QuestionError, RagError
from rag.generators import Generator
from rag.index import Index
from rag.retrievers import Retriever, open_retriever
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


@dataclass(frozen=True, slots=True)
class Settings:
    """What a system is opened with: the index, what stands behind the colon of its name, and what the caller chose."""

    index: Index
    model: str
    retriever: Retriever
    k: int
    least: float | None = None  # confidence


@dataclass(frozen=True, slots=True)
class Kind:
    """A row of the table of systems; `recipe` and `k` hold unless the caller chooses, `needs` what must be there."""

    says: str
    needs: str
    recipe: str
    k: int
    make: Callable[[Settings], System]


def _extractive(settings: Settings) -> System:
    from rag.generators.extractive import Extractive

    if settings.least is not None:
        raise RagError("the extractive system has no confidence; --least goes with the reader")
    return RetrieveThenRead(settings.retriever, Extractive(), settings.k)


def _reader(settings: Settings) -> System:
    from rag.generators.reader import Spans

    return RetrieveThenRead(settings.retriever, Spans(least=settings.least), settings.k)


SYSTEMS: Mapping[str, Kind] = MappingProxyType(
    {
        "reader": Kind("a short answer, and the sentence that holds it", "nothing", "best", 10, _reader),
        "extractive": Kind("one to three sentences that say what was asked", "nothing", "bm25", 10, _extractive),
    }
)


def open_system(
    name: str, index: Index, *, k: int | None = None, recipe: str | None = None, least: float | None = None
) -> System:
    """The system of that name (`kind` or `kind:model`) over an index; `RagError` lists the names there are.

    It searches by its own recipe, reads its own number of hits and abstains below its own confidence unless told
    otherwise.
    """
    kind, _, model = name.partition(":")
    if kind not in SYSTEMS:
        raise RagError(f"no system called {kind!r}; there are: {', '.join(SYSTEMS)}")
    row = SYSTEMS[kind]
    retriever = open_retriever(recipe or row.recipe, index)
    return row.make(Settings(index, model, retriever, k or row.k, least))
