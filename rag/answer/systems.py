"""The table of systems by name, their options, and opening one over an index."""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autoais.base.errors import first_line
from autoais.base.registry import Registry
from rag.answer.generator import Generator
from rag.answer.options import Options, check_values
from rag.answer.system import RetrieveThenRead, System
from rag.base.errors import RagError, UserError, check_type
from rag.base.import_paths import import_object, is_import_path
from rag.index.index import Index
from rag.retrieval import Retriever, open_retriever

if TYPE_CHECKING:
    from rag.answer.llms import LanguageModel
    from rag.answer.rounds import Rounds


@dataclass(frozen=True, slots=True)
class Settings:
    """The arguments to open a system: the index, the model (the name after the colon), and the caller's choices."""

    index: Index
    model: str
    retriever: Retriever
    k: int
    options: Options


POINTING = ("point", "quote")
"""The values of the option `answer` with which a language model points at numbered sources."""

POINTING_DEFAULTS = ("default", 16)
"""What a language model that points searches with: the reader chooses among these hits, as in the system `reader`."""


@dataclass(frozen=True, slots=True)
class SystemKind:
    """An entry of `SYSTEMS`.

    `retriever` and `k` are the defaults, `requires` names what the system needs, and `options` the fields of `Options`
    that it supports. `searches_question` is false for a system that searches with other queries, or not at all.
    `points` is true for a language model that can point at numbered sources (the option `answer`). `max_k` is how many
    of the passages retrieved an answer comes from at most; None if it comes from all.
    """

    description: str
    requires: str
    retriever: str
    k: int
    open: Callable[[Settings], System]
    options: frozenset[str] = frozenset()
    searches_question: bool = True
    points: bool = False
    max_k: int | None = None

    def search_defaults(self, options: Options) -> tuple[str, int]:
        """The retriever and k that the system searches with by default."""
        return POINTING_DEFAULTS if self.points and options.answer in POINTING else (self.retriever, self.k)


def _open_extractive(settings: Settings) -> System:
    from rag.answer.generators.extractive import Extractive

    return RetrieveThenRead(settings.retriever, Extractive(), settings.k)


def _passages_read(k: int) -> int:
    """How many passages the reader reads at most: all of k, and as many as by default of those of several searches."""
    return max(k, POINTING_DEFAULTS[1])


def _open_first_passage(settings: Settings) -> System:
    from rag.answer.generators.first_passage import FirstPassage

    return RetrieveThenRead(settings.retriever, FirstPassage(), settings.k)


def _open_reader(settings: Settings) -> System:
    from autoais.base.io.paths import user_path
    from rag.answer.generators.passage_reader import PassageReader
    from rag.retrieval.reader import Reader

    reader = Reader(user_path(settings.model)) if settings.model else None
    generator = PassageReader(
        reader, passages=_passages_read(settings.k), min_confidence=settings.options.min_confidence
    )
    return RetrieveThenRead(settings.retriever, generator, settings.k)


def _llm_opener(kind: str) -> Callable[[Settings], System]:
    def make(settings: Settings) -> System:
        model = _open_model(f"{kind}:{settings.model}", settings.options)
        write = _pointing_generator if settings.options.answer in POINTING else _free_generator
        generator = _revise(_checked(write(model, settings), settings.options), settings.options)
        return RetrieveThenRead(settings.retriever, generator, settings.k, _rounds(model, settings.options))

    return make


def _rounds(model: "LanguageModel", options: Options) -> "Rounds | None":
    """What the option `rounds` asks for; None for the one search that every question has."""
    if options.rounds is None or options.rounds == 1:
        return None
    from rag.answer.generators.passage_reader import PassageReader
    from rag.answer.rounds import Rounds

    return Rounds(model, PassageReader(), rounds=options.rounds, words=_word_limit(model, options))


def _word_limit(model: "LanguageModel", options: Options) -> int:
    """The words of sources that a model is shown: by default, as many for each round."""
    from rag.answer.generators.pointing import LOCAL_WORDS, SERVER_WORDS

    default = SERVER_WORDS if model.name.startswith("openai:") else LOCAL_WORDS
    return options.words or default * (options.rounds or 1)


