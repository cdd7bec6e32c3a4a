"""The service without any web: what it answers, what it refuses, and how many it serves at once."""

import asyncio
import json
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from autoais.base.types import Verdict
from rag.answer.options import Options
from rag.answer.system import System
from rag.answer.systems import SYSTEMS, SystemKind, open_system
from rag.api import add_to_index, open_index
from rag.base.errors import BusyError, NotFoundError, QuestionError, RagError, TimeLimitError, UsageError
from rag.base.types import Answer, Passage, Question, Turn
from rag.commands.serve import read_systems
from rag.index.index import Index
from rag.retrieval.client import AskOptions
from rag.serve import Limits, Reply, Service
from tests.rag.serve.served import make_index, other_index, slow_system

QUESTION = "When did the Aller bridge open?"


@pytest.fixture(scope="module")
def service(index: Index) -> Iterator[Service]:
    made = Service({"town": index}, ["reader", "extractive"], limits=Limits(workers=2))
    yield made
    made.close()


def test_an_answer_is_that_of_the_library(service: Service, index: Index) -> None:
    asked = service.ask(QUESTION)
    assert asked.answer == open_system("reader", index).ask(QUESTION)
    assert (asked.index, asked.system, asked.question) == ("town", "reader", QUESTION)
    assert "1931" in str(asked.answer)
    assert asked.seconds > 0


def test_a_stream_ends_with_the_answer_of_ask(service: Service) -> None:
    told: list[Reply] = []
    service.watch(told.append)
    *_, asked = service.stream(QUESTION, system="extractive", identifier="x")
    assert told == [asked]
    assert asked.is_complete
    assert asked.answer == service.ask(QUESTION, system="extractive", identifier="x").answer
    assert asked.answer.question.id == "x"


def test_a_follow_up_is_asked_as_a_whole_question(service: Service) -> None:
    asked = service.ask("Who repaired it?", history=[Turn(QUESTION, "The Aller bridge opened in 1931.")])
    assert asked.question == "Who repaired Aller?"


def test_options_are_those_of_the_system(service: Service, index: Index) -> None:
    for k in (2, 30):
        asked = service.ask(QUESTION, retriever="bm25", k=k)
        assert asked.answer == open_system("reader", index, k=k, retriever="bm25").ask(QUESTION)
    asked = service.ask(QUESTION, retriever="bm25", k=2, min_confidence=0.0)
    assert asked.answer == open_system("reader", index, Options(0.0), k=2, retriever="bm25").ask(QUESTION)
    assert service.ask(QUESTION, min_confidence=1.0).answer.abstained
    with pytest.raises(UsageError, match="min_confidence"):
        service.ask(QUESTION, system="extractive", min_confidence=0.5)
    with pytest.raises(UsageError, match="between 0 and 1"):
        service.ask(QUESTION, min_confidence=7)


def test_a_system_is_served_with_its_options(index: Index) -> None:
    (named,) = read_systems(["careful=reader,retriever=bm25,k=2,min_confidence=0.9"]).items()
    assert named == ("careful", "reader,retriever=bm25,k=2,min_confidence=0.9")
    assert read_systems(["reader,k=3"]) == {"reader,k=3": "reader,k=3"}
    service = Service({"town": index}, dict([named]))
    whole = open_system("reader", index, Options(0.9), k=2, retriever="bm25")
    assert service.ask(QUESTION).answer == whole.ask(QUESTION)
    sure = open_system("reader", index, Options(0.0), k=2, retriever="bm25")
    assert service.ask(QUESTION, min_confidence=0.0).answer == sure.ask(QUESTION)
    service.close()
    with pytest.raises(RagError, match="unknown option 'depth=3'"):
        Service({"town": index}, ["reader,depth=3"])


def test_hits_are_those_of_the_library(service: Service, index: Index) -> None:
    assert service.search(QUESTION, "town", k=3) == index.bm25.search([QUESTION], 3)[0]
    assert service.search_many([], "town") == []


