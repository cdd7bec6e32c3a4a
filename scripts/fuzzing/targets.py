"""Readers of files, questions and replies for the fuzzer, with checks of what they return."""

import json
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from autoais.base.errors import UserError
from rag.documents.converters.programs import find_program
from scripts.fuzzing import seeds


@dataclass(frozen=True)
class Case:
    """A broken input: the name and content of a file, an empty folder, and random numbers for other choices."""

    name: str
    data: bytes
    folder: Path
    rng: random.Random

    @property
    def file(self) -> Path:
        """The input as a file."""
        path = self.folder / self.name
        path.write_bytes(self.data)
        return path

    @property
    def text(self) -> str:
        """The input as a text; what is not UTF-8 becomes lone surrogates, as in JSON of a model server."""
        return self.data.decode("utf-8", "surrogateescape")


@dataclass(frozen=True)
class Target:
    """A reader of inputs, of which some are `valid`. `feed` may raise `UserError`, if it `refuses` any."""

    name: str
    valid: seeds.Seeds | Callable[[], seeds.Seeds]
    feed: Callable[[Case], None]
    refuses: bool = True

    @property
    def seeds(self) -> seeds.Seeds:
        """Its valid inputs."""
        return self.valid() if callable(self.valid) else self.valid


class InsaneError(Exception):
    """A reader returned what it should not."""


def _check(is_sane: object, fault: str) -> None:
    if not is_sane:
        raise InsaneError(fault)


def _check_utf8(*texts: str | None) -> None:
    for text in texts:
        with suppress(UnicodeEncodeError):
            (text or "").encode()
            continue
        raise InsaneError(f"a lone surrogate in {text!a:.100}")


# --- files -----------------------------------------------------------------------------------------------------------


def _read_corpus(case: Case) -> None:
    from autoais.base.errors import FormatError
    from autoais.formats.corpora import detect_corpus, read_passages

    detect_corpus(case.file)
    for _, passage in read_passages(case.file):
        if isinstance(passage, FormatError):
            _check("\n" not in str(passage), "an error of several lines")
        else:
            _check(passage.id.strip() and passage.text.strip(), "a passage without id or text")


def _ask_index(case: Case) -> None:
    """Index a broken corpus or document, search it and answer from it."""
    import rag

    index = rag.build_index(case.file, case.folder / "x.index", skip_bad=case.rng.random() < 0.7)
    _search(index)
    _check(rag.verify_index(case.folder / "x.index") == [], "a new index is damaged")
    answer = rag.ask(seeds.QUESTION, index, system="extractive")
    json.dumps(answer.to_cited().extra)


def _search(index: Any) -> None:  # noqa: ANN401  (an index)
    import rag

    for hit in rag.search("the mill in Arlen", index, k=5):
        _check_utf8(hit.passage.id, hit.passage.title, hit.passage.section, hit.passage.text)


def _read_document(case: Case) -> None:
    from rag.documents import load_document

    document = load_document(case.file, case.name)
    _check_utf8(document.title)
    _check(len({passage.id for passage in document.passages}) == len(document.passages), "an id occurs twice")
    for passage in document.passages:
        _check_utf8(passage.id, passage.title, passage.section, passage.text)
        _check(passage.text.strip(), "a passage without text")


def _read_with_pandoc(case: Case) -> None:
    from rag.documents import limits

    limits.SECONDS = 5  # of processor time, and twice as many of wall-clock time: less than a case has
    _read_document(case)


def _score_answers(case: Case) -> None:
    """Validate, read, score and convert a file; what is converted to our own format is read back the same."""
    import autoais
    from autoais import formats
    from autoais.base.io.jsonl import write_atomic

    for fault in formats.validate(case.file):
        _check("\n" not in str(fault), f"a fault of several lines: {fault}")
    name = formats.detect(case.file)
    if name == formats.SCORES:
        return
    if formats.get_format(name).labels:
        list(formats.read_labels(case.file))
    if not formats.get_format(name).read:
        return
    answers, copy = list(formats.read(case.file)), case.folder / "copy"
    for answer in answers:
        for sentence in answer.sentences:
            for citation in sentence.citations:
                if citation.start is not None and citation.end is not None and citation.passage in answer.passages:
                    text = answer.passages[citation.passage].text[citation.start : citation.end]
                    _check(citation.quote in (None, text), "a quote is not the text at its place")
    write_atomic(copy, formats.write(answers, "answers"))
    _check(list(formats.read(copy, "answers")) == answers, "another answer is read back than was written")
    other = case.rng.choice([key for key, row in formats.FORMATS.items() if row.write])
    write_atomic(copy, formats.write(answers, other))
    texts = case.folder / "texts.jsonl"  # of the passages that seeds cite by id alone
    texts.write_bytes(seeds.TEXTS)
    report = autoais.score(case.file, judge="lexical", metrics="alce,hagrid,liu,trec", corpus=[texts])
    json.dumps(report.to_dict(), allow_nan=False)


