"""Systems: named recipes of retriever and generator that turn questions into cited answers."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from rag.citations import render
from rag.errors import QuestionError, RagError
from rag.generators import Generator, Streaming
from rag.index.index import Index
from rag.retrievers import Retriever, open_retriever
from rag.types import Answer, Hit, Question

if TYPE_CHECKING:
    from rag.llms import LanguageModel


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
    _searching: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    @property
    def name(self) -> str:
        """Retriever, depth and generator."""
        return f"{self.retriever.name}@{self.k}+{self.generator.name}"

    def answer(self, questions: Iterable[Question]) -> Iterator[Answer]:
        """Search and read one question at a time."""
        for question in questions:
            yield replace(self.generator.generate(question, self._hits(question)), system=self.name)

    def stream(self, question: Question) -> Iterator[str | Answer]:
        """The text in pieces as it is written, or at once where the generator cannot stream; then the answer."""
        hits = self._hits(question)
        if not isinstance(self.generator, Streaming):
            answer = replace(self.generator.generate(question, hits), system=self.name)
            yield from (render(answer), answer)
            return
        for piece in self.generator.stream(question, hits):
            yield replace(piece, system=self.name) if isinstance(piece, Answer) else piece

    def _hits(self, question: Question) -> list[Hit]:
        with self._searching:  # not every engine may be asked from several threads at once
            (hits,) = self.retriever.search([question.text], self.k)
        return hits


def answer_or_abstain(system: System, question: Question) -> Answer:
    """The system's answer, or, so that a run goes on, an abstention with the reason it cannot be searched for."""
    try:
        return next(iter(system.answer([question])))
    except QuestionError as error:
        return Answer(question, "", (), (), system.name, abstained=True, reason=str(error))


def stream_answer(system: System, question: Question) -> Iterator[str | Answer]:
    """The system's text in pieces as it is written, then its answer; all at once where the system cannot stream."""
    if isinstance(system, RetrieveThenRead):
        yield from system.stream(question)
    else:
        answer = next(iter(system.answer([question])))
        yield from (render(answer), answer)


def answer_each(system: System, questions: Iterable[Question], concurrency: int = 1) -> Iterator[tuple[Answer, float]]:
    """`answer_or_abstain` and the seconds it took for each question, in order, up to `concurrency` at once.

    With more than one, a question is begun before the answers of those before it are there: what is lost when the
    run is stopped is at most `concurrency` answers.
    """

    def timed(question: Question) -> tuple[Answer, float]:
        started = time.perf_counter()
        return answer_or_abstain(system, question), time.perf_counter() - started

    if concurrency == 1:
        yield from map(timed, questions)
        return
    waiting: deque[Future[tuple[Answer, float]]] = deque()
    for question in questions:
        if len(waiting) == concurrency:
            yield waiting.popleft().result()
        waiting.append(_begun(timed, question))
    while waiting:
        yield waiting.popleft().result()


def _begun(work: Callable[[Question], tuple[Answer, float]], question: Question) -> "Future[tuple[Answer, float]]":
    """The work in a thread of its own, for which a program that is stopped does not wait, as it would for a pool's."""
    future: Future[tuple[Answer, float]] = Future()

    def run() -> None:
        try:
            future.set_result(work(question))
        except BaseException as error:  # noqa: BLE001  (raised where the result is asked for)
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


