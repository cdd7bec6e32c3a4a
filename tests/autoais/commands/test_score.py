"""`autoais score` as people run it on other systems' files: every format in, Attributed QA's files out, bad input."""

import csv
import hashlib
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from autoais import UserError
from autoais import score as autoais_score
from autoais.formats.aqa import read_scores
from autoais.judges.prompts import read_prompt
from tests.chat_server import run_chat_server
from tests.conftest import Command, one_line_error

LEX = ("--judge", "lexical")
CAPITAL, RIVER, CATS, NOBEL = (
    "what is the capital of poland", "longest river in poland", "what do cats drink", "who won the nobel prize in 1903",
)  # fmt: skip
BENCHMARK = [
    {"question": CAPITAL, "answer": ["Warsaw"]},
    {"question": RIVER, "answer": ["Vistula", "the Vistula"]},
    {"question": CATS, "answer": ["milk"]},
    {"question": NOBEL, "answer": ["Marie Curie"]},
]
CORPUS = [
    {"id": "w#1", "contents": "« Warsaw » « Warsaw » Warsaw, on the river, is a capital city."},
    {"id": "v#1", "contents": "« Vistula » « Vistula, Course » A river.\nThe Vistula is 1,047 kilometres long."},
    {"id": "c#1", "contents": "« Cat » « Cats, Food » A cat drinks milk, \"they say\"."},
]  # fmt: skip
PREDICTIONS = [
    (CAPITAL, "Cracow", "w#1"),
    (RIVER, "1,047 kilometres", "v#1"),
    (CATS, "Milk!", "c#1"),
    (CAPITAL, "Warsaw", "w#1"),
    ("who is unknown", "Nobody", "w#1"),
]


def csv_text(rows: Sequence[tuple[str, ...]], header: str = "question,answer,attribution", end: str = "\n") -> str:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator=end).writerows(rows)
    return header + end + buffer.getvalue()


def jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


class Shop:
    """A folder with the benchmark, the corpus and predictions, and `autoais score` over them."""

    def __init__(self, folder: Path, autoais: Command) -> None:
        self.folder, self.autoais = folder, autoais
        self.questions = jsonl(folder / "nq.jsonl", BENCHMARK)
        self.corpus = jsonl(folder / "corpus.jsonl", CORPUS)
        self.predictions = folder / "predictions.csv"
        self.write(csv_text(PREDICTIONS))

    def write(self, text: str) -> None:
        self.predictions.write_bytes(text.encode())

    def score(self, *options: str | Path) -> Any:  # noqa: ANN401  (a finished process)
        given = (*LEX, "--corpus", self.corpus, "--questions", self.questions)
        return self.autoais("score", self.predictions, *given, *options)

    def report(self, *options: str | Path) -> dict[str, Any]:
        result = self.score("--json", *options)
        assert result.returncode == 0, result.stderr
        assert "NaN" not in result.stdout
        report: dict[str, Any] = json.loads(result.stdout)
        return report


@pytest.fixture
def shop(tmp_path: Path, autoais: Command) -> Shop:
    return Shop(tmp_path, autoais)


# --- Attributed QA -------------------------------------------------------------------------------------------------


def test_predictions_are_scored_over_every_question_of_the_benchmark(shop: Shop) -> None:
    scores, ais = shop.folder / "scores.txt", shop.folder / "ais.csv"
    result = shop.score("--scores", scores, "--ais-csv", ais, "--json")
    report = json.loads(result.stdout)
    assert (report["format"], report["mode"], report["questions"]) == ("aqa-predictions", "default", 4)
    assert (report["metrics"]["autoais"]["floor"], report["metrics"]["autoais"]["total"]) == (0.75, 4)
    assert read_scores(scores) == {"AutoAIS": 0.75, "SQuAD (em)": 50.0, "SQuAD (f1)": 50.0}
    assert report["notes"] == {
        "repeated_questions": {"count": 1, "text": "rows with a repeated question, only the last one kept"},
        "outside_benchmark": {
            "count": 1,
            "text": "answers to questions outside the benchmark, dropped (the first: 'who is unknown')",
        },
    }
    assert "1 answer to questions outside the benchmark, dropped" in result.stderr
    assert "scores.txt is from judge lexical@2/0.7/statement.v1" in result.stderr
    assert ais.read_bytes().decode() == (
        "question,answer,passage,autoais\r\n"
        f'{CAPITAL},Warsaw,"Title: Warsaw\n\nWarsaw, on the river, is a capital city.",Y\r\n'
        f'{RIVER},"1,047 kilometres","Title: Vistula\nSection: Course\n\nA river.\n'
        'The Vistula is 1,047 kilometres long.",Y\r\n'
        f'{CATS},Milk!,"Title: Cat\nSection: Cats, Food\n\nA cat drinks milk, ""they say"".",Y\r\n'
    )


