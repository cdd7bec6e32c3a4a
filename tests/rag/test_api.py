"""`import rag`: what a program builds, opens, searches, asks and attributes; paths are strings or `Path`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import rag
import rag.answer.conversation
from autoais.base.answers import CitedAnswer
from autoais.base.types import CitedSentence, Passage
from autoais.judges.lexical import LexicalJudge
from rag.api import add_retriever, check_retrievers
from rag.base.errors import FormatError, IndexingError, QuestionError, RagError, UsageError, UserError
from rag.base.types import Answer, Question
from rag.documents.corpus import Corpus
from rag.index.index import Index
from rag.retrieval import open_retriever
from tests.conftest import SHELF, write_corpus

# For wrong calls, which a type checker would refuse too.
untyped: Any = rag
conversations: Any = rag.answer.conversation

CAPITAL = "What is the capital of Poland?"
BORN = ("Who was Curie?", "Curie was born in Warsaw in 1867 [3]. Penguins swim well.")


@pytest.fixture
def index(shelf: Path) -> Index:
    return rag.open_index(shelf)


# --- indexes ---------------------------------------------------------------------------------------------------


def test_the_size_of_the_sources_is_found_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(30):
        (tmp_path / "docs" / f"{n}.md").parent.mkdir(exist_ok=True)
        (tmp_path / "docs" / f"{n}.md").write_text(f"# Part {n}\n\nThe lamp number {n} is red.\n")
    walks: list[Corpus] = []
    total = cast("property", Corpus.bytes_total).fget
    assert total is not None

    def counted(corpus: Corpus) -> int:
        walks.append(corpus)
        return int(total(corpus))

    monkeypatch.setattr(Corpus, "bytes_total", property(counted))
    told: list[int] = []
    rag.build_index(tmp_path / "docs", tmp_path / "i.index", retrievers=[], progress=lambda *said: told.append(said[2]))
    assert len(told) >= 30
    assert len(set(told)) == len(walks) == 1


def test_an_index_is_built_of_paths_as_strings_and_opened(corpus: Path, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    built = rag.build_index(
        str(corpus), to=str(tmp_path / "i.index"), progress=lambda what, done, total: told.append((what, done, total))
    )
    assert isinstance(built, Index)
    assert built.manifest["passages"] == len(SHELF)
    assert told[-1] == ("indexing", corpus.stat().st_size, corpus.stat().st_size)
    for folder in (str(tmp_path / "i.index"), tmp_path / "i.index"):
        assert rag.open_index(folder).manifest == built.manifest
    assert repr(built) == f"Index('i.index', {len(SHELF)} passages)"
    assert rag.open_index().name == rag.open_index(None).name == "handbook"


def test_an_index_is_built_of_several_sources_and_replaced(corpus: Path, tmp_path: Path) -> None:
    more = write_corpus(tmp_path / "more.jsonl", [("e#1", "Oder", "The Oder is a river too.")])
    home = tmp_path / "i.index"
    assert rag.build_index([str(corpus), more], home).manifest["passages"] == len(SHELF) + 1
    with pytest.raises(IndexingError, match=r"already exists: rag index add or update changes it"):
        rag.build_index(more, home)
    assert rag.build_index(more, home, replace=True).manifest["passages"] == 1
    with pytest.raises(IndexingError, match="does not exist"):
        rag.build_index(tmp_path / "gone", home)
    with pytest.raises(IndexingError, match="no source"):
        rag.build_index([], home)
    assert rag.open_index(home).manifest["passages"] == 1


def test_broken_lines_are_refused_or_skipped(corpus: Path, tmp_path: Path) -> None:
    corpus.write_text(corpus.read_text("utf-8") + "not json\n", "utf-8")
    with pytest.raises(FormatError, match=r"shelf\.jsonl:7"):
        rag.build_index(corpus, tmp_path / "i.index")
    assert rag.build_index(corpus, tmp_path / "i.index", skip_bad=True).manifest["skipped"] == 1
    with pytest.raises(FormatError, match="field '_id' is missing"):
        rag.build_index(corpus, tmp_path / "i.index", format="beir", replace=True)
    with pytest.raises(UserError, match="no corpus format called 'nope'"):
        rag.build_index(corpus, tmp_path / "i.index", format="nope")


def test_documents_without_passages_are_told_with_what_was_left_out(tmp_path: Path) -> None:
    page = tmp_path / "search.html"
    page.write_text('<h1 id="search-documentation">Search</h1>', "utf-8")
    said: list[str] = []
    with pytest.raises(IndexingError, match="the corpus holds no passages"):
        rag.build_index(page, tmp_path / "home", log=said.append)
    assert said[-1] == "left out of documents: 1 page for searching"


def test_retrievers_add_their_parts(corpus: Path, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []

    def tell(what: str, done: int, total: int) -> None:
        told.append((what, done, total))

    home = tmp_path / "i.index"
    said: list[str] = []
    built = rag.build_index(corpus, home, retrievers=["fused", "bm25"], memory="1GiB", progress=tell, log=said.append)
    assert told[-1] == ("static encoded", len(SHELF), len(SHELF))
    assert said[0].startswith("needs about ")
    assert said[1] == f"{len(SHELF)} passages in {home}, 0 skipped"
    assert said[-2:] == [f"static was added to {home}", "bm25: adds nothing to the index"]
    assert rag.search("river", built, retriever="fused")
    assert add_retriever(str(home), "fused") == ["static"]
    assert add_retriever(home, "bm25-rerank") == []


def test_retrievers_that_cannot_be_read_are_refused_before_anything_is_built(corpus: Path, tmp_path: Path) -> None:
    home = tmp_path / "i.index"
    one_string: Any = "static"
    with pytest.raises(UsageError, match=r"retrievers should be a list of names, found one string; write \['static'\]"):
        rag.build_index(corpus, home, retrievers=one_string)
    with pytest.raises(RagError, match="no retriever called 'nope'"):
        rag.build_index(corpus, home, retrievers=["static", "nope"])
    with pytest.raises(RagError, match="'much' is not a size"):
        rag.build_index(corpus, home, retrievers=["static"], memory="much")
    with pytest.raises(RagError, match="no retriever called 'nope'"):
        check_retrievers(["nope"])
    assert not home.exists()


def test_generators_are_lists_too(tmp_path: Path) -> None:
    (tmp_path / "docs" / "drafts").mkdir(parents=True)
    (tmp_path / "docs" / "a.md").write_text("# Pump\n\nThe pump is red.\n")
    (tmp_path / "docs" / "drafts" / "b.md").write_text("# Secret\n\nThe password is hunter2.\n")
    home = tmp_path / "i.index"
    built = untyped.build_index(
        tmp_path / "docs", home, exclude=(glob for glob in ["drafts/**"]), retrievers=(name for name in ["static"])
    )
    assert [passage.id for passage in built.store.scan()] == ["a.md#1"]
    assert rag.search("pump", built, retriever="static")
    shards = untyped.build_shards(tmp_path / "docs", tmp_path / "shards", 2, retrievers=(name for name in ["bm25"]))
    assert shards.name == "shards.toml"


def test_a_part_that_does_not_fit_leaves_an_index_and_says_so(corpus: Path, tmp_path: Path) -> None:
    home = tmp_path / "i.index"
    with pytest.raises(RagError, match=r"i\.index is built without static: add_retriever \(--retriever\) adds it$"):
        rag.build_index(corpus, home, retrievers=["static"], memory=1)
    assert add_retriever(home, "static") == ["static"]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda to: untyped.build_index("docs", to, shard=2), "shard should be a string such as '2/8', found int"),
        (lambda to: untyped.build_index("docs", to / ("a" * 300)), "cannot be a folder: File name too long"),
        (lambda to: untyped.build_index("docs", "a\0b"), "cannot be a folder: it has a null character"),
        (lambda _: untyped.build_index("docs", ""), "to should be a folder, found an empty text"),
        (lambda to: untyped.build_index("docs", to, retrievers=["static"], memory=-1), "memory should be at least 1"),
        (
            lambda _: untyped.add_retriever(None, "static"),
            r"index should be an index folder \(str or Path\), found None",
        ),
        (lambda to: untyped.plan_index(to, passages=3.5), "passages should be a number, or a text such as '8GiB'"),
        (
            lambda _: untyped.open_system("reader", retriever=3),
            "retriever should be a name, a .toml file or an open retriever",
        ),
        (
            lambda _: untyped.search("river", retriever=b"bm25"),
            "retriever should be a name, a .toml file or an open retriev",
        ),
    ],
)
def test_wrong_calls_are_told_in_one_line(call: Callable[[Path], object], told: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=told):
        call(tmp_path)


# --- searching and asking --------------------------------------------------------------------------------------


def test_an_open_retriever_is_as_good_as_its_name(index: Index, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('name = "own.v1"\nkind = "bm25"\n[weights]\ncontents = 1.0\ntitle = 0.5\n')
    retriever = rag.open_retriever(own, index)
    assert rag.open_retriever(retriever) is retriever
    assert rag.search("river", retriever=retriever) == rag.search("river", index, retriever=own)
    assert rag.ask(CAPITAL, index, retriever=retriever) == rag.ask(CAPITAL, index, retriever=str(own))
    (attributed,) = rag.attribute([BORN], index, retriever=retriever)
    assert attributed.sentences[0].citations


def test_search_takes_an_index_its_folder_or_none(index: Index, shelf: Path) -> None:
    found = rag.search("longest river", index, k=2)
    assert [hit.passage.id for hit in found] == ["b#2", "c#1"]
    assert rag.search("longest river", str(shelf), k=2) == rag.search("longest river", shelf, k=2) == found
    assert rag.search("longest river", index) == open_retriever("bm25", index).search(["longest river"], 10)[0]
    assert rag.search("longest river", index, retriever="reranked", k=1)[0].passage.id == "b#2"
    assert rag.search("What is citation precision?", k=1)[0].passage.title == "Citation metrics"


def test_search_refuses_what_cannot_be_searched_for(index: Index) -> None:
    several: Any = ["river"]
    with pytest.raises(UsageError, match=r"query should be a string .*, found list"):
        rag.search(several, index)
    with pytest.raises(QuestionError, match="only stop words"):
        rag.search("the", index)
    with pytest.raises(RagError, match="k must be at least 1"):
        rag.search("river", index, k=0)
    with pytest.raises(IndexingError, match="no index at"):
        rag.search("river", "no/such/index")


def test_ask_answers_with_the_system_that_was_named_or_opened(index: Index, shelf: Path) -> None:
    answer = rag.ask(CAPITAL, index)
    assert str(answer) == "Warsaw is the capital of Poland [1]. It lies on the Vistula river [1]."
    assert "quotes" in answer.system
    assert rag.ask(CAPITAL, str(shelf)) == answer
    assert rag.ask(Question("7", CAPITAL), shelf, system="extractive").question.id == "7"
    opened = rag.open_system("extractive", index, k=3)
    assert rag.ask(CAPITAL, system=opened) == opened.ask(CAPITAL)
    assert rag.ask("What is citation precision?").hits[0].passage.title == "Citation metrics"


def test_an_open_system_takes_neither_index_nor_options(index: Index) -> None:
    opened = rag.open_system("extractive", index)
    with pytest.raises(UsageError, match="open_system"):
        rag.ask(CAPITAL, index, system=opened)
    with pytest.raises(UsageError, match="open_system"):
        rag.ask(CAPITAL, system=opened, k=3)


def test_a_system_is_opened_with_its_options(index: Index, shelf: Path) -> None:
    assert rag.open_system(index=shelf).name.startswith("bm25.v1>")
    assert rag.open_system("reader", str(shelf), retriever="bm25", k=3).name.startswith("bm25.v1@3+quotes")
    assert (
        rag.open_system("reader", index, retriever=None, k=None, seed=None).name
        == rag.open_system("reader", index).name
    )
    sure = rag.open_system("reader", index, min_confidence=1.0).ask(CAPITAL)
    assert sure.abstained
    assert rag.ask(CAPITAL, index, min_confidence=0).short_answer == "Warsaw"


def test_options_and_systems_that_there_are_not_are_named(index: Index) -> None:
    with pytest.raises(
        UsageError, match=r"'confidence'; .*retriever, k, min_confidence, prompt, context, temperature, seed"
    ):
        rag.open_system("reader", index, confidence=1.0)  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="'topk'"):
        rag.ask(CAPITAL, index, topk=3)  # type: ignore[call-arg]
    with pytest.raises(RagError, match=r"'extractive' has no option 'min_confidence'; .*: reader"):
        rag.open_system("extractive", index, min_confidence=0.5)
    with pytest.raises(RagError, match="no system called 'nope'; there are: reader, extractive"):
        rag.open_system("nope", index)
    with pytest.raises(RagError, match="between 0 and 1, found 2"):
        rag.ask(CAPITAL, index, min_confidence=2)


# --- attributing -----------------------------------------------------------------------------------------------


def cites(answers: list[Answer]) -> list[list[list[str]]]:
    return [[list(sentence.cites) for sentence in answer.sentences] for answer in answers]


def test_pairs_get_sources_and_their_markers_are_set_aside(index: Index, shelf: Path) -> None:
    found = rag.attribute([BORN, (CAPITAL, "Warsaw is the capital of Poland.")], index)
    assert cites(found) == [[["a#2"], []], [["b#1"]]]
    assert [answer.question.id for answer in found] == ["q1", "q2"]
    assert str(found[0]) == "Curie was born in Warsaw in 1867 [1]. Penguins swim well."
    assert found[0].sentences[0].citations[0].quote == "Curie was born in Warsaw in 1867."
    assert cites(rag.attribute(iter([BORN]), str(shelf), judge=LexicalJudge(), k=3)) == [[["a#2"], []]]
    assert rag.attribute([], index) == []
    (nothing,) = rag.attribute([("Who?", "")], index)
    assert nothing.abstained


def test_answers_of_any_kind_get_sources(index: Index) -> None:
    sentence = CitedSentence("Curie was born in Warsaw in 1867.")
    passages = {"z": Passage("z", text="Something else.")}
    theirs = CitedAnswer("x", "Who was Curie?", (sentence,), passages, answers=("Curie",), gold=("a#2",))
    row = {"id": "r", "question": "Who was Curie?", "answer": "Curie was born in Warsaw in 1867 [1].", "system": "s"}
    ours = rag.ask(CAPITAL, index, system="extractive")
    found = rag.attribute([theirs, row, ours], index, judge="lexical")
    assert cites(found) == [[["a#2"]], [["a#2"]], [["b#1"]]]
    assert [answer.question.id for answer in found] == ["x", "r", "q1"]
    assert (found[0].question.answers, found[0].question.gold) == (("Curie",), ("a#2",))
    assert found[1].system.startswith("s>post-hoc")


def test_what_nothing_supports_is_dropped_where_that_is_asked_for(index: Index) -> None:
    (answer,) = rag.attribute([BORN], index, judge="lexical", revise="drop")
    assert answer.text == "Curie was born in Warsaw in 1867."
    assert answer.trace["revised"][0]["before"] == "Penguins swim well."


@pytest.mark.parametrize(
    ("answers", "error", "says"),
    [
        ("Curie was born in Warsaw.", UsageError, "found one string"),
        (BORN, UsageError, "answer 1: "),
        ([BORN, ("Who?",)], UsageError, "answer 2: should be a pair of strings"),
        ([("Who?", "Curie.", "a#1")], UsageError, "answer 1: should be a pair of strings"),
        ([("Who?", None)], UsageError, "answer 1: should be a pair of strings"),
        ([7], UsageError, "answer 1: .*found int"),
        ([{"id": "1"}], FormatError, "answer 1: field 'question' is missing"),
        ([{"id": "1", "question": "?", "answer": 7}], FormatError, "answer 1: field 'answer'"),
        ([{"id": "1", "question": "?", "answer": "x", "passages": 7}], FormatError, "answer 1: field 'passages'"),
        ([{"id": "1", "question": "?", "answer": "x", "passages": None}], FormatError, "answer 1: field 'passages'"),
    ],
)
def test_what_is_no_answer_is_one_clear_error(
    index: Index,
    answers: Any,  # noqa: ANN401
    error: type[Exception],
    says: str,
) -> None:
    with pytest.raises(error, match=says):
        rag.attribute(answers, index, judge="lexical")


def test_attribute_names_what_there_is_not(index: Index) -> None:
    with pytest.raises(UserError, match="no judge called 'nope'"):
        rag.attribute([BORN], index, judge="nope")
    with pytest.raises(RagError, match="no retriever called 'nope'"):
        rag.attribute([BORN], index, retriever="nope")
    with pytest.raises(RagError, match="no language model called 'nope'"):
        rag.attribute([BORN], index, judge="lexical", revise="nope")


# --- the module ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda index: untyped.ask(None, index), "question should be a string or a Question .*, found NoneType"),
        (lambda index: untyped.ask([CAPITAL], index), "question should be .* takes a list.*, found list"),
        (lambda index: untyped.ask(CAPITAL, 7), "index should be an index folder or an open index, found int"),
        (lambda index: untyped.ask(CAPITAL, index, k="3"), "k should be an int, found str"),
        (lambda index: untyped.ask(CAPITAL, index, k=0), "k must be at least 1, not 0"),
        (lambda index: untyped.ask(CAPITAL, index, min_confidence="high"), "min_confidence should be a number"),
        (lambda index: untyped.ask(CAPITAL, index, system=None), "system should be a name such as 'reader' or an open"),
        (lambda index: untyped.open_system(index), "system should be a name such as 'reader', found Index"),
        (lambda index: untyped.open_system("reader", index).answer(None), "questions should be a list"),
        (lambda index: untyped.search(CAPITAL, index, k=2.5), "k should be an int, found float"),
        (
            lambda index: untyped.search(CAPITAL, index, retriever=None),
            "retriever should be a name, a .toml file or an",
        ),
        (lambda index: untyped.open_retriever("bm25", index).search([CAPITAL, None], 3), "query should be a string"),
        (lambda index: untyped.open_retriever("bm25", index).search(None, 3), "queries should be a list of strings"),
        (lambda index: untyped.open_index(index), "index should be an index folder"),
        (lambda index: untyped.build_index(5, "x.index"), "sources should be a path or a list of paths, found int"),
        (lambda index: untyped.build_index(["x", 5], "x.index"), "source should be a path"),
        (lambda index: untyped.build_index("x", None), "to should be a folder"),
        (lambda index: untyped.build_index("x", "x.index", retrievers=5), "retrievers should be a list of names"),
        (lambda index: untyped.attribute(None, index), "answers should be a list"),
        (lambda index: untyped.attribute([BORN], index, judge=5), "judge should be a name"),
        (lambda index: conversations.Conversation("reader"), "system should be an open system"),
    ],
)
def test_a_wrong_call_is_one_line(index: Index, call: Callable[[Any], object], says: str) -> None:
    with pytest.raises(UserError, match=says) as caught:
        call(index)
    assert "\n" not in str(caught.value)


def test_numbers_and_lists_of_numpy_are_taken(index: Index) -> None:
    queries: Any = np.array([CAPITAL])
    two: Any = np.int64(2)
    assert rag.open_retriever("bm25", index).search(queries, two) == [rag.search(CAPITAL, index, k=2)]


def test_a_retriever_is_opened_over_a_folder_or_the_handbook(shelf: Path) -> None:
    assert rag.open_retriever("bm25", str(shelf)).search([CAPITAL], 3) == [rag.search(CAPITAL, shelf, k=3)]
    assert rag.open_retriever().search(["citation precision"], 1)[0][0].passage.text


def test_a_name_that_there_is_not_is_an_attribute_error() -> None:
    assert dir(rag) == rag.__all__
    assert rag.__version__[0].isdigit()
    with pytest.raises(AttributeError, match="module 'rag' has no attribute 'nope'"):
        rag.nope  # type: ignore[attr-defined]  # noqa: B018
