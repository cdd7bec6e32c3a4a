"""Vectors in databases of others: the hits are those of an exact search, and what fails is told in one line."""

import importlib.util
import json
import os
import shutil
import ssl
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rag
from rag.base.errors import IndexingError, RagError
from rag.index.index import Index
from rag.index.open import open_index
from rag.index.retriever_config import RetrieverConfig, read_config
from rag.retrieval import database, open_retriever
from rag.retrieval.databases import DATABASES, pgvector
from rag.retrieval.encoders import open_encoder
from rag.testing import check_retriever
from tests.opensearch_server import OpenSearchServer, RefusedError

QUERIES = ["The mill of Aller", "a bridge over the river", "who repaired the clock", "salt"]
ROWS = 330
THINGS = ("mill", "bridge", "clock", "ferry", "tower", "well", "barn")
MODULES = {
    "lancedb": "lancedb",
    "milvus": "milvus_lite",
    "opensearch": "opensearchpy",
    "pgvector": "pgserver",
    "qdrant": "qdrant_client",
}


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
    rag.build_index(folder / "towns.jsonl", folder / "towns.index", retrievers=["static"])
    return folder / "towns.index"


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    pgserver = pytest.importorskip("pgserver", reason="needs pgserver, a PostgreSQL with pgvector")
    # Not in pytest's folder: every run of pytest that starts closes it to other users, and the server is another user.
    with tempfile.TemporaryDirectory(prefix="rag-pgvector.") as folder:
        server = pgserver.get_server(folder)
        yield server.get_uri()
        server.cleanup()


@pytest.fixture
def opensearch(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenSearchServer]:
    """A stand-in, and the key to it."""
    pytest.importorskip("opensearchpy")
    with OpenSearchServer() as server:
        server.users = {"me": "påss:word€"}
        monkeypatch.setenv("RAG_DATABASE_KEY", "me:påss:word€")
        yield server


