"""Vectors in databases of others: the hits are those of an exact search, and what fails is told in one line."""

import importlib.util
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rag
from rag.databases import DATABASES
from rag.encoders import open_encoder
from rag.errors import IndexingError, RagError
from rag.index.index import Index
from rag.index.open import open_index
from rag.index.recipes import Recipe, read_recipe
from rag.retrievers import database, open_retriever
from rag.testing import check_retriever

QUERIES = ["The mill of Aller", "a bridge over the river", "who repaired the clock", "salt"]
ROWS = 330
THINGS = ("mill", "bridge", "clock", "ferry", "tower", "well", "barn")
MODULES = {"qdrant": "qdrant_client", "lancedb": "lancedb", "milvus": "milvus_lite", "pgvector": "pgserver"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("towns")
    rows = [
        {
            "docid": f"{n:03}",
            "title": f"Town {n % 60}",
            "text": f"The {THINGS[n % 7]} of Aller {n} sells salt for {n * n % 97}.",
        }
        for n in range(ROWS)
    ]
    (folder / "towns.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    rag.build_index(folder / "towns.jsonl", folder / "towns.index", recipes=["static"])
    return folder / "towns.index"


@pytest.fixture(scope="module")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pgserver = pytest.importorskip("pgserver", reason="needs pgserver, a PostgreSQL with pgvector")
    server = pgserver.get_server(tmp_path_factory.mktemp("postgresql"))
    yield server.get_uri()
    server.cleanup()


@pytest.fixture(params=sorted(MODULES))
def recipe(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    name = request.param
    if importlib.util.find_spec(MODULES[name]) is None:
        pytest.skip(f"needs {MODULES[name]}")
    monkeypatch.setattr(database, "_BATCH", 100)
    shipped = read_recipe(name)
    if name != "pgvector":
        return shipped
    url = request.getfixturevalue("postgresql")
    return Recipe(shipped.name, shipped.kind, {**shipped.settings, "url": url})


def silent(done: int, what: str) -> None:
    """Progress that nobody watches."""


def filled(folder: Path, chosen: Recipe) -> Index:
    index = open_index(folder)
    database.add(index, chosen, None, silent)
    return index


def test_the_hits_are_those_of_an_exact_search(made: Path, recipe: Recipe) -> None:
    index = filled(made, recipe)
    found = database.open_database(index, recipe)
    assert found.name == f"{recipe.name}/static.v1/{recipe.settings['database']}"
    assert found.search(QUERIES, 10) == open_retriever("static", index).search(QUERIES, 10)
    check_retriever(found, QUERIES, lexical=False)


def test_a_stopped_run_goes_on(made: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = Recipe(f"stopped-{recipe.settings['database']}.v1", recipe.kind, recipe.settings)
    index, steps = open_index(made), list[int]()

    def stop(done: int, what: str) -> None:
        steps.append(done)
        if done == 200:
            raise KeyboardInterrupt

    if "url" in chosen.settings:  # the collection of the other test
        import psycopg

        with psycopg.connect(chosen.settings["url"]) as connected:
            connected.execute(f"DROP TABLE IF EXISTS {database._collection(index, open_encoder('static'))}")
    with pytest.raises(KeyboardInterrupt):
        database.add(index, chosen, None, stop)
    with pytest.raises(IndexingError, match="has no part 'stopped-"):
        database.open_database(index, chosen)
    steps.clear()
    monkeypatch.setattr(database, "_BATCH", 150)  # batches need not be the same
    database.add(index, chosen, None, lambda done, what: steps.append(done))
    assert steps == [300, 330, 330]
    hits = open_retriever("static", index).search(QUERIES, 5)
    assert database.open_database(index, chosen).search(QUERIES, 5) == hits


# --- a database of ours, that fails ---------------------------------------------------------------------------------


class Failing:
    """Keeps vectors in memory, and does what the test says."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[int, np.ndarray[Any, np.dtype[np.float32]]]] = {}
        self.proposes: Sequence[Sequence[int]] | None = None
        self.raises: Exception | None = None
        self.loses = 0
        self.asked: list[tuple[str, str | None, float]] = []

    def count(self, collection: str) -> int | None:
        if self.raises is not None:
            raise self.raises
        return None if collection not in self.kept else max(0, len(self.kept[collection]) - self.loses)

    def create(self, collection: str, dimension: int) -> None:
        self.kept[collection] = {}

    def add(self, collection: str, first: int, vectors: Any) -> None:  # noqa: ANN401
        self.kept[collection].update(enumerate(vectors, first))

    def finish(self, collection: str) -> None:
        pass

    def nearest(self, collection: str, queries: Any, count: int) -> list[Sequence[int]]:  # noqa: ANN401
        if self.raises is not None:
            raise self.raises
        return list(self.proposes) if self.proposes is not None else [list(self.kept[collection])] * len(queries)

    def close(self) -> None:
        pass


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Failing:
    made = Failing()

    def connect(url: str, key: str | None, timeout: float) -> Failing:
        made.asked.append((url, key, timeout))
        return made

    monkeypatch.setitem(DATABASES._known, "failing", connect)
    return made


def chosen(**settings: object) -> Recipe:
    return Recipe("failing.v1", "database", {"database": "failing", "base": "static", "url": "http://db:1", **settings})


def test_where_and_with_which_key(made: Path, failing: Failing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_DATABASE_KEY", "the secret")
    filled(made, chosen(timeout=5))
    filled(made, Recipe("folder.v1", "database", {"database": "failing", "base": "static"}))
    assert failing.asked == [
        ("http://db:1", "the secret", 5.0),
        (str(made / "databases" / "folder.v1"), "the secret", 30.0),
    ]
    failing.raises = ValueError("401: wrong key the secret\nmore")
    with pytest.raises(RagError, match=r"failing at http://db:1: 401: wrong key \[key\]$"):
        database.open_database(open_index(made), chosen(timeout=5))


def test_another_answer_than_promised_is_an_error(made: Path, failing: Failing) -> None:
    index = filled(made, chosen())
    found = database.open_database(index, chosen())
    failing.proposes = [[0, ROWS]]
    with pytest.raises(RagError, match=r"failing at http://db:1: rag_\w+ proposes rows that the index does not have"):
        found.search(["salt"], 3)
    failing.proposes = []
    with pytest.raises(RagError, match="0 results for 1 queries"):
        found.search(["salt"], 3)
    failing.proposes = [[7, 7, 7]]
    assert [hit.passage.id for hit in found.search(["salt"], 3)[0]] == ["007"]
    failing.raises = TimeoutError("timed out")
    with pytest.raises(RagError, match="failing at http://db:1: timed out"):
        found.search(["salt"], 3)


def test_a_collection_that_lost_vectors_is_refused(made: Path, failing: Failing) -> None:
    index = filled(made, chosen())
    failing.loses = 1
    with pytest.raises(IndexingError, match=r"failing at http://db:1: rag_\w+: 329 vectors of 330: fill it with"):
        database.open_database(index, chosen())
    with pytest.raises(IndexingError, match="kept 329 vectors of 330"):
        filled(made, chosen())
    failing.kept.clear()
    with pytest.raises(IndexingError, match="no such collection"):
        database.open_database(index, chosen())


def test_other_passages_have_another_collection(made: Path, tmp_path: Path, failing: Failing) -> None:
    filled(made, chosen())
    source = tmp_path / "other.jsonl"
    source.write_text(json.dumps({"docid": "x", "title": "", "text": "Salt."}) + "\n", "utf-8")
    rag.build_index(source, tmp_path / "other.index", recipes=["static"])
    filled(tmp_path / "other.index", chosen())
    assert sorted(len(one) for one in failing.kept.values()) == [1, ROWS]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"database": "nosql"}, "no vector database called 'nosql'; there are: .*lancedb, milvus, pgvector, qdrant"),
        ({"base": "bm25"}, "base should be a recipe of kind dense, found bm25.v1"),
        ({"url": "postgresql://me:hunter2@db/x"}, "url should hold no password; set RAG_DATABASE_KEY"),
        ({"depth": 0}, "depth and refine should be at least 1"),
        ({"dept": 1}, "unknown setting 'dept' of kind database"),
    ],
)
def test_settings_that_cannot_be_followed(
    made: Path, failing: Failing, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(RagError, match=message) as caught:
        database.open_database(filled(made, chosen(**settings)), chosen(**settings))
    assert "hunter2" not in str(caught.value)


def test_a_server_that_is_away_is_one_line(made: Path) -> None:
    pytest.importorskip("qdrant_client")
    away = Recipe(
        "away.v1", "database", {"database": "qdrant", "base": "static", "url": "http://127.0.0.1:9", "timeout": 1}
    )
    with pytest.raises(RagError, match=r"^qdrant at http://127\.0\.0\.1:9: ") as caught:
        filled(made, away)
    assert "\n" not in str(caught.value)


def test_a_recipe_adds_the_vectors_that_it_needs(made: Path, tmp_path: Path) -> None:
    pytest.importorskip("qdrant_client")
    index = rag.build_index(made.parent / "towns.jsonl", tmp_path / "towns.index", recipes=["qdrant"])
    ours, theirs = (rag.open_retriever(name, index).search(QUERIES, 5) for name in ("qdrant", "static"))
    assert [[hit.passage.id for hit in hits] for hits in ours] == [[hit.passage.id for hit in hits] for hits in theirs]


def test_a_plan_writes_to_no_database(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("qdrant_client")
    monkeypatch.setattr(database, "_connect", None)
    base, vectors, collection = rag.plan_index(made.parent / "towns.jsonl", recipes=["qdrant"]).steps
    assert (base.name, vectors.name, collection.name) == ("bm25", "static.v1", read_recipe("qdrant").name)
    assert "its time is not measured" in collection.why
