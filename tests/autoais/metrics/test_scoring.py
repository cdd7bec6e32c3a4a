import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import autoais
from autoais import formats, score
from autoais.base.answers import from_row, read_answers
from autoais.base.errors import FormatError, UserError
from autoais.base.io.jsonl import write_atomic
from autoais.base.markers.grammar import parse
from autoais.base.terminal import show_report
from autoais.base.types import Attribution, Judgement, Question, Span, Verdict
from autoais.formats.convert import count_losses
from autoais.judges.lexical import LexicalJudge
from autoais.metrics.human import HumanSummary
from autoais.metrics.intervals import clopper_pearson
from autoais.metrics.judged import judge_answers
from autoais.metrics.scoring import Measures, Scoring, Summary, choose_metrics, model_of, names_model, score_answers
from tests.conftest import Command, one_line_error
from tests.judges import OneByOne

ASKED = "What is the capital of Poland?"
POLAND = {"id": "p", "rank": 2, "title": "Warsaw", "text": "Warsaw is the capital of Poland.", "score": 1.0}
RIVER = {"id": "r", "rank": 1, "title": "Vistula", "text": "The Vistula flows north.", "score": 2.0}


def row(identifier: str, *sentences: tuple[str, list[str]], **fields: object) -> dict[str, Any]:
    return {
        "id": identifier,
        "question": ASKED,
        "sentences": [{"text": text, "citations": [{"passage": p} for p in cites]} for text, cites in sentences],
        "passages": [POLAND, RIVER],
        "abstained": not sentences,
        "answers": ["Warsaw"],
        "gold": ["p"],
        **fields,
    }


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


def report(path: Path, questions: list[Question] | None = None) -> dict[str, Any]:
    summary = Summary()
    for item in judge_answers(read_answers(path), LexicalJudge(), questions):
        summary.add(item)
    return summary.report("lexical")


YES = ("The capital of Poland is Warsaw.", ["p"])
WRONG = ("The capital of Poland is Warsaw.", ["r"])
UNCITED: tuple[str, list[str]] = ("The capital of Poland is Warsaw.", [])


def test_every_question_counts_and_each_outcome_is_told_apart(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl",
        row("1", YES, short_answer="Warsaw"),
        row("2", WRONG, short_answer="Old Warsaw", unresolved=[{"marker": "[9]", "reason": "out-of-range"}]),
        row("3", YES, UNCITED),
        row("4"),
        row("5", ("It is so.", ["p"])),
    )
    questions = [Question(str(n), ASKED, ("Warsaw",), ("p",)) for n in range(1, 7)]
    result = report(path, questions)
    metrics = result["metrics"]
    assert (result["questions"], result["answered"]) == (6, 4)
    # 1 yes; 2, 3, 4 and the never answered 6 no; 5 has no content word: undecided
    assert metrics["autoais"] | {"interval95": None} == {
        "value": 0.2, "floor": 1 / 6, "n": 5, "total": 6, "undecided": 1, "interval95": None,
    }  # fmt: skip
    assert (metrics["sentences"]["n"], metrics["sentences"]["value"]) == (4, 0.5)
    assert metrics["em"]["value"] == pytest.approx(1 / 6)
    assert metrics["f1"]["value"] == pytest.approx((1 + 2 / 3) / 6)
    assert result["unresolved_markers"] == 1
    # an uncited sentence's words do not count for recall, a wrongly cited sentence's do
    assert metrics["answer_recall"]["value"] == pytest.approx(3 / 6)
    assert metrics["Success@1"]["value"] == 0
    assert metrics["answer_hit@1"]["value"] == 0
    assert metrics["Success@5"] == {"value": None, "reason": "no answer lists 5 passages"}


def test_without_short_answers_or_references_the_value_is_absent_with_a_reason(tmp_path: Path) -> None:
    metrics = report(write(tmp_path / "a.jsonl", row("1", YES)))["metrics"]
    assert metrics["em"] == {"value": None, "reason": "the system gives no short answers"}
    metrics = report(write(tmp_path / "b.jsonl", row("1", YES, answers=None, gold=None)))["metrics"]
    assert metrics["answer_recall"]["reason"] == "no question has reference answers"
    assert metrics["Success@1"] == {"value": None, "reason": "no question has gold passages"}


def test_recall_is_the_share_of_the_gold_passages(tmp_path: Path) -> None:
    metrics = report(write(tmp_path / "a.jsonl", row("1", YES, gold=["p", "r", "x", "y"])))["metrics"]
    assert (metrics["R@1"]["value"], metrics["Success@1"]["value"]) == (0.25, 1.0)


def test_batches_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.jsonl", *(row(str(n), YES, WRONG) for n in range(5)))
    whole = report(path)
    monkeypatch.setattr("autoais.metrics.judged._BATCH", 2)
    assert report(path) == whole


