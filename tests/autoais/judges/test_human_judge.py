"""Labels of people as a judge."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import autoais
from autoais import formats, score
from autoais.base.answers import CitedAnswer, write_answers
from autoais.base.errors import UserError
from autoais.base.io.jsonl import dumps, write_atomic
from autoais.base.types import (
    CONTRADICT,
    NOT_JUDGED,
    SPLIT,
    Attribution,
    Citation,
    CitedSentence,
    Passage,
    Support,
    Verdict,
)
from autoais.formats.human_ratings.convert import convert_ratings
from autoais.formats.human_ratings.ratings import Rating, write_ratings
from autoais.judges import open_judge
from autoais.testing import SUPPORTED_CLAIM, UNRELATED_CLAIM, check_judge
from tests.autoais.formats.test_formats import sample
from tests.conftest import Command, one_line_error

PASSAGES = {key: Passage(key, title="T", text=f"Text {key}.") for key in ("p1", "p2")}


def sentence(
    text: str,
    *cites: str,
    support: tuple[Support | None, ...] = (None, None),
    **labels: Any,  # noqa: ANN401
) -> CitedSentence:
    return CitedSentence(text, tuple(Citation(c, support=s) for c, s in zip(cites, support, strict=False)), **labels)


def answer(key: str, *sentences: CitedSentence, **fields: Any) -> CitedAnswer:  # noqa: ANN401
    return CitedAnswer(key, f"Question {key}?", sentences, PASSAGES, **fields)


def file_of(path: Path, answers: Iterable[CitedAnswer]) -> Path:
    write_atomic(path, write_answers(answers))
    return path


def pair(key: str, text: str, *cites: str) -> Attribution:
    return Attribution(text, tuple(PASSAGES[c].evidence for c in cites), f"Question {key}?")


def test_it_keeps_the_contract(tmp_path: Path) -> None:
    rows = [
        {
            "id": str(number),
            "question": one.question,
            "sentences": [{"text": one.claim, "citations": [{"passage": "p"}], "attributable": label}],
            "passages": [{"id": "p", "text": one.evidence[0]}],
        }
        for number, (one, label) in enumerate([(SUPPORTED_CLAIM, True), (UNRELATED_CLAIM, False)])
    ]
    path = tmp_path / "answers.jsonl"
    write_atomic(path, map(dumps, rows))
    check_judge(open_judge(f"human:{path}"))


def test_it_says_what_people_said_of_sentences_and_citations(tmp_path: Path) -> None:
    answers = [
        answer("1", sentence("One.", "p1", "p2", support=(Support.PARTIAL, Support.NONE), attributable=True)),
        answer("2", sentence("Two.", "p2", attributable=False, support=(Support.PARTIAL,))),
        answer("3", sentence("Three.", "p1"), attributable=True),
        answer("4", sentence("Four.", "p1"), sentence("Five.", "p2"), attributable=True),
        answer("5", sentence("Six.", "p1", attributable=True, support=(Support.NONE,))),
    ]
    judge = open_judge(f"human:{file_of(tmp_path / 'a.jsonl', answers)}")
    asked = [
        pair("1", "One.", "p1", "p2"), pair("1", "One.", "p1"), pair("1", "One.", "p2"), pair("2", "Two.", "p2"),
        pair("3", "Three.", "p1"), pair("4", "Four.", "p1"), pair("2", "One.", "p1", "p2"), pair("5", "Six.", "p1"),
    ]  # fmt: skip
    found = judge.judge(asked)
    yes, partial, no = Verdict.ATTRIBUTABLE, Verdict.PARTIALLY_ATTRIBUTABLE, Verdict.NOT_ATTRIBUTABLE
    unknown = Verdict.UNDECIDED
    assert [one.verdict for one in found] == [yes, partial, no, partial, yes, unknown, unknown, unknown]
    assert [one.reason for one in found[5:]] == [NOT_JUDGED, NOT_JUDGED, CONTRADICT]
    assert "nobody judged 2 of the pairs" in str(judge.note)  # type: ignore[attr-defined]


def test_ratings_and_answers_give_the_consensus_and_ties_are_undecided(tmp_path: Path) -> None:
    answers = file_of(tmp_path / "a.jsonl", [answer("1", sentence("One.", "p1"), sentence("Two.", "p2"))])
    ratings = tmp_path / "r.jsonl"
    rows = [
        Rating(f"1#{place}", who, "attributable", value, "1", place)
        for place, values in enumerate(("445", "25"))
        for who, value in zip("abc", values, strict=False)
    ]
    write_atomic(ratings, write_ratings(rows))
    relaxed = open_judge(f"human:{ratings}", answers=str(answers))
    asked = [pair("1", "One.", "p1"), pair("1", "Two.", "p2")]
    assert [one.verdict for one in relaxed.judge(asked)] == [Verdict.ATTRIBUTABLE, Verdict.UNDECIDED]
    assert relaxed.judge(asked)[1].reason == SPLIT
    strict = open_judge(f"human:{ratings},answers={answers},likert=5")
    assert strict.judge(asked)[0].verdict is Verdict.NOT_ATTRIBUTABLE
    assert open_judge(f"human:{ratings},answers={answers}").name == relaxed.name != strict.name


def test_answers_with_the_consensus_say_the_same_as_the_ratings(tmp_path: Path, autoais: Command) -> None:
    """Also where people tie, and the same sentence has a label elsewhere."""
    same = [replace(answer(name, sentence("One is so.", "p1")), question="Question 1?") for name in "12"]
    answers, ratings, labelled = file_of(tmp_path / "a.jsonl", same), tmp_path / "r.jsonl", tmp_path / "l.jsonl"
    rows = [
        Rating(f"{name}#0", who, "attributable", value, name, 0)
        for name, values in (("1", ("yes", "no")), ("2", ("yes", "yes")))
        for who, value in zip("ab", values, strict=True)
    ] + [Rating("3#0", "a", "attributable", "no", "3", 0)]
    write_atomic(answers, write_answers([*same, answer("3", sentence("Two.", "p2"))]))
    write_atomic(ratings, write_ratings(rows))
    autoais("ratings", ratings, labelled, "--to", "answers", "--answers", answers)
    for judge in (open_judge(f"human:{ratings},answers={answers}"), open_judge(f"human:{labelled}")):
        (found,) = judge.judge([pair("1", "One is so.", "p1")])
        assert (found.verdict, found.reason) == (Verdict.UNDECIDED, SPLIT)


def test_people_are_not_compared_with_themselves(tmp_path: Path, autoais: Command) -> None:
    one = sentence("Text p1.", "p1", attributable=False)
    path = file_of(tmp_path / "a.jsonl", [answer("1", one), answer("2", sentence("Two.", "p2", attributable=True))])
    said = autoais("score", path, "--judge", f"human:{path}").stdout
    assert "Human labels" in said
    assert "against people" not in said
    assert "likely errors" not in said
    assert "against people" in autoais("score", path, "--judge", "lexical").stdout


def test_equal_sentences_of_two_answers_keep_their_own_labels_and_share_one_elsewhere(tmp_path: Path) -> None:
    same = [replace(answer(name, sentence("One.", "p1")), question="Question 1?") for name in "12"]
    answers, ratings = file_of(tmp_path / "a.jsonl", same), tmp_path / "r.jsonl"
    elsewhere = file_of(tmp_path / "b.jsonl", [replace(same[0], id="another")])

    def verdicts(scored: Path, *values: str) -> list[str]:
        rows = [
            Rating(f"{name}#0", who, "attributable", value, name, 0)
            for name, listed in zip("12", values, strict=True)
            for who, value in zip("ab", listed, strict=True)
        ]
        write_atomic(ratings, write_ratings(rows))
        judge = open_judge(f"human:{ratings}", answers=str(answers))
        plain = autoais.score(scored, judge=judge).judgements
        assert plain == autoais.score(scored, judge=judge, cache=tmp_path / f"cache{values}").judgements
        return [row["verdict"] for row in plain]

    yes, no, tie = "attributable", "not_attributable", "undecided"
    assert verdicts(answers, "55", "55") == [yes, yes]
    assert verdicts(elsewhere, "55", "55") == [yes]
    for first, second, own in (("55", "52", [yes, tie]), ("52", "55", [tie, yes]), ("55", "22", [yes, no])):
        assert verdicts(answers, first, second) == own
        assert verdicts(elsewhere, first, second) == [tie]
    with pytest.raises(UserError, match="people are tied on everything they judged"):
        verdicts(answers, "52", "52")


@pytest.mark.parametrize("text", ["", "The same text."])
def test_citations_without_a_text_or_with_the_same_keep_their_own_labels(tmp_path: Path, text: str) -> None:
    """Files of the verifiability study have no texts."""

    def row(key: str, said: str, *support: Support | None, attributable: bool) -> CitedAnswer:
        one = sentence(said, *"abc"[: len(support)], support=support, attributable=attributable)
        return CitedAnswer(key, "Q?", (one,), {key: Passage(key, text=text) for key in "abc"})

    full, partial, none = Support
    rows = [
        row("1", "One is so.", partial, none, attributable=False),
        row("2", "Two is so.", none, full, attributable=True),
        row("3", "Six is so.", full, none, None, attributable=True),
    ]
    path = file_of(tmp_path / "a.jsonl", rows)
    found = autoais.score(path, judge=f"human:{path}", metrics=["liu", "trec"])
    yes, part, no = "attributable", "partially_attributable", "not_attributable"
    assert [row["alone"] for row in found.judgements] == [[part, no], [no, yes], [yes, no, "undecided"]]
    assert [row["verdict"] for row in found.judgements] == [no, yes, yes]


def test_whole_answers_with_the_same_text_keep_their_own_labels(tmp_path: Path) -> None:
    both = [
        replace(answer(name, sentence("One.", "p1"), sentence("Two.", "p2"), attributable=label), question="Q?")
        for name, label in (("1", True), ("2", False))
    ]
    path = file_of(tmp_path / "a.jsonl", both)
    rate = autoais.score(path, judge=f"human:{path}").metrics["autoais"]
    assert (rate.value, rate.n, rate.undecided) == (0.5, 2, 0)


def test_the_name_is_that_of_the_content(tmp_path: Path) -> None:
    one, same, other = (
        open_judge(f"human:{file_of(tmp_path / name, [answer('1', sentence('One.', 'p1', attributable=label))])}").name
        for name, label in (("a.jsonl", True), ("b.jsonl", True), ("c.jsonl", False))
    )
    assert one == same != other
    assert one.startswith("human@")


@pytest.mark.parametrize(
    "name", ["hagrid", "attrscore", "attributionbench", "labels", "liu-judgements", "liu-annotations"]
)
def test_any_format_with_labels_is_a_judge_of_its_own_answers(tmp_path: Path, name: str) -> None:
    path = sample(tmp_path, name)
    judge = open_judge(f"human:{path}")
    report = autoais.score(path, judge=judge, metrics=["trec"])
    cached = autoais.score(path, judge=judge, metrics=["trec"], cache=tmp_path / "cache")
    assert cached.judgements == report.judgements
    # Liu et al.'s judgements are of single citations, and say nothing of two citations together.
    assert report.metrics["trec_precision" if name == "liu-judgements" else "sentences"].n > 0
    labelled = [
        (one.attributable, row["verdict"])
        for answer in formats.read(path)
        for one, row in zip(
            answer.sentences, [row for row in report.judgements if row["id"] == answer.id], strict=True
        )
        if one.attributable is not None and one.cites
    ]  # fmt: skip
    assert all(label == (verdict == "attributable") for label, verdict in labelled)


def test_subsets_that_nobody_judged_are_undecided_and_the_report_says_so(tmp_path: Path, autoais: Command) -> None:
    path = file_of(tmp_path / "a.jsonl", [answer("1", sentence("One is a sentence.", "p1", "p2", attributable=True))])
    done = autoais("score", path, "--judge", f"human:{path}", "--json")
    result = json.loads(done.stdout)
    assert result["metrics"]["autoais"]["value"] == 1.0
    assert (result["metrics"]["citation_recall"]["value"], result["metrics"]["citation_precision"]["n"]) == (1.0, 0)
    assert "nobody judged 2 of the pairs" in done.stderr
    assert "nobody judged 2 of the pairs" in result["provenance"]["judge"]["note"]


def test_ratings_of_whole_answers_decide_about_answers_and_not_about_their_sentences(
    tmp_path: Path, autoais: Command
) -> None:
    rows = [
        answer(str(n), sentence(f"One {n} is so.", "p1"), sentence(f"Two {n} is so.", "p2"), attributable=label)
        for n, label in enumerate((True, True, False, None))
    ]
    path, out = file_of(tmp_path / "a.jsonl", rows), tmp_path / "out.jsonl"
    for cache in ([], ["--cache", tmp_path / "cache"]):
        metrics = json.loads(autoais("score", path, "--judge", f"human:{path}", "--json", "--out", out, *cache).stdout)[
            "metrics"
        ]
        assert (metrics["autoais"]["value"], metrics["autoais"]["n"]) == (pytest.approx(2 / 3), 3)
        assert metrics["autoais"]["undecided"] == 1
        assert (metrics["sentences"]["n"], metrics["hagrid"]["n"]) == (0, 0)
    rate = json.loads(autoais("compare", out, out, "--json").stdout)["a"]
    assert (rate["value"], rate["n"], rate["undecided"]) == (pytest.approx(2 / 3), 3, 1)


@pytest.mark.parametrize("label", [True, False])
def test_the_label_of_a_sentence_with_one_citation_is_also_that_of_the_citation(tmp_path: Path, label: bool) -> None:
    sentences = (sentence("One is so.", "p1", attributable=label), sentence("Two is so.", "p2", attributable=label))
    answers = file_of(tmp_path / "a.jsonl", [answer("1", *sentences)])
    hagrid = tmp_path / "h.jsonl"
    write_atomic(hagrid, formats.write(formats.read(answers), "hagrid", formats.Notes()))
    ratings = tmp_path / "r.jsonl"
    rows = [Rating(f"1#{n}", "ada", "attributable", "yes" if label else "no", "1", n) for n in range(2)]
    write_atomic(ratings, write_ratings(rows))
    for judge, scored in (
        (f"human:{answers}", answers),
        (f"human:{ratings},answers={answers}", answers),
        (f"human:{hagrid}", hagrid),
    ):
        report = autoais.score(scored, judge=judge)
        for name in ("autoais", "sentences", "hagrid", "citation_precision"):
            metric = report.metrics[name]
            assert (metric.value, metric.undecided) == (float(label), 0), (judge, name)


def test_hagrids_rule_needs_every_citation_judged_by_itself(tmp_path: Path) -> None:
    rows = [
        answer(
            "1", sentence("One is so.", "p1", attributable=False), sentence("Two is.", "p1", "p2", attributable=True)
        ),
        answer("2", sentence("Three is so.", "p1", attributable=False)),
    ]
    path = file_of(tmp_path / "a.jsonl", rows)
    metrics = autoais.score(path, judge=f"human:{path}").metrics
    assert (metrics["hagrid"].value, metrics["hagrid"].n, metrics["hagrid"].undecided) == (0.0, 1, 1)
    assert (metrics["autoais"].value, metrics["autoais"].n) == (0.0, 2)


def test_labels_of_sentences_go_before_that_of_the_answer(tmp_path: Path) -> None:
    """HAGRID's answers have both, by a rule for citations that is not the union."""
    rows = [
        answer("1", sentence("One is so.", "p1", attributable=True), sentence("Two is so.", "p2", attributable=True),
               attributable=False)
    ]  # fmt: skip
    path = file_of(tmp_path / "a.jsonl", rows)
    assert autoais.score(path, judge=f"human:{path}").metrics["autoais"].value == 1.0


