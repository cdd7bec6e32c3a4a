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

MOST_VALUES = 20  # a question with more values is answered in free text
_ALL = "all systems"
_FREE = f"more than {MOST_VALUES} different values"

Expected = Mapping[str, Mapping[str, str]]
"""The right values of gold items, by item and question."""
_Place = tuple[str, int | None, str | None]  # answer, sentence, citation
_Outcome = tuple[str, bool | None]  # item, and whether it is right
_Number = Callable[[str], int]  # of the question that an answer is to


def report(
    batches: Mapping[str, Sequence[Rating]],
    *,
    experts: Sequence[Rating] = (),
    variant: Sequence[Rating] = (),
    asked: Mapping[str, str] | None = None,
    gold: Expected | None = None,
    likert: int = RELAXED_CUT,
    by_system: bool = False,
) -> dict[str, Any]:
    """Return the report of a study as JSON; `batches` holds its ratings, by the name of their file.

    `experts` are ratings of the same items by experts, `variant` ratings of the same items in another design. `asked`
    names the question of each answer, which are the units of the intervals; by default every answer has its own. The
    units of the rates of a person, of gold items and of audits are items. `likert` is the least value from 1 to 5 that
    counts as attributable. `simulated` lists annotators who are no people, if there are any. Everything but `gold` and
    `audits` is about the phase study, without the ratings of annotators who flagged the item.
    """

    def number(answer: str) -> int:
        return number_of((asked or {}).get(answer, answer))

    ratings = [one for batch in batches.values() for one in batch]
    study = [one for one in ratings if one.phase == "study"]
    counted = [one for one in ratings if one.phase in ("study", "adjudication")]
    if asked is not None and (unknown := next((one.answer_id for one in counted if one.answer_id not in asked), None)):
        raise UserError(f"answer {unknown!r:.80} has ratings, but is not among the answers; do they belong together?")
    systems = sorted({one.system for one in study})
    found: dict[str, Any] = {
        "ratings": sum(one.question != FLAG for one in study),
        "items": len({one.item for one in study}),
        "annotators": len({one.annotator for one in study}),
        "units": "answers" if asked is None else "questions",
        "likert": likert,
        "questions": _questions(counted, number, likert),
    }
    if simulated := sorted({one.annotator for one in ratings if one.annotator.startswith(SIMULATED_PREFIX)}):
        found["simulated"] = simulated
    if by_system:
        found["systems"] = {
            name: _questions([one for one in counted if one.system == name], number, likert) for name in systems
        }
    found["flags"] = dict(sorted(Counter(one.value for one in study if one.question == FLAG).items()))
    found["ais"] = _ais_tables(counted, number, likert)
    found["time"] = _times(study)
    found["people"] = _people(ratings, gold or {}, likert)
    if any(one.phase == "gold" for one in ratings):
        found["gold"] = _rate((one.item, is_right) for one, is_right in _gold(ratings, gold or {}, likert))
    found["audits"] = _audits(ratings, likert)
    if len(batches) > 1:
        found["batches"] = [{"file": name, **_batch(batch, likert)} for name, batch in batches.items()]
    if experts:
        found["experts"] = _beside_experts(counted, experts, number, likert)
    if variant:
        found["variant"] = _beside_variant(counted, variant, experts, number, likert)
    return found


# --- questions -------------------------------------------------------------------------------------------------------


def _questions(ratings: Sequence[Rating], number: _Number, likert: int) -> dict[str, Any]:
    """The figures of each question, in the order of `VALUES`, then by name.

    Where people are asked whether a text is interpretable, its attributability is a question of interpretable items
    only, as in the AIS paper, though others may have got that far with some annotators. Likewise, support is a question
    of statements that people together find worth verifying (Liu et al. 2023), where they are asked that. The consensus
    is of items that are not flagged, as are the paper's rates; agreement is over all that annotators rated.
    """
    kept = [one for one in apply_flags(ratings) if one.question != FLAG]
    flagged = find_flagged_items(ratings)
    before = [one for one in consensus(kept) if one.value != "yes"]
    unclear = {one.item for one in before if one.question == "interpretable"}
    unworthy = {(one.answer, one.sentence) for one in before if one.question == "worthy"}
    groups = defaultdict(list)
    for one in kept:
        groups[one.question].append(one)
    figures = {}
    for name in _known_first(groups):
        out = {
            one.item
            for one in groups[name]
            if (name == "attributable" and one.item in unclear)
            or (name in ("supported", "support") and (one.answer_id, one.sentence) in unworthy)
        }
        asked = [one for one in groups[name] if one.item not in out]
        if asked:
            figures[name] = _question(asked, number, likert, flagged)
            if out:
                figures[name]["not_interpretable" if name == "attributable" else "not_worthy"] = len(out)
    return figures