def _revise(generator: Generator, options: Options) -> Generator:
    """The generator with what the option `revise` asks for, if anything."""
    if options.revise is None:
        return generator
    from autoais.judges.minilm import default_judge
    from rag.answer.attribution.attributor import Attributor
    from rag.answer.attribution.revise import RevisedGenerator, open_reviser

    return RevisedGenerator(generator, open_reviser(options.revise, Attributor(default_judge())))


def _open_anthropic(settings: Settings) -> System:
    from rag.answer.generators.anthropic_citations import AnthropicCitations
    from rag.answer.generators.passage_reader import PassageReader
    from rag.answer.llms.anthropic import MessagesClient

    if not settings.model:
        raise RagError("system 'anthropic' needs a model: anthropic:<model>")
    reader = PassageReader(passages=_passages_read(settings.k), min_confidence=settings.options.min_confidence)
    answers = AnthropicCitations(MessagesClient(settings.model), reader)
    generator = _revise(_checked(answers, settings.options), settings.options)
    return RetrieveThenRead(settings.retriever, generator, settings.k)


def _free_generator(model: "LanguageModel", settings: Settings) -> Generator:
    from rag.answer.generators.cited import CitedGenerator
    from rag.answer.llms.prompts import Prompt

    options = settings.options
    if options.min_confidence is not None:
        raise RagError("min_confidence needs answer 'point' or 'quote': free text of a model has no confidence")
    if options.words is not None:
        raise RagError("words needs answer 'point' or 'quote': free text is written from whole passages (option k)")
    prompt = Prompt.read(options.prompt or DEFAULT_PROMPT)
    return CitedGenerator(model, prompt)


def _checked(generator: Generator, options: Options) -> Generator:
    """The generator with its citations repaired or its sentences checked; one that only quotes stays as it is."""
    from autoais.judges.minilm import default_judge
    from rag.answer.attribution.check import CheckedGenerator
    from rag.answer.attribution.repair import RepairedGenerator

    if options.answer == "quote":
        if options.repair:
            raise RagError("repair needs answer 'free' or 'point': quotes support themselves")
        return generator
    return (RepairedGenerator if options.repair else CheckedGenerator)(generator, default_judge())


def _pointing_generator(model: "LanguageModel", settings: Settings) -> Generator:
    from rag.answer.generators.passage_reader import PassageReader
    from rag.answer.generators.pointing import Point, Quote
    from rag.answer.llms.prompts import Prompt

    options = settings.options
    reader = PassageReader(passages=_passages_read(settings.k), min_confidence=options.min_confidence)
    generator = {"point": Point, "quote": Quote}[options.answer or ""]
    prompt = Prompt.read(options.prompt or f"{options.answer}.v1")
    return generator(model, prompt, reader, words=_word_limit(model, options))


# A prompt that allows refusals makes small models refuse: Qwen2.5-Coder 1.5B refused 18 of 25 questions with
# `hagrid-few-shot.v1`, and none of 100 with this prompt (eval/results/open-nq-pool/repair*.json).
DEFAULT_PROMPT = "hagrid.v1"
_MODEL_OPTIONS = frozenset({"context", "temperature", "seed"})


def _language_model_kind(kind: str, requires: str) -> SystemKind:
    description = "an answer by a language model, with every sentence checked"
    options = _MODEL_OPTIONS | {"answer", "min_confidence", "prompt", "repair", "revise", "rounds", "words"}
    return SystemKind(description, requires, "default-llm", 5, _llm_opener(kind), options, points=True)


def _open_closed_book(settings: Settings) -> System:
    from rag.answer.closed_book import ClosedBook

    return ClosedBook(_require_model(settings, "closed-book"))


def _open_post_hoc(settings: Settings) -> System:
    from autoais.judges.minilm import default_judge
    from rag.answer.attribution.post_hoc import AnswerThenAttribute, PostHoc
    from rag.answer.closed_book import ClosedBook

    model = _require_model(settings, "post-hoc")
    return AnswerThenAttribute(ClosedBook(model), PostHoc(settings.retriever, default_judge(), settings.k))