def test_an_answer_to_no_question_of_the_benchmark_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="answer '1': neither its id nor its question 'What is"):
        report(write(tmp_path / "a.jsonl", row("1", YES)), [Question("2", "Who else?")])
    with pytest.raises(UserError, match="the benchmark's question of that id is 'Who else"):
        report(tmp_path / "a.jsonl", [Question("1", "Who else?")])


def test_an_answer_with_an_unknown_id_belongs_to_the_question_with_its_text(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", row("x", YES), row("y", WRONG))
    benchmark = [Question("1", f" {ASKED}"), Question("2", ASKED), Question("3", "Who else?")]
    items = list(judge_answers(read_answers(path), LexicalJudge(), benchmark))
    found = [(item.question.id, item.answer.id if item.answer else None) for item in items]
    assert found == [("1", "x"), ("2", "y"), ("3", None)]
    with pytest.raises(UserError, match=r"question '1' .* has two answers"):
        list(judge_answers(read_answers(path), LexicalJudge(), benchmark[:1]))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"passages": "none"}, "field 'passages' should be a list"),
        ({"passages": [1]}, "field 'passages' should be a list of objects"),
        ({"abstained": "no"}, "field 'abstained' should be true or false"),
        ({"abstained": True}, "'abstained' is true, yet there are sentences"),
        ({"passages": [POLAND, POLAND]}, "a passage id occurs twice"),
        ({"answer": "The moon is cheese. The capital of Poland is Warsaw."}, "'answer' should be the row's sentences"),
        ({"answer": "The capital of Poland is Warsaw. And more."}, "'answer' should be the row's sentences"),
        ({"answer": "In 12. The capital of Poland is Warsaw."}, "'answer' should be the row's sentences"),
        ({"answer": "1998 The capital of Poland is Warsaw."}, "'answer' should be the row's sentences"),
        ({"answer": "The capital of Poland is Warsaw. 12"}, "'answer' should be the row's sentences"),
        ({"short_answer": 3}, "field 'short_answer' should be a string or null"),
    ],
)
def test_broken_answers_name_line_and_field(tmp_path: Path, fields: dict[str, Any], says: str) -> None:
    path = write(tmp_path / "a.jsonl", row("1", YES), row("2", YES, **fields))
    with pytest.raises(FormatError, match=r"a\.jsonl:2: ") as caught:
        list(read_answers(path))
    assert says in str(caught.value)


def test_structure_between_the_sentences_of_an_answer_is_no_claim(tmp_path: Path) -> None:
    text = YES[0]
    written = [
        f"# {text}",
        f"- {text}\n- {text}",
        f"1. {text}\n\n22) {text}",
        f"> {text}",
        f"| {text} | {text} |\n| --- |",
    ]
    rows = [row(str(n), *[YES] * one.count(text), answer=one) for n, one in enumerate(written)]
    answers = list(read_answers(write(tmp_path / "a.jsonl", *rows)))
    assert [answer.plain for answer in answers] == written


PARTS = [
    "A is B",
    "3",
    "12. ",
    "1) ",
    "- ",
    "# ",
    "> ",
    "| ",
    " |",
    "\n",
    ". ",
    "? ",
    " [1]",
    "[2]",
    "`x[1]`",
    "Dr. C",
    "é",
    "。",
]


@given(st.lists(st.sampled_from(PARTS), max_size=12).map("".join))
def test_whatever_the_grammar_parses_is_an_answer_that_can_be_read(text: str) -> None:
    parsed = parse(text, 2)
    said = [{"text": parsed.text[one.start : one.end]} for one in parsed.sentences]
    answer = from_row({"id": "1", "question": "?", "answer": parsed.text, "sentences": said}, "here")
    assert answer.plain == parsed.text


def test_the_command_writes_judgements_and_a_report_that_says_how_it_came_about(
    tmp_path: Path, autoais: Command
) -> None:
    path = write(tmp_path / "a.jsonl", row("1", YES), row("2", WRONG))
    out, saved = tmp_path / "j.jsonl", tmp_path / "report.json"
    result = autoais("score", path, "--judge", "lexical", "--out", out, "--report", saved, "--json")
    assert result.returncode == 0, result.stderr
    judgements = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(j["id"], j["sentence"], j["verdict"]) for j in judgements] == [
        ("1", 0, "attributable"),
        ("2", 0, "not_attributable"),
    ]
    assert all(j["judge"] == LexicalJudge().name for j in judgements)
    printed = json.loads(result.stdout)
    assert printed == json.loads(saved.read_text())
    assert printed["judge"] == LexicalJudge().name
    assert printed["provenance"]["inputs"]["answers"]["sha256"]
    assert printed["provenance"]["command"].startswith("autoais score ")
    table = autoais("score", path)
    assert "0.500" in table.stdout
    assert "NaN" not in table.stdout


