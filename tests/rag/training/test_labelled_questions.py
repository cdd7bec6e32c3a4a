"""Questions with quotes, as training data: quotes are fingerprints, so that the file holds no text of others."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.base.errors import FormatError
from rag.base.types import Hit, Passage

pytest.importorskip("torch")

from rag.training.labelled_questions import find_quote, fingerprint, groups, read_labelled_questions
from rag.training.mining import Group

TEXT = "The gate opens at seven. The beds are watered at noon,\n  in summer. Nobody sleeps here."
OTHER = Passage("b.md#1", "Shed", "The shed is locked at night.")


class Fixed:
    """A retriever that always returns the same passages."""

    name = "fixed"

    def __init__(self, passages: list[Passage]) -> None:
        self.passages = passages

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        return [[Hit(p, 1.0 / n) for n, p in enumerate(self.passages[:k], 1)] for _ in queries]


def row(**changed: object) -> dict[str, object]:
    quote = fingerprint("The beds are watered at noon, in summer")
    made = {"words": quote.words, "sha256": quote.sha256}
    return {
        "question": "when are the beds watered", "collection": "c", "path": "a.md", "quotes": [made], "short": "noon",
    } | changed  # fmt: skip


def written(folder: Path, *rows: dict[str, object]) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


def test_a_question_becomes_a_group_with_its_quote_and_short_answer(tmp_path: Path) -> None:
    right = Passage("a.md#1", "Garden", TEXT)
    (group,) = groups(
        read_labelled_questions(written(tmp_path, row())),
        {"a.md": [OTHER, right]},
        Fixed([right, OTHER]),
        random.Random(1),
        others=2,
    )
    assert group.passages == (right,)
    assert [TEXT[a:b] for a, b in group.kept] == ["The beds are watered at noon,\n  in summer"]
    assert [TEXT[a:b] for a, b in group.spans or ()] == ["noon"]
    assert group.others == (OTHER,)


def test_questions_without_a_short_answer_without_an_answer_and_without_their_quote(tmp_path: Path) -> None:
    right = Passage("a.md#1", "Garden", TEXT)
    rows = [row(short=None), row(short="midnight"), row(path=None, quotes=[], short=None), row(path="gone.md")]
    found = list(
        groups(
            read_labelled_questions(written(tmp_path, *rows)),
            {"a.md": [right]},
            Fixed([OTHER]),
            random.Random(1),
            others=1,
        )
    )
    assert [(group.passages, group.spans) for group in found] == [((right,), ()), ((right,), None), ((), ())]


def test_a_quote_may_be_the_text_itself(tmp_path: Path) -> None:
    (plain,) = read_labelled_questions(written(tmp_path, row(quotes=["The beds are watered at noon, in summer"])))
    (hashed,) = read_labelled_questions(written(tmp_path, row()))
    assert plain == hashed


def judged(passage: Passage, grade: int) -> dict[str, object]:
    found = fingerprint(passage.text)
    return {"words": found.words, "sha256": found.sha256, "grade": grade}


def test_passages_that_were_judged_are_positives_or_negatives_and_partial_ones_are_left_out(tmp_path: Path) -> None:
    right, also = Passage("a.md#1", "Garden", TEXT), Passage("c.md#1", "Water", "Water is given at midday.")
    part, wrong = Passage("d.md#1", "Sun", "At noon it is hot."), Passage("e.md#1", "Beds", "Beds are for sleeping.")
    grades = [judged(also, 2), judged(part, 1), judged(wrong, 0)]
    hits = Fixed([OTHER, right, also, part, wrong])

    def of(others: int, **changed: object) -> Group:
        rows = read_labelled_questions(written(tmp_path, row(judged=grades, **changed)))
        (group,) = groups(rows, {"a.md": [right]}, hits, random.Random(1), others=others)
        return group

    assert of(2).passages == (right, also)
    assert of(2).others == (wrong, OTHER)
    assert of(1).others == (wrong,)
    unanswerable = of(9, path=None, quotes=[], short=None)
    assert (unanswerable.passages, unanswerable.spans) == ((also,), None)
    assert set(unanswerable.others) == {wrong, OTHER, right}
    assert of(1, path="gone.md").passages == (also,)


@pytest.mark.parametrize(
    "changed",
    [
        {"quotes": [3]},
        {"quotes": [{"words": "3"}]},
        {"question": 3},
        {"short": 1},
        {"path": 2},
        {"judged": [1]},
        {"judged": [{"words": 3, "sha256": "0", "grade": 3}]},
        {"judged": [{"words": 3, "sha256": "0"}]},
    ],
)
def test_broken_rows_are_named(tmp_path: Path, changed: dict[str, object]) -> None:
    with pytest.raises(FormatError, match=r"rows\.jsonl:1"):
        list(read_labelled_questions(written(tmp_path, row(**changed))))


@given(st.lists(st.sampled_from(["Garden", "gate,", "at", "7", "東京", "-", "É"]), min_size=1), st.data())
def test_a_quote_is_found_whatever_its_white_space_and_case(words: list[str], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(words) - 1))
    last = data.draw(st.integers(first, len(words) - 1))
    quote = fingerprint(" ".join(words[first : last + 1]).upper())
    span = find_quote("\n ".join(words), quote)
    assert (span is None) == (quote.words == 0)
    if span is not None:
        assert fingerprint("\n ".join(words)[slice(*span)]) == quote
