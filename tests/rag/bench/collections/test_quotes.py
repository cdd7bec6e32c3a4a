"""Where quotes come from, and files that do not fit together."""

from pathlib import Path

import pytest

from rag.base.errors import FormatError, RagError
from rag.bench.collections.quotes import Quoted, QuoteSource, find_quotes
from tests.rag.bench.collections.conftest import TOPICS, write_lines, write_rows


def found(source: QuoteSource) -> Quoted:
    return find_quotes(source, lambda what, done, total: None)


def ids(quoted: Quoted) -> dict[str, list[str]]:
    return {one.question.id: [quote.id for quote in one.passages] for one in quoted.questions}


def test_all_positives_in_the_order_of_the_relevance_file(topics: Path, qrels: Path, quotes: Path) -> None:
    quoted = found(QuoteSource(topics, qrels, quotes))
    assert ids(quoted) == {"10": ["1#1", "1#0"], "11": ["2#0"], "12": ["3#1", "3#0"]}
    assert quoted.questions[1].passages[0].title == "Vistula"
    assert quoted.record["kind"] == "gold"


def test_given_passages_and_gold_of_the_questions(asked: Path, quotes: Path, tmp_path: Path) -> None:
    assert ids(found(QuoteSource(asked)))["12"] == ["3#1", "3#0"]
    gold = write_rows(tmp_path / "gold.jsonl", [{"id": "10", "question": "Capital?", "gold": ["1#0", "1#0", "2#0"]}])
    assert ids(found(QuoteSource(gold, corpus=quotes))) == {"10": ["1#0", "2#0"]}


def test_an_index_is_searched_or_looked_up(shelf: Path, tmp_path: Path) -> None:
    topics = write_lines(tmp_path / "t.tsv", ["1\tWhat is the longest river of Poland?", "2\tof the"])
    quoted = found(QuoteSource(topics, index=shelf, retriever="bm25", k=2))
    assert quoted.record["kind"] == "retrieved"
    assert len(ids(quoted)["1"]) == 2
    assert [(row["query_id"], row["reason"]) for row in quoted.omissions] == [("2", "not-searchable")]
    gold = write_rows(tmp_path / "gold.jsonl", [{"id": "1", "question": "River?", "gold": ["b#2"]}])
    assert ids(found(QuoteSource(gold, index=shelf, kind="gold"))) == {"1": ["b#2"]}
    with pytest.raises(RagError, match=r"choose gold or retrieved quotes \(--quotes\)"):
        found(QuoteSource(gold, index=shelf))


def test_what_does_not_fit_is_listed_and_counted(topics: Path, quotes: Path, tmp_path: Path) -> None:
    qrels = write_lines(
        tmp_path / "q.tsv",
        ["10 0 1#0 1", "10 0 9#9 1", "11 0 2#0 0", "12 0 8#8 1", "99 0 1#0 1"],
    )
    quoted = found(QuoteSource(topics, qrels, quotes))
    assert ids(quoted) == {"10": ["1#0"]}
    assert quoted.record["passages_without_text"] == {"count": 2, "examples": ["9#9", "8#8"]}
    assert quoted.record["qrels_of_unknown_questions"] == {"count": 1, "examples": ["99"]}
    assert quoted.record["incomplete"] == 1
    reasons = {row["query_id"]: row["reason"] for row in quoted.omissions}
    assert reasons == {"11": "no-positive", "12": "no-quote-text"}


def test_a_sample_is_drawn_of_the_questions_with_positives(topics: Path, quotes: Path, tmp_path: Path) -> None:
    qrels = write_lines(tmp_path / "q.tsv", ["10 0 1#0 1", "12 0 3#0 1"])
    drawn = {tuple(ids(found(QuoteSource(topics, qrels, quotes, limit=1, seed=seed)))) for seed in range(12)}
    assert drawn == {("10",), ("12",)}


@pytest.mark.parametrize("line", ["10 0 1#0", "10 0 1#0 yes", "10 0 1#0 1 2", "10", "10 0 1#1 0"])
def test_a_broken_line_of_qrels_is_named(line: str, topics: Path, quotes: Path, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "q.tsv", ["10 0 1#1 1", line])
    with pytest.raises(FormatError, match=r"q\.tsv:2: "):
        found(QuoteSource(topics, path, quotes))


def test_relevance_of_beir(topics: Path, quotes: Path, tmp_path: Path) -> None:
    qrels = write_lines(tmp_path / "q.tsv", ["query-id\tcorpus-id\tscore", "10\t1#0\t1", "10\t3#0\t0"])
    assert ids(found(QuoteSource(topics, qrels, quotes))) == {"10": ["1#0"]}


def test_a_question_twice(topics: Path, quotes: Path, tmp_path: Path) -> None:
    twice = write_lines(tmp_path / "t.tsv", ["10\ta b", "10\tc d"])
    with pytest.raises(FormatError, match=r"t\.tsv:2: id '10' occurs twice"):
        found(QuoteSource(twice, corpus=quotes))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "name their qrels and a corpus"),
        ({"kind": "gold"}, "no field 'gold'"),
        ({"kind": "given"}, "no field 'passages'"),
        ({"kind": "retrieved"}, "need an index"),
        ({"kind": "all"}, "there are: given, gold, retrieved"),
    ],
)
def test_questions_without_passages_need_more(topics: Path, more: dict[str, str], words: str) -> None:
    with pytest.raises(RagError, match=words):
        found(QuoteSource(topics, **more))  # type: ignore[arg-type]


def test_ids_alone_need_a_corpus(topics: Path, qrels: Path, tmp_path: Path) -> None:
    with pytest.raises(RagError, match="known by id only"):
        found(QuoteSource(topics, qrels))
    other = write_rows(tmp_path / "c.jsonl", [{"docid": "x", "title": "", "text": "Other."}])
    with pytest.raises(RagError, match="no question has a quote"):
        found(QuoteSource(topics, qrels, other))
    assert TOPICS