def test_the_least_a_row_must_have_is_a_question_with_an_id(tmp_path: Path) -> None:
    result = report(
        write(tmp_path / "a.jsonl", {"id": 7, "question": "?"}, {"id": "8", "question": "?", "sentences": []})
    )
    assert (result["questions"], result["metrics"]["autoais"]["floor"]) == (2, 0.0)


def test_an_output_never_overwrites_an_input(tmp_path: Path, autoais: Command, rag: Command) -> None:
    path = write(tmp_path / "a.jsonl", row("1", YES))
    before = path.read_text()
    one_line_error(autoais("score", path, "--out", path), "would be overwritten")
    one_line_error(autoais("score", path, "--report", tmp_path / "." / "a.jsonl"), "would be overwritten")
    one_line_error(rag("search", "--questions", path, "--run", path), "would be overwritten")
    assert path.read_text() == before


def test_score_refuses_bad_files_in_one_line(tmp_path: Path, autoais: Command) -> None:
    one_line_error(autoais("score", tmp_path / "gone.jsonl"), "gone.jsonl", "cannot be read")
    broken = tmp_path / "b.jsonl"
    broken.write_text('{"id": NaN}\n')
    out = tmp_path / "j.jsonl"
    out.write_text("old\n")
    one_line_error(autoais("score", broken, "--out", out), "b.jsonl:1", "NaN is not a JSON number")
    assert out.read_text() == "old\n"
    sound = write(tmp_path / "sound.jsonl", row("1", YES))
    one_line_error(autoais("score", sound, "--judge", "nope"), "no judge called 'nope'; there are: ", "lexical")
    one_line_error(autoais("score", broken, "--metrics", "nope"), "no citation metrics called 'nope'", "alce, hagrid")


def test_citation_metrics_by_hand(tmp_path: Path) -> None:
    both = ("The capital of Poland is Warsaw.", ["p", "r"])
    path = write(
        tmp_path / "a.jsonl",
        row("1", both, UNCITED, unresolved=[{"marker": "[9]", "reason": "out-of-range"}]),
        row("2", YES),
        row("3"),
    )
    summary = Summary(Measures(("alce", "hagrid", "liu", "trec")))
    items = list(judge_answers(read_answers(path), LexicalJudge()))
    for item in items:
        summary.add(item)
    metrics = summary.report("lexical")["metrics"]
    values = {name: metrics[name]["value"] for name in metrics}
    # 1: recall 1 of 2, precision p of p, r and the marker; 2: all; 3: nothing said, 0
    assert values["citation_recall"] == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert values["citation_precision"] == pytest.approx((1 / 3 + 1 + 0) / 3)
    assert values["citation_f1"] == pytest.approx(2 * 0.5 * (4 / 9) / (0.5 + 4 / 9))
    assert (values["hagrid"], values["hagrid_sentences"]) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert (values["autoais"], values["sentences"]) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert (values["liu_recall"], values["liu_precision"]) == (pytest.approx(2 / 3), 0.5)
    assert (values["liu_recall_averaged"], metrics["liu_recall_averaged"]["total"]) == (0.75, 2)
    assert (values["trec_recall"], values["trec_precision"]) == (pytest.approx(2 / 3), 1.0)
    for name in metrics:
        if name.startswith(("citation_", "hagrid", "liu_", "trec_")):
            assert {"n", "undecided", "floor", "interval95"} <= metrics[name].keys()
    rows = [record for item in items for record in item.records("lexical")]
    assert [r["alone"] for r in rows] == [["attributable", "not_attributable"], [], ["attributable"], []]
    assert (rows[-1]["sentence"], rows[-1]["verdict"], rows[-1]["reason"]) == (
        None, "not_attributable", "nothing was said",
    )  # fmt: skip


def citation_metrics(path: Path) -> tuple[dict[str, Any], int]:
    """The citation metrics, and the number of answers left out of them."""
    run, _ = score_answers(
        path, LexicalJudge(), Scoring(formats.detect(path), measures=Measures(("alce", "hagrid", "liu", "trec")))
    )
    report = run.report()
    assert report["metrics"]["sentences"]["value"] is not None
    found = {k: v for k, v in report["metrics"].items() if k.startswith(("citation_", "hagrid", "liu_", "trec_"))}
    return found, report.get("without_citations", 0)


CONTEXTS = ["Warsaw is the capital of Poland.", "The Vistula flows north."]
SILENT = {"user_input": "capital?", "retrieved_contexts": CONTEXTS, "response": "Warsaw is the capital of Poland."}
CITING = SILENT | {"response": "Warsaw is the capital of Poland [2]."}


