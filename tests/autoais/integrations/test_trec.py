"""TREC's world: what we write is read by ir_measures, trec_eval, nuggetizer and autojudge-base, and theirs by us."""

import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import autoais
from autoais import Citation, CitedAnswer, CitedSentence, Passage, Question, UserError, evaluate_run, formats
from autoais.base.io.jsonl import write_atomic
from autoais.base.types import Attribution, Judgement, Support, Verdict
from autoais.formats.nuggetizer import Nugget, NuggetBank, assignment_lines, read_nuggets
from autoais.judges.lexical import LexicalJudge
from autoais.metrics.nuggets import NUGGET_SCORES, score_assignments
from autoais.metrics.runs import Run, qrels_lines, read_qrels, read_run, run_lines, run_of_answers
from tests.autoais.integrations.test_scorers import ROOT, Undecided, needed
from tests.chat_server import ChatServer

IDS = ["msmarco_v2.1_doc_00_1#0_1", "msmarco_v2.1_doc_00_1#1_2", "msmarco_v2.1_doc_00_2#0_3"]
TEXTS = ["Warsaw is the capital of Poland.", "Marie Curie moved to Paris in 1891.", "The Vistula flows north."]
PASSAGES = {key: Passage(key, "", text) for key, text in zip(IDS, TEXTS, strict=True)}
ANSWERS = [
    CitedAnswer(
        "q1",
        "capital of poland",
        (
            CitedSentence("Warsaw is the capital of Poland.", (Citation(IDS[0]),)),
            CitedSentence("Warsaw has nine opera houses.", (Citation(IDS[1]), Citation(IDS[2]))),
        ),
        PASSAGES,
        ranking=(IDS[1], IDS[0], IDS[2]),
        extra={"system": "ours"},
    ),
    CitedAnswer(
        "q2",
        "curie's move",
        (CitedSentence("Marie Curie moved to Paris in 1891.", (Citation(IDS[1]),)),),
        PASSAGES,
        ranking=tuple(IDS),
        extra={"system": "ours"},
    ),
]
QRELS = {"q1": {IDS[0]: 2, IDS[2]: 0}, "q2": {IDS[1]: 1}}


def write(path: Path, lines: Iterable[str]) -> Path:
    write_atomic(path, lines)
    return path


# --- runs and qrels --------------------------------------------------------------------------------------------


def test_ir_measures_and_trec_eval_read_our_runs_and_qrels(tmp_path: Path) -> None:
    ir_measures = pytest.importorskip("ir_measures", reason="needs ir_measures, of the extra measures")
    run = write(tmp_path / "run.trec", run_lines(run_of_answers(ANSWERS, "our system")))
    qrels = write(tmp_path / "qrels.txt", qrels_lines(QRELS))
    assert run.read_text("utf-8").splitlines()[0] == f"q1 Q0 {IDS[1]} 1 3 our_system"
    assert (read_run(run).rankings["q1"], read_qrels(qrels)) == ([IDS[1], IDS[0], IDS[2]], QRELS)
    measures = [ir_measures.nDCG @ 10, ir_measures.RR, ir_measures.R @ 1]
    theirs = ir_measures.pytrec_eval.calc_aggregate(
        measures, list(ir_measures.read_trec_qrels(str(qrels))), list(ir_measures.read_trec_run(str(run)))
    )
    ours = evaluate_run(run, qrels, [str(one) for one in measures]).metrics
    assert theirs[ir_measures.RR] == 0.5  # the first passage of q1 is not judged, that of q2 not relevant
    for measure in measures:
        assert ours[str(measure)].value == pytest.approx(theirs[measure])


def test_trec_eval_keeps_our_order_of_a_long_run(tmp_path: Path) -> None:
    ir_measures = pytest.importorskip("ir_measures", reason="needs ir_measures, of the extra measures")
    ids = [f"d{number}" for number in range(1000)]
    random.Random(1).shuffle(ids)
    run = write(tmp_path / "run.trec", run_lines(Run("r", {"q1": ids})))
    for rank in (1, 500, 1000):
        qrels = [ir_measures.Qrel("q1", ids[rank - 1], 1)]
        found = ir_measures.pytrec_eval.calc_aggregate([ir_measures.RR], qrels, ir_measures.read_trec_run(str(run)))
        assert found[ir_measures.RR] == pytest.approx(1 / rank)


