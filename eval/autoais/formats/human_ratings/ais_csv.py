"""The CSV of the AIS paper's release: one row per answer, with the most frequent value of its annotators."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping

from autoais.base.answers import CitedAnswer
from autoais.formats.base import Notes
from autoais.formats.human_ratings.consensus import Consensus, consensus, cut, is_flagged
from autoais.formats.human_ratings.ratings import RELAXED, Rating
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
    ratings: Iterable[Rating], answers: Mapping[str, CitedAnswer], notes: Notes, *, likert: int = RELAXED
) -> Iterator[str]:
    """Yield the lines of the CSV; `autoais ais-report` reads it.

    `notes` counts what it has no place for: ratings of sentences and citations, other questions, ties (written as a no
    with the number of those who said so), and answers rated by another number of people than five.
    """
    items: dict[str, list[Rating]] = {}
    for one in cut(ratings, likert):
        if one.sentence is not None or one.question not in ("interpretable", "attributable", "flag"):
            notes["ratings of sentences, citations or other questions, left out"] += 1
        elif one.phase in ("study", "adjudication"):
            items.setdefault(one.item, []).append(one)
    yield _line(HEADER)
    for rated in items.values():
        if len({one.annotator for one in rated if one.phase == "study"}) != RATERS:
            notes["answers not rated by five annotators, as `autoais ais-report` assumes: use `autoais agreement`"] += 1
        answer, found = answer_of(rated[0], answers), {one.question: one for one in consensus(rated)}
        flagged = is_flagged(rated)
        clear, supported = (None if flagged else found.get(name) for name in ("interpretable", "attributable"))
        if ties := sum(one is not None and one.value is None for one in (clear, supported)):
            notes["ties, written as no"] += ties
        understood = not flagged and (clear is None or clear.value == "yes")
        if not understood:
            supported = None
        cited = next((key for sentence in answer.sentences for key in sentence.cites), "NA")
        yield _line(
            (
                answer.id,
                cited,
                "NA",
                rated[0].system,
                answer.plain,
                int(understood),
                int(supported is not None and supported.value == "yes"),
                int(flagged),
                "" if clear is None else _Q1[clear.value == "yes"],
                "" if supported is None else _Q2[supported.value == "yes"],
                _agree(clear),
                _agree(supported),
            )
        )


def _agree(one: Consensus | None) -> int:
    """How many annotators gave the value that is written; -1 if nobody was asked."""
    return _NOT_ASKED if one is None else one.counts.get("no" if one.value is None else one.value, 0)


def _line(cells: Iterable[object]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow([" ".join(str(cell).splitlines()) for cell in cells])
    return line.getvalue()
