"""The tables of the AIS paper from its released annotation CSVs (Rashkin et al. 2023, Tables 3 to 7)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autoais.base.errors import FormatError, field_names
from autoais.base.io.files import records
from autoais.formats.human_ratings.ais_csv import RATERS
from autoais.meta import ais_paper
from autoais.meta.agreement import f1_to_majority, krippendorff_alpha, pairwise_agreement
from autoais.metrics.rates import Rate

COLUMNS = ("model-name", "INT", "INT & AIS", "Flagged", "# agree (INT)", "# agree (AIS)")


@dataclass(frozen=True, slots=True)
class ReleasedRow:
    """The majority ratings of one model output by five annotators, and how many of them agreed with the majority.

    `attributable` is the file's `INT & AIS`, which takes precedence over `Q2`. An agreement is None if the question was
    not asked.
    """

    model: str
    is_flagged: bool
    interpretable: bool
    attributable: bool
    interpretable_agree: int | None
    attributable_agree: int | None


def read_release(path: Path) -> list[ReleasedRow]:
    """All rows of an AIS CSV; raises `FormatError` with file, line and column if a row is malformed.

    Accepts the quirks of the release: spaces around column names, `NA`, a BOM and further columns. `INT & AIS` must be
    0 if `INT` is 0, since an uninterpretable output cannot be attributed.
    """
    ratings = []
    for location, row in records(path, COLUMNS):
        if isinstance(row, FormatError):
            raise row
        if missing := [column for column in COLUMNS if column not in row]:
            raise FormatError(f"{location}: columns {', '.join(missing)} are missing (found: {field_names(row)})")
        ratings.append(_rating({column: str(row[column]).strip() for column in COLUMNS}, location))
    if not ratings:
        raise FormatError(f"{path}: holds no rows")
    return ratings


def _rating(row: dict[str, str], location: str) -> ReleasedRow:
    flags = {}
    for column in ("Flagged", "INT", "INT & AIS"):
        if row[column] not in ("0", "1"):
            raise FormatError(f"{location}: column {column!r} should be 0 or 1, found {row[column]!r}")
        flags[column] = row[column] == "1"
    if flags["INT & AIS"] and not flags["INT"]:
        raise FormatError(
            f"{location}: column 'INT & AIS' is 1 where 'INT' is 0; an uninterpretable output cannot be AIS"
        )
    agree_counts = {}
    for column in ("# agree (INT)", "# agree (AIS)"):
        try:
            agree_counts[column] = int(row[column])
        except ValueError as error:
            raise FormatError(f"{location}: column {column!r} should be a number, found {row[column]!r}") from error
    return ReleasedRow(
        row["model-name"],
        flags["Flagged"],
        flags["INT"],
        flags["INT & AIS"],
        *(count if count >= 0 else None for count in agree_counts.values()),
    )


def report(ratings: Sequence[ReleasedRow]) -> dict[str, Any]:
    """Rates of each model, and agreement over all models, as fractions.

    Denominators as in the paper: flagged over all items, interpretable over unflagged items, attributable over
    interpretable items; `ais_of_unflagged` is over unflagged items. `paper` is `ais_paper.beside_paper`. `most_agree`
    is the largest number of annotators who agree on an item; the agreement assumes five.

    Who finds an output unclear is not asked about its source. The agreement `attributable` takes all annotators who are
    not counted as agreeing for some who disagreed, those who were not asked too; `attributable_of_asked` is of those
    who were: as many as found the output interpretable.
    """
    models = dict.fromkeys(rating.model for rating in ratings)
    clear_rows = [rating for rating in ratings if not rating.is_flagged]
    rows_of_asked = [rating for rating in clear_rows if rating.interpretable]
    result = {
        "models": [_model(name, [rating for rating in ratings if rating.model == name]) for name in models],
        "agreement": {
            "interpretable": _agreement((r.interpretable, r.interpretable_agree, RATERS) for r in clear_rows),
            "attributable": _agreement((r.attributable, r.attributable_agree, RATERS) for r in rows_of_asked),
            "attributable_of_asked": _agreement(
                (rating.attributable, rating.attributable_agree, _usable(rating.interpretable_agree))
                for rating in rows_of_asked
            ),
        },
        "most_agree": max(max(rating.interpretable_agree or 0, rating.attributable_agree or 0) for rating in ratings),
    }
    return result | {"paper": ais_paper.beside_paper(result)}


def _model(name: str, ratings: Sequence[ReleasedRow]) -> dict[str, Any]:
    clear_rows = [rating for rating in ratings if not rating.is_flagged]
    interpretable = [rating for rating in clear_rows if rating.interpretable]
    return {
        "model": name,
        "flagged": Rate.of(rating.is_flagged for rating in ratings).record(),
        "interpretable": Rate.of(rating.interpretable for rating in clear_rows).record(),
        "ais": Rate.of(rating.attributable for rating in interpretable).record(),
        "ais_of_unflagged": Rate.of(rating.attributable for rating in clear_rows).record(),
    }


def _usable(agree: int | None) -> int | None:
    """The number of annotators who agree; None if it cannot be that of five who gave the most frequent value."""
    return agree if agree is not None and RATERS < 2 * agree <= 2 * RATERS else None


def _agreement(labels: Iterable[tuple[bool, int | None, int | None]]) -> dict[str, Any]:
    """Agreement from single ratings, rebuilt from majority labels, the number who agree and that of annotators.

    Impossible numbers are left out. Two of four are a tie.
    """
    items_of_labels = list(labels)
    items = [
        (agree, raters - agree) if label else (raters - agree, agree)
        for label, agree, raters in items_of_labels
        if agree is not None and raters is not None and raters <= 2 * agree <= 2 * raters
    ]
    return {
        "items": len(items),
        "left_out": len(items_of_labels) - len(items),
        "krippendorff_alpha": krippendorff_alpha(items).value,
        "pairwise_agreement": pairwise_agreement(items).value,
        "f1_to_majority": f1_to_majority(items).value,
    }
