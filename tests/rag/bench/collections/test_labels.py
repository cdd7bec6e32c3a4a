"""Imports, packing with labels, and the report of labelled collections."""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autoais.base.answers import CitedAnswer, read_answers, write_answers
from autoais.base.io.jsonl import write_atomic
from autoais.base.types import Citation, CitedSentence, Passage, Support
from rag.base.errors import FormatError, RagError
from rag.bench.collections import (
    build_collection,
    import_collection,
    open_collection,
    pack_collection,
    report_collection,
)
from rag.bench.collections.card import card
from rag.bench.collections.report.analyses import Analyses, open_similarity
from rag.bench.collections.report.figures import _indices
from rag.bench.collections.statistics import Statistics, question_key
from rag.bench.output_folder import lock_folder
from tests.commands import ROOT
from tests.conftest import Command, one_line_error
from tests.rag.bench.collections.conftest import write_lines, write_rows

GENERATED = ROOT / "eval/reproductions/inputs"
TABLE3 = {
    "train": {"informative": (3214, 2704, 510, 84.1), "attributable": (754, 547, 207, 72.5)},
    "dev": {"informative": (1318, 1179, 139, 89.5), "attributable": (1157, 826, 331, 71.4)},
}


def hagrid_row(**labels: int | None) -> dict[str, Any]:
    """A line of HAGRID's file, of our own writing, in the order of its fields."""
    return {
        "query_id": 7,
        "query": "Where is Warsaw?",
        "quotes": [
            {"idx": 1, "docid": "1#0", "text": "Warsaw lies on the Vistula, in Poland."},
            {"idx": 2, "docid": "2#0", "text": "Poland is in Europe."},
        ],
        "answers": [
            {
                "answer": "It lies in Poland. It lies on the Vistula [1]. Poland is in Europe [1][2].",
                "answer_type": "long",
                "informative": 1,
                "attributable": 0,
                "sentences": [
                    {
                        "index": 0,
                        "text": "It lies in Poland. It lies on the Vistula [1].",
                        "informative": 1,
                        "attributable": 1,
                    },
                    {"index": 1, "text": "Poland is in Europe [1][2].", "informative": 0, "attributable": 0},
                ],
            },
            {
                "answer": "In Poland [2].",
                "answer_type": "short",
                "informative": 1,
                "attributable": None,
                "sentences": [{"index": 0, "text": "In Poland [2].", "informative": 1, "attributable": None}],
            },
        ],
    }


def test_hagrids_file_is_read_and_written_back_identical(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "dev.jsonl", [hagrid_row()])
    made = import_collection(file, tmp_path / "c", name="ours")
    assert (made.folder / "hagrid.jsonl").read_bytes() == file.read_bytes()
    assert made.manifest["labels"]["all"]["informative"]["yes"] == 2
    assert made.manifest["labels"]["all"]["attributable"]["total"] == 1
    assert made.manifest["format"] == "hagrid"


def test_a_question_may_have_half_a_character(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "a.jsonl", [json.dumps({"id": "a", "question": "Why \ud83d?", "abstained": True})])
    assert len(list(import_collection(file, tmp_path / "c", dev=0.5).answers())) == 1


def test_other_formats_keep_their_labels(tmp_path: Path) -> None:
    cited = CitedSentence(
        "Warsaw lies on the Vistula.", (Citation("u", support=Support.PARTIAL),), attributable=False, worthy=True
    )
    answer = CitedAnswer("a1", "Where?", (cited,), {"u": Passage("u", text="Warsaw is a city.")}, extra={"system": "s"})
    from autoais import formats

    for name in ("liu-annotations", "liu-judgements", "alce", "trec-rag-24", "trec-rag-25", "answers"):
        file = write_lines(tmp_path / f"{name}.json", list(formats.write([answer], name)))
        made = import_collection(file, tmp_path / name)
        (read,) = made.answers()
        assert read.sentences[0].cites == ("u",), name
        if name.startswith("liu"):
            assert read.sentences[0].support == {"u": Support.PARTIAL}
            assert made.manifest["labels"]["all"]["support"] == {"full": 0, "partial": 1, "none": 0}
        if name == "liu-annotations":
            assert read.sentences[0].worthy is True
        assert list(formats.validate(made.folder / "hagrid.jsonl", "hagrid")) == []
    with_text = import_collection(
        tmp_path / "trec-rag-24.json",
        tmp_path / "texts",
        corpus=[write_rows(tmp_path / "corpus.jsonl", [{"docid": "u", "title": "", "text": "Warsaw is a city."}])],
        dev=1.0,
    )
    assert next(with_text.answers()).passages["u"].text == "Warsaw is a city."


