"""The CSV of the AIS paper's release: one row per answer, with the most frequent value of its annotators."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping

from autoais.base.answers import CitedAnswer
from autoais.formats.base import Notes
from autoais.formats.human_ratings.consensus import Consensus, apply_cut, consensus, is_flagged
from autoais.formats.human_ratings.ratings import RELAXED_CUT, Rating
from autoais.formats.human_ratings.texts import answer_of

HEADER = (
    "ex-idx", "doc-url", "doc-url-hash", "model-name", "output", "INT", "INT & AIS", "Flagged", "Q1", "Q2",
    "# agree (INT)", "# agree (AIS)",
)  # fmt: skip
_Q1 = {True: "Yes, I understand it.", False: "No, the response is unclear."}
_Q2 = {True: "Yes, fully attributable.", False: "No, not fully attributable."}
_NOT_ASKED = -1
RATERS = 5  # of an answer in the release, and so for `autoais ais-report`


def write(
    ratings: Iterable[Rating], answers: Mapping[str, CitedAnswer], notes: Notes, *, likert: int = RELAXED_CUT
) -> Iterator[str]:
    """Yield the lines of the CSV; `autoais ais-report` reads it.

    `notes` counts what it has no place for: ratings of sentences and citations, other questions, ties (written as a no
    with the number of those who said so), and answers rated by another number of people than five.
    """
    items: dict[str, list[Rating]] = {}
    for rating in apply_cut(ratings, likert):
        if rating.sentence is not None or rating.question not in ("interpretable", "attributable", "flag"):
            notes["ratings of sentences, citations or other questions, left out"] += 1
        elif rating.phase in ("study", "adjudication"):
            items.setdefault(rating.item, []).append(rating)
    yield _line(HEADER)
    for group in items.values():
        if len({rating.annotator for rating in group if rating.phase == "study"}) != RATERS:
            notes["answers not rated by five annotators, as `autoais ais-report` assumes: use `autoais agreement`"] += 1
        answer, values = answer_of(group[0], answers), {item.question: item for item in consensus(group)}
        has_flag = is_flagged(group)
        clear, support = (None if has_flag else values.get(name) for name in ("interpretable", "attributable"))
        if ties := sum(item is not None and item.value is None for item in (clear, support)):
            notes["ties, written as no"] += ties
        is_interpretable = not has_flag and (clear is None or clear.value == "yes")
        if not is_interpretable:
            support = None
        source = next((key for sentence in answer.sentences for key in sentence.cites), "NA")
        yield _line(
            (
                answer.id,
                source,
                "NA",
                group[0].system,
                answer.plain,
                int(is_interpretable),
                int(support is not None and support.value == "yes"),
                int(has_flag),
                "" if clear is None else _Q1[clear.value == "yes"],
                "" if support is None else _Q2[support.value == "yes"],
                _agree(clear),
                _agree(support),
            )
        )


def _agree(item: Consensus | None) -> int:
    """Return the number of annotators who gave the written value; -1 if nobody was asked."""
    return _NOT_ASKED if item is None else item.counts.get("no" if item.value is None else item.value, 0)


def _line(cells: Iterable[object]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow([" ".join(str(cell).splitlines()) for cell in cells])
    return line.getvalue()
