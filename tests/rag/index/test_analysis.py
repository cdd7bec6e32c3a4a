import json
import re
import unicodedata
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoais.base.text.scripts import UNSPACED
from rag import build_index, open_index, update_index
from rag.base.errors import IndexingError, QuestionError
from rag.index.analysis import _ANALYSES, ANALYSIS, analysis_of, query_terms

OLD = _ANALYSES["english.v1"]
CLAUSES = [
    ("图书馆", "图书馆每天早上九点开门，晚上六点关门。"),
    ("九点开门", "图书馆每天早上九点开门，晚上六点关门。"),
    ("猫", "三只猫在花园里睡觉。"),
    ("プール", "ﾌﾟｰﾙは朝九時に開きます。"),
    ("도서관", "도서관은 매일 아침 아홉 시에 엽니다."),
    ("ห้องสมุด", "วันจันทร์ห้องสมุดปิด"),
    ("បណ្ណាល័យ", "ថ្ងៃនេះបណ្ណាល័យបិទ"),
    ("စာကြည့်", "ဒီနေ့စာကြည့်တိုက်ပိတ်တယ်"),
    ("ຫ້ອງສະໝຸດ", "ມື້ນີ້ຫ້ອງສະໝຸດປິດ"),
]
EQUAL = [
    ("café", "cafe\u0301"),
    ("efficient", "e\ufb03cient"),
    ("ABC123", "ＡＢＣ１２３"),
    ("istanbul", "İstanbul"),
    ("ISTANBUL", "I\u0307stanbul"),
    ("strasse", "Straße"),
    ("οδοσ", "ΟΔΟΣ"),
    ("τῆς", unicodedata.normalize("NFD", "τῆς")),
    ("Java", "Java™"),
    ("6 1/2", "6½"),
    ("мамонтёнок", unicodedata.normalize("NFD", "Мамонтёнок")),
]


@pytest.mark.parametrize(("query", "text"), CLAUSES)
def test_a_word_is_found_in_a_text_without_blanks(query: str, text: str) -> None:
    assert set(query_terms(query)) <= set(ANALYSIS.passage_terms(text))


@pytest.mark.parametrize(("query", "text"), EQUAL)
def test_letters_that_look_alike_are_equal(query: str, text: str) -> None:
    assert query_terms(query) == list(dict.fromkeys(ANALYSIS.passage_terms(text)))
    assert query_terms(text) == list(dict.fromkeys(ANALYSIS.passage_terms(query)))


@given(st.text(st.characters(min_codepoint=1, max_codepoint=126)) | st.sampled_from(["naïve café", "“Zürich” – 3 €…"]))
def test_english_has_the_terms_that_it_always_had(text: str) -> None:
    assert ANALYSIS.passage_terms(text) == OLD.passage_terms(text)


@given(st.text())
def test_a_passage_is_found_by_its_own_words(text: str) -> None:
    terms = set(ANALYSIS.passage_terms(text))
    with suppress(QuestionError):
        assert set(query_terms(text)) <= terms


def test_no_letter_of_a_script_without_blanks_ends_a_term() -> None:
    letters = [chr(code) for code in range(0x3100) if re.match(f"[{UNSPACED}]", chr(code))]
    parted = [letter for letter in letters if len(ANALYSIS.query_terms(f"x{letter}{letter}ก")) < 2]
    assert len(letters) > 400
    assert {letter for letter in parted if letter.isalpha()} == set()


@pytest.mark.parametrize("word", ["e3b0c44298fc1c149afbf4c8996fb92427ae41e4", "a1" * 127, "достопримечательность" * 3])
def test_long_words_are_terms(word: str) -> None:
    assert query_terms(word) == ANALYSIS.passage_terms(word)


def test_a_query_without_terms_is_told_why() -> None:
    with pytest.raises(QuestionError, match=r"only words of more than 255 bytes; add a content word$"):
        query_terms("a1" * 128)
    with pytest.raises(QuestionError, match="only stop words or punctuation"):
        query_terms("what is the?")


# --- indexes of older versions -----------------------------------------------------------------------------------


@pytest.fixture
def old_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index as the version before wrote it."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.txt").write_text("Die Straße nach İzmir ist lang.\n")
    (docs / "b.txt").write_text("图书馆每天早上九点开门。\n")
    for module in ("rag.index.postings", "rag.index.manifest"):
        monkeypatch.setattr(f"{module}.ANALYSIS", OLD)
    build_index([docs], tmp_path / "index", retrievers=[])
    monkeypatch.undo()
    return tmp_path / "index"


def found(index: Path, query: str) -> list[str]:
    return [hit.passage.id for hit in open_index(index).bm25.search([query], 5)[0]]


def test_an_old_index_is_searched_by_its_own_rule(old_index: Path) -> None:
    assert found(old_index, "Straße") == ["a.txt#1"]
    assert found(old_index, "图书馆") == []


def test_an_update_writes_all_terms_anew(old_index: Path) -> None:
    (old_index.parent / "docs/c.txt").write_text("The mill is old.\n")
    update_index(old_index)
    assert found(old_index, "图书馆") == ["b.txt#1"]
    assert found(old_index, "strasse") == ["a.txt#1"]
    assert analysis_of(open_index(old_index).manifest["analyzer"]) is ANALYSIS


def test_an_index_of_a_later_version_is_refused(old_index: Path) -> None:
    manifest = json.loads((old_index / "manifest.json").read_text())
    (old_index / "manifest.json").write_text(json.dumps(manifest | {"analyzer": "english.v9: by magic"}))
    with pytest.raises(IndexingError, match=r"'english\.v9': upgrade attributed-rag or build it again$"):
        open_index(old_index)
