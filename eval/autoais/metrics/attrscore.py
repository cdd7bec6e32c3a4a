"""AttrScore's metrics (Yue et al. 2023): precision, recall and F1 of three classes, micro ("overall") and macro.

The same for the three levels of support (Liu et al. 2023; TREC RAG track).
"""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from autoais.metrics import intervals
from autoais.metrics.intervals import Estimate
from autoais.metrics.rates import Rate
from autoais.types import Support, Verdict

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from autoais.metrics.intervals import Floats

CLASSES = (Verdict.ATTRIBUTABLE, Verdict.EXTRAPOLATORY, Verdict.CONTRADICTORY)


def evaluate(truth: Sequence[Verdict], said: Sequence[Verdict], questions: "ArrayLike | None" = None) -> dict[str, Any]:
    """Compare verdicts with labels of the three classes; fractions, each with a 95 % interval over questions.

    `questions` numbers the question of each claim; without it, each claim is of another question. `confusion` has
    labels as rows and verdicts as columns, both in the order of `classes`. Undecided verdicts, and verdicts of only
    "not attributable" or "partially attributable" (`two_way`), are in no column. `overall` is micro-F1 over the rest,
    as in AttrScore's notebook, which drops unparsed outputs; its floor counts them as wrong. `macro` is the mean F1 of
    the classes that occur among labels or verdicts. Raises `ValueError` for a label outside the three classes.
    """
    undecided = sum(verdict is Verdict.UNDECIDED for verdict in said)
    two_way = sum(verdict not in CLASSES for verdict in said) - undecided
    return {"undecided": undecided, "two_way": two_way, **_compare(truth, said, CLASSES, questions)}


def evaluate_levels(
    truth: Sequence[Support], said: Sequence[Support | None], questions: "ArrayLike | None" = None
) -> dict[str, Any]:
    """Compare the levels of support of a judge with those of people; as `evaluate`, with None for undecided."""
    return {"undecided": sum(level is None for level in said), **_compare(truth, said, tuple(Support), questions)}


def _compare(
    truth: Sequence[StrEnum], said: Sequence[StrEnum | None], classes: Sequence[StrEnum], questions: "ArrayLike | None"
) -> dict[str, Any]:
    import numpy as np

    if not set(truth) <= set(classes):
        raise ValueError(f"labels must be among {', '.join(classes)}")
    counts = Counter(zip(truth, said, strict=True))
    cells = [[counts[label, verdict] for verdict in classes] for label in classes]
    placed, right = sum(map(sum, cells)), sum(cells[i][i] for i in range(3))
    kinds: dict[tuple[StrEnum, StrEnum | None], int]
    kinds = {(label, verdict): 3 * i + j for i, label in enumerate(classes) for j, verdict in enumerate(classes)}
    kind = np.array([kinds.get(pair, 9) for pair in zip(truth, said, strict=True)], dtype=np.int64)
    each = np.eye(10)[:, :9][kind]  # claims x cells
    numbers = np.arange(len(kind)) if questions is None else questions
    per = np.stack(intervals.by_question(numbers, *each.T), axis=1).reshape(-1, 3, 3)  # questions x cells
    f1s = [intervals.ratio(2 * per[:, i, i], per[:, i].sum(axis=1) + per[:, :, i].sum(axis=1)) for i in range(3)]
    return {
        "classes": [one.value for one in classes],
        "n": placed,
        "overall": _rate(right, placed, len(truth) - placed, _accuracy(per), "nothing was decided"),
        "macro": _figure(placed, _mean([one for one in f1s if one is not None]), "no class occurs"),
        "per_class": {
            one.value: {
                "precision": _rate(
                    cells[i][i],
                    sum(row[i] for row in cells),
                    0,
                    intervals.ratio(per[:, i, i], per[:, :, i].sum(axis=1)),
                    "no verdict is this class",
                ),
                "recall": _rate(
                    cells[i][i],
                    sum(cells[i]),
                    truth.count(one) - sum(cells[i]),
                    intervals.ratio(per[:, i, i], per[:, i].sum(axis=1)),
                    "no verdict on a label of this class",
                ),
                "f1": _figure(placed, f1s[i], "the class occurs on neither side"),
            }
            for i, one in enumerate(classes)
        },
        "confusion": cells,
    }


def _accuracy(per: "Floats") -> Estimate | None:
    return intervals.ratio(per.trace(axis1=1, axis2=2), per.sum(axis=(1, 2)))


def _mean(estimates: Sequence[Estimate]) -> Estimate | None:
    if not estimates:
        return None
    share = 1 / len(estimates)
    return intervals.combined(share * sum(one.value for one in estimates), *((share, one) for one in estimates))


def _rate(yes: int, n: int, undecided: int, estimate: Estimate | None, missing: str) -> dict[str, Any]:
    return Rate(yes, n + undecided, undecided, estimate).record() | ({} if n else {"reason": missing})


def _figure(n: int, estimate: Estimate | None, missing: str) -> dict[str, Any]:
    if estimate is None:
        return {"value": None, "n": n, "interval95": None, "reason": missing}
    return {"value": estimate.value, "n": n, "interval95": list(estimate.interval)}