def test_contexts_that_no_answer_cites_are_no_citations(tmp_path: Path) -> None:
    path = write(tmp_path / "ragas.jsonl", SILENT, SILENT | {"response": "No."}, SILENT | {"retrieved_contexts": []})
    kept = tmp_path / "kept.jsonl"
    write_atomic(kept, formats.write(formats.read(path), "answers"))
    for file in (path, kept):
        found, left_out = citation_metrics(file)
        assert left_out == 2
        assert {"citation_recall", "hagrid", "liu_precision", "trec_recall"} <= found.keys()
        for metric in found.values():
            assert (metric["value"], metric["reason"][:38]) == (None, "no answer has citations of its own: th")
    out = tmp_path / "out.jsonl"
    score_answers(path, LexicalJudge(), Scoring("ragas"), out)
    first = json.loads(out.read_text().splitlines()[0])
    assert first["verdict"] == "attributable"
    assert not any(name.startswith(("citation", "hagrid")) for name in first["scores"])


RIGHT = SILENT | {"response": "Warsaw is the capital of Poland [1]."}


def test_answers_that_cite_nothing_beside_others_that_do_lower_recall(tmp_path: Path) -> None:
    found, left_out = citation_metrics(write(tmp_path / "both.jsonl", RIGHT, SILENT, RIGHT, SILENT))
    assert left_out == 0
    assert found["citation_recall"]["value"] == found["citation_recall_strict"]["value"] == 0.5
    assert found["citation_recall"]["n"] == 4


def test_answers_that_are_said_to_be_judged_against_everything_are_left_out_and_counted(tmp_path: Path) -> None:
    whole = formats.read(write(tmp_path / "silent.jsonl", SILENT))
    cited = formats.read(write(tmp_path / "one.jsonl", CITING))
    both = [replace(answer, id=str(number)) for number, answer in enumerate((*whole, *cited))]
    write_atomic(tmp_path / "both.jsonl", formats.write(both, "answers"))
    found, left_out = citation_metrics(tmp_path / "both.jsonl")
    assert left_out == 1
    assert (found, 0) == citation_metrics(tmp_path / "one.jsonl")
    assert found["citation_recall"]["value"] == 0


def test_what_people_found_not_worth_verifying_leaves_the_metrics_of_liu(tmp_path: Path) -> None:
    """Liu et al. 2023: recall is over verification-worthy statements; citations of others count for nothing either."""
    path = write(tmp_path / "a.jsonl", rows := row("1", YES, UNCITED, WRONG))
    before = autoais.score(path, judge="lexical", metrics=["alce", "liu"]).metrics
    assert before["liu_recall"].value == pytest.approx(1 / 3)
    for sentence, worthy in zip(rows["sentences"], (True, False, False), strict=True):
        sentence["worthy"] = worthy
    after = autoais.score(write(path, rows), judge="lexical", metrics=["alce", "liu"]).metrics
    assert (after["liu_recall"].value, after["liu_recall"].n) == (1.0, 1)
    assert (after["liu_precision"].value, after["liu_precision"].n) == (1.0, 1)
    assert after["citation_recall"].value == before["citation_recall"].value


def test_a_conversion_tells_that_contexts_become_citations(tmp_path: Path) -> None:
    path = write(tmp_path / "ragas.jsonl", SILENT)
    for target, lost in (("hagrid", 1), ("trulens", 0), ("answers", 0)):
        losses: Counter[str] = Counter()
        list(count_losses(formats.read(path), formats.FORMATS[target], losses))
        assert losses["no citations of its own"] == lost


def test_metrics_are_chosen_by_name() -> None:
    assert choose_metrics("alce,hagrid") == ("alce", "hagrid")
    assert choose_metrics("none") == ()
    assert len(choose_metrics("all")) == 4
    with pytest.raises(UserError, match="no citation metrics called 'ragas'; there are: alce, hagrid, liu, trec, all"):
        choose_metrics("alce,ragas")


def test_questions_and_instructions_are_not_judged_and_reported(tmp_path: Path) -> None:
    asks, tells = ("Is it Warsaw?", ["p"]), ("See also the article on the Vistula.", ["r"])
    path = write(tmp_path / "a.jsonl", row("1", YES, asks, tells), row("2", asks))
    result = report(path)
    assert result["not_applicable"] == 3
    assert result["metrics"]["sentences"]["total"] == 1
    assert result["metrics"]["autoais"]["value"] == 0.5  # nothing but a question: nothing was said
    rows = [r for item in judge_answers(read_answers(path), LexicalJudge()) for r in item.records("lexical")]
    assert [r["verdict"] for r in rows] == ["attributable"] + ["not_applicable"] * 3


def test_a_judge_that_rejects_quotes_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quote = str(POLAND["text"])
    path = write(tmp_path / "a.jsonl", row("1", (quote, ["p"]), YES), row("2", (quote, ["r"]), (quote, [])))
    assert report(path)["quoted"] == {"sentences": 1, "rejected": 0}
    summary, judge = Summary(), OneByOne()
    judge.says = Judgement(Verdict.NOT_ATTRIBUTABLE, 0.1)
    for item in judge_answers(read_answers(path), judge):
        summary.add(item)
    found = summary.report("no")
    assert found["quoted"] == {"sentences": 1, "rejected": 1}
    show_report({**found, "mode": "default"})
    told = " ".join(capsys.readouterr().out.split())
    assert "1 of 1 sentence with the very words of a cited passage judged not attributable" in told


