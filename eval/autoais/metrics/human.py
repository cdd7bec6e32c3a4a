"""Human labels of the answers in a file, by the rules of HAGRID and Liu et al., and a judge's agreement with them."""

from collections.abc import Sequence
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.labels import answer_informative, sentences_attributable
from autoais.base.types import CitedSentence, Support
from autoais.metrics import attrscore, liu
from autoais.metrics.claims import JudgedClaim
from autoais.metrics.intervals import number_of
from autoais.metrics.judged import JudgedAnswer
from autoais.metrics.rates import Mean, Rate, Tally
from autoais.metrics.scores import CitationScores

_LIKERT = ("Strongly Disagree", "Disagree", "Neutral", "Agree", "Strongly Agree")  # 1 to 5 (Liu et al. 2023)
_RATINGS = ("fluency", "perceived_utility")


class HumanSummary:
    """Collects human labels of answers, sentences and citations, and the judge's verdicts on labelled items.

    `data`: counts of questions, answers, quotes (passages) and citations, as in HAGRID's Table 2 (Kamalloo et al.
    2023); of the answers to one question, the one with the most quotes counts them. `labels`: answers and sentences
    labelled informative or attributable, over those labelled at all, as in HAGRID's Table 3 (an answer is informative
    if any sentence is, attributable if all are that are worth verifying), and citations by level of support. `metrics`:
    citation recall, precision and F1 over verification-worthy statements (Liu et al. 2023), pooled and averaged over
    responses, and the means of fluency and perceived utility (1 to 5). Intervals are over questions. `agreement`:
    Cohen's kappa and macro-F1 of the judge over labelled sentences (against all their citations together) and over
    labelled single citations (full support is a yes); items that cite passages without a text are left out. `levels`:
    the judge's levels of support beside people's, if the judge says partial.
    """

    def __init__(self) -> None:
        self.answers = self.citations = 0
        self.quotes: dict[int, int] = {}  # by question
        names = ("informative", "attributable", "informative_sentences", "attributable_sentences")
        self.labels = {name: Tally(name) for name in names}
        self.support = {level: Tally(str(level)) for level in Support}
        self.liu = CitationScores()
        self.ratings: dict[str, list[tuple[float, int]]] = {name: [] for name in _RATINGS}  # with their questions
        self.levels: list[tuple[Support, Support | None, int]] = []  # with their questions
        self.agreement: dict[str, list[tuple[bool, bool | None]]] = {"sentences": [], "citations": []}

    def add(self, item: JudgedAnswer) -> None:
        """Add one answer; a missing answer has no labels and is skipped."""
        answer = item.answer
        if answer is None:
            return
        question = number_of(item.question_key)
        self.quotes[question] = max(self.quotes.get(question, 0), len(answer.passages))
        self.answers += 1
        self.citations += sum(len(sentence.cites) for sentence in answer.sentences)
        informative = [sentence.informative for sentence in answer.sentences]
        attributable = [sentence.attributable for sentence in answer.sentences]
        self._label("informative_sentences", informative, question)
        self._label("attributable_sentences", attributable, question)
        rolled_up = (answer_informative(informative), sentences_attributable(answer.sentences))
        for name, label, rolled_label in zip(
            ("informative", "attributable"), (answer.informative, answer.attributable), rolled_up, strict=True
        ):
            self._label(name, [rolled_label if label is None else label], question)
        if any(sentence.worthy is not None for sentence in answer.sentences):
            liu.add(self.liu, map(_statement, answer.sentences), question=question)
        for name in _RATINGS:
            if answer.extra.get(name) in _LIKERT:
                self.ratings[name].append((_LIKERT.index(answer.extra[name]) + 1, question))
        levels = [
            citation.support
            for sentence in answer.sentences
            for citation in sentence.citations
            if citation.support is not None
        ]
        for level, tally in self.support.items():
            tally.add([citation_level is level for citation_level in levels], question)
        for sentence, claim in zip(answer.sentences, item.claims, strict=True):
            if claim is not None:
                self._agree(answer, sentence, claim, question)

    def _label(self, name: str, values: Sequence[bool | None], question: int) -> None:
        self.labels[name].add([label for label in values if label is not None], question)

    def _data(self) -> dict[str, Any]:
        return {
            "questions": len(self.quotes),
            "answers": self.answers,
            "citations": self.citations,
            "quotes_per_question": sum(self.quotes.values()) / len(self.quotes),
            "answers_per_question": self.answers / len(self.quotes),
            "citations_per_answer": self.citations / self.answers,
        }

    def _agree(self, answer: CitedAnswer, sentence: CitedSentence, claim: JudgedClaim, question: int) -> None:
        texts = [bool(answer.passages[key].text.strip()) for key in sentence.cites]
        if sentence.attributable is not None and (any(texts) or not texts):
            self.agreement["sentences"].append((sentence.attributable, claim.union.verdict.ais))
        # `alone` is empty if single citations were not judged.
        for key, text, judgement in zip(sentence.cites, texts, claim.per_citation, strict=False):
            level = sentence.support.get(key)
            if level is not None and text:
                self.agreement["citations"].append((level is Support.FULL, judgement.verdict.ais))
                self.levels.append((level, judgement.verdict.support, question))

    def report(self) -> dict[str, Any] | None:
        """`data`, `labels`, `metrics` and `agreement` as JSON, without empty entries; None if nothing is labelled."""
        labels = {name: _labels(tally.rate()) for name, tally in self.labels.items()}
        labels |= {f"{level}_support": _labels(tally.rate()) for level, tally in self.support.items()}
        metrics: dict[str, Any] = {}
        if len(self.liu.recall):
            metrics = {f"liu_{name}": ratio.record() for name, ratio in self.liu.micro_average().items()}
            metrics |= {f"liu_{name}_averaged": ratio.record() for name, ratio in self.liu.macro_average().items()}
        for name, ratings in self.ratings.items():
            if ratings:
                metrics[name] = Mean.of(*map(list, zip(*ratings, strict=True)), low=1.0, high=5.0).record()
        result = {
            "labels": {name: record for name, record in labels.items() if record["n"]},
            "metrics": metrics,
            "agreement": {name: _agreement(pairs) for name, pairs in self.agreement.items() if pairs},
        }
        verdicts = [level for _, level, _ in self.levels]
        if Support.PARTIAL in verdicts:
            truth, _, questions = zip(*self.levels, strict=True)
            result["levels"] = attrscore.evaluate_levels(truth, verdicts, questions)
        return {"data": self._data(), **result} if any(result.values()) else None


