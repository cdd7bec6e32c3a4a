"""HAGRID's JSONL, read and written back, is the same."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoais import formats
from autoais.base.io.jsonl import write_atomic
from autoais.formats.human_ratings.consensus import label_answers
from autoais.formats.human_ratings.ratings import Rating

# Our own words, in the shape that the dataset's card shows: labels 1, 0 or null; answers of two kinds to one question.
ROW: dict[str, Any] = {
    "query": "Où est la Tour de l’Horloge — “the clock tower”?",
    "query_id": "1407",
    "quotes": [
        {"docid": "1#0", "idx": 1, "text": "[1] The tower stands in Ålesund\u2028 since 1912. 東京"},
        {"docid": "2#7", "idx": 2, "text": 'It was "rebuilt" in 1998 [citation needed].\t\\ \x7f'},
        {"docid": "1#0", "idx": 3, "text": "The same page again."},
    ],
    "answers": [
        {
            "answer": "The tower stands in Ålesund [1]. It was rebuilt in 1998 [2][3].",
            "answer_type": "rationale",
            "attributable": None,
            "informative": 1,
            "sentences": [
                {"index": 0, "attributable": 1, "informative": 1, "text": "The tower stands in Ålesund [1]."},
                {"index": 1, "attributable": None, "informative": 0, "text": "It was rebuilt in 1998 [2][3]."},
            ],
        },
        {"answer": "In Ålesund [1, 9] .", "attributable": 0, "informative": 0, "sentences": []},
    ],
}  # fmt: skip
PLAIN: dict[str, Any] = {
    "query_id": 7,
    "query": "What is it?",
    "quotes": [{"idx": 1, "docid": "a#1", "text": "It is a clock."}],
    "answers": [
        {
            "answer": "A clock [1].",
            "informative": 1,
            "attributable": None,
            "sentences": [{"index": 0, "text": "A clock [1].", "informative": 1, "attributable": None}],
        }
    ],
}


def file_of(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_bytes("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())
    return path


def back(path: Path, name: str = "hagrid") -> bytes:
    target = path.with_suffix(f".{name}")
    write_atomic(target, formats.write(formats.read(path), name))
    return target.read_bytes()


def test_a_file_is_written_back_byte_for_byte(tmp_path: Path) -> None:
    path = file_of(tmp_path / "h.jsonl", ROW, PLAIN, ROW | {"query_id": "other"})
    assert back(path) == path.read_bytes()


STYLES: dict[str, Any] = {
    "escaped": lambda row: json.dumps(row),
    "compact": lambda row: json.dumps(row, ensure_ascii=False, separators=(",", ":")),
    "pandas": lambda row: json.dumps(row, separators=(",", ":")).replace("/", "\\/"),
    "windows": lambda row: json.dumps(row, ensure_ascii=False) + "\r",
    "spaced": lambda row: f" {json.dumps(row, sort_keys=True)} ",
}


@pytest.mark.parametrize("style", STYLES)
def test_the_style_of_the_json_is_kept(tmp_path: Path, style: str) -> None:
    path = tmp_path / "h.jsonl"
    row = ROW | {"query_id": "other", "query": "And / or?"}
    path.write_bytes("".join(STYLES[style](one) + "\n" for one in (ROW, PLAIN, row)).encode())
    assert back(path) == path.read_bytes()
    (tmp_path / "a.jsonl").write_bytes(back(path, "answers"))
    assert back(tmp_path / "a.jsonl") == path.read_bytes()
    assert "hagrid_line" not in list(formats.read(path))[1].extra  # a line is kept once
    relabelled = [replace(answer, informative=False) for answer in formats.read(path)]
    written = [json.loads(line) for line in formats.write(relabelled, "hagrid")]
    assert [answer["informative"] for one in written for answer in one["answers"]] == [0] * 5


def test_a_forged_line_is_not_written(tmp_path: Path) -> None:
    (plain,) = formats.read(file_of(tmp_path / "h.jsonl", PLAIN))
    extra = dict(plain.extra)
    for line in ("{", "[]", json.dumps(PLAIN, indent=1), json.dumps(PLAIN | {"query": "Another?"}), 3):
        (written,) = formats.write([replace(plain, extra=extra | {"hagrid_line": line})], "hagrid")
        assert "\n" not in written
        assert json.loads(written) == PLAIN


def test_also_by_way_of_our_own_format(tmp_path: Path) -> None:
    path = file_of(tmp_path / "h.jsonl", ROW, PLAIN)
    (tmp_path / "a.jsonl").write_bytes(back(path, "answers"))
    assert back(tmp_path / "a.jsonl") == path.read_bytes()


def test_a_record_in_our_own_shape_is_kept_once(tmp_path: Path) -> None:
    (plain,) = formats.read(file_of(tmp_path / "h.jsonl", PLAIN))
    assert plain.extra == {"query_id": 7, "hagrid_no_id": True}


def test_our_own_answers_keep_their_ids_and_data_set_in_any_order(tmp_path: Path) -> None:
    given = [
        replace(one, extra={"query_id": 7, "dataset": "ours"})
        for one in formats.read(file_of(tmp_path / "h.jsonl", PLAIN))
    ]
    given = [replace(given[0], id=key) for key in ("b", "a")]
    path = tmp_path / "ours.jsonl"
    write_atomic(path, formats.write(given, "hagrid"))
    assert [one.id for one in formats.read(path)] == ["b", "a"]
    assert back(path) == path.read_bytes()
    renamed = [replace(one, id=f"{one.id}2") for one in formats.read(path)]
    assert [json.loads(line)["answers"][0]["id"] for line in formats.write(renamed, "hagrid")] == ["b2"]
    labelled = [replace(one, sentences=(replace(one.sentences[0], attributable=True),)) for one in given]
    write_atomic(path, formats.write(labelled, "hagrid"))
    assert {one.dataset for one in formats.read_labels(path)} == {"ours"}


def test_new_labels_are_written_into_the_record_as_it_was(tmp_path: Path) -> None:
    path = file_of(tmp_path / "h.jsonl", ROW)
    answers = list(formats.read(path))
    ratings = [
        Rating(f"1407/1#{place}", "a", question, value, "1407/1", place)
        for place in (0, 1)
        for question, value in (("informative", "yes"), ("attributable", "no" if place else "yes"))
    ]
    (line,) = formats.write(label_answers(answers, ratings), "hagrid")
    first, second = (written := json.loads(line))["answers"]
    assert [one["attributable"] for one in (first, *first["sentences"])] == [0, 1, 0]
    assert [one["informative"] for one in first["sentences"]] == [1, 1]
    assert (second["informative"], second["attributable"]) == (None, None)
    assert list(first) == list(ROW["answers"][0])
    assert written["quotes"] == ROW["quotes"]


@pytest.mark.parametrize("given", [ROW, PLAIN])
def test_simulated_labels_are_written_and_read_back(tmp_path: Path, given: dict[str, Any]) -> None:
    first, *rest = formats.read(file_of(tmp_path / "h.jsonl", given))
    marked = replace(first, extra={**first.extra, "simulated_labels": True})
    (line,) = formats.write([marked, *rest], "hagrid")
    (tmp_path / "s.jsonl").write_text(f"{line}\n", "utf-8")
    again = list(formats.read(tmp_path / "s.jsonl"))
    assert ["simulated_labels" in one.extra for one in again] == [True] + [False] * len(rest)
    assert back(tmp_path / "s.jsonl") == (tmp_path / "s.jsonl").read_bytes()
    people = [replace(one, extra={k: v for k, v in one.extra.items() if k != "simulated_labels"}) for one in again]
    assert "simulated_labels" not in next(formats.write(people, "hagrid"))


def test_a_changed_answer_is_written_anew(tmp_path: Path) -> None:
    first, second = formats.read(file_of(tmp_path / "h.jsonl", ROW))
    shorter = replace(first, sentences=first.sentences[:1], output=None)
    (line,) = formats.write([shorter, second], "hagrid")
    assert json.loads(line)["answers"][0]["answer"] == "The tower stands in Ålesund [1]."


def test_a_question_without_answers_is_counted(tmp_path: Path) -> None:
    notes = formats.Notes()
    path = file_of(tmp_path / "h.jsonl", PLAIN | {"answers": []}, ROW)
    assert len(list(formats.read(path, notes=notes))) == 2
    assert notes["without_answer"] == 1


texts = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(
    ["A [1].", "B [1][2].", "C [3] and [0].", "", "[1]", "D. E [2]."]
)
labels = st.sampled_from([0, 1, None])


@st.composite
def shuffled(draw: st.DrawFn, fields: dict[str, st.SearchStrategy[Any]], needed: tuple[str, ...]) -> dict[str, Any]:
    """An object with its fields in any order; those that are not needed may be missing."""
    names = draw(st.permutations(list(fields)))
    return {name: draw(fields[name]) for name in names if name in needed or draw(st.booleans())}


def rows() -> st.SearchStrategy[dict[str, Any]]:
    kinds = {"informative": labels, "attributable": labels}
    sentence = shuffled({"text": texts, "index": st.integers(0, 9), "other": texts, **kinds}, ("text",))
    sentences = st.none() | st.lists(sentence, max_size=3)
    answer = shuffled({"answer": texts, "answer_type": texts, "sentences": sentences, **kinds}, ("answer",))
    quotes = st.lists(shuffled({"text": texts, "docid": st.sampled_from("abc")}, ("text",)), max_size=3).map(
        lambda found: [{"idx": n} | one for n, one in enumerate(found, 1)]
    )
    fields = {"query": texts, "quotes": quotes, "answers": st.lists(answer, min_size=1, max_size=3), "extra": texts}
    return shuffled(fields, ("query", "quotes", "answers"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(rows(), min_size=1, max_size=3))
def test_any_record_is_written_back_byte_for_byte(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    numbered = [{"query_id": f"q{n}", **row} for n, row in enumerate(records)]
    path = file_of(tmp_path / "h.jsonl", *numbered)
    assert back(path) == path.read_bytes()
    (tmp_path / "a.jsonl").write_bytes(back(path, "answers"))
    assert back(tmp_path / "a.jsonl") == path.read_bytes()
