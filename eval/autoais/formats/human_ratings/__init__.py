"""Ratings of people: `ratings.jsonl`, one row per annotator, item and question, and the consensus of several people.

    {"item": "q12/1#0", "answer": "q12/1", "sentence": 0, "annotator": "ada", "question": "attributable",
     "value": "yes"}

`rag annotate export` writes such files; `autoais agreement` reads them.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.errors import AIS_REPORT, FormatError, UsageError, UserError, as_path, check_type
from autoais.base.io.files import records
from autoais.base.io.jsonl import dumps
from autoais.base.io.notes import Notes
from autoais.base.io.schema import (
    BOOLEAN,
    IDENTIFIER,
    NUMBER_OR_NULL,
    STRING,
    TEXT_OR_NULL,
    Schema,
    faults,
    listed,
    record,
)
from autoais.base.types import Citation, CitedSentence, Support
from autoais.metrics.hagrid import answer_attributable, answer_informative

FLAG = "flag"
"""The question of a row that sets an item aside; its value is the reason."""

SIMULATED = "simulated-"
"""How the name of an annotator begins who is no person (`scripts/simulate_study.py`)."""

SIMULATED_LABELS = "simulated_labels"
"""The field of `CitedAnswer.extra` that is true if labels of the answer are simulated."""

TIES = "ties"
"""The field of `CitedAnswer.extra` with the places whose support people are split on: sentence and citation, or null.

