"""Every format read, written, told apart and checked; and what becomes of files that are not what they should be."""

import copy
import gzip
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoais import formats
from autoais.base.answers import CitedAnswer, read_answers, to_row, write_answers
from autoais.base.errors import FormatError, UserError
from autoais.base.io.files import records
from autoais.base.io.jsonl import write_atomic
from autoais.base.io.schema import faults
from autoais.base.markers.sentences import parse_sentence, render
from autoais.base.types import Citation, CitedSentence, Passage, Question, Support, Unresolved
from autoais.formats import aqa, trec
from autoais.formats.convert import count_losses
from autoais.formats.corpora import detect_corpus
from autoais.judges.lexical import LexicalJudge
from autoais.metrics.judged import judge_answers
from autoais.metrics.scoring import Summary
from tests.autoais.formats.samples import POLAND, RIVER, ROWS, TABLES
from tests.conftest import Command, one_line_error

SAMPLES: dict[str, list[dict[str, Any]]] = {
    "answers": [
        {
            "id": "1",
            "question": "What is the capital of Poland?",
            "answer": "The capital is Warsaw. It is on the Vistula.",
            "output": "The capital is Warsaw [1]. It is on the Vistula [2][7].",
            "short_answer": "Warsaw",
            "sentences": [
                {"text": "The capital is Warsaw.", "attributable": True, "citations": [{"passage": "p"}]},
                {
                    "text": "It is on the Vistula.",
                    "citations": [{"passage": "r", "support": "partial", "quote": "flows"}],
                },
            ],
            "passages": [
                {"id": "p", "rank": 2, "title": "Warsaw", "section": "Today", "text": POLAND, "score": 1.5},
                {"id": "r", "rank": 1, "title": "Vistula", "text": RIVER},
            ],
            "unresolved": [{"marker": "[7]", "reason": "out-of-range", "sentence": 1}],
            "answers": ["Warsaw"],
            "gold": ["p"],
            "system": "ours",
        },
        {"id": "2", "question": "And of Spain?", "abstained": True, "system": "ours"},
    ],
    "hagrid": [
        {
            "query_id": 7,
            "query": "What is the capital of Poland?",
            "quotes": [{"idx": 1, "docid": "a#1", "text": POLAND}, {"idx": 2, "docid": "b#1", "text": RIVER}],
            "answers": [
                {
                    "answer": "It is Warsaw [1]. The Vistula flows north [2].",
                    "answer_type": "long",
                    "informative": 1,
                    "attributable": 0,
                    "sentences": [
                        {"index": 0, "text": "It is Warsaw [1].", "informative": 1, "attributable": 1},
                        {"index": 1, "text": "The Vistula flows north [2].", "informative": 0, "attributable": 0},
                    ],
                },
                {
                    "answer": "Warsaw [1].",
                    "answer_type": "short",
                    "informative": 1,
                    "attributable": None,
                    "sentences": [{"index": 0, "text": "Warsaw [1].", "informative": 1, "attributable": None}],
                },
            ],
        }
    ],
    "trec-rag-24": [
        {
            "run_id": "r1",
            "topic_id": "2024-1",
            "topic": "capital of poland",
            "references": ["msmarco_v2.1_doc_00_1#0_1", "msmarco_v2.1_doc_00_2#0_2"],
            "response_length": 6,
            "answer": [
                {"text": "It is Warsaw.", "citations": [1, 0]},
                {"text": "It is large.", "citations": []},
            ],
        }
    ],
    "trec-rag-25": [
        {
            "metadata": {
                "team_id": "t",
                "run_id": "r",
                "narrative_id": "9",
                "narrative": "capital",
                "type": "automatic",
            },
            "references": ["msmarco_v2.1_doc_00_1#0_1"],
            "answer": [{"text": "It is Warsaw.", "citations": ["msmarco_v2.1_doc_00_1#0_1"]}],
        },
        {
            "metadata": {"team_id": "t", "run_id": "r", "narrative_id": "10"},
            "references": ["msmarco_v2.1_doc_00_1#0_1"],
            "answer": [{"text": "It is Madrid.", "citations": [0]}],
        },
    ],
    "liu-judgements": [
        {
            "query": "capital of poland",
            "response": "It is Warsaw [1][2].",
            "statement": "It is Warsaw.",
            "source_title": title,
            "source_content_title": None,
            "source_date": None,
            "source_author": None,
            "source_text": text,
            "source_raw_text": text,
            "source_supports_statement": support,
            "source_localized_evidence": evidence,
            "source_url": url,
        }
        for title, text, support, evidence, url in (
            ("Warsaw", POLAND, "complete_support", "the capital", "http://a"),
            (None, RIVER, "no_support", None, "http://b"),
        )
    ],
    "liu-annotations": [
        {
            "id": "h-you",
            "query": "capital of poland",
            "response": "It is Warsaw [1][2]. I am glad to help.",
            "split": "eli5_live",
            "system_name": "you",
            "citations": [
                {"text": "[1]", "start_index": 13, "end_index": 16, "link_target": "http://a"},
                {"text": "[2]", "start_index": 16, "end_index": 19, "link_target": "http://b"},
            ],
            "statements_to_citation_texts": {"It is Warsaw.": ["[1]", "[2]"], "I am glad to help.": []},
            "annotation": {
                "fluency": "Agree",
                "perceived_utility": "Strongly Agree",
                "statement_to_annotation": {
                    "It is Warsaw.": {
                        "statement_is_verification_worthy": True,
                        "statement_supported": "Yes",
                        "citation_annotations": [
                            {
                                "citation_text": "[1]",
                                "citation_supports": "Citation Completely Supports Statement",
                                "evidence": "the capital",
                            },
                            {
                                "citation_text": "[2]",
                                "citation_supports": "Citation Provides No Support for Statement",
                                "evidence": None,
                            },
                        ],
                    },
                    "I am glad to help.": {
                        "statement_is_verification_worthy": False,
                        "statement_supported": None,
                        "citation_annotations": None,
                    },
                },
            },
        }
    ],
    "attributionbench": [
        {
            "question": "capital?",
            "claim": "Warsaw is the capital [5].",
            "claim_raw_string": "Warsaw is the capital [5].",
            "response": "Warsaw is the capital [5]. Good.",
            "references": [f"[5] https://example.org\n\n{POLAND}"],
            "citation_links": [],
            "webpage_references": [],
            "attribution_label": "attributable",
            "src_dataset": "ExpertQA",
            "id": "e1",
        }
    ],
    "attrscore": [
        {"id": "a", "query": "capital?", "answer": "Warsaw", "reference": POLAND, "label": "Attributable"},
        {"id": "b", "query": "capital?", "answer": "Madrid", "reference": POLAND, "label": "Contradictory"},
    ],
    "labels": [
        {"dataset": "D", "id": "1", "question": "q", "claim": "Warsaw it is.", "evidence": [POLAND], "label": 1},
        {"dataset": "D", "id": "2", "question": "q", "claim": "Madrid it is.", "evidence": [POLAND, RIVER], "label": 0},
    ],
    "aqa-corpus": [{"id": "x", "contents": f"« Warsaw » « Warsaw, Today » {POLAND}"}],
    "miracl-corpus": [{"docid": "a#1", "title": "Warsaw", "text": POLAND}],
    **ROWS,
}
ALCE: dict[str, Any] = {
    "args": {"shot": 2},
    "data": [
        {
            "sample_id": "s1",
            "question": "What is the capital of Poland?",
            "qa_pairs": [{"short_answers": ["Warsaw"]}],
            "docs": [
                {"id": "11", "title": "Warsaw", "text": POLAND, "score": 1.0},
                {"id": "12", "title": "Vistula", "text": RIVER},
            ],
            "output": "It is Warsaw [1][2]. The Vistula flows north [2].\nMore [9].",
        },
        {"sample_id": "s2", "question": "Empty?", "docs": [], "output": ""},
    ],
}
CSVS = {
    "aqa-predictions": 'question,answer,attribution\r\nwho,"Ann, or\nBob",x#1\r\nwhere,,\r\n',
    "aqa-ais": 'question,answer,passage,autoais\r\nwho,Ann,"Title: T\nSection: S\n\nAnn did.",Y\r\n',
    "aqa-ratings": "system_name,question,answer,attribution,passage,human_rating,auto_ais,nli_score\r\n"
    'Post-4,who,Ann,x#1,"Title: T\nSection: S\n\nAnn did.",Y,Y,0.98\r\nPost-4,where,Rome,x#2,Rome.,,N,0.1\r\n',
    **TABLES,
}
KINDS = [*SAMPLES, "alce", *CSVS]


