"""The two estimates of the reader: that an answer is right, and that the passages answer the question."""

import json
from pathlib import Path
from typing import Any

import pytest

from rag.answer.generators.confidence import SIGNALS, Confidence, find_unmentioned
from rag.answer.generators.passage_reader import PassageReader
from rag.base.errors import RagError
from rag.base.types import Hit, Passage, Question
from rag.retrieval.reader import SHIPPED
from tests.rag.answer.generators.test_passage_reader import Scripted


def row(right: float = 0.0, answerable: float = 0.0, threshold: float | None = 0.4) -> dict[str, Any]:
    """A file whose estimates say the same whatever the signals are."""
    zeros = dict.fromkeys(SIGNALS, 0.0)
    return {
        "right": {"weights": zeros, "bias": right},
        "answerable": {"weights": zeros, "bias": answerable},
        "threshold": threshold,
    }


def reader(folder: Path, content: dict[str, Any], min_confidence: float | None = None) -> PassageReader:
    (folder / "confidence.json").write_text(json.dumps(content))
    scripted = Scripted(["dear"])
    scripted.folder = folder
    return PassageReader(scripted, min_confidence=min_confidence)


HITS = [Hit(Passage("p", "Shed", "Wood is dear."), 1.0)]
ASKED = Question("q", "Is wood dear?")


def test_what_ships_can_be_read_and_relevance_raises_both() -> None:
    shipped = Confidence.read(SHIPPED / "confidence.json")
    low, high = (dict.fromkeys(SIGNALS, 0.5) | {"relevance": relevance} for relevance in (-5.0, 5.0))
    for estimate in (shipped.right, shipped.answerable):
        assert 0 < estimate.of(low) < estimate.of(high) < 1
    assert 0 < shipped.threshold < 1


def test_by_itself_the_reader_abstains_where_nothing_seems_to_answer(tmp_path: Path) -> None:
    unsure = reader(tmp_path, row(right=-5.0, answerable=2.0)).generate(ASKED, HITS)
    assert (unsure.text, round(unsure.confidence or 1, 3)) == ("Wood is dear.", 0.007)
    refused = reader(tmp_path, row(right=5.0, answerable=-2.0)).generate(ASKED, HITS)
    assert refused.abstained
    assert refused.reason == "the retrieved passages do not seem to answer it (answerable 0.12, minimum 0.4)"


def test_a_minimum_confidence_decides_alone(tmp_path: Path) -> None:
    assert not reader(tmp_path, row(right=0.1, answerable=-9.0), 0.5).generate(ASKED, HITS).abstained
    assert not reader(tmp_path, row(right=-9.0, answerable=-9.0), 0.0).generate(ASKED, HITS).abstained
    refused = reader(tmp_path, row(right=-0.1, answerable=9.0), 0.5).generate(ASKED, HITS)
    assert refused.reason == "the retrieved passages do not seem to answer it (confidence 0.48, minimum 0.5)"


def test_the_reason_shows_by_how_much_it_is_too_little(tmp_path: Path) -> None:
    close = reader(tmp_path, row(answerable=-1.5, threshold=0.1834)).generate(ASKED, HITS)
    assert close.reason == "the retrieved passages do not seem to answer it (answerable 0.182, minimum 0.183)"
    whole = reader(tmp_path, row(right=9.0), 1.0).generate(ASKED, HITS)
    assert whole.reason == "the retrieved passages do not seem to answer it (confidence 0.9999, minimum 1.0)"


def test_a_file_for_other_signals_says_which_one_is_missing(tmp_path: Path) -> None:
    content = row()
    content["right"] = {"weights": {"relevance": 1.0, "agreement": 1.0, "keep": 1.0}, "bias": 0.0}
    with pytest.raises(RagError, match=r"confidence.json: .*no weight of unmentioned: fit it to the signals"):
        reader(tmp_path, content)


def test_a_name_that_no_passage_has_counts_and_is_told(tmp_path: Path) -> None:
    content = row(answerable=1.0)
    content["answerable"]["weights"] = {**content["answerable"]["weights"], "unmentioned": -3.0}
    made = reader(tmp_path, content)
    assert not made.generate(ASKED, HITS).abstained
    refused = made.generate(Question("q", "Is wood dear in Peru?"), HITS)
    told = "the retrieved passages do not seem to answer it (answerable 0.12, minimum 0.4); none has 'Peru'"
    assert refused.reason == told


