"""The report of a study: agreement, rates, times, audits, gold items (Rashkin et al. 2023, Tables 3 to 9, 14 to 16)."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from autoais.base.errors import UserError
from autoais.formats.human_ratings.consensus import (
    BEFORE,
    Consensus,
    apply_cut,
    apply_flags,
    consensus,
    find_flagged_items,
    is_flagged,
    is_yes,
    most_frequent,
)
from autoais.formats.human_ratings.ratings import FLAG, LIKERT, RELAXED_CUT, SIMULATED_PREFIX, VALUES, Rating
from autoais.meta.agreement import (
    Coefficient,
    cohen_kappa,
    f1_to_majority,
    fleiss_kappa,
    krippendorff_alpha,
    pairwise_agreement,
)
from autoais.metrics.intervals import by_question, number_of
from autoais.metrics.mcnemar import mcnemar, mcnemar_corrected, mcnemar_exact
from autoais.metrics.paired import Pairs, p_values, ratio_of_sums
from autoais.metrics.rates import Rate

MAX_VALUES = 20  # a question with more values is answered in free text
_ALL = "all systems"
_FREE = f"more than {MAX_VALUES} different values"

Expected = Mapping[str, Mapping[str, str]]
"""The right values of gold items, by item and question."""
_Position = tuple[str, int | None, str | None]  # answer, sentence, citation
_Outcome = tuple[str, bool | None]  # item, and whether it is right
_Number = Callable[[str], int]  # of the question that an answer is to


def report(
    batches: Mapping[str, Sequence[Rating]],
    *,
    experts: Sequence[Rating] = (),
    variant: Sequence[Rating] = (),
    question_keys: Mapping[str, str] | None = None,
    gold: Expected | None = None,
    likert: int = RELAXED_CUT,
    by_system: bool = False,
) -> dict[str, Any]:
    """Return the report of a study as JSON; `batches` holds its ratings, by the name of their file.

    `experts` are ratings of the same items by experts, `variant` ratings of the same items in another design.
    `question_keys` names the question of each answer, which are the units of the intervals; by default every answer has
    its own. The units of the rates of a person, of gold items and of audits are items. `likert` is the least value from
    1 to 5 that counts as attributable. `simulated` lists annotators who are no people, if there are any. Everything but
    `gold` and `audits` is about the phase study, without the ratings of annotators who flagged the item.
    """

    def number(answer: str) -> int:
        return number_of((question_keys or {}).get(answer, answer))

    ratings = [rating for batch in batches.values() for rating in batch]
    study = [rating for rating in ratings if rating.phase == "study"]
    main_ratings = [rating for rating in ratings if rating.phase in ("study", "adjudication")]
    if question_keys is not None:
        _check_answers(main_ratings, question_keys)
    systems = sorted({rating.system for rating in study})
    result: dict[str, Any] = {
        "ratings": sum(rating.question != FLAG for rating in study),
        "items": len({rating.item for rating in study}),
        "annotators": len({rating.annotator for rating in study}),
        "units": "answers" if question_keys is None else "questions",
        "likert": likert,
        "questions": _questions(main_ratings, number, likert),
    }
    if simulated_annotators := sorted(
        {rating.annotator for rating in ratings if rating.annotator.startswith(SIMULATED_PREFIX)}
    ):
        result["simulated"] = simulated_annotators
    if by_system:
        result["systems"] = {
            name: _questions([rating for rating in main_ratings if rating.system == name], number, likert)
            for name in systems
        }
    result["flags"] = dict(sorted(Counter(rating.value for rating in study if rating.question == FLAG).items()))
    result["ais"] = _ais_tables(main_ratings, number, likert)
    result["time"] = _times(study)
    result["people"] = _people(ratings, gold or {}, likert)
    if any(rating.phase == "gold" for rating in ratings):
        result["gold"] = _rate((rating.item, is_right) for rating, is_right in _gold(ratings, gold or {}, likert))
    result["audits"] = _audits(ratings, likert)
    if len(batches) > 1:
        result["batches"] = [{"file": name, **_batch(batch, likert)} for name, batch in batches.items()]
    if experts:
        result["experts"] = _beside_experts(main_ratings, experts, number, likert)
    if variant:
        result["variant"] = _beside_variant(main_ratings, variant, experts, number, likert)
    return result


def _check_answers(ratings: Iterable[Rating], answers: Collection[str]) -> None:
    """Raise `UserError` for a rating of an answer that is not among the answers."""
    unknown = next((rating.answer_id for rating in ratings if rating.answer_id not in answers), None)
    if unknown is not None:
        raise UserError(f"answer {unknown!r:.80} has ratings, but is not among the answers; do they belong together?")


# --- questions -------------------------------------------------------------------------------------------------------


def _questions(ratings: Sequence[Rating], number: _Number, likert: int) -> dict[str, Any]:
    """The figures of each question, in the order of `VALUES`, then by name.

    Where people are asked whether a text is interpretable, its attributability is a question of interpretable items
    only, as in the AIS paper, though others may have got that far with some annotators. Likewise, support is a question
    of statements that people together find worth verifying (Liu et al. 2023), where they are asked that. The consensus
    is of items that are not flagged, as are the paper's rates; agreement is over all that annotators rated.
    """
    unflagged_ratings = [rating for rating in apply_flags(ratings) if rating.question != FLAG]
    flagged_items = find_flagged_items(ratings)
    before = [item_consensus for item_consensus in consensus(unflagged_ratings) if item_consensus.value != "yes"]
    unclear = {item_consensus.item for item_consensus in before if item_consensus.question == "interpretable"}
    unworthy = {
        (item_consensus.answer, item_consensus.sentence)
        for item_consensus in before
        if item_consensus.question == "worthy"
    }
    groups = defaultdict(list)
    for rating in unflagged_ratings:
        groups[rating.question].append(rating)
    figures = {}
    for name in _order_questions(groups):
        items_to_drop = {
            rating.item
            for rating in groups[name]
            if (name == "attributable" and rating.item in unclear)
            or (name in ("supported", "support") and (rating.answer_id, rating.sentence) in unworthy)
        }
        question_ratings = [rating for rating in groups[name] if rating.item not in items_to_drop]
        if question_ratings:
            figures[name] = _question(question_ratings, number, likert, flagged_items)
            if items_to_drop:
                figures[name]["not_interpretable" if name == "attributable" else "not_worthy"] = len(items_to_drop)
    return figures


def _order_questions(questions: Iterable[str]) -> list[str]:
    """The questions in the order of `VALUES`, then by name."""
    names = set(questions)
    return [*(name for name in VALUES if name in names), *sorted(names - VALUES.keys())]


def _question(raw: Sequence[Rating], number: _Number, likert: int, flagged_items: Collection[str]) -> dict[str, Any]:
    ratings = list(apply_cut(raw, likert))
    item_consensuses = [
        item_consensus for item_consensus in consensus(ratings) if item_consensus.item not in flagged_items
    ]
    study = [rating for rating in ratings if rating.phase == "study"]
    items = _by_item(study)
    values = _in_order({rating.value for rating in study}, raw[0].question)
    result: dict[str, Any] = {
        "items": len(item_consensuses),
        "ratings": len(study),
        "annotators": len({rating.annotator for rating in study}),
        "ratings_per_item": {str(n): times for n, times in sorted(Counter(map(len, items.values())).items())},
        "ties": [item_consensus.item for item_consensus in item_consensuses if item_consensus.value is None],
        "adjudicated": sum(item_consensus.adjudicated for item_consensus in item_consensuses),
    }
    if n_flagged := len({rating.item for rating in ratings if rating.item in flagged_items}):
        result["flagged"] = n_flagged
    if len(values) > MAX_VALUES:
        return result | {"reason": _FREE}
    result["values"] = {value: sum(rating.value == value for rating in study) for value in values}
    numbers = [number(item_consensus.answer) for item_consensus in item_consensuses]
    result["consensus"] = {
        value: Rate.of(
            [
                None if item_consensus.value is None else item_consensus.value == value
                for item_consensus in item_consensuses
            ],
            numbers,
        ).record()
        for value in _in_order(
            values.keys()
            | {item_consensus.value for item_consensus in item_consensuses if item_consensus.value is not None},
            raw[0].question,
        )
    }
    of_items = [number(group[0].answer_id) for group in items.values()]
    counts = _counts(items.values(), list(values))
    result["agreement"] = {
        "krippendorff_alpha": krippendorff_alpha(counts, of_items).record(),
        "pairwise_agreement": pairwise_agreement(counts, of_items).record(),
        "f1_to_majority": f1_to_majority(counts, of_items).record(),
        "cohen_kappa": _cohen(items.values(), list(values)).record(),
        "fleiss_kappa": fleiss_kappa(counts, of_items).record(),
    }
    as_given = [rating for rating in raw if rating.phase == "study"]
    if all(rating.value in LIKERT for rating in as_given):
        likert_counts = _counts(_by_item(as_given).values(), LIKERT)
        alpha = krippendorff_alpha(likert_counts, of_items, ordinal=True)
        result["agreement"]["krippendorff_alpha_ordinal"] = alpha.record()
        result["mean"] = _spread([int(rating.value) for rating in as_given])
    return result


def _by_item(ratings: Iterable[Rating]) -> dict[str, list[Rating]]:
    items: dict[str, list[Rating]] = {}
    for rating in ratings:
        items.setdefault(rating.item, []).append(rating)
    return items


def _in_order(values: Iterable[str], question: str) -> dict[str, None]:
    usual_values = VALUES.get(question, ())
    present_values = set(values)
    return dict.fromkeys(
        [
            *(value for value in usual_values if value in present_values),
            *sorted(present_values.difference(usual_values)),
        ]
    )


def _counts(items: Iterable[Sequence[Rating]], values: Sequence[str]) -> list[list[int]]:
    return [[sum(rating.value == value for rating in item_ratings) for value in values] for item_ratings in items]


def _cohen(items: Iterable[Sequence[Rating]], values: Sequence[str]) -> Coefficient:
    people: dict[str, int] = {}
    code = {value: number for number, value in enumerate(values)}
    return cohen_kappa(
        [(people.setdefault(rating.annotator, len(people)), code[rating.value]) for rating in item_ratings]
        for item_ratings in items
    )


# --- the AIS paper's rates -------------------------------------------------------------------------------------------


_SUPPORT_QUESTIONS = ("attributable", "supported")
_AIS = ("interpretable", *_SUPPORT_QUESTIONS)


def _kind(rating: Rating) -> str:
    """What the item is: an answer, a sentence or a citation."""
    return "answers" if rating.sentence is None else "sentences" if rating.citation is None else "citations"


def _ais_tables(ratings: Sequence[Rating], number: _Number, likert: int) -> list[dict[str, Any]]:
    """The rates of each system and of all, with the AIS paper's denominators; empty without an AIS question."""
    ais_ratings = [rating for rating in ratings if rating.question in _AIS]
    kinds = {_kind(rating) for rating in ais_ratings}
    items_of_table = {
        rating.item for rating in ais_ratings
    }  # what all people flagged, and what cites nothing, if it is of their kind
    about_source = any(rating.question in _SUPPORT_QUESTIONS for rating in ais_ratings)
    items_of_table |= {
        item
        for item, item_ratings in _by_item(ratings).items()
        if _kind(item_ratings[0]) in kinds
        and (is_flagged(item_ratings) or (about_source and any(rating.question in BEFORE for rating in item_ratings)))
    }
    ratings = [rating for rating in ratings if rating.item in items_of_table]
    if not ais_ratings:
        return []
    systems = sorted({rating.system for rating in ratings})

    def row(name: str, system_ratings: Sequence[Rating]) -> dict[str, Any]:
        return _ais(name, system_ratings, number, likert, about_source=about_source)

    rows = [row(name, [rating for rating in ratings if rating.system == name]) for name in systems]
    return rows if len(systems) == 1 else [*rows, row(_ALL, ratings)]


