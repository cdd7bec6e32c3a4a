"""The contract of all formats, and the files of other tools: contexts, markers, envelopes, tables and corpora."""

import gzip
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import autoais
from autoais import formats
from autoais.base.answers import CitedAnswer
from autoais.base.errors import FormatError
from autoais.base.io.jsonl import write_atomic
from autoais.base.types import Citation, CitedSentence, Passage
from autoais.formats.contexts import ALL_CITED, NONE_CITED, has_markers
from autoais.formats.convert import count_losses
from autoais.formats.corpora import detect_corpus, read_passages
from autoais.formats.questions import read_questions
from autoais.testing import check_format
from tests.autoais.formats.samples import POLAND, RIVER, ROWS, TABLES
from tests.autoais.formats.test_formats import KINDS, lines, messages, sample
from tests.conftest import Command, one_line_error

CONTEXTS = ("ragas", "ragchecker", "deepeval", "trulens", "flashrag")


@pytest.mark.parametrize("name", [name for name in KINDS if name != "aqa-ais"])  # its verdicts are a judge's
def test_every_format_keeps_the_contract(tmp_path: Path, name: str) -> None:
    check_format(name, sample(tmp_path, name))


def test_every_format_has_a_sample_or_a_test_of_its_own() -> None:
    own = {path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py")}
    assert set(formats.names()) - own == {*KINDS, formats.SCORES} - own


def test_the_contract_names_what_is_broken(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="is taken for hagrid"):
        check_format("ragas", sample(tmp_path, "hagrid"))
    path = lines(tmp_path / "b.jsonl", *ROWS["ragas"], {"user_input": 1, "response": "x"})
    with pytest.raises(AssertionError, match=r"b\.jsonl:3: field 'user_input' should be a string, found an integer"):
        check_format("ragas", path)


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30)
SENTENCE = st.sampled_from(["It is Warsaw.", "It is old [1].", "So [2][9].", "No."]) | TEXT
PROSE = st.lists(SENTENCE, max_size=4).map(" ".join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from([*CONTEXTS, "open-rag-eval"]),
    question=TEXT.filter(str.strip),
    output=PROSE,
    contexts=st.lists(TEXT.filter(str.strip), max_size=3),
)
def test_what_is_written_is_read_back(
    tmp_path: Path, name: str, question: str, output: str, contexts: list[str]
) -> None:
    passages = {f"[{n}]": Passage(f"[{n}]", text=text) for n, text in enumerate(contexts, 1)}
    row = {"query": question, "response": output, "contexts": contexts}
    (answer,) = formats.read(lines(tmp_path / "in.jsonl", row), "trulens")
    path = tmp_path / "out"
    write_atomic(path, formats.write([answer], name))
    (again,) = formats.read(path, name)
    assert again.question == question
    if name == "open-rag-eval":  # its answers cite what they say and no more
        write_atomic(tmp_path / "more", formats.write([again], name))
        assert (tmp_path / "more").read_bytes() == path.read_bytes()
        return
    assert again.output == answer.output
    assert [p.text for p in again.passages.values()] == [p.text for p in passages.values()]
    order, other = list(answer.passages), list(again.passages)
    assert [(s.text, [order.index(c) for c in s.cites]) for s in answer.sentences] == [
        (s.text, [other.index(c) for c in s.cites]) for s in again.sentences
    ]


# --- contexts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONTEXTS)
def test_answers_of_a_file_without_markers_are_judged_against_all_their_contexts(tmp_path: Path, name: str) -> None:
    notes = formats.Notes()
    path = sample(tmp_path, name)
    silent = [one for one in formats.read(path) if not has_markers(one) and one.sentences and one.passages]
    write_atomic(tmp_path / "silent", formats.write(silent[:1], name))
    (first,) = formats.read(tmp_path / "silent", name, notes=notes)
    assert first.sentences
    assert all(one.cites == tuple(first.passages) for one in first.sentences)
    assert notes.record() == {ALL_CITED[0]: {"count": 1, "text": ALL_CITED[1]}}


SILENT = {"query": "capital?", "response": "It is Warsaw.", "contexts": [POLAND, RIVER]}