@pytest.fixture(params=sorted(MODULES))
def config(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> RetrieverConfig:
    name = request.param
    if importlib.util.find_spec(MODULES[name]) is None:
        pytest.skip(f"needs {MODULES[name]}")
    monkeypatch.setattr(database, "_BATCH", 100)
    shipped = read_config(name)
    if "url" not in shipped.settings:
        return shipped
    url = request.getfixturevalue("postgresql") if name == "pgvector" else request.getfixturevalue("opensearch").url
    return RetrieverConfig(shipped.name, shipped.kind, {**shipped.settings, "url": url})


def silent(done: int, what: str) -> None:
    """Progress that nobody watches."""


def filled(folder: Path, chosen: RetrieverConfig) -> Index:
    index = open_index(folder)
    database.add(index, chosen, None, silent)
    return index


def test_the_hits_are_those_of_an_exact_search(made: Path, config: RetrieverConfig) -> None:
    index = filled(made, config)
    found = database.open_database(index, config)
    assert found.name == f"{config.name}/static.v1/{config.settings['database']}"
    assert found.search(QUERIES, 10) == open_retriever("static", index).search(QUERIES, 10)
    check_retriever(found, QUERIES[:2], lexical=False)  # which searches 330 times for each


def test_a_stopped_run_goes_on(made: Path, config: RetrieverConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = RetrieverConfig(f"stopped-{config.settings['database']}.v1", config.kind, config.settings)
    index, steps = open_index(made), list[int]()

    def stop(done: int, what: str) -> None:
        steps.append(done)
        if done == 200:
            raise KeyboardInterrupt

    if chosen.settings["database"] == "pgvector":  # the collection of the other test
        import psycopg

        with psycopg.connect(chosen.settings["url"]) as connected:
            connected.execute(f"DROP TABLE IF EXISTS {database._collection(index, open_encoder('static'))}")
    with pytest.raises(KeyboardInterrupt):
        database.add(index, chosen, None, stop)
    with pytest.raises(IndexingError, match="has no data of 'stopped-"):
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


def chosen(**settings: object) -> RetrieverConfig:
    return RetrieverConfig(
        "failing.v1", "database", {"database": "failing", "base": "static", "url": "http://db:1", **settings}
    )


def test_where_and_with_which_key(made: Path, failing: Failing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_DATABASE_KEY", "the secret")
    filled(made, chosen(timeout=5))
    filled(made, RetrieverConfig("folder.v1", "database", {"database": "failing", "base": "static"}))
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
    rag.build_index(source, tmp_path / "other.index", retrievers=["static"])
    filled(tmp_path / "other.index", chosen())
    assert sorted(len(one) for one in failing.kept.values()) == [1, ROWS]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"database": "nosql"},
            "no vector database called 'nosql'; there are: .*lancedb, milvus, opensearch, pgvector, qdrant",
        ),
        ({"base": "bm25"}, "base should be a retriever of kind dense, found bm25.v1"),
        ({"url": "postgresql://me:hunter2@db/x"}, "url should hold no password; set RAG_DATABASE_KEY"),
        ({"url": "http://[::1:6333"}, "url: Invalid IPv6 URL"),
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


@pytest.mark.parametrize("name", ["opensearch", "qdrant"])
def test_a_server_that_is_away_is_one_line(made: Path, name: str) -> None:
    pytest.importorskip(MODULES[name])
    away = RetrieverConfig(
        "away.v1", "database", {"database": name, "base": "static", "url": "http://127.0.0.1:9", "timeout": 1}
    )
    with pytest.raises(RagError, match=rf"^{name} at http://127\.0\.0\.1:9: ") as caught:
        filled(made, away)
    assert "\n" not in str(caught.value)


class Crowded:
    """A connection to a server without room for the first graph."""

    def __init__(self, connection: Any) -> None:  # noqa: ANN401  (its type is no dependency)
        self._connection, self.sent = connection, list[str]()

    def execute(self, sql: str, *values: object) -> object:
        self.sent.append(sql)
        if sql.startswith("CREATE INDEX") and sum(one.startswith("CREATE INDEX") for one in self.sent) == 1:
            from psycopg import errors

            raise errors.DiskFull("could not resize shared memory segment: No space left on device")
        return self._connection.execute(sql, *values)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._connection, name)