def _ais(name: str, ratings: Sequence[Rating], number: _Number, likert: int, *, about_source: bool) -> dict[str, Any]:
    """Flagged over all items, interpretable over unflagged, attributable over interpretable ones.

    An item is flagged if more annotators flagged it than rated it. Items of which nobody was asked whether they are
    interpretable count as interpretable, and what people find not worth verifying is left out of the attributable ones
    and their denominator. In a study `about_source`, those of which nobody was asked whether they are
    attributable cite nothing, and are not attributable, as in `label_answers`.
    What is undecided are ties. `unit` says what the items are: answers, sentences, citations, or items for several.
    """
    items = _by_item(ratings)
    flagged_items = find_flagged_items(ratings)
    values = {
        (item_consensus.item, item_consensus.question): item_consensus.value
        for item_consensus in consensus(apply_cut(ratings, likert))
    }
    is_asked = any(rating.question == "interpretable" for rating in ratings)
    unflagged_items = [item for item in items if item not in flagged_items]
    clear = {item: is_yes(values.get((item, "interpretable"), "yes")) for item in unflagged_items}
    uncited = {item for item, _ in values} - {item for item, question in values if question in _SUPPORT_QUESTIONS}
    people = {item: len({rating.annotator for rating in item_ratings}) for item, item_ratings in items.items()}
    min_annotators = min(2, max(people.values(), default=0))  # one alone may not have come to the question yet
    uncited = {item for item in uncited if about_source and people[item] >= min_annotators}
    worthy = {item: values.get((item, "worthy"), "yes") for item in unflagged_items}
    support = {
        item: None
        if worthy[item] is None and item not in uncited
        else is_yes(values.get((item, "attributable"), values.get((item, "supported"), "no")))
        for item in unflagged_items
        if clear[item]
        and worthy[item] != "no"
        and (item in uncited or any((item, question) in values for question in _SUPPORT_QUESTIONS))
    }
    kinds = {_kind(rating) for rating in ratings}

    def rate(outcomes: Mapping[str, bool | None]) -> dict[str, Any]:
        return Rate.of(outcomes.values(), [number(items[item][0].answer_id) for item in outcomes]).record()

    return {
        "model": name,
        "unit": kinds.pop() if len(kinds) == 1 else "items",
        "flagged": rate({item: item in flagged_items for item in items}),
        "interpretable": (
            rate({item: clear[item] for item in unflagged_items if (item, "interpretable") in values})
            if is_asked
            else None
        ),
        "ais": rate(support),
        "ais_of_unflagged": rate(
            {item: support.get(item, clear[item]) for item in unflagged_items if not clear[item] or item in support}
        ),
    }