def test_answers_with_an_empty_output_are_left_out_and_counted(tmp_path: Path, rag: Command) -> None:
    """ALCE's files have them where a model wrote nothing."""
    docs = [{"id": "p", "title": "Ada", "text": "Ada did it."}]
    said = {"question": "Who?", "docs": docs, "output": "Ada did it [1]."}
    silent = {"question": "Why?", "docs": docs, "output": " "}
    file = tmp_path / "alce.json"
    file.write_text(json.dumps({"args": {}, "data": [silent, said]}))
    done = rag("collect", "import", file, tmp_path / "c")
    assert (done.returncode, "1 answer with an empty output left out" in done.stderr) == (0, True)
    (answer,) = open_collection(tmp_path / "c").answers()
    assert answer.question == "Who?"
    file.write_text(json.dumps({"args": {}, "data": [silent]}))
    one_line_error(rag("collect", "import", file, tmp_path / "d"), "every answer has an empty output")


def test_what_cannot_be_imported(tmp_path: Path, rag: Command) -> None:
    file = write_rows(tmp_path / "dev.jsonl", [hagrid_row()])
    one_line_error(rag("collect", "import", tmp_path / "none.jsonl", tmp_path / "c"), "no such file")
    assert rag("collect", "import", file, tmp_path / "c").returncode == 0
    one_line_error(rag("collect", "import", file, tmp_path / "c"), "holds a collection")
    row: dict[str, object] = {
        "id": "q/1",
        "question": "Who?",
        "output": "Ada did it [1].",
        "sentences": [],
        "passages": [{"id": "p", "text": "Ada did it."}],
    }
    one_line_error(
        rag("collect", "import", write_rows(tmp_path / "o.jsonl", [row]), tmp_path / "e"), "have no sentences", "'q/1'"
    )
    broken = write_lines(tmp_path / "b.jsonl", ['{"query": "q", "quotes": [], "answers": [{"answer": 3}]}'])
    with pytest.raises(FormatError, match=r"b\.jsonl:1"):
        import_collection(broken, tmp_path / "d")
    one_line_error(
        rag("collect", "build", tmp_path / "c", "--questions", file, "--resume"), "cannot be continued", "imported"
    )


def relabelled(path: Path, change: Callable[[CitedAnswer], CitedAnswer], out: Path) -> Path:
    write_atomic(out, write_answers(change(answer) for answer in read_answers(path)))
    return out


def yes(answer: CitedAnswer) -> CitedAnswer:
    sentences = tuple(replace(one, informative=True, attributable=False) for one in answer.sentences)
    return replace(answer, sentences=sentences, extra={"rated_by": 3})  # the facts besides may be gone


def test_labels_are_packed_into_all_files(asked: Path, tmp_path: Path) -> None:
    built = build_collection(tmp_path / "c", asked, dev=0.34)
    before = {side: (built.folder / f"hagrid-{side}.jsonl").read_text() for side in ("train", "dev")}
    labelled = relabelled(built.folder / "answers.jsonl", yes, tmp_path / "labelled.jsonl")
    packed = pack_collection(built.folder, labelled)
    told = packed.manifest["labels"]["all"]["informative"]
    assert [told[key] for key in ("total", "yes", "no", "share")] == [3, 3, 0, 1.0]
    assert packed.manifest["labels"]["all"]["attributable"]["no"] == 3
    assert [answer.extra["query_id"] for answer in packed.answers()] == ["10", "11", "12"]
    for side, text in before.items():
        now = (built.folder / f"hagrid-{side}.jsonl").read_text()
        assert '"informative": 1, "attributable": 0' in now
        bare = now.replace('"informative": 1', '"informative": null').replace(
            '"attributable": 0', '"attributable": null'
        )
        assert bare == text
    assert "No person has judged" not in (built.folder / "README.md").read_text()
    again = {path.name: path.read_bytes() for path in built.folder.iterdir() if path.is_file()}
    pack_collection(built.folder)
    assert {path.name: path.read_bytes() for path in built.folder.iterdir() if path.is_file()} == again
    with pytest.raises(RagError, match="packed with labels"):
        build_collection(built.folder, asked, dev=0.34, resume=True)


