"""Indexes of vectors by FAISS, which find candidates; the vectors on disk (`rag.retrieval.vectors`) rescore them."""

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from autoais.base.io.jsonl import sync
from rag.base.errors import IndexingError, RagError, missing_extra
from rag.index.parts import Needs, RowProgress
from rag.retrieval.vectors import PER_FILE, StoredVectors

if TYPE_CHECKING:
    from rag.retrieval.vectors import Rows, Scores, Vectors

SMALL = 100_000  # below this, exact search takes at most about 20 ms, and an index would miss more
_SEED = 1234
_MAX_ON_GPU = 2048  # FAISS's limit on a GPU, for hits and for probed lists
_GPU_DEVICES = (Path("/dev/nvidiactl"), Path("/dev/dxg"))  # of Linux, and of Linux in Windows
_FAISS_BYTES = 12_000_000  # memory of its code

Size = Callable[[int, Mapping[str, int]], float]  # (dimension, settings) -> bytes


def _lists(dimension: int, settings: Mapping[str, int]) -> float:
    return 4.0 * dimension * settings["lists"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of index: its FAISS factory string, settings and size in memory.

    Settings of 0 are chosen from the number of vectors and the dimension (`choose_settings`). `vector_size` is the size
    per vector, `fixed_size` that of the rest. `search` maps search-time settings to FAISS's names. `sample_copies`:
    (copies, vectors), as training copies the sample that often, with at most so many vectors. `growing`: the index's
    peak size while vectors are added, as a factor. Both are measured.
    """

    factory: str
    settings: Mapping[str, int]
    vector_size: Size
    fixed_size: Size = _lists
    search: Mapping[str, str] = field(default_factory=lambda: {"probe": "nprobe"})
    sample_copies: tuple[int, int] = (1, 1 << 60)
    growing: float = 1.35
    on_gpu: bool = False


_IVF = {"lists": 0, "probe": 0, "depth": 100}
_IVF_WITH_CODE = {**_IVF, "code": 0}

# `lists`: number of inverted lists; `probe`: lists searched; `code`: bytes of a product quantizer's code;
# `links`, `effort`, `effort_built`: HNSW's M, efSearch and efConstruction; `depth`, `refine`: see `Searcher`.
# Measured in eval/results/ann-*.json. Each code is stored with its row number (8 bytes).
KINDS = {
    "flat": Kind("Flat", {}, lambda d, s: 2.0 * d, lambda d, s: 0, {}, on_gpu=True),
    "hnsw": Kind(
        "HNSW{links}_SQ8",
        {"links": 32, "effort_built": 80, "effort": 300, "depth": 100, "refine": 2},
        lambda d, s: d + 8 * s["links"] + 16,  # links of two levels, their offset, the number of levels
        lambda d, s: 8 * d,
        {"effort": "efSearch"},
        growing=1.85,
    ),
    "ivf": Kind("IVF{lists},SQ8", {**_IVF, "refine": 2}, lambda d, s: d + 8, sample_copies=(2, 100_000), on_gpu=True),
    "ivf-pq": Kind(
        "IVF{lists},PQ{code}np",
        {**_IVF_WITH_CODE, "refine": 10},
        lambda d, s: s["code"] + 8,
        lambda d, s: _lists(d, s) + 1024 * d,
        sample_copies=(2, 65_536),
    ),
    "opq-ivf-pq": Kind(
        "OPQ{code},IVF{lists},PQ{code}np",
        {**_IVF_WITH_CODE, "refine": 10},
        lambda d, s: s["code"] + 8,
        lambda d, s: _lists(d, s) + 1024 * d + 4 * d * d,
        sample_copies=(2, 65_536),
    ),
    "rabitq": Kind("IVF{lists},RaBitQ", {**_IVF, "refine": 10}, lambda d, s: d / 8 + 8 + 8),
    "fastscan": Kind(
        "IVF{lists},PQ{halves}x4fs",
        {**_IVF_WITH_CODE, "refine": 4},
        lambda d, s: s["code"] + 8,
        lambda d, s: _lists(d, s) + 64 * d + 16 * s["code"] * s["lists"],  # lists are padded to 32 vectors
        sample_copies=(2, 4_096),
    ),
}


def choose_settings(kind: str, rows: int, dimension: int, choices: Mapping[str, int]) -> dict[str, int]:
    """All settings of a kind, with defaults for those not given; raises `RagError` for an invalid value."""
    settings = {**KINDS[kind].settings, **choices}
    for name, value in settings.items():
        if value < 0 or (value == 0 and KINDS[kind].settings[name]):
            raise RagError(f"index {kind}: {name} must be at least 1, not {value}")
    if "lists" in settings:
        # 4 * sqrt(rows), but with at least the 39 vectors per list that FAISS wants for training.
        settings["lists"] = settings["lists"] or max(1, min(2 ** round(math.log2(4 * math.sqrt(rows))), rows // 39))
        settings["probe"] = min(settings["probe"] or max(8, settings["lists"] // 6), settings["lists"])
    if "code" in settings:
        max_code, halves = (dimension // 4, 2) if kind == "fastscan" else (dimension // 8, 1)
        codes = (n for n in range(max_code, 0, -1) if dimension % (n * halves) == 0)
        settings["code"] = settings["code"] or next(codes, 1)
        if dimension % (settings["code"] * halves):
            raise RagError(
                f"index {kind}: {dimension} dimensions cannot be split into codes of {settings['code']} bytes"
            )
    return settings


def estimate(kind: str, rows: int, dimension: int, settings: Mapping[str, int]) -> Needs:
    """Estimate the size of an index; the vectors themselves are on disk, and in memory for `flat` only.

    `memory` includes neither Python nor the encoder.
    """
    size = round(rows * KINDS[kind].vector_size(dimension, settings) + KINDS[kind].fixed_size(dimension, settings))
    disk = rows * dimension * 2 + 128 * math.ceil(rows / PER_FILE)
    wide, count = 4 * dimension, min(rows, PER_FILE)
    adding = count * (wide + 2 * dimension)
    if kind == "flat":
        return Needs(memory=adding, resident=size, disk=disk)
    sample, (copies, count) = _sample(rows, settings), KINDS[kind].sample_copies
    learning = wide * (sample + copies * min(sample, count))
    peak = _FAISS_BYTES + max(learning, round(size * KINDS[kind].growing) + adding)
    return Needs(memory=peak, resident=size, disk=disk + size)


def pick(rows: int, dimension: int, memory: int) -> tuple[str, str]:
    """The kind for a memory limit in bytes, and the reason; raises `RagError` if none fits."""
    for kind in ("flat", "ivf", "rabitq"):
        needs = estimate(kind, rows, dimension, choose_settings(kind, rows, dimension, {}))
        if needs.resident <= memory and (kind != "flat" or rows <= MAX_FLAT):
            return kind, f"{kind}: {_REASONS[kind]}"
    raise RagError(
        f"the smallest index of {rows:,} vectors of {dimension} dimensions (rabitq) keeps {needs.resident / 2**30:.2f} "
        f"GiB in memory, above the {memory / 2**30:.2f} GiB given"
    )


MAX_FLAT = 2_000_000  # an exact search of so many vectors takes about a second on one core
_REASONS = {
    "flat": "exact, and its vectors fit in the memory given",
    "ivf": "one byte per dimension fits in the memory given; an exact search would be slow or not fit",
    "rabitq": "only one bit per dimension fits in the memory given",
}


def _sample(rows: int, settings: Mapping[str, int]) -> int:
    """The number of training vectors: 64 per list (FAISS wants at least 39), and enough for the codes."""
    return min(rows, max(64 * settings.get("lists", 0), 20_000))


# --- FAISS -----------------------------------------------------------------------------------------------------


def faiss() -> Any:  # noqa: ANN401  (it has no types)
    """The module `faiss`; raises `RagError` if it is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its wrapper is older than Python 3.12
            import faiss as module
    except ImportError:
        raise missing_extra("an index of vectors other than 'flat'", "dense") from None
    return module


def build(
    kind: str, settings: Mapping[str, int], stored_vectors: StoredVectors, path: Path, progress: RowProgress
) -> None:
    """Train on a seeded sample, add all vectors and write the index; the same vectors give the same bytes.

    Raises `IndexingError` on a full disk, `RagError` if FAISS is missing or too old.
    """
    import numpy as np

    try:
        with _new_index(kind, settings, stored_vectors.dimension) as index:
            if kind == "opq-ivf-pq":  # a fifth of FAISS's iterations, which would dominate the build
                rotation = faiss().downcast_VectorTransform(index.chain.at(0))
                rotation.niter, rotation.niter_pq_0, rotation.max_train_points = 10, 10, 1 << 14
            progress(0, "training the index")
            index.train(_draw_sample(stored_vectors, _sample(stored_vectors.rows, settings)))
            added_rows = 0
            for vectors in stored_vectors:
                index.add(vectors.astype(np.float32))
                added_rows += len(vectors)
                progress(added_rows, "added to the index")
            temporary = path.with_suffix(".new")
            faiss().write_index(index, str(temporary))
        sync(temporary)
        _open_index(temporary)  # FAISS does not notice if the last bytes could not be written
        temporary.replace(path)
    except RuntimeError as error:
        version, name = faiss().__version__, _factory(kind, settings)
        raise IndexingError(f"{path}: FAISS {version} cannot build {name} ({_reason(error)})") from error


@contextmanager
def _new_index(kind: str, settings: Mapping[str, int], dimension: int) -> Iterator[Any]:
    """An empty index; in the block, one thread builds HNSW, as several would make its links non-deterministic."""
    engine = faiss()
    threads = engine.omp_get_max_threads()
    try:
        index = engine.index_factory(dimension, _factory(kind, settings), engine.METRIC_INNER_PRODUCT)
        if kind == "hnsw":
            index.hnsw.efConstruction = settings["effort_built"]
            engine.omp_set_num_threads(1)
        yield index
    finally:
        engine.omp_set_num_threads(threads)


def _factory(kind: str, settings: Mapping[str, int]) -> str:
    return KINDS[kind].factory.format(**settings, halves=2 * settings.get("code", 0))


def _draw_sample(stored_vectors: StoredVectors, count: int) -> "Vectors":
    """A seeded sample of `count` vectors, in row order."""
    import numpy as np

    rows = np.sort(np.random.default_rng(_SEED).choice(stored_vectors.rows, count, replace=False))
    sample = np.empty((count, stored_vectors.dimension), np.float32)
    cuts = np.searchsorted(rows, range(0, stored_vectors.rows, stored_vectors.size))
    for number, (vectors, start) in enumerate(zip(stored_vectors, cuts, strict=True)):
        end = cuts[number + 1] if number + 1 < len(cuts) else count
        sample[start:end] = vectors[rows[start:end] - number * stored_vectors.size]
    return sample


def _open_index(path: Path) -> Any:  # noqa: ANN401
    engine = faiss()
    flags = getattr(engine, "IO_FLAG_MMAP_IFC", engine.IO_FLAG_MMAP)  # FastScan's lists are read anyway
    try:
        return engine.read_index(str(path), flags)
    except RuntimeError as error:
        raise IndexingError(f"{path}: cannot be read as a FAISS index ({_reason(error)})") from error


def _reason(error: Exception) -> str:
    """The end of FAISS's message, which begins with the place in its source."""
    return " ".join(str(error).split())[-160:] or type(error).__name__


_MAX_SAMPLE = 20_000  # random vectors that are measured
_ROUNDS = 10  # of FAISS's k-means over the vectors of its training sample
_MAX_SAMPLE_LISTS = 256  # lists of the small index that is measured


def estimate_seconds(kind: str, rows: int, dimension: int, settings: Mapping[str, int]) -> float:
    """Estimate the seconds of `build`, from random vectors on this machine.

    With lists, most of the time goes into comparing vectors with all lists: once for each, and in each round of k-means
    for the sample. The rest is measured with few lists. The graph of HNSW takes the logarithm of the rows for each.
    """
    import numpy as np

    if kind == "flat":
        return 0.0
    engine, count = faiss(), min(rows, _MAX_SAMPLE)
    vectors = np.random.default_rng(_SEED).standard_normal((count, dimension), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    small = {**settings, **({"lists": min(settings["lists"], _MAX_SAMPLE_LISTS)} if "lists" in settings else {})}
    with _new_index(kind, small, dimension) as index:
        training = _measure(lambda: index.train(vectors))
        adding = _measure(lambda: index.add(vectors)) / count
    if "lists" not in settings:
        return training + rows * adding * math.log2(rows) / math.log2(count)
    lists = engine.IndexFlatIP(dimension)
    lists.add(np.resize(vectors, (settings["lists"], dimension)))
    comparing = _measure(lambda: lists.search(vectors[:2048], 1)) / min(2048, count)
    return training + _ROUNDS * _sample(rows, settings) * comparing + rows * (adding + comparing)


def _measure(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


class VectorSearch(Protocol):
    """Finds rows by their vectors."""

    def search(self, queries: "Vectors", k: int) -> list[tuple["Rows", "Scores"]]:
        """Return (rows, scores) per query, best first: the top k, and all others that tie with the k-th."""
        ...


class Searcher:
    """Searches stored vectors, exactly (`flat`) or with a FAISS index for candidates.

    The number of candidates is `refine` times the larger of k and `depth`; they are rescored with the memory-mapped
    float16 vectors. Hence the hits for a smaller k are a prefix of those for a larger one, up to `depth`. Queries are
    searched one at a time, because FAISS sums in another order in batches. `flat` and `ivf` run on a GPU if FAISS
    supports it, up to its limit of candidates. Raises `IndexingError` for an index that cannot be read or holds other
    vectors.
    """

    def __init__(
        self, vectors: StoredVectors, kind: str, settings: Mapping[str, int], path: Path | None, *, longest: float
    ) -> None:
        self.stored, self.kind, self.settings, self._longest = vectors, kind, settings, longest
        self._index: Any = None
        self._gpu: Any = None
        if kind == "flat":
            self._gpu = _on_gpu(faiss().IndexFlatIP(vectors.dimension), vectors) if _gpus() else None
            return
        index = _open_index(path or Path())
        if (index.ntotal, index.d) != (vectors.rows, vectors.dimension):
            raise IndexingError(f"{path}: has {index.ntotal:,} vectors of {index.d} dimensions: add the data again")
        self._index = index
        spaces = [(faiss().ParameterSpace(), index)]
        if KINDS[kind].on_gpu and settings.get("probe", 0) <= _MAX_ON_GPU:
            self._gpu = _on_gpu(index)
        if self._gpu is not None:
            spaces.append((faiss().GpuParameterSpace(), self._gpu))
        for space, faiss_index in spaces:
            for setting, parameter in KINDS[kind].search.items():
                space.set_index_parameter(faiss_index, parameter, settings[setting])

    def search(self, queries: "Vectors", k: int) -> list[tuple["Rows", "Scores"]]:
        """Return (rows, scores) per query, best first: the top k, and all others that tie with the k-th."""
        limit = min(self._count_candidates(k), self.stored.rows)
        engine = self._gpu if self._gpu is not None and limit <= _MAX_ON_GPU else self._index
        if engine is None:
            candidates = self.stored.nearest(queries, k, self._longest)
        else:
            proposals = [_candidates(engine, query, limit) for query in queries]
            pairs = zip(queries, proposals, strict=True)
            candidates = [self.stored.narrow(query, rows, k, self._longest) for query, rows in pairs]
        return [self.stored.best(query, rows, k) for query, rows in zip(queries, candidates, strict=True)]

    def _count_candidates(self, k: int) -> int:
        """The number of candidates; on a GPU, `flat` needs twice as many, as its sums may order ties differently."""
        return self.settings.get("refine", 2) * max(k, self.settings.get("depth", 100))


def _candidates(engine: Any, query: "Vectors", limit: int) -> "Rows":  # noqa: ANN401
    _, rows = engine.search(query[None], limit)
    candidates: Rows = rows[0][rows[0] >= 0]
    candidates.sort()
    return candidates


def _gpus() -> int:
    """How many GPUs FAISS sees; it is not loaded on a system that has none."""
    if not any(device.exists() for device in _GPU_DEVICES):
        return 0
    with suppress(RagError):
        return int(getattr(faiss(), "get_num_gpus", lambda: 0)())
    return 0


def _on_gpu(index: Any, vectors_to_add: StoredVectors | None = None) -> Any:  # noqa: ANN401
    """The index on the GPU, with the stored vectors added; None without a GPU or enough memory on it."""
    import numpy as np

    if not _gpus():
        return None
    engine = faiss()
    options = engine.GpuClonerOptions()
    options.useFloat16 = True
    try:
        resources = engine.StandardGpuResources()
        gpu_index = engine.index_cpu_to_gpu(resources, 0, index, options)
        for vectors in vectors_to_add or ():
            gpu_index.add(vectors.astype(np.float32))
    except RuntimeError:
        return None
    gpu_index.resources = resources  # must live as long as the index
    return gpu_index
