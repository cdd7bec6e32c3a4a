"""The scheme `words`: people mark the words of a passage that answer; the export is gold for `evaluate-spans`."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("itsdangerous")
pytest.importorskip("jinja2")
pytest.importorskip("python_multipart")
pytest.importorskip("sqlalchemy")

import autoais
from rag.annotate import create_study
from rag.annotate.items import Item, Source
from rag.annotate.settings import Settings
from rag.annotate.study import Study
from rag.annotate.types import Entry, Evidence
from rag.base.errors import FormatError, PressError, UsageError
from tests.conftest import Command
from tests.rag.annotate.made import given, press
from tests.rag.annotate.web_study import ANSWER, BRIDGE, PASSAGE, Clock, Person

WORDS = Settings(scheme="words", annotators=3, evidence="off")
OTHER = replace(PASSAGE, id="q1@p2", passage="p2", sources=(Source("p2", "Lund sold the tickets."),))


def make(folder: Path, *items: Item, **options: object) -> Study:
    study = create_study(folder / "study", items=items or (PASSAGE, OTHER), settings=WORDS, clock=Clock(), **options)  # type: ignore[arg-type]
    for name in ("ada", "bob", "eve"):
        study.invite(name)
    return study


def mark(study: Study, person: str, *texts: str) -> None:
    """Mark texts in the person's passage, or answer that there are none."""
    work = given(study, person)
    (source,) = work.item.sources
    evidence = [Evidence(source.id, source.text.index(text), source.text.index(text) + len(text)) for text in texts]
    value = "words" if evidence else "none"
    study.verdict(person, work.item.id, Entry("words", value, press=press(), evidence=evidence))


def test_the_words_that_most_people_marked_are_gold_spans(tmp_path: Path) -> None:
    study = make(tmp_path)
    for person, texts in (("ada", ["opened in 1931"]), ("bob", ["bridge opened in 1931."]), ("eve", ["\U0001f600 A"])):
        for _ in range(2):
            passage = given(study, person).item.passage
            mark(study, person, *[text for text in texts if passage == "p1"])
    manifest = study.export(tmp_path / "out")
    study.close()
    (row,) = [json.loads(line) for line in (tmp_path / "out/spans.jsonl").read_text("utf-8").splitlines()]
    assert (row["id"], row["question"]) == ("q1", PASSAGE.query)
    assert {entry["id"]: entry["text"] for entry in row["passages"]} == {"p1": BRIDGE, "p2": "Lund sold the tickets."}
    assert {key: [BRIDGE[start:end] for start, end in spans] for key, spans in row["spans"].items()} == {
        "p1": ["opened in 1931"],
        "p2": [],
    }
    # Of the pairs' words, 6 of 10 are shared: "opened in 1931." by ada and bob, counted from both sides.
    assert manifest["words"]["passages"] == 2
    assert manifest["words"]["f1"]["value"] == pytest.approx(2 * 3 / (3 + 4 + 3 + 2 + 4 + 2), abs=1e-6)
    assert -1 < manifest["words"]["alpha"]["value"] < 1
    assert manifest["ties"] == 0
    assert "answers.jsonl" not in manifest["files"]


def test_the_export_scores_what_a_system_cites(tmp_path: Path) -> None:
    study = make(tmp_path, PASSAGE)
    for person in ("ada", "bob", "eve"):
        mark(study, person, "opened in 1931.")
    study.export(tmp_path / "out")
    study.close()
    start = BRIDGE.index("in 1931.")
    (tmp_path / "predicted.jsonl").write_text(json.dumps({"id": "q1", "spans": {"p1": [[start, start + 8]]}}))
    report = autoais.evaluate_spans(tmp_path / "predicted.jsonl", tmp_path / "out/spans.jsonl")
    micro = report["words"]["micro"]
    assert (micro["precision"]["value"], micro["recall"]["value"]) == (1.0, pytest.approx(2 / 3))


def test_marks_and_the_answer_have_to_fit(tmp_path: Path) -> None:
    study = make(tmp_path)
    work = given(study, "ada")
    with pytest.raises(PressError, match="no words are marked"):
        study.verdict("ada", work.item.id, Entry("words", "words", press=press()))
    with pytest.raises(PressError, match="words are marked, but the answer is that there are none"):
        study.verdict("ada", work.item.id, Entry("words", "none", press=press(), evidence=[Evidence("p1", 0, 3)]))
    with pytest.raises(PressError, match="is not in the sources of the item"):
        study.verdict("ada", work.item.id, Entry("words", "words", press=press(), evidence=[Evidence("p1", 0, 9_999)]))
    assert (work.item.text, work.item.query) == ("", PASSAGE.query)
    study.close()


def test_every_passage_of_an_answer_or_question_becomes_an_item(rag: Command, tmp_path: Path) -> None:
    rows = [
        {"id": "1", "question": "Where?", "passages": [{"id": "a", "text": "Here."}, {"id": "b", "text": "There."}]},
        {"id": "2", "question": "Why?", "abstained": True, "passages": [{"id": "a", "text": "Here."}]},
    ]
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    made = rag("annotate", "init", tmp_path / "study", "--answers", path, "--scheme", "words", "--annotators", "1")
    assert made.stdout.splitlines()[0] == "3 items: to judge", made.stderr
    ids = [json.loads(line)["id"] for line in (tmp_path / "study/items.jsonl").read_text("utf-8").splitlines()]
    assert ids == ["1@a", "1@b", "2@a"]


def test_an_item_that_is_no_passage_is_refused_with_what_to_add(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="about one answer; scheme 'words' asks about one passage: add 'passage'"):
        make(tmp_path, ANSWER)
    with pytest.raises(FormatError, match="'sources' has 2 sources, where the passage 'p1' stands alone"):
        make(tmp_path, replace(PASSAGE, sources=ANSWER.sources))
    with pytest.raises(FormatError, match="'passage' names 'x', which is not among the sources"):
        make(tmp_path, replace(PASSAGE, passage="x"))
    with pytest.raises(UsageError, match="a judge cannot choose passages"):
        make(tmp_path, judge="lexical")


def test_passages_of_other_questions_are_attention_checks(tmp_path: Path) -> None:
    items = [
        replace(PASSAGE, id=f"{n}@p", answer=str(n), query=f"Which {n}?", group=str(n), passage=f"p{n}",
                sources=(Source(f"p{n}", f"Passage {n}."),))
        for n in range(4)
    ]  # fmt: skip
    study = make(tmp_path, *items, attention=1)
    rows = [json.loads(line) for line in (tmp_path / "study/gold.jsonl").read_text("utf-8").splitlines()]
    study.close()
    assert rows[0]["expected"] == {"words": "none"}
    assert rows[0]["passage"] == rows[0]["sources"][0]["id"]


def test_without_javascript_sentences_are_ticked(tmp_path: Path) -> None:
    study = make(tmp_path, PASSAGE)
    ada = Person(study, "kim")
    page = ada.page()
    assert page.css_first(".answer") is None
    boxes = [box.attributes["value"] for box in page.css("input[name=evidence]")]
    assert boxes[:2] == ["0:32:p1", "33:62:p1"]
    assert ada.press("words").status_code == 409
    assert ada.press("words", evidence=str(boxes[1])).status_code == 303
    assert ada.page().css_first("#press") is None
    study.close()
