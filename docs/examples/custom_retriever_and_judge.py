# %% [markdown]
"""# A custom retriever and a custom judge

A retriever that survives typing errors, and a judge that wants every number of a claim in the evidence: check both,
register them, use them by name. Run it from the repository root: `python docs/examples/custom_retriever_and_judge.py`
"""

# %%
import re
from collections.abc import Sequence

import autoais
import rag
from autoais.judges import JUDGES
from autoais.testing import check_judge
from rag.index.analysis import check_query, check_search
from rag.retrieval import RETRIEVERS
from rag.testing import check_retriever


def trigrams(text: str) -> frozenset[str]:
    """All runs of three characters in a text."""
    folded = f" {text.casefold()} "
    return frozenset(folded[at : at + 3] for at in range(len(folded) - 2))


class Trigrams:
    """Ranks passages by the share of the query's trigrams that they contain."""

    name = "trigrams.v1"

    def __init__(self, index: rag.Index) -> None:
        self._passages = [(passage, trigrams(f"{passage.headings} {passage.text}")) for passage in index.store.scan()]

    def search(self, queries: Sequence[str], k: int) -> list[list[rag.Hit]]:
        """For each query at most k hits, best first, ties by passage id."""
        check_search(queries, k)
        return [self._ranked(query)[:k] for query in queries]

    def _ranked(self, query: str) -> list[rag.Hit]:
        check_query(query)
        asked = trigrams(query)
        hits = [rag.Hit(passage, len(asked & held) / len(asked)) for passage, held in self._passages if asked & held]
        return sorted(hits, key=lambda hit: (-hit.score, hit.passage.id))


MISSING = autoais.Judgement(autoais.Verdict.NOT_ATTRIBUTABLE, 0.0, "a number of the claim is not in the evidence")


def numbers(*texts: str) -> set[str]:
    """The numbers in some texts."""
    return set(re.findall(r"\d+", " ".join(texts)))


class Numbers(autoais.Judge):
    """The lexical judge, which also wants every number of the claim in the evidence."""

    name = "numbers.v1"
    lexical = autoais.open_judge("lexical")

    def decide(self, attributions: Sequence[autoais.Attribution]) -> list[autoais.Judgement]:
        """What the lexical judge says, unless a number is missing."""
        pairs = zip(attributions, self.lexical.decide(attributions), strict=True)
        return [
            judgement if numbers(attribution.claim) <= numbers(*attribution.evidence) else MISSING
            for attribution, judgement in pairs
        ]


# %% The checks assert what every retriever and every judge must do. Put them into a test of your package.
check_retriever(Trigrams(rag.open_index()), ["closed pool", "BM25"], lexical=False)
check_judge(Numbers())

# %% Registered, they work wherever a name is taken: as a retriever, and as a judge.
RETRIEVERS.register("trigrams", rag.RetrieverKind(lambda index, config: Trigrams(index)))
JUDGES.register("numbers", Numbers)
for hit in rag.search("Krippendorf's alfa", retriever="trigrams", k=3):
    print(f"{hit.score:.2f} {hit.passage.id}")

answer = rag.ask("When was HAGRID published?", retriever="trigrams")
report = autoais.score([answer], judge="numbers")
print(f"{answer}\nAutoAIS {report.metrics['autoais'].value} by {report.judge}")