# --- time ------------------------------------------------------------------------------------------------------------


def _times(study: Sequence[Rating]) -> dict[str, Any]:
    """Seconds by question (the stages of the task) and by task: one annotator's ratings of one item."""
    timed_ratings = [rating for rating in apply_flags(study) if rating.seconds is not None]
    stages: dict[str, list[float]] = defaultdict(list)
    for rating in timed_ratings:
        stages[rating.question].append(rating.seconds or 0.0)
    return {
        "tasks": _spread(list(_tasks(timed_ratings).values())),
        "questions": {name: _spread(stages[name]) for name in _order_questions(stages)},
    }


def _tasks(ratings: Iterable[Rating]) -> dict[tuple[str, str], float]:
    """The seconds of each annotator and item."""
    tasks: dict[tuple[str, str], float] = defaultdict(float)
    for rating in ratings:
        tasks[rating.annotator, rating.item] += rating.seconds or 0.0
    return tasks


def _spread(values: Sequence[float]) -> dict[str, Any]:
    """Number, mean, median and standard deviation (of the sample); null where they are not defined."""
    return {
        "n": len(values),
        "mean": statistics.fmean(values) if values else None,
        "median": statistics.median(values) if values else None,
        "sd": statistics.stdev(values) if len(values) > 1 else None,
    }


