"""What is fed with broken inputs, and the checks that what comes back is sane."""

import json
import os
import random
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from autoais.base.errors import UserError
from autoais.base.types import Attribution
from scripts.fuzzing import seeds
from scripts.fuzzing.mutate import TOKENS, mutated_text


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
    """Something that reads inputs, of which some are `valid`. `feed` may raise `UserError`, if it `refuses` any."""

    name: str
    valid: seeds.Seeds | Callable[[], seeds.Seeds]
    feed: Callable[[Case], None]
    refuses: bool = True

    @property
    def seeds(self) -> seeds.Seeds:
        """Its valid inputs."""
        return self.valid() if callable(self.valid) else self.valid


class InsaneError(Exception):
    """What was returned is not what it should be."""


def _sane(good: object, what: str) -> None:
    if not good:
        raise InsaneError(what)


def _utf8(*texts: str | None) -> None:
    for text in texts:
        with suppress(UnicodeEncodeError):
            (text or "").encode()
            continue
        raise InsaneError(f"a lone surrogate in {text!a:.100}")


# --- files -----------------------------------------------------------------------------------------------------------


def _corpus(case: Case) -> None:
    from autoais.base.errors import FormatError
    from autoais.formats.corpora import detect_corpus, read_passages

    detect_corpus(case.file)
    for _, passage in read_passages(case.file):
        if isinstance(passage, FormatError):
            _sane("\n" not in str(passage), "an error of several lines")
        else:
            _sane(passage.id.strip() and passage.text.strip(), "a passage without id or text")


def _indexed(case: Case) -> None:
    """Index a broken corpus or document, search it and answer from it."""
    import rag

    index = rag.build_index(case.file, case.folder / "x.index", skip_bad=case.rng.random() < 0.7)
    _search(index)
    _sane(rag.verify_index(case.folder / "x.index") == [], "a new index is damaged")
    answer = rag.ask(seeds.QUESTION, index, system="extractive")
    json.dumps(answer.to_cited().extra)


def _search(index: Any) -> None:  # noqa: ANN401  (an index)
    import rag

    for hit in rag.search("the mill in Arlen", index, k=5):
        _utf8(hit.passage.id, hit.passage.title, hit.passage.section, hit.passage.text)


def _document(case: Case) -> None:
    from rag.documents import load_document

    document = load_document(case.file, case.name)
    _utf8(document.title)
    _sane(len({passage.id for passage in document.passages}) == len(document.passages), "an id occurs twice")
    for passage in document.passages:
        _utf8(passage.id, passage.title, passage.section, passage.text)
        _sane(passage.text.strip(), "a passage without text")


def _answers(case: Case) -> None:
    """Validate, read, score and convert a file; what is converted to our own format is read back the same."""
    import autoais
    from autoais import formats
    from autoais.base.io.jsonl import write_atomic

    for fault in formats.validate(case.file):
        _sane("\n" not in str(fault), f"a fault of several lines: {fault}")
    name = formats.detect(case.file)
    if name == formats.SCORES:
        return
    if formats.by_name(name).labels:
        list(formats.read_labels(case.file))
    if not formats.by_name(name).read:
        return
    answers, own = list(formats.read(case.file)), case.folder / "own"
    for answer in answers:
        for sentence in answer.sentences:
            for citation in sentence.citations:
                if citation.start is not None and citation.end is not None and citation.passage in answer.passages:
                    there = answer.passages[citation.passage].text[citation.start : citation.end]
                    _sane(citation.quote in (None, there), "a quote is not the text at its place")
    write_atomic(own, formats.write(answers, "answers"))
    _sane(list(formats.read(own, "answers")) == answers, "another answer is read back than was written")
    other = case.rng.choice([key for key, one in formats.FORMATS.items() if one.write])
    write_atomic(own, formats.write(answers, other))
    texts = case.folder / "texts.jsonl"  # of the passages that seeds cite by id alone
    texts.write_bytes(seeds.TEXTS)
    report = autoais.score(case.file, judge="lexical", metrics="alce,hagrid,liu,trec", corpus=[texts])
    json.dumps(report.to_dict(), allow_nan=False)


def _asked(case: Case) -> None:
    import autoais

    for question in autoais.read_questions(case.file):
        _utf8(question.id, question.text, *question.answers, *question.gold)
        _sane(question.text.strip(), "an empty question")


