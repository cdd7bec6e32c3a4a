"""The leaderboard of judges, on labels small enough to count by hand."""

import json
import signal
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoais.base.errors import FormatError, UserError
from autoais.base.io.jsonl import dumps
from autoais.base.types import Attribution, Judgement, Verdict
from autoais.judges import JUDGES
from autoais.judges.cache import JudgementCache
from autoais.meta import leaderboard
from autoais.meta.leaderboard import LabelledSets, list_installed_judges, list_published_figures, rank_judges
from autoais.meta.leaderboard_tables import leaderboard_markdown
from tests.commands import ROOT
from tests.judges import OneByOne

YES, NO = Judgement(Verdict.ATTRIBUTABLE, 0.9), Judgement(Verdict.NOT_ATTRIBUTABLE, 0.1)


class Knows(OneByOne):
    """Says yes to the claims that hold the word `true`."""

    name = "knows@1"

    def of(self, one: Attribution) -> Judgement:
        return YES if "true" in one.claim else NO


def label(number: int, yes: bool, dataset: str = "Made", word: str | None = None) -> dict[str, Any]:
    """A claim that shares no words with its evidence: `lexical` says no."""
    word = word or ("true" if yes else "false")
    claim = {"claim": f"Claim {number} is {word}", "evidence": [f"Text of number {number} about penguins"]}
    return {"dataset": dataset, "id": str(number), **claim, "label": int(yes)}


