"""AttrScore's metrics (Yue et al. 2023): precision, recall and F1 of three classes, micro ("overall") and macro."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from autoais.metrics import intervals
from autoais.metrics.intervals import Estimate
from autoais.metrics.rates import Rate
from autoais.types import Verdict

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from autoais.metrics.intervals import Floats

CLASSES = (Verdict.ATTRIBUTABLE, Verdict.EXTRAPOLATORY, Verdict.CONTRADICTORY)


def evaluate(truth: Sequence[Verdict], said: Sequence[Verdict], questions: "ArrayLike | None" = None) -> dict[str, Any]:
    """Compare verdicts with labels of the three classes; fractions, each with a 95 % interval over questions.

    `questions` numbers the question of each claim; without it, each claim is of another question. `confusion` has
    labels as rows and verdicts as columns, both in the order of `classes`. Undecided verdicts, and verdicts of only
    "not attributable" (`two_way`), are in no column. `overall` is micro-F1 over the rest, as in AttrScore's notebook,
    which drops unparsed outputs; its floor counts them as wrong. `macro` is the mean F1 of the classes that occur among
    labels or verdicts. Raises `ValueError` for a label outside the three classes.
    """
    import numpy as np

    if not set(truth) <= set(CLASSES):
        raise ValueError(f"labels must be among {', '.join(CLASSES)}")
    counts = Counter(zip(truth, said, strict=True))
    cells = [[counts[label, verdict] for verdict in CLASSES] for label in CLASSES]
    placed, right = sum(map(sum, cells)), sum(cells[i][i] for i in range(3))
    kinds = {(label, verdict): 3 * i + j for i, label in enumerate(CLASSES) for j, verdict in enumerate(CLASSES)}
    kind = np.array([kinds.get(pair, 9) for pair in zip(truth, said, strict=True)], dtype=np.int64)
    each = np.eye(10)[:, :9][kind]  # claims x cells
    numbers = np.arange(len(kind)) if questions is None else questions
    per = np.stack(intervals.by_question(numbers, *each.T), axis=1).reshape(-1, 3, 3)  # questions x cells
    f1s = [intervals.ratio(2 * per[:, i, i], per[:, i].sum(axis=1) + per[:, :, i].sum(axis=1)) for i in range(3)]
    return {
        "classes": [verdict.value for verdict in CLASSES],
        "n": placed,
        "undecided": sum(verdict is Verdict.UNDECIDED for verdict in said),
        "two_way": sum(verdict is Verdict.NOT_ATTRIBUTABLE for verdict in said),
        "overall": _rate(right, placed, len(truth) - placed, _accuracy(per), "nothing was decided"),
        "macro": _figure(placed, _mean([one for one in f1s if one is not None]), "no class occurs"),
        "per_class": {
            verdict.value: {
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
                    truth.count(verdict) - sum(cells[i]),
                    intervals.ratio(per[:, i, i], per[:, i].sum(axis=1)),
                    "no verdict on a label of this class",
                ),
                "f1": _figure(placed, f1s[i], "the class occurs on neither side"),
            }
            for i, verdict in enumerate(CLASSES)
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