def _runs(case: Case) -> None:
    import autoais

    if case.name == "judgements.jsonl":
        (case.folder / "b").write_bytes(dict(seeds.RUNS)[case.name])
        json.dumps(autoais.compare(case.file, case.folder / "b"), allow_nan=False)
        return
    other = "qrels.txt" if case.name == "run.trec" else "run.trec"
    (case.folder / "other").write_bytes(dict(seeds.RUNS)[other])
    run, qrels = (case.file, case.folder / "other") if case.name == "run.trec" else (case.folder / "other", case.file)
    json.dumps(autoais.evaluate_run(run, qrels, ["nDCG@10", "R@5", "RR"]).to_dict(), allow_nan=False)


def _ratings(case: Case) -> None:
    """Read ratings, report on them and convert them; what is written is read back the same."""
    import autoais
    from autoais.base.io.jsonl import write_atomic
    from autoais.formats.human_ratings import read_ratings, write_ratings
    from autoais.formats.human_ratings.convert import convert_ratings

    ratings, own = list(read_ratings(case.file)), case.folder / "own"
    write_atomic(own, write_ratings(ratings))
    _sane(list(read_ratings(own)) == ratings, "other ratings are read back than were written")
    json.dumps(autoais.agreement(ratings, experts=ratings, variant=ratings, by="system"), allow_nan=False)
    list(convert_ratings(ratings, "label-studio-config"))


# --- indexes and recipes ---------------------------------------------------------------------------------------------


@cache
def _shelf() -> Path:
    """A small index, of documents in a folder, with the part of `static`; made once a worker."""
    import rag

    home = Path.cwd() / "shelf"
    (home / "docs").mkdir(parents=True)
    for number, (name, data) in enumerate(seeds.DOCUMENTS[:3]):
        (home / "docs" / f"{number}-{name}").write_bytes(data)
    rag.build_index(home / "docs", home / "x.index", recipes=["static"])
    return home


@cache
def _index() -> Any:  # noqa: ANN401  (an index)
    import rag

    return rag.open_index(_shelf() / "x.index")


def _recipe(case: Case) -> None:
    import rag
    from rag.api import check_recipes

    retriever = rag.open_retriever(str(case.file), _index())
    hits = retriever.search(["the mill in Arlen"], 5)[0]
    _utf8(retriever.name)
    _sane(len(hits) <= 5 and all(hit.score == hit.score for hit in hits), "a score is not a number")
    check_recipes([str(case.file)])


def _benchmarks(case: Case) -> None:
    """Benchmarks and reproductions of others: paths stay below their folders, and only our commands are named."""
    from rag.bench.benchmark import read_benchmark
    from rag.bench.reproductions import COMMANDS, read_reproduction

    if case.name == "benchmark.toml":
        found = read_benchmark(case.file)
        paths = [found.questions.file, *(one.path for one in found.corpora.values())]
        _sane(not any(Path(path).is_absolute() or ".." in Path(path).parts for path in paths), "a path leads elsewhere")
    else:
        for step in read_reproduction(case.file).steps:
            _sane(any(" ".join(step.command).startswith(known) for known in COMMANDS), f"runs {step.line:.60}")


@cache
def _run_folder() -> Path:
    from tests.rag.bench.folders import make_run

    return make_run(Path(_shelf()) / "run", n=4, words=5, hostile=False)


def _run_files() -> seeds.Seeds:
    files = sorted(path for path in _run_folder().rglob("*.json*") if path.is_file())
    return [(str(path.relative_to(_run_folder())), path.read_bytes()) for path in files]


def _run_of_others(case: Case) -> None:
    """Compare the systems of a run folder with a broken file."""
    from rag.bench.compare import compare_runs
    from rag.bench.report import report_table

    home = case.folder / "run"
    shutil.copytree(_run_folder(), home)
    (home / case.name).write_bytes(case.data)
    compared = compare_runs(home, allow_different=True)
    _sane(all(group["n"] > 0 for group in compared["groups"]), "a group without questions")
    _utf8(json.dumps(compared, ensure_ascii=False))
    _utf8(report_table(home, allow_different=True))


def _training(case: Case) -> None:
    """Settings of a recipe are of their types when it is read, or training would stop in the middle."""
    from autoais.training.recipe import TrainingRecipe
    from rag.answer.llms.prompts import Prompt
    from rag.base.config import read_config
    from rag.training import read_recipe

    if case.name == "config.toml":
        os.environ["RAG_CONFIG"] = str(case.file)
        _sane(all(isinstance(value, str) for value in read_config().values()), "a default that is not a string")
    elif case.name == "prompt.txt":
        Prompt.read(str(case.file)).fill(seeds.QUESTION)
    elif case.name == "judge.toml":
        recipe = TrainingRecipe.read(case.file)
        _numbers(recipe.schedule, recipe.finish, *recipe.sources.values())
        _names(
            recipe.name,
            recipe.base,
            *recipe.held_out,
            *recipe.threshold,
            *(one for fold in recipe.folds for one in fold),
        )
    else:
        from rag.training.recipe import ReaderRecipe
        from rag.training.static import StaticRecipe

        read = read_recipe(case.file, ReaderRecipe if case.name == "reader.toml" else StaticRecipe)
        _numbers(read.schedule)
        _names(read.name, read.kind, read.base, *read.held_out)


