"""Answers of other systems, and people's labels of answers, joined with a benchmark."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from autoais.base.answers import read_answers
from autoais.base.errors import UserError
from autoais.base.io.jsonl import dumps, read_objects
from autoais.judges.minilm import MiniLMJudge
from rag.base.errors import RagError
from rag.bench import open_run, run_benchmark, write_report
from rag.bench.compare import human_share
from rag.bench.folder import BenchRun
from rag.bench.predictions import split_predictions
from rag.bench.results import read_run
from tests.conftest import SHELF, Command, one_line_error
from tests.rag.bench.test_run import QUESTIONS, Towns, ways, write_benchmark

POLAND, CURIE, VISTULA = (row["question"] for row in QUESTIONS[:3])
CSV = f"""question,answer,attribution
{POLAND},Krakow,b#1
{POLAND},Warsaw,b#1
{CURIE},1867,a#9
Who asks this?,Nobody,a#1
"""


@pytest.fixture
def towns(tmp_path: Path) -> Towns:
    benchmark = write_benchmark(tmp_path, QUESTIONS, 'right = "answer_in_text"\nk = 3')

    def run(out: str = "RUN", **options: Any) -> BenchRun:  # noqa: ANN401
        return run_benchmark(benchmark, tmp_path / out, tmp_path / "data", **({"judge": "lexical"} | options))

    return run


def rows_of(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(dumps(row) + "\n" for row in rows), "utf-8")
    return path


def cited(question: str, answer: str, passage: str, **more: object) -> dict[str, Any]:
    """A row of answers.jsonl with one sentence that cites one passage."""
    return {
        "id": f"theirs-{question}", "question": question, "passages": [{"id": passage, "text": ""}],
        "sentences": [{"text": answer, "citations": [{"passage": passage}]}], **more,
    }  # fmt: skip


def test_predictions_are_joined_by_question(towns: Towns, tmp_path: Path, rag: Command) -> None:
    file = tmp_path / "theirs@v2.csv"
    file.write_text(CSV)
    arguments = ("--data", tmp_path / "data", "--predictions", file, "--judge", "lexical", "--out", tmp_path / "RUN")
    done = rag("bench", "run", tmp_path / "towns.toml", *arguments)
    assert done.returncode == 0, done.stderr
    run = open_run(tmp_path / "RUN")
    assert run.labels == ["theirs-v2"]
    assert "retrieve" not in run.record["stages"]
    assert not (tmp_path / "RUN" / "index").exists()  # the corpus was read, not indexed
    first, second, third, *_ = run.items("theirs-v2")
    assert (first.way, first.em, first.missing) == ("right_attributed", 1, False)
    assert first.passages["b#1"].text.startswith("Warsaw is the capital")
    assert (second.em, second.way) == (1, "right_unattributed")  # nobody knows a passage a#9
    assert (third.missing, third.way, third.em) == (True, "wrong_unattributed", 0)
    joined = run.metrics("theirs-v2")["predictions"]
    assert joined["unknown"] == {"count": 1, "examples": ["Who asks this?"]}
    assert joined["duplicates"]["count"] == 1
    assert joined["missing"] == {"count": 3, "examples": [row["question"] for row in QUESTIONS[2:]]}
    assert joined["not_in_corpus"] == {"count": 1, "examples": ["a#9"]}
    for remark in ("1 question outside the benchmark", "'Who asks this?'", "3 questions without an answer", "'a#9'"):
        assert remark in done.stderr


def test_released_answers_of_alce_are_predictions(towns: Towns, tmp_path: Path) -> None:
    """A result file as ALCE's run.py writes it, with the fields that its scripts add."""
    text = {i: t for i, _, t in SHELF}["b#1"]
    doc = {
        "id": "17",
        "title": "Warsaw",
        "text": text,
        "score": 1.5,
        "summary": "",
        "answers_found": [1],
        "rec_score": 1,
    }
    reference = {"context": "", "question": POLAND, "short_answers": ["Warsaw"], "wikipage": None}
    row = {"sample_id": "-7", "qa_pairs": [reference], "wikipages": [], "annotations": [{"long_answer": "Warsaw."}]}
    data = [
        row | {"question": POLAND, "docs": [doc], "answer": "Warsaw.", "prompt": "", "output": "Warsaw it is [1]."},
        row | {"question": CURIE, "sample_id": "8", "docs": [], "answer": "", "output": "In 1867."},  # closed book
    ]
    released = {"args": {"model": "gpt-3.5", "ndoc": 5}, "data": data, "total_cost": 0.1, "azure_filter_fail": ""}
    file = tmp_path / "asqa-gpt-3.5-gtr-shot2-ndoc5-42.json"
    file.write_text(json.dumps(released, indent=4), "utf-8")
    run = towns(predictions=[file])
    first, second, *_ = run.items("asqa-gpt-3.5-gtr-shot2-ndoc5-42")
    assert (first.way, first.cites) == ("right_attributed", ["b#1"])
    assert second.way == "right_unattributed"