@pytest.mark.parametrize("marker", ["[1]", "[9]"])
def test_an_answer_without_markers_cites_nothing_where_another_has_some(tmp_path: Path, marker: str) -> None:
    rows = [SILENT, SILENT | {"response": f"It is Warsaw {marker}."}, SILENT]
    notes = formats.Notes()
    first, _, third = formats.read(lines(tmp_path / "a.jsonl", *rows), notes=notes)
    assert [one.cites for answer in (first, third) for one in answer.sentences] == [(), ()]
    assert not first.whole_context
    assert notes.record() == {NONE_CITED[0]: {"count": 2, "text": NONE_CITED[1]}}


def test_a_year_in_brackets_is_no_marker(tmp_path: Path) -> None:
    year = SILENT | {"response": "It is Warsaw [1998]."}
    first, _ = formats.read(lines(tmp_path / "a.jsonl", SILENT, year))
    assert first.whole_context


def test_an_answer_with_markers_cites_what_they_say(tmp_path: Path) -> None:
    _, second = formats.read(sample(tmp_path, "ragas"))
    assert [one.cites for one in second.sentences] == [("doc 1",), ()]
    assert [(bad.marker, bad.reason) for bad in second.unresolved_markers] == [("[3]", "out-of-range")]


def test_an_uncited_answer_is_counted_when_its_reader_would_cite_everything(tmp_path: Path) -> None:
    answer = CitedAnswer("1", "?", (CitedSentence("So."),), {"p": Passage("p", text=POLAND)})
    cited = CitedAnswer("2", "?", (CitedSentence("So.", (Citation("p"),)), CitedSentence("No.")), answer.passages)
    notes = formats.Notes()
    path = tmp_path / "out.jsonl"
    write_atomic(path, formats.write([answer, cited], "ragas", notes))
    says = "answers without citations; judged against all their contexts if no answer of the file has markers"
    assert notes[says] == 1
    assert [[len(s.cites) for s in one.sentences] for one in formats.read(path)] == [[0], [1, 0]]
    write_atomic(path, formats.write([answer], "ragas"))
    assert [[len(s.cites) for s in one.sentences] for one in formats.read(path)] == [[1]]