def test_the_question_reaches_the_judge_and_spans_name_their_passage(tmp_path: Path) -> None:
    judge = OneByOne()
    judge.says = Judgement(Verdict.ATTRIBUTABLE, 1.0, None, (Span(0, 0, 6),), ((4, 11),))
    path = write(tmp_path / "a.jsonl", row("1", ("The capital is Warsaw.", ["r", "p"])))
    (item,) = judge_answers(read_answers(path), judge)
    assert {one.question for one in judge.asked} == {ASKED}
    (record,) = item.records("pointing@1")
    assert record["evidence"] == [{"passage": "r", "start": 0, "end": 6}]
    assert record["unsupported"] == [[4, 11]]


def test_a_bracketed_year_is_no_wrong_citation(tmp_path: Path) -> None:
    year = {"marker": "[1998]", "reason": "year-like", "sentence": 0}
    summary = Summary(Measures(("alce", "liu")))
    for item in judge_answers(
        read_answers(write(tmp_path / "a.jsonl", row("1", YES, unresolved=[year]))), LexicalJudge()
    ):
        summary.add(item)
    report = summary.report("lexical")
    assert report["unresolved_markers"] == 0
    assert report["metrics"]["citation_precision"]["value"] == report["metrics"]["liu_precision"]["value"] == 1.0


def test_a_marker_that_points_nowhere_spoils_its_sentence_for_hagrid_and_counts_once(tmp_path: Path) -> None:
    bad = {"marker": "[9]", "reason": "out-of-range", "sentence": 0}
    summary = Summary(Measures(("alce", "hagrid", "liu")))
    for item in judge_answers(
        read_answers(write(tmp_path / "a.jsonl", row("1", YES, unresolved=[bad]))), LexicalJudge()
    ):
        summary.add(item)
    values = {name: one["value"] for name, one in summary.report("lexical")["metrics"].items()}
    assert (values["autoais"], values["hagrid"], values["hagrid_sentences"]) == (1.0, 0.0, 0.0)
    assert values["citation_precision"] == values["liu_precision"] == 0.5


def test_agreement_that_chance_alone_would_give_is_absent_with_a_reason(tmp_path: Path) -> None:
    fields = {"sentences": [{"text": YES[0], "citations": [{"passage": one} for one in YES[1]], "attributable": True}]}
    human = HumanSummary()
    for item in judge_answers(read_answers(write(tmp_path / "a.jsonl", row("1", YES) | fields)), LexicalJudge()):
        human.add(item)
    report = human.report()
    assert report is not None
    agreement = report["agreement"]["sentences"]
    assert (agreement["n"], agreement["cohen_kappa"]) == (1, None)
    assert agreement["reason"] == "labels and verdicts are all the same"


def test_thresholds_that_differ_have_names_that_differ() -> None:
    assert LexicalJudge(0.3333333).name != LexicalJudge(0.3333334).name


def test_strict_alce_asks_the_bare_sentence_and_the_document_as_the_script_writes_it(tmp_path: Path) -> None:
    asked: list[Attribution] = []

    class Listening(LexicalJudge):
        def decide(self, attributions: Sequence[Attribution]) -> list[Judgement]:
            asked.extend(attributions)
            return super().decide(attributions)

    line = row("1", YES, output="Warsaw is the capital [1].")
    (item,) = judge_answers(read_answers(write(tmp_path / "a.jsonl", line)), Listening(), strict=True)
    assert item.strict is not None
    assert {pair for pair in asked if not pair.question} == {
        Attribution("Warsaw is the capital.", ("Title: Warsaw\nWarsaw is the capital of Poland.",))
    }


def test_nuggets_count_by_their_phrases_and_by_the_judge(tmp_path: Path) -> None:
    nuggets = [["Warsaw", "Warszawa"], ["capital of Poland, Warsaw"]]
    path = write(
        tmp_path / "a.jsonl",
        row("1", YES, nuggets=nuggets),  # the second nugget has other words in between: only the judge finds it
        row("2", nuggets=nuggets),
        row("3", YES),  # a question without nuggets does not count
    )
    assert [answer.nuggets for answer in read_answers(path)] == [*[tuple(map(tuple, nuggets))] * 2, ()]
    metrics = report(path)["metrics"]
    values = {name: metrics[name]["value"] for name in metrics if "nugget" in name}
    assert values == {
        "nugget_recall": 0.25, "all_nuggets": 0.0, "nugget_recall_judged": 0.5, "all_nuggets_judged": 0.5,
    }  # fmt: skip
    assert metrics["all_nuggets"]["n"] == 2
    alone = write(tmp_path / "b.jsonl", row("1", YES))
    asked = [Question("1", ASKED, nuggets=(("Warsaw",),)), Question("9", ASKED, nuggets=(("Vistula",),))]
    assert report(alone, asked)["metrics"]["nugget_recall"]["value"] == 0.5  # no answer to "9"


