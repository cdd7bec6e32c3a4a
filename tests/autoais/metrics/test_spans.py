"""Predicted against gold spans: values by hand, what must not matter, and `autoais evaluate-spans` on files."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import autoais
from autoais import Citation, CitedAnswer, CitedSentence, Passage
from autoais.base.answers import write_answers
from autoais.base.errors import CitationError, FormatError, UsageError, UserError
from autoais.formats.spans import Spans, locate
from autoais.metrics.spans import MarkedText, Overlap, compare_spans, find_cited_spans, score_spans
from tests.conftest import Command, one_line_error

TEXTS = st.text(alphabet="ab .\n東京", max_size=30)


@st.composite
def texts_with_spans(draw: st.DrawFn, sets: int = 2) -> tuple[str, list[Spans]]:
    text = draw(TEXTS)
    offsets = st.integers(0, len(text))
    spans = st.lists(st.tuples(offsets, offsets).map(lambda pair: (min(pair), max(pair))), max_size=4)
    return text, [tuple(draw(spans)) for _ in range(sets)]


# --- values by hand -------------------------------------------------------------------------------------------------


def test_words_and_characters_of_a_text_by_hand() -> None:
    text = "the old mill closed in 1903"
    words, characters = compare_spans(text, ((4, 12),), ((8, 19),))  # "old mill" against "mill closed"
    assert words == Overlap(2, 2, 1)
    assert characters == Overlap(7, 10, 4)
    assert (words.precision, words.recall, words.f1) == (0.5, 0.5, 0.5)
    assert (characters.precision, characters.recall) == (4 / 7, 0.4)
    assert characters.f1 == pytest.approx(8 / 17)


def test_a_word_is_marked_once_a_span_holds_a_character_of_it() -> None:
    words, characters = compare_spans("closed in 1903.", ((3, 7),), ((10, 14),))
    assert (words, characters) == (Overlap(1, 1, 0), Overlap(3, 4, 0))
    assert compare_spans("closed in 1903.", ((14, 15),), ((10, 14),))[0] == Overlap(1, 1, 1)  # the point is of the word


def test_letters_without_blanks_are_words_of_their_own() -> None:
    assert compare_spans("東京は首都です", ((0, 2),), ((0, 5),))[0] == Overlap(2, 5, 2)


def test_micro_adds_the_words_and_the_macro_average_is_over_questions() -> None:
    scores = score_spans(
        [
            MarkedText("1", "a b c d", ((0, 3),), ((0, 7),)),  # 2 predicted, 4 gold, 2 both
            MarkedText("1", "e f g h", ((0, 7),), ()),  # 4 predicted: with the text above, P 2/6, R 2/4
            MarkedText("2", "i j", ((0, 3),), ((0, 3),)),  # all right
        ]
    )
    assert (scores.questions, scores.texts, scores.words.total) == (2, 3, Overlap(8, 6, 4))
    micro, macro = scores.words.micro, scores.words.per_question
    assert [micro[name].value for name in ("precision", "recall", "f1")] == [0.5, pytest.approx(4 / 6), 8 / 14]
    assert [macro[name].value for name in ("precision", "recall", "f1")] == [
        pytest.approx((2 / 6 + 1) / 2),
        0.75,
        pytest.approx((4 / 10 + 1) / 2),
    ]
    assert [mean.n for mean in (*micro.values(), *macro.values())] == [2] * 6
    for mean in (*micro.values(), *macro.values()):
        assert mean.interval95 is not None
        assert mean.value is not None
        assert mean.interval95[0] <= mean.value <= mean.interval95[1]


def test_questions_without_gold_are_right_if_nothing_is_predicted() -> None:
    silent, chatty = MarkedText("1", "a b", (), ()), MarkedText("2", "a b", ((0, 1),), ())
    missed, empty = MarkedText("3", "a b", (), ((0, 1),)), MarkedText("4", "", (), ())
    for marked, value in ((silent, 1.0), (chatty, 0.0), (missed, 0.0), (empty, 1.0)):
        scores = score_spans([marked]).words
        assert [mean.value for mean in scores.per_question.values()] == [value] * 3
    nothing = score_spans([silent, empty]).words
    assert [(mean.value, mean.n, mean.interval95) for mean in nothing.micro.values()] == [(None, 0, None)] * 3
    unanswered = score_spans([missed]).words.micro
    assert [unanswered[name].value for name in ("precision", "recall", "f1")] == [None, 0.0, 0.0]
    assert score_spans([]).words.per_question["f1"].value is None


def test_a_span_outside_its_text_is_refused() -> None:
    with pytest.raises(UsageError, match="question 'q': the gold span 1 to 9 lies outside its text of 3 characters"):
        MarkedText("q", "abc", (), ((1, 9),))


# --- what must not matter -------------------------------------------------------------------------------------------


@given(texts_with_spans())
def test_f1_is_symmetric_and_recall_is_the_other_precision(case: tuple[str, list[Spans]]) -> None:
    text, (a, b) = case
    for there, back in zip(compare_spans(text, a, b), compare_spans(text, b, a), strict=True):
        assert there.f1 == back.f1
        assert (there.precision, there.recall) == (back.recall, back.precision)
        assert 0 <= there.f1 <= 1
        total = there.precision + there.recall
        assert there.f1 == pytest.approx(2 * there.precision * there.recall / total if total else 0)


@given(texts_with_spans(1))
def test_identical_spans_score_one(case: tuple[str, list[Spans]]) -> None:
    text, (spans,) = case
    for overlap in compare_spans(text, spans, spans):
        assert (overlap.precision, overlap.recall, overlap.f1) == (1, 1, 1)


@given(texts_with_spans(), st.randoms())
def test_order_overlap_and_repeats_of_spans_do_not_matter(
    case: tuple[str, list[Spans]],
    chance: "Any",  # noqa: ANN401  (hypothesis's Random)
) -> None:
    text, (a, b) = case
    halves = [piece for start, end in a for piece in ((start, (start + end) // 2), ((start + end) // 2, end))]
    others = [*a, *halves, *((start, max(start, end - 1)) for start, end in a)]
    chance.shuffle(others)
    assert compare_spans(text, tuple(others), b) == compare_spans(text, a, b)


@given(texts_with_spans())
def test_white_space_at_the_ends_of_a_span_does_not_matter(case: tuple[str, list[Spans]]) -> None:
    text, (a, b) = case
    trimmed = []
    for start, end in a:
        piece = text[start:end]
        left = start + len(piece) - len(piece.lstrip())
        trimmed.append((left, max(left, end - len(piece) + len(piece.rstrip()))))
    assert compare_spans(text, tuple(trimmed), b) == compare_spans(text, a, b)


@given(st.lists(texts_with_spans(), min_size=1, max_size=6))
def test_texts_of_a_question_may_come_in_any_order(cases: Sequence[tuple[str, list[Spans]]]) -> None:
    marked = [MarkedText(str(number % 2), text, a, b) for number, (text, (a, b)) in enumerate(cases)]
    once, again = score_spans(marked).record(), score_spans(marked[::-1]).record()
    assert json.dumps(once).count("null") == json.dumps(again).count("null")
    assert once["words"]["micro"]["f1"]["value"] == again["words"]["micro"]["f1"]["value"]
    assert once["words"]["per_question"]["f1"]["value"] == pytest.approx(again["words"]["per_question"]["f1"]["value"])


# --- quotes and citations -------------------------------------------------------------------------------------------


def test_a_quote_is_located_as_it_is_or_but_for_space_case_and_marks() -> None:
    text = "| Kiln | 12 months |\nThe  Kiln closed\nin May."
    assert locate(text, "closed\nin May.") == (31, 45)
    assert locate(text, "the kiln closed in may.") == (21, 45)
    assert locate(text, "Kiln: 12 months") == (2, 18)
    assert locate(text, "closed in June") is None
    assert locate(text, " ") is locate("", "x") is None


@given(TEXTS, st.data())
def test_a_piece_of_a_text_is_located(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    piece = text[start : data.draw(st.integers(start, len(text)))]
    span = locate(text, piece)
    assert (span is None) == (not piece.strip())
    assert span is None or text[slice(*span)] == piece


def answer(*citations: Citation, identifier: str = "1") -> CitedAnswer:
    passages = {key: Passage(key, text=text) for key, text in (("p", "The mill closed in 1903."), ("x", "Rain fell."))}
    return CitedAnswer(identifier, "When?", (CitedSentence("In 1903.", citations),), passages)


def test_the_spans_of_an_answer_are_what_it_cites() -> None:
    cited = answer(Citation("p", 4, 8), Citation("p", quote="closed  in"), Citation("p", quote="opened"), Citation("x"))
    assert find_cited_spans(cited) == {"p": ((4, 8), (9, 18)), "x": ((0, 10),)}
    moved = answer(Citation("p", 4, 8, "mill"), Citation("p", 0, 3, "mill"))
    assert find_cited_spans(moved, {"p": "Old. The mill closed."}) == {"p": ((9, 13),)}
    with pytest.raises(CitationError, match="answer '1' cites characters 4 to 8 of 'p', which has 3"):
        find_cited_spans(answer(Citation("p", 4, 8)), {"p": "The"})


# --- files ----------------------------------------------------------------------------------------------------------

GOLD = [
    {
        "id": "1",
        "question": "When did the mill close?",
        "passages": [{"id": "p", "text": "The mill closed in 1903."}, {"id": "q", "text": "It stands."}],
        "spans": {"p": ["closed in 1903."]},
    },
    {"id": "2", "question": "Who?", "passages": [{"id": "r", "text": "Nobody knows."}], "spans": {}},
]


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_the_command_scores_spans_and_says_what_was_missing(tmp_path: Path, autoais: Command) -> None:
    gold = write(tmp_path / "gold.jsonl", GOLD)
    predictions = write(tmp_path / "spans.jsonl", [{"id": 1, "spans": {"p": [[4, 15]]}}, {"id": "3", "spans": {}}])
    result = autoais("evaluate-spans", predictions, gold, "--report", tmp_path / "report.json")
    assert result.returncode == 0
    assert "2 questions, 3 passages" in result.stdout
    assert "1 of 2 questions have no prediction: counted as without spans" in result.stdout
    assert "1 predictions are for other questions: left out" in result.stdout
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["words"]["micro"]["f1"]["value"] == 0.4  # "mill closed" against "closed in 1903."
    assert report["words"]["per_question"]["f1"]["value"] == 0.7  # of question 2, nothing is right
    assert report["provenance"]["command"].startswith("autoais evaluate-spans ")
    assert json.loads(autoais("evaluate-spans", predictions, gold, "--json").stdout)["words"] == report["words"]


def test_gold_is_a_prediction_too_and_answers_are_read_by_what_they_cite(tmp_path: Path) -> None:
    gold = write(tmp_path / "gold.jsonl", GOLD)
    perfect = autoais.evaluate_spans(gold, gold)
    assert [mean["value"] for mean in perfect["characters"]["micro"].values()] == [1, 1, 1]
    answers = tmp_path / "answers.jsonl"
    answers.write_text("".join(f"{line}\n" for line in write_answers([answer(Citation("p", 9, 24), Citation("x"))])))
    words = autoais.evaluate_spans(answers, gold)["words"]
    assert (words["predicted"], words["gold"], words["both"]) == (5, 3, 3)  # a passage without gold counts, too


def test_acl_verbatims_gold_is_read_as_it_is(tmp_path: Path) -> None:
    chunk = {"document_id": "P1", "chunk_number": 4, "title": "Mills", "chunk": "The mill closed\nin 1903."}
    row = {"query": "mill closure", "results": [chunk | {"gold_extraction": ["CLOSED in 1903."]}]}
    gold = write(tmp_path / "gold.jsonl", [row])
    predictions = write(tmp_path / "spans.jsonl", [{"id": "1", "spans": {"P1#4": [[9, 15]]}}])
    words = autoais.evaluate_spans(predictions, gold)["words"]
    assert (words["predicted"], words["gold"], words["both"]) == (1, 3, 1)
    (question,) = autoais.read_questions(gold)
    assert (question.id, question.text, question.gold, question.answerable) == ("1", "mill closure", ("P1#4",), True)
    twice = write(tmp_path / "twice.jsonl", [row | {"results": [chunk, chunk]}])
    with pytest.raises(FormatError, match=r"twice\.jsonl:1: field 'results': a chunk occurs twice"):
        autoais.evaluate_spans(predictions, twice)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"spans": {"p": [[0, 99]]}}, r":1: field 'spans': the span 0 to 99 lies outside the passage 'p' \(24 "),
        ({"spans": {"p": [[5, 2]]}}, r":1: field 'spans': the span 5 to 2 lies outside"),
        (
            {"spans": {"p": [[0, 1, 2]]}},
            r":1: field 'spans': a span of 'p' should be \[start, end\] or its text, found",
        ),
        ({"spans": {"p": [[0, True]]}}, r":1: field 'spans': a span of 'p' should be"),
        ({"spans": {"p": [0, 5]}}, r":1: field 'spans': a span of 'p' should be \[start, end\] or its text, found 0"),
        ({"spans": {"p": ["opened"]}}, r":1: field 'spans': 'opened' does not stand in the passage 'p'"),
        ({"spans": {"p": {}}}, r":1: field 'spans': 'p' should have a list, found an object"),
        ({"spans": {"z": [[0, 1]]}}, r":1: field 'spans': 'z' is none of the passages of the question"),
        ({"spans": []}, r":1: field 'spans' should be an object, found"),
        ({"id": None, "spans": {}}, r":1: field 'id' should be a string"),
    ],
)
def test_a_broken_row_is_one_line_with_its_place(row: dict[str, Any], message: str, tmp_path: Path) -> None:
    gold = write(tmp_path / "gold.jsonl", GOLD)
    broken = write(tmp_path / "broken.jsonl", [{"id": "1"} | row])
    with pytest.raises(FormatError, match=r"broken\.jsonl" + message):
        autoais.evaluate_spans(broken, gold)
    with pytest.raises(FormatError, match=r"broken\.jsonl" + message):
        autoais.evaluate_spans(gold, write(broken, [GOLD[0] | row]))


def test_files_that_do_not_fit_are_refused(tmp_path: Path, autoais: Command) -> None:
    gold = write(tmp_path / "gold.jsonl", GOLD)
    other = write(tmp_path / "other.jsonl", [{"id": "9", "spans": {}}])
    one_line_error(autoais("evaluate-spans", other, gold), "predicts for none of the 2 questions")
    one_line_error(autoais("evaluate-spans", write(other, []), gold), "other.jsonl: holds no records")
    one_line_error(autoais("evaluate-spans", gold, write(other, [])), "other.jsonl: holds no questions")
    one_line_error(autoais("evaluate-spans", gold, write(other, [GOLD[0], GOLD[0]])), "other.jsonl:2: id '1' occurs")
    one_line_error(autoais("evaluate-spans", gold, gold, "--report", gold), "would be overwritten")
    passages = [GOLD[0]["passages"][0]] * 2  # type: ignore[index]
    one_line_error(
        autoais("evaluate-spans", gold, write(other, [GOLD[0] | {"passages": passages}])), "the id 'p' occurs"
    )
    one_line_error(autoais("evaluate-spans", gold, write(other, [GOLD[0] | {"passages": ["p"]}])), "found a string")


def test_an_answer_that_cites_an_unknown_text_is_refused(tmp_path: Path) -> None:
    gold, answers = write(tmp_path / "gold.jsonl", GOLD), tmp_path / "answers.jsonl"
    unknown = CitedAnswer("1", "When?", (CitedSentence("In 1903.", (Citation("z"),)),), {"z": Passage("z")})
    answers.write_text("".join(f"{line}\n" for line in write_answers([unknown])))
    with pytest.raises(UserError, match="answer '1' cites 'z', whose text is in neither file"):
        autoais.evaluate_spans(answers, gold)