def sample(folder: Path, name: str) -> Path:
    """A file of that format, in `folder`."""
    path = folder / f"sample.{name}"
    if name in CSVS:
        path.write_bytes(CSVS[name].encode())
    elif name == "alce":
        path.write_text(json.dumps(ALCE, indent=1))
    else:
        lines(path, *SAMPLES[name])
    return path


def lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def messages(path: Path, name: str | None = None, topics: list[Question] | None = None) -> list[str]:
    return [str(fault).removeprefix(f"{path}") for fault in formats.validate(path, name, topics)]


# --- all formats alike ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
def test_a_file_is_told_by_its_first_record_and_fits_its_schema(tmp_path: Path, name: str) -> None:
    path = sample(tmp_path, name)
    assert formats.detect(path) == name
    assert [fault for fault in formats.validate(path) if not fault.warning] == []
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert formats.detect(packed) == name


@pytest.mark.parametrize("name", [name for name in KINDS if formats.FORMATS[name].write])
def test_what_is_written_is_read_back_and_written_the_same(tmp_path: Path, name: str) -> None:
    answers = list(formats.read(sample(tmp_path, name)))
    once, again = tmp_path / "once", tmp_path / "again"
    write_atomic(once, formats.write(answers, name))
    write_atomic(again, formats.write(formats.read(once, name), name))
    if name == "aqa-ais":  # its verdicts are a judge's, and no label
        return
    assert once.read_bytes() == again.read_bytes()


@pytest.mark.parametrize(
    "name",
    ["hagrid", "trec-rag-24", "trec-rag-25", "liu-judgements", "attrscore", "labels", "ragas", "deepeval", "trulens",
     "flashrag", "ragnarok"],
)  # fmt: skip
def test_formats_that_are_read_whole_are_written_as_they_were(tmp_path: Path, name: str) -> None:
    written = formats.write(formats.read(sample(tmp_path, name)), name)
    assert [json.loads(line) for line in written] == SAMPLES[name]


def test_liu_annotations_are_written_as_they_were(tmp_path: Path) -> None:
    (written,) = formats.write(formats.read(sample(tmp_path, "liu-annotations")), "liu-annotations")
    assert json.loads(written) == SAMPLES["liu-annotations"][0]
    notes = formats.Notes()
    answer = CitedAnswer("1", "Why?", (CitedSentence("One."), CitedSentence("Two.", attributable=False)), {})
    (written,) = formats.write([answer], "liu-annotations", notes)
    annotated = json.loads(written)["annotation"]["statement_to_annotation"]
    assert [one["statement_is_verification_worthy"] for one in annotated.values()] == [False, True]
    assert sum(count for what, count in notes.items() if "not worth verifying" in what) == 1


@pytest.mark.parametrize("source", [name for name in KINDS if formats.FORMATS[name].read])
@pytest.mark.parametrize("target", [name for name in KINDS if formats.FORMATS[name].write])
def test_every_conversion_gives_a_file_without_faults(tmp_path: Path, source: str, target: str) -> None:
    out = tmp_path / "out"
    write_atomic(out, formats.write(formats.read(sample(tmp_path, source)), target))
    if out.read_bytes():
        assert [str(fault) for fault in formats.validate(out, target) if not fault.warning] == []
        assert target in (formats.detect(out), "alce", "ragchecker")


@pytest.mark.parametrize("name", [name for name in KINDS if formats.FORMATS[name].read])
def test_our_own_format_holds_all_that_another_says(tmp_path: Path, name: str) -> None:
    answers = list(formats.read(sample(tmp_path, name)))
    lost = Counter[str]()
    write_atomic(tmp_path / "own", formats.write(count_losses(answers, formats.ANSWERS, lost), "answers"))
    assert list(read_answers(tmp_path / "own")) == answers
    assert not lost