def test_lists_in_a_csv_are_json_or_what_python_writes(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    head = "user_input,retrieved_contexts,response\r\n"
    python, as_json = f'"[\'{POLAND}\', ""It\'s so.""]"', f'"[""{RIVER}""]"'
    path.write_text(f"{head}q?,{python},A.\r\nr?,{as_json},B.\r\ns?,,C.\r\n", "utf-8")
    found = [[p.text for p in one.passages.values()] for one in formats.read(path)]
    assert found == [[POLAND, "It's so."], [RIVER], []]
    path.write_text(f"{head}q?,['\\d'],A.\r\n", "utf-8")
    assert [p.text for p in next(formats.read(path)).passages.values()] == ["\\d"]
    assert messages(path) == []
    for cell in ("no list", "[1]", "['a'", "['a'" + "," * 9, "__import__('os')", "[" * 5000):
        path.write_text(f"{head}q?,{json.dumps(cell)},A.\r\n", "utf-8")
        with pytest.raises(FormatError, match=r"r\.csv:2: field 'retrieved_contexts' should be a list of strings"):
            list(formats.read(path))
        assert messages(path) == [":2: field 'retrieved_contexts' should be a list of strings"]


@pytest.mark.parametrize("cell", ["['First.' 'It\\'s\\n second.']", "['First.'\n \"It's\\n second.\"]"])
def test_a_list_as_numpy_prints_it_keeps_its_items_apart(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "r.csv"
    quoted = cell.replace('"', '""')
    path.write_text(f'user_input,retrieved_contexts,response\nq?,"{quoted}",A [1]. B [2].\n', "utf-8")
    (answer,) = formats.read(path)
    assert [passage.text for passage in answer.passages.values()] == ["First.", "It's\n second."]
    assert not answer.unresolved_markers


def test_an_unresolved_marker_that_stays_in_the_text_is_no_loss(tmp_path: Path) -> None:
    row = {"user_input": "q?", "retrieved_contexts": [POLAND], "response": "Warsaw [1]. Lyon [7]."}
    answers = list(formats.read(lines(tmp_path / "r.jsonl", row)))
    for target in ("ragas", "alce", "hagrid"):
        losses: Counter[str] = Counter()
        counted = list(count_losses(answers, formats.get_writable(target), losses))
        write_atomic(tmp_path / "w.jsonl", formats.write(counted, target))
        (again,) = formats.read(tmp_path / "w.jsonl", target)
        assert bool(again.unresolved_markers) == (losses["unresolved markers in the text"] == 0), target
    unwritten = [replace(answers[0], output=None)]
    list(count_losses(unwritten, formats.get_writable("ragas"), losses := Counter()))
    assert losses["unresolved markers"] == 1


def test_answers_come_as_a_spreadsheet_saves_them(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    cells = [
        ["user_input", '"note, by hand"', "response", "retrieved_contexts", "", ""],
        ["q; or not?", "", '"Warsaw [1].\nLyon, too [2]."', '"[""It is\nWarsaw."", ""Lyon""]"', "", ""],
        ["", "", "", "", "", ""],
        ["", "", "", "", "", ""],
    ]
    cells[1][0] = f'"{cells[1][0]}"'
    path.write_bytes(b"\xef\xbb\xbf" + "".join(";".join(row) + "\r\n" for row in cells).encode())
    (answer,) = formats.read(path)
    assert answer.question == "q; or not?"
    assert [passage.text for passage in answer.passages.values()] == ["It is\nWarsaw.", "Lyon"]
    assert [len(sentence.cites) for sentence in answer.sentences] == [1, 1]
    cells[2][5] = "stray"
    path.write_text("".join(";".join(row) + "\n" for row in cells))
    assert messages(path)[-1] == ":5: 6 columns, but the header has 4"


def test_a_long_list_in_a_csv_should_be_json(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    head = "user_input,retrieved_contexts,response\r\n"
    path.write_text(f'{head}q?,"{["so"] * 200_000}",A.\r\n', "utf-8")
    says = ":2: field 'retrieved_contexts' has 1,200,000 characters; a list of more than 1 MiB should be JSON"
    with pytest.raises(FormatError, match=re.escape(says)):
        list(formats.read(path))
    assert [message.startswith(says) for message in messages(path)] == [True]
    cell = json.dumps(["so"] * 200_000).replace('"', '""')
    path.write_text(f'{head}q?,"{cell}",A.\r\n', "utf-8")
    assert [len(one.passages) for one in formats.read(path)] == [200_000]


HEAD_OF_RUNS = "query_id,query,query_run,passage_id,passage,generated_answer\n"


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (
            "q1,x?,1,[1],A.,So [1].\nq1,x?,1,[1],B.,\n",
            "3: field 'passage_id': '[1]' occurs twice in its run (first at ",
        ),
        ("q1,x?,1,[1],A.,So [1].\nq1,x?,1,1,B.,\n", "3: field 'passage_id': '[1]' occurs twice in its run (first at "),
        ("q1,x?,1,d,A.,So [1].\nq1,x?,1,d,B.,\n", "3: field 'passage_id': 'd' occurs twice in its run (first at "),
        (
            "q1,x?,1,[1],A.,So.\nq1,x?,1,[2],B.,No.\n",
            "3: field 'generated_answer': a second answer in run '1' of query",
        ),
        ("q1,x?,1,[1],A.,So.\nq2,y?,1,[1],B.,No.\nq1,x?,,[2],C.,\n", "4: run '1' of query 'q1' began at "),
    ],
)
def test_rows_of_open_rag_eval_that_would_replace_others_are_refused(tmp_path: Path, rows: str, says: str) -> None:
    path = tmp_path / "r.csv"
    path.write_text(HEAD_OF_RUNS + rows)
    (message,) = messages(path)
    assert message.startswith(f":{says}")
    with pytest.raises(FormatError, match=re.escape(says)):
        list(formats.read(path))


def test_passages_of_open_rag_eval_without_an_id_are_numbered(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text(f"{HEAD_OF_RUNS}q1,x?,1,,A.,So [1][2][3].\nq1,x?,1,[2],B.,So [1][2][3].\nq1,x?,1,d,C.,\n")
    (answer,) = formats.read(path)
    assert {key: one.text for key, one in answer.passages.items()} == {"[1]": "A.", "[2]": "B.", "d": "C."}
    assert answer.sentences[0].cites == ("[1]", "[2]", "d")
    assert messages(path) == []


def test_samples_of_ragas_before_0_2_are_read(tmp_path: Path) -> None:
    first, second = formats.read(sample(tmp_path, "ragas-0.1"))
    assert (first.question, first.answers) == ("What is the capital of Poland?", ("Warsaw",))
    assert [passage.text for passage in first.passages.values()] == [POLAND, RIVER]
    assert second.answers == ("the Vistula",)
    path = lines(tmp_path / "b.jsonl", {**ROWS["ragas-0.1"][0], "contexts": "none"})
    with pytest.raises(FormatError, match="field 'contexts' should be a list of strings"):
        list(formats.read(path))


def test_a_conversation_of_ragas_is_refused_with_its_field(tmp_path: Path) -> None:
    turns = [{"content": "Hello", "type": "human"}, {"content": "Hi", "type": "ai"}]
    path = lines(tmp_path / "r.jsonl", {"user_input": turns, "response": ""})
    with pytest.raises(FormatError, match=r"r\.jsonl:1: field 'user_input' should be a string, found a list"):
        list(formats.read(path))


def test_ragchecker_is_read_as_a_document_and_written_as_one(tmp_path: Path) -> None:
    path = tmp_path / "checked.json"
    for indent in (None, 2):
        path.write_text(json.dumps({"metrics": {"overall": {}}, "results": ROWS["ragchecker"]}, indent=indent))
        assert formats.detect(path) == "ragchecker"
        (answer,) = formats.read(path)
        assert json.loads("".join(formats.write([answer], "ragchecker"))) == {"results": ROWS["ragchecker"]}
    assert (answer.answers, list(answer.passages)) == (("Warsaw.",), ["p", "r"])
    unnamed = [{"text": "a"}, {"doc_id": None, "text": "b"}, {"doc_id": 7, "text": "c"}, {"doc_id": "7", "text": "d"}]
    path.write_text(json.dumps({"results": [ROWS["ragchecker"][0] | {"retrieved_context": unnamed}]}))
    (answer,) = formats.read(path)
    assert list(answer.passages) == ["doc 1", "doc 2", "7", "doc 4"]


def test_a_context_of_trulens_may_stand_alone_and_records_hold_those_of_their_retriever(tmp_path: Path) -> None:
    path = lines(tmp_path / "t.jsonl", {"query": "?", "response": "So.", "contexts": POLAND})
    assert [p.text for p in next(formats.read(path)).passages.values()] == [POLAND]
    (answer,) = formats.read(sample(tmp_path, "trulens-records"))
    assert [p.text for p in answer.passages.values()] == [POLAND, RIVER]
    assert (answer.id, answer.extra["system"]) == ("record_hash_1", "app_hash_1")


def test_flashrag_titles_are_the_first_lines_and_its_questions_are_questions(tmp_path: Path) -> None:
    (answer,) = formats.read(sample(tmp_path, "flashrag"))
    assert answer.passages["7"] == Passage("7", "Warsaw", POLAND)
    assert answer.passages["8"] == Passage("8", "", RIVER)
    path = lines(tmp_path / "q.jsonl", {"id": "test_0", "question": "capital?", "golden_answers": ["Warsaw"]})
    assert [(q.id, q.answers) for q in read_questions(path)] == [("test_0", ("Warsaw",))]


def test_ids_of_attrscore_may_count_from_0(tmp_path: Path) -> None:
    row = {"query": "?", "answer": POLAND, "reference": POLAND, "label": "Attributable"}
    path = lines(tmp_path / "a.jsonl", *({"id": number, **row} for number in (0, 1)))
    assert [answer.id for answer in formats.read(path)] == ["0", "1"]
    assert [label.id for label in formats.read_labels(path)] == ["0", "1"]
    twice = lines(tmp_path / "twice.jsonl", *({"id": 0, **row} for _ in range(2)))
    assert messages(twice) == [f":2: field 'id': '0' occurs twice (first at {twice}:1)"]


# --- open-rag-eval, ExpertQA, LLM-AggreFact -------------------------------------------------------------------------


def test_runs_of_open_rag_eval_are_answers_and_markers_are_passage_ids(tmp_path: Path) -> None:
    first, second, third = formats.read(sample(tmp_path, "open-rag-eval"))
    assert (first.id, second.id, third.id) == ("q1", "q1/2", "q2")
    assert [one.cites for one in first.sentences] == [("[1]",), ("[2]",)]
    assert [(bad.marker, bad.sentence) for bad in first.unresolved_markers] == [("[2, 3]", 1)]
    assert (third.passages, [one.text for one in third.sentences]) == ({}, ["No idea."])
    path = tmp_path / "gap.csv"
    head = "query,passage_id,passage,generated_answer\n"
    path.write_text(f"{head}q?,[3],{RIVER},\nq?,[1],{POLAND},It is Warsaw [1][2][3].\n")
    (answer,) = formats.read(path)
    assert answer.sentences[0].cites == ("[1]", "[3]")
    assert [bad.marker for bad in answer.unresolved_markers] == ["[2]"]
    path.write_text(f"{head}q?,[999999999999],{RIVER},It flows [1-999999999999].\n")
    (answer,) = formats.read(path)
    assert answer.sentences[0].cites == ("[999999999999]",)  # an id, and the first passage


def test_ids_of_open_rag_eval_may_be_numbers_in_json(tmp_path: Path) -> None:
    row = {"query": "?", "query_run": "1", "passage_id": "[1]", "passage": POLAND, "generated_answer": "So [1]."}
    path = lines(tmp_path / "r.jsonl", *({"query_id": number, **row} for number in (0, 5)))
    answers = list(formats.read(path))
    assert [answer.id for answer in answers] == ["0", "5"]
    assert len(list(formats.write(answers, "open-rag-eval"))) == 3
    again = lines(tmp_path / "again.jsonl", *({"query_id": number, **row} for number in (0, 5, 0)))
    assert messages(again) == [f":3: run '1' of query '0' began at {again}:1; its rows should be adjacent"]


def test_expertqa_has_an_answer_per_system_and_labels_of_what_needs_a_source(tmp_path: Path) -> None:
    row: dict[str, Any] = json.loads(json.dumps(ROWS["expertqa"][0]))
    row["answers"]["bing_chat"] = {"answer_string": "Madrid.", "claims": None}
    path = lines(tmp_path / "e.jsonl", row)
    first, second = formats.read(path)
    assert (first.id, second.id, second.sentences) == ("1/gpt4", "1/bing_chat", ())
    assert [(s.text, s.attributable, s.worthy) for s in first.sentences] == [
        ("It is Warsaw.", True, True), ("Lovely.", False, False)
    ]  # fmt: skip
    assert [p.text for p in first.passages.values()] == [f"https://example.org/w\n\n{POLAND}", ""]
    (label,) = formats.read_labels(path)
    assert (label.dataset, label.id, label.system, label.attributable) == ("ExpertQA", "1/gpt4/0", "gpt4", True)
    row["answers"]["gpt4"]["claims"][1]["evidence"] = [1]
    with pytest.raises(FormatError, match=r"e\.jsonl:1: field 'answers\.gpt4\.claims\[1\]\.evidence' should be"):
        list(formats.read(lines(path, row)))


def test_ragtruth_sentences_with_an_unsupported_word_are_not_attributable(tmp_path: Path) -> None:
    path, notes = sample(tmp_path, "ragtruth"), formats.Notes()
    sources = lines(
        tmp_path / "source_info.jsonl",
        {"source_id": "s1", "task_type": "Summary", "source": "ours", "source_info": POLAND},
        {"source_id": "s2", "task_type": "QA", "source": "ours", "source_info": {"question": "?", "passages": RIVER}},
        {"source_id": "s3", "task_type": "Data2txt", "source": "ours", "source_info": {"name": "Café", "rating": 4}},
    )
    (answer,) = formats.read(path, corpus=[sources], notes=notes)
    assert sum(notes.values()) == 1  # the response that was cut short
    assert [(one.cites, one.attributable) for one in answer.sentences] == [
        (("s1",), True), (("s1",), False), (("s1",), True)
    ]  # fmt: skip
    assert (answer.passages["s1"].text, answer.attributable, answer.extra["system"]) == (POLAND, False, "gpt-4-0613")
    texts = [passage.text for _, passage in read_passages(sources) if isinstance(passage, Passage)]
    assert texts == [POLAND, RIVER, '{"name": "Café", "rating": 4}']
    out = tmp_path / "answers.jsonl"
    write_atomic(out, formats.write([answer], "answers"))
    assert [one.attributable for one in formats.read_labels(out)] == [True, False, True]
    row = ROWS["ragtruth"][0]
    odd = [{**row, "id": str(n), "labels": [{**row["labels"][0], **span}]} for n, span in enumerate(
        ({"end": 99}, {"start": 26}, {"start": 40})
    )]  # fmt: skip
    assert messages(lines(path, *odd)) == [
        ":1: field 'labels[0]' is 25 to 99, and the response has the characters 0 to 63",
        ":2: field 'labels[0]': its 'text' is not the response from 26 to 40: 'hree million p'",
        ":3: field 'labels[0]' is 40 to 40, and the response has the characters 0 to 63",
    ]
    whole = [{**span, "start": float(span["start"]), "end": float(span["end"])} for span in row["labels"]]
    assert messages(lines(path, {**row, "labels": whole})) == []  # 25.0 is an integer in JSON


def test_aggrefact_labels_are_judged_and_written_as_they_were(tmp_path: Path) -> None:
    path = sample(tmp_path, "aggrefact")
    first, second = formats.read_labels(path)
    assert (first.dataset, first.attributable, first.attribution.evidence) == ("WiCE", True, (POLAND,))
    assert second.attributable is False
    out = tmp_path / "out.csv"
    write_atomic(out, formats.write(formats.read(path), "aggrefact"))
    assert out.read_bytes() == path.read_bytes()
    result = autoais.evaluate_judge(path, judge="lexical")
    assert list(result["sets"]) == ["WiCE"]
    rows = lines(tmp_path / "a.jsonl", {"dataset": "D", "doc": POLAND, "claim": "Warsaw is a capital.", "label": 1})
    assert [one.attributable for one in formats.read_labels(rows)] == [True]
    path.write_text(TABLES["aggrefact"].replace(",1,", ",2,"), "utf-8")
    assert messages(path) == [":2: field 'label' should be one of 0, 1, '0', '1', found '2'"]


# --- Ragnarök, TREC, HAGRID: as their writers' code writes them -----------------------------------------------------


def envelope(data: object, key: str = "data") -> dict[str, Any]:
    return {
        "schema_version": "castorini.cli.v1", "repo": "ragnarok", "command": "generate", "mode": "execute",
        "status": "success", "exit_code": 0, "inputs": {"data": "a path"}, "resolved": {},
        "artifacts": [{"name": "log", "kind": "file", "path": "x"}, {"name": "results", "kind": "data", key: data}],
        "validation": {}, "metrics": {"results": 1}, "warnings": [], "errors": [],
    }  # fmt: skip


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("key", ["data", "value"])
def test_the_envelope_of_ragnarok_holds_its_results(tmp_path: Path, indent: int | None, key: str) -> None:
    path = tmp_path / "out.json"
    rows = ROWS["ragnarok"]
    for data in (rows, rows[0]):
        path.write_text(json.dumps(envelope(data, key), indent=indent))
        assert formats.detect(path) == "ragnarok"
        (answer,) = formats.read(path)
        assert [one.cites for one in answer.sentences] == [("d1", "d2"), ()]
        assert messages(path) == []
    named = [{"run_id": "r", **rows[0], "trace": {"prompt": "p"}}]
    path.write_text(json.dumps(envelope(named, key), indent=indent))
    assert formats.detect(path) == "trec-rag-24"
    assert next(formats.read(path)).extra["system"] == "r"


def test_an_envelope_without_results_and_a_broken_one_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text(json.dumps(envelope([])))
    with pytest.raises(FormatError, match="holds no records"):
        formats.detect(path)
    whole = json.dumps(envelope(ROWS["ragnarok"]), indent=1)
    path.write_text(whole[: whole.index('"topic"')])
    with pytest.raises(FormatError, match=r"out\.json:\d+: not JSON"):
        formats.detect(path)


def test_ragnaroks_lengths_are_in_characters_and_only_warned_of(tmp_path: Path) -> None:
    docids = ["msmarco_v2.1_doc_00_1#0_1", "msmarco_v2.1_doc_00_1#1_2"]
    row = {"run_id": "r", **ROWS["ragnarok"][0], "references": docids}
    assert messages(lines(tmp_path / "r.jsonl", row)) == [":1: warning: field 'response_length' is 25, counted 6"]


def test_a_line_of_the_organizers_of_2025(tmp_path: Path) -> None:
    # docs/rag25.md of Ragnarök: metadata with type before the narrative, citations by number
    row = {
        "metadata": {"team_id": "o", "run_id": "r", "type": "automatic", "narrative_id": "2", "narrative": "Why?"},
        "references": ["msmarco_v2.1_doc_00_1#0_1", "msmarco_v2.1_doc_00_2#3_4"],
        "answer": [{"text": "So it is.", "citations": [0, 1]}, {"text": "   Not so.", "citations": []}],
    }
    path = lines(tmp_path / "t.jsonl", row)
    assert (formats.detect(path), messages(path)) == ("trec-rag-25", [])
    assert [json.loads(line) for line in formats.write(formats.read(path), "trec-rag-25")] == [row]


def test_hagrid_as_its_loading_script_declares_it(tmp_path: Path) -> None:
    # hagrid.py: query_id is a string, sentences may carry an answer_type, labels may be missing
    sentence = {"text": "It is Warsaw [1].", "index": 0, "answer_type": "short", "informative": 1, "attributable": None}
    row = {
        "query": "capital?",
        "query_id": "12#0",
        "quotes": [{"docid": "a#1", "idx": 1, "text": POLAND}],
        "answers": [
            {"answer": "It is Warsaw [1].", "attributable": None, "informative": 1, "sentences": [sentence]},
            {"answer": "No.", "attributable": 0, "informative": 0, "answer_type": "long", "sentences": []},
        ],
    }
    path = lines(tmp_path / "h.jsonl", row)
    assert (formats.detect(path), messages(path)) == ("hagrid", [])
    first, second = formats.read(path)
    assert (first.id, first.sentences[0].cites, first.attributable) == ("12#0/1", ("a#1",), None)
    assert (second.attributable, second.informative) == (False, False)


# --- corpora --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["msmarco-v2.1", "dpr", "beir"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_corpus_gives_a_run_its_passages(tmp_path: Path, kind: str, packed: bool) -> None:
    path = sample(tmp_path, name := f"{kind}-corpus")
    if packed:
        path = tmp_path / "corpus.gz"
        path.write_bytes(gzip.compress(sample(tmp_path, name).read_bytes()))
    assert detect_corpus(path) == kind
    key = ROWS["msmarco-v2.1-corpus"][0]["docid"] if kind == "msmarco-v2.1" else "1"
    run = tmp_path / "p.csv"
    run.write_text(f"question,answer,attribution\ncapital?,Warsaw,{key}\n")
    (answer,) = formats.read(run, corpus=[path])
    assert answer.passages[key].title == "Warsaw"
    assert answer.passages[key].evidence.startswith(f"Warsaw. {POLAND}")


def test_quoted_cells_of_dpr_are_unquoted_and_broken_ones_named(tmp_path: Path) -> None:
    path = sample(tmp_path, "dpr-corpus")
    assert [p.text for _, p in read_passages(path) if isinstance(p, Passage)] == [
        f'{POLAND} "So, it is," he said.', RIVER
    ]  # fmt: skip
    path.write_text("id\ttext\ttitle\n1\tonly two\n2\t\tempty\n3\tfine\tT\n")
    found = [p if isinstance(p, Passage) else str(p).removeprefix(str(path)) for _, p in read_passages(path)]
    assert found[:2] == [
        ":2: expected three columns (id, text, title), found 2", ":3: passage '2' has no text"
    ]  # fmt: skip
    assert found[2] == Passage("3", "T", "fine")
    assert messages(path) == [":2: 2 columns, but the header has 3"]


def test_a_corpus_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.tsv"
    path.write_text("id\ttext\ttitle\n", "utf-16")
    with pytest.raises(FormatError, match=r"c\.tsv contains zero bytes, so it is not UTF-8 text"):
        detect_corpus(path)


def test_a_document_of_ms_marco_is_refused_with_what_a_segment_has(tmp_path: Path) -> None:
    path = lines(tmp_path / "d.jsonl", {"docid": "D1", "url": "u", "title": "T", "headings": "", "body": "B"})
    with pytest.raises(FormatError, match="the nearest is miracl, which also has text"):
        detect_corpus(path)


# --- what is not known ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"PAR1\x15\x04", "a Parquet file, not JSON or CSV; pandas.read_parquet"),
     (b"PK\x03\x04\x14", "a zip archive or an office file"),
     (b"%PDF-1.5\n%\xe2\xe3", "a PDF, not JSON or CSV; rag index build reads it"),
     (b"SQLite format 3\x00", "an SQLite database"),
     (b"\x80\x04\x95", "a Python pickle, which is never read"),
     (b'{"user_input": "q", "retrieved_contexts": []}', "ragas also has response"),
     (b'{"input": "q", "retrieval_context": []}', "deepeval also has actual_output"),
     (b'{"query_id": 1, "query": "q", "retrieved_context": []}', "ragchecker also has response"),
     (b'{"input": "q", "output": "a"}', "deepeval also has actual_output"),
     (b'{"query": "q", "reply": "a", "sources": []}', "hagrid also has quotes, answers"),
     (b'{"user_input": [{"type": "human", "content": "q"}]}', "has the fields user_input; `autoais schema` lists"),
     (b'{"text": "a passage"}', "has the fields text; `autoais schema` lists")],
)  # fmt: skip
def test_what_is_not_known_is_refused_with_the_nearest_shape(
    tmp_path: Path, autoais: Command, content: bytes, says: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    one_line_error(autoais("score", path, "--judge", "lexical"), says)


def test_a_toml_file_is_named(tmp_path: Path, autoais: Command) -> None:
    path = tmp_path / "judge.toml"
    path.write_text("[judge]\nname = 'x'\n")
    one_line_error(autoais("score", path, "--judge", "lexical"), "a TOML file, not JSON or CSV")


def test_a_file_of_another_tool_is_scored(tmp_path: Path, autoais: Command) -> None:
    path = sample(tmp_path, "ragchecker")
    result = autoais("score", path, "--judge", "lexical", "--json")
    assert "1 answer without citations, judged against all their contexts" in result.stderr
    report = json.loads(result.stdout)
    assert (report["format"], report["metrics"]["sentences"]["n"]) == ("ragchecker", 1)
    assert report["metrics"]["sentences"]["value"] == 1
    assert report["metrics"]["citation_recall"]["value"] is None
    shown = autoais("score", path, "--judge", "lexical").stdout
    assert "1 answer without citations is left out of the citation metrics" in shown


def test_the_table_of_formats_in_the_handbook_is_what_there_is() -> None:
    page = (Path(__file__).parents[3] / "docs/handbook/reference/formats.md").read_text("utf-8")
    table = page[page.index("| format | file | reads | writes | source |") :].split("\n\n")[0].splitlines()[2:]
    told: dict[str, tuple[str, bool]] = {}
    for names, _, reads, writes, _ in (map(str.strip, line.strip("|").split("|")) for line in table):
        told |= {name.strip("` "): (reads, writes != "no") for name in names.split(",")}
    found = {formats.SCORES: ("no", True)}
    for name, one in formats.FORMATS.items():
        other = name if name in ("ratings", "judgements") else "passages"
        reads = ", ".join(["answers"] * bool(one.read) + ["labels"] * bool(one.labels)) or other
        found[name] = (reads, one.write is not None)
    assert told == found


def test_an_id_that_is_made_up_is_never_that_of_another_passage(tmp_path: Path) -> None:
    quotes = [{"idx": 1, "docid": "q:2", "text": "One."}, {"idx": 2, "text": "Two."}]
    docs = [{"id": "doc 2", "title": "", "text": "One."}, {"title": "", "text": "Two."}]
    hagrid = {"query_id": "q", "query": "Which?", "quotes": quotes, "answers": [{"answer": "Two [2]."}]}
    alce = {"data": [{"question": "Which?", "docs": [*docs, {"id": "doc 2", "text": "Three."}], "output": "Two [2]."}]}
    ids: dict[str, list[str]] = {"hagrid": ["q:2", "q:2'"], "alce": ["doc 2", "doc 2'", "doc 3"]}
    for name, row in (("hagrid", hagrid), ("alce", alce)):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(row))
        (answer,) = formats.read(path, name)
        assert list(answer.passages) == ids[name]
        (key,) = answer.sentences[0].cites
        assert answer.passages[key].text == "Two."


@pytest.mark.parametrize("documents", [3, {"a": 3}, [1], {"a": {"text": 3}}])
def test_a_field_of_another_format_is_no_text(documents: object, tmp_path: Path) -> None:
    row = {
        "run_id": "r",
        "topic_id": "1",
        "topic": "Which?",
        "references": ["a"],
        "response_length": 1,
        "answer": [{"text": "One.", "citations": [0]}],
        "documents": documents,
    }
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps(row))
    (answer,) = formats.read(path, "trec-rag-24")
    assert answer.passages == {"a": Passage("a")}