def test_a_nugget_that_the_judge_leaves_undecided_is_no_miss(tmp_path: Path) -> None:
    # Of "it is so" the judge has nothing to count.
    some, none = [["Warsaw"], ["it is so"], ["Vistula"]], [["it is so"]]
    path = write(tmp_path / "a.jsonl", row("1", YES, nuggets=some), row("2", YES, nuggets=none))
    result = report(path)["metrics"]["nugget_recall_judged"] | {"interval95": None}
    assert result == {
        "value": 0.5, "floor": pytest.approx(1 / 6), "n": 1, "total": 2, "undecided": 1, "interval95": None,
    }  # fmt: skip
    undecided = report(write(tmp_path / "b.jsonl", row("2", YES, nuggets=none)))["metrics"]["nugget_recall_judged"]
    assert (undecided["value"], undecided["reason"]) == (None, "nothing was decided")


def test_without_nuggets_there_is_no_nugget_recall(tmp_path: Path) -> None:
    assert not [name for name in report(write(tmp_path / "a.jsonl", row("1", YES)))["metrics"] if "nugget" in name]


def test_a_judge_that_is_a_part_of_the_system_is_told(tmp_path: Path, autoais: Command) -> None:
    system = f"bm25.v1@10>repair.v1({LexicalJudge().name}@5)"
    path = write(tmp_path / "a.jsonl", row("1", YES, system=system), row("2", YES, system="bm25.v1@10"))
    done = autoais("score", path, "--judge", "lexical", "--report", tmp_path / "report.json")
    assert "warning: the system of 1 answer has this judge as a part" in " ".join(done.stdout.split())
    assert json.loads((tmp_path / "report.json").read_text())["same_judge"] == 1
    other = autoais("score", path, "--judge", "lexical", "--format", "answers", "--judge-option", "threshold=0.7")
    assert "warning" in other.stdout  # the same model
    write(path, row("1", YES, system="bm25.v1@10"))
    assert "warning" not in autoais("score", path, "--judge", "lexical").stdout


@pytest.mark.parametrize(
    ("system", "model", "named"),
    [
        ("bm25.v1@10>repair.v1(minilm@95bee50e/256/auto.v1@5)", "minilm", True),
        ("cosine:minilm@95bee50e/128+0.1*first@40", "minilm", True),
        ("max@100(1.5*bm25.v1,minilm-shipped.v1/minilm@f3972edf/126/flat)@16+quotes.v2", "minilm", True),
        ("minilm-shipped.v1+quotes.v2", "minilm", False),
        ("openai:gpt-4,hagrid.v1", "gpt-4", True),
        ("openai:gpt-4o,hagrid.v1", "gpt-4", False),
        ("openai:gpt-4.1,hagrid.v1", "gpt-4", False),
        ("my-o-system", "o", False),
        (None, "None", False),
        (["minilm"], "minilm", False),
    ],
)
def test_a_system_names_a_model_as_a_whole(system: object, model: str, named: bool) -> None:
    assert names_model(system, model) is named


@pytest.mark.parametrize(
    ("judge", "model"),
    [
        ("minilm@95bee50e/256/auto.v1", "minilm"),
        ("google/t5_xxl_true_nli_mixture@main/512/aqa.v1", "google/t5_xxl_true_nli_mixture@main"),
        ("lexical@2/0.7/statement.v1", "lexical@2"),
        ("llm:gpt-5@api.openai.com/8000+10/attrscore.v1", "gpt-5"),
        ("mine", "mine"),
    ],
)
def test_the_model_of_a_judge_is_how_systems_name_it(judge: str, model: str) -> None:
    assert model_of(judge) == model