RATINGS = [
    ("Post-4", POLAND, "Warsaw", "http://x#1", "Title: Warsaw\nSection: Site\n\nWarsaw is the capital of Poland.", "Y"),
    ("RTR-10", POLAND, "Krakow", "http://x#2", "Title: Krakow\n\nKrakow is older.", "N"),
    ("Post-4", CURIE, "1867", "", "", ""),
]


def test_released_answers_of_attributed_qa_are_split_by_system(towns: Towns, tmp_path: Path, rag: Command) -> None:
    file = tmp_path / "ratings.csv"
    columns = "system_name,question,answer,attribution,passage,human_rating,auto_ais,nli_score".split(",")
    with file.open("w", newline="", encoding="utf-8") as opened:
        rows = [(*row, "N", "0.1") for row in RATINGS]
        csv.writer(opened).writerows([["", *columns], *([number, *row] for number, row in enumerate(rows))])
    with pytest.raises(RagError, match=r"'Post-4', 'RTR-10' answer the same questions.*rag bench split .*ratings\.csv"):
        towns(predictions=[file])
    done = rag("bench", "split", file, "--to", tmp_path / "systems")
    assert done.returncode == 0, done.stderr
    files = [Path(line) for line in done.stdout.splitlines()]
    assert [path.name for path in files] == ["Post-4.jsonl", "RTR-10.jsonl"]
    run = towns("SPLIT", predictions=files)
    assert run.record["systems"] == {"Post-4": "Post-4", "RTR-10": "RTR-10"}
    assert [(item.short_answer, item.missing) for item in run.items("Post-4")[:3]] == [
        ("Warsaw", False), ("1867", False), (None, True),
    ]  # fmt: skip
    assert run.items("RTR-10")[0].short_answer == "Krakow"
    one_line_error(rag("bench", "split", file, "--to", tmp_path / "systems"), "Post-4.jsonl exists", "another folder")
    (tmp_path / "plain.csv").write_text(CSV)
    with pytest.raises(RagError, match="names no system; give the file as it is"):
        split_predictions(tmp_path / "plain.csv", tmp_path / "plain")


def test_released_answers_of_hagrid_are_predictions(towns: Towns, tmp_path: Path) -> None:
    """Of the answers to a question, the last one counts."""
    text = {i: t for i, _, t in SHELF}["b#1"]
    answers = [
        {"answer": answer, "answer_type": kind, "attributable": 1, "informative": 1,
         "sentences": [{"index": 0, "text": answer, "attributable": 1, "informative": 1}]}
        for kind, answer in (("short", "Krakow [1]."), ("long", "The capital is Warsaw [1]."))
    ]  # fmt: skip
    quotes = [{"idx": 1, "docid": "31717#0", "text": text}]
    rows = [{"query_id": "7", "query": POLAND, "quotes": quotes, "answers": answers}]
    run = towns(predictions=[rows_of(tmp_path / "dev.jsonl", rows)])
    assert (run.items("dev")[0].way, run.items("dev")[0].cites) == ("right_attributed", ["b#1"])
    assert run.metrics("dev")["predictions"]["duplicates"]["count"] == 1


