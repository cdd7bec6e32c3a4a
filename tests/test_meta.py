import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoais.errors import FormatError
from autoais.judges.lexical import LexicalJudge
from autoais.labels import read_labels
from autoais.meta import balanced_accuracy, cohen_kappa, evaluate, macro_f1, reliability, roc_auc
from tests.conftest import Command, one_line_error

EVIDENCE = "Warsaw is the capital of Poland."


def bench(identifier: str, claim: str, label: str, references: list[str] | None = None) -> dict[str, Any]:
    return {
        "id": identifier,
        "claim": claim,
        "references": [f"[1] {EVIDENCE}"] if references is None else references,
        "attribution_label": label,
        "src_dataset": "Made",
    }


ROWS = [
    bench("1", "The capital of Poland is Warsaw.", "attributable"),
    bench("2", "Penguins swim in cold water.", "not attributable"),
    bench("3", "Warsaw is the capital of Poland and of Spain.", "not attributable"),
    bench("4", "Warsaw is in Poland.", "attributable", []),
    bench("5", "It is so.", "attributable"),
]


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_each_set_is_reported_with_undecided_apart_and_their_mean(tmp_path: Path) -> None:
    own = {"dataset": "Own", "id": 1, "claim": "Warsaw", "evidence": [EVIDENCE], "label": 1}
    path = write(tmp_path / "l.jsonl", *ROWS, own, own | {"id": 2, "claim": "Penguins", "label": 0})
    result = evaluate(read_labels(path), LexicalJudge())
    made = result["sets"]["Made"]
    # decided: 1 yes/yes, 2 no/no, 3 no/yes, 4 yes/no (nothing cited); 5 is undecided
    assert (made["n"], made["undecided"]) == (4, 1)
    assert made["macro_f1"] == made["balanced_accuracy"] == 0.5
    assert made["macro_f1_floor"] == pytest.approx((0.4 + 0.4) / 2)
    assert made["worst"][0]["id"] in ("3", "4")
    assert result["sets"]["Own"]["roc_auc"] == 1.0
    assert result["average"]["macro_f1"] == (0.5 + 1.0) / 2


def test_known_values() -> None:
    truth, said = np.array([True, True, False, False]), np.array([True, False, False, False])
    assert macro_f1(truth, said) == pytest.approx((2 / 3 + 4 / 5) / 2)
    assert balanced_accuracy(truth, said) == 0.75
    assert cohen_kappa(truth, said) == 0.5
    assert roc_auc(truth, np.array([0.9, 0.4, 0.4, 0.1])) == pytest.approx(3.5 / 4)
    assert roc_auc(np.array([True, True]), np.array([0.1, 0.2])) is None
    assert reliability(truth, np.array([1.0, 0.95, 0.0, 0.05])) == [
        {"n": 2, "probability": 0.025, "attributable": 0.0},
        {"n": 2, "probability": 0.975, "attributable": 1.0},
    ]


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=1, max_size=30))
def test_roc_auc_is_the_share_of_pairs_in_order(pairs: list[tuple[bool, float]]) -> None:
    truth, probability = np.array([t for t, _ in pairs]), np.array([p for _, p in pairs])
    yes, no = probability[truth], probability[~truth]
    auc = roc_auc(truth, probability)
    if not len(yes) or not len(no):
        assert auc is None
    else:
        assert auc == pytest.approx(np.mean([(y > n) + 0.5 * (y == n) for y in yes for n in no]))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"attribution_label": "maybe"}, "found 'maybe'"),
        ({"references": "text"}, "field 'references' should be a list of strings"),
        ({"claim": None}, "field 'claim' should be a string"),
    ],
)
def test_broken_labels_name_line_and_field(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    path = write(tmp_path / "l.jsonl", ROWS[0], ROWS[1] | change)
    with pytest.raises(FormatError, match=r"l\.jsonl:2: ") as caught:
        list(read_labels(path))
    assert says in str(caught.value)


def test_the_command(tmp_path: Path, autoais: Command) -> None:
    path = write(tmp_path / "l.jsonl", *ROWS)
    printed = json.loads(autoais("meta", path, "--judge", "lexical", "--json").stdout)
    assert printed["judge"] == LexicalJudge().name
    assert printed["sets"]["Made"]["n"] == 4
    assert "0.500" in autoais("meta", path).stdout
    one_line_error(autoais("meta", write(tmp_path / "e.jsonl")), "no labels in it")


def test_counting_words_does_on_attributionbench_what_the_notes_say(shared_data: Path) -> None:
    files = [shared_data / f"labels/attributionbench_{part}.jsonl" for part in ("dev", "test500")]
    result = evaluate((label for file in files for label in read_labels(file)), LexicalJudge())
    assert sum(one["n"] + one["undecided"] for one in result["sets"].values()) == 1698
    # the data notes give 70.4 and .766 for a similar count of words with the same threshold
    assert result["average"]["macro_f1"] == pytest.approx(0.704, abs=0.02)
    assert result["average"]["roc_auc"] == pytest.approx(0.766, abs=0.02)