def test_google_2023_gives_the_released_scripts_bytes(shop: Shop) -> None:
    shop.corpus.write_text("{broken\n" + shop.corpus.read_text())
    scores, ais = shop.folder / "scores.txt", shop.folder / "ais.csv"
    report = shop.report("--scores", scores, "--ais-csv", ais, "--compat", "google-2023")
    assert (report["mode"], report["provenance"]["mode"]) == ("google-2023", "google-2023")
    assert report["metrics"]["autoais"]["undecided"] == 0
    assert report["notes"]["broken_lines"]["count"] == 1
    # the river's words stand behind the first newline; the last row's question is in every row, though it was dropped
    assert scores.read_bytes() == b"AutoAIS: 0.5\nSQuAD (em): 50.0\nSQuAD (f1): 50.0\n"
    assert ais.read_bytes().decode() == (
        "question,answer,passage,autoais\r\n"
        'who is unknown,Warsaw,"Title: Warsaw\n\nWarsaw, on the river, is a capital city.",Y\r\n'
        'who is unknown,"1,047 kilometres","Title: Vistula\nSection: Course\n\nA river.",N\r\n'
        'who is unknown,Milk!,"Title: Cat\nSection:  Food\n\nA cat drinks milk, ""they say"".",Y\r\n'
    )


def test_undecided_is_a_no_in_google_2023_and_shown_apart_otherwise(shop: Shop) -> None:
    shop.write(csv_text([(CAPITAL, "it", "w#1"), (CATS, "milk", "c#1")]))
    autoais = shop.report()["metrics"]["autoais"]
    assert (autoais["n"], autoais["undecided"], autoais["floor"]) == (3, 1, 0.25)
    autoais = shop.report("--compat", "google-2023")["metrics"]["autoais"]
    assert (autoais["n"], autoais["undecided"], autoais["value"]) == (4, 0, 0.25)


def test_nothing_against_a_reference_of_signs_alone_has_f1_0_in_google_2023(shop: Shop) -> None:
    jsonl(shop.questions, [{"question": CAPITAL, "answer": ["("]}, {"question": CATS, "answer": ["milk", "#"]}])
    shop.write(csv_text([(CATS, "#", "c#1")]))
    for options, f1 in (((), 1.0), (("--compat", "google-2023"), 0.0)):
        metrics = shop.report(*options)["metrics"]
        assert (metrics["em"]["value"], metrics["f1"]["value"]) == (1.0, f1)


def test_a_broken_line_of_the_corpus_ends_the_run_unless_it_may_be_skipped(shop: Shop) -> None:
    shop.corpus.write_text("{broken\n" + shop.corpus.read_text())
    one_line_error(shop.score(), "corpus.jsonl:1", "not JSON")
    assert shop.report("--skip-bad")["notes"]["broken_lines"]["count"] == 1


def test_modes_and_outputs_that_cannot_be(shop: Shop, autoais: Command) -> None:
    one_line_error(shop.score("--compat", "nope"), "no mode called 'nope'; there is: google-2023")
    answers = jsonl(shop.folder / "a.jsonl", [{"id": "1", "question": "?", "sentences": []}])
    one_line_error(autoais("score", answers, "--compat", "google-2023"), "this file is answers")
    before = shop.predictions.read_bytes()
    one_line_error(shop.score("--ais-csv", shop.predictions), "would be overwritten")
    one_line_error(shop.score("--scores", shop.corpus), "would be overwritten")
    assert shop.predictions.read_bytes() == before
    result = autoais("score", shop.predictions, *LEX, "--corpus", shop.corpus, "--scores", shop.folder / "s.txt")
    assert result.returncode == 2
    assert "em is absent, because no question has reference answers" in result.stderr
    assert not (shop.folder / "s.txt").exists()


def test_an_output_that_cannot_be_written_is_told_before_the_judge_is_asked(shop: Shop, autoais: Command) -> None:
    for option in ("--report", "--scores", "--ais-csv", "--out", "--cache"):
        for unwritable in ("/proc/x/y", shop.corpus / "y"):
            one_line_error(shop.score(option, unwritable), f"{unwritable}: cannot be written: ")
    assert sorted(path.name for path in shop.folder.iterdir()) == ["corpus.jsonl", "nq.jsonl", "predictions.csv"]
    assert shop.score("--report", shop.folder / "new" / "folder" / "r.json").returncode == 0


def test_a_disk_that_is_full_at_the_end_does_not_take_the_result_away(shop: Shop) -> None:
    result = shop.score("--report", "/dev/full", "--json")
    assert result.returncode == 2
    assert "error: /dev/full: cannot be written: No space left on device" in result.stderr
    assert json.loads(result.stdout)["questions"] == 4


