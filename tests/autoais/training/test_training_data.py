"""The simulated pairs: what was changed is told, what was kept is kept, and no evaluation question is learnt from."""

import json
import random
from pathlib import Path

import pytest

from autoais.base.text.folding import questions_key
from autoais.metrics.short_answers import has_answer
from autoais.training.edits import BREAKING, PARAPHRASES, apply
from autoais.training.prepare import from_labels, minimal_pairs, read_excluded_questions, read_pages
from autoais.training.simulate import Example, Page, from_page, from_question

SENTENCES = [
    "In 1911, Marie Curie won the Nobel Prize in Chemistry (her second) at the Karolinska Institute in Stockholm.",
    "The bridge, which was designed by Gustave Eiffel, is not located in northern Portugal.",
    "On 12 May 1990, three ships left Lisbon before the storm reached Porto.",
    "The company also employed 2,500 people in Poland, and it opened 12 factories in Ukraine.",
    "Ada King (born 10 December 1815) was an English writer, known for notes on an engine.",
    "The Ninth Symphony was composed by Ludwig van Beethoven.",
]
CONTEXT = ["In 1903 Pierre Curie taught in Paris; 1,200 people came, which surprised the faculty, in August."]


@pytest.mark.parametrize("name", sorted(BREAKING))
def test_a_breaking_edit_tells_what_it_changed(name: str) -> None:
    applied = 0
    for seed in range(40):
        for sentence in SENTENCES:
            edited = BREAKING[name][1](sentence, random.Random(seed), CONTEXT)
            if edited is None:
                continue
            applied += 1
            assert edited.text != sentence
            assert edited.new_spans
            assert all(0 <= start < end <= len(edited.text) for start, end in edited.new_spans)
            kept, at = [], 0
            for start, end in sorted(edited.new_spans):
                kept.append(edited.text[at:start])
                at = end
            # What lies outside the change stood there before, in that order.
            rest = sentence
            for part in filter(str.strip, [*kept, edited.text[at:]]):
                _, found, rest = rest.partition(part.strip())
                assert found == part.strip(), (name, sentence, edited)
    assert applied, name


@pytest.mark.parametrize(
    ("name", "sentence", "expected"),
    [
        ("date_order", SENTENCES[2], "On May 12, 1990, three ships left Lisbon before the storm reached Porto."),
        ("move_opening", "In 1911, she won it.", "She won it in 1911."),
        ("passive", SENTENCES[5], "Ludwig van Beethoven composed the Ninth Symphony."),
        ("number_form", "It had 2,500 members.", "It had 2500 members."),
        ("drop_parenthesis", "Radium (an element) glows.", "Radium glows."),
        ("drop_filler", "It also glows at night.", "It glows at night."),
    ],
)
def test_a_keeping_edit_keeps_the_facts(name: str, sentence: str, expected: str) -> None:
    edited = PARAPHRASES[name][1](sentence, random.Random(0), [])
    assert edited is not None
    assert edited.text == expected


def test_the_same_seed_makes_the_same_edit() -> None:
    twice = [apply(BREAKING, SENTENCES[0], random.Random(5), CONTEXT) for _ in range(2)]
    assert twice[0] == twice[1] is not None


def pages() -> list[Page]:
    return [Page("Bridge", " ".join(SENTENCES)), *(Page(f"Page {i}", CONTEXT[0]) for i in range(3))]


def test_pairs_from_a_page_are_what_their_label_says() -> None:
    made: list[Example] = []
    for seed in range(300):
        made += from_page(pages()[0], pages()[1:], random.Random(seed))
    assert {example.label for example in made} == {0, 1}
    kinds = {example.source.removeprefix("page/") for example in made}
    assert {"same", "number", "name", "left_out", "elsewhere", "two"} <= kinds
    for example in made:
        if example.source == "page/same":
            assert example.label == 1
        if example.label == 0 and example.unsupported:
            assert all(0 <= start < end <= len(example.claim) for start, end in example.unsupported)


def test_a_wrong_answer_is_never_an_accepted_one() -> None:
    holding = [Page("Curie", "Marie Curie won in 1911, after Henri Becquerel.")]
    for seed in range(50):
        wrong = ["Marie Curie", "Madame Curie", "Henri Becquerel", "Curie"]
        for example in from_question("who won", ["Marie Curie", "Curie"], holding, [], wrong, random.Random(seed)):
            if example.source == "qa/wrong":
                assert not has_answer(example.claim.split("' is '")[-1], ["Curie"])
                assert example.label == 0


def test_evaluation_questions_are_known_however_they_are_written(tmp_path: Path) -> None:
    file = tmp_path / "dev.jsonl"
    file.write_text(
        json.dumps({"question": "Who wrote The Iliad?"}) + "\n" + json.dumps({"query": "ｗｈｏ ran"}) + "\n"
    )
    assert questions_key("who wrote iliad") in read_excluded_questions([file])
    assert questions_key("Who ran?") in read_excluded_questions([file])


def test_labels_that_are_the_wrong_way_round_are_turned(tmp_path: Path) -> None:
    file = tmp_path / "labels.jsonl"
    rows = [{"dataset": x, "id": 1, "claim": "A claim.", "evidence": ["E."], "label": 1} for x in ("a", "b", "c")]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = list(from_labels(file, ["a", "b"], inverted=["b"]))
    assert [(example.source, example.label) for example in found] == [("a", 1), ("b", 0)]
    assert [example.unsupported for example in found] == [(), None]


def test_labels_of_a_study_are_learnt_from_without_the_questions_left_out(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    rows = [
        {
            "id": f"{question}/{label}",
            "question": question,
            "sentences": [
                {"text": "So it is.", "citations": [{"passage": "p"}], "attributable": label},
                {"text": "Nobody said.", "citations": [{"passage": "p"}]},
            ],
            "passages": [{"id": "p", "text": "Text."}],
        }
        for question in ("Who?", "Why?")
        for label in (True, False)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = list(from_labels(file, ["answers"], exclude={questions_key("WHY")}))
    assert [(one.source, one.claim, one.evidence, one.label) for one in found] == [
        ("answers", "So it is.", ("Text.",), 1), ("answers", "So it is.", ("Text.",), 0),
    ]  # fmt: skip


def test_pages_are_drawn_from_the_whole_corpus(tmp_path: Path) -> None:
    file = tmp_path / "corpus.jsonl"
    file.write_text("".join(json.dumps({"title": f"T{i}", "text": f"Text {i}."}) + "\n" for i in range(4000)))
    drawn = [int(page.text.split()[1][:-1]) for page, _ in read_pages(file, 0.1, random.Random(1))]
    assert 300 < len(drawn) < 500
    assert min(drawn) < 200
    assert max(drawn) > 3800


def test_minimal_pairs_differ_in_one_fact_and_the_halves_share_no_passage(tmp_path: Path) -> None:
    file = tmp_path / "corpus.jsonl"
    rows = [
        {"title": f"T{i}", "text": f"In {1800 + i}, three ships, which were old, left Lisbon {i}."} for i in range(90)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    halves = [list(minimal_pairs(file, 10, half)) for half in (0, 1)]
    assert halves == [list(minimal_pairs(file, 10, half)) for half in (0, 1)]
    for half in halves:
        assert [pair.attributable for pair in half] == [True, False] * 10
        for kept, changed in zip(half[::2], half[1::2], strict=True):
            assert kept.attribution.evidence == changed.attribution.evidence
            assert changed.attribution.claim != kept.attribution.claim
    read = [{pair.attribution.evidence for pair in half} for half in halves]
    assert not read[0] & read[1]