def _read_questions(case: Case) -> None:
    import autoais

    for question in autoais.read_questions(case.file):
        _check_utf8(question.id, question.text, *question.answers, *question.gold)
        _check(question.text.strip(), "an empty question")


def _evaluate_run(case: Case) -> None:
    import autoais

    if case.name == "judgements.jsonl":
        (case.folder / "b").write_bytes(dict(seeds.RUNS)[case.name])
        json.dumps(autoais.compare(case.file, case.folder / "b"), allow_nan=False)
        return
    other = "qrels.txt" if case.name == "run.trec" else "run.trec"
    (case.folder / "other").write_bytes(dict(seeds.RUNS)[other])
    run, qrels = (case.file, case.folder / "other") if case.name == "run.trec" else (case.folder / "other", case.file)
    json.dumps(autoais.evaluate_run(run, qrels, ["nDCG@10", "R@5", "RR"]).to_dict(), allow_nan=False)


def _read_ratings(case: Case) -> None:
    """Read ratings, report on them and convert them; what is written is read back the same."""
    import autoais
    from autoais.base.io.jsonl import write_atomic
    from autoais.formats.human_ratings.convert import convert_ratings
    from autoais.formats.human_ratings.ratings import write_ratings
    from autoais.formats.human_ratings.read import read_ratings

    ratings, copy = list(read_ratings(case.file)), case.folder / "copy"
    write_atomic(copy, write_ratings(ratings))
    _check(list(read_ratings(copy)) == ratings, "other ratings are read back than were written")
    json.dumps(autoais.agreement(ratings, experts=ratings, variant=ratings, by="system"), allow_nan=False)
    list(convert_ratings(ratings, "label-studio-config"))


# --- indexes and retrievers
# ---------------------------------------------------------------------------------------------


@cache
def _shelf() -> Path:
    """A small index, of documents in a folder, with the part of `static`; made once a worker."""
    import rag

    home = Path.cwd() / "shelf"
    (home / "docs").mkdir(parents=True)
    for number, (name, data) in enumerate(seeds.DOCUMENTS[:3]):
        (home / "docs" / f"{number}-{name}").write_bytes(data)
    rag.build_index(home / "docs", home / "x.index", retrievers=["static"])
    return home


@cache
def _index() -> Any:  # noqa: ANN401  (an index)
    import rag

    return rag.open_index(_shelf() / "x.index")


def _open_config(case: Case) -> None:
    import rag
    from rag.api import check_retrievers

    retriever = rag.open_retriever(str(case.file), _index())
    hits = retriever.search(["the mill in Arlen"], 5)[0]
    _check_utf8(retriever.name)
    _check(len(hits) <= 5 and all(hit.score == hit.score for hit in hits), "a score is not a number")
    check_retrievers([str(case.file)])


def _manifests() -> seeds.Seeds:
    home = _shelf() / "x.index"
    build = next(home.glob(".rag-build-*"))
    paths = {home / "manifest.json", *build.rglob("*.json*"), *build.glob("*")}
    return [(str(path.relative_to(home)), path.read_bytes()) for path in sorted(paths) if path.is_file()]


def _open_damage(case: Case) -> None:
    """Open, search, verify and update an index with a broken file."""
    import rag

    home = case.folder / "x.index"
    shutil.copytree(_shelf() / "x.index", home)
    (home / case.name).write_bytes(case.data)
    faults = rag.verify_index(home)
    _check(not any("\n" in fault for fault in faults), "a fault of several lines")
    index = rag.open_index(home)
    _search(index)
    with suppress(UserError):
        rag.open_retriever("static", index).search(["mill"], 3)
    rag.update_index(home)


# --- replies of models -----------------------------------------------------------------------------------------------


@cache
def _hits() -> Any:  # noqa: ANN401  (hits)
    import rag

    return tuple(rag.search("the mill and the canal of Arlen", _index(), k=3))


def _stream(generator: Any, question: Any) -> Any:  # noqa: ANN401  (a generator that streams, a question, its answer)
    """The answer of a generator, after a check that its stream grows to the same."""
    answer = generator.generate(question, _hits())
    *partials, last = generator.stream(question, _hits())
    _check(last == answer, "stream and answer differ")
    grows = all(last.sentences[: len(partial.sentences)] == partial.sentences for partial in partials)
    # Free text may be split otherwise when a quotation closes, or a loop shows.
    _check(grows or last.abstained or "pointers" not in last.trace, "a sentence changed while it was streamed")
    return answer