def _known_first(questions: Iterable[str]) -> list[str]:
    """The questions in the order of `VALUES`, then by name."""
    there = set(questions)
    return [*(name for name in VALUES if name in there), *sorted(there - VALUES.keys())]


def _question(raw: Sequence[Rating], number: _Number, likert: int, flagged: Collection[str]) -> dict[str, Any]:
    rated = list(apply_cut(raw, likert))
    decided = [one for one in consensus(rated) if one.item not in flagged]
    study = [one for one in rated if one.phase == "study"]
    items = _by_item(study)
    values = _in_order({one.value for one in study}, raw[0].question)
    found: dict[str, Any] = {
        "items": len(decided),
        "ratings": len(study),
        "annotators": len({one.annotator for one in study}),
        "ratings_per_item": {str(n): times for n, times in sorted(Counter(map(len, items.values())).items())},
        "ties": [one.item for one in decided if one.value is None],
        "adjudicated": sum(one.adjudicated for one in decided),
    }
    if left_out := len({one.item for one in rated if one.item in flagged}):
        found["flagged"] = left_out
    if len(values) > MOST_VALUES:
        return found | {"reason": _FREE}
    found["values"] = {value: sum(one.value == value for one in study) for value in values}
    numbers = [number(one.answer) for one in decided]
    found["consensus"] = {
        value: Rate.of([None if one.value is None else one.value == value for one in decided], numbers).record()
        for value in _in_order(values.keys() | {one.value for one in decided if one.value is not None}, raw[0].question)
    }
    of_items = [number(group[0].answer_id) for group in items.values()]
    counts = _counts(items.values(), list(values))
    found["agreement"] = {
        "krippendorff_alpha": krippendorff_alpha(counts, of_items).record(),
        "pairwise_agreement": pairwise_agreement(counts, of_items).record(),
        "f1_to_majority": f1_to_majority(counts, of_items).record(),
        "cohen_kappa": _cohen(items.values(), list(values)).record(),
        "fleiss_kappa": fleiss_kappa(counts, of_items).record(),
    }
    as_given = [one for one in raw if one.phase == "study"]
    if all(one.value in LIKERT for one in as_given):
        likert_counts = _counts(_by_item(as_given).values(), LIKERT)
        alpha = krippendorff_alpha(likert_counts, of_items, ordinal=True)
        found["agreement"]["krippendorff_alpha_ordinal"] = alpha.record()
        found["mean"] = _spread([int(one.value) for one in as_given])
    return found


def _by_item(ratings: Iterable[Rating]) -> dict[str, list[Rating]]:
    items: dict[str, list[Rating]] = {}
    for one in ratings:
        items.setdefault(one.item, []).append(one)
    return items


def _in_order(values: Iterable[str], question: str) -> dict[str, None]:
    known = VALUES.get(question, ())
    there = set(values)
    return dict.fromkeys([*(one for one in known if one in there), *sorted(there.difference(known))])


def _counts(items: Iterable[Sequence[Rating]], values: Sequence[str]) -> list[list[int]]:
    return [[sum(one.value == value for one in rated) for value in values] for rated in items]


def _cohen(items: Iterable[Sequence[Rating]], values: Sequence[str]) -> Coefficient:
    people: dict[str, int] = {}
    place = {value: number for number, value in enumerate(values)}
    return cohen_kappa(
        [(people.setdefault(one.annotator, len(people)), place[one.value]) for one in rated] for rated in items
    )


# --- the AIS paper's rates -------------------------------------------------------------------------------------------


_SUPPORTED = ("attributable", "supported")
_AIS = ("interpretable", *_SUPPORTED)


def _kind(one: Rating) -> str:
    """What the item is: an answer, a sentence or a citation."""
    return "answers" if one.sentence is None else "sentences" if one.citation is None else "citations"


