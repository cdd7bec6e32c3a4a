"""What every implementation of a protocol must do; each implementation is one row of a test."""

from collections.abc import Sequence

from autoais.types import Attribution, Judge
from rag.retrievers import Retriever
from rag.systems import System
from rag.types import Question


def check_retriever(retriever: Retriever, queries: Sequence[str], *, lexical: bool = True) -> None:
    """Order, length, ties by id, batches, depth, determinism. `queries` must find something in the index.

    A retriever that is not `lexical` finds something for any query.
    """
    assert retriever.name
    assert retriever.search([], 3) == []
    whole = retriever.search(queries, 1000)
    assert len(whole) == len(queries)
    for query, hits in zip(queries, whole, strict=True):
        assert hits
        assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.passage.id))
        assert len({hit.passage.id for hit in hits}) == len(hits)
        for k in range(1, len(hits) + 2):
            assert retriever.search([query], k) == [hits[:k]]
    assert retriever.search(queries[::-1], 1000) == whole[::-1]
    assert bool(retriever.search(["zzzunknownword"], 3)[0]) is not lexical


def check_system(system: System, questions: Sequence[Question]) -> None:
    """One answer a question in order, the same each time, every citation shown and verbatim (by construction)."""
    answers = list(system.answer(questions))
    assert [answer.question for answer in answers] == list(questions)
    assert list(system.answer(questions)) == answers
    for answer in answers:
        assert answer.abstained == (not answer.sentences)
        assert answer.abstained == (answer.reason is not None)
        for sentence in answer.sentences:
            assert sentence.citations


def check_judge(judge: Judge) -> None:
    """Order, length, the batch changes nothing, probabilities between 0 and 1, any script and any text."""
    supported = Attribution("Warsaw is the capital of Poland.", ("Warsaw is the capital of Poland, on the Vistula.",))
    unrelated = Attribution("Penguins swim well.", ("Warsaw is the capital of Poland.",))
    odd = [Attribution("東京は首都", ("東京は首都",)), Attribution("\x00!?", ("x",)), Attribution("a b", ("",))]
    pairs = [supported, unrelated, *odd, supported]
    judgements = judge.judge(pairs)
    assert judge.judge([]) == []
    assert len(judgements) == len(pairs)
    assert judgements == [judge.judge([pair])[0] for pair in pairs]
    assert judgements[0].verdict.ais is True
    assert judgements[1].verdict.ais is False
    assert all(j.probability is None or 0 <= j.probability <= 1 for j in judgements)
    assert judge.name