`{"sentence": null, "citation": null}` is the whole answer.
"""

PHASES = ("study", "training", "gold", "audit", "adjudication")
LIKERT = ("1", "2", "3", "4", "5")  # 5: fully (Rashkin et al. 2023, ablation A2)
RELAXED, STRICT = 4, 5  # the least Likert value that counts as a yes; the paper's two cuts

_YES_NO = ("yes", "no")
VALUES: Mapping[str, tuple[str, ...]] = {
    "interpretable": _YES_NO,
    "attributable": (*_YES_NO, *LIKERT),
    "informative": _YES_NO,
    "worthy": _YES_NO,
    "supported": (*_YES_NO, "contradict"),
    "support": ("full", "partial", "none", "inaccessible", "contradict", "unclear"),
}
"""The values of the questions that have a meaning here (Rashkin, Kamalloo, Liu et al.); others may have any values."""


@dataclass(frozen=True, slots=True)
class Rating:
    """The answer `value` of one annotator to one question about one item.

    The item is the whole answer `answer` if `sentence` (0-based) is None, its sentence, or, if `citation` names a
    passage, that citation of the sentence. Without `answer`, `item` is the id of the answer. `seconds` is the time
    that the annotator took, `at` when (ISO 8601, UTC). `phase` is one of `PHASES`; only ratings of the study and
    adjudications count for the consensus. `evidence` are spans of passages that the annotator chose, `reason` is
    written by the annotator. `revised`: the annotator took back an earlier value. `system` made the answer. An audit's
    value is what the auditor would have said; `audited` is the annotator whose rating was checked, None for all.
    `source_seen`: the question was asked without the source, but the annotator had seen it before, and went back.
    """

    item: str
    annotator: str
    question: str
    value: str
    answer: str | None = None
    sentence: int | None = None
    citation: str | None = None
    seconds: float | None = None
    at: str | None = None
    phase: str = "study"
    system: str = ""
    evidence: tuple[Citation, ...] = ()
    reason: str = ""
    revised: bool = False
    audited: str | None = None
    source_seen: bool = False

    def __post_init__(self) -> None:
        for name in ("item", "annotator", "question", "value"):
            check_type(f"the {name} of a rating", getattr(self, name), "a string", str)
        if self.phase not in PHASES:
            raise UsageError(f"the phase of a rating should be one of {', '.join(PHASES)}, found {self.phase!r:.60}")

    @property
    def key(self) -> tuple[str | None, ...]:
        """What an annotator has one value for."""
        return self.item, self.question, self.annotator, self.phase, self.audited

    @property
    def rated(self) -> str:
        """The id of the answer that it is about."""
        return self.item if self.answer is None else self.answer


_PLACE: Schema = {"type": ["integer", "null"], "minimum": 0}
SCHEMA = record(
    {"item": IDENTIFIER, "annotator": IDENTIFIER, "question": IDENTIFIER, "value": IDENTIFIER},
    {
        "answer": TEXT_OR_NULL,
        "sentence": _PLACE,
        "citation": TEXT_OR_NULL,
        "seconds": NUMBER_OR_NULL | {"minimum": 0},
        "at": TEXT_OR_NULL,
        "phase": {"type": "string", "enum": list(PHASES)},
        "system": TEXT_OR_NULL,
        "evidence": listed(record({"passage": STRING}, {"start": _PLACE, "end": _PLACE})),
        "reason": TEXT_OR_NULL,
        "revised": BOOLEAN,
        "audited": TEXT_OR_NULL,
        "source_seen": BOOLEAN,
    },
)


def read_ratings(path: str | Path) -> Iterator[Rating]:
    """Stream the ratings of a file: our own jsonl, Label Studio's JSON, or annotations of autojudge-annotate.

    A rating that occurs again with the same value is read once. Raises `FormatError` with file, line and field for a
    row that does not fit, for two different values of one annotator for the same item, question and phase, for two
    adjudications that contradict each other, for a question with both yes or no and values from 1 to 5, and for a file
    without ratings.
    """
    path = as_path("ratings", path)
    none = True
    for rating in distinct(_read(path)):
        none = False
        yield rating
    if none:
        raise FormatError(f"{path}: holds no ratings")


def distinct(ratings: Iterable[tuple[Rating, str]]) -> Iterator[Rating]:
    """Yield ratings, each given with its place, once.

    Raises `FormatError` for another value of one annotator, another adjudication of an item and question, and a value
    from 1 to 5 beside yes or no: nobody can tell which cut the people had in mind.
    """
    seen: dict[tuple[str | None, ...], tuple[str, str]] = {}
    decided: dict[tuple[str, str], tuple[str, str]] = {}
    scale: tuple[bool, str] | None = None  # of the one question that has two: whether from 1 to 5, and where it was
    for rating, where in ratings:
        if rating.phase == "adjudication" and rating.key not in seen:
            earlier, first = decided.setdefault((rating.item, rating.question), (rating.value, where))
            if earlier != rating.value:
                raise FormatError(
                    f"{where}: item {rating.item!r:.60} was adjudicated before, question {rating.question!r:.60}, with "
                    f"another value ({first}); keep one of the two"
                )
        if rating.phase == "study" and rating.question == "attributable":
            is_likert = rating.value in LIKERT
            scale = scale or (is_likert, where)
            other, first = scale
            if other != is_likert:
                raise FormatError(
                    f"{where}: question {rating.question!r} has the value {rating.value!r:.60}, and yes, no and values "
                    f"from 1 to 5 are two scales ({first} has the other); keep them in two files"
                )
        if rating.key not in seen:
            seen[rating.key] = rating.value, where
            yield rating
            continue
        earlier, first = seen[rating.key]
        if earlier != rating.value:
            raise FormatError(
                f"{where}: annotator {rating.annotator!r:.60} rated item {rating.item!r:.60} before, question "
                f"{rating.question!r:.60} ({first}); keep one of the two"
            )


def _read(path: Path) -> Iterator[tuple[Rating, str]]:
    """Yield each rating with its `file:line`."""
    from autoais.formats.human_ratings import autojudge, label_studio  # they need `Rating`

    for where, row in records(path, SCHEMA["required"]):
        if isinstance(row, FormatError):
            raise FormatError(f"{row}; for majorities {AIS_REPORT}") if "INT & AIS" in str(row) else row
        if "press" in row and "kind" in row:
            raise FormatError(f"{where}: this is the log of presses; use ratings.jsonl beside it")
        if label_studio.is_task(row):
            yield from ((rating, where) for rating in label_studio.read(row, where))
        elif autojudge.is_annotation(row):
            yield from ((rating, where) for rating in autojudge.read(row, where))
        else:
            yield from_row(row, where), where


def from_row(row: Mapping[str, Any], where: str) -> Rating:
    """Return the rating of a row; raises `FormatError` for one that does not fit, and an impossible value or span."""
    for fault in faults(row, SCHEMA):
        raise FormatError(f"{where}: {fault}")
    value = str(row["value"])
    _check_value(where, "value", row["question"], value)
    if row.get("citation") is not None and row.get("sentence") is None:
        raise FormatError(f"{where}: field 'citation' is given without field 'sentence'")
    spans = []
    for number, one in enumerate(row.get("evidence", ())):
        start, end = one.get("start"), one.get("end")
        if (start is None) != (end is None) or (start is not None and start > end):
            raise FormatError(f"{where}: field 'evidence[{number}]': start {start} and end {end} are no span")
        spans.append(Citation(one["passage"], start, end))
    return Rating(
        item=str(row["item"]),
        annotator=str(row["annotator"]),
        question=str(row["question"]),
        value=value,
        answer=row.get("answer"),
        sentence=row.get("sentence"),
        citation=row.get("citation"),
        seconds=row.get("seconds"),
        at=row.get("at"),
        phase=row.get("phase", "study"),
        system=row.get("system") or "",
        evidence=tuple(spans),
        reason=row.get("reason") or "",
        revised=row.get("revised", False),
        audited=row.get("audited"),
        source_seen=row.get("source_seen", False),
    )


def _check_value(where: str, field: str, question: str, value: str) -> None:
    """Raise `FormatError` for a value that the question does not have."""
    known = VALUES.get(question)
    if known is not None and value not in known:
        raise FormatError(
            f"{where}: field {field!r}: question {question!r} has {', '.join(known)}, found {value[:60]!r}"
        )


def to_row(rating: Rating) -> dict[str, Any]:
    """Return the rating as a JSON object, with all fields; `audited` only in an audit, `source_seen` only if true."""
    row: dict[str, Any] = {
        "item": rating.item,
        "answer": rating.answer,
        "sentence": rating.sentence,
        "citation": rating.citation,
        "annotator": rating.annotator,
        "question": rating.question,
        "value": rating.value,
        "seconds": rating.seconds,
        "at": rating.at,
        "phase": rating.phase,
        "system": rating.system,
        "evidence": [
            {"passage": one.passage} | ({} if one.start is None else {"start": one.start, "end": one.end})
            for one in rating.evidence
        ],
        "reason": rating.reason,
        "revised": rating.revised,
    }
    if rating.audited is not None:
        row["audited"] = rating.audited
    return row | {"source_seen": True} if rating.source_seen else row


def write_ratings(ratings: Iterable[Rating]) -> Iterator[str]:
    """Yield the lines of `ratings.jsonl`, for `io.jsonl.write_atomic`; `read_ratings` restores the same ratings."""
    return (dumps(to_row(rating)) for rating in ratings)


_EXPECTED = record({"id": IDENTIFIER, "expected": {"type": "object", "additionalProperties": STRING}})


def read_expected(path: str | Path) -> dict[str, dict[str, str]]:
    """Read the right values of gold items, by item and question, from a file of items (jsonl: id, expected).

    Items without `expected` are skipped. Raises `FormatError` for a row that does not fit, for a value that its
    question does not have, and if no item has any.
    """
    found: dict[str, dict[str, str]] = {}
    for where, row in records(as_path("gold", path)):
        if isinstance(row, FormatError):
            raise row
        if row.get("expected"):
            for fault in faults(row, _EXPECTED):
                raise FormatError(f"{where}: {fault}")
            for question, value in row["expected"].items():
                _check_value(where, f"expected.{question}", question, str(value))
            found[str(row["id"])] = row["expected"]
    if not found:
        raise FormatError(f"{path}: no item has field 'expected'")
    return found


# --- consensus -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Consensus:
    """What people together say of one item and question: the most frequent value; None if two are equally frequent.

    `counts` holds the number of ratings by value, most frequent first. `adjudicated`: the value is that of the
    adjudication, whatever the counts. `answer`, `sentence` and `citation` are as in `Rating`.
    """

    item: str
    question: str
    value: str | None
    counts: Mapping[str, int]
    adjudicated: bool = False
    answer: str = ""
    sentence: int | None = None
    citation: str | None = None
    system: str = ""


def cut(ratings: Iterable[Rating], least: int = RELAXED) -> Iterator[Rating]:
    """Turn Likert values of `attributable` into yes (at least `least`) and no; other ratings stay as they are."""
    for one in ratings:
        is_likert = one.question == "attributable" and one.value in LIKERT
        yield replace(one, value="yes" if int(one.value) >= least else "no") if is_likert else one


def without(ratings: Iterable[Rating], annotators: Collection[str]) -> list[Rating]:
    """Return the ratings without all that these annotators said; raises `UserError` for one who rated nothing."""
    given = list(ratings)
    check_annotators(annotators, given)
    return [one for one in given if one.annotator not in annotators]


def check_annotators(names: Iterable[str], ratings: Iterable[Rating]) -> None:
    """Raise `UserError` if one of these annotators rated nothing."""
    people = {one.annotator for one in ratings}
    if unknown := sorted(set(names) - people):
        raise UserError(f"no annotator {unknown[0]!r:.60}; there are: {', '.join(sorted(people))[:200]}")


def unflagged(ratings: Iterable[Rating]) -> list[Rating]:
    """Return the ratings without flags, and without those that an annotator gave to an item that he or she flagged.

    A flag takes the item from its own annotator only; ratings of others stay (Rashkin et al. 2023, section 4.1.3).
    Only flags of the study count, and adjudications stay.
    """
    listed_ratings = list(ratings)
    flagged = {(one.item, one.annotator) for one in listed_ratings if one.question == FLAG and one.phase == "study"}
    return [
        one
        for one in listed_ratings
        if one.question != FLAG and (one.phase == "adjudication" or (one.item, one.annotator) not in flagged)
    ]


def is_flagged(ratings: Iterable[Rating]) -> bool:
    """Whether more annotators flagged an item than rated it; `ratings` are all of the item."""
    study = [one for one in ratings if one.phase == "study"]
    by = {one.annotator for one in study if one.question == FLAG}
    return len(by) > len({one.annotator for one in study} - by)


def flagged_items(ratings: Iterable[Rating]) -> set[str]:
    """Return the items that more annotators flagged than rated (`is_flagged`)."""
    items: dict[str, list[Rating]] = {}
    for one in ratings:
        items.setdefault(one.item, []).append(one)
    return {item for item, rated in items.items() if is_flagged(rated)}


def most_frequent(counts: Mapping[str, int]) -> str | None:
    """Return the value with the highest count; None for a tie, or if there are no values."""
    highest = max(counts.values(), default=0)
    found = [value for value, count in counts.items() if count == highest]
    return found[0] if len(found) == 1 else None


def consensus(ratings: Iterable[Rating]) -> list[Consensus]:
    """Return the consensus per item and question, in order of first occurrence.

    Ratings of the phases study and adjudication count; an adjudication decides alone. Flagged ratings are left out
    (`unflagged`). Likert values count as they are; use `cut` before to make them yes and no.
    """
    counted = [one for one in unflagged(ratings) if one.phase in ("study", "adjudication")]
    groups: dict[tuple[str, str], list[Rating]] = {}
    for one in counted:
        groups.setdefault((one.item, one.question), []).append(one)
    return [_consensus(group) for group in groups.values()]


def _consensus(group: Sequence[Rating]) -> Consensus:
    first, decided = group[0], [one for one in group if one.phase == "adjudication"]
    counts = Counter(one.value for one in group if one.phase == "study")
    return Consensus(
        first.item,
        first.question,
        most_frequent(Counter(one.value for one in decided) if decided else counts),
        dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))),
        bool(decided),
        first.rated,
        first.sentence,
        first.citation,
        first.system,
    )


# --- labels of answers -----------------------------------------------------------------------------------------------

BEFORE = frozenset({"interpretable", "informative", "worthy"})
"""The questions before that of the source; what cites nothing is asked no other."""

_TEXT_LABELS = BEFORE | {"attributable", "supported"}  # questions that give a label of an answer or a sentence
_SUPPORT = {"full": Support.FULL, "partial": Support.PARTIAL}  # all else is no support (Liu et al. 2023)
_Labels = dict[tuple[int | None, str | None], dict[str, str | None]]  # by sentence and citation: question, value


def label_answers(
    answers: Iterable[CitedAnswer],
    ratings: Iterable[Rating],
    *,
    likert: int = RELAXED,
    notes: Notes | None = None,
) -> Iterator[CitedAnswer]:
    """Yield the answers with the consensus of the ratings as their human labels.

    If one of the annotators of an answer is simulated, `extra` says so (`simulated_labels`).

    Labels that the answers had are dropped: what nobody rated, what is flagged (`is_flagged`) and not adjudicated, or
    where people tie, has none; `extra` lists the ties on support (`TIES`). `attributable` is False if people could not
    interpret the text (they were not asked then), and True from `likert` on for values from 1 to 5. `supported` is the
    same label under Liu et al.'s name. A text that people rated and that cites nothing is not attributable, as AIS is
    about identified sources; people are not asked, but if they were, what they say counts. What is not worth verifying
    has no such label, whatever a minority said of its support. An answer that was rated by sentence gets HAGRID's
    roll-up: informative if any sentence is, attributable if all that are worth verifying are. A citation has the label
    `support` only. `notes` counts the ratings of other questions and of flagged items, which give no label, and the
    ties. Raises `UserError` for a rating of an answer, sentence or citation that is not there.
    """
    notes = Notes() if notes is None else notes
    labels: dict[str, _Labels] = {}
    given = list(ratings)
    simulated = {one.rated for one in given if one.annotator.startswith(SIMULATED)}
    flagged = flagged_items(given)
    for one in consensus(cut(given, likert)):
        if one.item in flagged and not one.adjudicated:
            notes["ratings of flagged items, without a label"] += sum(one.counts.values())
            continue
        if one.question not in (_TEXT_LABELS if one.citation is None else ("support",)):
            kind = "citations" if one.citation is not None else "answers" if one.sentence is None else "sentences"
            count = sum(one.counts.values()) or 1  # an adjudication alone
            notes[f"ratings left out, because {kind} have no label for {one.question!r:.60}"] += count
        elif one.value is None:
            notes["ties, without a label"] += 1
        place = labels.setdefault(one.answer, {}).setdefault((one.sentence, one.citation), {})
        place[one.question] = one.value
    for answer in answers:
        own = labels.pop(answer.id, {})
        labelled = _labelled(answer, own)
        facts = {SIMULATED_LABELS: answer.id in simulated, TIES: _ties(labelled, own)}
        yield with_facts(labelled, facts)
    if labels:
        raise UserError(
            f"answer {next(iter(labels))!r:.80} has ratings, but is not among the answers; do they belong together?"
        )


def with_facts(answer: CitedAnswer, facts: Mapping[str, Any]) -> CitedAnswer:
    """Return the answer with what is known of its labels (`SIMULATED_LABELS`, `TIES`) in `extra`; not what is empty."""
    extra = {name: value for name, value in answer.extra.items() if name not in (SIMULATED_LABELS, TIES)}
    return replace(answer, extra=extra | {name: value for name, value in facts.items() if value})


def _ties(answer: CitedAnswer, labels: _Labels) -> list[dict[str, Any]]:
    """The places that have no label of support because people are split."""
    found = []
    for (number, passage), values in labels.items():
        labelled = answer if number is None else answer.sentences[number]
        label = labelled.attributable if passage is None else answer.sentences[number or 0].support.get(passage)
        if label is None and None in [value for question, value in values.items() if question != "informative"]:
            found.append({"sentence": number, "citation": passage})
    return found


def _labelled(answer: CitedAnswer, labels: _Labels) -> CitedAnswer:
    for number, passage in labels:
        if number is None:
            continue
        if number >= len(answer.sentences):
            raise UserError(
                f"answer {answer.id!r:.80} has ratings of sentence {number}, and no such sentence (0-based)"
            )
        if passage is not None and passage not in answer.sentences[number].cites:
            raise UserError(
                f"answer {answer.id!r:.80}: sentence {number} does not cite {passage!r:.80}, which was rated"
            )
    sentences = tuple(_sentence(number, one, labels) for number, one in enumerate(answer.sentences))
    whole = labels.get((None, None), {})
    cites = any(one.citations for one in answer.sentences)
    informative, attributable = _yes(whole.get("informative")), _attributable(whole, cites=cites)
    if "informative" not in whole:
        informative = answer_informative(one.informative for one in sentences)
    if attributable is None and not whole.keys() & {"interpretable", "attributable", "supported"}:
        attributable = answer_attributable(one.attributable for one in sentences if one.worthy is not False)
    return replace(answer, sentences=sentences, informative=informative, attributable=attributable)


def _sentence(number: int, sentence: CitedSentence, labels: _Labels) -> CitedSentence:
    own = labels.get((number, None), {})
    levels = {
        passage: None if (value := found["support"]) is None else _SUPPORT.get(value, Support.NONE)
        for (place, passage), found in labels.items()
        if place == number and passage is not None and "support" in found
    }
    return replace(
        sentence,
        citations=tuple(replace(one, support=levels.get(one.passage)) for one in sentence.citations),
        informative=_yes(own.get("informative")),
        attributable=_attributable(own, cites=bool(sentence.citations)),
        worthy=_yes(own.get("worthy")),
    )


def _yes(value: str | None) -> bool | None:
    return None if value is None else value == "yes"


def _attributable(labels: Mapping[str, str | None], *, cites: bool) -> bool | None:
    """An uninterpretable text is not attributable, whatever a minority that could read it said (INT & AIS).

    The support of a text that is not worth verifying is not asked (Liu et al. 2023).
    """
    if labels.get("interpretable") == "no":
        return False
    if labels.get("worthy") == "no":
        return None
    if not cites and labels.keys() & BEFORE and not labels.keys() & {"attributable", "supported"}:
        return False
    if None in (labels.get("interpretable", ""), labels.get("worthy", "")):
        return None
    return _yes(labels.get("attributable", labels.get("supported")))
