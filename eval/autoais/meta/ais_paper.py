"""What the AIS paper prints (Rashkin et al. 2023, Tables 3 to 9 and 14 to 16), beside what its release gives."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from autoais.metrics.mcnemar import mcnemar_corrected, mcnemar_exact

OUTPUTS = 200  # outputs that the paper rated of each model
MOST_MISSING = 20  # rows of a model; the release lacks at most 8, and more would take long to complete in every way
STATUSES = ("match", "rows missing", "differs")
RATES = ("flagged", "interpretable", "ais")  # the columns Flag, Int and AIS
AGREEMENT = ("f1_to_majority", "pairwise_agreement", "krippendorff_alpha")  # the columns F1, PA and alpha
_NOT_ALL = "the reason is not known; the release has majority labels and counts of agreement, not the single ratings"
_ASKED = "attributable_of_asked"


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
    flagged: int
    interpretable: int
    attributable: int

    def with_missing(self, missing: int) -> Iterator["_Counts"]:
        """Yield the counts with at most that many rows added, in every possible way."""
        for flagged in range(missing + 1):
            for vague in range(missing + 1 - flagged):
                for clear in range(missing + 1 - flagged - vague):
                    for attributable in range(missing + 1 - flagged - vague - clear):
                        yield _Counts(
                            self.rows + flagged + vague + clear + attributable,
                            self.flagged + flagged,
                            self.interpretable + clear + attributable,
                            self.attributable + attributable,
                        )

    def percent(self) -> tuple[str, str, str]:
        """Flag, Int and AIS as the paper prints them."""
        pairs = (
            (self.flagged, self.rows),
            (self.interpretable, self.rows - self.flagged),
            (self.attributable, self.interpretable),
        )
        found = (f"{100 * yes / n:.1f}" if n else "-" for yes, n in pairs)
        return next(found), next(found), next(found)


def beside_paper(one: Mapping[str, Any]) -> dict[str, Any] | None:
    """Put the report of one file (`ais_report.report`) beside the paper's tables; None for other annotations.

    A file belongs to a table if it has at least 180 rows of each of its models. Each of `cells` has the value `printed`
    in the paper, the value `released`, and `status`: "match"; "rows missing" if the values differ, the release lacks
    some of the 200 rows that the paper rated, and some completion to at most 200 rows gives the printed value; else
    "differs". `together` says for each model with missing rows whether one completion gives all its cells.
    """
    rows = {model["model"]: model for model in one["models"]}
    large = {name for name, model in rows.items() if model["flagged"]["total"] >= OUTPUTS - MOST_MISSING}
    table = next((table for table in TABLES if table.rates.keys() <= large), None)
    if table is None:
        return None
    cells, models = [], []
    for name, printed in table.rates.items():
        counts = _counts(rows[name])
        missing = max(OUTPUTS - counts.rows, 0)
        possible = [counts.percent()] if not missing else [more.percent() for more in counts.with_missing(missing)]
        wanted = [(place, value) for place, value in enumerate(printed) if value is not None]
        for place, value in wanted:
            released = counts.percent()[place]
            reachable = any(one[place] == value for one in possible)
            status = "match" if released == value else "rows missing" if missing and reachable else "differs"
            cells.append(
                {"model": name, "rate": RATES[place], "printed": value, "released": released, "status": status}
            )
        if missing:
            together = any(all(one[place] == value for place, value in wanted) for one in possible)
            models.append({"model": name, "missing": missing, "together": together})
    return {
        "table": table.number,
        "data": table.data,
        "cells": cells,
        "matching": sum(cell["status"] == "match" for cell in cells),
        "incomplete": models,
        "agreement": _agreement(one["agreement"], table),
    }


def _counts(model: Mapping[str, Any]) -> _Counts:
    rows, unflagged = model["flagged"]["total"], model["interpretable"]["total"]
    yes = round((model["ais"]["value"] or 0) * model["ais"]["n"])
    return _Counts(rows, rows - unflagged, model["ais"]["total"], yes)


def _agreement(agreement: Mapping[str, Any], table: PaperTable) -> dict[str, Any]:
    """The row of Table 7; values are compared at its two decimals. `asked` has AIS as rated by those who were asked."""

    def cell(part: str, name: str, printed: str) -> dict[str, str]:
        value = agreement[part][name]
        released = "-" if value is None else f"{value:.2f}"
        status = "match" if released == printed else "differs"
        return {"part": part, "figure": name, "printed": printed, "released": released, "status": status}

    places = product(("interpretable", "attributable"), AGREEMENT)
    return {
        "table": 7,
        "cells": [cell(*place, printed) for place, printed in zip(places, table.agreement, strict=True)],
        "asked": [cell(_ASKED, *one) for one in zip(AGREEMENT, table.agreement[len(AGREEMENT) :], strict=True)],
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
    statuses = Counter(cell["status"] for one in files if one["paper"] for cell in one["paper"]["cells"])
    if not statuses:
        return None
    found = []
    for variant, (both, original, changed, neither, printed) in _TABLE_15.items():
        exact, corrected = mcnemar_exact(original, changed), mcnemar_corrected(original, changed)
        found.append(
            {
                "variant": variant,
                "both": both,
                "only_original": original,
                "only_variant": changed,
                "neither": neither,
                "printed": printed,
                "exact": exact.p,
                "corrected": corrected.p,
            }
        )
    cells = {status: statuses[status] for status in STATUSES}
    papers = [one["paper"] for one in files if one["paper"]]
    apart = {one["model"] for paper in papers for one in paper["incomplete"] if not one["together"]}
    not_together = sum(
        cell["status"] == "rows missing" and cell["model"] in apart for paper in papers for cell in paper["cells"]
    )
    agreement, asked = (
        [cell["status"] for paper in papers for cell in paper["agreement"][name]] for name in ("cells", "asked")
    )
    return {
        "cells": cells,
        "table_15": found,
        "not_together": not_together,
        "table_7": {
            "match": agreement.count("match"),
            "cells": len(agreement),
            "asked_match": asked.count("match"),
            "asked": len(asked),
        },
        "without_data": {str(number): why for number, why in WITHOUT_DATA.items()},
    }
