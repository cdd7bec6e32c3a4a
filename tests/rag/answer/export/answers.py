"""Answers for tests of the formats: one of our own writing, one full of markup, and any at all (hypothesis)."""

from collections.abc import Sequence
from urllib.parse import quote

from hypothesis import strategies as st

from rag.base.types import Answer, Citation, CitedSentence, Hit, Passage, Question

PASSAGES = (
    Passage("town#1", "Arlen", "Arlen has a bridge. Nora Finch built it in 1911.", "History", page=3),
    Passage("town#2", "Arlen", "About 900 people live there.", "People", page=4),
    Passage("river#1", "The river [Lune]", "The river is long.\n\nIt is cold."),
)


def cite(passage: Passage, quote: str) -> Citation:
    start = passage.text.index(quote)
    return Citation(passage.id, start, start + len(quote), quote, "copied")


def build(
    text: str,
    sentences: Sequence[tuple[str, Sequence[Citation]]],
    passages: Sequence[Passage] = PASSAGES,
    question: str = "Who built the bridge?",
) -> Answer:
    """An answer with sentences that occur in its text, in order."""
    cited, at = [], 0
    for sentence, citations in sentences:
        start = text.index(sentence, at)
        at = start + len(sentence)
        cited.append(CitedSentence(sentence, tuple(citations), start, at))
    hits = tuple(Hit(passage, 1.0) for passage in passages)
    return Answer(Question("q1", question), text, tuple(cited), hits, "test")


def link(passage: Passage, spans: Sequence[tuple[int, int]]) -> str:
    marks = ",".join(f"{start}-{end}" for start, end in spans)
    return f"http://127.0.0.1:8000/p/shelf/{quote(passage.id, safe='')}" + (f"?mark={marks}" if marks else "")


BRIDGE = build(
    "Nora Finch built it in 1911. The river is long. It may rain.",
    [
        ("Nora Finch built it in 1911.", [cite(PASSAGES[0], "Nora Finch built it in 1911.")]),
        ("The river is long.", [cite(PASSAGES[2], "The river is long."), cite(PASSAGES[0], "Arlen has a bridge.")]),
        ("It may rain.", []),
    ],
)
ABSTAINED = Answer(
    Question("q2", "Who sings?"), "", (), BRIDGE.hits, "test", abstained=True, reason="nothing is near enough"
)

HOSTILE = (
    "<script>alert(1)</script> [x](javascript:alert(1)) ![i](data:x) \x1b[31m \u202e \U000e0041 **b** `c` $\\{}%&#_^~"
)

_pieces = st.lists(
    st.one_of(
        st.text(max_size=6),
        st.sampled_from(
            "# - + > = 1. [^1]: [1] ( ) [ ] ![ ]( < <b> </div> &amp; &#x3c; * ** _ __ ` ``` ~~ | --- $ \\ { } ^ : / "
            "\" ' \n \n\n \t \r \x00 \x1b \u202e \u2028 www.a.b http://a.b a@b.c . ! ?".split(" ")
        ),
        st.just(" "),
        st.just("\n"),
    ),
    max_size=8,
)
texts = st.builds("".join, _pieces)
some_text = texts.filter(lambda text: text != "")


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    """Any answer that does not abstain: hostile texts, sentences that touch, spans that overlap."""
    named = st.builds(
        Passage,
        st.just(""),
        texts,
        some_text,
        texts,
        page=st.one_of(st.none(), st.integers(1, 99)),
    )
    passages = [
        Passage(f"{draw(texts)}#{n}", one.title, one.text, one.section, page=one.page)
        for n, one in enumerate(draw(st.lists(named, min_size=1, max_size=3)))
    ]
    text, sentences = draw(texts), []
    for _ in range(draw(st.integers(0, 3))):
        body = draw(some_text)
        citations = []
        for _ in range(draw(st.integers(0, 3))):
            passage = draw(st.sampled_from(passages))
            start = draw(st.integers(0, len(passage.text) - 1))
            end = draw(st.integers(start + 1, len(passage.text)))
            citations.append(Citation(passage.id, start, end, passage.text[start:end]))
        sentences.append(CitedSentence(body, tuple(citations), len(text), len(text) + len(body)))
        text += body + draw(texts)
    hits = tuple(Hit(passage, 1.0) for passage in passages)
    return Answer(Question("q", draw(texts)), text, tuple(sentences), hits, draw(texts), draw(texts))
