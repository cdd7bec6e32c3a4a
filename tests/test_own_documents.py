"""The script that measures answers over documents."""

import json
import subprocess
from pathlib import Path

import pytest

from scripts.own_documents import fetch, identifiers

NAMING = "The reader stops at max_depth when the mill is deep, and the miller is told about it in a line of the report."
PLAIN = "The max of the depth is what the max depth does. A depth has a max, and what does a max do to depth? It is."


def test_each_retriever_searches_for_the_names_by_itself(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "documents" / "mill"
    folder.mkdir(parents=True)
    (folder / "named.md").write_text(f"# Mill\n\n{NAMING}\n", "utf-8")
    for number in range(4):
        (folder / f"other-{number}.md").write_text(f"# Depth {number}\n\n{PLAIN} {number}\n", "utf-8")
    identifiers([tmp_path / "data"], work=tmp_path, output=tmp_path / "out.json")
    result = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert result["names"] == 1
    assert [result["recipes"][retriever]["first"]["value"] for retriever in ("bm25", "hybrid")] == [0.0, 1.0]


TABLE = """
[collections."mill"]
repository = "weir/mill"
commit = "{commit}"
root = "papers"
include = ["**/*.md", "*.csv"]
sha256 = "{sha256}"
"""


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=Miller", "-c", "user.email=miller@example.org", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def mill(folder: Path) -> str:
    """A repository of papers, whose newest commit isn't the one that is pinned."""
    for name in ("papers/rules.md", "papers/2024/minutes.md", "papers/tolls.csv", "papers/wheel.png", "code/mill.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name, "utf-8")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "Papers of the mill")
    commit = git(folder, "rev-parse", "HEAD")
    (folder / "papers" / "rules.md").write_text("changed later", "utf-8")
    git(folder, "commit", "-qam", "Changed")
    return commit


def test_the_included_files_of_a_repository_are_fetched_at_its_commit(tmp_path: Path) -> None:
    commit = mill(tmp_path / "weir+mill" / "repo")
    table = tmp_path / "mill.toml"
    table.write_text(TABLE.format(commit=commit, sha256="0" * 64), "utf-8")
    with pytest.raises(SystemExit, match="error: the documents of mill have SHA-256") as stopped:
        fetch(tmp_path / "data", table, tmp_path)
    assert not (tmp_path / "data").exists()
    sha256 = str(stopped.value).partition("SHA-256 ")[2].partition(",")[0]
    table.write_text(TABLE.format(commit=commit, sha256=sha256), "utf-8")
    fetch(tmp_path / "data", table, tmp_path)
    folder = tmp_path / "data" / "documents" / "mill"
    texts = {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in folder.rglob("*.*")}
    names = ("rules.md", "2024/minutes.md", "tolls.csv")
    assert texts == {name: f"papers/{name}" for name in names}
