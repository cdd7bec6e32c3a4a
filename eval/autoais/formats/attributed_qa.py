"""Attributed QA's evaluation (Bohnet et al. 2022): its scores file, and the mode that matches its released script."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.errors import UserError
from autoais.base.types import Passage
from autoais.formats.aqa import PREDICTIONS, scores_lines

GOOGLE_2023 = "google-2023"


def check_mode(compat: str | None, format_name: str) -> bool:
    """Return whether the mode is google-2023; raises `UserError` for another mode or the wrong format."""
    if compat not in (None, GOOGLE_2023):
        raise UserError(f"no mode called {compat!r}; there is: {GOOGLE_2023}")
    if compat and format_name != PREDICTIONS.name:
        raise UserError(f"{GOOGLE_2023} is for {PREDICTIONS.name}; this file is {format_name}")
    return compat is not None


def judge_options(compat: str | None, judge: str) -> dict[str, str]:
    """Return the options that a mode gives a judge of this name: `hf:` judges read and decode as the script does."""
    return {"compat": GOOGLE_2023} if compat == GOOGLE_2023 and judge.partition(":")[0] == "hf" else {}


def as_read_in_2023(answers: Iterable[CitedAnswer]) -> Iterator[CitedAnswer]:
    """Cut passages at the first newline, as Attributed QA's released script does.

    A passage without headings in the script's format (`« Title » « Headings » text`) stays whole, as in the script.
    One difference remains: the script also asks its model about empty answers and passages cut to nothing; here these
    are `N` without a model call.
    """
    for answer in answers:
        passages = {key: _first_line(passage) for key, passage in answer.passages.items()}
        yield replace(answer, passages=passages)


def _first_line(passage: Passage) -> Passage:
    if not passage.title and not passage.headings:
        return passage
    return replace(passage, text=passage.text.partition("\n")[0])


def scores(metrics: Mapping[str, Any]) -> list[str]:
    """Return the lines of the scores file, from the unrounded metrics of a report.

    AutoAIS is over all questions; undecided counts as no. Raises `UserError` if exact match or F1 is absent.
    """
    for name in ("em", "f1"):
        if metrics[name]["value"] is None:
            reason = metrics[name]["reason"]
            way_out = "; give questions that have them (--questions)" if "reference answers" in reason else ""
            raise UserError(f"no scores file: {name} is absent, because {reason}{way_out}")
    return scores_lines(metrics["autoais"]["floor"], 100 * metrics["em"]["value"], 100 * metrics["f1"]["value"])
