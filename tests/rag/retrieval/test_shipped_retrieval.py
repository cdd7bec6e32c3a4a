"""The reader and the static embeddings that ship: files, records and what they tell."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from autoais.base.io.provenance import sha256_file
from rag.api import add_retriever
from rag.base.types import Passage
from rag.index.open import open_index
from rag.index.retriever_config import read_config
from rag.retrieval import open_retriever
from rag.retrieval.encoders import open_encoder
from rag.retrieval.encoders.static import SHIPPED as STATIC
from rag.retrieval.encoders.static import Static
from rag.retrieval.reader import SHIPPED as READER
from rag.retrieval.reader import Reader
from rag.testing import check_retriever
from scripts.make_retrieval_cards import reader_card, static_card
from tests.conftest import Command

CURIE = Passage("curie", "Marie Curie", "Marie Curie won the Nobel Prize in Physics in 1903, with her husband Pierre.")
RIVER = Passage("river", "Vistula", "The Vistula is the longest river of Poland; it flows through Warsaw.")


@pytest.mark.parametrize(
    ("folder", "name", "lines"),
    [(READER, Reader().name, reader_card), (STATIC, Static().name, static_card)],
)
def test_the_files_are_those_of_the_record_and_the_card(
    folder: Path, name: str, lines: Callable[[], Iterator[str]]
) -> None:
    record = json.loads((folder / "training.json").read_text())
    card = (folder / "CARD.md").read_text()
    assert record["short"] is False
    for file, digest in record["files"].items():
        assert sha256_file(folder / file) == digest, file
        assert digest in card, file
    assert card.startswith(f"# {name}\n")
    assert card.splitlines() == list(lines())  # else: python -m scripts.make_retrieval_cards


def test_the_reader_tells_the_passage_that_answers_and_the_words_that_do() -> None:
    answers, other = Reader().read("when did marie curie win the nobel prize in physics", [CURIE, RIVER])
    assert answers.relevance > other.relevance
    assert CURIE.text[answers.start : answers.end] == "1903"


def test_static_embeddings_without_a_folder_are_those_that_ship() -> None:
    encoder = open_encoder("static")
    assert encoder.name == open_encoder(f"static:{STATIC}").name == Static().name
    asked = encoder.queries(["which river flows through warsaw", "who won a nobel prize", ""])
    near = asked @ encoder.passages([passage.text for passage in (RIVER, CURIE)]).T
    assert near[0, 0] > near[0, 1]
    assert near[1, 1] > near[1, 0]
    assert not asked[2].any()
    assert np.isfinite(asked).all()


def test_a_query_of_which_no_word_piece_is_known_finds_nothing(shelf: Path) -> None:
    add_retriever(shelf, "static")
    index = open_index(shelf)
    found, nothing = open_retriever("static", index).search(["river", "\u200b\u200b"], 3)
    assert (len(found), nothing) == (3, [])
    assert open_retriever("fused", index).search(["\u200briver"], 1)[0][0].passage.id == found[0].passage.id


def test_an_index_takes_the_part_of_the_retriever_static(rag: Command, shelf: Path) -> None:
    done = rag("index", "build", "--to", shelf, "--retriever", "static")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, f"static was added to {shelf}")
    assert read_config("static").name == "static.v1"
    for name, lexical in (("static", False), ("bm25+static", False)):
        queries = ["river of Poland", "Nobel Prize"]
        check_retriever(open_retriever(name, open_index(shelf)), queries, lexical=lexical)
