"""Several indexes as one: the hits of one index of all passages, and each citation leads to its own index."""

import gc
import logging
import shutil
from pathlib import Path
from typing import Any, cast

import pytest

import rag
from rag.api import build_index, locate, open_index, open_retriever
from rag.base.errors import IndexingError, RagError, UsageError
from rag.base.types import Passage
from rag.retrieval.newest import date_of
from rag.testing import check_retriever
from tests.conftest import write_corpus

QUERIES = ["The mill of Aller", "a bridge over the river", "number 077", "salt"]
THINGS = ("mill", "bridge", "clock", "ferry", "tower", "well", "barn")
ROWS = [(f"{n:03}", f"Town {n % 40}", f"The {THINGS[n % 7]} of Aller, number {n:03}, sells salt.") for n in range(100)]
untyped = cast("Any", rag)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One index of all passages, and two of very different size with these passages."""
    made = tmp_path_factory.mktemp("towns")
    for name, rows in {
        "whole": ROWS,
        "few": ROWS[::20],
        "many": [row for row in ROWS if row not in ROWS[::20]],
    }.items():
        build_index(write_corpus(made / f"{name}.jsonl", rows), made / f"{name}.index", retrievers=["static"])
    return made


@pytest.fixture(scope="module")
def manuals(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two indexes of documents whose files have the same name."""
    made = tmp_path_factory.mktemp("manuals")
    for name, text in {"pump": "The pump has a warranty of three years.", "oven": "The oven burns beech wood."}.items():
        (made / name).mkdir()
        (made / name / "readme.md").write_text(f"# The {name}\n\n{text}\n", "utf-8")
        build_index(made / name, made / f"{name}.index", retrievers=[])
    return [made / "pump.index", made / "oven.index"]


@pytest.mark.parametrize("retriever", ["bm25", "static", "fused", "shortlist"])
def test_a_small_and_a_large_index_give_the_hits_of_one(folder: Path, retriever: str) -> None:
    joined = open_index([folder / "few.index", folder / "many.index"])
    found = open_retriever(retriever, joined)
    check_retriever(found, QUERIES, lexical=retriever in ("bm25", "shortlist"))
    for query, expected in zip(
        QUERIES, open_retriever(retriever, folder / "whole.index").search(QUERIES, 100), strict=True
    ):
        hits = found.search([query], 100)[0]
        scores = {hit.passage.id.partition(":")[2]: hit.score for hit in hits}
        assert scores == {hit.passage.id: hit.score for hit in expected}
        assert [hit.score for hit in hits] == [hit.score for hit in expected]


def test_the_index_lives_as_long_as_its_retriever(folder: Path) -> None:
    retriever = open_retriever("bm25", [folder / "few.index", folder / "many.index"])
    gc.collect()
    assert retriever.search(["salt"], 100)[0][0].passage.id.startswith(("few:", "many:"))


def test_citations_of_files_of_one_name_lead_to_their_own_index(manuals: list[Path]) -> None:
    index = open_index(manuals)
    for question, name in (("How long is the warranty of the pump?", "pump"), ("What does the oven burn?", "oven")):
        (citation, *_) = rag.ask(question, index, min_confidence=0.0).citations
        assert citation.passage == f"{name}:readme.md#1"
        assert locate(citation, index).name == f"{name}:readme.md"
    assert (index.name, index.manifest["passages"]) == ("pump+oven", 2)
    assert index.store.get("readme.md#1") is index.store.get("other:readme.md#1") is None


def test_a_dict_names_the_indexes(manuals: list[Path]) -> None:
    hits = rag.search("warranty", {"old": manuals[0], "new": open_index(manuals[1])})
    assert [hit.passage.id for hit in hits] == ["old:readme.md#1"]


def test_a_date_in_the_name_of_an_index_is_not_that_of_its_documents() -> None:
    assert date_of(Passage("tour-2026:minutes-2024-03-14.md#1")) == (2024, 3, 14)
    assert date_of(Passage("tour-2026:rules.md#1")) is None


def test_a_list_of_one_is_that_index(manuals: list[Path]) -> None:
    assert open_index(manuals[:1]).name == "pump.index"


def test_vectors_that_one_index_lacks_are_left_out_with_a_warning(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(folder / "few.index", tmp_path / "few.index")
    build_index(write_corpus(tmp_path / "bare.jsonl", ROWS[:3]), tmp_path / "bare.index", retrievers=[])
    recipe = tmp_path / "mine.toml"
    recipe.write_text('name = "mine.v1"\nkind = "fallback"\nchoices = ["fused", "bm25"]\n', "utf-8")
    with caplog.at_level(logging.WARNING):
        found = open_retriever(str(recipe), [tmp_path / "few.index", tmp_path / "bare.index"])
    assert found.name == "bm25.v1"
    (line,) = caplog.messages
    assert line.startswith("few+bare: searched without vectors, as bare.index has none")
    assert "bare.index --retriever fused" in line
    with pytest.raises(IndexingError, match=r"has no data of 'static.v1'"):
        open_retriever("static", [tmp_path / "few.index", tmp_path / "bare.index"])


def test_what_cannot_be_one_is_told_in_one_line(manuals: list[Path], tmp_path: Path) -> None:
    pump, oven = manuals
    shutil.copytree(pump, tmp_path / "copy.index")
    for sources, error, reason in (
        ([pump, pump], UsageError, "two indexes are called 'pump'"),
        ({"a": pump, "b": pump}, UsageError, "b has the same passages as a"),
        ([pump, tmp_path / "copy.index"], UsageError, "copy has the same passages as pump"),
        ([pump, tmp_path / "none.index"], IndexingError, "no index at"),
        ({"a:b": pump, "c": oven}, UsageError, "needs a name without ':' and '\\+', found 'a:b'"),
        ([pump, None], IndexingError, "handbook cannot be searched with other indexes"),
        ([], UsageError, "two or more indexes"),
        ([pump, 3], UsageError, "index should be an index folder or an open index, found int"),
        ({"a": open_index(manuals), "b": pump}, UsageError, "pump\\+oven is several indexes already"),
    ):
        with pytest.raises(error, match=reason) as raised:
            untyped.open_index(sources)
        assert "\n" not in str(raised.value)
    with pytest.raises(IndexingError, match="list the documents of each"):
        untyped.list_documents(manuals)


def test_indexes_of_different_analyzers_are_refused(manuals: list[Path], tmp_path: Path) -> None:
    shutil.copytree(manuals[1], tmp_path / "old.index")
    manifest = tmp_path / "old.index" / "manifest.json"
    manifest.write_text(manifest.read_text("utf-8").replace("english.v2", "english.v1"), "utf-8")
    with pytest.raises(IndexingError, match=r"old and pump .*different analyzers \(english.v1 and english.v2\)"):
        open_index([manuals[0], tmp_path / "old.index"])


def test_a_retriever_whose_scores_do_not_compare_is_refused(manuals: list[Path]) -> None:
    with pytest.raises(RagError, match="retriever lucene: its scores in pump\\+oven cannot be compared"):
        open_retriever("lucene", manuals)
