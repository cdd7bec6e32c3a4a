"""Ratings of people: the file, the consensus and the labels that it gives the answers."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from autoais.base.answers import CitedAnswer
from autoais.base.errors import FormatError, UsageError, UserError
from autoais.base.io.jsonl import write_atomic
from autoais.base.io.notes import Notes
from autoais.base.types import Citation, CitedSentence, Passage, Support
from autoais.formats.human_ratings.consensus import (
    Consensus,
    apply_cut,
    apply_flags,
    consensus,
    drop_annotators,
    is_flagged,
    label_answers,
)
from autoais.formats.human_ratings.ratings import FLAG, Rating, write_ratings
from autoais.formats.human_ratings.read import read_ratings

PASSAGES = {key: Passage(key, text=f"Text of {key}.") for key in ("p1", "p2")}


def rate(item: str, question: str, values: str, **fields: object) -> list[Rating]:
    """One rating per word of `values`, by annotators a, b, c, ..."""
    return [
        Rating(item, name, question, value, **fields)  # type: ignore[arg-type]
        for name, value in zip("abcdefgh", values.split(), strict=False)
    ]


def written(path: Path, ratings: Iterable[Rating]) -> Path:
    write_atomic(path, write_ratings(ratings))
    return path


def answer(**fields: object) -> CitedAnswer:
    sentences = (
        CitedSentence("One.", (Citation("p1"), Citation("p2"), Citation("p1", 0, 4))),
        CitedSentence("Two.", (Citation("p2"),)),
    )
    return CitedAnswer("a/1", "Why?", sentences, PASSAGES, **fields)  # type: ignore[arg-type]


def labelled(ratings: Iterable[Rating], likert: int = 4, **fields: object) -> CitedAnswer:
    (one,) = label_answers([answer(**fields)], ratings, likert=likert)
    return one


# --- the file --------------------------------------------------------------------------------------------------------


def test_a_rating_survives_its_file(tmp_path: Path) -> None:
    rich = Rating(
        "q/1#0", "Änne \u2028<script>'; DROP", "support", "partial", "q/1", 0, "p1", 1.5, "2026-11-23T07:00Z", "gold",
        "reader", (Citation("p1", 0, 4), Citation("p2")), 'because "x"\n\x00', True, source_seen=True,
    )  # fmt: skip
    poor = Rating("q/1", "b", "is it funny?", "a bit")
    assert list(read_ratings(written(tmp_path / "r.jsonl", [rich, poor]))) == [rich, poor]


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("{", "not JSON"),
        ('{"item": "i", "annotator": "a", "question": "q"}', "field 'value' is missing"),
        ('{"item": "i", "annotator": " ", "question": "q", "value": "v"}', "field 'annotator' is empty"),
        ('{"item": "i", "annotator": "a", "question": "q", "value": null}', "field 'value' should be"),
        ('{"item": "i", "annotator": "a", "question": "informative", "value": "maybe"}', "field 'value': question"),
        ('{"item": "i", "annotator": "a", "question": "q", "value": "v", "seconds": -1}', "field 'seconds' should be"),
        ('{"item": "i", "annotator": "a", "question": "q", "value": "v", "seconds": NaN}', "NaN is not a JSON number"),
        ('{"item": "i", "annotator": "a", "question": "q", "value": "v", "phase": "later"}', "field 'phase' should be"),
        ('{"item": "i", "annotator": "a", "question": "q", "value": "v", "citation": "p"}', "without field 'sentence'"),
        (
            '{"item": "i", "annotator": "a", "question": "q", "value": "v", '
            '"evidence": [{"passage": "p", "start": 5, "end": 2}]}',
            "field 'evidence[0]'",
        ),
    ],
)
def test_a_broken_row_is_refused_with_line_and_field(tmp_path: Path, row: str, fault: str) -> None:
    path = written(tmp_path / "r.jsonl", rate("i", "informative", "yes"))
    path.write_text(path.read_text() + row + "\n")
    with pytest.raises(FormatError, match=r"r\.jsonl:2: ") as caught:
        list(read_ratings(path))
    assert fault in str(caught.value)


def test_one_annotator_has_one_value_per_item_and_question(tmp_path: Path) -> None:
    yes, no = Rating("i", "a", "informative", "yes"), Rating("i", "a", "informative", "no")
    assert list(read_ratings(written(tmp_path / "same.jsonl", [yes, replace(yes, seconds=2.0)]))) == [yes]
    checks = [replace(one, phase="audit", audited=name) for one, name in ((yes, "b"), (no, "c"))]
    assert list(read_ratings(written(tmp_path / "audit.jsonl", checks))) == checks
    with pytest.raises(FormatError, match=r"r\.jsonl:2: annotator 'a' rated item 'i' before.*r\.jsonl:1"):
        list(read_ratings(written(tmp_path / "r.jsonl", [yes, no])))


def test_a_file_without_ratings_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text("\n")
    with pytest.raises(FormatError, match="holds no ratings"):
        list(read_ratings(tmp_path / "r.jsonl"))


def test_a_rating_has_a_known_phase() -> None:
    with pytest.raises(UsageError, match="phase"):
        Rating("i", "a", "q", "v", phase="Study")


# --- consensus -------------------------------------------------------------------------------------------------------


def test_the_most_frequent_value_wins_and_a_tie_has_none() -> None:
    ratings = rate("i", "attributable", "yes no yes") + rate("j", "attributable", "yes no")
    assert consensus(ratings) == [
        Consensus("i", "attributable", "yes", {"yes": 2, "no": 1}, answer="i"),
        Consensus("j", "attributable", None, {"no": 1, "yes": 1}, answer="j"),
    ]
    assert [one.value for one in consensus(rate("i", "support", "full none partial full"))] == ["full"]


def test_an_adjudication_decides_alone() -> None:
    ratings = rate("i", "attributable", "yes no") + rate("i", "attributable", "no", phase="adjudication")
    (one,) = consensus(ratings)
    assert (one.value, one.adjudicated, one.counts) == ("no", True, {"no": 1, "yes": 1})


def test_training_gold_and_audits_do_not_count() -> None:
    others = [one for phase in ("training", "gold", "audit") for one in rate("i", "attributable", "no", phase=phase)]
    assert [one.value for one in consensus(rate("i", "attributable", "yes") + others)] == ["yes"]
    assert consensus(others) == []


def test_a_flag_takes_the_item_from_its_own_annotator_only() -> None:
    ratings = [
        *rate("i", "attributable", "yes no no"),
        *rate("j", "attributable", "yes"),
        Rating("i", "b", FLAG, "expert"),
    ]
    assert [(one.item, one.annotator) for one in apply_flags(ratings)] == [("i", "a"), ("i", "c"), ("j", "a")]
    assert [one.value for one in consensus(ratings)] == [None, "yes"]


def test_flags_of_other_phases_take_nothing_and_adjudications_stay() -> None:
    ratings = [*rate("i", "attributable", "yes"), Rating("i", "a", FLAG, "expert", phase="training")]
    assert [one.value for one in consensus(ratings)] == ["yes"]
    decided = Rating("i", "a", "attributable", "no", phase="adjudication")
    assert consensus([*ratings, Rating("i", "a", FLAG, "expert"), decided])[0].value == "no"


def test_an_item_is_flagged_by_more_people_than_rate_it() -> None:
    flag, rated = [Rating("i", "a", FLAG, "missing")], [Rating("i", "b", "informative", "yes")]
    assert is_flagged(flag)
    assert not is_flagged([*flag, *rated])
    assert is_flagged([*flag, *rated, Rating("i", "c", FLAG, "expert")])
    assert not is_flagged([*flag, Rating("i", "a", "informative", "yes"), *rated])


def test_likert_values_are_cut() -> None:
    ratings = rate("i", "attributable", "3 4 5 yes") + rate("i", "quality", "4")
    assert [one.value for one in apply_cut(ratings)] == ["no", "yes", "yes", "yes", "4"]
    assert [one.value for one in apply_cut(ratings, 5)] == ["no", "no", "yes", "yes", "4"]


# --- labels ----------------------------------------------------------------------------------------------------------


def test_answers_are_labelled_with_the_consensus() -> None:
    one = labelled(
        [
            *rate("1", "informative", "no no yes", answer="a/1", sentence=0),
            *rate("1", "attributable", "yes yes no", answer="a/1", sentence=0),
            *rate("2", "informative", "yes", answer="a/1", sentence=1),
            *rate("2", "supported", "contradict", answer="a/1", sentence=1),
            *rate("2", "worthy", "yes", answer="a/1", sentence=1),
            *rate("3", "support", "partial", answer="a/1", sentence=0, citation="p1"),
            *rate("4", "support", "inaccessible", answer="a/1", sentence=1, citation="p2"),
        ]
    )
    first, second = one.sentences
    assert (first.informative, first.attributable, first.worthy) == (False, True, None)
    assert (second.informative, second.attributable, second.worthy) == (True, False, True)
    assert [c.support for c in first.citations] == [Support.PARTIAL, None, Support.PARTIAL]
    assert [c.support for c in second.citations] == [Support.NONE]
    assert (one.informative, one.attributable) == (True, False)  # HAGRID's roll-up: any, all


def test_labels_of_simulated_annotators_say_so() -> None:
    people = rate("1", "informative", "yes yes", answer="a/1", sentence=0)
    assert "simulated_labels" not in labelled(people).extra
    machine = replace(people[0], annotator="simulated-3")
    assert labelled([*people, machine], extra={"system": "s"}).extra == {"system": "s", "simulated_labels": True}
    assert labelled(people, extra={"system": "s", "simulated_labels": True}).extra == {"system": "s"}


def test_what_cannot_be_interpreted_is_not_attributable() -> None:
    minority = rate("a/1", "attributable", "yes yes")
    assert labelled(rate("a/1", "interpretable", "no no no yes yes") + minority).attributable is False
    assert labelled(rate("a/1", "interpretable", "no no yes yes") + minority).attributable is None
    assert labelled(rate("a/1", "interpretable", "no yes yes") + minority).attributable is True


def test_what_is_not_worth_verifying_has_no_label_whatever_a_minority_said() -> None:
    """Liu et al. 2023: the support of such a statement is null."""
    place: dict[str, object] = {"answer": "a/1", "sentence": 0}
    minority = rate("s", "supported", "yes", **place)
    other = rate("t", "attributable", "no", answer="a/1", sentence=1)
    for values, label in (("no no yes", None), ("no yes", None), ("no yes yes", True)):
        one = labelled([*rate("s", "worthy", values, **place), *minority, *other])
        assert (one.sentences[0].attributable, one.attributable) == (label, False if values != "no yes" else None)


def test_a_flagged_item_has_no_label_but_of_an_adjudication() -> None:
    ratings = [*rate("a/1", "attributable", "yes"), *(Rating("a/1", name, FLAG, "malformed") for name in "xy")]
    notes = Notes()
    (one,) = label_answers([answer()], ratings, notes=notes)
    assert (one.attributable, notes) == (None, {"ratings of flagged items, without a label": 1})
    assert labelled(ratings[:-1]).attributable is True  # one rated it, and one flagged it
    decided = Rating("a/1", "lead", "attributable", "no", phase="adjudication")
    assert labelled([*ratings, decided]).attributable is False


def uncited(ratings: Iterable[Rating], *citations: Citation) -> CitedAnswer:
    """The labels of an answer whose second sentence cites nothing."""
    sentences = (CitedSentence("One.", citations), CitedSentence("Two."))
    (one,) = label_answers([CitedAnswer("a/1", "Why?", sentences, PASSAGES)], ratings)
    return one


@pytest.mark.parametrize(
    ("question", "value", "label"),
    [
        ("informative", "yes", False),
        ("informative", "no", False),
        ("interpretable", "yes", False),
        ("worthy", "yes", False),
        ("worthy", "no", None),
        ("attributable", "yes", True),
        ("funny", "yes", None),
    ],
)
def test_a_rated_sentence_that_cites_nothing_is_not_attributable(question: str, value: str, label: bool | None) -> None:
    ratings = rate("s", question, value, answer="a/1", sentence=1)
    assert [one.attributable for one in uncited(ratings, Citation("p1")).sentences] == [None, label]
    asked = rate("t", "attributable", "yes", answer="a/1", sentence=0)
    whole = uncited(asked + ratings, Citation("p1")).attributable  # what needs no source takes nothing from the others
    assert whole is (True if question == "worthy" and value == "no" else label)


def test_a_rated_answer_that_cites_nothing_is_not_attributable() -> None:
    for question in ("informative", "interpretable"):
        ratings = rate("a/1", question, "yes")
        assert uncited(ratings).attributable is False
        assert uncited(ratings, Citation("p1")).attributable is None
    assert uncited(rate("a/1", "attributable", "yes")).attributable is True
    assert uncited([]).attributable is None


def test_who_is_left_out_counts_for_nothing() -> None:
    ratings = [*rate("i", "attributable", "yes no no"), Rating("i", "b", FLAG, "expert")]
    assert drop_annotators(ratings, ["b", "c"]) == ratings[:1]
    with pytest.raises(UserError, match="no annotator 'eve'; there are: a, b, c"):
        drop_annotators(ratings, ["a", "eve"])


def test_a_whole_answer_has_labels_of_its_own() -> None:
    one = labelled([*rate("a/1", "informative", "yes"), *rate("a/1", "attributable", "no")])
    assert (one.informative, one.attributable) == (True, False)
    assert [sentence.informative for sentence in one.sentences] == [None, None]


def test_a_tie_has_no_label_and_earlier_labels_are_dropped() -> None:
    tie = labelled(rate("a/1", "attributable", "yes no"), informative=True, attributable=True)
    assert (tie.informative, tie.attributable) == (None, None)


@pytest.mark.parametrize(("likert", "label"), [(4, True), (5, False)])
def test_the_cut_decides_on_likert_values(likert: int, label: bool) -> None:
    assert labelled(rate("a/1", "attributable", "4 4 5"), likert).attributable is label


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"answer": "b"}, "answer 'b' has ratings, but is not among the answers"),
        ({"answer": "a/1", "sentence": 2}, "has ratings of sentence 2, and no such sentence"),
        ({"answer": "a/1", "sentence": 1, "citation": "p1"}, "sentence 1 does not cite 'p1'"),
    ],
)
def test_ratings_of_something_else_are_refused(fields: dict[str, object], fault: str) -> None:
    with pytest.raises(UserError, match=fault):
        labelled(rate("i", "support", "full", **fields))