def _ais_tables(ratings: Sequence[Rating], number: _Number, likert: int) -> list[dict[str, Any]]:
    """The rates of each system and of all, with the AIS paper's denominators; empty without an AIS question."""
    asked = [one for one in ratings if one.question in _AIS]
    kinds = {_kind(one) for one in asked}
    entered = {one.item for one in asked}  # what all people flagged, and what cites nothing, if it is of their kind
    about_source = any(one.question in _SUPPORTED for one in asked)
    entered |= {
        item
        for item, rated in _by_item(ratings).items()
        if _kind(rated[0]) in kinds
        and (is_flagged(rated) or (about_source and any(one.question in BEFORE for one in rated)))
    }
    ratings = [one for one in ratings if one.item in entered]
    if not asked:
        return []
    systems = sorted({one.system for one in ratings})

    def row(name: str, rated: Sequence[Rating]) -> dict[str, Any]:
        return _ais(name, rated, number, likert, about_source=about_source)

    rows = [row(name, [one for one in ratings if one.system == name]) for name in systems]
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
    flagged = find_flagged_items(ratings)
    decided = {(one.item, one.question): one.value for one in consensus(apply_cut(ratings, likert))}
    is_asked = any(one.question == "interpretable" for one in ratings)
    left = [item for item in items if item not in flagged]
    clear = {item: _yes(decided.get((item, "interpretable"), "yes")) for item in left}
    uncited = {item for item, _ in decided} - {item for item, question in decided if question in _SUPPORTED}
    people = {item: len({one.annotator for one in rated}) for item, rated in items.items()}
    least = min(2, max(people.values(), default=0))  # one alone may not have come to the question yet
    uncited = {item for item in uncited if about_source and people[item] >= least}
    worthy = {item: decided.get((item, "worthy"), "yes") for item in left}
    supported = {
        item: None
        if worthy[item] is None and item not in uncited
        else _yes(decided.get((item, "attributable"), decided.get((item, "supported"), "no")))
        for item in left
        if clear[item]
        and worthy[item] != "no"
        and (item in uncited or any((item, question) in decided for question in _SUPPORTED))
    }
    kinds = {_kind(one) for one in ratings}

    def rate(outcomes: Mapping[str, bool | None]) -> dict[str, Any]:
        return Rate.of(outcomes.values(), [number(items[item][0].answer_id) for item in outcomes]).record()

    return {
        "model": name,
        "unit": kinds.pop() if len(kinds) == 1 else "items",
        "flagged": rate({item: item in flagged for item in items}),
        "interpretable": (
            rate({item: clear[item] for item in left if (item, "interpretable") in decided}) if is_asked else None
        ),
        "ais": rate(supported),
        "ais_of_unflagged": rate(
            {item: supported.get(item, clear[item]) for item in left if not clear[item] or item in supported}
        ),
    }


def _yes(value: str | None) -> bool | None:
    return None if value is None else value == "yes"


# --- time ------------------------------------------------------------------------------------------------------------


def _times(study: Sequence[Rating]) -> dict[str, Any]:
    """Seconds by question (the stages of the task) and by task: one annotator's ratings of one item."""
    timed = [one for one in apply_flags(study) if one.seconds is not None]
    stages: dict[str, list[float]] = defaultdict(list)
    for one in timed:
        stages[one.question].append(one.seconds or 0.0)
    return {
        "tasks": _spread(list(_tasks(timed).values())),
        "questions": {name: _spread(stages[name]) for name in _known_first(stages)},
    }


def _tasks(ratings: Iterable[Rating]) -> dict[tuple[str, str], float]:
    """The seconds of each annotator and item."""
    tasks: dict[tuple[str, str], float] = defaultdict(float)
    for one in ratings:
        tasks[one.annotator, one.item] += one.seconds or 0.0
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
    study = [one for one in ratings if one.phase == "study"]
    kept = [one for one in apply_cut(apply_flags(study), likert) if one.question != FLAG]
    others: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for one in kept:
        others[one.item, one.question][one.value] += 1
    agrees: defaultdict[str, list[_Outcome]] = defaultdict(list)
    right: defaultdict[str, list[_Outcome]] = defaultdict(list)
    audited: defaultdict[str, list[_Outcome]] = defaultdict(list)
    for one in kept:
        rest = most_frequent(others[one.item, one.question] - Counter([one.value]))
        if rest is not None:
            agrees[one.annotator].append((one.item, one.value == rest))
    for one, is_right in _gold(ratings, gold, likert):
        right[one.annotator].append((one.item, is_right))
    for (name, item), was_right in _audited(ratings, likert).items():
        audited[name].append((item, was_right))
    timed = defaultdict(list)
    for one in apply_flags(study):
        timed[one.annotator].append(one)
    done: dict[str, list[Rating]] = {one.annotator: [] for one in ratings if one.phase in ("study", "gold")}
    for one in study:
        done[one.annotator].append(one)
    return [
        {
            "annotator": name,
            "items": len({one.item for one in rated}),
            "ratings": sum(one.question != FLAG for one in rated),
            "flags": sum(one.question == FLAG for one in rated),
            "revised": sum(one.revised for one in rated),
            "agrees_with_others": _rate(agrees[name]),
            "gold": _rate(right[name]),
            "audits": _rate(audited[name]),
            "time": _times(timed[name]),
        }
        for name, rated in sorted(done.items())
    ]