# --- other formats -------------------------------------------------------------------------------------------------

DOCS = [
    {"title": "Warsaw", "text": "Warsaw is the capital of Poland."},
    {"title": "Vistula", "text": "The Vistula flows north."},
]


def test_strict_and_normalised_alce_stand_side_by_side(tmp_path: Path, autoais: Command) -> None:
    outputs = [
        "The capital of Poland is Warsaw. [1] The Vistula flows north. [2]",  # spec H1, row 5
        "The capital of Poland is Warsaw [0].\nThe Vistula flows north [2].",
        "",
    ]
    file = tmp_path / "alce.json"
    data = [{"question": f"{n}?", "docs": DOCS, "output": output} for n, output in enumerate(outputs)]
    file.write_text(json.dumps({"args": {}, "data": data}))
    result = autoais("score", file, *LEX, "--json")
    metrics = json.loads(result.stdout)["metrics"]
    names = [name for name in metrics if name.startswith("citation_")]
    assert names == [f"citation_{name}{kind}" for name in ("recall", "precision", "f1") for kind in ("", "_strict")]
    # normalised: both sentences of 1; of 2 the second, [0] a wrong citation; the empty answer 0
    assert metrics["citation_recall"]["value"] == pytest.approx((1 + 0.5 + 0) / 3)
    assert metrics["citation_precision"]["value"] == pytest.approx((1 + 0.5 + 0) / 3)
    # strict: 1 has a sentence without citation, one with the wrong one, and an empty one with [2]; 2 has its first
    # line alone, which cites the last document; the empty answer is left out
    assert metrics["citation_recall_strict"]["value"] == 0
    assert (metrics["citation_recall_strict"]["n"], metrics["citation_recall"]["n"]) == (2, 3)
    assert "citation_recall_strict" in autoais("score", file, *LEX, "--metrics", "alce").stdout


def test_undecided_that_counts_as_no_is_told_in_the_table(tmp_path: Path, autoais: Command) -> None:
    def shown(*outputs: str) -> list[str]:
        file = tmp_path / "alce.json"
        data = [{"question": f"{n}?", "docs": DOCS, "output": output} for n, output in enumerate(outputs)]
        file.write_text(json.dumps({"args": {}, "data": data}))
        lines: list[str] = autoais("score", file, *LEX, "--all").stdout.splitlines()
        return lines

    lines = shown("It was that [1].", "The capital of Poland is Warsaw [1].")  # the first has no word to look for
    (strict,) = (line.split() for line in lines if line.startswith("citation_recall_strict"))
    assert (strict[1], strict[5:8]) == ("0.500", ["1", "as", "no"])
    assert any(line.startswith("as no: undecided sentences and claims count as no") for line in lines)
    absent = [line for line in lines if line.startswith("absent, because no answer lists that many passages: ")]
    assert [line.endswith("answer_hit@100") and "Success@5," in line for line in absent] == [True]
    (nothing,) = (line for line in shown("It was that [1].") if line.startswith("absent, because nothing was decided"))
    assert "citation_recall_strict" in nothing


def hagrid(key: int, *answers: dict[str, Any]) -> dict[str, Any]:
    quotes = [{"idx": n, "docid": f"{key}#{n}", "text": doc["text"]} for n, doc in enumerate(DOCS, 1)]
    return {"query_id": key, "query": f"question {key}?", "quotes": quotes, "answers": list(answers)}


def labelled(*sentences: tuple[str, int | None, int | None]) -> dict[str, Any]:
    rows = [{"text": text, "informative": i, "attributable": a} for text, i, a in sentences]
    return {"answer": " ".join(text for text, _, _ in sentences), "sentences": rows}


def test_hagrids_labels_are_rolled_up_and_compared_with_the_judge(tmp_path: Path, autoais: Command) -> None:
    yes, wrong = "The capital of Poland is Warsaw [1].", "The capital of Poland is Warsaw [2]."
    rows = [
        hagrid(1, labelled((yes, 1, 1), (wrong, 0, 0)), labelled((yes, 0, 1))),
        hagrid(2, labelled((yes, 1, 1)), labelled((yes, 1, None)), labelled((wrong, 0, 1))),
    ]
    result = autoais("score", jsonl(tmp_path / "h.jsonl", rows), *LEX, "--json")
    human = json.loads(result.stdout)["human"]
    shape = {name: (one["n"], one["yes"], one["no"]) for name, one in human["labels"].items()}
    assert shape == {
        "informative": (5, 3, 2),
        "attributable": (4, 3, 1),
        "informative_sentences": (6, 3, 3),
        "attributable_sentences": (5, 4, 1),
    }
    assert human["data"] == {
        "questions": 2, "answers": 5, "citations": 6,
        "quotes_per_question": 2, "answers_per_question": 2.5, "citations_per_answer": 1.2,
    }  # fmt: skip
    # people: yes no yes yes yes; the judge: yes no yes yes no
    agreement = human["agreement"]["sentences"]
    assert (agreement["n"], agreement["undecided"]) == (5, 0)
    assert agreement["macro_f1"] == pytest.approx((6 / 7 + 2 / 3) / 2, abs=1e-6)
    table = autoais("score", tmp_path / "h.jsonl", *LEX).stdout
    assert "Human labels" in table
    assert "75.0" in table