def test_a_judgement(service: Service) -> None:
    evidence = [Passage("1", "The Aller bridge", "The Aller bridge opened in 1931.")]
    assert service.judge("The Aller bridge opened in 1931.", evidence).verdict is Verdict.ATTRIBUTABLE
    assert service.judge("The bridge was opened by a queen in 2005.", evidence).verdict.ais is False
    assert service.judge("The Aller bridge opened in 1931.", []).verdict is Verdict.NOT_ATTRIBUTABLE


def test_an_answer_of_others_gets_citations(service: Service) -> None:
    text = "The Aller bridge opened in 1931 [7]. It is painted green and gold."
    answer = service.attribute(QUESTION, text)
    assert [one.passage for one in answer.citations] == ["bridge.md#1"]
    assert answer.sentences[1].citations == ()


def test_a_passage_has_its_neighbours_and_its_source(service: Service) -> None:
    first, second = (service.passage("town", f"bridge.md#{n}") for n in (1, 2))
    assert first.before is None
    assert first.after == second.passage
    assert second.before == first.passage
    assert first.source == "bridge.md"
    assert service.passage("town", "ovens.md#1").after is None


def test_neighbours_of_passages_without_a_file_have_the_same_title(tmp_path: Path) -> None:
    from rag.api import build_index
    from tests.conftest import write_corpus

    rows = [("1", "Verden", "Verden lies on the Aller."), ("2", "Verden", "It is old."), ("3", "Aller", "A river."),
            ("x", "Aller", "It is long.")]  # fmt: skip
    build_index(write_corpus(tmp_path / "c.jsonl", rows), tmp_path / "c.index")
    service = Service({"c": open_index(tmp_path / "c.index")})
    shown = service.passage("c", "2")
    assert shown.before is not None
    assert (shown.before.id, shown.after, shown.source) == ("1", None, "")
    assert service.passage("c", "x").before is None
    service.close()


@pytest.mark.parametrize(
    ("call", "error", "word"),
    [
        (lambda s: s.ask(QUESTION, "../town"), NotFoundError, "town"),
        (lambda s: s.ask(QUESTION, "other"), NotFoundError, "no index called 'other'; there are: town"),
        (lambda s: s.ask(QUESTION, system="gguf:/etc/passwd"), NotFoundError, "reader, extractive"),
        (lambda s: s.ask(""), UsageError, "empty"),
        (lambda s: s.ask(" \n"), UsageError, "empty"),
        (lambda s: s.ask("?!"), QuestionError, "word"),
        (lambda s: s.ask("x" * 3000), UsageError, "3,000 characters; the maximum is 2,000"),
        (lambda s: s.ask(QUESTION, k=0), UsageError, "from 1 to 100"),
        (lambda s: s.ask(QUESTION, k=10**9), UsageError, "from 1 to 100"),
        (lambda s: s.ask(QUESTION, retriever="/etc/passwd.toml"), UsageError, "no retriever"),
        (lambda s: s.ask(QUESTION, retriever="reference"), UsageError, "no retriever"),
        (lambda s: s.ask(QUESTION, retriever="remote:http://169.254.169.254/x"), UsageError, "no retriever"),
        (lambda s: s.search(QUESTION, retriever="bm25+remote:http://localhost:1/x"), UsageError, "no retriever"),
        (lambda s: s.search(QUESTION, retriever="+".join(["bm25"] * 50)), UsageError, "no retriever"),
        (lambda s: s.search(QUESTION, retriever="bm25+bm25"), UsageError, "names a retriever twice"),
        (lambda s: s.search(QUESTION, retriever="static"), UsageError, "lacks data"),
        (lambda s: s.ask(QUESTION, history=[Turn("q", "a")] * 101), UsageError, "101 turns"),
        (lambda s: s.search_many(["q"] * 101), UsageError, "101 queries"),
        (lambda s: s.judge("c", [Passage("p", "", "e" * 20_001)]), UsageError, "20,001"),
        (lambda s: s.attribute("q", "One is one. " * 101), UsageError, "sentences"),
        (lambda s: s.passage("town", "bridge.md#99"), NotFoundError, "bridge.md#99"),
        (lambda s: s.passage("town", "\ud800"), NotFoundError, "no passage"),
    ],
)
def test_what_is_refused(service: Service, call: object, error: type[RagError], word: str) -> None:
    assert callable(call)
    with pytest.raises(error, match=word.replace("?", r"\?")):
        call(service)