def write(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """Two sets of 20 claims, half of them attributable."""
    rows = [label(number, number % 2 == 0, "A") for number in range(20)]
    return write(tmp_path / "made.jsonl", rows + [label(number, number % 2 == 0, "B") for number in range(20, 40)])


def test_a_judge_that_knows_all_is_told_apart_from_one_that_knows_nothing(labels: Path) -> None:
    knows = Knows()
    result = rank_judges([labels], [knows])
    assert list(result["judges"]) == [result["baseline"], "knows@1"]
    assert result["baseline"].startswith("lexical")
    assert result["sets"]["made/A"] == {
        "collection": "made", "claims": 20, "drawn_from": 20, "groups": 20, "attributable": 0.5,
    }  # fmt: skip
    record = result["judges"]["knows@1"]
    for one in (record["sets"]["made/A"], record["averages"]["made"]):
        assert (one["balanced_accuracy"], one["macro_f1"], one["roc_auc"]) == (1, 1, 1)
        assert one["calibration_error"] == pytest.approx(0.1)
    assert leaderboard.ALL not in record["averages"]  # there is one collection
    against = record["against_baseline"]["sets"]["made/A"]["balanced_accuracy"]
    assert against["value"] == 0.5
    # `lexical` says no to all 20: of 2^10 swaps of the ten that it has wrong, two are as extreme.
    assert against["p"] == pytest.approx(2 / 2**10, abs=1e-6)
    assert against["p_holm"] == pytest.approx(2 * 2 / 2**10, abs=1e-6)  # two sets
    assert record["against_baseline"]["averages"]["made"]["balanced_accuracy"]["value"] == 0.5
    assert "against_baseline" not in result["judges"][result["baseline"]]


def test_two_judges_that_say_the_same_are_not_told_apart(labels: Path) -> None:
    judge = OneByOne()
    judge.says = NO
    result = rank_judges([labels], [judge], timing_count=0)
    one = result["judges"][judge.name]["against_baseline"]["sets"]["made/A"]["balanced_accuracy"]
    assert (one["value"], one["p_holm"]) == (0, 1)
    assert result["judges"][judge.name]["speed"] is None
    assert "+0.0 " in leaderboard_markdown(result)
    assert "not told apart" in leaderboard_markdown(result)


def test_undecided_is_counted(labels: Path) -> None:
    record = rank_judges([labels], [OneByOne()])["judges"]["one-by-one@1"]
    one = record["sets"]["made/A"]
    assert (one["n"], one["undecided"], one["balanced_accuracy"]) == (0, 20, None)
    assert one["reasons"]["balanced_accuracy"] == "nothing was decided"
    assert record["against_baseline"]["sets"]["made/A"]["balanced_accuracy"]["value"] == 0  # as if it had said no
    assert record["against_baseline"]["sets"]["made/A"]["roc_auc"] is None


def test_a_set_with_one_class_has_no_balanced_accuracy(tmp_path: Path, labels: Path) -> None:
    one_class = write(tmp_path / "yes.jsonl", [label(number, True, "C") for number in range(50, 60)])
    result = rank_judges([labels, one_class], [Knows()])
    record = result["judges"]["knows@1"]
    assert record["sets"]["yes/C"]["balanced_accuracy"] is None
    assert record["sets"]["yes/C"]["reasons"]["balanced_accuracy"] == "all labels are the same"
    assert record["against_baseline"]["sets"]["yes/C"]["balanced_accuracy"] is None
    assert record["averages"][leaderboard.ALL]["sets"]["balanced_accuracy"] == 2
    (row,) = [line for line in leaderboard_markdown(result).splitlines() if "| knows |" in line and " of 2 |" in line]
    assert row.startswith("|  | knows | 100.0 (")


def test_claims_of_one_group_count_as_one_for_the_interval(tmp_path: Path) -> None:
    alone = [label(number, number % 2 == 0) for number in range(20)]
    shared = [row | {"evidence": [f"Text {number // 10}"]} for number, row in enumerate(alone)]
    widths = []
    for name, rows in (("alone", alone), ("shared", shared)):
        result = rank_judges([write(tmp_path / f"{name}.jsonl", rows)], ["lexical"])
        assert result["sets"][f"{name}/Made"]["groups"] == (20 if name == "alone" else 2)
        low, high = result["judges"][result["baseline"]]["sets"][f"{name}/Made"]["interval95"]["macro_f1"]
        widths.append(high - low)
    assert widths[0] < widths[1]


def test_what_is_installed_runs_by_default_and_nothing_that_needs_a_model_or_server(labels: Path) -> None:
    assert {"lexical", "minilm"} <= set(list_installed_judges())
    assert not {"hf", "human", "llm"} & set(list_installed_judges())
    JUDGES.register("picky", lambda size: Knows())
    try:
        result = rank_judges([labels], timing_count=0, limit=2)
    finally:
        del JUDGES._known["picky"]
    assert [name.partition("@")[0] for name in result["judges"]] == ["lexical", "minilm"]
    assert "size" in result["skipped"]["picky"]
    with pytest.raises(UserError, match="no judge called 'nobody'"):
        rank_judges([labels], ["nobody"])


def test_a_draw_is_the_same_each_time_and_a_larger_one_holds_it(labels: Path) -> None:
    few, more, other = Knows(), Knows(), Knows()
    rank_judges([labels], [few], limit=5, timing_count=0)
    result = rank_judges([labels], [more], limit=8, timing_count=0)
    rank_judges([labels], [other], limit=5, seed=1, timing_count=0)
    assert len(few.asked) == 10
    assert set(few.asked) < set(more.asked)
    assert set(other.asked) != set(few.asked)
    assert result["sets"]["made/A"]["claims"] == 8
    assert "made/A (n = 8 of 20)" in leaderboard_markdown(result)


# --- sets ----------------------------------------------------------------------------------------------------------


def bench(identifier: str, dataset: str, yes: bool = True) -> dict[str, Any]:
    said = "attributable" if yes else "not attributable"
    return {"id": identifier, "claim": "Warsaw is true.", "references": [identifier], "attribution_label": said,
            "src_dataset": dataset}  # fmt: skip


def test_files_of_one_collection_are_taken_together(tmp_path: Path) -> None:
    dev = write(tmp_path / "dev.jsonl", [bench("1", "ExpertQA"), bench("2", "LFQA")])
    test = write(tmp_path / "test.jsonl", [bench("3", "ExpertQA", False)])
    own = write(tmp_path / "own.v1.jsonl", [label(1, True)])
    attrscore = tmp_path / "AttrEval-GenSearch.csv"
    attrscore.write_text("query,answer,reference,label\nWho?,Marie,Marie Curie,Attributable\n")
    aggrefact = tmp_path / "test.csv"
    aggrefact.write_text("dataset,doc,claim,label\nExpertQA,A text,A claim,1\n")
    hagrid = write(tmp_path / "hagrid.jsonl", [
        {"query": "Who?", "quotes": [{"idx": 1, "docid": "a", "text": "Marie"}], "answers": [
            {"answer": "Marie [1].", "sentences": [{"text": "Marie [1].", "attributable": 1}]}
        ]}
    ])  # fmt: skip
    sets = rank_judges([dev, test, own, attrscore, aggrefact, hagrid], ["lexical"])["sets"]
    assert {name: one["claims"] for name, one in sets.items()} == {
        "AttributionBench/ExpertQA": 2, "AttributionBench/LFQA": 1, "own/Made": 1, "AttrEval-GenSearch": 1,
        "LLM-AggreFact/ExpertQA": 1, "hagrid": 1,
    }  # fmt: skip
    known = rank_judges([LabelledSets("HAGRID", (hagrid,))], ["lexical"])
    assert list(known["sets"]) == ["HAGRID"]
    assert known["published"]
    assert not rank_judges([hagrid], ["lexical"])["published"]  # another set in the same format


def test_only_the_named_sets_of_a_collection_count(labels: Path) -> None:
    chosen = LabelledSets("mine", (labels,), ("B",))
    assert list(rank_judges([chosen], ["lexical"])["sets"]) == ["mine/B"]
    with pytest.raises(UserError, match="no labels of the set 'Z'"):
        rank_judges([LabelledSets("mine", (labels,), ("B", "Z"))], ["lexical"])


def test_what_is_no_file_of_labels_is_one_line(tmp_path: Path, labels: Path) -> None:
    empty = write(tmp_path / "empty.jsonl", [])
    unknown = write(tmp_path / "unknown.jsonl", [{"colour": "red"}])
    answers = write(tmp_path / "answers.jsonl", [{"id": "1", "question": "Who?", "sentences": [], "passages": []}])
    ragas = write(tmp_path / "ragas.jsonl", [{"user_input": "Who?", "response": "M", "retrieved_contexts": ["M"]}])
    twice = write(tmp_path / "twice.jsonl", [label(1, True), label(1, True)])
    turned = write(tmp_path / "turned.jsonl", [label(1, True), label(1, False, word="true")])
    reused = write(tmp_path / "reused.jsonl", [label(1, True), label(1, False)])  # another claim
    for path, message in (
        (empty, "holds no records"), (unknown, "no known format"), (answers, "no labels in it"),
        (ragas, "no labels of single claims"), (twice, "claim '1' of 'Made' occurs twice"), (turned, "occurs twice"),
        (tmp_path / "gone.jsonl", "cannot be read"),
    ):  # fmt: skip
        with pytest.raises(UserError, match=message) as found:
            rank_judges([path], ["lexical"])
        assert str(path) in str(found.value)
        assert "\n" not in str(found.value)
    assert rank_judges([reused], ["lexical"])["sets"]["reused/Made"]["claims"] == 2
    copied = tmp_path / "folder"
    copied.mkdir()
    again = write(copied / "made.jsonl", [json.loads(line) for line in labels.read_text().splitlines()])
    with pytest.raises(UserError, match="occurs twice"):
        rank_judges([labels, again], ["lexical"])
    with pytest.raises(UserError, match="named twice"):
        rank_judges([labels, labels], ["lexical"])
    with pytest.raises(UserError, match="at least one file"):
        rank_judges([], ["lexical"])


# --- the cache -----------------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from pathlib import Path
from autoais.meta.leaderboard import rank_judges

def progress(what, done, total):
    if what.startswith("judging with minilm") and done >= 64:
        os.kill(os.getpid(), signal.SIGKILL)

rank_judges([Path(sys.argv[1])], ["minilm"], cache=sys.argv[2], timing_count=0, progress=progress)
"""


@pytest.mark.slow
def test_a_killed_run_continues_and_ends_with_the_same_figures(tmp_path: Path) -> None:
    rows = [label(number, number % 2 == 0) for number in range(80)]
    path, cache = write(tmp_path / "made.jsonl", rows), tmp_path / "cache"
    environment = {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}"}
    done = subprocess.run([sys.executable, "-c", KILLED, path, cache], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    with JudgementCache(cache) as kept:
        assert 80 + 64 <= kept.kept < 160
    resumed = rank_judges([path], ["minilm"], cache=cache, timing_count=0)
    assert resumed == rank_judges([path], ["minilm"], timing_count=0)
    with JudgementCache(cache), pytest.raises(UserError, match="in use by another run"):
        rank_judges([path], ["minilm"], cache=cache, timing_count=0)


def test_nothing_is_judged_twice_but_what_is_timed(labels: Path, tmp_path: Path) -> None:
    first, second = Knows(), Knows()
    rank_judges([labels], [first], cache=tmp_path / "cache", timing_count=0)
    result = rank_judges([labels], [second], cache=tmp_path / "cache", timing_count=7)
    assert len(first.asked) == 40
    assert len(second.asked) == 1 + 7  # one to warm up
    speed = result["judges"]["knows@1"]["speed"]
    assert speed["pairs"] == 7
    assert speed["pairs_per_second"] > 0
    assert result["processor"]


# --- published figures ---------------------------------------------------------------------------------------------


def test_published_figures_name_source_metric_and_difference() -> None:
    table = tomllib.loads((ROOT / "eval/autoais/data/published-judges.toml").read_text("utf-8"))
    for name, source in table["sources"].items():
        assert source["title"]
        assert source["metric"]
        assert source["url"].startswith("https://")
        assert any(beside["source"] == name for beside in table["beside"])
        for values in source["values"].values():
            assert len(values) == len(source["sets"])
            assert all(0 < value < 100 for value in values)
    pairs = [(beside["set"], beside["source"]) for beside in table["beside"]]
    assert len(set(pairs)) == len(pairs)
    for beside in table["beside"]:
        assert beside["theirs"] in table["sources"][beside["source"]]["sets"]
        assert beside["differs"]


def test_averages_of_the_leaderboard_of_llm_aggrefact_are_those_of_its_sets() -> None:
    source = tomllib.loads((ROOT / "eval/autoais/data/published-judges.toml").read_text("utf-8"))["sources"][
        "aggrefact"
    ]
    for judge, (average, *values) in source["values"].items():
        assert sum(values) / len(values) == pytest.approx(average, abs=0.06), judge


def test_published_figures_stand_beside_ours_and_share_no_column(tmp_path: Path) -> None:
    rows = [bench(str(number), "ExpertQA", number % 2 == 0) for number in range(4)]
    result = rank_judges([write(tmp_path / "dev.jsonl", rows)], ["lexical"], timing_count=0)
    assert [one["value"] for one in result["published"] if one["judge"] == "FactCG-DeBERTa-L (0.4B)"] == [59.1]
    line = next(line for line in leaderboard_markdown(result).splitlines() if "FactCG" in line)
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[:2] == ["", "FactCG-DeBERTa-L (0.4B)"]
    assert cells[2:-1] == [""] * 6
    assert cells[-1].startswith(r"59.1 balanced accuracy \[2\], other rows")
    assert list_published_figures(["made/A"]) == []


def test_a_published_average_stands_only_beside_all_of_its_sets() -> None:
    table = tomllib.loads((ROOT / "eval/autoais/data/published-judges.toml").read_text("utf-8"))
    sets = [one["set"] for one in table["beside"] if one["set"].startswith("LLM-AggreFact/")]
    assert len(sets) == 11
    assert "LLM-AggreFact" in {one["set"] for one in list_published_figures([*sets, "LLM-AggreFact"])}
    assert "LLM-AggreFact" not in {one["set"] for one in list_published_figures([*sets[1:], "LLM-AggreFact"])}


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=12), st.text(min_size=1, max_size=9))
@settings(max_examples=25)
def test_any_verdicts_make_a_table(tmp_path_factory: pytest.TempPathFactory, pairs: list[Any], name: str) -> None:
    rows = [label(n, yes, name, "true" if said else "false") for n, (yes, said) in enumerate(pairs)]
    path = tmp_path_factory.mktemp("any") / "any.jsonl"
    try:
        result = rank_judges([write(path, rows)], [Knows()], timing_count=0)
    except FormatError:
        return
    right = [yes == said for yes, said in pairs]
    (one,) = result["judges"]["knows@1"]["sets"].values()
    if one["balanced_accuracy"] is not None:
        (against,) = result["judges"]["knows@1"]["against_baseline"]["sets"].values()
        low, high = against["balanced_accuracy"]["interval95"]
        assert low - 1e-6 <= against["balanced_accuracy"]["value"] <= high + 1e-6
        assert (one["balanced_accuracy"] == 1) == all(right)
    lines = leaderboard_markdown(result).split("\n\n")[0].splitlines()
    assert len(lines) == 2 + 2  # head, rule and a row for each judge