def test_lius_annotations_give_his_recall_precision_and_f1(tmp_path: Path, autoais: Command) -> None:
    full, partial = "Citation Completely Supports Statement", "Citation Partially Supports Statement"
    judged: dict[str, tuple[bool, str | None, list[tuple[str, str]]]] = {  # the golden example of spec D3
        "One.": (True, "Yes", [("[1]", full), ("[2]", partial)]),
        "Two.": (True, "Yes", [("[1]", partial), ("[2]", partial)]),
        "Three.": (True, "No", []),
        "Four?": (False, None, []),
    }
    row: dict[str, Any] = {
        "id": "q-you", "query": "?", "response": " ".join(judged), "split": "allsouls", "system_name": "you",
        "citations": [],
        "statements_to_citation_texts": {key: [text for text, _ in one[2]] for key, one in judged.items()},
        "annotation": {
            "fluency": "Agree",
            "perceived_utility": "Neutral",
            "statement_to_annotation": {
                key: {
                    "statement_is_verification_worthy": worthy,
                    "statement_supported": union,
                    "citation_annotations": [
                        {"citation_text": text, "citation_supports": level, "evidence": None} for text, level in levels
                    ] if worthy else None,
                }
                for key, (worthy, union, levels) in judged.items()
            },
        },
    }  # fmt: skip
    result = autoais("score", jsonl(tmp_path / "l.jsonl", [row]), *LEX, "--json")
    assert result.returncode == 0, result.stderr
    human = json.loads(result.stdout)["human"]
    values = {name: one["value"] for name, one in human["metrics"].items()}
    assert values["liu_recall"] == pytest.approx(2 / 3, abs=1e-6)
    assert values["liu_precision"] == 0.75
    assert values["liu_f1"] == pytest.approx(12 / 17, abs=1e-6)
    assert (values["fluency"], values["perceived_utility"]) == (4, 3)
    assert [human["labels"][f"{level}_support"]["yes"] for level in ("full", "partial", "none")][:2] == [1, 3]
    # nobody knows the texts: no judge can agree or disagree, but on the one that cites nothing
    assert human["agreement"]["sentences"]["n"] == 1


def test_the_judge_is_compared_with_levels_of_support_of_single_citations(tmp_path: Path, autoais: Command) -> None:
    def judged(doc: int, level: str) -> dict[str, Any]:
        return {
            "query": "?", "response": "...", "statement": "The capital of Poland is Warsaw.",
            "source_text": DOCS[doc]["text"], "source_url": f"https://{doc}.example",
            "source_supports_statement": level,
        }  # fmt: skip

    rows = [judged(0, "complete_support"), judged(1, "no_support")]
    human = json.loads(autoais("score", jsonl(tmp_path / "l.jsonl", rows), *LEX, "--json").stdout)["human"]
    assert human["agreement"] == {"citations": {"n": 2, "undecided": 0, "macro_f1": 1.0, "cohen_kappa": 1.0}}
    assert human["labels"]["full_support"]["value"] == 0.5


def test_a_judge_that_decides_nothing_is_shown_beside_people_all_the_same(tmp_path: Path, autoais: Command) -> None:
    sentence = {"text": "It is so.", "attributable": True, "citations": [{"passage": "p"}]}  # no content words
    row = {"id": "1", "question": "?", "sentences": [sentence], "passages": [{"id": "p", "text": "It is so."}]}
    said = autoais("score", jsonl(tmp_path / "l.jsonl", [row]), *LEX, "--metrics", "none").stdout
    assert "against people on 0 sentences: macro-F1 -, kappa - (1 undecided)" in said


def test_answers_of_other_systems_meet_the_benchmark_by_the_text_of_the_question(
    tmp_path: Path, autoais: Command
) -> None:
    file = tmp_path / "alce.json"
    output = "The capital of Poland is Warsaw [1]."
    data = [
        {"sample_id": "x", "question": CAPITAL, "docs": DOCS, "output": output},
        {"question": "?", "docs": [], "output": ""},
    ]
    file.write_text(json.dumps({"data": data}))
    questions = jsonl(tmp_path / "nq.jsonl", BENCHMARK)
    report = json.loads(autoais("score", file, *LEX, "--questions", questions, "--json").stdout)
    assert (report["questions"], report["answered"]) == (4, 1)
    assert report["metrics"]["answer_recall"]["value"] == 0.25
    text = "answers to questions outside the benchmark, dropped (the first: '2', '?')"
    assert report["notes"] == {"outside_benchmark": {"count": 1, "text": text}}
    assert report["metrics"]["em"] == {"value": None, "reason": "the system gives no short answers"}


