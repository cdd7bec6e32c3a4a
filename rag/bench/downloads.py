"""What a benchmark downloads before it runs, and what that and the index of its corpus will take."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from autoais.base.io.paths import existing_place, free_space
from autoais.base.progress import Progress, no_progress
from rag.base.errors import RagError
from rag.bench.benchmark import Benchmark, LabelSet, read_benchmark
from rag.bench.datasets import Dataset, Missing, data_folder, fetch_dataset, find_datasets_of_files, measure_missing
from rag.bench.tables import inside
from rag.index.build import BUILD_MEMORY
from rag.index.manifest import BASE_RETRIEVER, MANIFEST
from rag.retrieval.planning import Step

# Of an index of 1,148,001 passages on two cores (eval/results/retrieval/parts.json), and of Wikipedia in gzip.
_SECONDS_EACH, _BYTES_EACH, _BYTES_PACKED = 30e-6, 800, 190


@dataclass(frozen=True, slots=True)
class DownloadPlan:
    """The data sets to read, with only the files that are needed, and what is `missing` of them in the folder `data`.

    `index` says what the index of the corpus will take, None if none is built or nothing is known. It is an estimate:
    nothing was measured. `free` are the bytes that the download leaves free where the index will be.
    """

    datasets: tuple[Dataset, ...]
    data: Path
    missing: Missing
    index: Step | None = None
    free: int = 0

    def fetch(self, progress: Progress = no_progress) -> None:
        """Download what is missing; raises `UsageError` with RAG_OFFLINE, and `RagError` as `fetch_dataset` does."""
        for dataset in self.datasets:
            fetch_dataset(dataset, self.data, allow_network=True, progress=progress)


def plan_download(
    benchmark: str | Path | Benchmark,
    data: str | Path | None = None,
    *,
    corpus: str | Path | None = None,
    corpus_sample: int | None = None,
    index: str | Path | None = None,
    table: str | Path | None = None,
) -> DownloadPlan:
    """Plan what `run_benchmark` with these settings downloads, and the index that it builds then.

    `data` is the folder of the data (default: `data_folder`), `table` your own table of data sets. Raises `RagError`
    for a file that is missing and in no data set.
    """
    settings = benchmark if isinstance(benchmark, Benchmark) else read_benchmark(benchmark)
    folder, place = data_folder() if data is None else Path(data), Path("index" if index is None else index)
    if corpus is not None and str(corpus) not in settings.other_corpora:
        settings.other_corpus(corpus, None)  # raises if there is none
    if corpus_sample is not None:
        place /= f"sample-{corpus_sample}.index"
    elif settings.ids is not None:
        place /= "ids.index"
    is_built = (place / MANIFEST).exists()
    corpus_paths = [] if is_built and corpus is None else settings.searched_files(corpus)
    paths = [*settings.question_files(corpus), *corpus_paths]
    datasets = find_datasets_of_files(paths, table)
    for path in paths:
        is_public = any(file.serves(path) for dataset in datasets for file in dataset.files)
        if not is_public and not inside(folder, path).exists():
            names = ", ".join(sorted(settings.other_corpora)) if corpus is None else ""
            hint = f", or search another corpus (--corpus): {names}" if names else ""
            raise RagError(f"{settings.id}: no data set has {path}; name the folder that has it (--data){hint}")
    missing = measure_missing(datasets, folder)
    is_same_disk = existing_place(folder).stat().st_dev == existing_place(place).stat().st_dev
    needs = None if is_built else _estimate_index(find_datasets_of_files(corpus_paths, table), corpus_sample)
    return DownloadPlan(
        tuple(datasets), folder, missing, needs, free_space(place) - (missing.bytes if is_same_disk else 0)
    )


def plan_label_sets(
    label_sets: Iterable[LabelSet], data: str | Path | None = None, *, table: str | Path | None = None
) -> DownloadPlan:
    """Plan what to download for labelled sets; `data` and `table` as for `plan_download`."""
    folder = data_folder() if data is None else Path(data)
    paths = [file.file for label_set in label_sets for file in label_set.files if not file.is_shipped]
    datasets = find_datasets_of_files(paths, table)
    return DownloadPlan(tuple(datasets), folder, measure_missing(datasets, folder))


def _estimate_index(datasets: Iterable[Dataset], most: int | None) -> Step | None:
    """What an index of these corpora takes, if the number of their passages or the size of their files is known.

    `most` is the number of passages that are sampled (None: all).
    """
    passages = 0
    for dataset in datasets:
        size = sum(file.remote.size or 0 for file in dataset.files)
        passages += dataset.passages or size // _BYTES_PACKED
    if not passages:
        return None
    passages = passages if most is None else min(most, passages)
    return Step(BASE_RETRIEVER, passages * _SECONDS_EACH, passages * _BYTES_EACH, BUILD_MEMORY, 0, "an estimate")