# --- people ----------------------------------------------------------------------------------------------------------


def _people(ratings: Sequence[Rating], gold: Expected, likert: int) -> list[dict[str, Any]]:
    """What each annotator did, and how often he or she is right: beside the others, on gold items and in audits."""
    study = [rating for rating in ratings if rating.phase == "study"]
    study_ratings = [rating for rating in apply_cut(apply_flags(study), likert) if rating.question != FLAG]
    value_counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for rating in study_ratings:
        value_counts[rating.item, rating.question][rating.value] += 1
    agrees: defaultdict[str, list[_Outcome]] = defaultdict(list)
    right: defaultdict[str, list[_Outcome]] = defaultdict(list)
    audit_outcomes: defaultdict[str, list[_Outcome]] = defaultdict(list)
    for rating in study_ratings:
        majority = most_frequent(value_counts[rating.item, rating.question] - Counter([rating.value]))
        if majority is not None:
            agrees[rating.annotator].append((rating.item, rating.value == majority))
    for rating, is_right in _gold(ratings, gold, likert):
        right[rating.annotator].append((rating.item, is_right))
    for (name, item), was_right in _audit_outcomes(ratings, likert).items():
        audit_outcomes[name].append((item, was_right))
    ratings_by_annotator = defaultdict(list)
    for rating in apply_flags(study):
        ratings_by_annotator[rating.annotator].append(rating)
    ratings_of_annotators: dict[str, list[Rating]] = {
        rating.annotator: [] for rating in ratings if rating.phase in ("study", "gold")
    }
    for rating in study:
        ratings_of_annotators[rating.annotator].append(rating)
    return [
        {
            "annotator": name,
            "items": len({rating.item for rating in annotator_ratings}),
            "ratings": sum(rating.question != FLAG for rating in annotator_ratings),
            "flags": sum(rating.question == FLAG for rating in annotator_ratings),
            "revised": sum(rating.revised for rating in annotator_ratings),
            "agrees_with_others": _rate(agrees[name]),
            "gold": _rate(right[name]),
            "audits": _rate(audit_outcomes[name]),
            "time": _times(ratings_by_annotator[name]),
        }
        for name, annotator_ratings in sorted(ratings_of_annotators.items())
    ]


