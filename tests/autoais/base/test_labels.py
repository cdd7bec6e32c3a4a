"""Human labels out of every format that holds some."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoais import formats
from autoais.base.errors import FormatError
from autoais.base.labels import LabelledClaim, answer_attributable, answer_informative, clean_claim, clean_reference
from autoais.base.types import Attribution, Support, Verdict
from autoais.formats import read_labels
from autoais.judges.lexical import LexicalJudge
from autoais.meta.evaluate import evaluate
from tests.autoais.formats.samples import POLAND, RIVER
from tests.autoais.formats.test_formats import CSVS, KINDS, SAMPLES, lines, sample

WITH_LABELS = [
    "aggrefact", "answers", "aqa-ratings", "attributionbench", "attrscore", "expertqa", "hagrid", "labels",
    "liu-judgements", "nuggetizer",
]  # fmt: skip


@pytest.mark.parametrize("name", WITH_LABELS)
def test_a_judge_can_be_held_against_every_kind_of_labels(tmp_path: Path, name: str) -> None:
    labels = list(read_labels(sample(tmp_path, name)))
    assert labels
    result = evaluate(labels, LexicalJudge())
    assert sum(one["n"] + one["undecided"] for one in result["sets"].values()) == len(labels)


@pytest.mark.parametrize("name", [name for name in KINDS if name not in WITH_LABELS])
def test_files_without_labels_of_claims_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(FormatError, match="has no labels of single claims; formats that do: aggrefact, answers"):
        list(read_labels(sample(tmp_path, name)))


def test_each_format_gives_the_claim_its_question_and_its_clean_evidence(tmp_path: Path) -> None:
    hagrid = list(read_labels(sample(tmp_path, "hagrid")))
    asked = "What is the capital of Poland?"
    # the answer whose sentences nobody labelled is passed over
    assert hagrid == [
        LabelledClaim("sample", "7/1/0", Attribution("It is Warsaw.", (POLAND,), asked), True),
        LabelledClaim("sample", "7/1/1", Attribution("The Vistula flows north.", (RIVER,), asked), False),
    ]
    (bench,) = read_labels(sample(tmp_path, "attributionbench"))
    assert bench.attribution == Attribution("Warsaw is the capital.", (f"https://example.org\n\n{POLAND}",), "capital?")
    yes, no = read_labels(sample(tmp_path, "attrscore"))
    assert (yes.attributable, yes.verdict, no.attributable, no.verdict) == (
        True, Verdict.ATTRIBUTABLE, False, Verdict.CONTRADICTORY,
    )  # fmt: skip
    full, none = read_labels(sample(tmp_path, "liu-judgements"))
    assert (full.attributable, none.attributable) == (True, False)
    assert full.attribution.evidence == (f"Warsaw. {POLAND}",)
    (rating,) = read_labels(sample(tmp_path, "aqa-ratings"))
    assert rating == LabelledClaim(
        "AttributedQA", "Post-4: who", Attribution("Ann", ("T, S. Ann did.",), "who"), True, "Post-4"
    )


def test_partial_support_is_not_attributable(tmp_path: Path) -> None:
    row = SAMPLES["liu-judgements"][0] | {"source_supports_statement": "partial_support"}
    assert [label.attributable for label in read_labels(lines(tmp_path / "l.jsonl", row))] == [False]


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "json"])
def test_attrscore_rows_come_as_lines_as_csv_or_as_a_list(tmp_path: Path, suffix: str) -> None:
    rows = [row | {"label": row["label"].lower()} for row in SAMPLES["attrscore"]]
    path = tmp_path / f"a.{suffix}"
    match suffix:
        case "jsonl":
            lines(path, *rows)
        case "csv":
            path.write_text("\n".join(["id,query,answer,reference,label", *(",".join(row.values()) for row in rows)]))
        case _:
            path.write_text(json.dumps(rows, indent=2))
    assert [label.attribution.claim for label in read_labels(path)] == ["Warsaw", "Madrid"]


@pytest.mark.parametrize("nothing", ["nan", "", None, "NaN"])
def test_attrscore_claims_may_stand_in_either_field(tmp_path: Path, nothing: str | None) -> None:
    row = SAMPLES["attrscore"][0]
    (label,) = read_labels(lines(tmp_path / "a.jsonl", row | {"answer": nothing, "query": "Warsaw is it."}))
    assert (label.attribution.claim, label.attribution.question) == ("Warsaw is it.", "")
    (label,) = read_labels(lines(tmp_path / "a.jsonl", row | {"query": nothing}))
    assert (label.attribution.claim, label.attribution.question) == ("Warsaw", "")


@pytest.mark.parametrize(
    ("claim", "clean"),
    [
        ("For poor countries [5].", "For poor countries."),
        ("In our knowledge[3].", "In our knowledge."),
        ("Both [1][2].", "Both."),
        ("Both [1] [2]", "Both"),
        ("Both [1, 2].", "Both."),
        ('He said "so [4]."', 'He said "so."'),
        ("As [1] shows, it is.", "As [1] shows, it is."),
        ("The interval [0.5].", "The interval [0.5]."),
        ("x", "x"),
        ("[1]", ""),
    ],
)
def test_markers_at_the_end_of_a_claim_are_no_part_of_it(claim: str, clean: str) -> None:
    assert clean_claim(claim) == clean


def test_the_number_before_a_reference_goes_and_its_address_stays() -> None:
    assert clean_reference("[12] https://a.org text [3]") == "https://a.org text [3]"
    assert clean_reference("[sic] text") == "[sic] text"


@given(st.lists(st.none() | st.booleans()))
def test_roll_up_is_any_and_all_and_never_guesses(labels: list[bool | None]) -> None:
    known = [label for label in labels if label is not None]
    informative, attributable = answer_informative(labels), answer_attributable(labels)
    assert informative is (True if True in labels else None if len(known) < len(labels) or not labels else False)
    assert attributable is (None if len(known) < len(labels) or not labels else False not in labels)


@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_labels_from_a_spreadsheet(tmp_path: Path, separator: str) -> None:
    rows = [["claim", "evidence", "label", "support"], ["A", "A is small", "TRUE", ""], ["B", "C", "0", "none"]]
    path = tmp_path / "sheet.csv"
    path.write_text("".join(separator.join(row) + "\n" for row in rows))
    first, second = read_labels(path)
    assert (first.dataset, first.attribution.evidence, first.attributable) == ("sheet", ("A is small",), True)
    assert (second.attributable, second.support) == (False, Support.NONE)


def test_broken_labels_stop_with_file_line_and_field(tmp_path: Path) -> None:
    row: dict[str, Any] = SAMPLES["labels"][0] | {"label": 2}
    with pytest.raises(FormatError, match=r"l\.jsonl:2: field 'label' should be one of 0, 1, .*, found '2'"):
        list(read_labels(lines(tmp_path / "l.jsonl", SAMPLES["labels"][1], row)))
    path = tmp_path / "r.csv"
    path.write_text(CSVS["aqa-ratings"].replace(",Y,Y,", ",maybe,Y,"))
    with pytest.raises(FormatError, match=r"r\.csv:2: field 'human_rating' should be one of"):
        list(read_labels(path))


def test_all_labels_at_hand_are_read(shared_data: Path) -> None:
    assert sum(1 for _ in read_labels(shared_data / "labels/attribution_train.jsonl")) == 16452


def test_levels_of_support_are_read_and_must_fit_the_label(tmp_path: Path) -> None:
    row = {"dataset": "d", "id": "1", "claim": "Built in 1990.", "evidence": ["Built in 1990."], "label": 0}
    path = tmp_path / "labels.jsonl"
    path.write_text("".join(json.dumps(row | {"support": level}) + "\n" for level in ("partial", "none", None)))
    assert [label.support for label in read_labels(path)] == [Support.PARTIAL, Support.NONE, None]
    path.write_text(json.dumps(row | {"support": "full"}) + "\n")
    with pytest.raises(FormatError, match=r"labels.jsonl:1: field 'support' is 'full', but field 'label' is 0"):
        list(read_labels(path))
    path.write_text(json.dumps(row | {"support": "half"}) + "\n")
    with pytest.raises(FormatError, match="field 'support'"):
        list(read_labels(path))


def test_a_claim_with_evidence_and_a_label_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    rows = [{"claim": "One.", "evidence": ["One is."], "label": True}, {"claim": "Two.", "label": 0}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert not list(formats.validate(path))
    found = [(one.dataset, one.id, one.attributable) for one in formats.read_labels(path)]
    assert found == [("mine", "1", True), ("mine", "2", False)]
