"""The retriever `remote:URL` against a real server: the same hits as there, whatever else reads them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs the extra serve")

import rag as library
from autoais.base.io.jsonl import round_floats
from rag.api import build_index, open_index, open_retriever, open_system
from rag.base.errors import NotFoundError, QuestionError, RagError
from rag.base.types import Question
from rag.retrieval.client import Client
from rag.retrieval.remote import Remote
from rag.serve import Limits, Service
from rag.serve.app import create_app
from rag.serve.keys import Keys
from rag.testing import check_retriever, check_system
from scripts.browser import serving
from tests.conftest import Command, one_line_error, write_corpus

QUERIES = ["river of Poland", "Nobel Prize", "Curie in Paris", "東京"]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("remote")
    build_index(write_corpus(folder / "shelf.jsonl"), folder / "shelf.index")
    return folder / "shelf.index"


@pytest.fixture(scope="module")
def service(shelf: Path) -> Iterator[Service]:
    limits = Limits(workers=2, passages=1000, claims=20)
    made = Service({"handbook": open_index(), "shelf": open_index(shelf)}, ["reader", "extractive"], limits=limits)
    yield made
    made.close()


@pytest.fixture(scope="module")
def url(service: Service) -> Iterator[str]:
    with serving(create_app(service)) as address:
        yield address


@pytest.fixture
def remote(url: str) -> Remote:
    return Remote(Client(f"{url}/shelf"))


def test_contract(remote: Remote) -> None:
    check_retriever(remote, QUERIES)


def test_hits_are_those_of_the_index(remote: Remote, shelf: Path) -> None:
    local = open_retriever("bm25", shelf)
    assert remote.search(QUERIES, 100) == local.search(QUERIES, 100)  # passages, scores and order, to the last bit
    checksum = open_index(shelf).manifest["checksum"]
    assert remote.name == f"remote({local.name}@shelf/{checksum[:12]})"


def test_many_queries_are_several_requests(remote: Remote, shelf: Path) -> None:
    queries = [QUERIES[n % len(QUERIES)] for n in range(50)]  # the server takes 20 at once
    assert remote.search(queries, 2) == open_retriever("bm25", shelf).search(queries, 2)


def test_retrievers(url: str, shelf: Path, tmp_path: Path) -> None:
    found = open_retriever(f"remote:{url}/shelf", shelf).search(QUERIES, 3)
    assert found == open_retriever("bm25", shelf).search(QUERIES, 3)
    # In a file, the retriever on the server; under a reranker of this machine; fused with one of this machine.
    file = tmp_path / "far.toml"
    file.write_text(f'name = "far.v1"\nkind = "remote"\nurl = "{url}/shelf"\nrecipe = "bm25-rerank"\n')
    far = open_retriever(str(file), shelf)
    assert far.search(QUERIES, 3) == open_retriever("bm25-rerank", shelf).search(QUERIES, 3)
    assert open_retriever("bm25-rerank", shelf).name in far.name
    file.write_text(
        f'name = "near.v1"\nkind = "rerank"\nbase = "remote:{url}/shelf"\n[[stages]]\nmodel = "reader"\ndepth = 3\n'
    )
    assert len(open_retriever(str(file), shelf).search(QUERIES[:1], 3)[0]) == 3
    fused = open_retriever(f"bm25+remote:{url}", shelf).search(["citation precision of Marie Curie"], 50)[0]
    names = {hit.passage.id.partition("#")[0] for hit in fused}
    assert "a" in names
    assert any(name.endswith("/citation-metrics.md") for name in names)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('kind = "remote"', "url should be str"),
        ('kind = "remote"\nurl = "http://127.0.0.1:1"\nkey = "x"', "unknown setting 'key' of kind remote"),
        ('kind = "remote"\nurl = "file:///etc/passwd"', "the address of a server should look like"),
        ('kind = "remote"\nurl = "http://127.0.0.1:1"\ntimeout = -1', "timeout should be a number of seconds above 0"),
    ],
)
def test_broken_retrievers(shelf: Path, tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "far.toml"
    file.write_text(f'name = "far.v1"\n{text}\n')
    with pytest.raises(Exception, match=message) as told:
        open_retriever(str(file), shelf)
    assert isinstance(told.value, library.UserError)


def test_a_system_of_this_machine_reads_an_index_of_another(url: str, shelf: Path) -> None:
    handbook = open_index()
    asked = "Where was Marie Curie born?"
    far = open_system("reader", handbook, retriever=f"remote:{url}/shelf", k=3)
    near = open_system("reader", shelf, retriever="bm25", k=3)
    assert far.ask(asked).hits == near.ask(asked).hits
    assert str(far.ask(asked)) == str(near.ask(asked))
    check_system(far, [Question("1", asked), Question("2", "What is the longest river of Poland?")])


def test_queries_that_cannot_be_searched(remote: Remote) -> None:
    with pytest.raises(QuestionError, match=r"^nothing to search for in 'the'"):
        remote.search(["the"], 3)
    with pytest.raises(RagError, match="k should be from 1 to 1000, found 2000"):
        remote.search(["river"], 2000)


def test_an_index_that_is_not_served(url: str) -> None:
    with pytest.raises(NotFoundError, match=f"^{url}: no index called 'nope'; there are: handbook, shelf$"):
        Remote(Client(f"{url}/nope"))
    with pytest.raises(RagError, match="no retriever called '/etc/passwd'"):
        Remote(Client(url), "/etc/passwd")


def test_an_index_that_changes_is_told(shelf: Path, tmp_path: Path) -> None:
    service = Service({"shelf": open_index(shelf)}, limits=Limits(workers=1))
    with serving(create_app(service)) as address:
        remote = Remote(Client(f"{address}/shelf"))
        corpus = write_corpus(tmp_path / "other.jsonl", [("x#1", "Vistula", "The Vistula is a river.")])
        service.replace("shelf", build_index(corpus, tmp_path / "other.index"))
        with pytest.raises(RagError, match=r"the index has changed from remote\(.*; start again$"):
            remote.search(["river"], 3)
        assert Remote(Client(address)).search(["river"], 3)[0][0].passage.id == "x#1"


def test_keys(service: Service, shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Service({"shelf": open_index(shelf)}, limits=Limits(workers=1))
    with serving(create_app(made, keys=Keys(["right-key-0123456789"]))) as address:
        for wrong in ("", "wrong-key-0123456789"):
            with pytest.raises(RagError, match="set RAG_REMOTE_KEY to a key that the server knows") as told:
                Client(address, wrong).search("river")
            assert "wrong-key" not in str(told.value)
        assert Client(address, "right-key-0123456789").search("river")
        monkeypatch.setenv("RAG_REMOTE_KEY", "right-key-0123456789")
        assert open_retriever(f"remote:{address}", shelf).search(["river"], 1)


# --- the client against the same server -------------------------------------------------------------------------------


def test_a_remote_answer_is_the_local_one(url: str, shelf: Path) -> None:
    for system in ("reader", "extractive"):
        near = library.ask("Where was Marie Curie born?", shelf, system=system)
        far = Client(f"{url}/shelf").ask("Where was Marie Curie born?", system=system)
        assert (str(far), far.sentences, far.question) == (str(near), near.sentences, near.question)
        assert [hit.passage for hit in far.hits] == [hit.passage for hit in near.hits]
        assert far.system == near.system
        assert far.trace == round_floats(near.trace)  # as in answers.jsonl
        (last,) = Client(f"{url}/shelf").stream("Where was Marie Curie born?", system=system)
        assert last == far


def test_options_and_turns(url: str, shelf: Path) -> None:
    client = Client(f"{url}/shelf")
    asked = "Where was Marie Curie born?"
    far, near = client.ask(asked, retriever="bm25", k=2), library.ask(asked, shelf, retriever="bm25", k=2)
    assert (far.system, far.sentences, len(far.hits)) == (near.system, near.sentences, 2)
    assert client.ask(asked, min_confidence=1).abstained
    from rag.base.types import Turn

    followed = client.ask("When did she move to Paris?", history=[Turn(asked, "Marie Curie was born in Warsaw.")])
    assert "Curie" in followed.question.text


def test_judge_and_attribute(url: str, shelf: Path) -> None:
    client = Client(f"{url}/shelf")
    (passage,) = [hit.passage for hit in client.search("Curie born in Warsaw", k=1)]
    judgement = client.judge("Curie was born in Warsaw in 1867.", [passage])
    assert judgement.verdict == "attributable"
    assert judgement.evidence
    pair = ("Where was Curie born?", "Curie was born in Warsaw in 1867. She liked tea.")
    (near,) = library.attribute([pair], shelf)
    far = client.attribute(*pair)
    assert far.sentences == near.sentences
    assert far.trace == near.trace


def test_commands(rag: Command, url: str, shelf: Path, tmp_path: Path) -> None:
    near = rag("search", "river of Poland", "--index", shelf, "--json").stdout
    assert rag("search", "river of Poland", "--server", f"{url}/shelf", "--json").stdout == near
    assert rag("search", "river of Poland", "--retriever", f"remote:{url}/shelf", "--json").stdout == near
    near = rag("ask", "Where was Marie Curie born?", "--index", shelf).stdout
    assert rag("ask", "Where was Marie Curie born?", "--server", f"{url}/shelf").stdout == near
    one_line_error(rag("search", "x", "--server", f"{url}/nope"), "no index called 'nope'")
    topics = tmp_path / "topics.jsonl"
    topics.write_text('{"id": "1", "question": "river of Poland"}\n{"id": "2", "question": "the"}\n')
    out = tmp_path / "out.run"
    done = rag("search", "--questions", topics, "--server", f"{url}/shelf", "--run", out)
    assert done.returncode == 0, done.stderr
    assert "2: nothing to search for" in done.stderr
    assert "remote(bm25" in out.read_text()