@dataclass(frozen=True, slots=True)
class Options:
    """What a caller may choose of a system beside retriever and k; None leaves it to the system.

    `least`: the confidence below which it abstains. `prompt`: a name or file (`Prompt.read`). `context` (tokens),
    `temperature` and `seed`: of its language model.
    """

    least: float | None = None
    prompt: str | None = None
    context: int | None = None
    temperature: float | None = None
    seed: int | None = None

    def chosen(self) -> dict[str, Any]:
        """Those that are not None."""
        return {each.name: value for each in fields(self) if (value := getattr(self, each.name)) is not None}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a system is opened with: the index, what stands behind the colon of its name, and what the caller chose."""

    index: Index
    model: str
    retriever: Retriever
    k: int
    options: Options


@dataclass(frozen=True, slots=True)
class Kind:
    """A row of the table of systems; `recipe` and `k` hold unless the caller chooses, `needs` what must be there.

    `takes` says which `Options` mean something to it.
    """

    says: str
    needs: str
    recipe: str
    k: int
    make: Callable[[Settings], System]
    takes: frozenset[str] = frozenset()


def _extractive(settings: Settings) -> System:
    from rag.generators.extractive import Extractive

    return RetrieveThenRead(settings.retriever, Extractive(), settings.k)


def _reader(settings: Settings) -> System:
    from rag.generators.span_reader import Spans

    return RetrieveThenRead(settings.retriever, Spans(least=settings.options.least), settings.k)


def _cited(kind: str) -> Callable[[Settings], System]:
    def make(settings: Settings) -> System:
        from autoais.judges.minilm import shipped
        from rag.attribution.repair import Repaired
        from rag.generators.cited import Cited
        from rag.llms.prompts import Prompt

        prompt = Prompt.read(settings.options.prompt or DEFAULT_PROMPT)
        model = _opened(f"{kind}:{settings.model}", settings.options)
        return RetrieveThenRead(settings.retriever, Repaired(Cited(model, prompt), shipped()), settings.k)

    return make


# Told that it may refuse, a small model does: Qwen2.5-Coder 1.5B refused 36 of 50 questions with `hagrid-few-shot.v1`,
# and none of 25 of them with this one (eval/results/open-nq-pool/repair*.json).
DEFAULT_PROMPT = "hagrid.v1"
_MODEL = "what a language model writes, every citation checked"
_MEMORY = frozenset({"context", "temperature", "seed"})
_PROMPTED = _MEMORY | {"prompt"}


def _closed_book(settings: Settings) -> System:
    from rag.generators.closed_book import ClosedBook

    return ClosedBook(_model(settings, "closed-book"))


def _post_hoc(settings: Settings) -> System:
    from autoais.judges.minilm import shipped
    from rag.attribution.post_hoc import AnswerThenAttribute, PostHoc
    from rag.generators.closed_book import ClosedBook

    model = _model(settings, "post-hoc")
    return AnswerThenAttribute(ClosedBook(model), PostHoc(settings.retriever, shipped(), settings.k))


def _llm_retriever(settings: Settings) -> System:
    from autoais.judges.minilm import shipped
    from rag.attribution.titles import Titles
    from rag.generators.llm_retriever import ModelAsRetriever

    model, titles = _model(settings, "llm-retriever"), Titles(settings.index)
    return ModelAsRetriever(model, titles, settings.retriever, shipped(), settings.k)


def _model(settings: Settings, system: str) -> "LanguageModel":
    if not settings.model:
        raise RagError(f"system {system!r} needs a language model: {system}:gguf:<file>, {system}:openai:<model>")
    return _opened(settings.model, settings.options)


def _opened(name: str, options: Options) -> "LanguageModel":
    from rag.llms import open_model

    given = {key: value for key, value in options.chosen().items() if key in _MEMORY}
    return open_model(name, **given)


SYSTEMS: Mapping[str, Kind] = MappingProxyType(
    {
        "reader": Kind(
            "a short answer, and the sentence that holds it", "nothing", "reranked", 10, _reader, frozenset({"least"})
        ),
        "extractive": Kind("one to three sentences that say what was asked", "nothing", "bm25", 10, _extractive),
        "openai": Kind(
            _MODEL, "openai:<model>, a server (OPENAI_BASE_URL)", "reranked", 5, _cited("openai"), _PROMPTED
        ),
        "gguf": Kind(_MODEL, "gguf:<file>, the extra gguf", "reranked", 5, _cited("gguf"), _PROMPTED),
        "hf": Kind(_MODEL, "hf:<name or folder>, the extra models", "reranked", 5, _cited("hf"), _PROMPTED),
        "closed-book": Kind(
            "a model's memory, without sources", "closed-book:<model>", "bm25", 0, _closed_book, _MEMORY
        ),
        "post-hoc": Kind(
            "the same, its sources searched for afterwards", "post-hoc:<model>", "bm25", 10, _post_hoc, _MEMORY
        ),
        "llm-retriever": Kind(
            "the same, with the page that the model names", "llm-retriever:<model>", "bm25", 10, _llm_retriever, _MEMORY
        ),
    }
)


def open_system(
    name: str, index: Index, options: Options | None = None, *, k: int | None = None, recipe: str | None = None
) -> System:
    """The system of that name (`kind` or `kind:model`) over an index; `RagError` lists the names there are.

    It searches by its own recipe and reads its own number of hits unless told otherwise.
    """
    kind, _, model = name.partition(":")
    if kind not in SYSTEMS:
        raise RagError(f"no system called {kind!r}; there are: {', '.join(SYSTEMS)}")
    row, options = SYSTEMS[kind], options or Options()
    if unknown := sorted(options.chosen().keys() - row.takes):
        others = [name for name, other in SYSTEMS.items() if unknown[0] in other.takes]
        raise RagError(f"system {kind!r} takes no {unknown[0]}; that is for {', '.join(others)}")
    retriever = open_retriever(recipe or row.recipe, index)
    return row.make(Settings(index, model, retriever, k or row.k, options))
