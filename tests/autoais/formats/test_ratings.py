"""Ratings to and from other tools: Label Studio, autojudge-annotate, the AIS paper's CSV, answers with labels."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoais import formats
from autoais.base.answers import CitedAnswer, write_answers
from autoais.base.errors import FormatError, UserError
from autoais.base.io.jsonl import dumps, write_atomic
from autoais.base.types import Citation, CitedSentence, Passage, Support
from autoais.formats.base import Notes
from autoais.formats.human_ratings.ais_csv import HEADER
from autoais.formats.human_ratings.convert import convert_ratings
from autoais.formats.human_ratings.ratings import FLAG, LIKERT, PHASES, Rating, write_ratings
from autoais.formats.human_ratings.read import read_ratings
from autoais.meta.ais_report import read_release as read_csv
from autoais.meta.ais_report import report
from tests.conftest import Command, one_line_error

PASSAGES = {key: Passage(key, title="A <title>", text=f"The text of {key} & more.") for key in ("p1", "p2")}
ANSWERS = [
    CitedAnswer(
        "q/1", "Why?", (CitedSentence("One.", (Citation("p1"), Citation("p2"))), CitedSentence("Two.")), PASSAGES
    ),
    CitedAnswer("q/2", "Why?", (CitedSentence('It "is" so,\nhe said.', (Citation("p1"),)),), PASSAGES),
]
RATINGS = [
    Rating("q/1", "ada", "interpretable", "yes", "q/1", seconds=10.5, at="2026-11-23T07:00:00Z", system="s"),
    Rating("q/1", "ada", "attributable", "no", "q/1", seconds=20.0, system="s", reason="it is not there"),
    Rating("q/1", "bob", "interpretable", "yes", "q/1", system="s", revised=True),
    Rating("q/1", "bob", "attributable", "yes", "q/1", system="s", evidence=(Citation("p1", 0, 8), Citation("p2"))),
    Rating("q/1", "eve", "interpretable", "yes", "q/1", system="s"),
    Rating("q/1", "eve", "attributable", "yes", "q/1", system="s"),
    Rating("q/2", "ada", "interpretable", "no", "q/2", system="t"),
    Rating("q/2", "bob", FLAG, "missing", "q/2", system="t"),
    Rating("q/2", "eve", "interpretable", "yes", "q/2", system="t"),
    Rating("q/2", "eve", "attributable", "yes", "q/2", system="t"),
]
LEVELS = [
    Rating("q/1#0/p1", "ada", "support", "full", "q/1", 0, "p1", evidence=(Citation("p1", 4, 8),), system="s"),
    Rating("q/1#0/p2", "ada", "support", "none", "q/1", 0, "p2", reason="off topic", system="s"),
    Rating("q/1#0/p2", "bob", "support", "partial", "q/1", 0, "p2", system="s"),
]


def answers_file(tmp_path: Path) -> Path:
    path = tmp_path / "answers.jsonl"
    write_atomic(path, write_answers(ANSWERS))
    return path


def converted(tmp_path: Path, ratings: Iterable[Rating], to: str, notes: Notes | None = None) -> Path:
    path = tmp_path / f"out.{to}"
    write_atomic(path, convert_ratings(ratings, to, answers=answers_file(tmp_path), notes=notes))
    return path


# --- Label Studio ----------------------------------------------------------------------------------------------------


def test_label_studio_gets_everything_and_gives_it_back(tmp_path: Path) -> None:
    path = converted(tmp_path, RATINGS + LEVELS, "label-studio")
    tasks = json.loads(path.read_text("utf-8"))
    assert [len(task["annotations"]) for task in tasks] == [3, 3, 1, 2]
    assert tasks[0]["data"]["question"] == "Why?"
    assert tasks[0]["data"]["text"] == "One. Two."
    assert tasks[2]["data"]["sources"] == "A <title>. The text of p1 & more."
    assert not any("completed_by" in one for task in tasks for one in task["annotations"])
    assert sorted(read_ratings(path), key=repr) == sorted(RATINGS + LEVELS, key=repr)


def test_training_and_gold_items_do_not_go_to_label_studio(tmp_path: Path, autoais: Command) -> None:
    others = [Rating(phase, "ada", "attributable", "no", phase, phase=phase) for phase in ("training", "gold")]
    ratings, out = tmp_path / "r.jsonl", tmp_path / "out.json"
    write_atomic(ratings, write_ratings([*others, *RATINGS]))
    done = autoais("ratings", ratings, out, "--to", "label-studio", "--answers", answers_file(tmp_path))
    assert (done.returncode, done.stderr) == (0, "2 ratings of training and gold items, left out\n")
    assert sorted(read_ratings(out), key=repr) == sorted(RATINGS, key=repr)


def test_an_annotator_can_be_left_out(tmp_path: Path, autoais: Command) -> None:
    ratings, out = tmp_path / "r.jsonl", tmp_path / "out.jsonl"
    write_atomic(ratings, write_ratings(RATINGS))
    assert autoais("ratings", ratings, out, "--to", "ratings", "--without", "ada", "--without", "eve").returncode == 0
    assert {one.annotator for one in read_ratings(out)} == {"bob"}
    one_line_error(autoais("ratings", ratings, out, "--to", "ratings", "--without", "zoe"), "no annotator 'zoe'")


def test_an_export_of_label_studio_is_read(tmp_path: Path) -> None:
    # As its documentation shows: users by number or e-mail, one time for all, a skipped task, a text area
    def result(name: str, kind: str, **value: Any) -> dict[str, Any]:  # noqa: ANN401
        return {"id": "x", "from_name": name, "to_name": "text", "type": kind, "value": value, "origin": "manual"}

    tasks = [
        {
            "id": 7,
            "data": {"text": "One."},
            "annotations": [
                {
                    "completed_by": {"id": 3, "email": "ada@example.org"},
                    "lead_time": 30.0,
                    "was_cancelled": False,
                    "created_at": "2026-11-23T07:00:00Z",
                    "result": [
                        result("interpretable", "choices", choices=["Yes"]),
                        result("attributable", "rating", rating=4),
                        result("reason", "textarea", text=["so"]),
                        result("span", "labels", start=0, end=3, labels=["x"]),
                    ],
                },
                {"completed_by": 4, "was_cancelled": True, "result": []},
                {
                    "completed_by": 5,
                    "was_cancelled": True,
                    "result": [result("interpretable", "choices", choices=["Yes"])],
                },
            ],
            "predictions": [],
        }
    ]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks, indent=1))
    at = "2026-11-23T07:00:00Z"
    assert list(read_ratings(path)) == [
        Rating("7", "ada@example.org", "interpretable", "yes", seconds=15.0, at=at, reason="so"),
        Rating("7", "ada@example.org", "attributable", "4", seconds=15.0, at=at, reason="so"),
        Rating("7", "user 4", FLAG, "skipped"),
        Rating("7", "user 5", FLAG, "skipped"),
    ]
    tasks[0]["annotations"][0]["result"][0]["value"]["choices"] = ["Perhaps"]  # type: ignore[index]
    path.write_text(json.dumps(tasks))
    with pytest.raises(
        FormatError, match=r"export\.json:1: \[0\]: field 'value': question 'interpretable' has yes, no"
    ):
        list(read_ratings(path))
    path.write_text('[{"data": {}, "annotations": [{"result": 3}]}]')
    with pytest.raises(FormatError, match=r"export\.json:1: \[0\]: field 'annotations\[0\]\.result' should be a list"):
        list(read_ratings(path))


def test_the_configuration_has_a_choice_for_every_value(tmp_path: Path) -> None:
    hostile = Rating("i", "a", 'q"><script>', "a & b\x00<")
    text = "\n".join(convert_ratings([*RATINGS, *LEVELS, hostile], "label-studio-config"))
    root = ET.fromstring(text)
    choices = {one.get("name"): [c.get("value") for c in one.findall("Choice")] for one in root.iter("Choices")}
    assert choices["interpretable"] == ["yes", "no"]
    assert choices["attributable"] == ["yes", "no"]
    assert choices["support"][:3] == ["full", "partial", "none"]
    assert choices['q"><script>'] == ["a & b\ufffd<"]
    assert choices[FLAG] == ["missing"]
    hidden = next(one for one in root.iter("View") if one.get("whenTagName"))
    assert [one.get("name") for one in hidden.iter("Text")] == ["sources"]


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8).filter(str.strip)
anything = st.builds(
    Rating,
    item=names,
    annotator=names,
    question=st.sampled_from(["attributable", "informative", "own"]),
    value=st.sampled_from(["yes", "no"]),
    answer=st.sampled_from(["q/1", "q/2"]),
    sentence=st.none() | st.just(0),
    seconds=st.none() | st.floats(0, 1e6),
    at=st.none() | names,
    phase=st.sampled_from([one for one in PHASES if one not in ("training", "gold")]),
    system=st.just("") | names,
    evidence=st.lists(st.builds(Citation, names) | st.just(Citation("p", 1, 2)), max_size=2).map(tuple),
    reason=st.text(st.characters(codec="utf-8"), max_size=8),
    revised=st.booleans(),
    source_seen=st.booleans(),
)
lists = st.lists(anything, min_size=1, max_size=6, unique_by=lambda one: one.key).map(
    lambda ratings: [one for one in ratings if (one.answer, one.sentence, one.system) == _first(ratings, one.item)]
)


def _first(ratings: list[Rating], item: str) -> tuple[str | None, int | None, str]:
    one = next(one for one in ratings if one.item == item)
    return one.answer, one.sentence, one.system


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lists)
def test_any_ratings_survive_their_file_and_label_studio(tmp_path: Path, ratings: list[Rating]) -> None:
    path = tmp_path / "ratings.jsonl"
    write_atomic(path, write_ratings(ratings))
    assert list(read_ratings(path)) == ratings
    again = list(read_ratings(converted(tmp_path, ratings, "label-studio")))
    assert sorted(again, key=repr) == sorted(ratings, key=repr)


# --- autojudge-annotate ----------------------------------------------------------------------------------------------


def test_autojudge_gets_levels_of_support_and_gives_them_back(tmp_path: Path) -> None:
    notes = Notes()
    path = converted(tmp_path, RATINGS + LEVELS, "autojudge", notes)
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [row["rating"] for row in rows] == ["Perfect", "Bad", "Mostly Good"]
    assert rows[0]["spans"] == [{"start": 4, "end": 8, "text": "text"}]
    assert rows[0]["citation"]["sentence"] == {"text": "One.", "citations": ["p1", "p2"]}
    assert notes.total() == len(RATINGS)
    again = list(read_ratings(path))
    assert [one.item for one in again] == ["c|q/1|s|0|p1", "c|q/1|s|0|p2", "c|q/1|s|0|p2"]

    def content(one: Rating) -> tuple[object, ...]:
        return one.annotator, one.question, one.value, one.answer, one.sentence, one.citation, one.evidence, one.reason

    assert list(map(content, again)) == list(map(content, LEVELS))


def test_autojudge_gets_no_training_gold_audits_or_flagged_ratings(tmp_path: Path) -> None:
    notes = Notes()
    others = [replace(LEVELS[0], annotator=phase, phase=phase) for phase in PHASES if phase != "study"]
    flagged = [replace(LEVELS[0], annotator="eve"), Rating("q/1#0/p1", "eve", FLAG, "missing", "q/1", 0, "p1")]
    path = converted(tmp_path, [LEVELS[0], *others, *flagged], "autojudge", notes)
    assert [one.annotator for one in read_ratings(path)] == ["ada"]
    assert notes["ratings of flagged items or of other phases than the study, left out"] == 5
    assert notes.total() == 6


def test_annotations_of_autojudge_are_read(tmp_path: Path) -> None:
    # The three records of its buildOutputRecords: a report, a document, a citation
    report_row = {"team_id": "t", "run_id": "r", "topic_id": "9", "sentences": [], "documents": {}}
    base = {"dataset": "d", "request_id": "9", "topic_id": "9", "username": "ada", "comment": "c", "spans": []}
    cited = {"report": report_row, "sentence_idx": 1, "sentence": {"text": "x"}, "docid": "p", "document": None}
    rows = [
        base | {"run_id": "r", "team_id": "t", "rating": "Mostly Good", "report": report_row},
        base | {"docid": "p", "rating": "Bad", "document": {"id": "p"}},
        base
        | {"rating": "So-so", "report_spans": [], "citation": cited, "spans": [{"start": 2, "end": 4, "text": "?"}]},
        base | {"rating": "Not rated", "report_spans": [], "citation": cited | {"docid": None}},
        base | {"rating": "Bad", "report_spans": [], "citation": cited | {"docid": None}},
    ]
    path = tmp_path / "a.jsonl"
    write_atomic(path, map(dumps, rows))
    assert list(read_ratings(path)) == [
        Rating("r|9|r", "ada", "rating", "Mostly Good", "9", system="r", reason="c"),
        Rating(
            "c|9|r|1|p", "ada", "support", "partial", "9", 1, "p", system="r", evidence=(Citation("p"),), reason="c"
        ),
        Rating("c|9|r|1", "ada", "rating", "Bad", "9", 1, system="r", reason="c"),
    ]
    write_atomic(path, [dumps(base | {"rating": "Great"})])
    with pytest.raises(FormatError, match=r"a\.jsonl:1: field 'rating' should be one of"):
        list(read_ratings(path))


# --- the AIS paper's CSV ---------------------------------------------------------------------------------------------


def test_the_ais_csv_has_the_released_columns_and_majorities(tmp_path: Path) -> None:
    notes = Notes()
    path = converted(tmp_path, RATINGS + LEVELS, "ais-csv", notes)
    lines = path.read_text("utf-8").splitlines()
    assert lines[0] == ",".join(HEADER)
    assert lines[1] == 'q/1,p1,NA,s,One. Two.,1,1,0,"Yes, I understand it.","Yes, fully attributable.",3,2'
    # One of two says that it is clear: a tie, written as no; two annotators did not flag it.
    assert lines[2] == 'q/2,p1,NA,t,"It ""is"" so, he said.",0,0,0,"No, the response is unclear.",,1,-1'
    assert notes == {
        "ratings of sentences, citations or other questions, left out": 3,
        "ties, written as no": 1,
        "answers not rated by five annotators, as `autoais ais-report` assumes: use `autoais agreement`": 2,
    }
    models = report(read_csv(path))["models"]
    assert [model["ais"]["value"] for model in models] == [1.0, None]


def test_flagged_answers_and_likert_values_in_the_ais_csv(tmp_path: Path) -> None:
    ratings = [
        *(Rating("q/1", who, FLAG, "malformed") for who in "ab"),
        Rating("q/1", "c", "attributable", "5"),
        *(Rating("q/2", who, "attributable", value) for who, value in zip("abc", "543", strict=True)),
    ]
    for likert, row in (
        (4, '1,1,0,,"Yes, fully attributable.",-1,2'),
        (5, '1,0,0,,"No, not fully attributable.",-1,2'),
    ):
        lines = list(convert_ratings(ratings, "ais-csv", answers=answers_file(tmp_path), likert=likert))
        assert lines[1].endswith("0,0,1,,,-1,-1")
        assert lines[2].endswith(row)
    assert set(LIKERT) == set("12345")


# --- answers with labels ---------------------------------------------------------------------------------------------


def test_the_consensus_becomes_labels_in_any_format(tmp_path: Path) -> None:
    one, _ = formats.read(converted(tmp_path, LEVELS[:2], "answers"))
    assert [c.support for c in one.sentences[0].citations] == [Support.FULL, Support.NONE]
    sentences = [Rating("x", "a", "informative", "yes", "q/1", 0), Rating("y", "a", "informative", "no", "q/1", 1)]
    row = json.loads(converted(tmp_path, sentences, "hagrid").read_text("utf-8").splitlines()[0])
    assert [s["informative"] for s in row["answers"][0]["sentences"]] == [1, 0]
    assert row["answers"][0]["informative"] == 1


def test_what_gives_no_label_is_told_and_the_labels_are_counted(tmp_path: Path, autoais: Command) -> None:
    ratings, answers, out = tmp_path / "r.jsonl", answers_file(tmp_path), tmp_path / "out"
    alone = [Rating("q/1#0/p1", who, "attributable", "yes", "q/1", 0, "p1") for who in "ab"]
    whole = [Rating("q/2", who, "attributable", value) for who, value in (("a", "yes"), ("b", "no"))]
    write_atomic(ratings, write_ratings([*alone, *whole, Rating("q/1", "a", "mood", "good")]))
    done = autoais("ratings", ratings, out, "--to", "answers", "--answers", answers)
    assert (done.returncode, done.stderr.splitlines()) == (
        0,
        [
            "0 labels written",
            "2 ratings left out, because citations have no label for 'attributable'",
            "1 tie, without a label",
            "1 rating left out, because answers have no label for 'mood'",
        ],
    )
    write_atomic(ratings, write_ratings([*whole[:1], *LEVELS[:2]]))
    assert autoais("ratings", ratings, out, "--to", "answers", "--answers", answers).stderr == "3 labels written\n"
    done = autoais("ratings", ratings, out, "--to", "hagrid", "--answers", answers)
    assert done.stderr.splitlines()[:2] == ["1 label written", "2 levels of support, left out, as hagrid has none"]


def test_fewer_than_five_annotators_are_told_where_the_csv_is_read(tmp_path: Path, autoais: Command) -> None:
    five = [Rating("q/1", who, "attributable", "yes", system="s") for who in "abcde"]
    for count, warned in ((5, False), (3, True)):
        path = converted(tmp_path, five[:count], "ais-csv")
        done = autoais("ais-report", path)
        assert (done.returncode, "at most 3 annotators agree on an item" in done.stderr) == (0, warned)


def test_the_command_converts_and_says_what_is_lost(tmp_path: Path, autoais: Command) -> None:
    ratings, answers, out = tmp_path / "r.jsonl", answers_file(tmp_path), tmp_path / "out"
    write_atomic(ratings, write_ratings(RATINGS + LEVELS))
    done = autoais("ratings", ratings, out, "--to", "autojudge", "--answers", answers)
    assert (done.returncode, "10 ratings other than full" in done.stderr) == (0, True)
    assert autoais("ratings", out, tmp_path / "again.jsonl", "--to", "ratings").returncode == 0
    assert len(list(read_ratings(tmp_path / "again.jsonl"))) == 3
    one_line_error(autoais("ratings", ratings, out, "--to", "nope"), "ratings cannot be converted to 'nope'")
    one_line_error(autoais("ratings", ratings, out, "--to", "hagrid"), "hagrid needs the rated answers too")
    one_line_error(autoais("ratings", ratings, ratings, "--to", "ratings"), "would be overwritten")
    assert autoais("validate", ratings).returncode == 0
    assert "person per line" not in autoais("schema", "ratings").stdout
    other = tmp_path / "other.jsonl"
    write_atomic(other, write_answers(ANSWERS[1:]))
    for to in ("label-studio", "autojudge", "ais-csv", "answers"):
        one_line_error(
            autoais("ratings", ratings, out, "--to", to, "--answers", other), "'q/1' has ratings, but is not"
        )


def test_what_is_not_cited_cannot_be_exported(tmp_path: Path) -> None:
    wrong = Rating("x", "a", "support", "full", "q/1", 1, "p1")
    for to in ("label-studio", "autojudge", "answers"):
        with pytest.raises(UserError, match="sentence 1 does not cite 'p1'"):
            list(convert_ratings([wrong], to, answers=answers_file(tmp_path)))


def test_ratings_are_not_joined_to_answers_that_have_places_for_ids(tmp_path: Path) -> None:
    """In another order of the rows, the labels would be those of other answers."""
    unnamed = tmp_path / "h.jsonl"
    rows = [json.loads(line) for line in formats.write(ANSWERS, "hagrid")]
    for row in rows:
        del row["answers"][0]["id"]
    write_atomic(unnamed, map(dumps, rows))
    ragas = tmp_path / "ragas.jsonl"
    write_atomic(ragas, formats.write(ANSWERS, "ragas"))
    for path in (unnamed, ragas):
        with pytest.raises(UserError, match="answers without ids, which ratings cannot name"):
            list(convert_ratings(RATINGS, "answers", answers=path))
    named = tmp_path / "named.jsonl"
    write_atomic(named, reversed(list(formats.write(ANSWERS, "hagrid"))))
    given = {
        one["id"]: one.get("attributable")
        for one in map(json.loads, convert_ratings(RATINGS, "answers", answers=named))
    }
    assert given == {"q/1": True, "q/2": None}


def test_a_tie_is_in_the_answers_with_the_consensus(tmp_path: Path) -> None:
    first, second = map(json.loads, convert_ratings(RATINGS, "answers", answers=answers_file(tmp_path)))
    assert "ties" not in first
    assert second["ties"] == [{"sentence": None, "citation": None}]


def test_the_log_of_presses_is_no_file_of_ratings(tmp_path: Path) -> None:
    path = tmp_path / "presses.jsonl"
    row = {"press": "1", "kind": "verdict", "annotator": "ada", "item": "q", "question": "attributable", "value": "yes"}
    write_atomic(path, [dumps(row)])
    with pytest.raises(FormatError, match="this is the log of presses; use"):
        list(read_ratings(path))
