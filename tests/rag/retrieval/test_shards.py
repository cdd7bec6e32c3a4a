"""A collection in several indexes: the hits of one, and no shard is missing in silence."""

import asyncio
import json
import logging
import random
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs the extra serve")

from rag.api import add_to_index, build_index, open_index, open_retriever, update_index
from rag.base.errors import QuestionError, RagError, UsageError, UserError
from rag.base.types import Hit
from rag.index import postings
from rag.index.retriever_config import RetrieverConfig
from rag.index.statistics import Statistics
from rag.retrieval import Retriever
from rag.retrieval.client import Client
from rag.retrieval.shards import open_shards
from rag.serve import Limits, Service
from rag.serve.app import create_app
from rag.testing import check_retriever
from scripts.browser import serving
from tests.conftest import write_corpus

QUERIES = ["The mill of Aller", "a bridge over the river", "number 077", "salt"]
THINGS = ("mill", "bridge", "clock", "ferry", "tower", "well", "barn")
ROWS = [(f"{n:03}", f"Town {n % 40}", f"The {THINGS[n % 7]} of Aller, number {n:03}, sells salt.") for n in range(100)]
OpenShards = Callable[..., Retriever]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One index of all passages, and four of a quarter each."""
    made = tmp_path_factory.mktemp("towns")
    for name, rows in {"whole": ROWS, **{f"part{n}": ROWS[n::4] for n in range(4)}}.items():
        build_index(write_corpus(made / f"{name}.jsonl", rows), made / f"{name}.index", retrievers=["static"])
    return made


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    served = {f"part{n}": open_index(folder / f"part{n}.index") for n in (2, 3)}
    with serving(create_app(Service(served, limits=Limits(workers=1, passages=1000)))) as address:
        yield address


@pytest.fixture
def shards(folder: Path, tmp_path: Path) -> OpenShards:
    def opened(*places: object, **settings: object) -> Retriever:
        lines = [f"{name} = {value!r}" for name, value in settings.items()]
        listed = ", ".join(f'"{place}"' for place in places)
        text = "\n".join(['name = "towns.v1"', 'kind = "shards"', f"shards = [{listed}]", *lines])
        (tmp_path / "towns.toml").write_text(text + "\n", "utf-8")
        return open_retriever(str(tmp_path / "towns.toml"), folder / "whole.index")

    return opened


def test_vectors_in_shards_give_the_hits_of_one_index(folder: Path, url: str, shards: OpenShards) -> None:
    places = [folder / "part0.index", folder / "part1.index", f"{url}/part2", f"{url}/part3"]
    found = shards(*places, recipe="static")
    assert found.search(QUERIES, 20) == open_retriever("static", folder / "whole.index").search(QUERIES, 20)
    assert found.name == shards(*reversed(places), recipe="static").name
    assert found.name != shards(*places[:3], recipe="static").name


def assert_same(ours: Sequence[Sequence[Hit]], theirs: Sequence[Sequence[Hit]]) -> None:
    """The same passages in the same order; scores may differ by what 32 bits do not tell."""
    for ones, others in zip(ours, theirs, strict=True):
        assert [hit.passage for hit in ones] == [hit.passage for hit in others]
        assert [hit.score for hit in ones] == pytest.approx([hit.score for hit in others], rel=1e-6)


def test_bm25_in_shards_gives_the_hits_of_one_index(folder: Path, url: str, shards: OpenShards) -> None:
    found = shards(folder / "part0.index", folder / "part1.index", f"{url}/part2", f"{url}/part3")
    check_retriever(found, QUERIES)
    whole = open_retriever("bm25", folder / "whole.index")
    for k in (1, 5, 20, 1000):
        assert_same(found.search(QUERIES, k), whole.search(QUERIES, k))
    with pytest.raises(QuestionError):
        found.search(["the"], 3)


def text_of(draw: random.Random, most: int) -> str:
    return " ".join(draw.choices(THINGS, weights=range(1, 8), k=draw.randint(1, most)))


@pytest.mark.parametrize("split", ["spread", "by length", "by headings", "one alone"])
def test_bm25_is_that_of_one_index_however_passages_are_split(tmp_path: Path, split: str) -> None:
    draw = random.Random(5)
    rows = [(f"{n:03}", text_of(draw, 3) if n % 3 else "", text_of(draw, 60)) for n in range(300)]
    key: Callable[[int], object] = {
        "spread": lambda n: n % 3,
        "by length": lambda n: len(rows[n][2]) // 150,
        "by headings": lambda n: bool(rows[n][1]),
        "one alone": lambda n: n == 7,
    }[split]
    build_index(write_corpus(tmp_path / "whole.jsonl", rows), tmp_path / "whole.index")
    for name in {key(n) for n in range(300)}:
        some = [row for n, row in enumerate(rows) if key(n) == name]
        build_index(write_corpus(tmp_path / f"part{name}.jsonl", some), tmp_path / f"part{name}.index")
    whole = open_index(tmp_path / "whole.index")
    places = [str(path) for path in sorted(tmp_path.glob("part*.index"))]
    settings: dict[str, Any] = {"shards": places}
    found = open_shards(whole, RetrieverConfig("t.v1", "shards", settings))
    queries = ["mill", "bridge clock", "tower well barn", "mill mill ferry"]
    for k in (1, 10, 50, 300):  # to the last bit
        assert found.search(queries, k) == open_retriever("bm25", whole).search(queries, k)


def test_shards_are_searched_as_they_are_after_an_update(tmp_path: Path, shards: OpenShards) -> None:
    source = write_corpus(tmp_path / "a.jsonl", ROWS[:20])
    build_index(source, tmp_path / "a.index")
    build_index(write_corpus(tmp_path / "b.jsonl", ROWS[20:30]), tmp_path / "b.index")
    write_corpus(source, [*ROWS[1:20], ("new", "Town", "The windmill of Aller.")])
    update_index(tmp_path / "a.index")
    found = shards(tmp_path / "a.index", tmp_path / "b.index")
    assert [hit.passage.id for hit in found.search(["windmill"], 5)[0]] == ["new"]
    assert {hit.passage.id for hit in found.search(["salt"], 50)[0]} == {row[0] for row in ROWS[1:30]}


def test_a_shard_that_is_a_copy_or_of_another_version(tmp_path: Path, shards: OpenShards) -> None:
    def change(index: str, **values: object) -> None:
        manifest = tmp_path / index / "manifest.json"
        manifest.write_text(json.dumps(json.loads(manifest.read_text("utf-8")) | values), "utf-8")

    for name, rows in (("a", ROWS[:9]), ("b", ROWS[9:20])):
        build_index(write_corpus(tmp_path / f"{name}.jsonl", rows), tmp_path / f"{name}.index")
    shutil.copytree(tmp_path / "a.index", tmp_path / "copy.index")
    change("copy.index", checksum="sha256:" + 64 * "0")
    with pytest.raises(RagError, match=r"copy.index shares files with another index: is it a copy of it\?$"):
        shards(tmp_path / "a.index", tmp_path / "copy.index")
    (meta,) = tmp_path.glob("b.index/*/bm25/meta.json")
    meta.write_text(meta.read_text("utf-8").replace('"row"', '"now"'), "utf-8")
    change("b.index", files={})
    with pytest.raises(RagError, match=r"b.index was built by another version: build it again$"):
        shards(tmp_path / "a.index", tmp_path / "b.index")


def test_statistics_that_no_collection_has_are_refused(folder: Path, url: str) -> None:
    bm25 = open_index(folder / "part0.index").bm25
    (honest,) = bm25.statistics(["mill salt"])
    assert (honest.passages, honest.frequencies["contents"][1]) == (25, 25)
    with pytest.raises(UsageError, match="the statistics are not those of 1 terms"):
        bm25.search_within(["mill"], 3, [honest])
    for wrong in (
        {"passages": 3},
        {"passages": 10**50},
        {"untitled": -1},
        {"lengths": {"contents": float("nan"), "title": 1.0}},
        {"lengths": {"contents": 1.0}},
        {"frequencies": {"contents": (1,), "title": (1, 2)}},
        {"frequencies": {"contents": (99, 1), "title": (0, 0)}},
    ):
        with pytest.raises(UsageError, match="the statistics of BM25 contradict one another"):
            replace(honest, **wrong)
    with pytest.raises(UsageError, match="the statistics of BM25 contradict one another"):
        bm25.search_within(["mill salt"], 3, [replace(honest, lengths={"contents": 0.0, "title": 0.0})])
    client = Client(f"{url}/part2")
    with pytest.raises(RagError, match="retriever 'static' has no statistics: it is not of kind bm25"):
        client.statistics(["mill"], retriever="static")
    with pytest.raises(RagError, match="there are 0 statistics for 1 queries"):
        client.search_each(["mill"], statistics=[])


def test_a_term_that_all_of_millions_of_passages_have_changes_no_score() -> None:
    found = {"contents": (9_000_000,), "title": (0,)}
    here = Statistics(9_000_000, 0, {"contents": 100.0, "title": 2.0}, found)
    assert here.idf("contents", 0) == 0
    assert here.max_growth(Statistics.of([here, here]), {"contents": 1.0, "title": 1.0}) == 1


def test_a_caller_cannot_make_a_server_read_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "_MAX_FETCHED", 50)
    index = build_index(write_corpus(tmp_path / "t.jsonl", ROWS), tmp_path / "t.index")
    (honest,) = index.bm25.statistics(["salt"])
    far = replace(honest, passages=10**9, frequencies={"contents": (1,), "title": (0,)})
    with pytest.raises(UsageError, match="the statistics differ too much from those here"):
        index.bm25.search_within(["salt"], 3, [far])


def test_a_shard_that_dies_is_an_error_or_told(
    folder: Path, shards: OpenShards, caplog: pytest.LogCaptureFixture
) -> None:
    service = Service({"part1": open_index(folder / "part1.index")}, limits=Limits(workers=1))
    with serving(create_app(service)) as address:
        strict = shards(folder / "part0.index", f"{address}/part1")
        told = shards(folder / "part0.index", f"{address}/part1", missing="skip")
        alone = shards(f"{address}/part1", missing="skip")
        assert told.search(QUERIES, 3) == strict.search(QUERIES, 3)
    with pytest.raises(RagError, match=f"^{address}: .*Connection refused"):
        strict.search(QUERIES, 3)
    with caplog.at_level(logging.WARNING):
        assert_same(told.search(["salt"], 60), open_retriever("bm25", folder / "part0.index").search(["salt"], 60))
    (line,) = [record.getMessage() for record in caplog.records]  # it is not asked a second time
    assert line.startswith(f"searched without the shard {address}/part1: {address}: ")
    with pytest.raises(RagError, match="Connection refused"):  # nothing is left
        alone.search(["salt"], 3)
    with pytest.raises(RagError, match="Connection refused"):  # all have to answer at first
        shards(folder / "part0.index", f"{address}/part1", missing="skip")


def test_a_shard_that_answers_too_late_is_an_error_or_told(
    folder: Path, shards: OpenShards, caplog: pytest.LogCaptureFixture
) -> None:
    app = create_app(Service({"part1": open_index(folder / "part1.index")}, limits=Limits(workers=1)))
    late = threading.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401  (ASGI)
        if late.is_set():
            await asyncio.sleep(3)
        await app(scope, receive, send)

    with serving(slow) as address:
        places = folder / "part0.index", f"{address}/part1"
        strict, told = shards(*places, timeout=0.5), shards(*places, timeout=0.5, missing="skip")
        late.set()
        with pytest.raises(RagError, match=f"^{address}: .*0.5 s"):
            strict.search(["salt"], 3)
        with caplog.at_level(logging.WARNING):
            alone = open_retriever("bm25", folder / "part0.index").search(["salt"], 60)
            assert_same(told.search(["salt"], 60), alone)
        assert f"searched without the shard {address}/part1" in caplog.text


def test_a_shard_with_other_passages_than_at_first_is_an_error(
    folder: Path, tmp_path: Path, shards: OpenShards
) -> None:
    service = Service({"part1": open_index(folder / "part1.index")}, limits=Limits(workers=1))
    with serving(create_app(service)) as address:
        found = shards(folder / "part0.index", address)
        service.replace("part1", open_index(folder / "part2.index"))
        with pytest.raises(RagError, match="the index has changed"):
            found.search(["salt"], 3)


def test_shards_that_do_not_fit_together(folder: Path, tmp_path: Path, url: str, shards: OpenShards) -> None:
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
        ([part0], {"recipe": "lucen"}, "no retriever called 'lucen'"),
    ):
        with pytest.raises(UserError, match=message):
            shards(*places, **settings)


# --- building the parts -----------------------------------------------------------------------------------------------


def ids_of(folder: Path) -> set[str]:
    return {passage.id for passage in open_index(folder).store.scan()}


def test_the_shards_of_a_corpus_hold_each_passage_once_and_search_as_one(folder: Path, shards: OpenShards) -> None:
    parts = [folder / f"shard{n}.index" for n in (1, 2, 3)]
    for n, part in enumerate(parts, 1):
        build_index(folder / "whole.jsonl", part, shard=f"{n}/3")
    held = [ids_of(part) for part in parts]
    assert sum(map(len, held)) == len(ROWS)
    assert set.union(*held) == ids_of(folder / "whole.index")
    assert all(held)
    one, several = open_retriever("bm25", folder / "whole.index"), shards(*parts, recipe="bm25")
    for ours, theirs in zip(several.search(QUERIES, 20), one.search(QUERIES, 20), strict=True):
        assert [hit.passage.id for hit in ours] == [hit.passage.id for hit in theirs]


def test_passages_of_a_page_stay_together(tmp_path: Path) -> None:
    rows = [(f"{page}#{n}", f"Page {page}", f"Passage {n} of {page}.") for page in range(40) for n in range(3)]
    source = write_corpus(tmp_path / "pages.jsonl", rows)
    held = []
    for n in (1, 2):
        build_index(source, tmp_path / f"{n}.index", shard=f"{n}/2")
        held.append({identifier.partition("#")[0] for identifier in ids_of(tmp_path / f"{n}.index")})
    assert not held[0] & held[1]
    assert len(held[0] | held[1]) == 40


def test_a_shard_stays_one_when_it_is_changed(tmp_path: Path) -> None:
    documents, more = tmp_path / "notes", tmp_path / "more"
    for folder in (documents, more):
        folder.mkdir()
    for n in range(20):
        (documents / f"note{n}.md").write_text(f"# Note {n}\n\nThe ferry number {n} leaves at noon.\n", "utf-8")
        (more / f"other{n}.md").write_text(f"# Other {n}\n\nThe mill number {n} stands still.\n", "utf-8")
    parts = [tmp_path / f"{n}.index" for n in (1, 2)]
    for n, part in enumerate(parts, 1):
        build_index(documents, part, shard=f"{n}/2")
    (documents / "note3.md").unlink()
    (documents / "note20.md").write_text("# Note 20\n\nThe ferry number 20 leaves at night.\n", "utf-8")
    for part in parts:
        changes = update_index(part)
        assert not changes.changed
        assert len(changes.new) + len(changes.deleted) < 3
        add_to_index(part, more)
    held = [{identifier.partition("#")[0] for identifier in ids_of(part)} for part in parts]
    assert not held[0] & held[1]
    assert held[0] | held[1] == {
        *(f"note{n}.md" for n in range(21) if n != 3),
        *(f"more/other{n}.md" for n in range(20)),
    }


@pytest.mark.parametrize("text", ["0/2", "3/2", "2", "a/b", "1/0", "-1/2", "1/99999", ""])
def test_a_shard_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    source = write_corpus(tmp_path / "a.jsonl", [("a", "A", "A text.")])
    with pytest.raises(UsageError, match="write N/M"):
        build_index(source, tmp_path / "a.index", shard=text)
    assert not (tmp_path / "a.index").exists()