@pytest.mark.parametrize("name", formats.names())
def test_schemas_are_json_schemas_and_know_what_is_written(tmp_path: Path, name: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = formats.schema_of(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    if name not in KINDS:
        return
    out = tmp_path / "out"
    one = formats.FORMATS[name]
    if one.write:
        write_atomic(out, formats.write(formats.read(sample(tmp_path, name)), name))
    else:
        out = sample(tmp_path, name)
    validator = jsonschema.Draft202012Validator(schema)
    for _, row in records(out):
        validator.validate(row)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 9)
    | st.just(1.0)
    | st.just(0.5)
    | st.sampled_from(["", " ", "x", "[1]"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*path, key))


def changed(row: dict[str, Any], place: tuple[Any, ...], value: object, *, drop: bool) -> dict[str, Any]:
    row = copy.deepcopy(row)
    holder: Any = row
    for key in place[:-1]:
        holder = holder[key]
    if drop and isinstance(holder, dict):
        del holder[place[-1]]
    else:
        holder[place[-1]] = value
    return row


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_checker_agrees_with_jsonschema_and_the_readers_with_both(data: st.DataObject, tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    name = data.draw(st.sampled_from([*SAMPLES, "alce"]))
    row = data.draw(st.sampled_from(ALCE["data"] if name == "alce" else SAMPLES[name]))
    place = data.draw(st.sampled_from([place for place in places(row) if place]))
    row = changed(row, place, data.draw(JSON), drop=data.draw(st.booleans()))
    one = formats.FORMATS[name]
    found = list(faults(row, one.schema))
    assert (not found) == jsonschema.Draft202012Validator(one.schema).is_valid(row), found
    path = tmp_path / "changed"
    path.write_text(json.dumps({"data": [row]} if name == "alce" else row))
    list(formats.validate(path, name))  # never raises
    if not one.read:
        return
    if any(faults(row, one.schema, limits=False)):
        with pytest.raises(FormatError, match="changed:1: "):
            list(formats.read(path, name))
    else:
        try:
            answers = list(formats.read(path, name))
        except FormatError:  # fields contradict each other, or a text is no list: a schema cannot say so
            assert any(not fault.warning for fault in formats.validate(path, name))
            return
        for target in ("answers", "hagrid", "alce", "liu-annotations", "trec-rag-25"):
            list(formats.write(answers, target))


# --- our own --------------------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ID = TEXT.filter(str.strip)
NO_HEADINGS: st.SearchStrategy[Any] = st.none()  # they come from title and section


@st.composite
def cited_answers(draw: st.DrawFn) -> CitedAnswer:
    keys = draw(st.lists(ID, max_size=4, unique=True))
    passages = {key: Passage(key, draw(TEXT), draw(TEXT), draw(TEXT), draw(NO_HEADINGS | TEXT)) for key in keys}
    label = st.none() | st.booleans()
    place = st.none() | st.integers(0, 9)
    some_key: st.SearchStrategy[str] = st.sampled_from(keys) if keys else st.nothing()
    citation = st.builds(
        Citation, some_key, place, place, st.none() | TEXT, st.none() | TEXT, st.none() | st.sampled_from(Support)
    )
    sentence = st.builds(
        CitedSentence,
        TEXT,
        st.lists(citation, max_size=4).map(tuple),
        output=st.none() | TEXT,
        informative=label,
        attributable=label,
        worthy=label,
    )
    sentences = draw(st.lists(sentence, max_size=3))
    bad = st.builds(Unresolved, ID, st.sampled_from(["out-of-range", "zero"]), st.none() | st.integers(0, 3))
    return CitedAnswer(
        id=draw(ID),
        question=draw(TEXT),
        sentences=tuple(sentences),
        passages=passages,
        ranking=tuple(draw(st.permutations(keys))),
        scores=draw(st.dictionaries(some_key, st.floats(-9, 9))),
        short_answer=draw(st.none() | TEXT),
        abstained=not sentences and draw(st.booleans()),
        unresolved_markers=tuple(draw(st.lists(bad, max_size=2))),
        answers=tuple(draw(st.lists(TEXT, max_size=2))),
        gold=tuple(draw(st.lists(ID, max_size=2))),
        output=draw(st.none() | TEXT),
        informative=draw(label),
        attributable=draw(label),
        extra=draw(st.dictionaries(st.sampled_from(["system", "id", "extra", "label"]), JSON, max_size=3)),
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(answer=cited_answers())
def test_our_own_format_is_lossless(answer: CitedAnswer, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write_atomic(path, write_answers([answer]))
    assert list(read_answers(path)) == [answer]
    found = list(formats.validate(path, "answers"))
    assert [fault for fault in found if "is cited from" not in str(fault)] == []  # any places, any quotes
    if all(fault.warning for fault in found):
        assert next(iter(formats.read(path, "answers"))) == answer
    else:
        with pytest.raises(FormatError, match="is cited from"):
            next(iter(formats.read(path, "answers")))


def test_paragraphs_of_an_answer_are_kept_and_sentences_have_their_places() -> None:
    row = {"id": "1", "question": "?", "answer": "A.\n\nB.", "sentences": [{"text": "A."}, {"text": "B."}]}
    written = to_row(replace(next(iter([_own(row)]))))
    assert written["answer"] == "A.\n\nB."
    assert [(s["start"], s["end"]) for s in written["sentences"]] == [(0, 2), (4, 6)]


def _own(row: dict[str, Any]) -> CitedAnswer:
    from autoais.base.answers import from_row

    return from_row(row, "here")


def test_an_id_that_is_no_passage_is_unresolved_and_the_sentence_judged_on_the_others(tmp_path: Path) -> None:
    row = copy.deepcopy(SAMPLES["answers"][0]) | {"unresolved": []}
    row["sentences"][0]["citations"].insert(0, {"passage": "zz"})
    path = lines(tmp_path / "a.jsonl", row)
    (answer,) = read_answers(path)
    assert answer.unresolved_markers == (Unresolved("zz", "unknown-id", 0),)
    assert answer.sentences[0].cites == ("p",)
    summary = Summary()
    for item in judge_answers([answer], LexicalJudge()):
        summary.add(item)
    result = summary.report("lexical")
    assert result["unresolved_markers"] == 1
    assert (result["metrics"]["sentences"]["n"], result["metrics"]["sentences"]["value"]) == (2, 1.0)
    assert messages(path) == [
        ":1: warning: field 'sentences[0].citations': 'zz' is not a passage of the row; it counts as unresolved"
    ]


def test_spans_quotes_and_confidence_are_checked_where_the_text_is_there(tmp_path: Path) -> None:
    def row(confidence: object = 0.5, **citation: object) -> dict[str, Any]:
        sentences = [{"text": "A tall mill.", "citations": [{"passage": "p", **citation}]}]
        passages = [{"id": "p", "text": "A tall\nmill."}]
        asked = {"id": "1", "question": "?", "confidence": confidence}
        return {**asked, "sentences": sentences, "passages": passages}

    def says(row: dict[str, Any]) -> list[str]:
        return messages(lines(tmp_path / "a.jsonl", row))

    for sound in (row(), row(None), row(1), row(start=0, end=12, quote="A tall\nmill."), row(quote="elsewhere")):
        assert says(sound) == []
    unknown = row(start=0, end=99)
    unknown["passages"][0]["text"] = ""
    assert says(unknown) == []
    (beyond,) = says(row(start=2, end=13))
    assert beyond == (
        ":1: field 'sentences[0].citations': 'p' is cited from 2 to 13, and its text has the characters 0 to 12"
    )
    assert len(says(row(start=5, end=2))) == 1
    (other,) = says(row(start=2, end=6, quote="small"))
    assert other.endswith("'p' is cited from 2 to 6, and its 'quote' is not the text there: 'tall'")
    (spaces,) = says(row(start=0, end=12, quote="A tall mill."))
    assert spaces.startswith(":1: warning: ")
    assert "with other white space than the text there" in spaces
    for wrong, found in ((7, "7"), (-0.1, "-0.1"), ("high", "high"), (True, "True")):
        assert says(row(wrong)) == [f":1: field 'confidence' should be a number from 0 to 1 or null, found {found}"]


HAGRID_FROM_ZERO = {
    "query_id": 1,
    "query": "Where is the mill?",
    "quotes": [{"idx": 0, "docid": "a#1", "text": "It is in Arlen."}],
    "answers": [{"answer": "It is in Arlen [1]."}],
}
ALL_FAULTS = "; `autoais validate` lists all faults of the file"


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (
            {
                "id": "1",
                "question": "?",
                "sentences": [{"text": "A mill.", "citations": [{"passage": "p", "start": 0, "end": 99}]}],
                "passages": [{"id": "p", "text": "A mill."}],
            },
            "field 'sentences[0].citations': 'p' is cited from 0 to 99, and its text has the characters 0 to 7",
        ),
        (
            {"id": "1", "question": "?", "answer": "A mill.", "confidence": "high"},
            "field 'confidence' should be a number from 0 to 1 or null, found high",
        ),
        (HAGRID_FROM_ZERO, "field 'quotes': idx should run from 1 to 1, found [0]"),
        (
            {
                "id": "1",
                "source_id": "s",
                "model": "m",
                "labels": [{"start": 2, "end": 90}],
                "response": "A tall mill.",
                "quality": "good",
            },
            "field 'labels[0]' is 2 to 90, and the response has the characters 0 to 12",
        ),
    ],
)
def test_readers_refuse_what_would_mislead_them(
    tmp_path: Path, autoais: Command, row: dict[str, Any], fault: str
) -> None:
    path = lines(tmp_path / "a.jsonl", row)
    assert messages(path)[0] == f":1: {fault}"
    for command in (["score", path], ["convert", path, tmp_path / "out", "--to", "answers"]):
        one_line_error(autoais(*command), f"a.jsonl:1: {fault}{ALL_FAULTS}")


@pytest.mark.parametrize(
    ("line", "found"), [("5", "an integer"), ("null", "null"), ('"abc"', "a string"), ("true", "true")]
)
def test_lines_that_are_no_objects_are_told(tmp_path: Path, line: str, found: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f"{line}\n")
    assert messages(path) == [f":1: expected a JSON object, found {found}"]
    with pytest.raises(FormatError, match=f"a.jsonl:1: expected a JSON object, found {found}"):
        list(formats.read(path))


def test_a_pipe_has_a_way_out(tmp_path: Path, autoais: Command) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["sh", "-c", 'echo "{}" > "$0"', pipe]):
        done = autoais("validate", pipe)
    one_line_error(done, "pipe: a pipe, which cannot be read twice; save it to a file first")


def test_what_rag_writes_comes_through_whole(tmp_path: Path, rag: Command, shelf: Path) -> None:
    questions = lines(tmp_path / "q.jsonl", {"id": "1", "question": "What is the capital of Poland?", "answers": ["x"]})
    out = tmp_path / "a.jsonl"
    assert rag("answer", questions, "--index", shelf, "--out", out).returncode == 0
    assert messages(out) == []
    (before,) = (json.loads(line) for line in out.read_text("utf-8").splitlines())
    (line,) = formats.write(formats.read(out), "answers")
    after = json.loads(line)
    assert {key: value for key, value in after.items() if key in before} == before


# --- Attributed QA --------------------------------------------------------------------------------------------------


def corpus(path: Path) -> Path:
    rows = [
        {"id": "x#1", "contents": "« Ann » « Ann, Life » Ann did it.\nAlone."},
        {"id": "x#2", "contents": "« Cat » « Cats, X » body"},
        {"id": "x#3", "contents": "no marks"},
    ]
    return lines(path, *rows)


QUESTIONS = [Question("q1", "who", ("Ann",)), Question("q2", "where", ("Rome",)), Question("q3", "when", ("1900",))]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_predictions_as_people_have_them(tmp_path: Path, newline: str, bom: str) -> None:
    rows = ["question,answer,attribution", "who,Bob,x#9", "else,Eve,x#1", "who,Ann,x#1", "where,Rome,x#404", '"when",,']
    path = tmp_path / "p.csv"
    path.write_bytes((bom + newline.join(rows) + newline).encode())
    notes = formats.Notes()
    answers = list(formats.read(path, questions=QUESTIONS, corpus=[corpus(tmp_path / "c.jsonl")], notes=notes))
    assert [(a.id, a.short_answer, a.answers) for a in answers] == [
        ("q1", "Ann", ("Ann",)),
        ("q2", "Rome", ("Rome",)),
        ("q3", "", ("1900",)),
    ]
    assert answers[0].passages == {"x#1": Passage("x#1", "Ann", "Ann did it.\nAlone.", "Life")}
    assert notes.by_text() == {
        "rows with a repeated question, only the last one kept": 1,
        "answers to questions outside the benchmark, dropped (the first: 'else')": 1,
        "passage ids that are not in the corpus: not attributable": 1,
    }
    summary = Summary()
    for item in judge_answers(answers, LexicalJudge(), QUESTIONS):
        summary.add(item)
    metrics = summary.report("lexical")["metrics"]
    # an unknown id loses AutoAIS and still earns EM (spec A6)
    assert (metrics["autoais"]["floor"], metrics["em"]["floor"]) == (pytest.approx(1 / 3), pytest.approx(2 / 3))


def test_the_ais_file_of_the_released_script_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text('question,answer,attribution\nwho,Ann,x#1\nwhere,"a ""b"", c",x#2\nwhen,,x#404\nlast,Z,x#3\n')
    answers = list(formats.read(path, questions=QUESTIONS, corpus=[corpus(tmp_path / "c.jsonl")]))
    assert aqa.last_question(path) == "last"
    judged = list(zip(answers, [True, None, False], strict=True))
    out = tmp_path / "ais.csv"
    write_atomic(out, aqa.ais_lines(judged, compat=True, last=aqa.last_question(path)))
    assert out.read_bytes() == (
        b"question,answer,passage,autoais\r\n"
        b'last,Ann,"Title: Ann\nSection: Life\n\nAnn did it.",Y\r\n'
        b'last,"a ""b"", c","Title: Cat\nSection:  X\n\nbody",N\r\n'
        b"last,,,N\r\n"
    )
    write_atomic(out, aqa.ais_lines(judged))
    assert out.read_bytes() == (
        b"question,answer,passage,autoais\r\n"
        b'who,Ann,"Title: Ann\nSection: Life\n\nAnn did it.\nAlone.",Y\r\n'
        b'where,"a ""b"", c","Title: Cat\nSection: Cats, X\n\nbody",N\r\n'
        b"when,,,N\r\n"
    )


def test_the_scores_file_has_three_lines(tmp_path: Path) -> None:
    path = tmp_path / "scores"
    write_atomic(path, aqa.scores_lines(0.25, 100 * 1 / 3, 50.0))
    assert path.read_text() == "AutoAIS: 0.25\nSQuAD (em): 33.333333333333336\nSQuAD (f1): 50.0\n"
    assert formats.detect(path) == "aqa-scores"
    assert aqa.read_scores(path)["SQuAD (f1)"] == 50
    assert messages(path) == []
    path.write_text("AutoAIS: nan\n")
    assert messages(path) == [":1: 'AutoAIS' is not a number: nan"]
    path.write_text("AutoAIS: 25\nSQuAD (em): 1\n")
    assert len(messages(path)) == 1  # the third line


def test_a_broken_corpus_line_is_an_error_or_counted(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("question,answer,attribution\nwho,Ann,x#1\n")
    broken = tmp_path / "c.jsonl"
    broken.write_text('{"id": "x#1", "cont\n' + corpus(tmp_path / "d.jsonl").read_text("utf-8"), "utf-8")
    with pytest.raises(FormatError, match=r"c\.jsonl:1: not JSON"):
        list(formats.read(path, corpus=[broken]))
    notes = formats.Notes()
    (answer,) = formats.read(path, corpus=[broken], notes=notes, skip_bad=True)
    assert answer.passages["x#1"].text
    assert notes["broken_lines"] == 1


def test_miracl_and_beir_passages_are_found_too(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("question,answer,attribution\nwho,Ann,a\nwhere,Rome,b\n")
    miracl = lines(tmp_path / "m.jsonl", {"docid": "a", "title": "Ann", "text": "Ann did."})
    beir = lines(tmp_path / "b.jsonl", {"_id": "b", "title": "", "text": "Rome."}, {"no": "id"})
    first, second = formats.read(path, corpus=[miracl, beir])
    assert first.passages["a"].evidence == "Ann. Ann did."
    assert second.passages["b"].evidence == "Rome."


def test_a_passage_of_the_corpus_may_be_without_a_text_or_marks(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("question,answer,attribution\nwho,Ann,x#1\nwhere,Rome,b\nlast,Z,x#3\n")
    beir = lines(tmp_path / "b.jsonl", {"_id": "a", "title": "", "text": ""}, {"_id": "b", "title": "T", "text": ""})
    ann, rome, last = formats.read(path, corpus=[beir, corpus(tmp_path / "c.jsonl")])
    assert ann.passages["x#1"].headings == "Ann, Life"
    assert rome.passages["b"].evidence == ""
    assert last.passages["x#3"].evidence == "no marks"


# --- the others -----------------------------------------------------------------------------------------------------


def test_hagrid_answers_carry_labels_and_clean_sentences(tmp_path: Path) -> None:
    long, short = formats.read(sample(tmp_path, "hagrid"))
    assert [s.text for s in long.sentences] == ["It is Warsaw.", "The Vistula flows north."]
    assert [s.cites for s in long.sentences] == [("a#1",), ("b#1",)]
    assert (long.informative, long.attributable) == (True, False)
    assert (short.informative, short.attributable) == (True, None)


def test_hagrid_is_read_without_what_is_uncertain_and_rolls_labels_up(tmp_path: Path) -> None:
    sentences = [{"text": "A [1].", "informative": 0, "attributable": 1}, {"text": "B [2][5].", "attributable": 1}]
    row = {"query": "?", "quotes": [{"text": "[1] one"}, {"text": "two"}], "answers": [{"answer": "", "x": 1}]}
    row["answers"].append({"answer": "A [1]. B [2][5].", "sentences": sentences})  # type: ignore[attr-defined]
    empty, answer = formats.read(lines(tmp_path / "h.jsonl", row))
    assert (empty.sentences, empty.attributable) == ((), None)
    assert (answer.informative, answer.attributable) == (None, True)
    assert [passage.text for passage in answer.passages.values()] == ["one", "two"]
    assert answer.unresolved_markers == (Unresolved("[5]", "out-of-range", 1),)
    sentences[1]["attributable"] = 0
    row["answers"][1]["attributable"] = 1  # type: ignore[index]
    faults_found = messages(lines(tmp_path / "h.jsonl", row))
    assert ":1: warning: field 'answers[1].attributable' is 1, its sentences give 0" in faults_found
    assert ":1: warning: field 'answers[1]': marker [5] is out-of-range" in faults_found


def test_alce_outputs_are_parsed_and_kept(tmp_path: Path) -> None:
    answer, empty = formats.read(sample(tmp_path, "alce"))
    assert [(s.text, s.cites) for s in answer.sentences] == [
        ("It is Warsaw.", ("11", "12")),
        ("The Vistula flows north.", ("12",)),
        ("More.", ()),
    ]
    assert answer.unresolved_markers == (Unresolved("[9]", "out-of-range", 2),)
    assert answer.output == ALCE["data"][0]["output"]
    assert answer.passages["11"].evidence == f"Warsaw. {POLAND}"
    assert empty.sentences == ()
    written = json.loads("".join(formats.write([answer, empty], "alce")))
    assert written["data"] == ALCE["data"]


def test_faults_of_a_document_name_their_record_and_the_line_where_it_begins(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(
        '{"args": {},\n"data": [\n{"question": "?", "docs": [], "output": "So."},\n{"question": 3,\n "docs": []}\n]}'
    )
    assert messages(path)[:2] == [":4: data[1]: field 'output' is missing (found: docs, question)",
                                  ":4: data[1]: field 'question' should be a string, found an integer"]  # fmt: skip
    with pytest.raises(FormatError, match=r"a\.json:4: data\[1\]: field 'output' is missing"):
        list(formats.read(path))
    path.write_text('{"data": [\n{"question": "?", "docs": [], "output": ""},\n{"question": }')
    assert ":3: not JSON: Expecting value at column 14" in messages(path)
    path.write_text('[{"input": "q?", "actual_output": "A."},\n{"input": "q?", "actual_output": "A')
    assert messages(path) == [":2: not JSON: it breaks off: Unterminated string at column 34"]
    path.write_text('[{"input": "q?", "actual_output": "A."}, {"input": "q?"}]')
    assert messages(path)[0].startswith(":1: [1]: field 'actual_output' is missing")
    path.write_text('[{"query": "q", "answer": "a", "reference": "r", "label": "Attributable"}, {"query": NaN}]')
    assert formats.detect(path) == "attrscore"
    assert "NaN is not a JSON number" in messages(path)[0]


def test_a_document_goes_on_after_a_number_that_is_too_large(tmp_path: Path) -> None:
    good, large = (json.dumps({"user_input": "q?", "response": "A."})[:-1] + f', "x": {x}}}' for x in (1, "1" * 6000))
    path = tmp_path / "a.json"
    path.write_text(f'[{good},\n{large},\n{good},\n{good[:-1]}, "y": NaN}}]')
    assert [message[:40] for message in messages(path)] == [
        ":2: [1]: not JSON: the number 1111111111",
        ":4: [3]: not JSON: NaN is not a JSON num",
    ]


def test_what_is_nested_too_deeply_ends_a_document_and_says_so(tmp_path: Path) -> None:
    good = '{"user_input": "q?", "response": "A."}'
    path = tmp_path / "a.json"
    path.write_text(f'[{good},\n{{"x": {"[" * 100_000}{"]" * 100_000}}},\n{good}]')
    assert messages(path) == [":1: a record from here on is nested too deeply; it and what follows are not read"]


RECORD = '{"user_input": "q?", "response": "A."}'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"[{RECORD},\n]", "1: not JSON: a comma before ']' at column 40"),
        (f'{{"results": [{RECORD}],\n}}', "1: not JSON: a comma before '}' at column 53"),
        (RECORD.replace("}", ', "response": "B."}'), "1: not JSON: key 'response' occurs twice"),
        (RECORD.replace("}", ', "x": {"a": 1, "a": 1}}'), "1: not JSON: key 'a' occurs twice"),
        (f'[{RECORD},\n{RECORD[:-1]}, "response": "B."}}]', "2: [1]: not JSON: key 'response' occurs twice"),
        (f'{{"results": [{RECORD}],\n"results": [{RECORD}]}}', "2: not JSON: key 'results' occurs twice at column 1"),
        (f'{{\n1: 2, "results": [{RECORD}]}}', "2: not JSON: a key should be a string at column 1"),
    ],
)
def test_json_that_readers_take_in_different_ways_is_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    assert f":{says}" in messages(path)
    with pytest.raises(FormatError, match=re.escape(says)):
        list(formats.read(path, "ragas"))


def test_trec_citations_are_numbers_from_zero_or_docids(tmp_path: Path) -> None:
    (run,) = formats.read(sample(tmp_path, "trec-rag-24"))
    assert run.sentences[0].cites == ("msmarco_v2.1_doc_00_2#0_2", "msmarco_v2.1_doc_00_1#0_1")
    first, second = formats.read(sample(tmp_path, "trec-rag-25"))
    assert first.sentences[0].cites == second.sentences[0].cites == ("msmarco_v2.1_doc_00_1#0_1",)
    row = SAMPLES["trec-rag-24"][0] | {"answer": [{"text": "x", "citations": [-1, 2, 0]}]}
    (odd,) = formats.read(lines(tmp_path / "t.jsonl", row))
    assert odd.sentences[0].cites == ("msmarco_v2.1_doc_00_1#0_1",)
    assert [bad.marker for bad in odd.unresolved_markers] == ["-1", "2"]


def test_a_trec_run_is_checked_as_the_track_does(tmp_path: Path) -> None:
    good = SAMPLES["trec-rag-24"][0]
    long = [
        {"text": "word " * 390, "citations": [0]},
        {"text": "and\u00a0the rest of it, more and more words", "citations": [21, 3]},
    ]
    bad = good | {
        "run_id": "r2",
        "references": [*[f"d{n}" for n in range(21)], "d0"],
        "answer": long,
        "response_length": 1,
    }
    path = lines(tmp_path / "run.jsonl", good, bad, good)
    topics = [Question("2024-1", "capital of Poland"), Question("2024-2", "other")]
    found = "\n".join(messages(path, topics=topics))
    for said in (
        ":2: field 'references' has 22 items, more than 20",
        ":2: field 'references' has an item twice",
        ":2: field 'run_id' is 'r2', in the first row it is 'r1'; a file holds one run",
        ":2: topic '2024-1' occurs twice",
        ":3: topic '2024-1' occurs twice",
        ":2: warning: field 'response_length' is 1, counted 399",
        ":2: warning: field 'references': 'd0' is not a docid of the track's corpus (22 such)",
        ":1: the text of topic '2024-1' is not the official 'capital of Poland'",
        ": topic '2024-2' is not answered",
    ):
        assert said in found
    assert "more than 400" not in found


def test_a_fault_in_a_row_of_a_run_hides_neither_its_topic_nor_its_run(tmp_path: Path) -> None:
    for name in ("trec-rag-24", "trec-rag-25"):
        row = SAMPLES[name][0]
        again = copy.deepcopy(row) | {"references": "none"}
        (again.get("metadata") or again)["run_id"] = "r9"
        no_topic = copy.deepcopy(row) | {"answer": 1}
        (no_topic.get("metadata") or no_topic).pop("narrative_id" if "metadata" in row else "topic_id")
        path = lines(tmp_path / "run.jsonl", row, again, no_topic)
        found = messages(path, name)
        assert ":2: field 'references' should be a list of strings, found a string" in found
        assert any(":2: topic" in message and "occurs twice" in message for message in found)
        assert any(":2: field 'run_id' is 'r9', in the first row it is" in message for message in found)
        assert all("topic '" not in message for message in found if message.startswith(":3"))
        topics = [Question(next(formats.read(sample(tmp_path, name))).id, "")]
        broken = lines(tmp_path / "run.jsonl", again)
        assert all("is not answered" not in message for message in messages(broken, name, topics))


def test_a_run_of_2024_may_have_a_field_metadata(tmp_path: Path) -> None:
    kinds: tuple[Any, ...] = (None, [], {"note": 1})
    for metadata in kinds:
        path = lines(tmp_path / "run.jsonl", SAMPLES["trec-rag-24"][0] | {"metadata": metadata})
        assert messages(path) == []
        (answer,) = formats.read(path)
        assert answer.id == SAMPLES["trec-rag-24"][0]["topic_id"]
    (answer,) = formats.read(lines(tmp_path / "25.jsonl", SAMPLES["trec-rag-25"][0] | {"topic_id": 3}), "trec-rag-25")
    assert answer.id == str(SAMPLES["trec-rag-25"][0]["metadata"]["narrative_id"])


def test_a_fault_hides_no_id_that_comes_again(tmp_path: Path) -> None:
    bad = {"id": "1", "question": 3}
    found = messages(
        lines(tmp_path / "a.jsonl", {"id": "1", "question": "?", "abstained": True}, bad, {"id": None, "question": "?"})
    )
    assert any(message.startswith(":2: field 'id': '1' occurs twice (first at ") for message in found)
    assert len(found) == 3


def test_mending_a_run_moves_citations_along_with_references_that_come_twice() -> None:
    row = SAMPLES["trec-rag-24"][0] | {
        "references": ["a", "b", "a", "c"],
        "answer": [
            {"text": "One.", "citations": [2, 0, 3]},
            {"text": "Two.", "citations": [1, 9]},
            {"text": "word " * 399, "citations": []},
        ],
    }
    fixed, did = trec.fix(row, 2)
    assert fixed["references"] == ["a", "b"]
    assert [s["citations"] for s in fixed["answer"]] == [[0], [1]]
    assert fixed["response_length"] == 2
    assert did == [
        "removed 1 duplicate references",
        "trimmed references from 3 to 2",
        "dropped 2 citations without a reference",
        "dropped the last 1 of 3 sentences",
        "set response_length to 2",
    ]
    assert trec.fix(fixed, 2) == (fixed, [])


@given(
    st.lists(st.sampled_from("abcd"), max_size=6),
    st.lists(st.lists(st.integers(-1, 7) | st.sampled_from("abcx"), max_size=4), max_size=4),
    st.integers(0, 4),
)
def test_a_mended_row_means_what_it_meant_and_keeps_to_the_limits(
    references: list[str], citations: list[list[int | str]], most: int
) -> None:
    row: dict[str, Any] = {
        "metadata": {"team_id": "t", "run_id": "r", "narrative_id": 1},
        "references": references,
        "answer": [{"text": "word " * 120, "citations": one} for one in citations],
    }
    fixed, _ = trec.fix(row, most)
    assert len(fixed["references"]) == len(set(fixed["references"])) <= most
    assert sum(trec.words(s["text"]) for s in fixed["answer"]) <= 400
    for before, after in zip(row["answer"], fixed["answer"], strict=False):
        meant = dict.fromkeys(trec._resolve(row, cited) for cited in before["citations"])
        kept = list(dict.fromkeys(trec._resolve(fixed, cited) for cited in after["citations"]))
        assert kept == [key for key in meant if key in fixed["references"]]


def test_liu_et_al_as_answers(tmp_path: Path) -> None:
    (judged,) = formats.read(sample(tmp_path, "liu-judgements"))
    assert judged.sentences[0].support == {"http://a": Support.FULL, "http://b": Support.NONE}
    assert judged.passages["http://a"].evidence == f"Warsaw. {POLAND}"
    row = copy.deepcopy(SAMPLES["liu-annotations"][0])
    notes_row = row["annotation"]["statement_to_annotation"]["It is Warsaw."]["citation_annotations"][1]
    notes_row["citation_supports"] = "Citation Inaccessible"
    notes = formats.Notes()
    (answer,) = formats.read(lines(tmp_path / "l.jsonl", row), notes=notes)
    worthy, polite = answer.sentences
    assert (worthy.worthy, worthy.attributable, polite.worthy, polite.attributable) == (True, True, False, None)
    assert worthy.support == {"http://a": Support.FULL, "http://b": Support.NONE}
    assert sum(notes.values()) == 1
    row["annotation"]["statement_to_annotation"]["I am glad to help."]["statement_supported"] = "No"
    row["citations"][0]["start_index"] = 2
    assert len(messages(lines(tmp_path / "l.jsonl", row))) == 2


@pytest.mark.parametrize(
    ("supports", "level"),
    [
        ("Citation Completely Supports Statement", Support.FULL),
        ("Citation Partially Supports Statement", Support.PARTIAL),
        ("Citation Provides No Support for Statement", Support.NONE),
        ("Citation Inaccessible", Support.NONE),
        ("Citation Completely Supports but Also Refutes Statement", Support.NONE),
        ("Statement is Unclear, Can't Make Judgment", Support.NONE),
    ],
)
def test_every_judgement_of_liu_et_al_is_a_level_of_support(tmp_path: Path, supports: str, level: Support) -> None:
    row = copy.deepcopy(SAMPLES["liu-annotations"][0])
    judged = row["annotation"]["statement_to_annotation"]["It is Warsaw."]["citation_annotations"]
    judged[0]["citation_supports"] = supports
    (answer,) = formats.read(lines(tmp_path / "l.jsonl", row))
    assert answer.sentences[0].support["http://a"] is level
    judged[0]["citation_supports"] = "?"
    with pytest.raises(FormatError, match="citation_supports"):
        list(formats.read(lines(tmp_path / "l.jsonl", row)))


def test_markers_that_do_not_number_the_passages_are_not_written(tmp_path: Path) -> None:
    passages = {"a": Passage("a", text=POLAND), "b": Passage("b", text=RIVER)}
    flows = CitedSentence("It flows.", (Citation("b"),), output="It flows [1].")
    answer = CitedAnswer("1", "?", (flows,), passages, output="It flows [1].")
    document = json.loads("".join(formats.write([answer], "alce")))
    assert document["data"][0]["output"] == "It flows [2]."
    notes = formats.Notes()
    own_words = replace(answer, sentences=(CitedSentence("See [3]!", (Citation("a"),)),), output=None)
    (line,) = formats.write([own_words], "hagrid", notes)
    assert json.loads(line)["answers"][0]["answer"] == "See [3] [1]!" or notes
    assert sum(notes.values()) == 1


# --- files that are not what they should be -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "holds no records"),
        (b"\n \n", "holds no records"),
        (b"\xef\xbb\xbf", "holds no records"),
        (b"question,answer\nwho,Ann\n", ":1: column attribution is missing (found: question, answer)"),
        (b"question,answer,attribution\n", "holds no records"),
        (b"question,answer,attribution\nwho,Ann\n", ":2: 2 columns, but the header has 3"),
        (b'question,answer,attribution\nwho,"Ann\n', ":2: not CSV: unexpected end of data"),
        (b'question,answer,attribution\nwho,"Ann"x,y\n', ":2: not CSV: ',' expected after '\"'"),
        (b"question,answer,attribution\nwho,\xe9,x\n", ":2: field 'answer' is not UTF-8"),
        (b"question,answer,answer,attribution\n", ":1: column 'answer' occurs twice"),
        ("question,answer,attribution\nwho,Ann,x\n".encode("utf-16"), ":1: a binary file, or text that is not UTF-8"),
        (
            "question,answer,attribution\nwho,Ann,x\n".encode("utf-16-le"),
            ":1: a binary file, or text that is not UTF-8",
        ),
        (b"\x89PNG\r\n\x1a\n", ":1: a binary file, or text that is not UTF-8; save it as JSON lines or csv"),
        (b"question,answer,attribution\rwho,Ann,x\r", ":1: not CSV: new-line character seen in unquoted field"),
        (b"question,answer,attribution\n ,Ann,x\n", ":2: field 'question' is empty"),
        (gzip.compress(b"question,answer,attribution\nwho,Ann,x\n" * 9)[:-12], "is broken or cut off"),
        (b"\x1f\x8b nothing", "is broken or cut off"),
        (b"\x28\xb5\x2f\xfd nothing", "is broken or cut off"),
    ],
)
def test_broken_predictions_say_where_and_why(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "p.csv"
    path.write_bytes(content)
    found = messages(path, "aqa-predictions")
    assert says in found[0]
    assert list(formats.validate(path))  # also where the format is not named
    if "holds no records" not in says:
        with pytest.raises(FormatError, match=r"p\.csv:\d+: "):
            list(formats.read(path, "aqa-predictions"))


def test_nul_bytes_and_huge_fields_are_text_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    huge = "word " * 200_000
    path.write_text(f"question,answer,attribution\nwho,A\0n,x\nwhere,{huge},y\n")
    first, second = formats.read(path)
    assert (first.short_answer, second.short_answer) == ("A\0n", huge)
    out = tmp_path / "out.csv"
    write_atomic(out, formats.write([first, second], "aqa-predictions"))
    assert list(formats.read(out)) == [first, second]


def test_half_a_surrogate_pair_does_not_stop_a_csv(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": "1", "question": "?", "short_answer": "\\ud800x"}\n')
    out = tmp_path / "out.csv"
    write_atomic(out, formats.write(formats.read(path), "aqa-predictions"))
    assert out.read_text().endswith("?,?x,\n")


def test_every_fault_is_listed_and_reading_stops_at_the_first(tmp_path: Path) -> None:
    good = json.dumps(SAMPLES["trec-rag-24"][0])
    path = tmp_path / "run.jsonl"
    path.write_bytes(
        b'{"topic_id": 1\n'
        + good.encode()
        + b'\n{"topic_id": [], "references": "x", "answer": [{"text": 1, "citations": ["0"]}]}\n\n[1]\n\xff\n'
    )
    found = messages(path)
    assert [message.partition(": ")[0] for message in found] == [":1", *[":3"] * 6, ":5", ":6"]
    assert ":3: field 'answer[0].citations' should be a list of integers, found a string in it" in found
    with pytest.raises(FormatError, match=r"run\.jsonl:1: not JSON"):
        list(formats.read(path))
    path.write_text("{broken\n{also\n")
    assert [message.partition(": ")[0] for message in messages(path)] == [":1", ":2"]


def test_a_first_record_that_lacks_a_field_hides_no_other_fault(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": "1", "sentences": []}\n{broken\n{"id": "2", "question": 3}\n')
    guess, *found = messages(path)
    assert guess.startswith(":1: no known format has just these fields; checked as answers, the nearest, which also")
    assert found[0] == ":1: field 'question' is missing (found: id, sentences)"
    assert [message.partition(": ")[0] for message in found] == [":1", ":2", ":3"]


@pytest.mark.parametrize(
    ("name", "mark"),
    [("trec-rag-24", "answer"), ("trec-rag-25", "answer"), ("hagrid", "query"), ("liu-annotations", "annotation"),
     ("attrscore", "query"), ("answers", "id")],
)  # fmt: skip
def test_the_nearest_format_is_the_one_that_lacks_a_field(tmp_path: Path, name: str, mark: str) -> None:
    row = SAMPLES[name][0]
    path = lines(tmp_path / "near.jsonl", {field: value for field, value in row.items() if field != mark})
    assert f"checked as {name}, the nearest, which also has {mark}" in messages(path)[0]


def test_a_record_that_has_more_fields_of_another_format_is_doubted(tmp_path: Path) -> None:
    row = {field: value for field, value in SAMPLES["attributionbench"][0].items() if field != "claim"}
    says = ":1: warning: checked as answers, yet most fields are those of attributionbench, which also has claim"
    assert messages(lines(tmp_path / "l.jsonl", row)) == [f"{says}; choose another format (--format)"]
    path = tmp_path / "r.csv"
    path.write_text("question,answer,attribution,passage,human_rating\nwho,Ann,a,Ann did.,Y\n")
    assert "most fields are those of aqa-ratings, which also has system_name" in messages(path)[0]
    for name in KINDS:
        assert all("most fields" not in message for message in messages(sample(tmp_path, name)))


def test_a_misspelt_field_is_warned_of_once_and_other_fields_are_data(tmp_path: Path, autoais: Command) -> None:
    row = {
        "id": "1",
        "question": "?",
        "sentence": [],
        "mood": "good",
        "passages": [{"id": "a", "text": "t", "titel": ""}],
    }
    path = lines(tmp_path / "a.jsonl", row, row | {"id": "2"}, row | {"id": "3", "sentences": []})
    result = autoais("validate", path)
    assert result.returncode == 0
    assert result.stdout.splitlines() == [
        f"{path}:1: warning: field 'sentence' is not known; did you mean 'sentences'? (2 records)",
        f"{path}:1: warning: field 'passages[].titel' is not known; did you mean 'passages[].title'? (3 records)",
        f"{path}: answers, 3 records, no faults",
    ]
    for name in KINDS:
        assert all("is not known" not in message for message in messages(sample(tmp_path, name)))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"id": "1", "question": "Wh', "Unterminated string at character 25"),
        ('{"id": "1", "question": "?"', "it breaks off: Expecting ',' delimiter"),
        ('{"id": "1" "question": "?"}', "Expecting ',' delimiter at character 12"),
    ],
)
def test_a_broken_line_has_one_place(tmp_path: Path, line: str, says: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f"{line}\n")
    assert messages(path) == [f":1: not JSON: {says}"]


def test_a_file_of_no_known_format_shows_its_broken_lines_too(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{broken\n{"foo": 1}\n{broken\n')
    assert [message[:11] for message in messages(path)] == [":1: not JSO", ":2: no know", ":3: not JSO"]


def test_a_missing_column_is_a_fault_of_the_header(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("\nquestion,answer\nwho,Ann\nwhere,Rome\n")
    assert [message.partition(";")[0] for message in messages(path)] == [
        ":2: no known format has just these fields",
        ":2: column attribution is missing (found: question, answer)",
    ]
    path.write_text("a,b\n1,2\n3,4\n")
    assert [message.partition(";")[0] for message in messages(path)] == [":1: no known format has the fields a, b"]
    path.write_text("query,answer,label\nq,a,Attributable\nq,b,Attributable\n")
    assert messages(path)[1:] == [":1: column reference is missing (found: query, answer, label)"]


@pytest.mark.parametrize("number", ["1e999", "-1e999", "1" + "0" * 400, "NaN"])
def test_a_number_that_no_float_holds_is_refused_where_it_stands(tmp_path: Path, number: str) -> None:
    row = json.dumps(SAMPLES["answers"][0])
    path = tmp_path / "a.jsonl"
    path.write_text(f'{row}\n{row[:-1]}, "id": "2", "score": {number}}}\n')
    (fault,) = (message for message in messages(path) if "warning" not in message)
    assert fault.startswith(":2: not JSON: ")
    with pytest.raises(FormatError, match=r"a\.jsonl:2: not JSON: "):
        list(formats.read(path))


def test_a_file_that_breaks_off_is_read_to_there(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl.gz"
    rows = "".join(json.dumps(SAMPLES["attributionbench"][0] | {"id": str(n)}) + "\n" for n in range(3000))
    path.write_bytes(gzip.compress(rows.encode())[:-50])
    (fault,) = messages(path)
    assert "cut off" in fault
    out = tmp_path / "out"
    out.write_text("before")
    with pytest.raises(FormatError, match="cut off"):
        write_atomic(out, formats.write(formats.read(path), "answers"))
    assert out.read_text() == "before"


def test_labels_of_several_sets_may_number_their_rows_alike(tmp_path: Path) -> None:
    path = lines(tmp_path / "l.jsonl", SAMPLES["labels"][0], SAMPLES["labels"][0] | {"dataset": "E"})
    assert [(a.id, a.extra["dataset"]) for a in formats.read(path)] == [("1", "D"), ("1 (2)", "E")]


def test_an_id_twice_and_unknown_formats_are_refused(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", *SAMPLES["attributionbench"] * 2)
    with pytest.raises(FormatError, match=r"a\.jsonl:2: id 'e1' occurs twice"):
        list(formats.read(path))
    assert "occurs twice" in messages(path)[0]
    with pytest.raises(FormatError, match=r"no known format has the fields a; `autoais schema` lists the formats$"):
        formats.detect(lines(tmp_path / "b.jsonl", {"a": 1}))
    with pytest.raises(FormatError, match=r"b\.jsonl:1: the record has no fields; `autoais schema` lists the formats$"):
        formats.detect(lines(tmp_path / "b.jsonl", {}))
    with pytest.raises(UserError, match="no format called 'nope'; there are: aggrefact, alce"):
        formats.get_format("nope")
    with pytest.raises(UserError, match="nothing can be converted to 'aqa-corpus'; formats to write: aggrefact, alce"):
        formats.write([], "aqa-corpus")
    with pytest.raises(UserError, match="aqa-corpus holds no answers; formats that do: aggrefact, alce"):
        formats.read(sample(tmp_path, "aqa-corpus"))


@pytest.mark.parametrize("name", ["answers", "aqa-predictions", "hagrid"])
def test_official_topics_are_for_trec_runs_only(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match=rf"topics \(--questions\) are for trec-rag-24 and trec-rag-25, this is {name}"):
        list(formats.validate(sample(tmp_path, name), topics=[]))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=80) | st.text('{}[]",:\n\\ data1ué', max_size=60).map(str.encode))
def test_no_bytes_are_too_odd_to_be_judged(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "odd"
    path.write_bytes(content)
    for name in (None, "answers", "alce", "aqa-predictions"):
        assert all(fault.location.startswith(str(path)) for fault in formats.validate(path, name))


# --- the commands ---------------------------------------------------------------------------------------------------


def test_a_conversion_that_would_be_empty_writes_nothing(tmp_path: Path, autoais: Command) -> None:
    source, target = tmp_path / "a.jsonl", tmp_path / "labels.jsonl"
    source.write_text('{"id": "1", "question": "Who?", "sentences": [{"text": "Nobody.", "citations": []}]}\n')
    one_line_error(
        autoais("convert", source, target, "--to", "labels"),
        "nothing in it can be written as labels",
    )
    assert not target.exists()


def test_convert_says_how_many_passages_have_no_text(tmp_path: Path, autoais: Command) -> None:
    source, corpus = sample(tmp_path, "trec-rag-24"), tmp_path / "c.jsonl"
    says = "passages without a text, written empty (a corpus adds texts: --corpus FILE)"
    assert says in autoais("convert", source, tmp_path / "out.json", "--to", "alce").stderr
    assert says not in autoais("convert", source, tmp_path / "out.csv", "--to", "aqa-predictions").stderr
    ids = {key for row in SAMPLES["trec-rag-24"] for key in row["references"]}
    lines(corpus, *({"docid": key, "text": POLAND} for key in ids))
    assert says not in autoais("convert", source, tmp_path / "b.json", "--to", "alce", "--corpus", corpus).stderr


@pytest.mark.parametrize(
    ("name", "lost"),
    [
        ("alce", {"systems", "boundaries of sentences"}),
        ("ragas", {"systems", "boundaries of sentences", "ids"}),
        ("ragchecker", {"systems", "boundaries of sentences"}),
        ("deepeval", {"systems", "boundaries of sentences", "ids"}),
        ("trulens", {"systems", "boundaries of sentences", "ids"}),
        ("flashrag", {"systems", "boundaries of sentences"}),
        ("open-rag-eval", {"systems", "boundaries of sentences"}),
        ("hagrid", {"systems"}),
        ("ragnarok", {"systems"}),
        ("trec-rag-24", set()),
        ("labels", set()),
        ("attributionbench", {"systems"}),
        ("aggrefact", {"systems", "ids"}),
        ("answers", set()),
    ],
)
def test_ids_systems_and_boundaries_that_are_lost_are_told(name: str, lost: set[str]) -> None:
    """A group of sentences with one citation at its end is read back as several sentences."""
    sentences = (
        CitedSentence("It is old. It stands in Warsaw.", (Citation("a"),), attributable=True),
        CitedSentence("It is high.", (Citation("a"),), attributable=True),
    )
    answer = CitedAnswer("q1/1", "Where?", sentences, {"a": Passage("a", text="T.")}, extra={"system": "reader"})
    counted = Counter[str]()
    assert list(formats.write(count_losses([answer], formats.get_format(name), counted), name))
    assert counted.keys() & {"ids", "systems", "sentences", "boundaries of sentences"} == lost
    numbered = replace(answer, id="1", extra={}, sentences=sentences[1:])
    counted.clear()
    list(formats.write(count_losses([numbered], formats.get_format(name), counted), name))
    assert not counted.keys() & {"ids", "systems", "sentences", "boundaries of sentences"}


def test_convert_says_what_is_lost_and_never_overwrites_its_input(tmp_path: Path, autoais: Command) -> None:
    source, target = sample(tmp_path, "hagrid"), tmp_path / "out.csv"
    result = autoais("convert", source, target, "--to", "aqa-predictions")
    assert (result.returncode, result.stdout) == (0, "")
    assert "no field for it: labels of sentences (1 answer)" in result.stderr
    assert "no field for it: citations beyond the first (1 answer)" in result.stderr
    before = source.read_bytes()
    one_line_error(autoais("convert", source, source, "--to", "alce"), "would be overwritten")
    for unwritable in ("nope", "aqa-scores"):
        one_line_error(
            autoais("convert", source, target, "--to", unwritable),
            f"nothing can be converted to {unwritable!r}; formats to write: aggrefact, alce, answers, aqa-ais",
        )
    assert source.read_bytes() == before
    back = autoais(
        "convert", target, tmp_path / "own.jsonl.gz", "--to", "answers", "--corpus",
        lines(tmp_path / "c.jsonl", {"docid": "a#1", "title": "Warsaw", "text": POLAND}), "--questions",
        lines(tmp_path / "q.jsonl", {"id": "p1", "question": "What is the capital of Poland?"}),
    )  # fmt: skip
    assert back.returncode == 0, back.stderr
    row = json.loads(gzip.decompress((tmp_path / "own.jsonl.gz").read_bytes()))
    assert (row["id"], row["passages"][0]["text"]) == ("p1", POLAND)


def test_warnings_of_one_kind_are_told_once_with_their_number(tmp_path: Path, autoais: Command) -> None:
    row = SAMPLES["trec-rag-24"][0]
    rows = [row | {"topic_id": str(n), "references": [f"page{'x' * n}"], "answer": []} for n in range(3)]
    path = lines(tmp_path / "t.jsonl", *rows, {**rows[0], "topic_id": "9", "references": 3})
    warned = [line for line in autoais("validate", path).stdout.splitlines() if "'references': 'page" in line]
    assert warned == [
        f"{path}:1: warning: field 'references': 'page' is not a docid of the track's corpus (1 such); "
        "2 more of this kind"
    ]
    assert len([one for one in messages(path) if "'references': 'page" in one]) == 3


def test_judgements_of_score_are_known(tmp_path: Path, autoais: Command) -> None:
    out = tmp_path / "judgements.jsonl"
    assert autoais("score", sample(tmp_path, "hagrid"), "--judge", "lexical", "--out", out).returncode == 0
    shown = autoais("validate", out)
    assert (shown.returncode, formats.detect(out)) == (0, "judgements")
    assert shown.stdout.startswith(f"{out}: judgements, ")
    one_line_error(autoais("score", out), "judgements holds no answers; formats that do: ")


def test_schema_prints_or_lists(autoais: Command) -> None:
    assert json.loads(autoais("schema", "hagrid").stdout)["$schema"].endswith("2020-12/schema")
    assert [line.split()[0] for line in autoais("schema").stdout.splitlines()] == formats.names()
    one_line_error(autoais("schema", "nope"), "there are: aggrefact, alce")


def test_validate_lists_exits_and_mends_without_touching_the_input(tmp_path: Path, autoais: Command) -> None:
    path = sample(tmp_path, "trec-rag-24")
    result = autoais("validate", path)
    assert (result.returncode, result.stdout) == (0, f"{path}: trec-rag-24, 1 record, no faults\n")
    row = SAMPLES["trec-rag-24"][0]
    lines(
        path,
        row | {"references": [*row["references"], row["references"][0]], "answer": [{"text": "x", "citations": [2]}]},
    )
    before = path.read_bytes()
    result = autoais("validate", path, "--apply-fixes")
    assert result.returncode == 1
    assert "field 'references' has an item twice" in result.stdout
    assert f"{path}: trec-rag-24, 1 record, 1 fault" in result.stdout
    assert "removed 1 duplicate references" in result.stdout
    assert path.read_bytes() == before
    fixed = path.with_name(path.name + ".fixed")
    assert json.loads(fixed.read_text())["answer"][0]["citations"] == [0]
    assert autoais("validate", fixed).returncode == 0
    one_line_error(autoais("validate", tmp_path / "gone"), "cannot be read")
    path.write_text("\x1b[31m,b\n")
    assert "\x1b" not in autoais("validate", path).stdout


# --- the real files -------------------------------------------------------------------------------------------------


def test_the_real_pool_gives_predictions_their_passages(shared_data: Path, tmp_path: Path) -> None:
    with (shared_data / "nq/nq_pool_dev.jsonl").open() as file:
        rows = [json.loads(next(file)) for _ in range(20)]
    path = tmp_path / "p.csv"
    write_atomic(
        path, aqa.csv_lines([aqa.PREDICTIONS_COLUMNS, *((r["question"], r["answers"][0], r["gold"][0]) for r in rows)])
    )
    answers = list(formats.read(path, corpus=[shared_data / "wiki/passages.jsonl.zst"]))
    assert len(answers) == 20
    assert all(passage.text for answer in answers for passage in answer.passages.values())


@pytest.mark.parametrize("name", ["attributionbench_dev", "attributionbench_test500"])
def test_the_real_labels_have_no_faults_and_convert_there_and_back(
    shared_data: Path, tmp_path: Path, name: str
) -> None:
    path = shared_data / f"labels/{name}.jsonl"
    assert list(formats.validate(path)) == []
    answers = list(formats.read(path))
    write_atomic(tmp_path / "again", formats.write(answers, "attributionbench"))
    # dates of references and markers of claims apart, which are gone the first time
    assert list(formats.read(tmp_path / "again")) == answers


def test_names_of_fields_in_a_message_stand_on_one_line(tmp_path: Path) -> None:
    # They were printed as they are, with line ends and control characters.
    for row in ({"a\nb": 1}, {"id": "1", "\x1b[2J\n": 1, "question": 1}):
        path = lines(tmp_path / "x.jsonl", row)
        assert all("\n" not in one and "\x1b" not in one for one in messages(path))
    for read in (formats.detect, detect_corpus):
        with pytest.raises(FormatError, match="a\ufffdb"):
            read(lines(tmp_path / "x.jsonl", {"a\nb": 1, "x" * 400: 2}))


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("A is B.", "A is B [1][2]."),
        ("A is B", "A is B [1][2]"),
        ('He said "A is B."', 'He said "A is B [1][2]."'),
        ('It is called "B".', 'It is called "B" [1][2].'),
        ("A is B (see C).", "A is B (see C) [1][2]."),
        ("A is B (see C)", "A is B (see C) [1][2]"),
        ("Is A B?!”", "Is A B [1][2]?!”"),
    ],
)
def test_markers_stand_before_the_final_stop_and_never_in_brackets(text: str, rendered: str) -> None:
    assert render(text, [1, 2]) == rendered
    assert parse_sentence(rendered, 2).text == text
    assert parse_sentence(rendered, 2).cites == (1, 2)


def test_the_table_of_required_fields_is_that_of_the_built_in_formats() -> None:
    path = Path(formats.__file__).with_name("required-fields.toml")
    table = tomllib.loads(path.read_text("utf-8"))
    assert table == {name: list(formats.get_format(name).required_fields) for name in table}


def test_a_format_is_detected_without_the_code_of_the_others(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text(json.dumps({"id": "1", "question": "Who?", "answer": "He."}) + "\n")
    code = (
        "import sys; from pathlib import Path; from autoais import formats; "
        "assert formats.detect(Path(sys.argv[1])) == 'answers'; print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert not {"autoais.formats.hagrid", "autoais.formats.liu", "autoais.formats.alce"} & set(run.stdout.split())