def test_an_answer_that_people_judged_in_part_is_undecided_whatever_they_said(tmp_path: Path) -> None:
    """Else answers would be decided where a sentence is a no, and only there."""
    full, none = (Support.FULL,), (Support.NONE, Support.NONE)
    rows = [
        answer("1", sentence("One is so.", "p1", support=none), sentence("Two is so.", "p1", "p2", support=none)),
        answer("2", sentence("Three is so.", "p1", support=full), sentence("Four is so.", "p2", support=none)),
    ]
    path = file_of(tmp_path / "a.jsonl", rows)
    report = autoais.score(path, judge=f"human:{path}")
    assert (report.metrics["autoais"].value, report.metrics["autoais"].undecided) == (0.0, 1)
    assert (report.metrics["hagrid"].value, report.metrics["hagrid"].n) == (0.0, 2)
    assert report.metrics["sentences"].n == 3
    assert autoais.compare(report, report)["a"]["undecided"] == 1


def test_a_tie_is_no_more_decided_beside_a_no_than_beside_a_yes(tmp_path: Path, autoais: Command) -> None:
    """As in the labels of answers that an export has."""
    answers, ratings, labelled = (tmp_path / name for name in ("a.jsonl", "r.jsonl", "l.jsonl"))
    file_of(answers, [answer(name, sentence("One is so.", "p1"), sentence("Two is so.", "p2")) for name in "1234"])
    values = {"1": ("no", "tie"), "2": ("yes", "tie"), "3": ("yes", "yes"), "4": ("no", "yes")}
    rows = [
        Rating(f"{name}#{place}", who, "attributable", said if value == "tie" else value, name, place)
        for name, both in values.items()
        for place, value in enumerate(both)
        for who, said in (("ada", "yes"), ("bob", "no"))
    ]
    write_atomic(ratings, write_ratings(rows))
    autoais("ratings", ratings, labelled, "--to", "answers", "--answers", answers)
    rolled_up = {one.id: one.attributable for one in formats.read(labelled)}
    assert rolled_up == {"1": None, "2": None, "3": True, "4": False}
    for judge in (f"human:{ratings},answers={answers}", f"human:{labelled}"):
        report = score(answers, judge=judge)
        for name in ("autoais", "hagrid"):
            one = report.metrics[name]
            assert (one.value, one.n, one.undecided) == (0.5, 2, 2), (judge, name)