def test_lone_surrogates_do_not_survive(service: Service) -> None:
    asked = service.ask("When did the \ud800 Aller bridge open?")
    asked.answer.question.text.encode()


@pytest.mark.parametrize("name", ["", "..", "a/b", "a b", "é", "x" * 65, ".hidden", "a%2f"])
def test_names_of_indexes_are_safe_in_urls(index: Index, name: str) -> None:
    with pytest.raises(UsageError, match="name of an index"):
        Service({name: index})


def test_a_service_needs_something_to_serve(index: Index) -> None:
    for indexes, systems in (({}, ("reader",)), ({"town": index}, ())):
        with pytest.raises(UsageError, match="needs"):
            Service(indexes, systems)


def test_an_updated_index_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    index = make_index(tmp_path)
    service = Service({"town": index}, {"short": "extractive"})
    old = service.system()
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "tower.md").write_text("# Tower\n\nThe tower of Verden is 62 metres high.\n", "utf-8")
    assert index.build is not None
    add_to_index(index.build.parent, tmp_path / "more")
    service.replace("town", open_index(index.build.parent))
    asked = service.ask("How high is the tower of Verden?")
    assert asked.system == "short"
    assert "62" in asked.answer.text
    assert "62" not in old.ask("How high is the tower of Verden?").text  # what runs goes on with the old one
    service.close()


@pytest.mark.parametrize("options", [{}, {"retriever": "bm25", "k": 2}])
def test_a_stream_keeps_the_index_that_it_was_asked_of(tmp_path: Path, options: AskOptions) -> None:
    old, question = make_index(tmp_path), "Aller bridge repaired"
    quoter = slow_system()
    service = Service({"town": old}, ["slow"])
    for _ in range(4 + 4):
        quoter.go_on()
    *_, before = service.stream(question, **options)
    replies = service.stream(question, **options)
    first = next(replies)
    service.replace("town", other_index(tmp_path / "other"))
    last = [first, *replies][-1]
    assert (first.is_complete, len(first.answer.sentences), len(last.answer.sentences)) == (False, 1, 3)
    assert last.answer == before.answer
    for hit in last.answer.hits:
        context, now = last.passages.find(hit.passage.id), service.passage("town", hit.passage.id)
        assert context == before.passages.find(hit.passage.id)
        assert context is not None
        assert context.passage == hit.passage
        assert "another index" in now.passage.text  # what a link opens
        assert [one and one.text for one in (context.before, context.after)] != [
            one and one.text for one in (now.before, now.after)
        ]
    assert last.passages.index is old
    service.close()


def test_a_changed_index_is_opened_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    index = make_index(tmp_path)
    service = Service({"town": index, "handbook": open_index(None)}, ["extractive"])
    assert service.reopen() == []
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "tower.md").write_text("# Tower\n\nThe tower of Verden is 62 metres high.\n", "utf-8")
    assert index.build is not None
    home = index.build.parent
    add_to_index(home, tmp_path / "more")
    assert service.reopen() == ["town"]
    assert "62" in service.ask("How high is the tower of Verden?").answer.text
    assert service.reopen() == []
    manifest = json.loads((home / "manifest.json").read_text())
    (home / "manifest.json").write_text(json.dumps(manifest | {"build": ".rag-build-gone"}))
    assert (service.reopen(), service.reopen()) == ([], [])
    assert caplog.text.count("the changed index is not served") == 1
    assert "town: the changed index is served, with 5 passages" in caplog.text
    shutil.rmtree(home)
    assert (service.reopen(), service.reopen()) == ([], [])
    assert caplog.text.count(f"town: {home} cannot be read; what was opened of it is still served") == 1
    assert "62" in service.ask("How high is the tower of Verden?").answer.text
    service.close()


# --- workers ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def narrow(index: Index) -> Iterator[Service]:
    """One at a time, one waits, for a fifth of a second."""
    made = Service({"town": index}, limits=Limits(workers=1, waiting=1, seconds=0.2))
    yield made
    made.close()