def test_the_corpus_decides_what_a_passage_says(towns: Towns, tmp_path: Path) -> None:
    forged = cited(VISTULA, "The Vistula is 2,000 miles long.", "b#2")
    forged["passages"][0]["text"] = "The Vistula is 2,000 miles long."
    run = towns(predictions=[rows_of(tmp_path / "forged.jsonl", [forged])])
    item = run.items("forged")[2]
    assert item.passages["b#2"].text.startswith("The Vistula is the longest")
    assert item.way == "right_unattributed"
    assert run.metrics("forged")["predictions"]["other_text"] == {"count": 1, "examples": ["b#2"]}


def test_a_passage_that_the_file_invents_supports_nothing(towns: Towns, tmp_path: Path) -> None:
    invented = cited(VISTULA, "The Vistula is 2,000 miles long.", "made-up")
    invented["passages"][0] |= {"title": "Vistula", "text": "The Vistula is 2,000 miles long."}
    run = towns(predictions=[rows_of(tmp_path / "invented.jsonl", [invented])])
    item = run.items("invented")[2]
    assert item.way == "right_unattributed"
    assert (item.passages["made-up"].title, item.passages["made-up"].text) == ("", "")
    assert run.metrics("invented")["predictions"]["not_in_corpus"] == {"count": 1, "examples": ["made-up"]}


@pytest.mark.parametrize("indexed", [False, True])
def test_contexts_without_ids_are_found_in_the_corpus_by_their_text(
    towns: Towns, tmp_path: Path, indexed: bool
) -> None:
    texts = {i: t for i, _, t in SHELF}
    contexts = [f"  {texts['b#1'].replace(' ', chr(10), 1)}", texts["b#1"], "Krakow is older."]
    rows = [
        {"user_input": POLAND, "response": "Warsaw is the capital of Poland [2].", "retrieved_contexts": contexts},
        {"user_input": CURIE, "response": "Krakow is older [1].", "retrieved_contexts": contexts[2:]},
    ]
    run = towns(predictions=[rows_of(tmp_path / "ragas.jsonl", rows)], systems=["extractive"] if indexed else [])
    first, second, *_ = run.items("ragas")
    assert first.cites == ["b#1"]
    assert first.way == "right_attributed"
    assert list(first.passages) == ["b#1", "doc 3"]
    assert second.way == "wrong_unattributed"
    told = run.metrics("ragas")["predictions"]
    assert (told["other_id"]["examples"], told["not_in_corpus"]["examples"]) == (["b#1"], ["doc 1"])


def test_quotes_of_passages_found_by_their_text_are_verbatim_in_the_corpus(towns: Towns, tmp_path: Path) -> None:
    text = {i: t for i, _, t in SHELF}["b#1"]
    first, _, rest = text.partition(" ")
    given = f"\n {first}  \n{rest}"
    row = cited(POLAND, "Warsaw.", "theirs")
    row["passages"][0] |= {"text": given}
    last = rest.split()[-1]
    spans = [(2, len(given)), (given.rindex(last), len(given)), (0, 2)]
    row["sentences"][0]["citations"] = [
        {"passage": "theirs", "start": start, "end": end, "quote": given[start:end]} for start, end in spans
    ]
    run = towns(predictions=[rows_of(tmp_path / "theirs.jsonl", [row])])
    (answer,) = read_answers(tmp_path / "RUN" / "theirs" / "answers.jsonl")
    found = answer.sentences[0].citations
    assert [one.quote for one in found] == [text, last, None]  # white space is no quote
    assert [(one.passage, one.start, one.end) for one in found[:2]] == [
        ("b#1", 0, len(text)), ("b#1", text.rindex(last), len(text)),
    ]  # fmt: skip
    assert (found[2].start, found[2].end) == (None, None)
    assert run.items("theirs")[0].cites == ["b#1"]


def test_quotes_that_the_corpus_lacks_lose_their_place(towns: Towns, tmp_path: Path) -> None:
    forged = cited(VISTULA, "The Vistula is 2,000 miles long.", "b#2")
    forged["passages"][0]["text"] = text = "The Vistula is 2,000 miles long."
    forged["sentences"][0]["citations"][0] |= {"start": 0, "end": len(text), "quote": text}
    towns(predictions=[rows_of(tmp_path / "forged.jsonl", [forged])])
    (answer,) = read_answers(tmp_path / "RUN" / "forged" / "answers.jsonl")
    (citation,) = answer.sentences[0].citations
    assert (citation.passage, citation.start, citation.end, citation.quote) == ("b#2", None, None, None)