def _statement(sentence: CitedSentence) -> liu.Statement:
    """The statement of a labelled sentence; without citations it is not supported, whatever the label says."""
    is_supported = sentence.attributable if sentence.cites else False
    levels = tuple(citation.support for citation in sentence.citations)
    return liu.Statement(is_supported, levels or (None,) * len(sentence.cites), bool(sentence.worthy))


def _labels(rate: Rate) -> dict[str, Any]:
    ends = rate.interval
    return {
        "n": rate.n,
        "yes": rate.yes,
        "no": rate.n - rate.yes,
        "value": rate.value,
        "interval95": list(ends) if ends else None,
    }


def _agreement(pairs: Sequence[tuple[bool, bool | None]]) -> dict[str, Any]:
    import numpy as np

    from autoais.metrics.classification import cohen_kappa, macro_f1

    decided_pairs = [(truth, verdict) for truth, verdict in pairs if verdict is not None]
    result: dict[str, Any] = {"n": len(decided_pairs), "undecided": len(pairs) - len(decided_pairs)}
    if not decided_pairs:
        return result | {"macro_f1": None, "cohen_kappa": None, "reason": "nothing was decided"}
    truth, verdicts = np.array(decided_pairs, dtype=np.bool_).T
    result |= {"macro_f1": macro_f1(truth, verdicts), "cohen_kappa": cohen_kappa(truth, verdicts)}
    return result | ({"reason": "labels and verdicts are all the same"} if result["cohen_kappa"] is None else {})
