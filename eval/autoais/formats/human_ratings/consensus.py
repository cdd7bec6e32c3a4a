"""The consensus of several people, and the labels that it gives to answers."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.errors import UserError
from autoais.base.io.notes import Notes
from autoais.base.labels import answer_informative, sentences_attributable
from autoais.base.types import CitedSentence, Support
from autoais.formats.human_ratings.ratings import (
    FLAG,
    LIKERT,
    RELAXED_CUT,
    SIMULATED_LABELS,
    SIMULATED_PREFIX,
    TIES,
    Rating,
)


@dataclass(frozen=True, slots=True)
class Consensus:
    """The consensus on one item and question: the most frequent value; None if two are equally frequent.

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


def apply_cut(ratings: Iterable[Rating], threshold: int = RELAXED_CUT) -> Iterator[Rating]:
    """Turn Likert values of `attributable` into yes (at least `threshold`) and no; other ratings stay as they are."""
    for rating in ratings:
        is_likert = rating.question == "attributable" and rating.value in LIKERT
        yield replace(rating, value="yes" if int(rating.value) >= threshold else "no") if is_likert else rating


def drop_annotators(ratings: Iterable[Rating], annotators: Collection[str]) -> list[Rating]:
    """Return the ratings without those of these annotators; raises `UserError` for one who rated nothing."""
    rating_list = list(ratings)
    check_annotators(annotators, rating_list)
    return [rating for rating in rating_list if rating.annotator not in annotators]


def check_annotators(names: Iterable[str], ratings: Iterable[Rating]) -> None:
    """Raise `UserError` if one of these annotators rated nothing."""
    people = {rating.annotator for rating in ratings}
    if unknown := sorted(set(names) - people):
        raise UserError(f"no annotator {unknown[0]!r:.60}; there are: {', '.join(sorted(people))[:200]}")


def apply_flags(ratings: Iterable[Rating]) -> list[Rating]:
    """Return the ratings without flags, and without those that an annotator gave to an item that he or she flagged.

    A flag takes the item from its own annotator only; ratings of others stay (Rashkin et al. 2023, section 4.1.3).
    Only flags of the study count, and adjudications stay.
    """
    rating_list = list(ratings)
    flags = {
        (rating.item, rating.annotator) for rating in rating_list if rating.question == FLAG and rating.phase == "study"
    }
    return [
        rating
        for rating in rating_list
        if rating.question != FLAG and (rating.phase == "adjudication" or (rating.item, rating.annotator) not in flags)
    ]


def is_flagged(ratings: Iterable[Rating]) -> bool:
    """Whether more annotators flagged an item than rated it; `ratings` are all of the item."""
    study = [rating for rating in ratings if rating.phase == "study"]
    flaggers = {rating.annotator for rating in study if rating.question == FLAG}
    return len(flaggers) > len({rating.annotator for rating in study} - flaggers)


def find_flagged_items(ratings: Iterable[Rating]) -> set[str]:
    """Return the items that more annotators flagged than rated (`is_flagged`)."""
    items: dict[str, list[Rating]] = {}
    for rating in ratings:
        items.setdefault(rating.item, []).append(rating)
    return {item for item, group in items.items() if is_flagged(group)}


def most_frequent(counts: Mapping[str, int]) -> str | None:
    """Return the value with the highest count; None for a tie, or if there are no values."""
    highest = max(counts.values(), default=0)
    values = [value for value, count in counts.items() if count == highest]
    return values[0] if len(values) == 1 else None


def consensus(ratings: Iterable[Rating]) -> list[Consensus]:
    """Return the consensus per item and question, in order of first occurrence.

    Ratings of the phases study and adjudication count; an adjudication decides alone. Flagged ratings are left out
    (`apply_flags`). Likert values count as they are; use `apply_cut` before to make them yes and no.
    """
    rating_list = [rating for rating in apply_flags(ratings) if rating.phase in ("study", "adjudication")]
    groups: dict[tuple[str, str], list[Rating]] = {}
    for rating in rating_list:
        groups.setdefault((rating.item, rating.question), []).append(rating)
    return [_consensus(group) for group in groups.values()]