def test_the_runs_of_rag_search_are_read_alike(tmp_path: Path) -> None:
    ir_measures = pytest.importorskip("ir_measures", reason="needs ir_measures, of the extra measures")
    from rag.base.types import Hit
    from rag.base.types import Passage as Indexed
    from rag.retrieval.runs import write_run

    hits = [Hit(Indexed(key, "", text), score) for key, text, score in zip(IDS, TEXTS, (3.5, 2.25, 0.1), strict=True)]
    write_run(tmp_path / "run.trec", iter([(Question("q1", "x"), hits)]), "bm25", 1)
    rows = list(ir_measures.read_trec_run(str(tmp_path / "run.trec")))
    assert [(row.query_id, row.doc_id, row.score) for row in rows] == [
        ("q1", key, score) for key, score in zip(IDS, (3.5, 2.25, 0.1), strict=True)
    ]


@pytest.mark.parametrize("bad", ["", "a b", "a\tb"])
def test_an_id_that_no_column_holds_is_refused(bad: str) -> None:
    says = f"TREC runs and qrels cannot hold the id {bad!r}"
    for lines in (run_lines(Run("r", {"q": [bad]})), run_lines(Run("r", {bad: ["d"]})), qrels_lines({"q": {bad: 1}})):
        with pytest.raises(UserError) as error:
            list(lines)
        assert str(error.value).startswith(says)


# --- nuggets ---------------------------------------------------------------------------------------------------

BANKS: list[dict[str, Any]] = [
    {
        "query": "capital of poland",
        "qid": "q1",
        "nuggets": [
            {"text": "Warsaw is the capital of Poland", "importance": "vital"},
            {"text": "The Vistula is in Warsaw", "importance": "vital"},
            {"text": "Warsaw is the capital", "importance": "okay"},
        ],
    },
    {"query": "curie's move", "qid": 2, "nuggets": [{"text": "Marie Curie moved to Paris"}]},
]


def rows(path: Path, listed: list[dict[str, Any]]) -> Path:
    return write(path, (json.dumps(row) for row in listed))


def test_nuggets_are_read_and_the_vital_ones_are_a_questions_nuggets(tmp_path: Path) -> None:
    path = rows(tmp_path / "nuggets.jsonl", BANKS)
    first, second = read_nuggets(path)
    assert first.nuggets[2] == Nugget("Warsaw is the capital", "okay")
    assert (second.topic, second.nuggets) == ("2", (Nugget("Marie Curie moved to Paris", "vital"),))
    vital = (("Warsaw is the capital of Poland",), ("The Vistula is in Warsaw",))
    questions = list(autoais.read_questions(path))
    assert questions[0] == Question("q1", "capital of poland", nuggets=vital)
    assert questions == [first.question, second.question]
    report = autoais.score(ANSWERS[:1], questions=questions[:1], judge="lexical")
    assert report.metrics["nugget_recall"].value == 0.5


def test_a_topic_without_a_vital_nugget_scores_0_as_in_nuggetizer(tmp_path: Path) -> None:
    okay = [{"text": "Warsaw is the capital of Poland", "importance": "okay"}]
    banks = [BANKS[0] | {"nuggets": okay}, {"qid": "q2", "query": "river", "nuggets": []}]
    first, second = read_nuggets(rows(tmp_path / "nuggets.jsonl", banks))
    assert (first.question.nuggets, second.question.nuggets) == (((),), ())
    report = autoais.score(ANSWERS[:1], questions=[first.question], judge="lexical")
    for name in ("nugget_recall", "nugget_recall_judged", "all_nuggets", "all_nuggets_judged"):
        assert (report.metrics[name].value, report.metrics[name].n) == (0.0, 1)
    (line,) = assignment_lines(ANSWERS[:1], [first], LexicalJudge())
    metrics = needed("nuggetizer.core.metrics", "nuggetizer")
    assert metrics.calculate_nugget_scores("q1", json.loads(line)["nuggets"]).strict_vital_score == 0