def test_the_scores_of_the_questions_add_up_to_every_metric(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl",
        row("1", YES, WRONG, short_answer="Warsaw", nuggets=[["Warsaw"], ["Krakow", "Vistula"]]),
        row("2", WRONG, UNCITED, short_answer="Old Warsaw", unresolved=[{"marker": "[9]", "reason": "out-of-range"}]),
        row("3", ("It is Warsaw, in Poland, on the Vistula.", ["p", "r"]), YES, gold=["p", "x"]),
        row("4"),
        row("5", ("What is it?", []), YES, answers=[], gold=[]),
        row("6", ("It is so.", ["r"]), answers=["Warsaw"]),
    )
    summary, sums = Summary(Measures(choose_metrics("all"))), dict[str, list[float]]()
    for item in judge_answers(read_answers(path), LexicalJudge(), strict=True):
        for name, pair in summary.add(item).items():
            if name not in ("question", "passages", "short_answer"):
                listed = sums.setdefault(name, [0.0, 0.0])
                listed[:] = listed[0] + pair[0], listed[1] + pair[1]
    metrics = summary.report("lexical")["metrics"]
    f1s = {name for name in metrics if "_f1" in name}
    assert f1s == {"citation_f1", "liu_f1", "liu_f1_averaged"}
    compared = 0
    for name, metric in metrics.items():
        if metric["value"] is not None and name not in f1s:
            gained, items = sums[name]
            assert gained / items == pytest.approx(metric.get("floor", metric["value"])), name
            compared += 1
    assert compared > 15
    assert metrics["sentences"]["undecided"] == 1