def _gold(ratings: Iterable[Rating], gold: Expected, likert: int) -> list[tuple[Rating, bool | None]]:
    """Each rating of a gold item, and whether it is the expected value; None if no value is expected."""
    found: list[tuple[Rating, bool | None]] = []
    for one in ratings:
        if one.phase == "gold" and one.question != FLAG:
            wanted = gold.get(one.item, {}).get(one.question)
            same = (
                None if wanted is None else one.value == wanted or _as_cut(one, likert) == _as_cut(one, likert, wanted)
            )
            found.append((one, same))
    return found


def _as_cut(rating: Rating, likert: int, value: str | None = None) -> str:
    given = rating if value is None else Rating(rating.item, rating.annotator, rating.question, value)
    return next(apply_cut([given], likert)).value


def _rate(outcomes: Iterable[_Outcome]) -> dict[str, Any]:
    """The rate of outcomes; those on one item are not independent."""
    listed = list(outcomes)
    return Rate.of([outcome for _, outcome in listed], [number_of(item) for item, _ in listed]).record()


def _audited(ratings: Iterable[Rating], likert: int) -> dict[tuple[str, str], bool]:
    """Each audited task (annotator and item), and whether the auditor would have given all its audited values.

    Values from 1 to 5 are the same on the same side of the cut, as in gold items.
    """
    given: dict[tuple[str, str], list[Rating]] = defaultdict(list)
    listed = list(apply_cut(ratings, likert))
    for one in listed:
        if one.phase == "study":
            given[one.item, one.question].append(one)
    right: dict[tuple[str, str], bool] = {}
    for check in listed:
        if check.phase == "audit":
            for one in given[check.item, check.question]:
                if check.audited in (None, one.annotator):
                    task = one.annotator, one.item
                    right[task] = right.get(task, True) and one.value == check.value
    return right


def _audits(ratings: Sequence[Rating], likert: int) -> dict[str, Any] | None:
    """Table 8 of the AIS paper: the share of tasks that were audited, and of those the share without an error."""
    tasks = {(one.annotator, one.item) for one in ratings if one.phase == "study"}
    checked = _audited(ratings, likert)
    if not checked:
        return None
    quality = _rate((item, checked[name, item]) for name, item in sorted(checked))
    return {"tasks": len(tasks), "audited": len(checked), "share": len(checked) / len(tasks), "quality": quality}


def _batch(ratings: Sequence[Rating], likert: int) -> dict[str, Any]:
    """A row of Tables 8 and 9: tasks, seconds a task, audits."""
    study = [one for one in ratings if one.phase == "study"]
    return {
        "tasks": len({(one.annotator, one.item) for one in study}),
        "seconds": _times(study)["tasks"],
        "audits": _audits(ratings, likert),
    }


# --- experts, and other designs --------------------------------------------------------------------------------------


def _place(one: Rating | Consensus) -> _Place:
    return one.answer_id if isinstance(one, Rating) else one.answer, one.sentence, one.citation


def _beside_experts(crowd: Sequence[Rating], experts: Sequence[Rating], number: _Number, likert: int) -> dict[str, Any]:
    """The consensus of the crowd beside that of the experts, by question (Table 7, right half).

    Attributability is compared only where neither side's consensus on interpretability is another than yes.
    """
    said = {(_place(one), one.question): one.value for one in consensus(apply_cut(crowd, likert))}
    right = {(_place(one), one.question): one.value for one in consensus(apply_cut(experts, likert))}
    unclear = {
        place for side in (said, right) for (place, name), value in side.items()
        if name == "interpretable" and value != "yes"
    }  # fmt: skip
    single = defaultdict(list)
    for one in apply_cut(apply_flags(crowd), likert):
        if one.phase == "study":
            single[_place(one), one.question].append(one.value)
    found = {}
    for name in _known_first({question for _, question in right}):
        both = [key for key in right if key[1] == name and key in said]
        if name == "attributable":
            both = [key for key in both if key[0] not in unclear]
        decided = [key for key in both if said[key] is not None and right[key] is not None]
        if not both or len({*map(said.get, decided), *map(right.get, decided)}) > MOST_VALUES:
            continue
        same = [None if None in (said[key], right[key]) else said[key] == right[key] for key in both]
        found[name] = {
            "agreement": Rate.of(same, [number(key[0][0]) for key in both]).record(),
            **_two(
                [str(said[key]) for key in decided],
                [str(right[key]) for key in decided],
                [number(key[0][0]) for key in decided],
            ),
            "single_ratings": _single([(single[key], str(right[key])) for key in both if right[key] is not None]),
        }
    return found


