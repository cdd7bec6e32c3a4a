"""What the AIS paper prints (Rashkin et al. 2023, Tables 3 to 9 and 14 to 16), beside what its release gives."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from autoais.metrics.mcnemar import mcnemar_corrected, mcnemar_exact

OUTPUTS = 200  # outputs that the paper rated of each model
MAX_MISSING = 20  # rows of a model; the release lacks at most 8, and more would take long to complete in every way
STATUSES = ("match", "rows missing", "differs")
RATES = ("flagged", "interpretable", "ais")  # the columns Flag, Int and AIS
AGREEMENT = ("f1_to_majority", "pairwise_agreement", "krippendorff_alpha")  # the columns F1, PA and alpha
_NOT_ALL = "the reason is not known; the release has majority labels and counts of agreement, not the single ratings"
_ATTRIBUTABLE_OF_ASKED = "attributable_of_asked"


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A table of rates as printed: per `model-name` of the release Flag, Int and AIS in percent; None has no column.

    `agreement` is the row of Table 7: F1, pairwise agreement and alpha of Int, then of AIS.
    """

    number: int
    data: str
    rates: Mapping[str, tuple[str | None, str, str]]
    agreement: tuple[str, str, str, str, str, str]


TABLES = (
    PaperTable(
        3,
        "QReCC",
        {
            "t5-small-pretrained": (None, "43.0", "82.6"),
            "t5-base-pretrained": (None, "47.0", "69.1"),
            "t5-small-no-evidence": (None, "57.8", "25.2"),
            "t5-base-no-evidence": (None, "59.8", "21.8"),
            "t5-small": (None, "99.0", "87.9"),
            "t5-base": (None, "98.0", "87.2"),
            "qrecc-reference": (None, "99.0", "87.8"),
        },
        ("0.97", "0.96", "0.91", "0.93", "0.89", "0.76"),
    ),
    PaperTable(
        4,
        "WoW",
        {
            "wow-dinan_et_al": ("4.0", "84.4", "19.8"),
            "wow-dodeca": ("8.5", "100.0", "60.1"),
            "wow-t5": ("5.5", "98.4", "39.8"),
            "wow-controlled_t5": ("7.5", "99.5", "92.4"),
            "wow-reference": ("4.0", "100.0", "15.6"),
        },
        ("0.88", "0.93", "0.60", "0.95", "0.88", "0.79"),
    ),
    PaperTable(
        5,
        "CNN/DM",
        {
            "matchsum": (None, "90.0", "99.4"),
            "pointer": (None, "90.0", "97.8"),
            "bigbird": (None, "90.0", "87.2"),
            "reference": (None, "86.0", "54.1"),
        },
        ("0.83", "0.80", "0.46", "0.92", "0.89", "0.69"),
    ),
    PaperTable(
        6,
        "ToTTo",
        {
            "ByT5-base": ("0.0", "78.9", "88.5"),
            "ByT5-xl": ("0.0", "79.5", "86.2"),
            "T5-small": ("3.0", "86.5", "88.6"),
            "T5-base": ("5.0", "91.1", "86.6"),
            "T5-xl": ("6.0", "89.4", "85.1"),
            "reference-final": ("0.0", "83.9", "91.0"),
        },
        ("0.95", "0.95", "0.84", "0.92", "0.92", "0.74"),
    ),
)

# Table 15: correct against the experts in both designs, only in the original, only in the variant, in neither; and p.
_TABLE_15 = {
    "A1": (21, 6, 5, 18, "1.00"),
    "A2 (relaxed)": (23, 4, 4, 19, "0.724"),
    "A2 (strict)": (24, 3, 7, 16, "0.343"),
    "A3": (24, 3, 5, 18, "0.727"),
}

WITHOUT_DATA = {
    8: "audits: not produced, since the release has the final majority labels and no audit samples",
    9: "completion times: not produced, since the release has no times",
    14: "times of the ablations: not produced, since the release has neither times nor the ablations' ratings",
    15: "ablations against experts: recomputed from the counts that the paper prints, since no such rating is released",
    16: "usability survey: not produced, since the release has no answers of annotators",
}


@dataclass(frozen=True, slots=True)
class _Counts:
    rows: int
    n_flagged: int
    interpretable: int
    attributable: int

    def with_missing(self, missing: int) -> Iterator["_Counts"]:
        """Yield the counts with at most that many rows added, in every possible way."""
        for n_more_flagged in range(missing + 1):
            for vague in range(missing + 1 - n_more_flagged):
                for clear in range(missing + 1 - n_more_flagged - vague):
                    for attributable in range(missing + 1 - n_more_flagged - vague - clear):
                        yield _Counts(
                            self.rows + n_more_flagged + vague + clear + attributable,
                            self.n_flagged + n_more_flagged,
                            self.interpretable + clear + attributable,
                            self.attributable + attributable,
                        )

    def percent(self) -> tuple[str, str, str]:
        """Flag, Int and AIS as the paper prints them."""
        pairs = (
            (self.n_flagged, self.rows),
            (self.interpretable, self.rows - self.n_flagged),
            (self.attributable, self.interpretable),
        )
        percents = (f"{100 * yes / n:.1f}" if n else "-" for yes, n in pairs)
        return next(percents), next(percents), next(percents)