def test_two_passages_that_are_one_in_the_corpus_keep_their_own_spans(towns: Towns, tmp_path: Path) -> None:
    text = {i: t for i, _, t in SHELF}["b#1"]
    row = cited(POLAND, "Warsaw.", "b#1")
    row["passages"] = [{"id": "theirs", "text": text}, {"id": "b#1", "text": f"Note: {text}"}]
    row["sentences"][0]["citations"] = [
        {"passage": "theirs", "start": 0, "end": 6}, {"passage": "b#1", "start": 6, "end": 12},
    ]  # fmt: skip
    towns(predictions=[rows_of(tmp_path / "theirs.jsonl", [row])])
    (answer,) = read_answers(tmp_path / "RUN" / "theirs" / "answers.jsonl")
    assert [(one.passage, one.start, one.end) for one in answer.sentences[0].citations] == [("b#1", 0, 6)] * 2
    assert list(answer.passages) == ["b#1"]


def test_own_and_others_answers_stand_side_by_side(towns: Towns, tmp_path: Path) -> None:
    towns("ours", systems=["extractive"])
    answers = tmp_path / "ours" / "extractive" / "answers.jsonl"
    run = towns(systems=["extractive"], predictions=[answers])
    assert run.labels == ["extractive", "answers"]
    assert run.record["systems"]["answers"] == run.record["systems"]["extractive"]
    assert ways(run, "answers") == ways(run, "extractive")
    assert run.metrics("answers")["metrics"] == run.metrics("extractive")["metrics"]


def test_predictions_called_report_do_not_lie_in_the_folder_of_the_report(towns: Towns, tmp_path: Path) -> None:
    towns("ours", systems=["extractive"])
    answers = tmp_path / "report.jsonl"
    answers.write_bytes((tmp_path / "ours" / "extractive" / "answers.jsonl").read_bytes())
    assert towns(predictions=[answers], systems=[]).labels == ["report-2"]


@pytest.mark.parametrize(("label", "way"), [(True, "right_attributed"), (False, "right_unattributed")])
def test_people_judge_a_run_and_rate_answers_as_one(towns: Towns, tmp_path: Path, label: bool, way: str) -> None:
    row = cited(POLAND, "Warsaw is it.", "b#1")
    row["sentences"].append({"text": "Nobody lives there.", "citations": [{"passage": "b#2"}]})
    row["passages"].append({"id": "b#2", "text": ""})
    theirs = rows_of(tmp_path / "theirs.jsonl", [row])
    towns("first", predictions=[theirs])
    shown = [one for _, one in read_objects(tmp_path / "first" / "theirs" / "answers.jsonl")]
    labelled = rows_of(tmp_path / "labelled.jsonl", [one | {"attributable": label} for one in shown])
    run = towns(predictions=[theirs], judge=f"human:{labelled}")
    assert run.items("theirs")[0].way == way
    found = run.metrics("theirs")["metrics"]
    assert found["sentences"]["n"] == 0
    assert found["autoais"]["value"] == (1 / 5 if label else 0)  # four questions have no answer


def test_a_sample_leaves_other_answers_out(towns: Towns, tmp_path: Path) -> None:
    rows = [cited(f" {row['question']}  ", "Warsaw", "b#1", id=str(n)) for n, row in enumerate(QUESTIONS)]
    run = towns(predictions=[rows_of(tmp_path / "all.jsonl", rows)], limit=2)
    joined = run.metrics("all")["predictions"]
    assert (joined["answers"], joined["not_asked"], joined["unknown"]["count"]) == (2, 3, 0)


def test_values_out_of_range_are_unknown_and_the_run_can_be_read(towns: Towns, tmp_path: Path) -> None:
    row = cited(POLAND, "Warsaw is the capital of Poland.", "b#1", seconds=-1)
    row["trace"] = {"tokens": {"read": -5, "written": 3}}
    row["sentences"][0]["citations"][0] |= {"start": 2, "end": 5_000}
    other = cited("When was Curie born in Warsaw?", "In 1867.", "a#1", trace={"tokens": None})
    run = towns(predictions=[rows_of(tmp_path / "odd.jsonl", [row, other])])
    item = run.items("odd")[0]
    assert (item.seconds, item.tokens_read, item.tokens_written) == (None, None, 3)
    (citation,) = item.sentences[0].citations
    assert (citation.start, citation.end) == (None, None)
    read_run(tmp_path / "RUN")


