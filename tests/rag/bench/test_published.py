"""Published figures of other systems: a strict file, a source for each row, and the handbook's copy of them."""

import re
from pathlib import Path

import pytest

from rag.base.errors import RagError
from rag.bench import read_benchmark
from rag.bench.report.published import read_published_tables

TABLE = """
[[tables]]
title = "A paper"
where = "Table 1"
url = "https://example.org/paper"
benchmarks = ["towns"]
corpus = "a Wikipedia"
n = "100 questions"
metrics = ["exact match", "MAUVE"]
ours = ["em", ""]
compares = "Exact match is our em."
[tables.values]
"A system" = [40.5, 70]
"""


def read(folder: Path, text: str) -> None:
    (folder / "published.toml").write_text(text, "utf-8")
    read_published_tables(folder / "published.toml")


def test_a_table_is_read(tmp_path: Path) -> None:
    (tmp_path / "published.toml").write_text(TABLE, "utf-8")
    (table,) = read_published_tables(tmp_path / "published.toml")
    assert (table.systems, table.judge) == ((("A system", (40.5, 70.0)),), None)
    assert table.record()["systems"] == [{"system": "A system", "values": [40.5, 70.0]}]
    assert "benchmarks" not in table.record()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('url = "https://example.org/paper"\n', "", "'url' is missing"),
        ("https://example.org", "http://example.org", "starts with https://"),
        ('where = "Table 1"\n', "", "'where' is missing"),
        ('n = "100 questions"', "n = 100", "'n' should be a string"),
        ("[40.5, 70]", "[40.5]", "'A system' should be 2 numbers from 0 to 100"),
        ("[40.5, 70]", "[40.5, 170]", "'A system' should be 2 numbers from 0 to 100"),
        ("[40.5, 70]", "[40.5, true]", "'A system' should be 2 numbers from 0 to 100"),
        ('"A system" = [40.5, 70]', "", "a row for each system"),
        ('["em", ""]', '["em"]', "'ours' should be a name for each of the metrics"),
        ('n = "100 questions"', 'n = "100 questions"\nyear = 2023', "unknown setting 'year'"),
        ("[[tables]]", "[[table]]", "unknown setting 'table'"),
    ],
)
def test_a_faulty_table_is_refused(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in TABLE
    with pytest.raises(RagError, match=f"published.toml.*{told.replace('[', '.')}"):
        read(tmp_path, TABLE.replace(old, new))


def test_every_figure_that_ships_has_a_source_and_a_benchmark() -> None:
    tables = read_published_tables()
    assert {"open-nq", "miracl-pool", "hagrid", "nomiracl"} <= {name for table in tables for name in table.benchmarks}
    for table in tables:
        assert all((table.url, table.where, table.corpus, table.n, table.compares)), table.title
        for name in table.benchmarks:
            assert read_benchmark(name)
    names = [(table.title, system) for table in tables for system, _ in table.systems]
    assert len(names) == len(set(names))


def test_the_handbook_repeats_these_figures_as_they_are() -> None:
    page = (Path(__file__).parents[3] / "docs/handbook/reference/benchmarks.md").read_text("utf-8")
    section = page.partition("## Beside published figures")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")][2:]
    theirs = [row[-4] for row in rows if "**ours**" not in " ".join(row)]
    known = {value for table in read_published_tables() for _, values in table.systems for value in values}
    assert len(theirs) > 12
    assert {float(number) for cell in theirs for number in re.findall(r"[\d.]+", cell)} <= known