def _open_llm_retriever(settings: Settings) -> System:
    from autoais.judges.minilm import default_judge
    from rag.answer.attribution.titles import Titles
    from rag.answer.llm_retriever import ModelAsRetriever

    model, titles = _require_model(settings, "llm-retriever"), Titles(settings.index)
    return ModelAsRetriever(model, titles, settings.retriever, default_judge(), settings.k)


def _require_model(settings: Settings, system: str) -> "LanguageModel":
    if not settings.model:
        raise RagError(f"system {system!r} needs a language model: {system}:gguf:<file>, {system}:openai:<model>")
    return _open_model(settings.model, settings.options)


def _open_model(name: str, options: Options) -> "LanguageModel":
    from rag.answer.llms import open_model

    model_options = {key: value for key, value in options.non_defaults().items() if key in _MODEL_OPTIONS}
    return open_model(name, **model_options)


_NO_REQUIREMENT = "nothing"  # what a system needs that takes no model

SYSTEMS: Registry[SystemKind] = Registry(
    "rag.systems",
    "system",
    {
        "reader": SystemKind(
            "the sentences, steps or code that answer, chosen by a small network",
            "nothing; reader:<folder> is your own",
            "default",
            16,
            _open_reader,
            frozenset({"min_confidence"}),
        ),
        "extractive": SystemKind(
            "the one to three sentences that answer best", _NO_REQUIREMENT, "bm25", 10, _open_extractive, max_k=10
        ),
        "first-passage": SystemKind(
            "the first passage, whole: a baseline", _NO_REQUIREMENT, "bm25", 1, _open_first_passage, max_k=1
        ),
        "openai": _language_model_kind("openai", "openai:<model>, a server (OPENAI_BASE_URL)"),
        "anthropic": SystemKind(
            "an answer by Claude, which points at the sentences that it used",
            "anthropic:<model>, the extra anthropic, a key (ANTHROPIC_API_KEY)",
            *POINTING_DEFAULTS,
            _open_anthropic,
            frozenset({"min_confidence", "repair", "revise"}),
        ),
        "gguf": _language_model_kind("gguf", "gguf:<file>, the extra gguf"),
        "hf": _language_model_kind("hf", "hf:<name or folder>, the extra models"),
        "closed-book": SystemKind(
            "what a model remembers, without sources",
            "closed-book:<model>",
            "bm25",
            0,
            _open_closed_book,
            _MODEL_OPTIONS,
            searches_question=False,
        ),
        "post-hoc": SystemKind(
            "what a model remembers, then sources searched for it",
            "post-hoc:<model>",
            "bm25",
            10,
            _open_post_hoc,
            _MODEL_OPTIONS,
            searches_question=False,
        ),
        "llm-retriever": SystemKind(
            "what a model remembers, citing the page that it names",
            "llm-retriever:<model>",
            "bm25",
            10,
            _open_llm_retriever,
            _MODEL_OPTIONS,
            searches_question=False,
        ),
    },
    RagError,
)

# Generators of other packages, used as systems; an entry is called with the part of the name after the colon.
GENERATORS: Registry[Callable[[str], Generator]] = Registry("rag.generators", "generator", {}, RagError)
_GENERATOR_RETRIEVER, _GENERATOR_K = "default-llm", 10


def system_kind(name: str) -> SystemKind:
    """The entry of a system, of a language model that answers with citations, or of a generator; else `RagError`.

    What follows a colon counts only for a class of one's own, `package.module:Class`: its module is imported.
    """
    from rag.answer.llms import LANGUAGE_MODELS

    kind = name.partition(":")[0]
    if kind in SYSTEMS:
        return SYSTEMS[kind]
    if kind in LANGUAGE_MODELS:
        return _language_model_kind(kind, f"{kind}:<model>")
    if is_user_class(name):
        return _user_kind(name)
    if kind not in GENERATORS:
        names = ", ".join(list_systems())
        raise RagError(f"no system called {kind!r}; there are: {names}, and your own package.module:Class")
    make = GENERATORS[kind]
    description = next(iter((make.__doc__ or "").strip().splitlines()), "")
    return SystemKind(
        description.rstrip("."),
        "an installed package",
        _GENERATOR_RETRIEVER,
        _GENERATOR_K,
        lambda settings: RetrieveThenRead(settings.retriever, make(settings.model), settings.k),
    )