@pytest.mark.parametrize("crowded", [False, True])
def test_a_large_table_of_postgresql_has_a_graph(
    postgresql: str, monkeypatch: pytest.MonkeyPatch, crowded: bool
) -> None:
    monkeypatch.setattr(pgvector, "_EXACT", 100)
    monkeypatch.setattr(pgvector, "_LINKS", 200_000)
    name = f"graph_{crowded}".lower()
    vectors = np.random.default_rng(0).standard_normal((500, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    with closing(pgvector.connect(postgresql, None, 30)) as store:
        connection = store._connection
        store.create(name, 8)
        store.add(name, 0, vectors)
        if crowded:
            store._opened = Crowded(connection)
        store.finish(name)
        assert connection.execute("SHOW maintenance_work_mem").fetchone() == ("64MB" if crowded else "97671kB",)
        (made,) = connection.execute(f"SELECT indexdef FROM pg_indexes WHERE indexname = '{name}_nearest'").fetchone()
        assert "USING hnsw" in made
        connection.execute("SET enable_seqscan = off")
        assert store.nearest(name, vectors[:20], 1) == [[row] for row in range(20)]


def test_postgresql_is_asked_again_after_a_restart(postgresql: str) -> None:
    vectors = np.eye(8, dtype=np.float32)
    with (
        closing(pgvector.connect(postgresql, None, 30)) as store,
        closing(pgvector.connect(postgresql, None, 30)) as other,
    ):
        store.create("again", 8)
        store.add("again", 0, vectors)
        other._connection.execute(f"SELECT pg_terminate_backend({store._connection.info.backend_pid})")
        with pytest.raises(Exception, match="terminating connection"):
            store.nearest("again", vectors[:1], 1)
        assert store.nearest("again", vectors[:1], 1) == [[0]]


def test_a_retriever_adds_the_vectors_that_it_needs(made: Path, tmp_path: Path) -> None:
    pytest.importorskip("qdrant_client")
    index = rag.build_index(made.parent / "towns.jsonl", tmp_path / "towns.index", retrievers=["qdrant"])
    ours, theirs = (rag.open_retriever(name, index).search(QUERIES, 5) for name in ("qdrant", "static"))
    assert [[hit.passage.id for hit in hits] for hits in ours] == [[hit.passage.id for hit in hits] for hits in theirs]


def test_a_plan_writes_to_no_database(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("qdrant_client")
    monkeypatch.setattr(database, "_connect", None)
    base, vectors, collection = rag.plan_index(made.parent / "towns.jsonl", retrievers=["qdrant"]).steps
    assert (base.name, vectors.name, collection.name) == ("bm25", "static.v1", read_config("qdrant").name)
    assert "its time is not measured" in collection.why


# --- what a stand-in for OpenSearch says -----------------------------------------------------------------------------


def at(server: OpenSearchServer, **settings: object) -> RetrieverConfig:
    shared = {"database": "opensearch", "base": "static", "url": server.url}
    return RetrieverConfig("opensearch.v1", "database", {**shared, **settings})


def the_index(server: OpenSearchServer) -> str:
    (name,) = server.indices
    return name


def test_all_queries_are_one_request(made: Path, opensearch: OpenSearchServer) -> None:
    found = database.open_database(filled(made, at(opensearch)), at(opensearch))
    opensearch.asked.clear()
    found.search(QUERIES, 5)
    assert opensearch.asked == [f"POST /{the_index(opensearch)}/_msearch"]


def test_no_more_hits_are_asked_for_than_a_server_gives(made: Path, opensearch: OpenSearchServer) -> None:
    filled(made, at(opensearch))
    index = opensearch.indices[the_index(opensearch)]
    connected = DATABASES["opensearch"](opensearch.url, os.environ["RAG_DATABASE_KEY"], 30)
    (rows,) = connected.nearest(index.name, np.ones((1, index.dimension), np.float32), 20_000)
    connected.close()
    assert sorted(rows) == list(range(ROWS))


def test_what_is_confirmed_is_on_disk(made: Path, opensearch: OpenSearchServer) -> None:
    filled(made, at(opensearch))
    assert opensearch.indices[the_index(opensearch)].settings["index.translog.durability"] == "request"


def test_a_bulk_request_has_a_limit_of_bytes(
    made: Path, opensearch: OpenSearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag.retrieval.databases.opensearch._BYTES", 500_000)
    filled(made, at(opensearch))
    assert opensearch.asked.count("POST /_bulk") > 1
    assert len(opensearch.indices[the_index(opensearch)].added) == ROWS


@pytest.mark.parametrize("key", ["me:wrong", "nobody", ""])
def test_a_wrong_key_is_told(
    made: Path, opensearch: OpenSearchServer, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("RAG_DATABASE_KEY", key)
    with pytest.raises(RagError, match=rf"^opensearch at {opensearch.url}: .*401.*Unauthorized") as caught:
        filled(made, at(opensearch))
    assert "wrong" not in str(caught.value)


def test_a_key_that_may_only_read_searches(
    made: Path, opensearch: OpenSearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = filled(made, at(opensearch))
    opensearch.users["guest"] = "guest"
    opensearch.readers.add("guest")
    monkeypatch.setenv("RAG_DATABASE_KEY", "guest:guest")
    hits = database.open_database(index, at(opensearch)).search(QUERIES, 5)
    assert hits == open_retriever("static", index).search(QUERIES, 5)
    opensearch.indices.clear()
    with pytest.raises(IndexingError, match="no such collection"):
        database.open_database(index, at(opensearch))
    with pytest.raises(RagError, match=r"403.*no permissions for"):
        filled(made, at(opensearch))


def test_an_answer_that_comes_late_is_an_error(made: Path, opensearch: OpenSearchServer) -> None:
    patient = at(opensearch, timeout=2)
    found = database.open_database(filled(made, patient), patient)
    opensearch.seconds = 5
    with pytest.raises(RagError, match=r"timed out"):
        found.search(["salt"], 3)


def test_one_vector_that_is_not_stored_stops_the_run(made: Path, opensearch: OpenSearchServer) -> None:
    broken = RefusedError(
        400, "mapper_parsing_exception", "failed to parse", caused_by={"type": "x", "reason": "no number"}
    )
    opensearch.fails["7"] = [broken]
    with pytest.raises(RagError, match=rf"{opensearch.url}: 1 of {ROWS} vectors not stored: 400, no number$"):
        filled(made, at(opensearch))
    assert "7" not in opensearch.indices[the_index(opensearch)].added
    filled(made, at(opensearch))
    filled(made, at(opensearch))
    assert len(opensearch.indices[the_index(opensearch)].visible) == ROWS


def test_what_a_busy_server_refuses_is_sent_again(
    made: Path, opensearch: OpenSearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = list[float]()
    monkeypatch.setattr("opensearchpy.helpers.actions.time", SimpleNamespace(sleep=pauses.append))
    busy = RefusedError(429, "rejected_execution_exception", "rejected execution of coordinating operation")
    opensearch.fails["7"] = [busy]
    filled(made, at(opensearch))
    assert pauses == [2]
    opensearch.indices.clear()
    opensearch.fails["7"] = [busy] * 9
    with pytest.raises(RagError, match=f"1 of {ROWS} vectors not stored: 429, rejected execution"):
        filled(made, at(opensearch))


def test_hits_that_are_no_rows_are_an_error(made: Path, opensearch: OpenSearchServer) -> None:
    found = database.open_database(filled(made, at(opensearch)), at(opensearch))
    index = opensearch.indices[the_index(opensearch)]
    index.visible[str(ROWS)] = index.visible["0"]
    with pytest.raises(RagError, match=r"rag_\w+ proposes rows that the index does not have"):
        found.search(QUERIES, 300)
    index.visible["a town"] = index.visible.pop(str(ROWS))
    with pytest.raises(RagError, match="'a town'"):
        found.search(QUERIES, 300)


def test_a_search_that_fails_is_an_error(made: Path, opensearch: OpenSearchServer) -> None:
    found = database.open_database(filled(made, at(opensearch)), at(opensearch))
    opensearch.failed_shards = 1
    with pytest.raises(RagError, match=f"{opensearch.url}: only a part of the vectors was searched"):
        found.search(["salt"], 3)
    name = the_index(opensearch)
    opensearch.indices.clear()
    with pytest.raises(RagError, match=rf"{opensearch.url}: 404, no such index \[{name}\]"):
        found.search(["salt"], 3)
    with pytest.raises(IndexingError, match="no such collection: fill it with"):
        database.open_database(open_index(made), at(opensearch))


@pytest.mark.parametrize("url", ["", "https://me@host:9200", "opensearch:9200", "https://"])
def test_an_address_that_is_none(made: Path, url: str) -> None:
    pytest.importorskip("opensearchpy")
    config = RetrieverConfig("opensearch.v1", "database", {"database": "opensearch", "base": "static", "url": url})
    with pytest.raises(RagError, match="url should be https://host:9200 or http://host:9200"):
        filled(made, config)


def test_a_certificate_is_verified(
    made: Path, tmp_path: Path, opensearch: OpenSearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made_by = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=here".split()
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made_by, *names], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    opensearch.socket = context.wrap_socket(opensearch.socket, server_side=True)
    config = at(opensearch, url=opensearch.url.replace("http:", "https:"))
    with pytest.raises(RagError, match="certificate verify failed"):
        filled(made, config)
    assert not opensearch.asked
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    filled(made, config)
    assert len(opensearch.indices) == 1