def _consensus(group: Sequence[Rating]) -> Consensus:
    first, adjudications = group[0], [rating for rating in group if rating.phase == "adjudication"]
    counts = Counter(rating.value for rating in group if rating.phase == "study")
    return Consensus(
        first.item,
        first.question,
        most_frequent(Counter(rating.value for rating in adjudications) if adjudications else counts),
        dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))),
        bool(adjudications),
        first.answer_id,
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
    likert: int = RELAXED_CUT,
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
    rating_list = list(ratings)
    simulated_answers = {rating.answer_id for rating in rating_list if rating.annotator.startswith(SIMULATED_PREFIX)}
    items_with_flag = find_flagged_items(rating_list)
    for item in consensus(apply_cut(rating_list, likert)):
        if item.item in items_with_flag and not item.adjudicated:
            notes["ratings of flagged items, without a label"] += sum(item.counts.values())
            continue
        if item.question not in (_TEXT_LABELS if item.citation is None else ("support",)):
            kind = "citations" if item.citation is not None else "answers" if item.sentence is None else "sentences"
            count = sum(item.counts.values()) or 1  # an adjudication alone
            notes[f"ratings left out, because {kind} have no label for {item.question!r:.60}"] += count
        elif item.value is None:
            notes["ties, without a label"] += 1
        values = labels.setdefault(item.answer, {}).setdefault((item.sentence, item.citation), {})
        values[item.question] = item.value
    for answer in answers:
        answer_labels = labels.pop(answer.id, {})
        labelled_answer = _label_answer(answer, answer_labels)
        facts = {SIMULATED_LABELS: answer.id in simulated_answers, TIES: _ties(labelled_answer, answer_labels)}
        yield with_facts(labelled_answer, facts)
    if labels:
        raise UserError(
            f"answer {next(iter(labels))!r:.80} has ratings, but is not among the answers; do they belong together?"
        )


def with_facts(answer: CitedAnswer, facts: Mapping[str, Any]) -> CitedAnswer:
    """Return the answer with facts about its labels (`SIMULATED_LABELS`, `TIES`) in `extra`, without empty ones."""
    extra = {name: value for name, value in answer.extra.items() if name not in (SIMULATED_LABELS, TIES)}
    return replace(answer, extra=extra | {name: value for name, value in facts.items() if value})


def _ties(answer: CitedAnswer, labels: _Labels) -> list[dict[str, Any]]:
    """Return the sentences and citations that have no label of support because people are split."""
    ties = []
    for (number, passage), values in labels.items():
        item = answer if number is None else answer.sentences[number]
        label = item.attributable if passage is None else answer.sentences[number or 0].support.get(passage)
        if label is None and None in [value for question, value in values.items() if question != "informative"]:
            ties.append({"sentence": number, "citation": passage})
    return ties


def _label_answer(answer: CitedAnswer, labels: _Labels) -> CitedAnswer:
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
    sentences = tuple(_sentence(number, sentence, labels) for number, sentence in enumerate(answer.sentences))
    answer_labels = labels.get((None, None), {})
    cites = any(sentence.citations for sentence in answer.sentences)
    informative, attributable = is_yes(answer_labels.get("informative")), _attributable(answer_labels, cites=cites)
    if "informative" not in answer_labels:
        informative = answer_informative(sentence.informative for sentence in sentences)
    if attributable is None and not answer_labels.keys() & {"interpretable", "attributable", "supported"}:
        attributable = sentences_attributable(sentences)
    return replace(answer, sentences=sentences, informative=informative, attributable=attributable)


def _sentence(number: int, sentence: CitedSentence, labels: _Labels) -> CitedSentence:
    sentence_labels = labels.get((number, None), {})
    levels = {
        passage: None if (value := values["support"]) is None else _SUPPORT.get(value, Support.NONE)
        for (index, passage), values in labels.items()
        if index == number and passage is not None and "support" in values
    }
    return replace(
        sentence,
        citations=tuple(replace(citation, support=levels.get(citation.passage)) for citation in sentence.citations),
        informative=is_yes(sentence_labels.get("informative")),
        attributable=_attributable(sentence_labels, cites=bool(sentence.citations)),
        worthy=is_yes(sentence_labels.get("worthy")),
    )


def is_yes(value: str | None) -> bool | None:
    """Whether a value is yes; None without a value, as of a tie."""
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
    return is_yes(labels.get("attributable", labels.get("supported")))