def is_user_class(name: str) -> bool:
    """Whether a name is that of a class of one's own, `package.module:Class`, whose code would run."""
    from rag.answer.llms import LANGUAGE_MODELS

    kind = name.partition(":")[0]
    return is_import_path(name) and not any(kind in registry for registry in (SYSTEMS, LANGUAGE_MODELS, GENERATORS))


def _user_kind(name: str) -> SystemKind:
    target = import_object("system", name)
    if not (callable(target) or isinstance(target, System)):
        raise RagError(f"system {name!r} should be a subclass of rag.System, found {type(target).__name__}")

    def make(settings: Settings) -> System:
        try:
            system = target if isinstance(target, System) else _call_factory(target, settings)
            check_type(f"system {name!r}", system, "a rag.System", System)
            check_type(f"system {name!r}: its name", system.name, "a line of text", str)
        except UserError:
            raise
        except Exception as error:  # somebody else's code may raise anything
            raise RagError(f"system {name!r} cannot be opened: {type(error).__name__}: {first_line(error)}") from error
        return system

    return SystemKind("a system of your own", "your own code", _GENERATOR_RETRIEVER, _GENERATOR_K, make)


def _call_factory(make: Callable[..., Any], settings: Settings) -> System:
    """What a class or function returns: called with the settings, or with nothing if it takes nothing."""
    system: System = make(settings) if signature(make).parameters else make()
    return system


def check_options(name: str, options: Options) -> SystemKind:
    """The entry of a system by its whole name; raises `RagError` if there is none, or it does not take the options."""
    row = system_kind(name)
    kind, _, model = name.partition(":")
    if model and row.requires == _NO_REQUIREMENT:
        raise RagError(f"system {kind!r} takes no model, found {model!r}")
    if unknown := sorted(options.non_defaults().keys() - row.options):
        supporting = [other for other, row_of_other in SYSTEMS.items() if unknown[0] in row_of_other.options]
        label = name if is_user_class(name) else kind
        raise RagError(f"system {label!r} has no option {unknown[0]!r}; systems that have it: {', '.join(supporting)}")
    return row


def list_systems() -> dict[str, SystemKind]:
    """All systems by name, including those of installed packages."""
    from rag.answer.llms import LANGUAGE_MODELS

    return {name: system_kind(name) for name in dict.fromkeys([*SYSTEMS, *LANGUAGE_MODELS, *GENERATORS])}


def open_system(
    name: str,
    index: Index,
    options: Options | None = None,
    *,
    k: int | None = None,
    retriever: str | Path | Retriever | None = None,
) -> System:
    """Open a system by name (`kind`, `kind:model`, or `package.module:Class`) over an index.

    A class of one's own is called with the `Settings`, or with nothing if it takes nothing; a function may return the
    system, too. Its module is imported, which runs its code: do not pass a name that comes from somebody else.

    `retriever` is a name, a .toml file or an open retriever; it and `k` default to the system's own. Raises `RagError`
    for an unknown name or an unsupported option.
    """
    check_type("system", name, "a name such as 'reader'", str)
    options = options or Options()
    row, model = check_options(name, options), name.partition(":")[2]
    check_values(options)
    if options.repair is not None:
        check_type("repair", options.repair, "True or False", bool)
    if k is not None:
        check_type("k", k, "an int", Integral)
        if k < 1:
            raise RagError(f"k must be at least 1, not {k}")
        if not row.k:
            raise RagError(f"system {name!r} searches nothing, so k changes nothing; leave it out")
    default_retriever, default_k = row.search_defaults(options)
    if not isinstance(retriever, Retriever):
        retriever = open_retriever(default_retriever if retriever is None else str(retriever), index)
    return row.open(Settings(index, model, retriever, default_k if k is None else k, options))