def test_what_people_find_not_worth_verifying_is_not_judged_and_not_counted(tmp_path: Path) -> None:
    """Spec D3, by hand: recall 2/3, precision 3/4; the fourth statement is not worthy, though it cites a passage."""
    texts = {0: "One is so.", 1: "Two is so.", 2: "Three is so.", 3: "Glad to help.", 4: "Bye."}
    cites = {0: ("p1", "p2"), 1: ("p1", "p2"), 2: (), 3: ("p1",), 4: ()}
    rated = [answer("1", *(sentence(texts[n], *cites[n]) for n in texts))]
    answers, ratings, labelled = (tmp_path / name for name in ("a.jsonl", "r.jsonl", "l.jsonl"))
    file_of(answers, rated)
    values: list[tuple[int, str | None, str, str]] = [(n, None, "worthy", "yes" if n < 3 else "no") for n in texts]
    values += [(0, None, "supported", "yes"), (1, None, "supported", "yes"), (0, "p1", "support", "full")]
    values += [(0, "p2", "support", "partial"), (1, "p1", "support", "partial"), (1, "p2", "support", "partial")]
    rows = [Rating(f"1#{n}{p}", "ada", q, v, answer="1", sentence=n, citation=p) for n, p, q, v in values]
    write_atomic(ratings, write_ratings(rows))
    write_atomic(labelled, convert_ratings(ratings, "answers", answers=answers))
    for judge in (f"human:{ratings},answers={answers}", f"human:{labelled}"):
        report = score(answers, judge=judge, metrics="liu")
        for name in ("sentences", "liu_recall"):
            found = report.metrics[name]
            assert [found.value, found.floor] == pytest.approx([2 / 3, 2 / 3], abs=1e-5)
        assert (report.metrics["liu_precision"].value, report.metrics["liu_precision"].n) == (0.75, 4)
        assert (report.metrics["autoais"].value, report.metrics["autoais"].undecided) == (0.0, 0)
        reasons = [(row["verdict"], row["reason"]) for row in report.judgements[3:]]
        assert reasons == [("not_applicable", "people find nothing in it to verify")] * 2
    assert score(answers, judge="lexical").metrics["sentences"].n == 5  # no judge but people knows