def test_assignments_are_what_nuggetizer_scores(tmp_path: Path) -> None:
    banks = list(read_nuggets(rows(tmp_path / "nuggets.jsonl", BANKS)))
    path = write(tmp_path / "assignments.jsonl", assignment_lines(ANSWERS, banks, LexicalJudge()))
    (written,) = (json.loads(line) for line in path.read_text("utf-8").splitlines())  # q2 has no nuggets
    assert [one["assignment"] for one in written["nuggets"]] == ["support", "not_support", "support"]
    assert (written["qid"], written["run_id"], written["response_length"]) == ("q1", "ours", 11)
    metrics = needed("nuggetizer.core.metrics", "nuggetizer")
    found = metrics.calculate_nugget_scores(written["qid"], written["nuggets"])
    assert (found.strict_vital_score, found.strict_all_score) == (0.5, pytest.approx(2 / 3))
    by_ours = autoais.score(ANSWERS[:1], questions=[banks[0].question], judge="lexical")
    assert by_ours.metrics["nugget_recall_judged"].value == found.strict_vital_score


def test_our_scores_of_assignments_are_nuggetizers() -> None:
    metrics = needed("nuggetizer.core.metrics", "nuggetizer")
    kinds = [
        (i, a) for i in ("vital", "okay", "failed") for a in ("support", "partial_support", "not_support", "failed")
    ]
    for seed in range(50):
        listed = random.Random(seed).choices(kinds, k=seed % 12)
        theirs = metrics.calculate_nugget_scores("q", [{"importance": i, "assignment": a} for i, a in listed])
        assert score_assignments(listed) == pytest.approx({name: getattr(theirs, name) for name in NUGGET_SCORES})


def test_partial_support_is_assigned_by_judges_that_know_it() -> None:
    class Partly(Undecided):
        name = "partly.v1"

        def decide(self, attributions: Sequence[Attribution]) -> list[Judgement]:
            return [Judgement(Verdict.PARTIALLY_ATTRIBUTABLE) for _ in attributions]

    bank = read_bank()
    (line,) = assignment_lines(ANSWERS[:1], [bank], Partly())
    assert {one["assignment"] for one in json.loads(line)["nuggets"]} == {"partial_support"}
    with pytest.raises(UserError, match=r"^answer 'q1': undecided\.v1 did not decide on a nugget"):
        list(assignment_lines(ANSWERS[:1], [bank], Undecided()))
    silent = CitedAnswer("q1", "capital of poland", abstained=True)
    (line,) = assignment_lines([silent], [bank], Partly())
    assert {one["assignment"] for one in json.loads(line)["nuggets"]} == {"not_support"}


def read_bank() -> NuggetBank:
    from autoais.formats.nuggetizer import bank_of

    return bank_of(BANKS[0], "here")


def test_assignments_are_labels_for_a_judge(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", assignment_lines(ANSWERS, [read_bank()], LexicalJudge()))
    labels = list(formats.read_labels(path))
    assert [one.support for one in labels] == [Support.FULL, Support.NONE, Support.FULL]
    assert labels[0].attribution.evidence == (ANSWERS[0].plain,)
    assert (labels[0].id, labels[0].system) == ("q1/ours/1", "ours")
    nuggets = [{"text": "Warsaw is the capital", "assignment": "support"}]
    passage = {"qid": "q1", "answer_text": None, "candidate_text": TEXTS[0], "docid": IDS[0], "nuggets": nuggets}
    (label,) = formats.read_labels(rows(tmp_path / "passages.jsonl", [passage]))
    assert (label.id, label.attribution.evidence) == (f"q1/{IDS[0]}/1", (TEXTS[0],))
    found = autoais.evaluate_judge(path, "lexical")["sets"]["nuggets"]
    assert (found["n"], found["macro_f1"]) == (3, 1.0)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (
            {"qid": "q1", "query": "x", "nuggets": [{"importance": "vital"}]},
            r"a\.jsonl:1: field 'nuggets\[0\]\.text' is missing",
        ),
        ({"qid": "q1", "query": "x", "nuggets": "none"}, r"a\.jsonl:1: field 'nuggets'"),
        ({"qid": "q1", "query": "x", "nuggets": [{"text": "x", "assignment": "maybe"}]}, r"a\.jsonl:1: .*assignment"),
    ],
)
def test_broken_nuggets_are_refused(tmp_path: Path, row: dict[str, Any], says: str) -> None:
    path = rows(tmp_path / "a.jsonl", [row])
    for read in (lambda: list(read_nuggets(path)), lambda: list(autoais.read_questions(path))):
        with pytest.raises(autoais.FormatError, match=says):
            read()


