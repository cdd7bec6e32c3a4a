"""A collection in several indexes: the hits of one, and no shard is missing in silence."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs the extra serve")

from rag.api import build_index, open_index, open_retriever
from rag.errors import QuestionError, RagError, UserError
from rag.retrievers import Retriever
from rag.serve import Limits, Service
from rag.serve.app import create_app
from rag.testing import check_retriever
from scripts.browser import serving
from tests.conftest import write_corpus

QUERIES = ["The mill of Aller", "a bridge over the river", "number 077", "salt"]
THINGS = ("mill", "bridge", "clock", "ferry", "tower", "well", "barn")
ROWS = [(f"{n:03}", f"Town {n % 40}", f"The {THINGS[n % 7]} of Aller, number {n:03}, sells salt.") for n in range(200)]
Recipe = Callable[..., Retriever]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One index of all passages, and four of a quarter each."""
    made = tmp_path_factory.mktemp("towns")
    for name, rows in {"whole": ROWS, **{f"part{n}": ROWS[n::4] for n in range(4)}}.items():
        build_index(write_corpus(made / f"{name}.jsonl", rows), made / f"{name}.index", recipes=["static"])
    return made


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    served = {f"part{n}": open_index(folder / f"part{n}.index") for n in (2, 3)}
    with serving(create_app(Service(served, limits=Limits(workers=1, passages=1000)))) as address:
        yield address


@pytest.fixture
def shards(folder: Path, tmp_path: Path) -> Recipe:
    def opened(*places: object, **settings: object) -> Retriever:
        lines = [f"{name} = {value!r}" for name, value in settings.items()]
        listed = ", ".join(f'"{place}"' for place in places)
        text = "\n".join(['name = "towns.v1"', 'kind = "shards"', f"shards = [{listed}]", *lines])
        (tmp_path / "towns.toml").write_text(text + "\n", "utf-8")
        return open_retriever(str(tmp_path / "towns.toml"), folder / "whole.index")

    return opened


def test_vectors_in_shards_give_the_hits_of_one_index(folder: Path, url: str, shards: Recipe) -> None:
    places = [folder / "part0.index", folder / "part1.index", f"{url}/part2", f"{url}/part3"]
    found = shards(*places, recipe="static")
    assert found.search(QUERIES, 20) == open_retriever("static", folder / "whole.index").search(QUERIES, 20)
    assert found.name == shards(*reversed(places), recipe="static").name
    assert found.name != shards(*places[:3], recipe="static").name


def test_bm25_in_shards_finds_the_same_and_keeps_the_contract(folder: Path, url: str, shards: Recipe) -> None:
    found = shards(folder / "part0.index", folder / "part1.index", f"{url}/part2", f"{url}/part3")
    check_retriever(found, QUERIES)
    whole = open_retriever("bm25", folder / "whole.index")
    for ours, theirs in zip(found.search(QUERIES, 200), whole.search(QUERIES, 200), strict=True):
        assert {hit.passage for hit in ours} == {hit.passage for hit in theirs}
    (first,), (other,) = found.search(["number 077"], 1)[0], whole.search(["number 077"], 1)[0]
    assert first.passage == other.passage
    assert first.score == pytest.approx(other.score, rel=0.3)
    with pytest.raises(QuestionError):
        found.search(["the"], 3)


def test_a_shard_that_dies_is_an_error_or_told(folder: Path, shards: Recipe, caplog: pytest.LogCaptureFixture) -> None:
    service = Service({"part1": open_index(folder / "part1.index")}, limits=Limits(workers=1))
    with serving(create_app(service)) as address:
        strict = shards(folder / "part0.index", f"{address}/part1")
        told = shards(folder / "part0.index", f"{address}/part1", missing="skip")
        alone = shards(f"{address}/part1", missing="skip")
        assert told.search(QUERIES, 3) == strict.search(QUERIES, 3)
    with pytest.raises(RagError, match=f"^{address}: .*Connection refused"):
        strict.search(QUERIES, 3)
    with caplog.at_level(logging.WARNING):
        assert told.search(["salt"], 60) == open_retriever("bm25", folder / "part0.index").search(["salt"], 60)
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(f"searched without the shard {address}/part1: {address}: ")
    with pytest.raises(RagError, match="Connection refused"):  # nothing is left
        alone.search(["salt"], 3)
    with pytest.raises(RagError, match="Connection refused"):  # all have to answer at first
        shards(folder / "part0.index", f"{address}/part1", missing="skip")


def test_a_shard_with_other_passages_than_at_first_is_an_error(folder: Path, tmp_path: Path, shards: Recipe) -> None:
    service = Service({"part1": open_index(folder / "part1.index")}, limits=Limits(workers=1))
    with serving(create_app(service)) as address:
        found = shards(folder / "part0.index", address)
        service.replace("part1", open_index(folder / "part2.index"))
        with pytest.raises(RagError, match="the index has changed"):
            found.search(["salt"], 3)


def test_shards_that_do_not_fit_together(folder: Path, tmp_path: Path, url: str, shards: Recipe) -> None:
    part0 = folder / "part0.index"
    with pytest.raises(RagError, match=f"^{url}/part2 holds the same passages as .*part2.index$"):
        shards(folder / "part2.index", f"{url}/part2")
    rows = [*ROWS[1::4], ROWS[0]]
    build_index(write_corpus(tmp_path / "overlap.jsonl", rows), tmp_path / "overlap.index")
    with pytest.raises(RagError, match=r"^two shards have the passage '000'$"):
        shards(part0, tmp_path / "overlap.index").search(["number 000"], 3)
    for places, settings, message in (
        ([], {}, "shards should be 1 to 256 folders"),
        ([part0, part0], {}, "a shard is named twice"),
        ([part0], {"missing": "ignore"}, "missing should be one of error, skip, found 'ignore'"),
        ([part0], {"recip": "bm25"}, "unknown setting 'recip' of kind shards"),
        ([tmp_path / "nowhere.index"], {}, "no index at"),
        ([f"{url}/nope"], {}, "no index called 'nope'"),
        ([part0], {"recipe": "lucen"}, "no recipe called 'lucen'"),
    ):
        with pytest.raises(UserError, match=message):
            shards(*places, **settings)
