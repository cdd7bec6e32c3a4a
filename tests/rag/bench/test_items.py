"""Items are read as they were written, and every broken row is refused in one line that names the field."""

import json
from pathlib import Path
from typing import Any

import pytest

from autoais.base.errors import FormatError, UserError
from rag.bench.items import Item, item_from_row, read_items, write_items
from tests.rag.bench.folders import make_run


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> list[Item]:
    folder = make_run(tmp_path_factory.mktemp("run"), human=True)
    return read_items(folder / "reader" / "items.jsonl")


def test_items_are_read_as_they_were_written(items: list[Item], tmp_path: Path) -> None:
    write_items(tmp_path / "again.jsonl", items)
    assert read_items(tmp_path / "again.jsonl") == items
    assert len(items) == 24
    assert any(item.sentences and item.sentences[0].human is not None for item in items)


def test_other_fields_are_ignored(items: list[Item]) -> None:
    assert item_from_row(items[0].to_row() | {"later": 1}, "row") == items[0]


def test_a_passage_may_be_unknown(items: list[Item]) -> None:
    cited = next(item for item in items if item.cites)
    again = item_from_row(cited.to_row() | {"passages": {}}, "row")
    assert again.cites == cited.cites
    assert not again.passages


def sentence(**fields: object) -> dict[str, Any]:
    return {
        "text": "Abc.", "start": 0, "end": 4, "verdict": "attributable", "probability": 0.5, "citations": [],
        "unsupported": [],
    } | fields  # fmt: skip


def citing(**fields: object) -> dict[str, Any]:
    cite = {"passage": "p", "start": 0, "end": 2, "verdict": "attributable"} | fields
    return {
        "sentences": [sentence(citations=[cite])],
        "passages": {"p": {"title": "", "section": "", "text": "ab", "url": None}},
    }


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"id": 7}, "'id'"),
    ({"id": " "}, "'id'"),
    ({"question": None}, "'question'"),
    ({"answerable": "yes"}, "'answerable'"),
    ({"references": "1990"}, "'references'"),
    ({"nuggets": [["a"], "b"]}, "'nuggets'"),
    ({"way": "sideways"}, "'way'"),
    ({"way": "<script>\n\x1b[31m"}, "'way'"),
    ({"right": 1}, "'right'"),
    ({"confidence": 1.5}, "'confidence'"),
    ({"em": -1}, "'em'"),
    ({"seconds": -0.1}, "'seconds'"),
    ({"first_gold": 0}, "'first_gold'"),
    ({"tokens_read": 1.5}, "'tokens_read'"),
    ({"words": None}, "'words'"),
    ({"passages": []}, "'passages'"),
    ({"passages": {"p": {"title": "t"}}}, "section"),
    ({"sentences": [{}]}, "sentences[0]"),
    ({"sentences": [sentence(verdict="perhaps")]}, "verdict"),
    ({"sentences": [sentence(probability=2)]}, "probability"),
    ({"sentences": [sentence(start=3, end=1)]}, "sentences[0]"),
    ({"sentences": [sentence(start=3, end=None)]}, "'end'"),
    ({"sentences": [sentence(unsupported=[[0, 5]])]}, "unsupported"),
    ({"sentences": [sentence(unsupported=[[1]])]}, "unsupported"),
    ({"sentences": [sentence(unsupported=[[0.5, 1]])]}, "unsupported"),
    (citing(start=1, end=3), "citation"),
    (citing(start=-1), "start"),
    (citing(verdict="maybe"), "verdict"),
    (citing(passage=None), "passage"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "named"), BROKEN, ids=[f"{n}-{named}" for n, (_, named) in enumerate(BROKEN)])
def test_a_broken_row_is_refused(items: list[Item], change: dict[str, Any], named: str) -> None:
    with pytest.raises(FormatError) as error:
        item_from_row(items[0].to_row() | change, "items.jsonl:1")
    message = str(error.value)
    assert message.startswith("items.jsonl:1: ")
    assert named in message
    assert "\n" not in message
    assert len(message) < 600


@pytest.mark.parametrize("name", sorted(Item.__dataclass_fields__.keys() - {"span_f1"}))
def test_every_field_but_the_f1_of_spans_is_needed(items: list[Item], name: str) -> None:
    row = items[0].to_row()
    del row[name]
    with pytest.raises(FormatError, match=f"'{name}' is missing"):
        item_from_row(row, "row")


def test_a_truncated_file_and_a_repeated_id_are_refused(items: list[Item], tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    line = json.dumps(items[0].to_row())
    path.write_text(f"{line}\n{line[:200]}", "utf-8")
    with pytest.raises(FormatError, match=r"items\.jsonl:2: not JSON"):
        read_items(path)
    path.write_text(f"{line}\n{line}\n", "utf-8")
    with pytest.raises(FormatError, match="occurs twice"):
        read_items(path)
    path.write_text("", "utf-8")
    with pytest.raises(UserError, match="no items"):
        read_items(path)