def _read_reply(case: Case) -> None:
    """Everything that reads a reply: cited answers, streams, labelled fields, follow-ups, rewritten sentences."""
    from autoais.judges.lexical import LexicalJudge
    from rag.answer.attribution.attributor import Attributor
    from rag.answer.attribution.revise import ModelRewriter, Reviser
    from rag.answer.attribution.titles import Titles
    from rag.answer.closed_book import ClosedBook
    from rag.answer.generators.cited import CitedGenerator
    from rag.answer.generators.follow_up import make_standalone
    from rag.answer.generators.passage_reader import PassageReader
    from rag.answer.generators.pointing import Point, Quote
    from rag.answer.llm_retriever import ModelAsRetriever
    from rag.answer.llms.prompts import Prompt
    from rag.base.types import Question, Turn
    from rag.retrieval import open_retriever
    from rag.testing import ScriptedModel

    reply, question, judge = case.text[:200_000], Question("1", seeds.QUESTION), LexicalJudge()
    piece = case.rng.choice((1, 3, 50)) if len(reply) < 9000 else 5000
    model = ScriptedModel(reply, context=case.rng.choice((700, 4096)), piece=piece)
    reader = PassageReader(min_confidence=0)
    generators = (
        CitedGenerator(model, Prompt.read(case.rng.choice(("hagrid.v1", "hagrid-few-shot.v1")))),
        Point(model, Prompt.read("point.v1"), reader),
        Quote(model, Prompt.read("quote.v1"), reader),
    )
    model_answers = [_stream(generator, question) for generator in generators]
    answer = model_answers[0]
    answers = (
        *model_answers,
        ClosedBook(model).ask(question),
        ModelAsRetriever(model, Titles(_index()), open_retriever("bm25", _index()), judge, 3).ask(question),
        Reviser(Attributor(judge), ModelRewriter(model)).revise(answer),
    )
    for answer in answers:
        _check_utf8(answer.text, str(answer), answer.short_answer, answer.reason)
        json.dumps(answer.to_cited().extra, allow_nan=False)
    _check_utf8(
        make_standalone("When was it built?", [Turn(seeds.QUESTION, "In 1802."), Turn("Who?", reply[:3000])], model)
    )


# --- questions -------------------------------------------------------------------------------------------------------


@cache
def _reader() -> Any:  # noqa: ANN401  (a system)
    import rag

    return rag.open_system("reader", _index())


def _ask_question(case: Case) -> None:
    """Search and answer a question, also as a follow-up."""
    import rag
    from autoais.base.io.jsonl import dumps
    from rag.answer.conversation import Conversation
    from rag.answer.generators.follow_up import make_standalone
    from rag.base.types import Turn

    text = case.text[:100_000]
    make_standalone(text, [Turn(seeds.QUESTION, seeds.MILL), Turn(text[:500], "Nora Finch.")])
    make_standalone("When was she born, and in 1990?", [Turn(text[:2000], text[:2000])])
    with suppress(rag.QuestionError):
        for hit in rag.search(text, _index(), k=4):
            _check(hit.score > 0, "a score is not positive")
    answer = Conversation(_reader(), [Turn(seeds.QUESTION, "In 1802.")]).ask(text)
    _check_utf8(answer.text, str(answer), answer.short_answer, answer.reason)
    _check(answer.abstained or answer.citations, "a sentence without a citation")
    dumps(answer.to_cited().extra)


def _read_items(case: Case) -> None:
    from rag.annotate.items import item_of, order_items, read_items, write_items

    items = list(read_items(case.file, flag_incomplete=case.rng.random() < 0.5))
    rows = [json.loads(line) for line in write_items(items)]
    copies = [item_of(row, "copy", flag_incomplete=True) for row in rows]
    _check(copies == items, "an item changes when it is written and read")
    _check(
        sorted(item.id for item in order_items(items, 1)) == sorted(item.id for item in items), "the order loses items"
    )


TARGETS = (
    Target("corpus", seeds.CORPORA, _read_corpus),
    Target("index", (*seeds.CORPORA, *seeds.DOCUMENTS), _ask_index),
    Target("documents", seeds.DOCUMENTS, _read_document),
    Target("archives", seeds.archives, _read_document),
    Target("pdf", seeds.PDFS, _read_document),
    *([Target("pandoc", seeds.FOR_PANDOC, _read_with_pandoc)] if find_program("pandoc") else []),
    Target("answers", seeds.ANSWERS, _score_answers),
    Target("question-files", seeds.QUESTIONS, _read_questions),
    Target("runs", seeds.RUNS, _evaluate_run),
    Target("ratings", seeds.RATINGS, _read_ratings),
    Target("items", seeds.ITEMS, _read_items),
    Target("retrievers", seeds.RETRIEVERS, _open_config),
    Target("manifests", _manifests, _open_damage),
    Target("replies", seeds.REPLIES, _read_reply, refuses=False),
    Target("questions", seeds.TURNS, _ask_question),
)
