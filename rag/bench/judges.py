"""The leaderboard of judges, over the labelled sets of `rag bench list` and over files of labels."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag.base.errors import RagError, check_type
from rag.bench.benchmark import list_label_sets, read_label_set

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
    timed: int = 200,
    progress: Callable[[str, int, int], None] | None = None,
) -> dict[str, Any]:
    """Run judges over labelled sets and return the leaderboard, as `autoais.meta.leaderboard.rank_judges` does.

    `sets` are names of labelled sets (`list_label_sets`) or your own .toml files, whose files lie in the folder `data`,
    and files of labels in any format that has them. Raises `UserError`.
    """
    from autoais.meta.leaderboard import LabelledSets
    from autoais.meta.leaderboard import rank_judges as ranked

    check_type("sets", sets, "a list of names or files", list, tuple)
    known = {one.name for one in list_label_sets()}
    folder = None if data is None else Path(data)

    def opened(one: str | Path) -> Path | LabelledSets:
        if str(one) not in known and Path(one).suffix != ".toml":
            if not Path(one).exists():
                raise RagError(f"no labelled set or file called {str(one)!r}; the sets are: {', '.join(sorted(known))}")
            return Path(one)
        found = read_label_set(one)
        paths = tuple(file.check(folder, found.home) for file in found.files)
        return LabelledSets(found.collection, paths, found.only)

    labels = [opened(one) for one in sets]
    return ranked(labels, judges, cache=cache, limit=limit, seed=seed, timed=timed, progress=progress)