def test_two_systems_are_compared_by_people(tmp_path: Path, autoais: Command) -> None:
    files = []
    for name, labels in (("a", (True, True, False)), ("b", (True, False, False))):
        rows = [answer(str(n), sentence(f"{name} {n} is so.", "p1", attributable=one)) for n, one in enumerate(labels)]
        files.append(file_of(tmp_path / f"{name}.jsonl", rows))
    rows = [replace(one, id=f"{path.stem}{one.id}") for path in files for one in formats.read(path)]
    both = file_of(tmp_path / "labels.jsonl", rows)
    for path in files:
        done = autoais("score", path, "--judge", f"human:{both}", "--out", path.with_suffix(".out"))
        assert done.returncode == 0, done.stderr
    result = json.loads(autoais("compare", *(path.with_suffix(".out") for path in files), "--json").stdout)
    assert (result["table"]["both"], result["table"]["only_a"], result["table"]["neither"]) == (1, 1, 1)


def test_what_is_no_file_of_labels_is_refused(tmp_path: Path, autoais: Command) -> None:
    bare = file_of(tmp_path / "bare.jsonl", [answer("1", sentence("One.", "p1"))])
    ratings = tmp_path / "r.jsonl"
    write_atomic(ratings, write_ratings([Rating("9", "a", "attributable", "yes")]))
    for name, says in (
        (f"human:{tmp_path / 'gone'}", "there is no file"),
        ("human:", "names no file; write human:<file>"),
        (f"human:{ratings},answers={tmp_path / 'gone'}", "there is no file .*gone; name a file with the rated answers"),
        (f"human:{bare}", "no answer, sentence or citation in it has a human label"),
        (f"human:{ratings}", "name the rated answers too"),
        (f"human:{ratings},answers={bare}", "answer '9' has ratings, but is not among the answers"),
        (f"human:{bare},answers={bare}", "holds answers, not ratings"),
        (f"human:{bare},likert=7", "likert '7'"),
    ):
        with pytest.raises(UserError, match=says):
            open_judge(name)
    one_line_error(autoais("score", bare, "--judge", "human"), "human:<file>")
    one_line_error(autoais("score", bare, "--judge", f"human:{bare}"), "no answer, sentence or citation")
