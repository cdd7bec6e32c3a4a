"""AttrScore's metrics (Yue et al. 2023): precision, recall and F1 of three classes, micro ("overall") and macro.

The same for the three levels of support (Liu et al. 2023; TREC RAG track).
"""

from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from autoais.metrics.bootstrap import resampled_kinds
from autoais.metrics.rates import Rate
from autoais.types import Support, Verdict

if TYPE_CHECKING:
    from autoais.metrics.rates import Floats

CLASSES = (Verdict.ATTRIBUTABLE, Verdict.EXTRAPOLATORY, Verdict.CONTRADICTORY)


def evaluate(truth: Sequence[Verdict], said: Sequence[Verdict]) -> dict[str, Any]:
    """Compare verdicts with labels of the three classes; fractions, each with a 95 % interval.

    `confusion` has labels as rows and verdicts as columns, both in the order of `classes`. Undecided verdicts, and
    verdicts of only "not attributable" or "partially attributable" (`two_way`), are in no column. `overall` is micro-F1
    over the rest, as in AttrScore's notebook, which drops unparsed outputs; its floor counts them as wrong. `macro` is
    the mean F1 of the classes that occur among labels or verdicts. Raises `ValueError` for a label outside the three
    classes.
    """
    undecided = sum(verdict is Verdict.UNDECIDED for verdict in said)
    two_way = sum(verdict not in CLASSES for verdict in said) - undecided
    return {"undecided": undecided, "two_way": two_way, **_compare(truth, said, CLASSES)}


def evaluate_levels(truth: Sequence[Support], said: Sequence[Support | None]) -> dict[str, Any]:
    """Compare the levels of support of a judge with those of people; as `evaluate`, with None for undecided."""
    return {"undecided": sum(level is None for level in said), **_compare(truth, said, tuple(Support))}


def _compare(truth: Sequence[StrEnum], said: Sequence[StrEnum | None], classes: Sequence[StrEnum]) -> dict[str, Any]:
    if not set(truth) <= set(classes):
        raise ValueError(f"labels must be among {', '.join(classes)}")
    counts = Counter(zip(truth, said, strict=True))
    cells = [[counts[label, verdict] for verdict in classes] for label in classes]
    placed, right = sum(map(sum, cells)), sum(cells[i][i] for i in range(3))
    return {
        "classes": [one.value for one in classes],
        "n": placed,
        "overall": _rate(right, placed, len(truth) - placed, "nothing was decided"),
        "macro": _figure(cells, _macro, "no class occurs"),
        "per_class": {one.value: _class(cells, i, truth.count(one)) for i, one in enumerate(classes)},
        "confusion": cells,
    }


def _class(cells: Sequence[Sequence[int]], i: int, labelled: int) -> dict[str, Any]:
    hit, placed, called = cells[i][i], sum(cells[i]), sum(row[i] for row in cells)
    return {
        "precision": _rate(hit, called, 0, "no verdict is this class"),
        "recall": _rate(hit, placed, labelled - placed, "no verdict on a label of this class"),
        "f1": _figure(cells, lambda sums: _f1(sums, i), "the class occurs on neither side"),
    }


def _rate(yes: int, n: int, undecided: int, missing: str) -> dict[str, Any]:
    return Rate(yes, n + undecided, undecided).record() | ({} if n else {"reason": missing})


def _figure(
    cells: Sequence[Sequence[int]], statistic: Callable[["Floats"], float | None], missing: str
) -> dict[str, Any]:
    import numpy as np

    counts = np.array(cells).ravel()
    value = statistic(counts.astype(np.float64))
    n = int(counts.sum())
    if value is None:
        return {"value": None, "n": n, "interval95": None, "reason": missing}
    ends = resampled_kinds(np.eye(len(counts)), counts, statistic)
    return {"value": value, "n": n, "interval95": ends and list(ends)}


def _f1(sums: "Floats", i: int) -> float | None:
    cells = sums.reshape(3, 3)
    together = cells[i].sum() + cells[:, i].sum()
    return float(2 * cells[i, i] / together) if together else None


def _macro(sums: "Floats") -> float | None:
    known = [value for value in (_f1(sums, i) for i in range(3)) if value is not None]
    return sum(known) / len(known) if known else None
