import time

from hypothesis import given
from hypothesis import strategies as st

from autoais.base.text.excerpt import BUDGET, excerpt, find_words_in, find_words_outside, split_sentences, text_of
from autoais.base.text.words import content_stems
from autoais.base.types import Span

FILLER = "The weather was fine and nobody said much about it that day. "


def test_short_evidence_is_read_whole() -> None:
    read = excerpt("Ada wrote it.", ["Ada Lovelace wrote notes.", "They were long."])
    assert read == (Span(0, 0, 25), Span(1, 0, 15))


def test_long_evidence_is_read_where_the_claim_is_covered() -> None:
    facts = ["Marie Curie won the Nobel Prize in 1911.", "The prize was for radium and polonium."]
    evidence = [FILLER * 40 + facts[0] + " " + FILLER * 40, FILLER * 30 + facts[1]]
    read = excerpt("Curie won the Nobel Prize for radium and polonium in 1911.", evidence)
    text = text_of(read, evidence)
    assert all(fact in text for fact in facts)
    assert len(text) <= BUDGET + 40  # the marks of gaps come on top


def test_a_word_soup_of_200_000_words_is_read_in_pieces() -> None:
    evidence = "alpha beta gamma " * 70_000 + "Zanzibar is an island " + "delta epsilon " * 1000
    read = excerpt("Zanzibar is an island", [evidence])
    assert "Zanzibar is an island" in text_of(read, [evidence])


def test_200_000_lines_that_share_a_word_with_the_claim_take_no_longer() -> None:
    started = time.process_time()
    read = excerpt("alpha beta gamma", ["alpha.\n" * 200_000])
    assert time.process_time() - started < 10  # trying every line for every line chosen took 15 s
    assert read[0].start == 0


@given(st.text(max_size=400))
def test_pieces_hold_all_that_is_not_white_space_in_order(text: str) -> None:
    places = list(split_sentences(text))
    assert all(start < end for start, end in places)
    assert "".join("".join(text[s:e] for s, e in places).split()) == "".join(text.split())
    assert places == sorted(places)


@given(st.text(max_size=60), st.lists(st.text(max_size=300), max_size=4), st.integers(20, 200))
def test_spans_are_in_the_evidence_in_order_and_within_the_budget(claim: str, evidence: list[str], budget: int) -> None:
    read = excerpt(claim, evidence, budget)
    assert list(read) == sorted(read, key=lambda s: (s.evidence, s.start))
    assert all(0 <= s.start < s.end <= len(evidence[s.evidence]) for s in read)
    if sum(end - start + 1 for text in evidence for start, end in split_sentences(text)) > budget:
        assert sum(s.end - s.start for s in read) <= budget


def test_words_that_the_sides_share_are_told_by_stem() -> None:
    claim = "The rivers of Poland flooded in 1997."
    stems = frozenset(content_stems("A river in Poland flooded."))
    assert [claim[s:e] for s, e in find_words_outside(claim, stems)] == ["1997"]
    assert [claim[s:e] for s, e in find_words_in(claim, stems)] == ["rivers", "Poland", "flooded"]