@pytest.mark.usefixtures("undrawn")
def test_simulated_labels_are_called_simulated(asked: Path, tmp_path: Path) -> None:
    built = build_collection(tmp_path / "c", asked)

    def simulated(answer: CitedAnswer) -> CitedAnswer:
        return replace(yes(answer), extra={"simulated_labels": True})

    labelled = relabelled(built.folder / "answers.jsonl", simulated, tmp_path / "labelled.jsonl")
    packed = pack_collection(built.folder, labelled)
    text = (built.folder / "README.md").read_text("utf-8")
    drawn = "Simulation: a program drew the labels of 3 answers, or some of them. No person judged the answers."
    assert f"**{drawn}**" in text
    report = report_collection(packed.folder, judge="none", similarity="static")
    assert report.record["labelled_by"] == {"people": 0, "simulated": 3}
    page = report.page.read_text("utf-8")
    assert drawn in page
    assert "Labels of people" not in page
    pack_collection(built.folder, relabelled(built.folder / "answers.jsonl", yes, tmp_path / "people.jsonl"))
    assert "\nPeople judged 3 answers.\n" in (built.folder / "README.md").read_text("utf-8")


@pytest.mark.usefixtures("undrawn")
def test_simulated_labels_among_those_of_people_are_counted(asked: Path, tmp_path: Path, rag: Command) -> None:
    built = build_collection(tmp_path / "c", asked)

    def some(answer: CitedAnswer) -> CitedAnswer:
        return answer if answer.id == "12/1" else replace(yes(answer), extra={"simulated_labels": answer.id == "10/1"})

    packed = pack_collection(built.folder, relabelled(built.folder / "answers.jsonl", some, tmp_path / "l.jsonl"))
    assert packed.manifest["labelled_by"] == {"people": 1, "simulated": 1}
    told = "a program drew the labels of 1 answer, or some of them. People alone judged 1 answer."
    assert told in (built.folder / "README.md").read_text("utf-8")
    assert told in rag("collect", "report", built.folder, "--judge", "none", "--similarity", "static").stdout


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda answer: replace(answer, id=f"{answer.id}x"), "it is of another collection"),
        (lambda answer: replace(answer, question="Why?"), "it is of another collection"),
        (lambda answer: replace(answer, id=answer.id.replace("12", "13")), "is missing"),
        (lambda answer: replace(answer, question=answer.question.replace("born", "dead")), "more than labels differs"),
    ],
)
def test_other_answers_are_not_packed(
    change: Callable[[CitedAnswer], CitedAnswer], words: str, asked: Path, tmp_path: Path
) -> None:
    built = build_collection(tmp_path / "c", asked)
    before = (built.folder / "answers.jsonl").read_bytes()
    other = relabelled(built.folder / "answers.jsonl", change, tmp_path / "other.jsonl")
    with pytest.raises(RagError, match=words):
        pack_collection(built.folder, other)
    assert (built.folder / "answers.jsonl").read_bytes() == before


def test_hagrids_file_is_not_packed(asked: Path, tmp_path: Path) -> None:
    built = build_collection(tmp_path / "c", asked)
    with pytest.raises(RagError, match="is in the format hagrid; give answers"):
        pack_collection(built.folder, built.folder / "hagrid.jsonl")