def test_a_confidence_that_cannot_be_is_refused_with_its_line(towns: Towns, tmp_path: Path) -> None:
    sure = cited(POLAND, "Warsaw is the capital of Poland.", "b#1", confidence=87)
    with pytest.raises(UserError, match=r"sure\.jsonl:1: field 'confidence' should be a number from 0 to 1"):
        towns(predictions=[rows_of(tmp_path / "sure.jsonl", [sure])])


def test_predictions_for_something_else_are_refused(towns: Towns, tmp_path: Path) -> None:
    with pytest.raises(RagError, match="no answer has its question in the benchmark; do they belong together"):
        towns(predictions=[rows_of(tmp_path / "other.jsonl", [cited("Who?", "Nobody", "b#1")])])


def test_a_broken_file_of_predictions_is_told_before_any_system_answers(towns: Towns, tmp_path: Path) -> None:
    sound = rows_of(tmp_path / "sound.jsonl", [cited(POLAND, "Warsaw", "b#1")])
    broken = rows_of(tmp_path / "broken.jsonl", [cited(POLAND, "Warsaw", "b#1"), {"id": "x", "question": 3}])
    with pytest.raises(UserError, match=r"broken\.jsonl:2"):
        towns(systems=["extractive"], predictions=[sound, broken])
    assert not (tmp_path / "RUN").exists()
    broken.write_text(sound.read_text("utf-8"), "utf-8")
    assert towns(systems=["extractive"], predictions=[sound, broken]).labels == ["extractive", "sound", "broken"]


def test_the_last_of_two_answers_counts(towns: Towns, tmp_path: Path) -> None:
    rows = [cited(POLAND, "Krakow", "b#1", id="x"), cited(POLAND, "Warsaw", "b#1", id="y")]
    run = towns(predictions=[rows_of(tmp_path / "twice.jsonl", rows)])
    assert run.items("twice")[0].answer == "Warsaw"
    assert run.metrics("twice")["predictions"]["duplicates"] == {"count": 1, "examples": [POLAND]}


def test_a_model_that_fails_refuses_nothing(towns: Towns, tmp_path: Path) -> None:
    rows = [
        {"id": row["id"], "question": row["question"], "abstained": True, "failed": row["id"] == "4"}
        for row in QUESTIONS
    ]
    run = towns(predictions=[rows_of(tmp_path / "silent.jsonl", rows)])
    assert ways(run, "silent")["4"] == "wrong_unattributed"
    assert run.metrics("silent")["metrics"]["unanswerable_refused"]["value"] == 0
    assert run.metrics("silent")["metrics"]["answerable_refused"]["value"] == 1


def test_tokens_and_money_are_counted(towns: Towns, tmp_path: Path) -> None:
    trace = {"tokens": {"read": 1000, "written": 100}}
    rows = [cited(POLAND, "Warsaw", "b#1", trace=trace, seconds=2.0), cited(CURIE, "1867", "a#2", trace=trace, id="z")]
    run = towns(predictions=[rows_of(tmp_path / "paid.jsonl", rows)], price=(1.0, 10.0))
    metrics = run.metrics("paid")
    assert metrics["tokens"]["read"] == 2000
    assert metrics["money"] == {"price_per_million": [1.0, 10.0], "total": 0.004, "per_answer": 0.002}
    assert metrics["latency"] == {"p50": 2.0, "p95": 2.0, "mean": 2.0, "n": 1}