def test_a_topic_twice_and_nuggets_without_assignment_are_refused(tmp_path: Path) -> None:
    path = rows(tmp_path / "a.jsonl", [BANKS[0], BANKS[0]])
    with pytest.raises(autoais.FormatError, match=r"a\.jsonl:2: topic 'q1' occurs twice"):
        list(read_nuggets(path))
    with pytest.raises(autoais.FormatError, match=r"a\.jsonl:1: nuggets that are assigned to no text"):
        list(formats.read_labels(path))


# --- AutoJudge -------------------------------------------------------------------------------------------------


@pytest.fixture
def autojudge(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The package `autojudge_base`, which reads NLTK's stop words when it is imported, or downloads them."""
    nltk = needed("nltk", "autojudge-base")
    folder = tmp_path_factory.mktemp("nltk")
    for name in ("corpora/stopwords/english", "tokenizers/punkt/README"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("the\n", "utf-8")
    nltk.data.path.append(str(folder))
    try:
        return needed("autojudge_base", "autojudge-base")
    finally:
        nltk.data.path.remove(str(folder))


TOPICS = [SimpleNamespace(request_id=one.id, title=one.question) for one in ANSWERS]


def reports(autojudge: ModuleType, folder: Path) -> list[Any]:
    """Our answers, written as a run of TREC RAG and read by autojudge-base."""
    path = write(folder / "run.jsonl", formats.write(ANSWERS, "trec-rag-25"))
    return list(autojudge.load_report(path))


def corpus(folder: Path) -> Path:
    return write(folder / "corpus.jsonl", (json.dumps({"docid": k, "title": "", "text": p.text}) for k, p in
                                           PASSAGES.items()))  # fmt: skip


@pytest.mark.filterwarnings("default")
def test_autojudge_reads_our_runs_of_trec_rag(autojudge: ModuleType, tmp_path: Path) -> None:
    from autoais.integrations.autojudge import from_report

    first, second = reports(autojudge, tmp_path)
    assert [error for error in first.check("rag25") if "type" not in error] == []
    assert first.get_sentences() == [one.text for one in ANSWERS[0].sentences]
    assert [one.citations for one in first.get_sentences_with_citations()] == [[IDS[0]], [IDS[1], IDS[2]]]
    back = [from_report(one) for one in (first, second)]
    assert [one.sentences for one in back] == [one.sentences for one in ANSWERS]
    assert [(one.id, one.question, one.extra["system"]) for one in back] == [
        (one.id, one.question, "ours") for one in ANSWERS
    ]


@pytest.mark.filterwarnings("default")
def test_autojudge_reads_our_reports_with_the_texts_of_their_documents(autojudge: ModuleType, tmp_path: Path) -> None:
    from autoais.integrations.autojudge import from_report

    path = write(tmp_path / "reports.jsonl", formats.write(ANSWERS, "autojudge-reports"))
    assert formats.detect(path) == "autojudge-reports"
    for report, answer in zip(autojudge.load_report(path), ANSWERS, strict=True):
        assert {key: one.text for key, one in report.documents.items()} == {
            key: passage.text for key, passage in answer.passages.items()
        }
        assert from_report(report).sentences == answer.sentences


@pytest.mark.filterwarnings("default")
def test_our_judge_on_an_autojudge_leaderboard(autojudge: ModuleType, tmp_path: Path) -> None:
    from autoais.integrations.autojudge import MEASURES, CitationJudge, leaderboard, values

    judge = CitationJudge()
    topics = [autojudge.Request(request_id=one.id, title=one.question) for one in ANSWERS]
    board = judge.judge(
        reports(autojudge, tmp_path), topics, autojudge.LlmConfigBase(), corpus=str(corpus(tmp_path)), judge="lexical"
    )
    board.verify("error", [one.request_id for one in topics])
    ours = autoais.score(ANSWERS, judge="lexical", metrics=("alce", "trec"))
    for name in MEASURES:
        assert values(board, name) == {"ours": pytest.approx(ours.metrics[name].value)}
    assert values(board, "autoais") == {"ours": 0.5}
    assert leaderboard({"ours": ours}).entries == board.entries
    for form in ("ir_measures", "tot", "jsonl"):
        board.write(tmp_path / "board", form)
        again = autojudge.Leaderboard.load(tmp_path / "board", form)
        assert values(again, "citation_recall") == pytest.approx(values(board, "citation_recall"))
    with pytest.raises(UserError, match=r"^the leaderboard has no measure 'em'; there are: autoais,"):
        values(board, "em")
    with pytest.raises(UserError, match=r"^the report has no citation_recall"):
        leaderboard({"ours": autoais.score(ANSWERS, judge="lexical", metrics="none")})


@pytest.mark.filterwarnings("default")
def test_an_unanswered_topic_counts_and_texts_must_come_from_somewhere(autojudge: ModuleType, tmp_path: Path) -> None:
    from autojudge_base.document import Document

    from autoais.integrations.autojudge import CitationJudge, values

    first, second = reports(autojudge, tmp_path)
    with pytest.raises(UserError, match=r"^run 'ours' cites 'msmarco\S+', whose text it does not hold; give a corpus"):
        CitationJudge().judge([first, second], TOPICS, None)
    with pytest.raises(UserError, match=r"^the citation judge has no setting 'jugde'; there is: judge"):
        CitationJudge().judge([second], TOPICS, None, jugde="lexical")
    second.documents = {key: Document(id=key, text=one.text) for key, one in PASSAGES.items()}
    board = CitationJudge().judge([second], TOPICS, None, judge=LexicalJudge())
    assert values(board, "autoais") == {"ours": 0.5}  # q2 is right, q1 is not answered
    assert {entry.topic_id for entry in board.entries} == {"q1", "q2", "all"}


@pytest.mark.filterwarnings("default")
def test_a_workflow_of_autojudge_runs_our_judge(autojudge: ModuleType, tmp_path: Path) -> None:
    from autojudge_base.cli import main
    from click.testing import CliRunner

    from autoais.integrations.autojudge import values

    page = (ROOT / "docs/handbook/reference/integrations.md").read_text("utf-8")
    workflow = page.split("## TREC AutoJudge")[1].split("```yaml\n")[1].split("```")[0]
    (tmp_path / "workflow.yml").write_text(workflow, "utf-8")
    (tmp_path / "runs").mkdir()
    write(tmp_path / "runs/ours", formats.write(ANSWERS, "trec-rag-25"))
    rows(tmp_path / "topics.jsonl", [{"request_id": one.id, "title": one.question} for one in ANSWERS])
    given = {"workflow": "workflow.yml", "rag-responses": "runs", "rag-topics": "topics.jsonl", "out-dir": "out"}
    argv = ["run", "--corpus", str(corpus(tmp_path)), "--leaderboard-format", "ir_measures"]
    argv += [part for name, value in given.items() for part in (f"--{name}", str(tmp_path / value))]
    done = CliRunner().invoke(main, argv)
    assert done.exit_code == 0, done.output
    (board,) = (tmp_path / "out").rglob("*eval.txt")
    assert values(autojudge.Leaderboard.load(board, "ir_measures"), "autoais") == {"ours": 0.5}


def nugget_steps() -> list[dict[str, Any]]:
    """What a model says to the prompts of nuggets and relevance."""
    weigh, grade = json.dumps({"labels": ["vital"]}), json.dumps({"grade": 2})
    assign = json.dumps({"labels": ["support"]})
    said = [["how important", weigh], ["how far the answer", assign], ["how relevant", grade]]
    return [{"say_if": said, "say": json.dumps({"nuggets": ["Warsaw is the capital"]})}]


@pytest.mark.filterwarnings("default")
def test_nugget_banks_qrels_and_a_leaderboard_for_autojudge(
    autojudge: ModuleType, tmp_path: Path, server: ChatServer
) -> None:
    from autojudge_base.nugget_data import NuggetBanks

    from autoais.integrations.autojudge import NuggetJudge, values

    url = server.script(*nugget_steps())
    config = autojudge.LlmConfigBase(model="tiny", base_url=url, api_key="sk-test")
    judge, texts = NuggetJudge(), str(corpus(tmp_path))
    ours = reports(autojudge, tmp_path)
    banks = judge.create_nuggets(ours, TOPICS, config, corpus=texts, outdir=tmp_path, depth=1)
    assert isinstance(banks, judge.nugget_banks_type)
    banks.verify(["q1", "q2"])
    assert [nugget.text for nugget in banks.banks["q1"].nuggets] == ["Warsaw is the capital"]
    first = server.log(url)[0]["body"]["messages"][0]["content"]
    assert [text in first for text in TEXTS] == [True, False, False]  # the first of the references
    judge.create_nuggets(ours, TOPICS, config, nugget_banks=banks, corpus=texts)
    assert "[1] Warsaw is the capital" in server.log(url)[4]["body"]["messages"][0]["content"]
    qrels = judge.create_qrels(ours, TOPICS, config, nugget_banks=banks, corpus=texts, filebase="x")
    qrels.verify(["q1", "q2"])
    assert {(row.topic_id, row.doc_id, row.grade) for row in qrels.rows} == {
        (topic, key, 2) for topic in ("q1", "q2") for key in IDS
    }
    board = judge.judge(ours, TOPICS, config, banks, qrels)
    board.verify("error", ["q1", "q2"])
    assert values(board, "strict_vital_score") == {"ours": 1.0}
    assert values(judge.judge(ours[:1], TOPICS, config, banks), "all_score") == {"ours": 0.5}
    with pytest.raises(UserError, match=r"^the nugget judge has no setting 'k'; there are: depth, max_nuggets, cache"):
        judge.create_nuggets(ours, TOPICS, config, corpus=texts, k=3)
    with pytest.raises(UserError, match=r"^the nugget judge needs nuggets"):
        judge.judge(ours, TOPICS, config)
    with pytest.raises(UserError, match=r"^nuggets of the kind NuggetBanks; these should be NuggetizerNuggetBanks"):
        judge.judge(ours, TOPICS, config, NuggetBanks())
    with pytest.raises(UserError, match=r"^passages come from the reports; set nugget_depends_on_responses"):
        judge.create_nuggets(None, TOPICS, config)


@pytest.mark.filterwarnings("default")
def test_a_workflow_of_autojudge_makes_nuggets_and_qrels(
    autojudge: ModuleType, tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from autojudge_base.cli import main
    from click.testing import CliRunner

    from autoais.formats.nuggetizer import read_nuggets

    page = (ROOT / "docs/handbook/reference/integrations.md").read_text("utf-8")
    workflow = page.split("## TREC AutoJudge")[1].split("```yaml\n")[2].split("```")[0]
    (tmp_path / "workflow.yml").write_text(workflow, "utf-8")
    (tmp_path / "runs").mkdir()
    write(tmp_path / "runs/ours", formats.write(ANSWERS, "trec-rag-25"))
    rows(tmp_path / "topics.jsonl", [{"request_id": one.id, "title": one.question} for one in ANSWERS])
    given = {"workflow": "workflow.yml", "rag-responses": "runs", "rag-topics": "topics.jsonl", "out-dir": "out"}
    argv = ["run", "--corpus", str(corpus(tmp_path))]
    argv += [part for name, value in given.items() for part in (f"--{name}", str(tmp_path / value))]
    for name, value in (("OPENAI_MODEL", "tiny"), ("OPENAI_BASE_URL", server.script(*nugget_steps()))):
        monkeypatch.setenv(name, value)
    done = CliRunner().invoke(main, argv)
    assert done.exit_code == 0, done.output
    (nuggets,), (qrels,) = (list((tmp_path / "out").rglob(name)) for name in ("*nuggets.jsonl", "*qrels.txt"))
    assert [bank.nuggets for bank in read_nuggets(nuggets)] == [(Nugget("Warsaw is the capital"),)] * 2
    assert read_qrels(qrels) == {topic: dict.fromkeys(sorted(IDS), 2) for topic in ("q1", "q2")}


def test_ragnarok_reads_back_what_we_write() -> None:
    (first, _) = (json.loads(line) for line in formats.write(ANSWERS, "ragnarok"))
    # castorini/ragnarok, src/ragnarok/data.py: the fields of `DataWriter`, the length in characters
    assert list(first) == ["topic_id", "topic", "references", "response_length", "answer"]
    assert first["response_length"] == 61
    assert first["answer"][1]["citations"] == [1, 2]