def test_a_file_without_labels_has_no_human_part(shop: Shop) -> None:
    assert "human" not in shop.report()


# --- how it came about ---------------------------------------------------------------------------------------------


def test_the_report_is_the_same_bytes_each_time_and_names_what_it_rests_on(shop: Shop) -> None:
    saved = shop.folder / "r.json"
    report = shop.report("--report", saved)
    written = saved.read_bytes()
    assert json.loads(written) == report
    assert shop.report("--report", saved) == report
    assert saved.read_bytes() == written
    made = report["provenance"]
    assert made["judge"] == {"name": "lexical@2/0.7/statement.v1"}
    assert set(made["inputs"]) == {"answers", "questions", "corpus1"}
    assert {"python", "numpy"} <= set(made["versions"])


def test_judge_options(shop: Shop) -> None:
    assert shop.report("--judge-option", "threshold=0.9")["judge"] == "lexical@2/0.9/statement.v1"
    one_line_error(shop.score("--judge-option", "threshold"), "should be KEY=VALUE")
    one_line_error(shop.score("--judge-option", "treshold=1"), "has no option 'treshold'; there are: threshold")
    one_line_error(shop.score("--judge-option", "threshold=high"), "should be float, found 'high'")
    one_line_error(shop.score("--judge-option", "threshold=nan"), "not a finite number")


# --- bad input -----------------------------------------------------------------------------------------------------


def test_missing_columns_are_named(shop: Shop) -> None:
    shop.write("question,answer\nwhat,that\n")
    one_line_error(
        shop.score(),
        *("predictions.csv:1", "no known format has the fields answer, question"),
        "aqa-predictions also has attribution; ",
    )
    one_line_error(shop.score("--format", "aqa-predictions"), "predictions.csv:1", "column attribution is missing")


def test_an_unknown_attribution_is_not_attributable_and_still_earns_em(shop: Shop) -> None:
    shop.write(csv_text([(CAPITAL, "Warsaw", "nowhere#1"), (CATS, "milk", ""), (RIVER, "1,047 kilometres", "v#1")]))
    report = shop.report()
    assert report["metrics"]["autoais"]["floor"] == 0.25
    assert report["metrics"]["em"]["value"] == 0.5
    assert report["notes"]["not_in_corpus"]["count"] == 1
    out = shop.folder / "out.jsonl"
    shop.score("--out", out)
    reasons = {row["text"]: row["reason"] for row in map(json.loads, out.read_text().splitlines())}
    assert (reasons["Warsaw"], reasons["milk"]) == ("no text is known for what was cited", "nothing was cited")


def test_a_sentence_that_cites_only_what_its_row_has_not_says_so(tmp_path: Path, autoais: Command) -> None:
    sentences = [{"text": "Ann did.", "citations": [{"passage": "zz"}]}, {"text": "Ann won.", "citations": []}]
    file, out = tmp_path / "a.jsonl", tmp_path / "out.jsonl"
    jsonl(file, [{"id": "1", "question": "Who?", "sentences": sentences, "passages": [{"id": "a", "text": "Ann"}]}])
    assert autoais("score", file, *LEX, "--out", out).returncode == 0
    reasons = [json.loads(line)["reason"] for line in out.read_text().splitlines()]
    assert reasons == ["no text is known for what was cited", "nothing was cited"]


def test_judgements_go_down_a_pipe(shop: Shop, autoais_process: Command) -> None:
    shop.autoais = autoais_process
    result = shop.score("--out", "/dev/stdout")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout.splitlines()[0])["verdict"] in ("attributable", "not_attributable")


@pytest.mark.parametrize("option", ["--out", "--report", "--scores", "--ais-csv", "--cache"])
def test_a_folder_for_an_output_is_refused_before_anything_is_judged(shop: Shop, option: str) -> None:
    result = shop.score(option, shop.folder)
    one_line_error(result, f"{shop.folder} is a folder; name a file for the output")
    assert result.stdout == ""


def test_a_corpus_with_other_fields_is_told_which_fields_there_are(shop: Shop) -> None:
    wanted = "the nearest is miracl, which also has docid"
    jsonl(shop.corpus, [{"id": row["id"], "title": "", "text": "Some."} for row in CORPUS])
    one_line_error(
        shop.score(), "corpus.jsonl:1: not a corpus format known here", "found fields id, text, title", wanted
    )
    jsonl(shop.corpus, [{"key": "x", "text": "Some."}])
    one_line_error(shop.score(), "corpus.jsonl:1: not a corpus format known here", "found fields key, text", wanted)