def test_trec_citation_metrics_are_pooled_and_averaged_over_topics(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", row("1", YES, YES, WRONG, UNCITED), row("2", YES), row("3", UNCITED), row("4"))
    summary = Summary(Measures(("trec",)))
    for item in judge_answers(read_answers(path), LexicalJudge()):
        summary.add(item)
    metrics = summary.report("lexical")["metrics"]
    assert (metrics["trec_precision"]["value"], metrics["trec_precision"]["n"]) == (0.75, 4)
    assert (metrics["trec_recall"]["value"], metrics["trec_recall"]["n"]) == (0.5, 6)
    # A topic without citations has precision 0, and one without an answer has both.
    assert metrics["trec_precision_averaged"]["value"] == pytest.approx((2 / 3 + 1 + 0 + 0) / 4)
    assert metrics["trec_recall_averaged"]["value"] == pytest.approx((2 / 4 + 1 + 0 + 0) / 4)
    assert metrics["trec_recall_averaged"]["n"] == 4
    assert metrics["trec_recall_averaged"]["levels"] == metrics["trec_recall"]["levels"]


def test_answers_to_one_question_of_hagrid_are_one_unit(tmp_path: Path) -> None:
    def interval(*ids: object) -> Any:  # noqa: ANN401
        rows = [
            row(str(n), YES if n % 4 else WRONG, question=f"What is {n}?", **{"query_id": query} if query else {})
            for n, query in enumerate(ids)
        ]
        return report(write(tmp_path / "a.jsonl", *rows))["metrics"]["autoais"]

    apart, together = interval(*[None] * 12), interval(*(n // 4 + 1 for n in range(12)))
    assert apart["value"] == together["value"] == 0.75
    assert apart["interval95"] == pytest.approx([0.4281, 0.9451], abs=5e-5)  # Clopper and Pearson's for 9 of 12
    assert together["interval95"] != apart["interval95"]
    assert interval(*range(1, 13)) == apart
    assert interval(*"abcdefghijkl") == apart
    # What is no id tells nothing of the question.
    for no_id in (["x"], {"x": 1}, " ", True, 1.5):
        assert interval(*[no_id] * 12) == apart, no_id


def test_answers_of_several_systems_to_one_question_are_one_unit(tmp_path: Path) -> None:
    def interval(*asked: str) -> Any:  # noqa: ANN401
        rows = [row(str(n), YES if n % 4 else WRONG, question=text) for n, text in enumerate(asked)]
        return report(write(tmp_path / "a.jsonl", *rows))["metrics"]["autoais"]["interval95"]

    apart, together = (interval(*(f"What is {n // of}?" for n in range(12))) for of in (1, 4))
    assert together != apart
    assert interval(*(f" What  is {n // 4}?\n" if n % 2 else f"What is {n // 4}?" for n in range(12))) == together


def test_the_order_of_labelled_answers_does_not_matter(tmp_path: Path) -> None:
    rows = [
        row(f"{q}/{n}", YES, query_id=q, attributable=q > 2, fluency="Agree" if q > 3 else "Neutral")
        for q in range(10)
        for n in range(4)
    ]
    rows[0]["passages"] = [*rows[0]["passages"], POLAND | {"id": "q"}]

    def human(*given: dict[str, Any]) -> Any:  # noqa: ANN401
        summary = HumanSummary()
        for item in judge_answers(read_answers(write(tmp_path / "a.jsonl", *given)), LexicalJudge()):
            summary.add(item)
        return summary.report()

    found = human(*rows)
    assert (found["data"]["questions"], found["data"]["answers"], found["data"]["quotes_per_question"]) == (10, 40, 2.1)
    assert found["labels"]["attributable"]["interval95"] == pytest.approx(clopper_pearson(7, 10))
    assert human(*(rows[n * 7 % 40] for n in range(40))) == found


def test_answers_to_one_question_are_one_question(tmp_path: Path) -> None:
    rows = [row(f"a{n}", YES, query_id=7) for n in range(3)]
    found = report(write(tmp_path / "a.jsonl", *rows, row("b", YES, query_id=8)))
    assert (found["questions"], found["answers"], found["answered"]) == (2, 4, 4)
    assert "answers" not in report(write(tmp_path / "b.jsonl", row("a", YES), row("b", YES)))


def test_all_citations_count_in_trecs_metrics_if_asked(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", row("a", ("The capital of Poland is Warsaw.", ["p", "r"])))
    first = autoais.score(path, judge="lexical", metrics=["trec"]).record["metrics"]["trec_precision"]
    every = autoais.score(path, judge="lexical", metrics=["trec"], trec_all=True).record["metrics"]["trec_precision"]
    assert (first["value"], every["value"]) == (1.0, 0.5)
    assert (first.get("citations"), every["citations"]) == (None, "all")


def test_questions_with_the_same_text_are_all_answered(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("question,answer,attribution\nwho won,Ann,p\n")
    corpus = tmp_path / "c.jsonl"
    corpus.write_text('{"docid": "p", "title": "Race", "text": "Ann won, and Bob won."}\n')
    questions = [Question("1", "who won", ("Ann",)), Question("2", "who won", ("Bob",))]
    found = autoais.score(tmp_path / "p.csv", judge="lexical", questions=questions, corpus=[corpus]).record
    assert (found["questions"], found["answered"], found["metrics"]["em"]["value"]) == (2, 2, 0.5)
    assert found["different_questions"] == 1


def test_the_header_says_how_many_questions_are_different(tmp_path: Path, autoais: Command) -> None:
    claims = [{"claim": f"{q} is small", "evidence": [f"{q} is small."], "label": 1, "question": q} for q in "xxy"]
    printed = autoais("score", write(tmp_path / "labels.jsonl", *claims), "--judge", "lexical").stdout
    assert printed.startswith("3 questions (2 different), 3 answered, judge lexical")


def test_all_intervals_are_over_questions() -> None:
    """Answers to one question that are alike tell as much as one; every metric's interval must say so."""

    def widths(questions: int) -> dict[str, float]:
        rows = [
            row(str(n), *[YES, WRONG, UNCITED][: 1 + n % 3], short_answer="Warsaw" if n % 2 else "Old Warsaw")
            | {"question": f"Which city is capital {n % questions} of Poland?", "output": "See the sentences."}
            for n in range(36)
        ]
        found = autoais.score(rows, judge="lexical", metrics=["alce", "hagrid", "liu", "trec"]).metrics
        return {name: one.interval95[1] - one.interval95[0] for name, one in found.items() if one.interval95}

    many, few = widths(36), widths(6)
    kinds = ("autoais", "em", "f1", "citation_", "hagrid_", "liu_", "trec_")
    assert all(any(name.startswith(kind) for name in many) for kind in kinds), sorted(many)
    assert {name for name in many if many[name] > 0 and few[name] < 1.2 * many[name]} == set()


def test_right_refusals_are_counted_beside_rates_over_every_question(tmp_path: Path, autoais: Command) -> None:
    """Spec I1, I3: a refusal is a no; who never refuses must not look better without a word."""
    refused = [
        row("2", answers=[], question="No answer?", answerable=False),
        row("3", question="Has it?"),
        row("4", question="Failed?", answerable=False, failed=True),
    ]
    path = write(tmp_path / "a.jsonl", row("1", YES), *refused)
    found = score(path, judge="lexical").to_dict()
    assert found["metrics"]["autoais"]["floor"] == found["metrics"]["hagrid"]["floor"] == 0.25
    refusals = found["refusals"]
    assert (refusals["all"], refusals["without_an_answer"]) == (2, 1)
    answered = refusals["attributed_answers"]
    assert (answered["value"], answered["n"], answered["total"]) == (1.0, 1, 1)
    shown = autoais("score", path, "--judge", "lexical").stdout
    assert "1 of 2 refusals right, as the question has no answer; every question counts" in shown
    assert "(attributed_answers), autoais is 1.000 [0.025, 1.000], n 1" in shown


def test_the_benchmark_says_which_refusals_are_right(tmp_path: Path, autoais: Command) -> None:
    path = write(tmp_path / "a.jsonl", row("1", question="No answer?"))
    asked = {"id": "1", "question": "No answer?"}
    for answerable in (True, False):
        questions = write(tmp_path / "q.jsonl", asked | {"answerable": answerable})
        found = score(path, questions=questions, judge="lexical").to_dict()
        assert ("refusals" in found) is not answerable
    said = autoais("score", path, "--questions", questions, "--judge", "lexical").stdout
    assert "1 of 1 refusal right" in said
    assert "autoais has no value, because no question was answered" in said
    bad = write(tmp_path / "q.jsonl", asked | {"answerable": "no"})
    one_line_error(autoais("score", path, "--questions", bad), "q.jsonl:1: field 'answerable' should be true or false")