def _numbers(*tables: Any) -> None:  # noqa: ANN401  (dataclasses)
    for table in tables:
        for name in (
            "rate",
            "batch",
            "warm_up",
            "decay",
            "token_weight",
            "times",
            "finish",
            "share",
            "spare",
            "budget",
        ):
            value = getattr(table, name, 0)
            _sane(isinstance(value, int | float) and not isinstance(value, bool), f"{name} is {value!r:.50}")


def _names(*names: Any) -> None:  # noqa: ANN401  (JSON)
    _sane(all(isinstance(name, str) for name in names), f"a name is no string: {names!r:.200}")


def _manifests() -> seeds.Seeds:
    build = next(path for path in (_shelf() / "x.index").glob(".rag-build-*"))
    paths = [_shelf() / "x.index" / "manifest.json", *sorted(path for path in build.rglob("*.json*"))]
    found = [(str(path.relative_to(_shelf() / "x.index")), path.read_bytes()) for path in paths if path.is_file()]
    table = [
        (str(path.relative_to(_shelf() / "x.index")), path.read_bytes())
        for path in sorted(build.glob("*"))
        if path.is_file()
    ]
    return sorted([*found, *found, *table])


def _manifest(case: Case) -> None:
    """Open, search, verify and update an index with a broken file."""
    import rag

    home = case.folder / "x.index"
    shutil.copytree(_shelf() / "x.index", home)
    (home / case.name).write_bytes(case.data)
    faults = rag.verify_index(home)
    _sane(not any("\n" in fault for fault in faults), "a fault of several lines")
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


def _reply(case: Case) -> None:
    """Everything that reads a reply: cited answers, streams, labelled fields, follow-ups, rewritten sentences."""
    from autoais.judges.lexical import LexicalJudge
    from rag.answer.attribution.attributor import Attributor
    from rag.answer.attribution.revise import ModelRewriter, Reviser
    from rag.answer.attribution.titles import Titles
    from rag.answer.generators.cited import Cited
    from rag.answer.generators.closed_book import ClosedBook
    from rag.answer.generators.follow_up import Turn, standalone
    from rag.answer.generators.llm_retriever import ModelAsRetriever
    from rag.answer.llms.prompts import Prompt
    from rag.base.types import Question
    from rag.retrieval import open_retriever
    from rag.testing import ScriptedModel

    said, question, judge = case.text[:200_000], Question("1", seeds.QUESTION), LexicalJudge()
    model = ScriptedModel(
        said, context=case.rng.choice((700, 4096)), piece=case.rng.choice((1, 3, 50)) if len(said) < 9000 else 5000
    )
    cited = Cited(model, Prompt.read(case.rng.choice(("hagrid.v1", "hagrid-few-shot.v1"))))
    answer = cited.generate(question, _hits())
    *pieces, streamed = cited.stream(question, _hits())
    _sane(streamed == answer and all(isinstance(piece, str) for piece in pieces), "stream and answer differ")
    recalled = ClosedBook(model).ask(question)
    pointed = ModelAsRetriever(model, Titles(_index()), open_retriever("bm25", _index()), judge, 3).ask(question)
    revised = Reviser(Attributor(judge), ModelRewriter(model)).revise(answer)
    for one in (answer, recalled, pointed, revised):
        _utf8(one.text, str(one), one.short_answer, one.reason)
        json.dumps(one.to_cited().extra, allow_nan=False)
    _utf8(standalone("When was it built?", [Turn(seeds.QUESTION, "In 1802."), Turn("Who?", said[:3000])], model))


class _Said:
    """Stands for the client of a chat server: every reply is the same."""

    endpoint, concurrency = "localhost", 2

    def __init__(self, text: str) -> None:
        self._text = text

    def answer(self, requests: Sequence[object]) -> list[Any]:
        """The reply to each request."""
        from autoais.base.models.chat import Reply

        return [Reply(self._text, cut=True) for _ in requests]

    def excerpt(self, text: str) -> str:
        """The beginning of a reply, as the client says it."""
        from autoais.base.models.chat import ChatClient

        return ChatClient("http://localhost/v1", "key").excerpt(text)