def test_without_any_text_there_is_nothing_to_score(shop: Shop, autoais: Command) -> None:
    out = shop.folder / "out.jsonl"
    says = "predictions.csv: no text is known for any passage that the answers cite; "
    result = autoais("score", shop.predictions, *LEX, "--questions", shop.questions, "--out", out)
    one_line_error(result, f"{says}give a corpus with the texts (--corpus FILE)")
    assert not out.exists()
    with pytest.raises(UserError, match="give a corpus with the texts"):
        autoais_score(shop.predictions, judge="lexical")
    jsonl(shop.corpus, [row | {"id": f"other-{row['id']}"} for row in CORPUS])
    one_line_error(shop.score(), f"{says}the corpus is another than theirs")


def test_with_some_texts_the_note_says_how_many_are_missing(tmp_path: Path, autoais: Command) -> None:
    passages = [{"id": "a", "text": ""}, {"id": "b", "text": "Ann did."}]
    sentences = [{"text": "Ann did.", "citations": [{"passage": key}]} for key in "ab"]
    row = {"id": "1", "question": "Who?", "passages": passages, "sentences": sentences}
    result = autoais("score", jsonl(tmp_path / "a.jsonl", [row]), *LEX)
    assert result.returncode == 0
    assert "1 cited passage without a text, not attributable (a corpus adds texts: --corpus FILE)" in result.stderr


def test_a_file_without_answers_is_refused_and_abstentions_are_scored(tmp_path: Path, autoais: Command) -> None:
    asked = [{"id": str(n), "question": "Who?", "answers": ["Ann"]} for n in range(3)]
    file = jsonl(tmp_path / "q.jsonl", asked)
    one_line_error(autoais("score", file, *LEX), "q.jsonl: none of its 3 rows has an answer; score takes answers")
    checked = autoais("validate", file)
    says = "no row of the file has an answer or says `abstained`: these are questions, which `score` cannot judge"
    assert (checked.returncode, checked.stdout.splitlines()) == (
        0, [f"{file}: warning: {says}", f"{file}: answers, 3 records, no faults"],
    )  # fmt: skip
    refused = jsonl(file.with_name("refused.jsonl"), [{"id": "a", "question": "?", "abstained": True}])
    assert "questions" not in autoais("validate", refused).stdout
    with pytest.raises(UserError, match="answers: none of its 3 rows has an answer"):
        autoais_score(asked, judge="lexical")
    report = json.loads(
        autoais("score", jsonl(file, [row | {"abstained": True} for row in asked]), *LEX, "--json").stdout
    )
    assert report["metrics"]["autoais"]["floor"] == 0
    uncited = [row | {"sentences": [{"text": "Ann did.", "citations": []}]} for row in asked]
    assert autoais("score", jsonl(file, uncited), *LEX).returncode == 0


def test_predictions_to_another_benchmark_are_an_error(shop: Shop) -> None:
    shop.write(csv_text([("who is unknown", "Nobody", "w#1")]))
    one_line_error(shop.score(), "no answer has its question in the benchmark")


def test_two_answers_to_a_question_of_the_benchmark_are_an_error(tmp_path: Path, autoais: Command) -> None:
    file = jsonl(tmp_path / "h.jsonl", [hagrid(1, labelled(("A [1].", 1, 1)), labelled(("B [1].", 1, 1)))])
    questions = jsonl(tmp_path / "q.jsonl", [{"id": "7", "question": "question 1?"}])
    one_line_error(
        autoais("score", file, *LEX, "--questions", questions), "question '7' ('question 1?') has two answers"
    )


@pytest.mark.parametrize(
    "bend",
    [
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text.replace("\n", "\r\n") + "\r\n",
        lambda text: "\n" + text,
    ],
)
def test_a_byte_order_mark_and_other_line_ends_change_nothing(shop: Shop, bend: Any) -> None:  # noqa: ANN401
    plain = shop.report()
    shop.write(bend(csv_text(PREDICTIONS)))
    assert shop.report()["metrics"] == plain["metrics"]