def test_more_than_may_wait_are_refused(narrow: Service) -> None:
    go = threading.Event()

    async def main() -> None:
        first, second = (asyncio.create_task(narrow.run(go.wait)) for _ in range(2))
        while not narrow.workers.running:
            await asyncio.sleep(0.001)
        assert (narrow.workers.running, narrow.workers.waiting) == (1, 1)
        with pytest.raises(BusyError, match="try again"):
            await narrow.run(go.wait)
        with pytest.raises(BusyError):
            narrow.run_stream(narrow.stream, QUESTION)
        go.set()
        await asyncio.gather(first, second)
        assert await narrow.run(lambda: 7) == 7
        assert (narrow.workers.running, narrow.workers.waiting) == (0, 0)

    asyncio.run(main())


def test_time_is_limited_and_the_place_in_the_queue_is_given_up(narrow: Service) -> None:
    go = threading.Event()

    async def main() -> None:
        first = asyncio.create_task(narrow.run(go.wait))
        while not narrow.workers.running:
            await asyncio.sleep(0.001)
        gone = asyncio.create_task(narrow.run(lambda: 1))
        await asyncio.sleep(0.01)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        assert narrow.workers.waiting == 0
        with pytest.raises(TimeLimitError, match=r"0\.2 seconds"):
            await first
        assert narrow.workers.running == 1  # a function cannot be stopped
        go.set()
        assert await narrow.run(lambda: 2) == 2

    asyncio.run(main())


def test_errors_come_through(narrow: Service) -> None:
    def late() -> None:
        raise TimeoutError("of its own")

    async def main() -> None:
        with pytest.raises(QuestionError):
            await narrow.run(narrow.ask, "?!")
        with pytest.raises(TimeoutError, match="of its own"):
            await narrow.run(late)
        with pytest.raises(NotFoundError):
            async for _ in narrow.run_stream(narrow.stream, QUESTION, "nowhere"):
                pass

    narrow.system()  # opened before the time is measured
    asyncio.run(main())


def test_a_consumer_that_stops_ends_the_work(narrow: Service) -> None:
    closed = threading.Event()

    def endless() -> Iterator[int]:
        try:
            number = 0
            while True:
                yield number
                number += 1
                time.sleep(0.001)
        finally:
            closed.set()

    async def main() -> None:
        pieces = narrow.run_stream(endless)
        async for number in pieces:
            if number == 3:
                break
        await pieces.aclose()
        assert await asyncio.to_thread(closed.wait, 10)
        with pytest.raises(TimeLimitError):
            async for _ in narrow.run_stream(endless):
                pass

    asyncio.run(main())


def test_a_slow_consumer_holds_no_worker_and_loses_nothing(narrow: Service) -> None:
    async def main() -> None:
        found = []
        async for number in narrow.run_stream(lambda: iter(range(5))):
            found.append(number)
            await asyncio.sleep(0.08)  # longer than the limit, in all
            assert await narrow.run(lambda: 1) == 1
        assert found == [0, 1, 2, 3, 4]

    asyncio.run(main())


class Searched(System):
    """Abstains after a search that a language model asked for, which then failed."""

    name = "searched"

    def respond(self, question: Question) -> Answer:
        """An abstention with what the model said."""
        trace = {"searches": {"queries": [], "stopped": "the model failed: http://10.0.0.7: no key sk-secret"}}
        return Answer(question, "", (), (), self.name, abstained=True, reason="no passage", trace=trace)


def test_what_a_model_said_that_failed_in_a_search_is_only_in_the_log(
    index: Index, caplog: pytest.LogCaptureFixture
) -> None:
    SYSTEMS.register("searched", SystemKind("searched", "nothing", "bm25", 2, lambda opened: Searched()))
    service = Service({"town": index}, ["searched"])
    trace = service.ask("Who built the bridge?").answer.trace
    service.close()
    assert trace["searches"] == {"queries": [], "stopped": "the model failed"}
    assert "http://10.0.0.7" in caplog.text