def test_ties_and_what_the_export_says_of_its_study_are_packed(asked: Path, tmp_path: Path, rag: Command) -> None:
    built = build_collection(tmp_path / "c", asked)

    def tied(answer: CitedAnswer) -> CitedAnswer:
        tie = {"ties": [{"sentence": 0, "citation": None}]} if answer.id == "10/1" else {}
        return replace(yes(answer), extra=tie)

    out = tmp_path / "out"
    out.mkdir()
    labelled = relabelled(built.folder / "answers.jsonl", tied, out / "answers.jsonl")
    told = {
        "people": [
            {"id": "ada", "done": 3},
            {"id": "bob", "done": 2},
            {"id": "eve", "done": 3},
            {"id": "me", "done": 0},
        ],
        "without": ["eve"],
        "alpha": {"attributable": 0.5, "informative": None},
        "ties": 1,
        "notes": ["items of the study that are not finished: 1 of 3"],
        "files": {"answers.jsonl": {"sha256": hashlib.sha256(labelled.read_bytes()).hexdigest()}},
    }
    (out / "manifest.json").write_text(json.dumps(told))
    assert (
        "study: items of the study that are not finished: 1 of 3"
        in rag("collect", "pack", built.folder, "--answers", labelled).stderr
    )
    text = (built.folder / "README.md").read_text("utf-8")
    assert "- Annotators: 2; ties without a label: 1; Krippendorff's alpha: attributable 0.50\n" in text
    assert [answer.extra.get("ties") for answer in read_answers(built.folder / "answers.jsonl")] == [
        [{"sentence": 0, "citation": None}], None, None,
    ]  # fmt: skip
    labelled.write_text(labelled.read_text("utf-8").replace("true", "false"), "utf-8")  # of another study
    pack_collection(built.folder, labelled)
    assert "Annotators" not in (built.folder / "README.md").read_text("utf-8")


def test_the_rows_of_an_import_are_of_one_data_set(asked: Path, tmp_path: Path) -> None:
    built = build_collection(tmp_path / "c", asked).folder / "answers.jsonl"
    rows = [json.loads(line) for line in built.read_text("utf-8").splitlines()]
    for number, row in enumerate(rows):
        row["dataset"] = f"old {number}"
    made = import_collection(write_rows(tmp_path / "mixed.jsonl", rows), tmp_path / "M")
    from autoais import formats

    assert {answer.extra["dataset"] for answer in made.answers()} == {"M"}
    assert {answer.extra["dataset"] for answer in formats.read(made.folder / "hagrid.jsonl")} == {"M"}


def test_more_answers_than_the_collection_has(asked: Path, tmp_path: Path) -> None:
    built = build_collection(tmp_path / "c", asked)
    more = [*read_answers(built.folder / "answers.jsonl"), CitedAnswer("new", "Why?")]
    write_atomic(tmp_path / "more.jsonl", write_answers(more))
    with pytest.raises(RagError, match="'new' is not in"):
        pack_collection(built.folder, tmp_path / "more.jsonl")