def test_odd_texts_are_counted_and_nothing_is_lost(tmp_path: Path, autoais: Command) -> None:
    passages = [
        {"id": "nul", "text": "Warsaw\x00 is the\x00 capital of Poland."},
        {"id": "empty", "text": ""},
        {"id": "long", "text": "other words " * 100_000 + "Warsaw is the capital of Poland."},
        {"id": "latin", "text": "Warsaw is the capital of Poland."},
    ]
    claims = [
        ("Warsaw is the\x00 capital of Poland.", "nul"),
        ("", "latin"),
        ("Warsaw is the capital of Poland.", "empty"),
        ("Warsaw is the capital of Poland.", "long"),
        ("ワルシャワはポーランドの首都です。", "latin"),
        ("Столица Польши — Варшава.", "latin"),
    ]
    rows = [
        {"id": n, "question": "?", "passages": passages, "sentences": [{"text": text, "citations": [{"passage": key}]}]}
        for n, (text, key) in enumerate(claims)
    ]
    out = tmp_path / "j.jsonl"
    result = autoais("score", jsonl(tmp_path / "a.jsonl", rows), *LEX, "--out", out, "--json")
    assert result.returncode == 0, result.stderr
    verdicts = [json.loads(line)["verdict"] for line in out.read_text().splitlines()]
    assert verdicts == ["attributable", *["not_attributable"] * 2, "attributable", *["not_attributable"] * 2]
    assert json.loads(result.stdout)["metrics"]["autoais"]["total"] == 6
    assert "NaN" not in result.stdout
    assert "\x00" not in autoais("score", tmp_path / "a.jsonl", *LEX).stdout


def test_nul_bytes_in_a_csv_are_characters_like_others(shop: Shop) -> None:
    shop.write(csv_text([(CAPITAL, "War\x00saw", "w#1"), (CATS, "milk", "c\x00#1")]))
    report = shop.report("--ais-csv", shop.folder / "ais.csv")
    assert (report["questions"], report["metrics"]["autoais"]["floor"]) == (4, 0)
    assert (shop.folder / "ais.csv").read_bytes().count(b",N\r\n") == 2


# --- cache ---------------------------------------------------------------------------------------------------------


