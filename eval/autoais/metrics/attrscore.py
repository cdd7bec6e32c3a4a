"""AttrScore's metrics (Yue et al. 2023): precision, recall and F1 of three classes, micro ("overall") and macro.

The same for the three levels of support (Liu et al. 2023; TREC RAG track).
"""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from autoais.base.types import Support, Verdict
from autoais.metrics import intervals
from autoais.metrics.intervals import Estimate
from autoais.metrics.rates import Rate

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from autoais.metrics.intervals import Floats

CLASSES = (Verdict.ATTRIBUTABLE, Verdict.CONTRADICTORY, Verdict.EXTRAPOLATORY)  # the paper's order


def evaluate(
    truth: Sequence[Verdict], verdicts: Sequence[Verdict], questions: "ArrayLike | None" = None
) -> dict[str, Any]:
    """Compare verdicts with labels of the three classes; fractions, each with a 95 % interval over questions.

    `questions` numbers the question of each claim; without it, each claim is of another question. `confusion` has
    labels as rows and verdicts as columns, both in the order of `classes`. Undecided verdicts, and verdicts of only
    "not attributable" or "partially attributable" (`two_way`), are in no column. Such a verdict is wrong for the label
    "attributable", and says nothing for the others. `overall` is micro-F1 over what was decided, as in AttrScore's
    notebook, which drops unparsed outputs; its floor counts them as wrong. `macro` is the mean F1 of the classes that
    occur among labels or verdicts; a class whose claims are all undecided has 0. Raises `ValueError` for a label
    outside the three classes.
    """
    undecided = sum(verdict is Verdict.UNDECIDED for verdict in verdicts)
    two_way = sum(verdict not in CLASSES for verdict in verdicts) - undecided
    wrong = [
        label is Verdict.ATTRIBUTABLE and verdict not in (*CLASSES, Verdict.UNDECIDED)
        for label, verdict in zip(truth, verdicts, strict=True)
    ]
    return {"undecided": undecided, "two_way": two_way, **_compare(truth, verdicts, CLASSES, questions, wrong)}


def evaluate_levels(
    truth: Sequence[Support], levels: Sequence[Support | None], questions: "ArrayLike | None" = None
) -> dict[str, Any]:
    """Compare the levels of support of a judge with those of people; as `evaluate`, with None for undecided."""
    return {"undecided": sum(level is None for level in levels), **_compare(truth, levels, tuple(Support), questions)}


def _compare(
    truth: Sequence[StrEnum],
    verdicts: Sequence[StrEnum | None],
    classes: Sequence[StrEnum],
    questions: "ArrayLike | None",
    wrong: Sequence[bool] = (),
) -> dict[str, Any]:
    """The figures; `wrong` says which verdicts of no class are wrong, while the others of these are undecided."""
    import numpy as np

    if not set(truth) <= set(classes):
        raise ValueError(f"labels must be among {', '.join(classes)}")
    counts = Counter(zip(truth, verdicts, strict=True))
    cells = [[counts[label, verdict] for verdict in classes] for label in classes]
    wrong_counts = Counter(label for label, is_wrong in zip(truth, wrong, strict=False) if is_wrong)
    rows = [
        sum(row) + wrong_counts[label] for row, label in zip(cells, classes, strict=True)
    ]  # decided claims of each label
    columns = [sum(row[i] for row in cells) for i in range(3)]
    n_decided, right = sum(rows), sum(cells[i][i] for i in range(3))
    kinds: dict[tuple[StrEnum, StrEnum | None], int]
    kinds = {(label, verdict): 4 * i + j for i, label in enumerate(classes) for j, verdict in enumerate(classes)}
    kind = np.array([kinds.get(pair, 12) for pair in zip(truth, verdicts, strict=True)], dtype=np.int64)
    for index, is_wrong in enumerate(wrong):
        if is_wrong:
            kind[index] = 4 * classes.index(truth[index]) + 3
    one_hot = np.eye(13)[:, :12][kind]  # claims x cells, with a fourth column of verdicts that are wrong
    numbers = np.arange(len(kind)) if questions is None else questions
    per = np.stack(intervals.by_question(numbers, *one_hot.T), axis=1).reshape(-1, 3, 4)  # questions x cells
    f1s = [intervals.ratio(2 * per[:, i, i], per[:, i].sum(axis=1) + per[:, :, i].sum(axis=1)) for i in range(3)]
    occurring = [
        estimate for estimate, label in zip(f1s, classes, strict=True) if estimate is not None or label in truth
    ]
    return {
        "classes": [label.value for label in classes],
        "n": n_decided,
        "overall": _rate(right, n_decided, len(truth) - n_decided, _accuracy(per), "nothing was decided"),
        "macro": _figure(n_decided, _mean(occurring), "nothing was decided" if truth else "no class occurs"),
        "per_class": {
            label.value: {
                "precision": _rate(
                    cells[i][i],
                    columns[i],
                    0,
                    intervals.ratio(per[:, i, i], per[:, :, i].sum(axis=1)),
                    "no verdict is this class",
                ),
                "recall": _rate(
                    cells[i][i],
                    rows[i],
                    truth.count(label) - rows[i],
                    intervals.ratio(per[:, i, i], per[:, i].sum(axis=1)),
                    "no verdict on a label of this class",
                ),
                "f1": _figure(n_decided, f1s[i], "no claim of this class was decided, and no verdict is this class"),
            }
            for i, label in enumerate(classes)
        },
        "confusion": cells,
    }


def _accuracy(per: "Floats") -> Estimate | None:
    return intervals.ratio(per.trace(axis1=1, axis2=2), per.sum(axis=(1, 2)))


def _mean(estimates: Sequence[Estimate | None]) -> Estimate | None:
    """The mean with None as 0; None if all are None."""
    present = [estimate for estimate in estimates if estimate is not None]
    if not present:
        return None
    share = 1 / len(estimates)
    return intervals.combine(
        share * sum(estimate.value for estimate in present), *((share, estimate) for estimate in present)
    )


def _rate(yes: int, n: int, undecided: int, estimate: Estimate | None, missing: str) -> dict[str, Any]:
    return Rate(yes, n + undecided, undecided, estimate).record() | ({} if n else {"reason": missing})


def _figure(n: int, estimate: Estimate | None, missing: str) -> dict[str, Any]:
    if estimate is None:
        return {"value": None, "n": n, "interval95": None, "reason": missing}
    return {"value": estimate.value, "n": n, "interval95": list(estimate.interval)}
