"""A system that is held, with its index, by the workers of an engine."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from autoais.base.engines import Engine
from rag.answer.options import Options
from rag.answer.system import System, time_answers
from rag.answer.systems import open_system
from rag.base.errors import RagError
from rag.base.types import Answer, Question
from rag.index.index import Index
from rag.index.open import open_index


@dataclass(frozen=True)
class OpenSystem:
    """Opens an index and a system in a worker, by the arguments of `open_index` and `open_system`.

    `checksum` and `expected` are the index's checksum and the system's name where the run was started.
    """

    folder: Path | None
    name: str
    options: Options
    k: int | None
    retriever: str | None
    checksum: str
    expected: str

    def __call__(self) -> Callable[[Question], tuple[Answer, float]]:
        """Return the function that answers; raises `RagError` for another index, model, or version of them."""
        index = open_index(self.folder)
        check_index(index, self.checksum)
        system = open_system(self.name, index, self.options, k=self.k, retriever=self.retriever)
        check_system(system, self.expected)
        return time_answers(system)


def check_index(index: Index, checksum: str) -> None:
    """Raise `RagError` unless the index has the passages of the one where the run was started."""
    if index.manifest["checksum"] != checksum:
        raise RagError(
            f"index {index.name!r} has other passages ({index.manifest['checksum'][:12]}...) than where the run was "
            f"started ({checksum[:12]}...); copy that index"
        )


def check_system(system: System, expected: str) -> None:
    """Raise `RagError` unless the system is the one where the run was started."""
    if system.name != expected:
        raise RagError(f"the system is {system.name} here, {expected} where the run was started; put the same on both")


class EngineSystem(System):
    """Answers with the workers of an engine; the answers are those of the system that `make` opens."""

    def __init__(self, make: OpenSystem, engine: Engine) -> None:
        self._make, self._engine = make, engine

    @property
    def name(self) -> str:
        """The name of the system."""
        return self._make.expected

    def respond(self, question: Question) -> Answer:
        """Answer one question; one that cannot be searched is abstained from."""
        ((answer, _),) = self.answer_each([question])
        return answer

    def answer_each(self, questions: Iterable[Question]) -> Iterator[tuple[Answer, float]]:
        """Yield the answer and the seconds it took for each question, in order."""
        return self._engine.map(self._make, questions)
