"""What a system is: it answers questions with citations, one or many, whole or sentence by sentence."""

import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from autoais.base.models.pace import Pace
from rag.answer.generator import Generator, Streaming, map_answers, stream_answer
from rag.answer.instructions import warn_of_instructions
from rag.base.errors import QuestionError, check_list, check_type
from rag.base.types import Answer, Hit, Question
from rag.retrieval import Retriever

if TYPE_CHECKING:
    from rag.answer.rounds import Rounds, Searches

In = TypeVar("In")
Out = TypeVar("Out")

_MAX_AHEAD = 4  # items for each that is worked on, while the first of them is not done


class System(ABC):
    """Answers questions. A subclass defines `name` and `respond`; callers use `ask`, `answer` and `stream`."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Identifies everything that can change an answer."""

    @property
    def streams(self) -> bool:
        """Whether `stream` yields the answer while it is written; if not, it yields only the answer."""
        return False

    @abstractmethod
    def respond(self, question: Question) -> Answer:
        """Answer one question; raises `QuestionError` if it cannot be searched."""

    def ask(self, question: str | Question) -> Answer:
        """Answer one question, which may be a plain string."""
        return self.respond(_as_question(question, 1))

    def answer(self, questions: Iterable[str | Question]) -> Iterator[Answer]:
        """Answer questions lazily, in order; abstains where a question cannot be searched.

        Raises `UsageError` for a string instead of a list.
        """
        check_list("questions", questions, "a list of strings or Questions")
        question_objects = (_as_question(question, number) for number, question in enumerate(questions, 1))
        return (answer_or_abstain(self, question) for question in question_objects)

    def stream(self, question: str | Question) -> Iterator[Answer]:
        """Yield the answer so far while it is written, if the system can (`streams`); last, the answer of `ask`.

        An answer so far has the sentences that are complete, with their citations; they stay as they are. One that has
        not grown may be yielded again, the same object, so that who reads can end the work.
        """
        yield self.ask(question)


def _as_question(question: str | Question, number: int) -> Question:
    if isinstance(question, Question):
        return question
    check_type("question", question, "a string or a Question (a system's method `answer` takes a list)", str)
    return Question(f"q{number}", question)


@dataclass(frozen=True, slots=True)
class RetrieveThenRead(System):
    """Searches with the question and reads the hits (retrieve-then-read, Bohnet et al. 2022).

    With `rounds`, a language model asks for further searches before the hits are read.
    """

    retriever: Retriever
    generator: Generator
    k: int
    rounds: "Rounds | None" = None
    _searching: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    @property
    def name(self) -> str:
        """Retriever, depth, rounds and generator."""
        names = (f"{self.retriever.name}@{self.k}", *([self.rounds.name] if self.rounds else []), self.generator.name)
        return "+".join(names)

    @property
    def streams(self) -> bool:
        """Whether the generator streams."""
        return isinstance(self.generator, Streaming)

    def respond(self, question: Question) -> Answer:
        """Search, then read."""
        hits, searches = self._search_all(question)
        return self._finish(self.generator.generate(question, hits), searches)

    def stream(self, question: str | Question) -> Iterator[Answer]:
        """Yield the generator's answer so far, if it can show one; last, the answer."""
        question_object = _as_question(question, 1)
        hits, searches = self._search_all(question_object)
        answers = stream_answer(self.generator, question_object, hits)
        return map_answers(lambda answer: self._finish(answer, searches), answers)

    def _finish(self, answer: Answer, searches: "Searches | None") -> Answer:
        trace = answer.trace if searches is None else searches.add_to(answer.trace)
        return warn_of_instructions(replace(answer, system=self.name, trace=trace))

    def _search_all(self, question: Question) -> tuple[list[Hit], "Searches | None"]:
        """The hits of all searches, and what became of those after the first."""
        hits = self._search(question.text)
        if self.rounds is None:
            return hits, None
        searches = self.rounds.search_further(question, hits, self._search)
        return searches.hits, searches

    def _search(self, query: str) -> list[Hit]:
        with self._searching:  # not every engine is thread-safe
            (hits,) = self.retriever.search([query], self.k)
        return hits


def answer_or_abstain(system: System, question: Question) -> Answer:
    """The system's answer; for a question that cannot be searched, an abstention with the reason."""
    try:
        return system.respond(question)
    except QuestionError as error:
        return Answer(question, "", (), (), system.name, abstained=True, reason=str(error))


@runtime_checkable
class BatchSystem(Protocol):
    """A system that answers several questions at once in its own way, such as on a cluster."""

    def answer_each(self, questions: Iterable[Question]) -> Iterator[tuple[Answer, float]]:
        """Yield the answer (`answer_or_abstain`) and the seconds it took for each question, in order."""
        ...


def answer_each(
    system: System, questions: Iterable[Question], concurrency: int | str | Pace = 1
) -> Iterator[tuple[Answer, float]]:
    """Yield the answer (`answer_or_abstain`) and the seconds it took for each question, in order.

    Several questions are answered at once as `map_in_order` does. A system that answers several at once (`BatchSystem`)
    does so instead.
    """
    if isinstance(system, BatchSystem):
        return system.answer_each(questions)
    return map_in_order(time_answers(system), questions, concurrency)


def time_answers(system: System) -> Callable[[Question], tuple[Answer, float]]:
    """A function that returns the answer to a question (`answer_or_abstain`), and the seconds it took."""

    def work(question: Question) -> tuple[Answer, float]:
        start_time = time.perf_counter()
        return answer_or_abstain(system, question), time.perf_counter() - start_time

    return work


def map_in_order(work: Callable[[In], Out], items: Iterable[In], concurrency: int | str | Pace = 1) -> Iterator[Out]:
    """Yield the result of each item in order; up to `concurrency` are worked on at once, in threads.

    `auto` lets the model server that the work asks decide (`Pace`); work that asks none is done one at a time. While
    an item is slow, later ones are worked on, up to four times as many as at once; a run that is stopped loses those.
    """
    pace = concurrency if isinstance(concurrency, Pace) else Pace(concurrency)

    def work_at_pace(item: In) -> Out:
        with pace.apply():
            return work(item)

    waiting: deque[Future[Out]] = deque()
    completions: SimpleQueue[None] = SimpleQueue()
    running = 0
    for item in items:
        if pace.at_once == 1 and not running:
            yield work_at_pace(item)  # in this thread, which Ctrl-C ends
            continue
        waiting.append(_start_thread(work_at_pace, item, completions))
        running += 1
        while running and (running >= pace.at_once or len(waiting) >= _MAX_AHEAD * pace.at_once):
            completions.get()
            running -= 1
            while waiting and waiting[0].done():
                yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _start_thread(work: Callable[[In], Out], item: In, completions: "SimpleQueue[None]") -> "Future[Out]":
    """Start the work in a daemon thread: at exit, Python would wait for the threads of a pool."""
    future: Future[Out] = Future()

    def run() -> None:
        try:
            future.set_result(work(item))
        except BaseException as error:  # noqa: BLE001  (raised by future.result())
            future.set_exception(error)
        completions.put(None)

    threading.Thread(target=run, daemon=True).start()
    return future