def test_human_labels_correct_the_judge(towns: Towns, tmp_path: Path) -> None:
    towns(systems=["extractive"])
    labelled = [row for _, row in read_objects(tmp_path / "RUN" / "extractive" / "answers.jsonl")]
    for row in labelled:
        row["attributable"] = row["id"] != "1"  # people disagree with the judge once
    labelled.append(cited(POLAND, "Another answer.", "b#1", attributable=True))
    human = rows_of(tmp_path / "human.jsonl", labelled)
    with pytest.raises(RagError, match="started with other human"):
        towns(resume=True, human=human, judge=None)
    metrics = towns(stage="measure", human=human).metrics("extractive")
    raw, corrected = metrics["metrics"]["autoais"], metrics["metrics"]["autoais_corrected"]
    assert raw["value"] == 0.6
    assert corrected["value"] == pytest.approx(0.4)
    assert corrected["interval95"][0] < 0.4 < corrected["interval95"][1]
    assert (corrected["labelled"], metrics["human"]["labels"], metrics["human"]["answers"]) == (3, 6, 5)
    few = rows_of(tmp_path / "few.jsonl", labelled[:1])
    again = towns(stage="measure", human=few).metrics("extractive")
    assert again["metrics"]["autoais_corrected"]["reason"] == "1 of the answers have human labels; 2 are needed"
    none = rows_of(tmp_path / "none.jsonl", [cited(POLAND, "Warsaw", "b#1")])
    with pytest.raises(RagError, match="no answer in it has a label"):
        towns(stage="measure", human=none)


@pytest.mark.usefixtures("undrawn")
def test_human_labels_reach_the_sentences_and_the_report(towns: Towns, tmp_path: Path) -> None:
    both = [
        {"text": "Warsaw is the capital of Poland.", "citations": [{"passage": "b#1"}]},
        {"text": "Curie was born in 1867.", "citations": [{"passage": "a#2"}]},
    ]
    passages = {"passages": [{"id": "b#1", "text": ""}, {"id": "a#2", "text": ""}]}
    rows = [
        {"id": "1", "question": POLAND, "sentences": both, **passages},
        {"id": "2", "question": CURIE, "sentences": both, **passages},
        {"id": "3", "question": VISTULA, "sentences": both, **passages},
        {"id": "4", "question": QUESTIONS[3]["question"], "sentences": both, **passages},
        {"id": "5", "question": QUESTIONS[4]["question"], "sentences": both, **passages},
    ]
    theirs = rows_of(tmp_path / "theirs.jsonl", rows)
    told = [
        rows[0] | {"sentences": [both[0] | {"attributable": True}, both[1] | {"attributable": False}]},
        rows[1] | {"attributable": True},  # then every sentence is
        rows[2] | {"attributable": False},
        rows[3] | {"attributable": False},  # one of them is not, but which?
        cited(QUESTIONS[4]["question"], "Never given.", "b#1", attributable=True),
    ]
    # What is not worth verifying has no label, and the answer's follows from the others.
    told.append(rows[4] | {"sentences": [both[0] | {"attributable": True}, both[1] | {"worthy": False}]})
    told += [told[0] | {"id": "again"}, told[2] | {"id": "no", "attributable": True}]
    run = towns(predictions=[theirs], human=rows_of(tmp_path / "human.jsonl", told))
    labels = [[sentence.human for sentence in item.sentences] for item in run.items("theirs")]
    assert labels == [[True, False], [True, True], [None, None], [None, None], [True, None]]
    assert run.metrics("theirs")["human"]["tied"] == 1
    assert run.metrics("theirs")["human"]["answers"] == 4
    (system,) = read_run(tmp_path / "RUN").systems
    assert human_share(system) == 0.5  # of the four answers without a tie
    written = write_report(tmp_path / "RUN", passages=False)
    assert "5 sentences with human labels" in written.page.read_text("utf-8")


def test_a_judge_that_is_part_of_the_system_is_said(tmp_path: Path, rag: Command) -> None:
    benchmark = write_benchmark(tmp_path, QUESTIONS[:2])
    arguments = ("--data", tmp_path / "data", "--out", tmp_path / "RUN", "--predictions")
    row = cited(POLAND, "Warsaw is the capital of Poland.", "b#1", system=f"post-hoc({MiniLMJudge().name})")
    done = rag("bench", "run", benchmark, *arguments, rows_of(tmp_path / "a.jsonl", [row]))
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "RUN" / "a" / "metrics.json").read_text())["same_judge"] == 1
    assert "its AutoAIS is circular" in done.stderr