def test_a_cache_cut_in_half_loses_only_its_end_and_the_report_is_the_same(shop: Shop) -> None:
    cache = shop.folder / "cache.jsonl"
    plain = shop.report("--cache", cache)
    whole = cache.read_bytes()
    cache.write_bytes(whole[: len(whole) // 2])
    result = shop.score("--cache", cache, "--json")
    assert "an incomplete last line removed" in result.stderr
    assert json.loads(result.stdout)["metrics"] == plain["metrics"]
    assert sorted(cache.read_bytes().splitlines()) == sorted(whole.splitlines())
    cache.write_bytes(b"\x00\xff not a cache")
    one_line_error(shop.score("--cache", cache), "is not a judgement cache")


@pytest.mark.slow
def test_a_killed_run_goes_on_from_its_cache_to_the_same_report(tmp_path: Path, autoais: Command) -> None:
    passage = {"id": "p", "text": " ".join(f"word{n} is here." for n in range(200))}
    rows = [
        {"id": n, "question": "?", "passages": [passage],
         "sentences": [{"text": f"word{n % 200} is here, said {n}.", "citations": [{"passage": "p"}]}]}
        for n in range(2000)
    ]  # fmt: skip
    file, cache, out = jsonl(tmp_path / "a.jsonl", rows), tmp_path / "cache.jsonl", tmp_path / "j.jsonl"
    plain = json.loads(autoais("score", file, *LEX, "--json").stdout)
    root = Path(__file__).parents[3]
    process = subprocess.Popen(
        [sys.executable, "-c", "from autoais.commands.main import main; main()",
         "score", file, *LEX, "--cache", cache, "--out", out],
        env=os.environ | {"PYTHONPATH": str(root / "eval")},
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while (not cache.exists() or cache.stat().st_size < 20_000) and time.monotonic() < deadline:
        time.sleep(0.002)
    process.kill()
    process.wait(timeout=60)
    kept = cache.read_bytes().count(b"\n") - 1
    assert 0 < kept < 2000
    assert not out.exists()
    resumed = autoais("score", file, *LEX, "--cache", cache, "--json")
    assert json.loads(resumed.stdout)["metrics"] == plain["metrics"]
    assert cache.read_bytes().count(b"\n") - 1 == 2000


def test_an_llm_judge_is_named_with_its_prompts_hash_and_how_its_server_took_it(shop: Shop) -> None:
    with run_chat_server() as server:
        base_url = server.script({"say_if": [["Warsaw", "Full support"]], "say": "No support"})
        options = ("--judge", "llm:tiny", "--judge-option", "prompt=support.v1", "--corpus", shop.corpus, "--json")
        result = shop.autoais("score", shop.predictions, *options, OPENAI_BASE_URL=base_url)
    assert result.returncode == 0, result.stderr
    judge = json.loads(result.stdout)["provenance"]["judge"]
    assert judge == {
        "name": f"llm:tiny@{base_url.removeprefix('http://')}/4000+512/support.v1",
        "prompt": {"name": "support.v1", "sha256": hashlib.sha256(read_prompt("support.v1")).hexdigest()},
        "served": ["tiny-1 fp_9"],
        "refused": [],
        "usage": {"requests": 4, "prompt_tokens": 28, "completion_tokens": 8},
    }
    assert "4 requests" in result.stderr


def test_a_file_of_questions_is_not_scored_in_silence(tmp_path: Path, autoais: Command) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "1", "question": "Who?", "answers": ["Nobody"]},
        {"id": "2", "question": "Who?", "abstained": True},
    ]
    done = autoais("score", jsonl(tmp_path / "questions.jsonl", rows), *LEX, "--scores", tmp_path / "scores.txt")
    said = done.stderr.splitlines()
    assert said[0] == "1 answer without sentences, not attributable (if meant: `abstained` in answers.jsonl)"
    assert said[1] == "error: no scores file: em is absent, because the system gives no short answers"


def test_a_wrong_option_or_argument_is_one_line(autoais: Command, rag: Command) -> None:
    one_line_error(
        autoais("evaluate-judge", "x", "--worst", "-1"),
        "autoais evaluate-judge: Invalid value for '--worst'",
        "see autoais evaluate-judge",
    )
    one_line_error(autoais("compare", "a"), "autoais compare: Missing argument 'b'")
    one_line_error(autoais("score", "a", "--jugde", "x"), "autoais score: No such option: --jugde")
    one_line_error(rag("bench", "run", "handbook", "--limit", "0"), "rag bench run: Invalid value for '--limit'")
    one_line_error(rag("update", "docs.index"), "rag: no command 'update'; there is rag index update")
    assert autoais("nothing").stderr.splitlines()[0].split() == "Usage: autoais [OPTIONS] COMMAND [ARGS]...".split()


@pytest.mark.parametrize("field", ["output", "answer"])
def test_a_text_with_markers_is_an_answer(tmp_path: Path, autoais: Command, field: str) -> None:
    passages = [{"id": "a", "text": "Warsaw is the capital of Poland."}, {"id": "b", "text": "Krakow has a castle."}]
    text = "Warsaw is the capital of Poland [1]. Krakow has a castle. [2][7]"
    rows = [
        {"id": "1", "question": "What is the capital of Poland?", field: text, "passages": passages},
        {"id": "2", "question": "What has Krakow?", field: "Krakow has a castle [1].", "passages": passages},
    ]
    path, out = jsonl(tmp_path / "a.jsonl", rows), tmp_path / "out.jsonl"
    checked = autoais("validate", path)
    assert (checked.returncode, checked.stdout.splitlines()) == (0, [f"{path}: answers, 2 records, no faults"])
    report = json.loads(autoais("score", path, *LEX, "--out", out, "--json").stdout)
    assert (report["metrics"]["autoais"]["value"], report["metrics"]["autoais"]["n"]) == (0.5, 2)
    assert (report["answered"], report["unresolved_markers"]) == (2, 1)
    found = [(row["text"], row["cites"]) for row in map(json.loads, out.read_text().splitlines())]
    castle = "Krakow has a castle."
    assert found == [("Warsaw is the capital of Poland.", ["a"]), (castle, ["b"]), (castle, ["a"])]
    assert autoais_score(rows, judge="lexical").metrics["autoais"].value == 0.5


def test_answers_outside_the_benchmark_are_dropped_and_the_first_is_named(tmp_path: Path, autoais: Command) -> None:
    sentences = [{"text": "Ann did.", "citations": [{"passage": "a"}]}]
    passages = [{"id": "a", "text": "Ann did."}]
    rows = [{"id": str(n), "question": f"Who {n}?", "sentences": sentences, "passages": passages} for n in range(4)]
    path = jsonl(tmp_path / "a.jsonl", rows)
    questions = jsonl(tmp_path / "q.jsonl", [{"id": "0", "question": "Who 0?"}, {"id": "x", "question": "Who 3?"}])
    done = autoais("score", path, *LEX, "--questions", questions, "--json")
    report = json.loads(done.stdout)
    assert (report["questions"], report["metrics"]["autoais"]["value"]) == (2, 1.0)
    assert "2 answers to questions outside the benchmark, dropped (the first: '1', 'Who 1?')" in done.stderr
    assert autoais_score(rows, questions=questions, judge="lexical").metrics["autoais"].n == 2
    other = jsonl(tmp_path / "q.jsonl", [{"id": "9", "question": "Who 9?"}])
    one_line_error(
        autoais("score", path, *LEX, "--questions", other), "answer '0': neither its id nor its question 'Who 0?'"
    )


def test_a_text_that_is_no_json_is_named(tmp_path: Path, autoais: Command) -> None:
    path = tmp_path / "plain.txt"
    path.write_text("Who is the mayor?\n")
    one_line_error(autoais("score", path, *LEX), "plain.txt:1: not JSON, and as the header of a CSV it has no rows")
