"""`import autoais`: what a person does from Python."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autoais
from autoais import Attribution, CitedAnswer, Judgement, Passage, Verdict
from autoais.base.types import Citation, CitedSentence
from autoais.formats.human_ratings.ratings import Rating
from autoais.metrics.runs import run_of_answers
from tests.commands import in_process
from tests.judges import OneByOne

# For wrong calls, which a type checker would refuse too.
untyped: Any = autoais

ROW = {
    "id": "1",
    "question": "What is the capital of Poland?",
    "sentences": [{"text": "It is Warsaw.", "citations": [{"passage": "b#1"}]}],
    "passages": [{"id": "b#1", "title": "Warsaw", "text": "Warsaw is the capital of Poland."}],
    "answers": ["Warsaw"],
}
WARSAW = Passage("b#1", "Warsaw", "Warsaw is the capital of Poland.")
UNCITED = {"id": "2", "question": "Where does the Vistula end?", "sentences": [{"text": "It ends in the sea."}]}


class Strict(OneByOne):
    """Supported where a content word of the claim stands in the evidence."""

    name = "strict"

    def of(self, one: Attribution) -> Judgement:
        yes, no = Judgement(Verdict.ATTRIBUTABLE, 1.0), Judgement(Verdict.NOT_ATTRIBUTABLE, 0.0)
        return yes if "Warsaw" in one.claim and "Warsaw" in " ".join(one.evidence) else no


def test_score_takes_rows_records_and_files_alike(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in (ROW, UNCITED)))
    passage = Passage("b#1", "Warsaw", "Warsaw is the capital of Poland.")
    record = CitedAnswer(
        "1", "What is the capital of Poland?", (CitedSentence("It is Warsaw.", (Citation("b#1"),)),), {"b#1": passage},
        ("b#1",), answers=("Warsaw",),
    )  # fmt: skip
    reports = [autoais.score(given, judge=Strict()) for given in (path, str(path), [ROW, UNCITED], [record, UNCITED])]
    for report in reports:
        assert report.judge == "strict"
        assert report.metrics["autoais"].value == 0.5
        assert report.metrics["autoais"].n == 2
        low, high = report.metrics["autoais"].interval95 or (1.0, 0.0)
        assert 0 < low < 0.5 < high < 1
        assert report.metrics == reports[0].metrics
        assert report.judgements == reports[0].judgements
        assert report.to_dict()["provenance"]["judge"]["name"] == "strict"
    assert reports[0].metrics["em"].value is None
    assert "short answers" in (reports[0].metrics["em"].reason or "")


def test_a_report_is_saved_as_the_command_writes_it(tmp_path: Path) -> None:
    answers = tmp_path / "answers.jsonl"
    answers.write_text("".join(json.dumps(row) + "\n" for row in (ROW, UNCITED)))
    theirs, rows = tmp_path / "theirs.json", tmp_path / "theirs.jsonl"
    done = in_process("autoais")("score", answers, "--judge", "lexical", "--report", theirs, "--out", rows)
    assert done.returncode == 0, done.stderr
    report = autoais.score(answers, judge="lexical")
    report.save(tmp_path / "ours.json", tmp_path / "ours.jsonl")
    assert (tmp_path / "ours.jsonl").read_bytes() == rows.read_bytes()
    ours, expected = (json.loads(path.read_bytes()) for path in (tmp_path / "ours.json", theirs))
    assert ours["provenance"].pop("inputs") == expected["provenance"].pop("inputs")
    assert set(ours.pop("provenance")) == set(expected.pop("provenance"))
    assert ours == expected
    assert list(ours) == list(expected)
    autoais.score(answers, judge="lexical").save(str(tmp_path / "alone.json"))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "alone.json", "answers.jsonl", "ours.json", "ours.jsonl", "theirs.json", "theirs.jsonl",
    ]  # fmt: skip
    with pytest.raises(autoais.UserError, match=r"is a folder; name a file for the output"):
        report.save(tmp_path)
    with pytest.raises(autoais.UserError, match=r"would be overwritten"):
        report.save(tmp_path / "same.json", tmp_path / "same.json")


def test_rows_of_other_formats_and_questions_as_rows_are_scored() -> None:
    ragas = {
        "user_input": "What is the capital of Poland?",
        "response": "It is Warsaw [1].",
        "retrieved_contexts": [WARSAW.text],
    }
    asked = [{"id": "1", "question": ROW["question"]}, {"id": "2", "question": UNCITED["question"]}]
    report = autoais.score([ragas], judge=Strict(), format="ragas", questions=asked)
    assert (report.metrics["autoais"].value, report.metrics["autoais"].n) == (0.5, 2)
    assert report.record["format"] == "ragas"
    with pytest.raises(autoais.UserError, match=r"questions\[1\].*empty"):
        autoais.score([ROW], judge=Strict(), questions=[asked[0], {"question": " "}])
    with pytest.raises(autoais.UserError, match="corpus is for files"):
        autoais.score([ROW], judge=Strict(), corpus=["corpus.jsonl"])


def test_questions_are_the_benchmark_and_the_cache_is_read(tmp_path: Path) -> None:
    questions = tmp_path / "q.jsonl"
    asked = [{"id": "1", "question": ROW["question"], "answers": ["Warsaw"]}, {"id": "3", "question": "Who?"}]
    questions.write_text("".join(json.dumps(row) + "\n" for row in asked))
    judge = Strict()
    report = autoais.score([ROW], judge=judge, questions=str(questions), cache=tmp_path / "judgements")
    assert (report.metrics["autoais"].value, report.metrics["autoais"].n) == (0.5, 2)
    before = len(judge.asked)
    again = autoais.score([ROW], judge=judge, questions=questions, cache=tmp_path / "judgements")
    assert again.metrics == report.metrics
    assert len(judge.asked) == before


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ([42], "answer 1: should be a CitedAnswer"),
        ([ROW, {"question": "no id"}], "answer 2: field 'id' is missing"),
        ([ROW, "text"], "answer 2: should be"),
    ],
)
def test_what_is_no_answer_is_one_line(answers: list[Any], says: str) -> None:
    with pytest.raises(autoais.UserError, match=says):
        autoais.score(answers, judge=Strict())


def test_an_answer_cannot_cite_what_it_does_not_have() -> None:
    with pytest.raises(autoais.CitationError, match="answer '1' cites passage 'gone', which is not among its passages"):
        CitedAnswer("1", "?", (CitedSentence("It is.", (Citation("gone"),)),))


def test_to_frame_has_a_row_a_metric_or_names_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    report = autoais.score([ROW], judge=Strict())
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(autoais.UserError, match="pip install pandas"):
        report.to_frame()
    monkeypatch.undo()
    pytest.importorskip("pandas")
    frame = report.to_frame()
    assert frame.loc["autoais", "value"] == 1.0
    assert {"low", "high", "n"} <= set(frame.columns)


def test_a_judge_gives_one_judgement_a_claim_by_every_door() -> None:
    judge = autoais.open_judge("lexical")
    assert judge.support("Warsaw is the capital.", ["Warsaw is the capital of Poland."]).verdict.ais is True
    for nothing in (
        judge.support("Warsaw is the capital.", []),
        judge.judge([Attribution("Warsaw is the capital.")])[0],
    ):
        assert (nothing.verdict.ais, nothing.reason) == (False, "nothing was cited")
    with pytest.raises(autoais.UsageError, match="evidence should be a list of texts"):
        judge.support("Warsaw is the capital.", "Warsaw is the capital of Poland.")
    with pytest.raises(TypeError, match="evidence should be a list of texts"):
        Attribution("x", "y")  # type: ignore[arg-type]


def test_compare_takes_reports_and_files(tmp_path: Path) -> None:
    a, b = (autoais.score([row], judge=Strict()) for row in (ROW, {**ROW, "sentences": UNCITED["sentences"]}))
    result = autoais.compare(a, b)
    assert result["difference"]["value"] == 1.0
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in a.judgements))
    assert autoais.compare(path, b)["table"] == result["table"]
    with pytest.raises(autoais.UserError, match="score both with one judge"):
        autoais.compare(a, autoais.score([ROW], judge="lexical"))


def test_evaluate_judge_reads_labels(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    rows = [("It is Warsaw.", ["Warsaw."], 1), ("It is Rome.", ["Warsaw."], 0), ("It is Warsaw.", ["Rome."], 1)]
    path.write_text(
        "".join(
            json.dumps({"dataset": "towns", "id": str(n), "claim": c, "evidence": e, "label": label}) + "\n"
            for n, (c, e, label) in enumerate(rows)
        )
    )
    result = autoais.evaluate_judge(str(path), Strict())
    assert result["sets"]["towns"]["n"] == 3
    assert result["sets"]["towns"]["balanced_accuracy"] == 0.75


def test_what_the_commands_do_the_functions_do(tmp_path: Path) -> None:
    answers, labels, calibration = tmp_path / "answers.jsonl", tmp_path / "labels.jsonl", tmp_path / "calibration.json"
    answers.write_text(json.dumps(ROW) + "\n")
    known, other = "Town {0} has {0} bridges.", "Bridge {0} is made of wood."
    rows = [(known.format(n), (known if n % 2 else other).format(n), n % 2) for n in range(40)]
    labels.write_text(
        "".join(
            json.dumps({"dataset": "towns", "id": str(n), "claim": c, "evidence": [e], "label": label}) + "\n"
            for n, (c, e, label) in enumerate(rows)
        )
    )
    made = autoais.calibrate_judge(labels, calibration, "lexical", cache=tmp_path / "judgements")
    assert made == json.loads(calibration.read_text())
    assert made["provenance"]["inputs"]["labels1"]["sha256"]
    plain = autoais.evaluate_judge(labels, "lexical")
    asked = autoais.evaluate_judge(labels, "lexical", calibration=calibration, cache=tmp_path / "judgements")
    assert asked["judge"] != plain["judge"]
    assert asked["judge"].startswith("lexical")
    report = autoais.score(answers, judge="lexical", calibration=calibration)
    assert report.judge == asked["judge"]
    assert report.to_dict()["provenance"]["inputs"]["calibration"]
    with pytest.raises(autoais.UserError, match="not for 'strict'"):
        autoais.score(answers, judge=Strict(), calibration=calibration)
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(autoais.UserError, match=r"empty\.jsonl: "):
        autoais.evaluate_judge(tmp_path / "empty.jsonl", "lexical")


def test_convert_says_what_is_lost(tmp_path: Path) -> None:
    answers, to = tmp_path / "answers.jsonl", tmp_path / "hagrid.jsonl"
    answers.write_text(json.dumps(ROW) + "\n")
    made = autoais.convert(str(answers), to, "hagrid")
    assert made.losses
    assert "Warsaw" in to.read_text()
    before = to.read_text()
    with pytest.raises(autoais.UserError, match="nothing can be converted to 'word'"):
        autoais.convert(answers, to, "word")
    assert to.read_text() == before


def test_predictions_are_scored_as_in_2023(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text(json.dumps(ROW) + "\n")
    with pytest.raises(autoais.UserError, match="google-2023 is for"):
        autoais.score(path, judge="lexical", compat="google-2023")


# --- runs ------------------------------------------------------------------------------------------------------

RUN = {"q1": {"a": 2.0, "b": 1.0}, "q2": {"c": 1.0}}
QRELS = {"q1": {"b": 1}, "q2": {"c": 1, "d": 1}, "q3": {"e": 1}}


def test_evaluate_run_takes_files_dicts_and_tuples(tmp_path: Path) -> None:
    ir_measures = pytest.importorskip("ir_measures")
    run, qrels = tmp_path / "run.trec", tmp_path / "qrels.txt"
    run.write_text("".join(f"{q} Q0 {d} 1 {s} tag\n" for q, of in RUN.items() for d, s in of.items()))
    qrels.write_text("".join(f"{q} 0 {d} {r}\n" for q, of in QRELS.items() for d, r in of.items()))
    scored = [ir_measures.ScoredDoc(q, d, s) for q, of in RUN.items() for d, s in of.items()]
    judged = [ir_measures.Qrel(q, d, r) for q, of in QRELS.items() for d, r in of.items()]
    for given, relevant in ((run, qrels), (str(run), str(qrels)), (RUN, QRELS), (scored, judged), (RUN, judged)):
        report = autoais.evaluate_run(given, relevant, ["RR@10", "R@100"])
        assert report.metrics["RR@10"].value == 0.5  # the skipped topic counts as zero
        assert report.per_topic["R@100"] == {"q1": 1.0, "q2": 0.5, "q3": 0.0}
        assert report.metrics["RR@10"].n == 3


@pytest.mark.parametrize(
    ("run", "qrels", "says"),
    [
        (42, QRELS, "run should be a file, a dict"),
        ([("q1", "a")], QRELS, "run should be a file, a dict"),
        ({"q1": {"a": float("nan")}}, QRELS, "run: .*nan"),
        ({1: {"a": 1.0}}, QRELS, "run: "),
        (RUN, {"q1": {"a": 0.5}}, "the relevance of 'a' for topic 'q1' is 0.5"),
        (RUN, "gone.txt", "gone.txt: cannot be read"),
    ],
)
def test_what_is_no_run_is_one_line(run: object, qrels: object, says: str) -> None:
    pytest.importorskip("ir_measures")
    with pytest.raises(autoais.UserError, match=says):
        autoais.evaluate_run(run, qrels, ["RR@10"])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: untyped.score(ROW), "answers should be a list of answers, found one dict; put it in a list"),
        (lambda: untyped.score(5), "answers should be a file or a list of answers, found int"),
        (lambda: untyped.score([ROW, UNCITED, ROW]), "answers 1 and 3 have the same id '1'; .*rag.Question"),
        (lambda: untyped.score([ROW], judge=None), "judge should be a name such as 'minilm' or an open judge"),
        (lambda: untyped.score([ROW], judge="lexical", metrics=None), "metrics should be names"),
        (
            lambda: untyped.score([ROW], judge="lexical", questions=["Who?"]),
            r"questions should be a file or a list of Questions or rows \(dicts\), found str in it",
        ),
        (lambda: untyped.open_judge(None), "judge should be a name such as 'minilm', found NoneType"),
        (lambda: untyped.open_judge("lexical").support(None, ["x"]), "claim should be a string, found NoneType"),
        (
            lambda: untyped.open_judge("lexical").support("x", None),
            "evidence should be a list of texts, found NoneType",
        ),
        (
            lambda: untyped.open_judge("lexical").support("x", [None]),
            "evidence should be a list of texts, found NoneType in it",
        ),
        (lambda: untyped.compare(None, "x.jsonl"), "a should be a Report or a file of judgements, found NoneType"),
        (lambda: untyped.compare("a.jsonl", "b.jsonl", metrics="autoais"), "metrics should be a list of names"),
        (lambda: untyped.score("a.jsonl", judge="lexical", corpus="p.jsonl"), "corpus should be a list of files"),
        (lambda: untyped.score([ROW], judge="lexical", metrics=[5]), "no citation metrics called '5'"),
        (lambda: untyped.evaluate_judge(None), "labels should be a file or a list of files, found NoneType"),
        (lambda: untyped.evaluate_run({}, {}, ["answer_hit@1"]), "the judgements have no topics"),
        (lambda: untyped.evaluate_run({}, {}, None), "measures should be a list of names, found NoneType"),
        (lambda: untyped.Question("q1", None), "the text of a question should be a string, found NoneType"),
        (
            lambda: untyped.Question("1", "?", "two years"),
            "the answers of a question should be a list of strings, found",
        ),
        (lambda: untyped.Question("1", "?", (), "a.md#1"), "the gold of a question should be a list of strings, found"),
        (lambda: untyped.Question("1", "?", nuggets="two"), "the nuggets of a question should be a list of lists of"),
        (lambda: untyped.Question("1", "?", nuggets=["two years"]), "the nuggets of a question should be a list of li"),
        (
            lambda: untyped.Question("1", "?", [5]),
            "the answers of a question should be a list of strings, found int in",
        ),
        (lambda: untyped.Passage("w#1", text=None), "the text of a passage should be a string, .* found NoneType"),
        (lambda: untyped.CitedAnswer("1", "q", "Warsaw is"), "the sentences of an answer should be a list of CitedSe"),
        (lambda: untyped.CitedAnswer("1", "q", ["Warsaw is"]), "a list of CitedSentences, found str in it"),
        (lambda: untyped.CitedAnswer("1", "q", (), {"w#1": "text"}), "a dict of Passages by id, found str in it"),
        (lambda: untyped.CitedAnswer("1", "q", (), [WARSAW]), "a dict of Passages by id, found list"),
        (lambda: untyped.CitedAnswer("1", "q", ranking="doc1"), "the ranking of an answer should be a list of strings"),
        (lambda: untyped.CitedAnswer("1", "q", answers="big"), "the answers of an answer should be a list of strings"),
        (
            lambda: untyped.CitedAnswer("1", "q", [untyped.CitedSentence("It is.")], abstained=True),
            "answer '1': 'abstained' is true, yet there are sentences; leave one of them out",
        ),
        (
            lambda: untyped.open_judge("lexical").judge(Attribution("x")),
            "attributions should be a list of Attributions",
        ),
        (lambda: untyped.open_judge("lexical").judge("x"), "attributions should be a list of Attributions, found one"),
        (lambda: untyped.open_judge("lexical").judge(["x"]), "a list of Attributions, found str in it"),
        (lambda: untyped.score([], judge="lexical"), "answers: there are none in the list"),
        (lambda: untyped.score(b"x", judge="lexical"), "answers should be a file or a list of answers, found bytes"),
        (lambda: untyped.score([ROW], judge=Nameless()), "Nameless: its name should be a line of text, found ''"),
        (lambda: untyped.score([ROW], judge="lexical", cache=True), "cache should be the path of a file, found bool"),
        (
            lambda: untyped.score([ROW], judge="lexical", calibration=3),
            "calibration should be the path of a file, found",
        ),
        (lambda: untyped.read_answers(None), "answers should be the path of a file, found NoneType"),
        (lambda: untyped.read_questions(None), "questions should be the path of a file, found NoneType"),
        (lambda: untyped.convert(["a"], "b", "hagrid"), "source should be the path of a file, found list"),
        (lambda: untyped.convert("a", None, "hagrid"), "target should be the path of a file, found NoneType"),
        (
            lambda: untyped.calibrate_judge("a.jsonl", None, "lexical"),
            "to should be the path of a file, found NoneType",
        ),
        (lambda: untyped.calibrate_judge([], "a.json", "lexical"), "labels: there are no files in the list"),
        (lambda: untyped.evaluate_judge([], "lexical"), "labels: there are no files in the list"),
        (lambda: untyped.evaluate_judge("a", "lexical", worst="3"), "worst should be a number of disagreements, found"),
        (lambda: untyped.evaluate_judge("a", "lexical", worst=-1), "worst should be 0 or more, found -1"),
        (
            lambda: untyped.calibrate_judge("a", "b", "lexical", folds="5"),
            "folds should be a number from 2 to 100, foun",
        ),
        (lambda: untyped.agreement([]), "^there are no ratings$"),
        (lambda: untyped.evaluate_run([], QRELS, ["answer_hit@1"]), "run: holds no results"),
        (lambda: untyped.evaluate_run(["query_id"], QRELS, ["answer_hit@1"]), "run should be a file, .* found list"),
        (
            lambda: untyped.evaluate_run(RUN, QRELS, ["answer_hit@1"], answers=["q1"]),
            "answers should be a dict .* foun",
        ),
        (
            lambda: run_of_answers(untyped.CitedAnswer("1", "?")),
            "answers should be a list of answers, found CitedAnswer",
        ),
    ],
)
def test_a_wrong_call_is_one_line(call: Callable[[], object], says: str) -> None:
    with pytest.raises(autoais.UserError, match=says) as caught:
        call()
    assert "\n" not in str(caught.value)


class Nameless(Strict):
    """A judge whose name cannot be the key of its judgements."""

    name = ""


def test_lists_become_tuples() -> None:
    question = untyped.Question("1", "?", ["two years"], ["a.md#1"], [["two", "2"], ("years",)])
    assert (question.answers, question.gold) == (("two years",), ("a.md#1",))
    assert question.nuggets == (("two", "2"), ("years",))
    answer = untyped.CitedAnswer("1", "?", [untyped.CitedSentence("It is.")], ranking=["b#1"])
    assert (answer.sentences, answer.ranking) == ((untyped.CitedSentence("It is."),), ("b#1",))


def test_a_judge_reads_any_iterable_once() -> None:
    pairs = [Attribution("It is Warsaw.", ("Warsaw.",)), Attribution("It is Rome.", ()), Attribution("It is Warsaw.")]
    assert [one.verdict.ais for one in Strict().judge(pair for pair in pairs)] == [True, False, False]


def test_what_score_takes_run_of_answers_takes() -> None:
    class Own:
        def to_cited(self) -> CitedAnswer:
            return CitedAnswer("q2", "?", passages={"b#1": WARSAW}, ranking=("b#1",))

    assert run_of_answers([ROW, Own()]).rankings == {"1": ("b#1",), "q2": ("b#1",)}


def test_a_calibration_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    for path, says in ((tmp_path / "gone.json", "No such file"), (tmp_path, "Is a directory; name a file")):
        with pytest.raises(autoais.UserError, match=f"{path}: cannot be read: {says}"):
            autoais.score([ROW], judge="lexical", calibration=path)
    with pytest.raises(autoais.UserError, match="Is a directory; name a file"):
        autoais.score(tmp_path, judge="lexical")


def test_the_same_rule_holds_for_ratings_in_a_file_and_in_a_list() -> None:
    ada, bob = Rating("1", "ada", "attributable", "yes"), Rating("1", "bob", "attributable", "yes")
    assert autoais.agreement([ada, bob, ada])["ratings"] == 2
    with pytest.raises(autoais.FormatError, match=r"rating 3: annotator 'ada' rated item '1' before.*\(rating 1\)"):
        autoais.agreement([ada, bob, replace(ada, value="no")])


def test_ratings_are_converted_and_give_labels(tmp_path: Path) -> None:
    answers, out = tmp_path / "answers.jsonl", tmp_path / "out.jsonl"
    answers.write_text(json.dumps(ROW) + "\n")
    ratings = [Rating("1", who, "attributable", "yes") for who in ("ada", "bob")]
    assert autoais.convert_ratings(ratings, out, "answers", answers=answers) == {"labels written": 1}
    (labelled,) = autoais.read_answers(out)
    assert labelled.attributable is True
    assert autoais.convert_ratings(ratings, out, "ratings", without=["bob"]) == {}
    assert autoais.agreement(out)["annotators"] == 1
    with pytest.raises(autoais.UserError, match=r"out.jsonl would be overwritten"):
        autoais.convert_ratings(out, out, "ratings")
    with pytest.raises(autoais.UserError, match="answers needs the rated answers too"):
        autoais.convert_ratings(ratings, out, "answers")
    assert autoais.agreement(out)["annotators"] == 1  # no file was changed


def test_the_tables_of_the_ais_paper(tmp_path: Path) -> None:
    path = tmp_path / "ann.csv"
    path.write_text("model-name,INT,INT & AIS,Flagged,# agree (INT),# agree (AIS)\nm,1,1,0,3,3\nm,1,0,0,3,2\n")
    found = autoais.ais_report(path)
    (one,) = found["files"]
    assert (one["file"], one["most_agree"], one["models"][0]["ais"]["value"]) == ("ann.csv", 3, 0.5)
    assert found["other_tables"] is None
    assert "ratings1" in found["provenance"]["inputs"]
    with pytest.raises(autoais.UserError, match="is named twice"):
        autoais.ais_report([path, path])


def test_answers_to_different_questions_are_not_compared() -> None:
    def scored(text: str, **fields: object) -> autoais.Report:
        return autoais.score([ROW | {"question": text} | fields], judge="lexical", metrics="none")

    report = scored("What is the capital of Poland?")
    says = "answer '1': its question is 'What is the capital of Poland\\?' in a, 'Who\\?' in b; do they belong together"
    for other in (scored("Who?"), scored("Who?", query_id=7)):
        with pytest.raises(autoais.UserError, match=says):
            autoais.compare(report, other)
    same = "what is the  capital of Poland?"
    for other in (scored(same), scored(same, query_id=7), scored(""), scored("", query_id=7)):
        assert autoais.compare(report, other)["table"]["both"] == 1


def test_numbers_of_numpy_and_any_list_of_texts_are_taken() -> None:
    report = autoais.evaluate_run({"q": {"a": np.float32(2)}}, {"q": {"a": np.int64(1)}}, ["answer_hit@1"])
    assert report.metrics["answer_hit@1"].n == 1
    texts: Any = (text for text in ["Warsaw"])
    assert Attribution("Warsaw", texts).evidence == ("Warsaw",)


def test_a_report_is_shown_in_one_line() -> None:
    report = autoais.score([ROW], judge="lexical", metrics="none")
    assert (
        repr(report)
        == f"Report({report.judge}: autoais 1.000, sentences 1.000, answer_recall 1.000, answer_hit@1 1.000)"
    )


def test_measures_may_be_those_of_ir_measures() -> None:
    ir_measures = pytest.importorskip("ir_measures")
    report = autoais.evaluate_run({"q": {"a": 2.0, "b": 1.0}}, {"q": {"b": 1}}, [ir_measures.RR @ 10, "Success@1"])
    assert {name: metric.value for name, metric in report.metrics.items()} == {"RR@10": 0.5, "Success@1": 0.0}


def test_one_string_of_measures_is_refused() -> None:
    with pytest.raises(autoais.UsageError, match="measures should be a list of names"):
        autoais.evaluate_run(RUN, QRELS, "RR@10")


def test_the_version_is_that_of_the_distribution() -> None:
    assert autoais.__version__[0].isdigit()
    with pytest.raises(AttributeError, match="module 'autoais' has no attribute 'nope'"):
        _ = untyped.nope