@pytest.mark.usefixtures("undrawn")
@pytest.mark.slow
@pytest.mark.parametrize("split", ["train", "dev"])
def test_table_3_of_the_paper(split: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    made = report_collection(GENERATED / f"hagrid-{split}.jsonl.gz", tmp_path / "r", judge="lexical")
    for label, (total, there, none, percent) in TABLE3[split].items():
        one = made.record["table3"]["all"][label]
        assert (one["total"], one["yes"], one["no"], round(100 * one["share"], 1)) == (total, there, none, percent)
    found = {figure["name"]: figure["data"] for figure in made.record["figures"]}
    assert found["figure-3a"]["groups"]["attributable"]["n"] == TABLE3[split]["attributable"][1]
    assert made.record["autoais"]["labels"] == 2 * TABLE3[split]["attributable"][0]


def labelled_answer(key: str, quotes: int, cites: list[list[int]], **labels: bool) -> CitedAnswer:
    passages = {f"p{n}": Passage(f"p{n}", text=f"Warsaw has {n} bridges. It is old.") for n in range(1, quotes + 1)}
    sentences = tuple(
        CitedSentence("Warsaw has 1 bridges.", tuple(Citation(f"p{n}") for n in one), attributable=True)
        for one in cites
    )
    return CitedAnswer(key, f"Question {key}?", sentences, passages, **labels)  # type: ignore[arg-type]


def test_the_numbers_of_the_figures() -> None:
    analyses, statistics = Analyses(open_similarity("static")), Statistics()
    for answer in (
        labelled_answer("a", 2, [[1], [1, 2]], informative=True, attributable=False),
        labelled_answer("b", 2, [[1]], informative=True),
        labelled_answer("c", 4, [[4], []], informative=False),
    ):
        analyses.add(answer)
        statistics.add(answer)
    analyses.close()
    assert analyses.quotes == {
        "informative": [2.0, 2.0], "not informative": [4.0], "attributable": [2.0, 4.0], "not attributable": [2.0],
    }  # fmt: skip
    assert analyses.figure5() == {2: [0.75, 0.25], 4: [0.0, 0.0, 0.0, 1.0]}
    few = {3: [0.9, 0.07, 0.03], 1: [1.0]}
    assert _indices(few).text == "3 quotes: [1] 90 %, 2 more together 10 %; 1 quote: [1] 100 %."  # type: ignore[union-attr]
    assert analyses.similarities["attributable"][0] == 1.0  # the same sentence
    assert analyses.similarities["attributable"][2] < 1.0  # "2 bridges"
    assert [len(one) for one in analyses.similarities.values()] == [1, 0, 5, 0]  # by the labels of sentences
    assert analyses.coverage[1] == 1.0
    assert analyses.density[1] == 4.0
    sizes = statistics.table2()
    assert (sizes["questions"], sizes["answers"], sizes["citations"], sizes["uncited_sentences"]) == (3, 3, 5, 1)
    assert sizes["quotes_per_question"] == pytest.approx(8 / 3)


def test_a_report_of_a_labelled_collection(asked: Path, tmp_path: Path, rag: Command) -> None:
    pytest.importorskip("matplotlib")
    built = build_collection(tmp_path / "c", asked, systems=["reader", "extractive"], dev=0.34)
    pack_collection(built.folder, relabelled(built.folder / "answers.jsonl", yes, tmp_path / "l.jsonl"))
    result = rag("collect", "report", built.folder)
    assert result.returncode == 0, result.stderr
    record = json.loads((built.folder / "report/report.json").read_text())
    assert [figure["name"] for figure in record["figures"]] == ["figure-3a", "figure-3b", "figure-4", "figure-5"]
    assert list(record["table2"]) == ["all", "train", "dev"]
    assert record["autoais"]["judge"].startswith("minilm@")
    shares = record["autoais"]["attributable_by"]
    assert (shares["all"]["people"]["value"], shares["all"]["judge"]["value"]) == (0.0, 1.0)
    assert list(shares["systems"]) == ["extractive", "reader"]
    assert "a stand-in for BERTScore" in record["similarity"]
    assert "Labels of people" in (built.folder / "report/report.html").read_text("utf-8")
    told = {figure["name"]: figure["text"] for figure in record["figures"]}
    assert told["figure-3b"].startswith("n counts pairs of a labelled answer sentence and a cited quote. ")
    for figure in record["figures"]:
        for kind in ("svg", "png"):
            assert (built.folder / f"report/figures/{figure['name']}.{kind}").stat().st_size > 1000
    first = {path: path.read_bytes() for path in (built.folder / "report").rglob("*") if path.is_file()}
    assert rag("collect", "report", built.folder).returncode == 0
    assert {path: path.read_bytes() for path in first} == first


@pytest.mark.usefixtures("undrawn")
def test_a_report_says_what_it_lacks(asked: Path, tmp_path: Path, rag: Command) -> None:
    pytest.importorskip("matplotlib")
    built = build_collection(tmp_path / "c", asked)
    result = rag("collect", "report", built.folder)
    assert "no labels of people" in result.stderr
    record = json.loads((built.folder / "report/report.json").read_text())
    assert record["table3"] == {}
    assert record["autoais"] is None
    assert [figure["name"] for figure in record["figures"]] == ["figure-4", "figure-5"]
    one_line_error(rag("collect", "report", built.folder / "answers.jsonl"), "--out FOLDER")
    one_line_error(rag("collect", "report", built.folder, "--judge", "nobody"), "no judge called 'nobody'")
    one_line_error(rag("collect", "report", built.folder, "--similarity", "x"), "no similarity called 'x'")
    empty = write_lines(tmp_path / "empty.jsonl", [])
    assert rag("collect", "report", empty, "--out", tmp_path / "r").returncode == 2


def test_hostile_text_does_not_leave_the_page(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from selectolax.lexbor import LexborHTMLParser

    bad = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\u202e"
    answer = replace(labelled_answer("a", 1, [[1]], informative=True), question=bad, extra={"system": bad})
    file = tmp_path / "<b>x.jsonl"
    write_atomic(file, write_answers([answer]))
    page = report_collection(file, tmp_path / "r", judge="none").page.read_text("utf-8")
    tree = LexborHTMLParser(page)
    assert not tree.css("script")
    assert not tree.css("main img:not([src^='data:'])")
    assert "\u202e" not in page
    policy = re.search(r'content="(default-src[^"]*)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert not re.search(r"(?:src|href)=\"https?:", page)


def test_a_question_written_otherwise_stays_in_one_part() -> None:
    written = ("Who wrote Kindred?", "who wrote  Kindred", 'Who wrote the "Kindred"?')
    assert len({question_key(CitedAnswer("a", one)) for one in written}) == 1
    assert question_key(CitedAnswer("a", "?")) != question_key(CitedAnswer("b", "!"))


def test_the_card_names_both_licences_and_a_sample(asked: Path, tmp_path: Path) -> None:
    built = build_collection(tmp_path / "c", asked, limit=2, licence="CC-BY-4.0", text_licence="Apache-2.0")
    text = (built.folder / "README.md").read_text("utf-8")
    assert "license:\n- cc-by-4.0\n- apache-2.0\n" in text
    assert "- Sample: at most 2 of the questions, drawn with seed 0" in text
    assert "3 because later reason" in card({**built.manifest, "filtered": {"later reason": 3}})


def test_support_and_part_labels_are_counted() -> None:
    statistics = Statistics()
    sentence = CitedSentence("A.", (Citation("p", support=Support.FULL),), worthy=True)
    statistics.add(CitedAnswer("a", "Q?", (sentence,), {"p": Passage("p", text="A.")}))
    assert statistics.table3()["support"] == {"full": 1, "partial": 0, "none": 0}
    assert statistics.table3()["sentence_worthy"]["yes"] == 1
    assert Statistics().table3() == {}


def test_a_sentence_that_is_not_worth_verifying_needs_no_label() -> None:
    quotes = {name: Passage(name, text="A.") for name in "pq"}
    claim = CitedSentence("A.", (Citation("p"),), attributable=True, worthy=True)
    phrase = CitedSentence("I hope this helps.", worthy=False)
    statistics = Statistics()
    statistics.add(CitedAnswer("a", "Q?", (claim, phrase), quotes))
    statistics.add(CitedAnswer("b", "Q?", (replace(claim, attributable=False), phrase), {"p": quotes["p"]}))
    statistics.add(CitedAnswer("c", "R?", (phrase,), {}))  # nothing to verify: no label
    statistics.add(CitedAnswer("d", "S?", (claim, replace(claim, attributable=None)), quotes))  # a label is missing
    attributable = statistics.table3()["attributable"]
    assert (attributable["total"], attributable["yes"]) == (2, 1)
    assert statistics.table2()["quotes_per_question"] == pytest.approx(4 / 3)  # two, none and two


PACKED = """
import hashlib, os, shutil, signal, sys
from pathlib import Path
from rag.bench.collections import open_collection, pack_collection
from rag.bench.collections.folder import NEW, READY

made, folder, labels = map(Path, sys.argv[1:])
left = 0

def event(name, arguments):
    global left
    if name in ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir") and str(folder) in str(arguments[0]):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

def files():
    found = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    for line in found["SHA256SUMS"].decode().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256(found[name]).hexdigest() == digest, name
    return found

def run(nth):
    if os.fork() == 0:
        global left
        left = nth
        sys.addaudithook(event)
        pack_collection(folder, labels)
        os._exit(0)
    return os.wait()[1]

shutil.copytree(made, folder)
before = files()
assert run(0) == 0
after = files()
seen, kills = set(), 0
while True:
    shutil.rmtree(folder)
    shutil.copytree(made, folder)
    if run(kills + 1) == 0:
        break
    kills += 1
    open_collection(folder)
    now = files()
    assert now in (before, after), kills
    seen.add(now == after)
    pack_collection(folder, labels)
    assert {**files(), "collection.json": b"", "README.md": b"", "SHA256SUMS": b""} == {
        **after, "collection.json": b"", "README.md": b"", "SHA256SUMS": b""}
    assert not (folder / NEW).exists() and not (folder / READY).exists()
assert seen == {True, False}
print(kills)
"""


def test_labels_are_packed_into_all_files_or_none_whenever_it_is_killed(asked: Path, tmp_path: Path) -> None:
    built = build_collection(tmp_path / "made", asked, dev=0.34)
    labelled = relabelled(built.folder / "answers.jsonl", yes, tmp_path / "labelled.jsonl")
    argv = [sys.executable, "-c", PACKED, str(built.folder), str(tmp_path / "c"), str(labelled)]
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}"}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 40  # before every file that is opened, moved or removed


def test_labels_that_cannot_be_written_leave_the_collection_as_it_was(asked: Path, tmp_path: Path) -> None:
    built = build_collection(tmp_path / "c", asked, dev=0.34)
    before = {path: path.read_bytes() for path in built.folder.rglob("*") if path.is_file()}
    labelled = relabelled(built.folder / "answers.jsonl", yes, tmp_path / "labelled.jsonl")
    limit = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    size = (built.folder / "answers.jsonl").stat().st_size + 100  # enough for the answers, too little for the manifest
    assert size < (built.folder / "collection.json").stat().st_size
    code = f"{limit}resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size})); "
    code += "from rag.commands.main import main; main()"
    argv = [sys.executable, "-c", code, "collect", "pack", str(built.folder), "--answers", str(labelled)]
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}"}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done
    assert "cannot be written: File too large" in done.stderr
    assert {path: path.read_bytes() for path in built.folder.rglob("*") if path.is_file()} == before


@pytest.mark.usefixtures("undrawn")
def test_a_report_and_a_pack_do_not_meet(asked: Path, tmp_path: Path, rag: Command) -> None:
    pytest.importorskip("matplotlib")
    folder = build_collection(tmp_path / "c", asked).folder
    report = ("collect", "report", folder, "--judge", "none", "--similarity", "static")
    with lock_folder(folder):
        one_line_error(rag(*report), str(folder), "another process is using it")
        one_line_error(rag(*report, "--out", tmp_path / "r"), str(folder), "another process is using it")
    with lock_folder(folder, is_shared=True):  # as a report holds it
        one_line_error(rag("collect", "pack", folder), "another process is using it")
        assert rag(*report, "--out", tmp_path / "r").returncode == 0
    with lock_folder(tmp_path / "r"):
        one_line_error(rag(*report, "--out", tmp_path / "r"), str(tmp_path / "r"), "another process is using it")
    assert rag(*report, "--out", folder).returncode == 0
    one_line_error(rag("collect", "report", tmp_path, "--judge", "none"), "is it the folder of a collection?")
    assert not (tmp_path / "report").exists()


def test_the_card_names_the_language(asked: Path, tmp_path: Path, rag: Command) -> None:
    build = ("collect", "build", tmp_path / "a", "--questions", asked)
    one_line_error(rag(*build, "--language", "English"), "a code such as en or pt-BR, not 'English'")
    done = rag(*build)
    assert "the card states no language; name it with --language" in done.stderr
    named = build_collection(tmp_path / "b", asked, language="en")
    assert "\nlanguage:\n- en\n" in card(named.manifest)
    rows = [json.loads(line) for line in asked.read_text("utf-8").splitlines()]
    told = write_rows(tmp_path / "told.jsonl", [row | {"language": "de"} for row in rows[:-1]] + rows[-1:])
    assert build_collection(tmp_path / "d", told).manifest["language"] == ["de"]
    imported = import_collection(named.folder / "hagrid.jsonl", tmp_path / "i", language="pt-BR")
    assert "\nlanguage:\n- pt-BR\n" in (imported.folder / "README.md").read_text("utf-8")