def _gold(ratings: Iterable[Rating], gold: Expected, likert: int) -> list[tuple[Rating, bool | None]]:
    """Each rating of a gold item, and whether it is the expected value; None if no value is expected."""
    outcomes: list[tuple[Rating, bool | None]] = []
    for rating in ratings:
        if rating.phase == "gold" and rating.question != FLAG:
            expected_value = gold.get(rating.item, {}).get(rating.question)
            is_right = (
                None
                if expected_value is None
                else rating.value == expected_value
                or _as_cut(rating, likert) == _as_cut(rating, likert, expected_value)
            )
            outcomes.append((rating, is_right))
    return outcomes


def _as_cut(rating: Rating, likert: int, value: str | None = None) -> str:
    changed_rating = rating if value is None else Rating(rating.item, rating.annotator, rating.question, value)
    return next(apply_cut([changed_rating], likert)).value


def _rate(outcomes: Iterable[_Outcome]) -> dict[str, Any]:
    """The rate of outcomes; those on one item are not independent."""
    outcomes_of_items = list(outcomes)
    return Rate.of(
        [outcome for _, outcome in outcomes_of_items], [number_of(item) for item, _ in outcomes_of_items]
    ).record()


def _audit_outcomes(ratings: Iterable[Rating], likert: int) -> dict[tuple[str, str], bool]:
    """Each audited task (annotator and item), and whether the auditor would have given all its audited values.

    Values from 1 to 5 are the same on the same side of the cut, as in gold items.
    """
    ratings_of_task: dict[tuple[str, str], list[Rating]] = defaultdict(list)
    cut_ratings = list(apply_cut(ratings, likert))
    for rating in cut_ratings:
        if rating.phase == "study":
            ratings_of_task[rating.item, rating.question].append(rating)
    right: dict[tuple[str, str], bool] = {}
    for check in cut_ratings:
        if check.phase == "audit":
            for rating in ratings_of_task[check.item, check.question]:
                if check.audited in (None, rating.annotator):
                    task = rating.annotator, rating.item
                    right[task] = right.get(task, True) and rating.value == check.value
    return right


def _audits(ratings: Sequence[Rating], likert: int) -> dict[str, Any] | None:
    """Table 8 of the AIS paper: the share of tasks that were audited, and of those the share without an error."""
    tasks = {(rating.annotator, rating.item) for rating in ratings if rating.phase == "study"}
    audit_results = _audit_outcomes(ratings, likert)
    if not audit_results:
        return None
    quality = _rate((item, audit_results[name, item]) for name, item in sorted(audit_results))
    return {
        "tasks": len(tasks),
        "audited": len(audit_results),
        "share": len(audit_results) / len(tasks),
        "quality": quality,
    }