def _judged(case: Case) -> None:
    """A judge that a language model is, with every prompt; the cache keeps what it says."""
    from autoais.judges.cache import CachedJudge, JudgementCache
    from autoais.judges.llm import LlmJudge

    prompt = case.rng.choice(("attrscore-attribution-with-definition.v1", "support.v1"))
    compat = "osu-2023" if prompt.startswith("attrscore") and case.rng.random() < 0.3 else None
    said: Any = _Said(case.text[:200_000])
    judge = LlmJudge("m", prompt=prompt, compat=compat, client=said)
    asked = [
        Attribution("It was built in 1802.", (seeds.MILL,), seeds.QUESTION),
        Attribution(case.text[:2000], (case.text[:9000],), "nan"),
    ]
    found = judge.decide(asked)
    _sane(len(found) == 2 and all(one.reason is not None for one in found), "a judgement is missing")
    with JudgementCache(case.folder / "cache") as cache:
        first = CachedJudge(judge, cache).decide(asked)
        _sane(first == CachedJudge(judge, cache).decide(asked), "the cache holds another judgement")
    (case.folder / "broken").write_bytes(case.data)
    with suppress(UserError), JudgementCache(case.folder / "broken"):
        pass


# --- questions -------------------------------------------------------------------------------------------------------


@cache
def _reader() -> Any:  # noqa: ANN401  (a system)
    import rag

    return rag.open_system("reader", _index())


def _question(case: Case) -> None:
    """Search and answer a question, also as a follow-up."""
    import rag
    from autoais.base.io.jsonl import dumps
    from rag.answer.conversation import Conversation, Turn
    from rag.answer.generators.follow_up import standalone

    text = case.text[:100_000]
    standalone(text, [Turn(seeds.QUESTION, seeds.MILL), Turn(text[:500], "Nora Finch.")])
    standalone("When was she born, and in 1990?", [Turn(text[:2000], text[:2000])])
    with suppress(rag.QuestionError):
        for hit in rag.search(text, _index(), k=4):
            _sane(hit.score > 0, "a score is not positive")
    answer = Conversation(_reader(), [Turn(seeds.QUESTION, "In 1802.")]).ask(text)
    _utf8(answer.text, str(answer), answer.short_answer, answer.reason)
    _sane(answer.abstained or answer.citations, "a sentence without a citation")
    dumps(answer.to_cited().extra)


# --- a server --------------------------------------------------------------------------------------------------------

_WAITS = (b"0", b"1e999", b"99999999999999", b"-1", b"NaN", b"Mon, 99 Foo 99999 99:99:99",
          b"Fri, 31 Dec 9999 23:59:59 GMT",
          b"Thu, 01 Jan 1970 00:00:00 -9999", b"0001-01-01", b"\xff", b"Sat, 01 Jan 0000 00:00:00 GMT",
          b"1" * 9000, b"", b"\t")  # fmt: skip
_STATUSES = (200, 200, 200, 200, 400, 401, 404, 408, 413, 422, 429, 429, 500, 503, 100, 101, 204, 301, 304, 999)


class _Server:
    """A TCP server that answers anything with given bytes, in given pieces, or hangs."""

    def __init__(self, pieces: Sequence[bytes], pause: float, *, hangs: bool) -> None:
        self._pieces, self._pause, self._hangs = pieces, pause, hangs
        self._done = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(0.05)
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._done.is_set():
            with suppress(OSError):
                self._answer(self._socket.accept()[0])

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(0.5)
            asked = b""
            while b"\r\n\r\n" not in asked or len(asked.partition(b"\r\n\r\n")[2]) < _length(asked):
                if not (piece := connection.recv(1 << 16)):
                    return
                asked += piece
            for piece in self._pieces:
                connection.sendall(piece)
                if self._done.wait(self._pause):
                    return
            if self._hangs:
                self._done.wait(0.5)

    def close(self) -> None:
        """Stop serving."""
        self._done.set()
        self._thread.join()
        self._socket.close()


def _length(asked: bytes) -> int:
    head = asked.partition(b"\r\n\r\n")[0].lower()
    return int(head.partition(b"content-length:")[2].split(b"\r\n")[0] or 0)