def _two(said: Sequence[str], right: Sequence[str], numbers: Sequence[int]) -> dict[str, Any]:
    """Coefficients of two sides that each have one value an item."""
    values = sorted({*said, *right})
    place = {value: number for number, value in enumerate(values)}
    counts = [[(a == value) + (b == value) for value in values] for a, b in zip(said, right, strict=True)]
    return {
        "krippendorff_alpha": krippendorff_alpha(counts, numbers).record(),
        "cohen_kappa": cohen_kappa([(0, place[a]), (1, place[b])] for a, b in zip(said, right, strict=True)).record(),
        "macro_f1": _macro_f1(list(zip(said, right, strict=True))),
    }


def _single(pairs: Sequence[tuple[Sequence[str], str]]) -> dict[str, Any]:
    """Single ratings of the crowd against the experts' value: macro-F1, and the mean share an item that agrees."""
    shares = [sum(value == wanted for value in given) / len(given) for given, wanted in pairs if given]
    return {
        "n": sum(len(given) for given, _ in pairs),
        "macro_f1": _macro_f1([(value, wanted) for given, wanted in pairs for value in given]),
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
    found = {}
    for name in sides[0]:
        if any(name not in side for side in sides):
            continue
        one, other, *right = _comparable([side[name] for side in sides], name)
        shared = [place for place in one if place in other and all(place in side for side in right)]
        decided = [place for place in shared if all(side[place] is not None for side in (one, other, *right))]
        a, b = (
            np.array([side[place] == right[0][place] if right else side[place] in ("yes", "full") for place in decided])
            .reshape(-1)
            .astype(np.bool_)
            for side in (one, other)
        )
        only_original, only_variant = int((a & ~b).sum()), int((b & ~a).sum())
        asked = [number(place[0]) for place in decided]
        if len(set(asked)) < len(asked):
            columns = by_question(asked, a.astype(np.float64), b.astype(np.float64), np.ones(len(asked)))
            one_side, other_side = (np.stack([column, columns[2]], axis=1) for column in columns[:2])
            p, swaps = p_values([Pairs(one_side, other_side, ratio_of_sums)])[0]
            tests = {"exact": None, "corrected": None, "test": "randomisation over questions", "p": p, "swaps": swaps}
        else:
            used = mcnemar(only_original, only_variant)
            tests = {
                "exact": mcnemar_exact(only_original, only_variant).p,
                "corrected": mcnemar_corrected(only_original, only_variant).p,
                "test": used.variant,
                "p": used.p,
            }
        found[name] = {
            "outcome": "as the experts" if right else "yes",
            "n": len(decided),
            "undecided": len(shared) - len(decided),
            "both": int((a & b).sum()),
            "only_original": only_original,
            "only_variant": only_variant,
            "neither": int((~a & ~b).sum()),
            **tests,
        }
    return found


def _verdicts(ratings: Sequence[Rating], likert: int) -> dict[str, dict[_Place, str | None]]:
    """The consensus by question and place; what is not interpretable is not attributable."""
    found: dict[str, dict[_Place, str | None]] = {}
    for one in consensus(apply_cut(ratings, likert)):
        found.setdefault(one.question, {})[_place(one)] = one.value
    for place, value in found.get("interpretable", {}).items():
        if value != "yes":
            found.setdefault("attributable", {})[place] = value
    return found


def _comparable(sides: Sequence[Mapping[_Place, str | None]], question: str) -> list[Mapping[_Place, str | None]]:
    """The sides as they are if all rate the same kind of thing, else by answer."""
    if len({place[1] is None for side in sides for place in side}) == 1:
        return list(sides)
    return [_by_answer(side, question) for side in sides]


def _by_answer(side: Mapping[_Place, str | None], question: str) -> dict[_Place, str | None]:
    """Sentences rolled up: an answer is informative if any sentence is, and all else if all are (ablation A3)."""
    answers: dict[_Place, list[str | None]] = {}
    for (answer, _, citation), value in side.items():
        if citation is None:
            answers.setdefault((answer, None, None), []).append(value)
    decisive, other = ("yes", "no") if question == "informative" else ("no", "yes")
    return {
        place: decisive if decisive in values else None if None in values else other
        for place, values in answers.items()
    }
