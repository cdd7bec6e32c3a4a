"""The consensus of several people, and the labels that it gives to answers."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.errors import UserError
from autoais.base.io.notes import Notes
from autoais.base.labels import answer_attributable, answer_informative
from autoais.base.types import CitedSentence, Support
from autoais.formats.human_ratings.ratings import (
    FLAG,
    LIKERT,
    RELAXED,
    SIMULATED,
    SIMULATED_LABELS,
    TIES,
    Rating,
)


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