def beside_paper(file_report: Mapping[str, Any]) -> dict[str, Any] | None:
    """Put the report of one file (`ais_report.report`) beside the paper's tables; None for other annotations.

    A file belongs to a table if it has at least 180 rows of each of its models. Each of `cells` has the value `printed`
    in the paper, the value `released`, and `status`: "match"; "rows missing" if the values differ, the release lacks
    some of the 200 rows that the paper rated, and some completion to at most 200 rows gives the printed value; else
    "differs". `together` says for each model with missing rows whether one completion gives all its cells.
    """
    rows = {model["model"]: model for model in file_report["models"]}
    large = {name for name, model in rows.items() if model["flagged"]["total"] >= OUTPUTS - MAX_MISSING}
    table = next((table for table in TABLES if table.rates.keys() <= large), None)
    if table is None:
        return None
    cells, models = [], []
    for name, values in table.rates.items():
        counts = _counts(rows[name])
        missing = max(OUTPUTS - counts.rows, 0)
        possible = (
            [counts.percent()] if not missing else [completion.percent() for completion in counts.with_missing(missing)]
        )
        printed_values = [(index, value) for index, value in enumerate(values) if value is not None]
        for index, value in printed_values:
            released_value = counts.percent()[index]
            reachable = any(percents[index] == value for percents in possible)
            status = "match" if released_value == value else "rows missing" if missing and reachable else "differs"
            cells.append(
                {"model": name, "rate": RATES[index], "printed": value, "released": released_value, "status": status}
            )
        if missing:
            in_one_completion = any(
                all(percents[index] == value for index, value in printed_values) for percents in possible
            )
            models.append({"model": name, "missing": missing, "together": in_one_completion})
    return {
        "table": table.number,
        "data": table.data,
        "cells": cells,
        "matching": sum(cell["status"] == "match" for cell in cells),
        "incomplete": models,
        "agreement": _agreement(file_report["agreement"], table),
    }


def _counts(model: Mapping[str, Any]) -> _Counts:
    rows, n_unflagged = model["flagged"]["total"], model["interpretable"]["total"]
    yes = round((model["ais"]["value"] or 0) * model["ais"]["n"])
    return _Counts(rows, rows - n_unflagged, model["ais"]["total"], yes)


def _agreement(agreement: Mapping[str, Any], table: PaperTable) -> dict[str, Any]:
    """The row of Table 7; values are compared at its two decimals. `asked` has AIS as rated by those who were asked."""

    def cell(part: str, name: str, printed_value: str) -> dict[str, str]:
        value = agreement[part][name]
        released_value = "-" if value is None else f"{value:.2f}"
        status = "match" if released_value == printed_value else "differs"
        return {"part": part, "figure": name, "printed": printed_value, "released": released_value, "status": status}

    rows_of_table = product(("interpretable", "attributable"), AGREEMENT)
    return {
        "table": 7,
        "cells": [cell(*row, printed_value) for row, printed_value in zip(rows_of_table, table.agreement, strict=True)],
        "asked": [
            cell(_ATTRIBUTABLE_OF_ASKED, *values)
            for values in zip(AGREEMENT, table.agreement[len(AGREEMENT) :], strict=True)
        ],
        "why": _NOT_ALL,
    }


def other_tables(files: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """What belongs to no single file, for reports of `ais_report.report`; None if none is of the paper's release.

    `cells` counts the cells of Tables 3 to 6 by status over all files; of those with "rows missing", `not_together` are
    of a model whose values do not come out of one completion. `table_7` counts the matching values, and those of AIS as
    rated by those who were asked (`asked_match` of `asked`). `table_15` has McNemar's test of each variant of the task
    against the original design, in both forms, from the counts that the paper prints. `without_data` says why the
    release gives no values for the other tables.
    """
    statuses = Counter(
        cell["status"] for file_report in files if file_report["paper"] for cell in file_report["paper"]["cells"]
    )
    if not statuses:
        return None
    tests = []
    for variant, (n_both, original, n_variant, n_neither, printed_p) in _TABLE_15.items():
        exact_test, corrected_test = mcnemar_exact(original, n_variant), mcnemar_corrected(original, n_variant)
        tests.append(
            {
                "variant": variant,
                "both": n_both,
                "only_original": original,
                "only_variant": n_variant,
                "neither": n_neither,
                "printed": printed_p,
                "exact": exact_test.p,
                "corrected": corrected_test.p,
            }
        )
    cells = {status: statuses[status] for status in STATUSES}
    papers = [file_report["paper"] for file_report in files if file_report["paper"]]
    split_models = {model["model"] for paper in papers for model in paper["incomplete"] if not model["together"]}
    not_together = sum(
        cell["status"] == "rows missing" and cell["model"] in split_models
        for paper in papers
        for cell in paper["cells"]
    )
    agreement, asked_statuses = (
        [cell["status"] for paper in papers for cell in paper["agreement"][name]] for name in ("cells", "asked")
    )
    return {
        "cells": cells,
        "table_15": tests,
        "not_together": not_together,
        "table_7": {
            "match": agreement.count("match"),
            "cells": len(agreement),
            "asked_match": asked_statuses.count("match"),
            "asked": len(asked_statuses),
        },
        "without_data": {str(number): reason for number, reason in WITHOUT_DATA.items()},
    }
