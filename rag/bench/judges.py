"""The leaderboard of judges, over the labelled sets of `rag bench list` and over files of labels."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag.base.errors import RagError, check_type
from rag.bench.benchmark import list_label_sets, read_label_set

if TYPE_CHECKING:
    from autoais.base.progress import Progress
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
    progress: "Progress | None" = None,
) -> dict[str, Any]:
    """Run judges over labelled sets and return the leaderboard, as `autoais.meta.leaderboard.rank_judges` does.

    `sets` are names of labelled sets (`list_label_sets`) or your own .toml files, whose files lie in the folder `data`,
    and files of labels in any format that has them. Raises `UserError`.
    """
    from autoais.meta.leaderboard import LabelledSets
    from autoais.meta.leaderboard import rank_judges as ranked

    check_type("sets", sets, "a list of names or files", list, tuple)
    set_names = {label_set.name for label_set in list_label_sets()}
    folder = None if data is None else Path(data)

    def open_set(source: str | Path) -> Path | LabelledSets:
        if str(source) not in set_names and Path(source).suffix != ".toml":
            if not Path(source).exists():
                raise RagError(
                    f"no labelled set or file called {str(source)!r}; the sets are: {', '.join(sorted(set_names))}"
                )
            return Path(source)
        label_set = read_label_set(source)
        paths = tuple(file.check(folder, label_set.home) for file in label_set.files)
        return LabelledSets(label_set.collection, paths, label_set.only)

    labels = [open_set(source) for source in sets]
    return ranked(labels, judges, cache=cache, limit=limit, seed=seed, timing_count=timing_count, progress=progress)
