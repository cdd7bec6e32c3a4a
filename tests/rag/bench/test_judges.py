"""`rag bench judges`: labelled sets by name or file, in the terminal and as files."""

import json
from pathlib import Path
from typing import Any

import pytest

from autoais.base.io.jsonl import dumps
from autoais.base.io.provenance import sha256_file
from rag.base.errors import RagError
from rag.bench import list_benchmarks, list_label_sets, rank_judges, read_benchmark, read_label_set
from tests.conftest import Command, one_line_error

LABELS = [
    {"dataset": "Towns", "id": "1", "claim": "Warsaw is in Poland.", "evidence": ["Warsaw is in Poland."], "label": 1},
    {"dataset": "Towns", "id": "2", "claim": "Penguins like ice.", "evidence": ["Gdansk is a port."], "label": 0},
    {"dataset": "Rivers", "id": "3", "claim": "The Vistula is long.", "evidence": ["The Vistula is long."], "label": 1},
]


@pytest.fixture
def towns(tmp_path: Path) -> Path:
    """A labelled set of the user's own: its TOML, with its file in `tmp_path/data`."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "labels.jsonl").write_text("".join(dumps(row) + "\n" for row in LABELS), "utf-8")
    digest = sha256_file(data / "labels.jsonl")
    toml = tmp_path / "towns.toml"
    toml.write_text(
        'name = "towns"\nversion = 1\ndescription = "Towns"\nlicence = "ours"\ntask = "judge"\n'
        'collection = "places"\nsets = ["Towns"]\ncount = 2\n'
        f'[[labels]]\nfile = "labels.jsonl"\nsha256 = "{digest}"\n'
    )
    return toml


def judged(result: dict[str, Any]) -> dict[str, int]:
    return {name: one["claims"] for name, one in result["sets"].items()}


def test_a_labelled_set_is_found_by_its_toml_and_checked(towns: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert judged(rank_judges([towns], ["lexical"], data)) == {"places/Towns": 2}
    assert judged(rank_judges([data / "labels.jsonl"], ["lexical"])) == {"labels/Rivers": 1, "labels/Towns": 2}
    with pytest.raises(RagError, match="needs its data"):
        rank_judges([towns], ["lexical"])
    with pytest.raises(RagError, match="called 'twons'; the sets are: attributionbench, contrast"):
        rank_judges(["twons"], ["lexical"])
    (data / "labels.jsonl").write_text(dumps(LABELS[0]), "utf-8")
    with pytest.raises(RagError, match="another version"):
        rank_judges([towns], ["lexical"], data)


def test_a_labelled_set_is_no_benchmark_of_systems(towns: Path, tmp_path: Path, rag: Command) -> None:
    with pytest.raises(RagError, match="rag bench judges --set attributionbench"):
        read_benchmark("attributionbench")
    with pytest.raises(RagError, match="rag bench run handbook"):
        read_label_set("handbook")
    done = rag("bench", "run", towns, "--out", tmp_path / "RUN")
    one_line_error(done, f"rag bench judges --set {towns}")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('sets = ["Towns"]', "sets = []", "'sets' should be a list of names"),
        ("[[labels]]", "[labels]", "'labels' should be a list"),
        ("count = 2", "count = 0", "'count' should be from 1"),
        ('collection = "places"', "", "setting 'collection' is missing"),
        ('licence = "ours"', 'licence = "ours"\nright = "em"', "unknown setting 'right'"),
        ('"labels.jsonl"', '"../labels.jsonl"', "a relative path"),
    ],
)
def test_a_broken_toml_is_one_line(towns: Path, old: str, new: str, message: str) -> None:
    towns.write_text(towns.read_text().replace(old, new))
    with pytest.raises(RagError, match=message) as found:
        read_label_set(towns)
    assert "\n" not in str(found.value)


def test_the_list_shows_labelled_sets_with_their_command(rag: Command) -> None:
    assert {one.name for one in list_label_sets()} == {"attributionbench", "contrast"}
    assert not {one.name for one in list_label_sets()} & {one.name for one in list_benchmarks()}
    printed = rag("bench", "list").stdout
    assert "rag bench judges --set NAME" in printed
    assert "1,698" in printed
    (row,) = [one for one in json.loads(rag("bench", "list", "--json").stdout) if one["name"] == "attributionbench"]
    assert (row["task"], row["labels"]) == ("judge", 1698)
    assert row["command"] == "rag bench judges --set attributionbench"


def test_the_command_prints_and_writes_the_leaderboard(towns: Path, tmp_path: Path, rag: Command) -> None:
    ours = tmp_path / "ours.jsonl"
    ours.write_text("".join(dumps(row) + "\n" for row in LABELS), "utf-8")
    arguments = ("bench", "judges", "--set", towns, "--set", ours, "--data", tmp_path / "data", "--judge", "lexical")
    out, cache = tmp_path / "judges.json", tmp_path / "judges.cache"
    done = rag(*arguments, "--out", out, "--cache", cache)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert not [line for line in done.stdout.splitlines() if "\x1b" in line]
    assert "places/Towns (n = 2)" in done.stdout
    assert "mean of all 3 sets" in done.stdout
    for row in LABELS:
        assert str(row["claim"]) not in done.stdout + out.read_text("utf-8")  # claims are scored, not printed
    result = json.loads(out.read_text("utf-8"))
    assert result["provenance"]["inputs"]["labels1"]["file"] == "labels.jsonl"
    assert cache.is_file()
    table = rag(*arguments, "--format", "md").stdout
    assert table.startswith("| set | judge |")
    assert len({line.replace("\\|", "").count("|") for line in table.split("\n\n")[0].splitlines()}) == 1
    assert json.loads(rag(*arguments, "--format", "json").stdout)["sets"] == result["sets"]
    one_line_error(rag(*arguments, "--format", "xml"), "no format 'xml'")
    one_line_error(rag(*arguments, "--out", ours), "would be overwritten")


def test_options_reach_the_judges_that_are_named(towns: Path, tmp_path: Path, rag: Command) -> None:
    command = ("bench", "judges", "--set", tmp_path / "data" / "labels.jsonl", "--format", "json")
    done = rag(*command, "--judge", "lexical", "--judge-option", "threshold=0.9")
    assert done.returncode == 0, done.stderr
    assert list(json.loads(done.stdout)["judges"]) == ["lexical@2/0.7/statement.v1", "lexical@2/0.9/statement.v1"]
    one_line_error(rag(*command, "--judge-option", "threshold=0.9"), "--judge names")
    one_line_error(rag(*command, "--judge", "minilm", "--judge-option", "threshold=0.9"), "'minilm' has no option")
    one_line_error(rag(*command, "--judge", "lexical", "--judge-option", "threshold"), "should be KEY=VALUE")


def test_names_of_sets_cannot_break_a_table(tmp_path: Path, rag: Command) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text("".join(dumps(row | {"dataset": "a|b<script>\x1b[1m"}) + "\n" for row in LABELS), "utf-8")
    for form in ("md", "table"):
        printed = rag("bench", "judges", "--set", path, "--judge", "lexical", "--format", form).stdout
        assert "\x1b" not in printed
        assert form != "md" or "a\\|b&lt;script&gt;" in printed