def _batch(ratings: Sequence[Rating], likert: int) -> dict[str, Any]:
    """A row of Tables 8 and 9: tasks, seconds a task, audits."""
    study = [rating for rating in ratings if rating.phase == "study"]
    return {
        "tasks": len({(rating.annotator, rating.item) for rating in study}),
        "seconds": _times(study)["tasks"],
        "audits": _audits(ratings, likert),
    }


# --- experts, and other designs --------------------------------------------------------------------------------------


def _place(item: Rating | Consensus) -> _Position:
    return item.answer_id if isinstance(item, Rating) else item.answer, item.sentence, item.citation


def _beside_experts(crowd: Sequence[Rating], experts: Sequence[Rating], number: _Number, likert: int) -> dict[str, Any]:
    """The consensus of the crowd beside that of the experts, by question (Table 7, right half).

    Attributability is compared only where neither side's consensus on interpretability is another than yes.
    """
    crowd_values = {
        (_place(item_consensus), item_consensus.question): item_consensus.value
        for item_consensus in consensus(apply_cut(crowd, likert))
    }
    right = {
        (_place(item_consensus), item_consensus.question): item_consensus.value
        for item_consensus in consensus(apply_cut(experts, likert))
    }
    unclear = {
        position for side in (crowd_values, right) for (position, name), value in side.items()
        if name == "interpretable" and value != "yes"
    }  # fmt: skip
    single = defaultdict(list)
    for rating in apply_cut(apply_flags(crowd), likert):
        if rating.phase == "study":
            single[_place(rating), rating.question].append(rating.value)
    result = {}
    for name in _order_questions({question for _, question in right}):
        shared_keys = [key for key in right if key[1] == name and key in crowd_values]
        if name == "attributable":
            shared_keys = [key for key in shared_keys if key[0] not in unclear]
        clear_keys = [key for key in shared_keys if crowd_values[key] is not None and right[key] is not None]
        if not shared_keys or len({*map(crowd_values.get, clear_keys), *map(right.get, clear_keys)}) > MAX_VALUES:
            continue
        agreements = [
            None if None in (crowd_values[key], right[key]) else crowd_values[key] == right[key] for key in shared_keys
        ]
        result[name] = {
            "agreement": Rate.of(agreements, [number(key[0][0]) for key in shared_keys]).record(),
            **_two(
                [str(crowd_values[key]) for key in clear_keys],
                [str(right[key]) for key in clear_keys],
                [number(key[0][0]) for key in clear_keys],
            ),
            "single_ratings": _single(
                [(single[key], str(right[key])) for key in shared_keys if right[key] is not None]
            ),
        }
    return result


def _two(crowd_values: Sequence[str], right: Sequence[str], numbers: Sequence[int]) -> dict[str, Any]:
    """Coefficients of two sides that each have one value an item."""
    values = sorted({*crowd_values, *right})
    code = {value: number for number, value in enumerate(values)}
    counts = [[(a == value) + (b == value) for value in values] for a, b in zip(crowd_values, right, strict=True)]
    return {
        "krippendorff_alpha": krippendorff_alpha(counts, numbers).record(),
        "cohen_kappa": cohen_kappa(
            [(0, code[a]), (1, code[b])] for a, b in zip(crowd_values, right, strict=True)
        ).record(),
        "macro_f1": _macro_f1(list(zip(crowd_values, right, strict=True))),
    }


def _single(pairs: Sequence[tuple[Sequence[str], str]]) -> dict[str, Any]:
    """Single ratings of the crowd against the experts' value: macro-F1, and the mean share an item that agrees."""
    shares = [
        sum(value == expert_value for value in ratings) / len(ratings) for ratings, expert_value in pairs if ratings
    ]
    return {
        "n": sum(len(ratings) for ratings, _ in pairs),
        "macro_f1": _macro_f1([(value, expert_value) for ratings, expert_value in pairs for value in ratings]),
        "pairwise_agreement": statistics.fmean(shares) if shares else None,
    }


