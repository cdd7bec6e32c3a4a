"""The script that measures answers over documents."""

import json
from pathlib import Path

from scripts.own_documents import identifiers

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
