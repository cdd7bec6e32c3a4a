"""Ratings to and from other tools, and as labels of answers in any format."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from autoais import formats
from autoais.base.answers import CitedAnswer
from autoais.base.errors import UserError
from autoais.formats.base import Notes
from autoais.formats.human_ratings import ais_csv, autojudge, label_studio
from autoais.formats.human_ratings.consensus import drop_annotators as left_out
from autoais.formats.human_ratings.consensus import label_answers
from autoais.formats.human_ratings.ratings import RELAXED_CUT, Rating, write_ratings
from autoais.formats.human_ratings.read import read_ratings

TARGETS = ("ratings", "label-studio", "label-studio-config", "autojudge", "ais-csv")


def convert_ratings(
    source: str | Path | Iterable[Rating],
    to: str,
    *,
    answers: str | Path | None = None,
    likert: int = RELAXED_CUT,
    without: Collection[str] = (),
    notes: Notes | None = None,
) -> Iterator[str]:
    """Return the lines of a file: ratings for another tool (`TARGETS`), or answers with the consensus as their labels.

    `source` is a file that `read_ratings` reads; `to` one of `TARGETS` or any answer format. `answers` are the rated
    answers, which all targets but ratings and label-studio-config need. `without` names annotators whose ratings are
    left out. `notes` counts what else is, and the labels written into answers. Raises `UserError`.
    """
    notes = Notes() if notes is None else notes
    ratings = read_ratings(source) if isinstance(source, str | Path) else iter(source)
    if without:
        ratings = iter(left_out(ratings, without))
    if to == "ratings":
        return write_ratings(ratings)
    if to == "label-studio-config":
        return label_studio.configuration(ratings)
    if to not in TARGETS and (to not in formats.FORMATS or formats.FORMATS[to].write is None):
        targets = ", ".join(
            [*TARGETS, *sorted(key for key, file_format in formats.FORMATS.items() if file_format.write)]
        )
        raise UserError(f"ratings cannot be converted to {to!r}; there are: {targets}")
    if answers is None:
        raise UserError(f"{to} needs the rated answers too (--answers FILE)")
    rated_answers = formats.read_for_ratings(Path(answers), notes)
    if to not in TARGETS:
        labelled_answers = label_answers(rated_answers, ratings, likert=likert, notes=notes)
        return formats.write(_count_labels(labelled_answers, to, notes), to, notes)
    by_id = {answer.id: answer for answer in rated_answers}
    match to:
        case "label-studio":
            return label_studio.write(ratings, by_id, notes)
        case "autojudge":
            return autojudge.write(ratings, by_id, notes)
        case _:
            return ais_csv.write(ratings, by_id, notes, likert=likert)


def _count_labels(answers: Iterable[CitedAnswer], to: str, notes: Notes) -> Iterator[CitedAnswer]:
    """Yield the answers; count in `notes` their labels, and those that the format has no field for."""
    notes["labels written"] = 0
    supports = formats.get_format(to).supports
    for answer in answers:
        labels_by_feature: dict[str, Sequence[object]] = {
            "labels of answers": [answer.attributable],
            "labels of sentences": [sentence.attributable for sentence in answer.sentences],
            "informativeness": [answer.informative, *(sentence.informative for sentence in answer.sentences)],
            "worthiness": [sentence.worthy for sentence in answer.sentences],
            "levels of support": [citation.support for sentence in answer.sentences for citation in sentence.citations],
        }
        for feature, labels in labels_by_feature.items():
            if count := sum(label is not None for label in labels):
                notes["labels written" if feature in supports else f"{feature}, left out, as {to} has none"] += count
        yield answer
