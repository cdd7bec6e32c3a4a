"""The leaderboard of judges, over the labelled sets of `rag bench list` and over files of labels."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autoais.base.progress import Progress, no_progress
from rag.base.errors import RagError, check_type
from rag.bench.benchmark import LabelSet, list_label_sets, read_label_set
from rag.bench.datasets import choose_data_folder
from rag.bench.downloads import plan_label_sets

if TYPE_CHECKING:
    from autoais.base.types import Judge


def rank_judges(
    sets: Sequence[str | Path],
    judges: "Sequence[str | Judge]" = (),
    data: str | Path | None = None,
    *,
    cache: str | Path | None = None,
    limit: int | None = None,
    seed: int = 0,
    timing_count: int = 200,
    download: bool | str | Path = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run judges over labelled sets and return the leaderboard, as `autoais.meta.leaderboard.rank_judges` does.

    `sets` are names of labelled sets (`list_label_sets`) or your own .toml files, whose files lie in the folder `data`
    (default: `rag.bench.datasets.data_folder`), and files of labels in any format that has them. `download` fetches
    there what is missing of public data sets: True, or your own table of them. Raises `UserError`.
    """
    from autoais.meta.leaderboard import LabelledSets
    from autoais.meta.leaderboard import rank_judges as ranked

    check_type("sets", sets, "a list of names or files", list, tuple)
    folder = choose_data_folder(data, download=bool(download))
    opened_sets = [open_set(source) for source in sets]
    if download:
        label_sets = [label_set for label_set in opened_sets if isinstance(label_set, LabelSet)]
        plan_label_sets(label_sets, folder, table=None if download is True else download).fetch(progress or no_progress)
    labels = [
        LabelledSets(source.collection, tuple(file.check(folder, source.home) for file in source.files), source.only)
        if isinstance(source, LabelSet)
        else source
        for source in opened_sets
    ]
    return ranked(labels, judges, cache=cache, limit=limit, seed=seed, timing_count=timing_count, progress=progress)


def open_set(source: str | Path) -> LabelSet | Path:
    """Return the labelled set of a name or .toml file, or else a file of labels; raises `RagError` for neither."""
    set_names = {label_set.name for label_set in list_label_sets()}
    if str(source) in set_names or Path(source).suffix == ".toml":
        return read_label_set(source)
    if not Path(source).exists():
        raise RagError(f"no labelled set or file called {str(source)!r}; the sets are: {', '.join(sorted(set_names))}")
    return Path(source)
