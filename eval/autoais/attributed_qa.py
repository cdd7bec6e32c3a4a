"""Attributed QA's evaluation (Bohnet et al. 2022; spec A5 to A7): its two files, and the mode of its script."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from autoais.answers import CitedAnswer, ShownPassage
from autoais.errors import UserError
from autoais.formats.aqa import PREDICTIONS, scores_lines

GOOGLE_2023 = "google-2023"


def check_mode(compat: str | None, format_name: str) -> bool:
    """Whether the mode is google-2023; `UserError` where there is no such mode, or not for that format."""
    if compat not in (None, GOOGLE_2023):
        raise UserError(f"no mode called {compat!r}; there is: {GOOGLE_2023}")
    if compat and format_name != PREDICTIONS.name:
        raise UserError(f"{GOOGLE_2023} is how {PREDICTIONS.name} were scored; this file is {format_name}")
    return compat is not None


def as_read_in_2023(answers: Iterable[CitedAnswer]) -> Iterator[CitedAnswer]:
    """Answers with the passages as the released script gives them to its model: nothing after a first newline.

    A passage that is not in the form of the script's Wikipedia stays whole, as there (spec A3, A7).
    One difference is left: the script also asks its model about an empty answer and a passage of which nothing is
    left; here those are an `N` without being asked.
    """
    for answer in answers:
        passages = {key: _first_line(passage) for key, passage in answer.passages.items()}
        yield replace(answer, passages=passages)


def _first_line(passage: ShownPassage) -> ShownPassage:
    if not passage.title and not passage.headings:
        return passage
    return replace(passage, text=passage.text.partition("\n")[0])


def scores(metrics: Mapping[str, Any]) -> list[str]:
    """The scores file of a report's metrics (not rounded): AutoAIS over all questions, undecided taken as no.

    `UserError` where exact match and F1 are absent.
    """
    for name in ("em", "f1"):
        if metrics[name]["value"] is None:
            reason = metrics[name]["reason"]
            way_out = "; --questions gives them" if "reference answers" in reason else ""
            raise UserError(f"no scores file: {name} is absent, because {reason}{way_out}")
    return scores_lines(metrics["autoais"]["floor"], 100 * metrics["em"]["value"], 100 * metrics["f1"]["value"])
