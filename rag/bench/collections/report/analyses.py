"""The analyses of HAGRID's paper (Kamalloo et al. 2023, Section 4) of any cited answers, as numbers."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

from autoais.base.answers import CitedAnswer
from autoais.base.errors import first_line
from autoais.metrics.extractive import extractive
from rag.answer.word_overlap import nearest_sentence
from rag.base.errors import RagError
from rag.bench.collections.statistics import whole_labels

LABELS = ("informative", "not informative", "attributable", "not attributable")
"""The groups of Figure 3: labels of whole answers in its first part, of sentences in the second."""

MIN_LABEL_SHARE = 0.1  # share of citations from which on Figure 5 labels a cell
_BATCH = 256
_DIGITS = 4


class Similarity(Protocol):
    """Scores how alike the texts of pairs are."""

    @property
    def name(self) -> str:
        """What is measured, as a reader of the report should know it."""
        ...

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return one score a pair; higher is more alike."""
        ...


class StaticSimilarity:
    """The cosine of the static embeddings that ship with rag: a stand-in for BERTScore."""

    def __init__(self) -> None:
        from rag.retrieval.encoders.static import Static

        self._encoder = Static()
        self.name = f"cosine of {self._encoder.name}, a stand-in for BERTScore"

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the cosines, -1 to 1."""
        left_vectors, right = (self._encoder.passages([pair[side] for pair in pairs]) for side in (0, 1))
        return [round(float(value), _DIGITS) for value in (left_vectors * right).sum(axis=1)]


class BertScore:
    """BERTScore's F1 (Zhang et al. 2020), by the package bert-score with its default English model."""

    name = "BERTScore F1"

    def __init__(self) -> None:
        try:
            package = import_module("bert_score")  # it has no types
        except ImportError as error:
            raise RagError("BERTScore needs a package that is not installed: pip install bert-score") from error
        try:
            self._scorer: Any = package.BERTScorer(lang="en")
        except (OSError, RuntimeError, ValueError) as error:
            raise RagError(
                f"BERTScore's model cannot be loaded ({first_line(error)}); choose the similarity static (--similarity)"
            ) from error

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return F1 for each pair."""
        _, _, f1 = self._scorer.score([pair[0] for pair in pairs], [pair[1] for pair in pairs])
        return [round(float(value), _DIGITS) for value in f1]


def open_similarity(name: str | None) -> Similarity:
    """Return the similarity of that name, `static` or `bertscore`; None is BERTScore where it is installed."""
    kinds: dict[str, Callable[[], Similarity]] = {"static": StaticSimilarity, "bertscore": BertScore}
    name = name or ("bertscore" if find_spec("bert_score") else "static")
    if name not in kinds:
        raise RagError(f"no similarity called {name!r}; there are: {', '.join(kinds)}")
    return kinds[name]()


def groups_of(answer: CitedAnswer) -> list[str]:
    """Return the groups of Figure 3 that an answer belongs to, by the labels of the whole answer (`whole_labels`)."""
    return _groups(whole_labels(answer))


def _groups(labels: Mapping[str, bool | None]) -> list[str]:
    groups = []
    for label, value in labels.items():
        if value is not None:
            groups.append(label if value else f"not {label}")
    return groups


@dataclass
class Analyses:
    """The numbers of Figures 3 to 5, gathered answer by answer (`add`, then `close`)."""

    similarity: Similarity
    quotes: dict[str, list[float]] = field(default_factory=lambda: {label: [] for label in LABELS})
    similarities: dict[str, list[float]] = field(default_factory=lambda: {label: [] for label in LABELS})
    coverage: list[float] = field(default_factory=list)
    density: list[float] = field(default_factory=list)
    cited_numbers: dict[int, Counter[int]] = field(default_factory=dict)
    _pairs: list[tuple[str, str]] = field(default_factory=list)
    _groups: list[list[str]] = field(default_factory=list)

    def add(self, answer: CitedAnswer) -> None:
        """Count one answer."""
        groups = groups_of(answer)
        for group in groups:
            self.quotes[group].append(float(len(answer.passages)))
        number = {key: n for n, key in enumerate(answer.passages, 1)}
        cites = [number[key] for sentence in answer.sentences for key in sentence.cites]
        if cites:
            self.cited_numbers.setdefault(len(number), Counter()).update(cites)
            self._extractive(answer)
        for sentence in answer.sentences:
            sentence_groups = _groups({"informative": sentence.informative, "attributable": sentence.attributable})
            if len(answer.sentences) == 1:
                sentence_groups = groups
            for key in sentence.cites if sentence_groups else ():
                self._compare(sentence.text, answer.passages[key].text, sentence_groups)

    def _extractive(self, answer: CitedAnswer) -> None:
        """Figure 4: the answer against the quotes that it cites."""
        keys = dict.fromkeys(key for sentence in answer.sentences for key in sentence.cites)
        fragments = extractive(answer.plain, [text for key in keys if (text := answer.passages[key].text)])
        if fragments.coverage is not None and fragments.density is not None:
            self.coverage.append(fragments.coverage)
            self.density.append(fragments.density)

    def _compare(self, sentence: str, quote: str, groups: list[str]) -> None:
        """Figure 3b: a sentence against the sentence of a cited quote that shares most with it."""
        if not sentence.strip() or not quote.strip():
            return
        start, end = nearest_sentence(quote, sentence) or (0, len(quote))
        self._pairs.append((sentence, quote[start:end]))
        self._groups.append(groups)
        if len(self._pairs) >= _BATCH:
            self.close()

    def close(self) -> None:
        """Score the pairs that wait."""
        if self._pairs:
            for value, groups in zip(self.similarity.score(self._pairs), self._groups, strict=True):
                for group in groups:
                    self.similarities[group].append(value)
            self._pairs, self._groups = [], []

    def figure5(self) -> dict[int, list[float]]:
        """Return, for each number of quotes, the share of the citations that go to quote 1, 2, and so on."""
        return {
            n: [counts[index] / counts.total() for index in range(1, n + 1)]
            for n, counts in sorted(self.cited_numbers.items())
        }


def quartiles(values: Sequence[float]) -> dict[str, Any]:
    """Return n, mean and quartiles (linear interpolation); n alone without values."""
    if not values:
        return {"n": 0}
    import numpy as np

    low, middle, high = (float(quantile) for quantile in np.quantile(np.asarray(values, np.float64), (0.25, 0.5, 0.75)))
    return {"n": len(values), "mean": float(np.mean(values)), "q1": low, "median": middle, "q3": high}