def test_a_question_for_an_amount_is_not_answered_without_one(tmp_path: Path) -> None:
    def refusal(question: str, text: str, min_confidence: float | None = None) -> str | None:
        hits = [Hit(Passage("p", "Shed", text), 1.0)]
        return reader(tmp_path, row(), min_confidence).generate(Question("q", question), hits).reason

    price = "What is the price of dear wood?"
    assert refusal(price, "Wood is dear until 3 May at 10:30.") == "the passages that fit best have no amount of money"
    for text in (
        "Wood is dear: 20.",
        "Dear wood is free.",
        "Wood is dear, some dollars.",
        "Wood is dear, £3 until 3 May.",
    ):
        assert refusal(price, text) is None
    assert refusal(price, "Wood is dear.", 0.0) is None
    assert refusal("What will the dear wood cost?", "Wood is dear.") is not None
    others = ["Why is the price of wood dear?", "Is the price of wood dear?", "How long is wood dear?"]
    others += [
        "What is a dear fee?",
        "What lowers the price of dear wood?",
        "What does the cost of dear wood depend on?",
    ]
    for question in (*others, "We rent a dear mill. What is it?", "Who has the phone number of the dear mill?"):
        assert refusal(question, "Wood is dear.") is None
    phone = "What is the phone number of the dear mill?"
    assert refusal(phone, "The mill is dear until 10 pm.") == "the passages that fit best have no telephone number"
    assert refusal(phone, "The mill is dear: 555-0123.") is None


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("Does it sync with Feedly?", ["Feedly"]),
        ("Does it sync with Feedly or Inoreader in 2019?", ["Feedly", "Inoreader", "2019"]),
        ("Who lives in Sao Paulo and Zürich?", []),  # the accents do not matter
        ("Are the Germans there?", []),
        ("Is Germany's capital there?", []),
        ("What was in 1999?", []),
        ('Which of 2000 files, v2.2014 or 2,015 apply? I\'m lost: The end. Why? "No."', []),
        ("Who won the 2030 cup?", ["2030"]),
        ("What was there in May 2019?", ["May", "2019"]),
        ("Does it hold the 2000 files in 2048 bytes?", []),
        ("- What is it?\n\n1) What is it? Hello, What is NOT it? ¿Quién es?", []),
        ("Gibt es Öl über dem Ärmel ähnlich öfter noch heute?", ["Öl", "Ärmel"]),
        ("Does It Sync With Feedly", []),  # a title
        ("Who built the Eiffel Tower?", ["Eiffel", "Tower"]),
        ("Who painted the Mona Lisa?", ["Mona", "Lisa"]),
        ("Tower Bridge Opening Times", []),
        ("How do I open /home/Anna/x, $HOME and movie.AVI?", []),
        ("Feedly is gone", []),
        ("", []),
    ],
)
def test_names_and_years_that_no_text_has(question: str, missing: list[str]) -> None:
    texts = ["São Paulo and Zurich are cities; in 1999 they grew.", "Germany: German towns."]
    assert find_unmentioned(question, texts) == missing
    assert not find_unmentioned(question, [*texts, question])


def test_a_question_of_many_sentences_is_read_in_a_moment() -> None:
    assert find_unmentioned(". " * 100_000 + "Ab " * 100_000, []) == []


def test_the_name_says_when_the_reader_abstains(tmp_path: Path) -> None:
    assert reader(tmp_path, row()).name == "quotes.v10(scripted@16, answerable >= 0.4)"
    assert reader(tmp_path, row(), 0.2).name == "quotes.v10(scripted@16, confidence >= 0.2)"
    assert PassageReader(Scripted([])).name == "quotes.v10(scripted@16)"


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "{",
        json.dumps({"weights": {}, "bias": 0.0, "threshold": 0.1}),
        json.dumps(row(right=float("nan"))),
        json.dumps(row(threshold=float("inf"))),
        json.dumps(row(threshold=None)),
        json.dumps(row() | {"right": {"weights": {"relevance": 1.0}, "bias": 0.0}}),
    ],
)
def test_a_broken_file_is_one_line(tmp_path: Path, content: str) -> None:
    path = tmp_path / "confidence.json"
    path.write_text(content)
    with pytest.raises(RagError, match=r"confidence\.json: ") as fault:
        Confidence.read(path)
    assert "\n" not in str(fault.value)