def _response(case: Case) -> list[bytes]:
    """What the server sends: a status line, headers and the body, of which some may be broken, in pieces."""
    rng, body = case.rng, case.data
    kind = b"text/event-stream" if case.name == "events" else b"application/json"
    chunked = rng.random() < 0.2
    headers = [
        b"HTTP/1.1 %d OK" % rng.choice(_STATUSES),
        b"Content-Type: " + kind,
        b"Retry-After: " + rng.choice(_WAITS),
    ]
    if chunked:
        headers.append(b"Transfer-Encoding: chunked")
        body = b"%x\r\n%b\r\n" % (len(body), body) + rng.choice((b"0\r\n\r\n", b"", b"-1\r\n", b"zz\r\n"))
    else:
        size = len(body) if rng.random() < 0.8 else rng.choice((0, len(body) + 9, max(len(body) - 9, 0), 10**12))
        headers.append(rng.choice((b"Content-Length: %d" % size, b"Connection: close")))
    if rng.random() < 0.1:
        headers.insert(
            rng.randrange(1, 4),
            rng.choice((b"Content-Encoding: gzip", b"X: " + rng.choice(TOKENS), b"x" * 200_000, b": :")),
        )
    whole = b"\r\n".join(headers) + b"\r\n\r\n" + body
    if rng.random() < 0.1:
        whole = rng.choice((rng.randbytes(300), whole[: rng.randrange(len(whole))], b"", b"\r\n" * 900))
    if rng.random() < 0.1 and len(whole) < 3000:
        return [whole[n : n + 1] for n in range(len(whole))]
    cut = rng.randrange(len(whole) + 1)
    return [whole[:cut], whole[cut:]]


def _http(case: Case) -> None:
    from autoais.base.models import chat

    chat._LONGEST_WAIT = 0.05  # as Retry-After may ask for any wait
    pieces = _response(case)
    server = _Server(
        pieces, 0.0 if len(pieces) > 2 else case.rng.choice((0.0, 0.0, 0.01)), hangs=case.rng.random() < 0.1
    )
    try:
        client = chat.ChatClient(
            f"http://127.0.0.1:{server.port}/v1", "sk-key", concurrency=2, timeout=0.4, retries=1, backoff=0.0
        )
        request = chat.Request(
            "m", (("user", mutated_text(seeds.QUESTION, case.rng)[:5000]),), schema={}, stop=("\nQ",)
        )
        heard: list[str] = []
        began = time.monotonic()
        if case.rng.random() < 0.5:
            replies = [client.stream(request, heard.append)]
        else:
            replies = client.answer([request] * case.rng.choice((1, 2)))
        _sane(time.monotonic() - began < 5, "the limits on time do not hold")
        _replied(replies)
    finally:
        server.close()


def _replied(replies: Iterable[object]) -> None:
    from autoais.base.models.chat import NoReply

    for reply in replies:
        if isinstance(reply, NoReply):
            _sane(reply.reason.strip() and "\n" not in reply.reason, f"no reason in one line: {reply.reason!r:.200}")
            _sane("sk-key" not in reply.reason, "the key is in the reason")
            _utf8(reply.reason)


def _items(case: Case) -> None:
    from rag.annotate.items import in_order, item_of, read_items, write_items

    items = list(read_items(case.file, flag_incomplete=case.rng.random() < 0.5))
    written = [json.loads(line) for line in write_items(items)]
    again = [item_of(row, "again", flag_incomplete=True) for row in written]
    _sane(again == items, "an item changes when it is written and read")
    _sane(sorted(one.id for one in in_order(items, 1)) == sorted(one.id for one in items), "the order loses items")


def _study(case: Case) -> None:
    from rag.annotate.settings import read_settings, write_settings

    settings = read_settings(case.file)
    write_settings(case.file, settings)
    _sane(read_settings(case.file) == settings, "settings change when they are written and read")


TARGETS = (
    Target("corpus", seeds.CORPORA, _corpus),
    Target("indexed", (*seeds.CORPORA, *seeds.DOCUMENTS), _indexed),
    Target("documents", seeds.DOCUMENTS, _document),
    Target("archives", seeds.archives, _document),
    Target("pdf", seeds.PDFS, _document),
    Target("answers", seeds.ANSWERS, _answers),
    Target("asked", seeds.ASKED, _asked),
    Target("runs", seeds.RUNS, _runs),
    Target("ratings", seeds.RATINGS, _ratings),
    Target("items", seeds.ITEMS, _items),
    Target("studies", seeds.STUDIES, _study),
    Target("recipes", seeds.RECIPES, _recipe),
    Target("benchmarks", seeds.BENCHMARKS, _benchmarks),
    Target("bench", _run_files, _run_of_others),
    Target("training", seeds.TRAINING, _training),
    Target("manifests", _manifests, _manifest),
    Target("replies", seeds.REPLIES, _reply, refuses=False),
    Target("judged", seeds.REPLIES, _judged),
    Target("questions", seeds.TURNS, _question),
    Target("http", seeds.HTTP, _http),
)