def _macro_f1(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Macro-F1 over the values that occur; None without pairs."""
    values = sorted({value for pair in pairs for value in pair})
    scores = [
        2 * sum(a == b == value for a, b in pairs) / sum((a == value) + (b == value) for a, b in pairs)
        for value in values
    ]
    return statistics.fmean(scores) if scores else None


def _beside_variant(
    original: Sequence[Rating], variant: Sequence[Rating], experts: Sequence[Rating], number: _Number, likert: int
) -> dict[str, Any]:
    """McNemar's test of two designs on the same items, by question (Table 15).

    With experts, an outcome is whether the consensus is theirs; without, whether it is yes (or full). Where one design
    asks about sentences and another about answers, sentences are rolled up to answers. Items of one question are not
    independent: where there are some, a randomisation test over questions takes the place of McNemar's.
    """
    sides = [_verdicts(ratings, likert) for ratings in (original, variant, *([experts] if experts else []))]
    result = {}
    for name in sides[0]:
        if any(name not in side for side in sides):
            continue
        original_verdicts, other, *right = _comparable([side[name] for side in sides], name)
        positions = [
            position for position in original_verdicts if position in other and all(position in side for side in right)
        ]
        clear_positions = [
            position
            for position in positions
            if all(side[position] is not None for side in (original_verdicts, other, *right))
        ]
        a, b = (
            np.array(
                [
                    side[position] == right[0][position] if right else side[position] in ("yes", "full")
                    for position in clear_positions
                ]
            )
            .reshape(-1)
            .astype(np.bool_)
            for side in (original_verdicts, other)
        )
        only_original, only_variant = int((a & ~b).sum()), int((b & ~a).sum())
        questions = [number(position[0]) for position in clear_positions]
        if len(set(questions)) < len(questions):
            columns = by_question(questions, a.astype(np.float64), b.astype(np.float64), np.ones(len(questions)))
            one_side, other_side = (np.stack([column, columns[2]], axis=1) for column in columns[:2])
            p, swaps = p_values([Pairs(one_side, other_side, ratio_of_sums)])[0]
            tests = {"exact": None, "corrected": None, "test": "randomisation over questions", "p": p, "swaps": swaps}
        else:
            test = mcnemar(only_original, only_variant)
            tests = {
                "exact": mcnemar_exact(only_original, only_variant).p,
                "corrected": mcnemar_corrected(only_original, only_variant).p,
                "test": test.variant,
                "p": test.p,
            }
        result[name] = {
            "outcome": "as the experts" if right else "yes",
            "n": len(clear_positions),
            "undecided": len(positions) - len(clear_positions),
            "both": int((a & b).sum()),
            "only_original": only_original,
            "only_variant": only_variant,
            "neither": int((~a & ~b).sum()),
            **tests,
        }
    return result


def _verdicts(ratings: Sequence[Rating], likert: int) -> dict[str, dict[_Position, str | None]]:
    """The consensus by question and place; what is not interpretable is not attributable."""
    verdicts: dict[str, dict[_Position, str | None]] = {}
    for item_consensus in consensus(apply_cut(ratings, likert)):
        verdicts.setdefault(item_consensus.question, {})[_place(item_consensus)] = item_consensus.value
    for position, value in verdicts.get("interpretable", {}).items():
        if value != "yes":
            verdicts.setdefault("attributable", {})[position] = value
    return verdicts


def _comparable(sides: Sequence[Mapping[_Position, str | None]], question: str) -> list[Mapping[_Position, str | None]]:
    """The sides as they are if all rate the same kind of thing, else by answer."""
    if len({position[1] is None for side in sides for position in side}) == 1:
        return list(sides)
    return [_by_answer(side, question) for side in sides]


def _by_answer(side: Mapping[_Position, str | None], question: str) -> dict[_Position, str | None]:
    """Sentences rolled up: an answer is informative if any sentence is, and all else if all are (ablation A3)."""
    answers: dict[_Position, list[str | None]] = {}
    for (answer, _, citation), value in side.items():
        if citation is None:
            answers.setdefault((answer, None, None), []).append(value)
    decisive, other = ("yes", "no") if question == "informative" else ("no", "yes")
    return {
        position: decisive if decisive in values else None if None in values else other
        for position, values in answers.items()
    }
